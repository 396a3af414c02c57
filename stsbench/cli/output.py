"""How commands print: results on standard output in one format, notes, progress and mistakes on standard error."""

import errno
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING, Any

import typer

from stsbench.base.errors import UserError, sentence_on
from stsbench.cli.options import option_name
from stsbench.render import harmless, one_line

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

    from stsbench.cli.options import FigureChoice, Output
    from stsbench.render.table import Result, Table, Tables

_FIRST_SECONDS, _EVERY_SECONDS = 5.0, 60.0
"""Seconds until a stage's first line in a log, and between lines."""

UsageError: Any = typer.BadParameter.__mro__[1]
"""The parser's exception; its module differs between versions of Typer."""

_KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false"}
"""The expected value, by the start of pydantic's error types."""


class ReaderLeftError(Exception):
    """The reader of standard output closed the pipe (`| head`)."""


def print_table(table: "Table", output: "Output") -> None:
    """Prints a table: fitted to the terminal, or in full width into a file or pipe."""
    if output.style != "terminal" or sys.stdout is None or not sys.stdout.isatty():
        print_data(table.to(output.style))
        return
    from rich.console import Console

    from stsbench.render import formats

    console = Console(highlight=False)
    caption, headline = table.caption or None, str(table.headline) or None
    with console.capture() as captured:
        formats.print_table(table.frame, console, decimals=table.decimals, caption=caption, headline=headline)
    _write(captured.get())


def print_result(
    result: "Result", output: "Output", *, figure: "FigureChoice | None" = None, tables: "Tables | None" = None
) -> None:
    """Prints a result in the chosen format, and draws its figure if requested.

    Args:
        result: printed as tables, or in full as JSON or CSV.
        output: how to print.
        figure: where to draw; only for results with a `plot`.
        tables: the tables to print instead of `result.table()`.
    """
    if figure is not None and (drawn := figure.draw(result.plot)):  # type: ignore[attr-defined]
        print_notes(f"drawn in {drawn}", quiet=output.quiet)
    if output.style in {"json", "csv"}:
        print_data(result.to(output.style))
        return
    for number, table in enumerate(result.table() if tables is None else tables):
        if number:
            print_lines()
        print_table(table, output)
        print_notes(*table.notes, quiet=output.quiet)


def print_judgement(
    result: Any,
    output: "Output",
    *,
    figure: "FigureChoice | None" = None,
    tables: "Tables | None" = None,
    following: Sequence[object] = (),
) -> None:
    """Prints a judgement: legend, tables and remarks, then the answer and the words of the command to run next."""
    is_screen = output.style == "terminal"
    # A table for a paper is alone on standard output. JSON and CSV contain the answer.
    is_silent = output.quiet or output.style in {"json", "csv"}
    if result.legend:
        print_lines(*result.legend, "") if is_screen else print_notes(*result.legend, quiet=is_silent)
    print_result(result, output, figure=figure, tables=tables)
    print_notes(*result.remarks, quiet=output.quiet)
    answer = result.sentence.splitlines()
    print_lines("", *answer) if is_screen else print_notes(*answer, quiet=is_silent)
    if following:
        print_next(output, *following)


def print_next(output: "Output", *words: object) -> None:
    """Prints the words of the command to run next, unless the result is for a program."""
    is_silent = output.quiet or output.style in {"json", "csv"}
    print_notes(f"Next: stsbench {shlex.join(map(str, words))}", quiet=is_silent)


def print_lines(*lines: str) -> None:
    """Prints lines on standard output; an empty line if there are none."""
    _write("".join(f"{one_line(line)}\n" for line in lines or [""]))


def print_data(text: str) -> None:
    """Prints data for programs or files unchanged; on a terminal control codes are escaped."""
    text = text if text.endswith("\n") else f"{text}\n"
    if sys.stdout is not None and sys.stdout.isatty():
        text = "\n".join(map(harmless, text.replace("\r\n", "\n").split("\n")))
    _write(text)


