"""What was typed wrong, or as the version before had it, and what the system refuses: in one sentence each."""

import errno
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from stsbench.base.errors import UserError
from stsbench.base.words import closest, listed
from stsbench.cli.output import drop_output, unprintable
from stsbench.cli.verbs import option_name

UsageError: Any = typer.BadParameter.__mro__[1]
"""What the parser raises; where Typer keeps it differs between its versions."""

_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
}
"""How a value is described that an option takes, by how the parser's own complaints begin."""


def sentence_of(error: Exception) -> str:
    """Return a complaint of the parser, or the end of a question that nobody answered, as a sentence.

    It is empty where help was printed instead of a complaint.
    """
    if isinstance(error, typer.Abort):
        return "nothing was done, as the question was not answered with yes; --yes answers it."
    complaint: Any = error
    command, help_ = _place(complaint)
    match type(error).__name__:
        case "NoArgsIsHelpError":
            sentence = ""
        case "NoSuchOption":
            options = [
                name for parameter in _parameters(complaint) for name in parameter.opts if name.startswith("--")
            ]
            near = _meant(closest(complaint.option_name, options, cutoff=0.6))
            sentence = f"`{command}` has no option {complaint.option_name}: {near or help_}"
        case "MissingParameter":
            sentence = f"{_named(complaint) or 'something'} is missing: {help_}"
        case "BadParameter":
            sentence = _bad_value(complaint, help_)
        case "BadOptionUsage":
            needed = "needs a value" if "require" in complaint.message else "takes no value"
            sentence = f"{complaint.option_name} {needed}; {help_}"
        case _:
            sentence = _misplaced(complaint, command, help_)
    return sentence


def _misplaced(error: Any, command: str, help_: str) -> str:
    """Return what is wrong with a word that is neither an option nor an argument."""
    unknown = re.fullmatch(r"No such command ['\"](.*)['\"]\.(?: Did you mean .*)?", error.message, re.DOTALL)
    if unknown:
        near = closest(unknown[1], error.ctx.command.list_commands(error.ctx), cutoff=0.6)
        hint = _meant([f"`{command} {name}`" for name in near])
        return f"there is no command `{command} {unknown[1]}`: {hint or help_}"
    extra = re.fullmatch(r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)", error.message, re.DOTALL)
    if extra:
        return f"`{command}` has no use for {extra[1]}: {help_}"
    return f"`{command}`: {error.format_message().rstrip('.')}; {help_}"


def _place(error: Any) -> tuple[str, str]:
    """Return the command that the person wrote, and where its help is."""
    path = error.ctx.command_path if error.ctx is not None else ""
    if not path:
        return "stsbench", "`--help` behind the command tells what it takes."
    # Run as a module, it is called `python -m stsbench`.
    command = "stsbench" + path.partition("stsbench")[2]
    return command, f"`{command} --help` tells what it takes."


def _parameters(error: Any) -> list[Any]:
    return error.ctx.command.get_params(error.ctx) if error.ctx is not None else []


def _named(error: Any) -> str:
    if error.param is not None:
        return option_name(error.param)
    return str(error.param_hint or "")


def _meant(names: list[str]) -> str:
    return f"did you mean {listed(names)}?" if names else ""


def _bad_value(error: Any, help_: str) -> str:
    """Return what is wrong with a value: newer versions of the parser have it in the exception's cause."""
    name = _named(error)
    reasons: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
    if not reasons:
        return f"{name}: {error.message.rstrip('.')}; {help_}"
    first = reasons[0]
    value = first.get("input")
    kind = next((kind for start, kind in _KINDS.items() if first["type"].startswith(start)), None)
    if kind is None:
        return f"{name} {value!r}: {first['msg'][0].lower()}{first['msg'][1:].rstrip('.')}; {help_}"
    size = " of fewer digits" if first["type"].endswith("_size") else ""
    return f"{name} {value!r}: give {kind}{size}."


_PLAN, _BEST_OF = "--plan", "--best-of"


def current(arguments: Sequence[str]) -> list[str]:
    """Return a command line as this version has it; one that is not old as it is.

    >>> current(["compare", "a", "b", "--plan", "--difference", "1"])
    ['plan', 'a', 'b', '--difference', '1']
    >>> current(["compare", "--a", "x", "y", "--best-of=76.25"])
    ['best-of', 'x', 'y', '--number', '76.25']
    >>> current(["compare", "--best-of", "esimcse-bert-base", "--json"])
    ['best-of', 'esimcse-bert-base', '--json']
    """
    rest = [part for argument in arguments for part in _apart(argument)]
    if rest[:1] != ["compare"] or not {_PLAN, _BEST_OF} & set(rest):
        return list(arguments)
    del rest[0]
    if _PLAN in rest:
        return ["plan", *(argument for argument in rest if argument != _PLAN)]
    has_runs = "--a" in rest
    rest = [argument for argument in rest if argument != "--a"]
    place = rest.index(_BEST_OF)
    rest[place : place + 1] = ["--number"] if has_runs else []
    return ["best-of", *rest]


def _apart(argument: str) -> list[str]:
    """Return `--best-of=SCORE` as two arguments."""
    option, equals, value = argument.partition("=")
    return [option, value] if equals and option == _BEST_OF else [argument]


def is_homeless(error: Exception) -> bool:
    """Return whether `Path.expanduser` gave up."""
    return type(error) is RuntimeError and "home directory" in str(error)


def refused(error: OSError) -> UserError:
    """Return what to say where the system refused something and nobody nearer to it said what."""
    if error.filename is None and error.errno in {errno.EBADF, errno.ENOSPC, errno.EIO}:
        drop_output()
        return unprintable(error)
    if isinstance(error, FileNotFoundError) and error.filename is None and not _has_working_folder():
        return UserError("the working folder was deleted: change to one that is there.")
    where = f" {error.filename}" if isinstance(error.filename, str) else ""
    return UserError(
        f"cannot use{where} ({error.strerror or error}): check the path, its permissions and the disk."
    )


def _has_working_folder() -> bool:
    try:
        Path.cwd()
    except OSError:
        return False
    return True
