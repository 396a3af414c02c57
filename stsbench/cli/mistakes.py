"""What to print for a user's mistake: one sentence with the problem, the place and the remedy."""

import errno
from typing import Any

import typer

from stsbench.base.errors import UserError, sentence_on
from stsbench.cli.options import option_name
from stsbench.cli.output import drop_output, unprintable

UsageError: Any = typer.BadParameter.__mro__[1]
"""The parser's exception; its module differs between versions of Typer."""

_KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false"}
"""The expected value, by the start of pydantic's error types."""


def sentences_of(error: BaseException) -> tuple[str, ...] | None:
    """Returns the sentences to print for an exception; None for a bug of ours.

    Empty where help was printed instead.
    """
    match error:
        case UserError():
            return error.sentences
        case typer.Abort():
            sentence = "Nothing was done, because the question was not answered with yes (--yes answers it)."
        case UsageError():
            sentence = _parser_sentence(error)
            return (sentence,) if sentence else ()
        case MemoryError():
            sentence = "Not enough memory: reduce the amount of data, or use a larger machine."
        case OSError():
            return _system_error(error).sentences
        case RuntimeError() if "home directory" in str(error):
            sentence = "A path begins with `~` and the name of an unknown user: write the full path."
        case _:
            sentence = sentence_on(error)
    return (sentence,) if sentence else None


def _system_error(error: OSError) -> UserError:
    if error.filename is None and error.errno in {errno.EBADF, errno.ENOSPC, errno.EIO}:
        drop_output()
        return unprintable(error)
    where = f" {error.filename}" if isinstance(error.filename, str) else ""
    return UserError(
        f"Cannot use{where} ({error.strerror or error}): check the path, its permissions and the disk."
    )


def _parser_sentence(complaint: Any) -> str:
    path = complaint.ctx.command_path if complaint.ctx is not None else ""
    # `python -m stsbench` has another command path.
    command = "stsbench" + path.partition("stsbench")[2]
    help_ = f"see `{command} --help`."
    match type(complaint).__name__:
        case "NoArgsIsHelpError":
            return ""
        case "MissingParameter":
            return f"{_name(complaint) or 'An argument'} is missing: {help_}"
        case "BadParameter":
            return _bad_value(complaint, help_)
        case _:
            return f"{complaint.format_message().rstrip('.?')}: {help_}"


def _name(error: Any) -> str:
    return option_name(error.param) if error.param is not None else str(error.param_hint or "")


def _bad_value(error: Any, help_: str) -> str:
    name = _name(error)
    # Newer versions of Typer validate with pydantic, whose errors are the exception's cause.
    reasons: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
    if not reasons:
        return f"{name}: {error.message.rstrip('.')}; {help_}"
    first = reasons[0]
    value = first.get("input")
    kind = next((kind for start, kind in _KINDS.items() if first["type"].startswith(start)), None)
    if kind is not None:
        return f"{name} {value!r}: expected {kind}{' of fewer digits' if first['type'].endswith('_size') else ''}."
    message = first["msg"].rstrip(".")
    return f"{name} {value!r}: {message[0].lower()}{message[1:]}; {help_}"