def print_notes(*sentences: str, quiet: bool = False) -> None:
    """Prints sentences on standard error, one per line; work continues if they cannot be printed."""
    if not quiet and sentences:
        # AttributeError: a process without standard error has None in its place.
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.write("".join(f"{one_line(sentence)}\n" for sentence in sentences))
            sys.stderr.flush()


def print_errors(*sentences: str) -> None:
    """Prints errors on standard error, one per line."""
    print_notes(*(f"stsbench: {sentence}" for sentence in sentences))


def drop_output() -> None:
    """Discards unwritten output, so that Python does not try to write it again at exit."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write(text: str) -> None:
    if sys.stdout is None:
        raise unprintable(OSError(errno.EBADF, os.strerror(errno.EBADF)))
    # A terminal that cannot show a character gets its escape.
    text = text.encode(sys.stdout.encoding or "utf-8", "backslashreplace").decode(sys.stdout.encoding or "utf-8")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise ReaderLeftError from error
    except OSError as error:
        drop_output()
        raise unprintable(error) from error


def unprintable(error: OSError) -> UserError:
    """Returns the error for a standard output that cannot be written."""
    closed = error.errno == errno.EBADF
    reason = "standard output is closed" if closed else error.strerror or error
    return UserError(
        f"Cannot print ({reason}): {'open it' if closed else 'free some space'}, or redirect the output. Records "
        "and files that were written are kept."
    )


@dataclass
class _Stage:
    began: float
    done_before: int
    done: int
    due: float


class Lines:
    """Progress for logs: a line for a stage after five seconds, then one a minute."""

    def __init__(self) -> None:
        self._stages: dict[str, _Stage] = {}
        self._about: dict[str, str] = {}

    def describe(self, stage: str, about: str) -> None:
        """Sets the text in the next line of a stage."""
        self._about[stage] = f" ({about})" if about else ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Reports progress; see `stsbench.base.progress.Progress`."""
        now = monotonic()
        known = self._stages.get(stage)
        if known is None or done < known.done:
            self._stages[stage] = _Stage(now, done, done, now + _FIRST_SECONDS)
            return
        known.done = done
        if now < known.due or done == total:
            return
        known.due = now + _EVERY_SECONDS
        text = f"{done:,} of {total:,}" if total else f"{done:,}"
        if total and done > known.done_before:
            left = ceil((now - known.began) * (total - done) / (done - known.done_before))
            text = f"{100 * done // total} %, about {timedelta(seconds=left)} to go"
        print_notes(f"{stage}: {text}{self._about.get(stage, '')}")


class Bars:
    """Progress bars on standard error, one per stage; or lines in a log; or nothing.

    Args:
        shown: draws the bars on a terminal.
        log: writes lines if no bars are drawn.
    """

    def __init__(self, shown: "RichProgress | None" = None, log: Lines | None = None) -> None:
        self._shown = shown
        self._log = log
        self._stages: dict[str, Any] = {}

    @property
    def are_shown(self) -> bool:
        """Whether bars are drawn."""
        return self._shown is not None

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Reports progress; see `stsbench.base.progress.Progress`."""
        if self._shown is None:
            if self._log is not None:
                self._log(stage, done, total)
            return
        if stage not in self._stages:
            self._stages[stage] = self._shown.add_task(one_line(stage), total=total or None, about="")
        self._shown.update(self._stages[stage], completed=done, total=total or None)

    def describe(self, stage: str, about: str) -> None:
        """Sets the text next to the bar of a stage that has begun."""
        if self._log is not None:
            self._log.describe(stage, about)
        if self._shown is not None and stage in self._stages:
            self._shown.update(self._stages[stage], about=one_line(about))


@contextmanager
def progress_bars(*, quiet: bool = False) -> Iterator[Bars]:
    """Shows a bar per stage on a terminal; in a log, lines for long work."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield Bars(log=None if quiet else Lines())
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:>12}", markup=False),
        BarColumn(bar_width=24),
        # A stage counts tokens or steps, which its name does not say.
        TaskProgressColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[about]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        yield Bars(shown)


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
