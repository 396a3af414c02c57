"""Commands are made from verbs: a verb's parameters are the options, its `Args` their help.

A command names its verb, and has beside it only what the verb has no use for:

    def check(asked: Annotated[Call, Verb("stsbench.judging.check:check")], output: Output = Output()) -> None:
        result = asked()
"""

import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from importlib import import_module
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from typer import Argument, CallbackParam, Option

from stsbench.base.errors import UserError
from stsbench.base.options import MODEL, Commas, Help, More, Panel, Spelled, Within, Written
from stsbench.cli.declared import DeclaredOption, options_of, own_option


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
    with the dataclass, or the call. A parameter whose annotation has a `Help` is an option of the command's own.
    As it was written the command stays its attribute `as_written`.
    """
    hints = get_type_hints(command, include_extras=True)
    makers: dict[str, tuple[list[str], Callable[[dict[str, Any]], Any]]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        if get_origin(hint) is Annotated and get_args(hint)[0] is Call:
            members, make = _of_verb(get_args(hint)[1])
        elif is_dataclass(hint):
            members, make = _of_group(hint)
        else:
            parameters.append(_own_parameter(parameter.name, hint, parameter.default))
            continue
        parameters += members
        makers[parameter.name] = ([each.name for each in members], make)

    def called(**values: Any) -> None:
        for name, (members, make) in makers.items():
            values[name] = make({each: values.pop(each) for each in members})
        command(**values)

    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.as_written = getattr(command, "as_written", command)  # type: ignore[attr-defined]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


def _own_parameter(name: str, hint: Any, default: Any) -> inspect.Parameter:
    """Return a command's parameter, or a group's field, as Typer wants it; what has no `Help` as it is."""
    option = own_option(name, hint, default)
    if option is None:
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
    return _parameter(option, _sentences(option))


def _of_group(group: Any) -> tuple[list[inspect.Parameter], Callable[[dict[str, Any]], Any]]:
    hints = _hints(group)
    parameters = [
        # An option of a group may be one that has to be given.
        _own_parameter(
            each.name, hints[each.name], inspect.Parameter.empty if each.default is MISSING else each.default
        )
        for each in fields(group)
    ]
    return parameters, lambda values: group(**values)


def _hints(group: Any) -> dict[str, Any]:
    """Return the annotation of each field of a group; of a `Use`, what the field says of itself."""
    abouts = {each.name: each.metadata["about"] for each in fields(group) if "about" in each.metadata}
    if not abouts:
        return get_type_hints(group, include_extras=True)
    hints: dict[str, Any] = {}
    for name, about in abouts.items():
        kind: Any = about.type
        hint = Annotated[kind, Panel(MODEL), Help(about.help)]
        hints[name] = hint if about.least is None else Annotated[hint, Within(about.least)]
    return hints


def _of_verb(verb: Verb) -> tuple[list[inspect.Parameter], Callable[[dict[str, Any]], Any]]:
    options = {option.name: option for option in options_of(verb.place) if option.name not in verb.without}
    for name in verb.required:
        options[name] = replace(options[name], default=inspect.Parameter.empty)
    helps = _helps(list(options.values()))
    parameters = [
        _parameter(option, helps[name], panel=verb.panel, completed=verb.completed.get(name))
        for name, option in options.items()
    ]
    typed_nothing = {parameter.name: parameter.default for parameter in parameters}

    def make(values: dict[str, Any]) -> Call:
        typed = {name: value for name, value in values.items() if value != typed_nothing[name]}
        return Call(verb.place, {name: options[name].value(value) for name, value in typed.items()})

    return parameters, make


def _sentences(option: DeclaredOption) -> str:
    instead, more = option.about(Help), option.about(More)
    text = option.line if instead is None else instead.text
    return text if more is None else f"{text} {more.text}"


def _helps(options: Sequence[DeclaredOption]) -> dict[str, str]:
    """Return the help of options: their lines as sentences, in which another parameter is called as it is typed.

    What begins with "In Python" is for Python alone, and of a flag "whether to" goes without saying.
    """
    typed = {option.name: max(option.names, key=len) for option in options if option.names}
    helps = {}
    for option in options:
        text = re.sub(r" In Python.*?\.(?= |$)", "", _sentences(option))
        text = re.sub(r"`(\w+)`", lambda word: typed.get(word[1], word[0]), text)
        if option.kind is bool:
            text = text.removeprefix("whether to ")
        is_repeatable = get_origin(option.kind) is list and not option.is_argument and not option.about(Commas)
        helps[option.name] = text[0].upper() + text[1:] + (" Repeatable." if is_repeatable else "")
    return helps


def _parameter(
    option: DeclaredOption,
    text: str,
    *,
    panel: str | None = None,
    completed: Callable[[str], list[str]] | None = None,
) -> inspect.Parameter:
    """Return an option as a parameter of a command, as Typer wants it.

    Args:
        option: what is declared of it.
        text: its help.
        panel: its heading, where the option says no other.
        completed: what completes it in a shell.
    """
    spelled, commas, heading = option.about(Spelled), option.about(Commas), option.about(Panel)
    default = option.default
    if option.is_negated:
        default = False
    elif isinstance(default, tuple):
        default = None
    elif isinstance(default, str):
        default = Path(default) if option.kind is Path else default
    kind: Any = str if commas is not None else option.kind
    declared: Any = {
        "help": text,
        "callback": _check(option),
        "metavar": spelled.metavar if spelled is not None else None,
        "rich_help_panel": None if option.is_argument else (panel if heading is None else heading.heading) or None,
        "autocompletion": completed,
    }
    info = Argument(**declared) if option.is_argument else Option(*option.names, **declared)
    typed: Any = kind | None if default is None else kind
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[typed, info]
    )


Check = Callable[[CallbackParam, Any], Any]
"""Of what was typed, before the work: Typer's `callback`."""


