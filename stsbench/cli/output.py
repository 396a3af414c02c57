"""How commands print: one format chosen by a flag, tables on standard output, everything else beside it.

Nothing else in the package prints. Names, files and exceptions may hold anything: what is said to a person is one
line each, and nothing in it drives a terminal.
"""

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

from stsbench.base.errors import UserError
from stsbench.base.words import duration
from stsbench.render.cells import harmless, one_line

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

    from stsbench.cli.options import FigureChoice, Output
    from stsbench.render.result import Result
    from stsbench.render.table import Table, Tables


class ReaderLeftError(Exception):
    """Whoever read our output went away (`| head`)."""


def print_table(table: "Table", output: "Output") -> None:
    """Print a table; on a screen it is folded into it, in a file as wide as it needs to be."""
    if output.style == "terminal" and sys.stdout is not None and sys.stdout.isatty():
        from rich.console import Console

        from stsbench.render import formats

        console = Console(highlight=False)
        caption, headline = table.caption or None, str(table.headline) or None
        with console.capture() as captured:
            formats.print_table(
                table.content, console, decimals=table.decimals, caption=caption, headline=headline
            )
        _write(captured.get())
        return
    _print_in_full(table.to(output.style), output)


def print_result(
    result: "Result", output: "Output", *, figure: "FigureChoice | None" = None, tables: "Tables | None" = None
) -> None:
    """Print a result in the format that was asked for, and draw it if asked to.

    Args:
        result: for readers its tables are printed, for programs all of it.
        output: how to print.
        figure: where its picture is drawn: only for results that have one.
        tables: what readers see instead of `result.table()`: with more rows, say.
    """
    if figure is not None and (drawn := figure.draw(result.plot)):  # type: ignore[attr-defined]
        tell(f"drawn in {drawn}", quiet=output.quiet)
    if output.style in {"json", "csv"}:
        _print_in_full(result.to(output.style), output)
        return
    for number, table in enumerate(result.table() if tables is None else tables):
        if number:
            say()
        print_table(table, output)
        tell(*table.notes, quiet=output.quiet)


def _print_in_full(text: str, output: "Output") -> None:
    from stsbench.render.formats import defused

    print_data(defused(text) if output.style == "csv" and output.spreadsheet_safe else text)


def say(*lines: str) -> None:
    """Print lines for the person on standard output, an empty one for none.

    Raises:
        ReaderLeftError: if nobody reads any more.
        UserError: if they cannot be written.
    """
    _write("".join(f"{one_line(line)}\n" for line in lines or [""]))


def print_data(text: str) -> None:
    """Print what was made for programs or for a file on standard output, as it is, with a line break at its end.

    On a terminal, what would drive it is written out: CSV holds text as it stands in the data.

    Raises:
        ReaderLeftError: if nobody reads any more.
        UserError: if it cannot be written.
    """
    text = text if text.endswith("\n") else f"{text}\n"
    if sys.stdout is not None and sys.stdout.isatty():
        text = "\n".join(map(harmless, text.replace("\r\n", "\n").split("\n")))
    _write(text)


def tell(*sentences: str, quiet: bool = False) -> None:
    """Print sentences for the person on standard error, a line each, where they are in no program's way.

    Where nobody can read them, nothing else is lost: work goes on.
    """
    if not quiet and sentences:
        # AttributeError: a process without standard error has None in its place.
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.write("".join(f"{one_line(sentence)}\n" for sentence in sentences))
            sys.stderr.flush()


def tell_mistake(*sentences: str) -> None:
    """Print what went wrong on standard error, a line each."""
    # On a screen the line may hold a ^C already: it is written over.
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write("\r" if sys.stderr.isatty() else "")
    tell(*(f"stsbench: {sentence}" for sentence in sentences))


