"""Commands are made from verbs: a verb's parameters are the options, its `Args` their help.

A command names its verb, and has beside it only what the verb has no use for:

    def check(asked: Annotated[Call, Verb("stsbench.judging.check:check")], output: Output = Output()) -> None:
        result = asked()
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from typer import Argument, Option

from stsbench.base.options import MODEL, Commas, Help, More, Panel, Spelled, Within, Written
from stsbench.cli.declared import VerbOption, options_of
from stsbench.cli.options import new_file, new_folder, number_within
from stsbench.cli.output import drawable

_WRITABLE: dict[str, Callable[..., Any]] = {"file": new_file, "folder": new_folder, "figure": drawable}
"""The checks of what is written."""


@dataclass(frozen=True)
class Verb:
    """A parameter of a command stands for the options of this verb.

    Attributes:
        place: where the verb is, `module:function`.
        without: parameters that are no options of this command.
        required: options that have to be given, though the verb has a default.
        panel: the heading of options that say no other.
        completed: what completes options, by their names.
    """

    place: str
    without: Sequence[str] = ()
    required: Sequence[str] = ()
    panel: str | None = None
    completed: Mapping[str, Callable[[str], list[str]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """A verb and the options that were typed.

    Attributes:
        place: where the verb is.
        options: what differs from the verb's defaults, by the names of its parameters.
    """

    place: str
    options: dict[str, Any]

    def __call__(self, **more: Any) -> Any:
        """Call the verb with the options, and with what else it takes or takes in their place."""
        module, _, name = self.place.partition(":")
        return getattr(import_module(module), name)(**self.options | more)

    def only(self, *names: str) -> dict[str, Any]:
        """Return those of some options that were typed."""
        return {name: value for name, value in self.options.items() if name in names}


def spelled_out(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose groups of options are spelled out in its signature, as Typer wants them.

    A parameter whose type is a dataclass stands for the dataclass's fields, each an option (or an argument, which
    has to come first) with its default, and a `Call` of a `Verb` for the verb's parameters; the command is called
    with the dataclass, or the call. As it was written it stays its attribute `as_written`.
    """
    hints = get_type_hints(command, include_extras=True)
    makers: dict[str, tuple[list[str], Callable[[dict[str, Any]], Any]]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        if get_origin(hint) is Annotated and get_args(hint)[0] is Call:
            own, make = _of_verb(get_args(hint)[1])
        elif is_dataclass(hint):
            own, make = _of_group(hint)
        else:
            parameters.append(parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        parameters += own
        makers[parameter.name] = ([each.name for each in own], make)

    def called(**values: Any) -> None:
        for name, (own, make) in makers.items():
            values[name] = make({each: values.pop(each) for each in own})
        command(**values)

    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.as_written = getattr(command, "as_written", command)  # type: ignore[attr-defined]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


def _annotations(group: Any) -> dict[str, Any]:
    """Return each field of a group as Typer wants it: as it is annotated, or as it says of itself (`Use`)."""
    if not all("about" in each.metadata for each in fields(group)):
        return get_type_hints(group, include_extras=True)
    annotations = {}
    for each in fields(group):
        about = each.metadata["about"]
        check = None if about.least is None else number_within(about.least)
        option = Option(*about.flags, help=about.help, callback=check, rich_help_panel=MODEL)
        annotations[each.name] = Annotated[about.type, option]
    return annotations


def _of_group(group: Any) -> tuple[list[inspect.Parameter], Callable[[dict[str, Any]], Any]]:
    annotations = _annotations(group)
    parameters = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            # An option of a group may be one that has to be given.
            default=inspect.Parameter.empty if each.default is MISSING else each.default,
            annotation=annotations[each.name],
        )
        for each in fields(group)
    ]
    return parameters, lambda values: group(**values)


def _of_verb(verb: Verb) -> tuple[list[inspect.Parameter], Callable[[dict[str, Any]], Any]]:
    options = {option.name: option for option in options_of(verb.place) if option.name not in verb.without}
    for name in verb.required:
        options[name] = replace(options[name], default=inspect.Parameter.empty)
    helps = _helps(list(options.values()))
    parameters = [_parameter(option, helps[name], verb) for name, option in options.items()]
    typed_nothing = {parameter.name: parameter.default for parameter in parameters}

    def make(values: dict[str, Any]) -> Call:
        given = {name: value for name, value in values.items() if value != typed_nothing[name]}
        return Call(verb.place, {name: options[name].value(value) for name, value in given.items()})

    return parameters, make


def _helps(options: Sequence[VerbOption]) -> dict[str, str]:
    """Return the help of options: their lines as sentences, in which another parameter is called as it is typed.

    What begins with "In Python" is for Python alone, and of a flag "whether to" goes without saying.
    """
    typed = {option.name: max(option.names, key=len) for option in options if option.names}
    helps = {}
    for option in options:
        own, more = option.about(Help), option.about(More)
        text = own.text if own is not None else option.help if more is None else f"{option.help} {more.text}"
        text = re.sub(r" In Python.*?\.(?= |$)", "", text)
        text = re.sub(r"`(\w+)`", lambda word: typed.get(word[1], word[0]), text)
        if option.kind is bool:
            text = text.removeprefix("whether to ")
        is_repeatable = get_origin(option.kind) is list and not option.is_argument and not option.about(Commas)
        helps[option.name] = text[0].upper() + text[1:] + (" Repeatable." if is_repeatable else "")
    return helps


def _parameter(option: VerbOption, text: str, verb: Verb) -> inspect.Parameter:
    """Return an option as a parameter of a command, as Typer wants it, with this text as its help."""
    spelled, commas = option.about(Spelled), option.about(Commas)
    default = option.default
    if option.is_negated:
        default = False
    elif isinstance(default, tuple):
        default = None
    elif isinstance(default, str):
        default = Path(default) if option.kind is Path else default
    kind: Any = str if commas is not None else option.kind
    said = option.about(Panel)
    panel = (verb.panel if said is None else said.heading) or None
    declared: Any = {
        "help": text,
        "callback": _check(option),
        "metavar": spelled.metavar if spelled is not None else None,
        "rich_help_panel": None if option.is_argument else panel,
        "autocompletion": verb.completed.get(option.name),
    }
    told = Argument(**declared) if option.is_argument else Option(*option.names, **declared)
    typed: Any = kind | None if default is None else kind
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[typed, told]
    )


def _check(option: VerbOption) -> Callable[..., Any] | None:
    within, written = option.about(Within), option.about(Written)
    if within is None and {int, float} & {option.kind, *get_args(option.kind)}:
        within = Within()
    if within is not None and not option.about(Commas):
        return number_within(within.low, within.high)
    if written is not None:
        return _WRITABLE[written.what]
    return None