def _check(option: DeclaredOption) -> Check | None:
    within, written = option.about(Within), option.about(Written)
    if within is None and {int, float} & {option.kind, *get_args(option.kind)}:
        within = Within()
    if within is not None and not option.about(Commas):
        return _number_within(within)
    return None if written is None or written.what == "told later" else _writable(written.what)


def _number_within(within: Within) -> Check:
    """Return the check of a number, or several: finite, and neither below nor above."""

    def check(param: CallbackParam, value: Any) -> Any:
        for number in value if isinstance(value, list | tuple) else [value]:
            # An integer of any size is finite, and need not fit a float.
            is_finite = number is None or isinstance(number, int) or isfinite(number)
            if not is_finite or (number is not None and not within.low <= number <= within.high):
                limits = f"{within.low:,} to {within.high:,}"
                raise UserError(f"{option_name(param)} {number}: give a number from {limits}.")
        return value

    return check


def option_name(param: CallbackParam) -> str:
    """Return what a person calls an option (`--seed`) or an argument (`RUNS`)."""
    longest = max(param.opts, key=len, default=param.name or "")
    return longest if longest.startswith("-") else (param.metavar or longest).upper().removesuffix("...")


def _require_named(param: CallbackParam, path: Path) -> None:
    """Refuse an empty name (`--out "$UNSET"`), which as a path is the working folder, as `.` is."""
    if path == Path():
        typed = list(pairwise([*sys.argv, "."]))
        if any(
            first == f"{name}=" or (first, second) == (name, "") for name in param.opts for first, second in typed
        ):
            raise UserError(f"{option_name(param)} names nothing: is a variable unset? Give a path.")


def _writable(what: str) -> Check:
    """Return the check of a file, a folder or a figure that is written."""

    def check(param: CallbackParam, path: Path | None) -> Path | None:
        if path is not None:
            from stsbench.base.files import require_new_file, require_new_folder

            _require_named(param, path)
            if what == "figure":
                from stsbench.render.figures import figure_kind

                figure_kind(path)
            require = require_new_folder if what == "folder" else require_new_file
            require(path.expanduser(), option_name(param))
        return path

    return check