def write_any_character() -> None:
    """Let standard output write the number of a character that a terminal cannot show, and not fail at it."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def drop_output() -> None:
    """Let go of what standard output could not take: else Python tries again on its way out, and complains."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write(text: str) -> None:
    if sys.stdout is None:
        raise unprintable(OSError(errno.EBADF, os.strerror(errno.EBADF)))
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise ReaderLeftError from error
    except OSError as error:
        drop_output()
        raise unprintable(error) from error


def unprintable(error: OSError) -> UserError:
    """Return what to say where standard output takes nothing."""
    closed = error.errno == errno.EBADF
    reason = "standard output is closed" if closed else error.strerror or error
    return UserError(
        f"cannot print ({reason}): {'open it' if closed else 'free some space'}, or print elsewhere. What was "
        "recorded or written into files stays."
    )


_FIRST_SECONDS, _EVERY_SECONDS = 5.0, 60.0
"""After how long a stage gets its first line in a log, and how long it then waits for the next."""


@dataclass
class _Stage:
    """What a log was told of a stage.

    Attributes:
        began: when it was first heard of, having done so much.
        due: when the next line is due.
        done: how much was done when it was last heard of.
    """

    began: tuple[float, int]
    due: float
    done: int


class Lines:
    """A line for a stage that has taken five seconds, then one a minute: for logs, into which no bar fits.

    Short work says nothing.
    """

    def __init__(self) -> None:
        self._stages: dict[str, _Stage] = {}
        self._about: dict[str, str] = {}

    def describe(self, stage: str, about: str) -> None:
        """Keep what stands in the next line of a stage."""
        self._about[stage] = about

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Say how far a stage is, as `stsbench.base.progress.Progress` says, and how long it will take."""
        now = monotonic()
        known = self._stages.get(stage)
        if known is None or done < known.done:
            self._stages[stage] = _Stage((now, done), now + _FIRST_SECONDS, done)
            return
        known.done = done
        if now < known.due or done == total:
            return
        known.due = now + _EVERY_SECONDS
        since, before = known.began
        about = f" ({self._about[stage]})" if self._about.get(stage) else ""
        if not total:
            tell(f"{stage}: {done:,}{about}")
        elif done > before:
            left = (now - since) * (total - done) / (done - before)
            tell(f"{stage}: {100 * done // total} %, {duration(left)} to go{about}")
        else:  # the first part takes long, so nothing is known of the rest
            tell(f"{stage}: {done:,} of {total:,}{about}")


class Bars:
    """A bar for each stage of the work, on standard error; lines instead where it is a log; or nothing at all.

    Args:
        shown: what draws the bars.
        log: what writes lines where no bars are drawn.
    """

    def __init__(self, shown: "RichProgress | None" = None, log: Lines | None = None) -> None:
        self._shown = shown
        self._log = log
        self._stages: dict[str, Any] = {}

    @property
    def are_shown(self) -> bool:
        """Whether a person sees them."""
        return self._shown is not None

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show how far a stage is, as `stsbench.base.progress.Progress` says."""
        if self._shown is None:
            if self._log is not None:
                self._log(stage, done, total)
            return
        if stage not in self._stages:
            self._stages[stage] = self._shown.add_task(one_line(stage), total=total or None, about="")
        self._shown.update(self._stages[stage], completed=done, total=total or None)

    def describe(self, stage: str, about: str) -> None:
        """Say something behind the bar of a stage that has begun, or in its next line."""
        if self._log is not None:
            self._log.describe(stage, about)
        if self._shown is not None and stage in self._stages:
            self._shown.update(self._stages[stage], about=one_line(about))

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Take the bars off the screen while something is printed."""
        if self._shown is not None:
            self._shown.stop()
        yield
        if self._shown is not None:
            self._shown.start()


@contextmanager
def progress_bars(*, quiet: bool = False) -> Iterator[Bars]:
    """Show a bar per stage on standard error, if a person is looking; if it is a log, lines for long work."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield Bars(log=None if quiet else Lines())
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:>12}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[about]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        yield Bars(shown)
