"""Options that several commands share, in groups: a command names a group, and has its own options beside it.

def spectrum(subjects: Subjects, task: Task = None, output: Output = Output()) -> None: ...
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import CallbackParam, Option

from stsbench.base.errors import UserError
from stsbench.base.options import DEPENDENCE_HELP, LARGEST, OUTPUT
from stsbench.base.words import suggestion

FORMATS = ("table", "json", "csv", "markdown", "latex")
"""How a command can print; `table` is for the screen."""


def number_within(low: float = -LARGEST, high: float = LARGEST) -> Callable[[CallbackParam, Any], Any]:
    """Return the check of an option that takes a number, or several: finite, and neither below nor above.

    Where an option has no value there is nothing to check. It is an option's `callback`:

        tolerance: Annotated[float | None, Option(callback=number_within(0, 100), help="...")] = None

    Args:
        low: the smallest value that is accepted.
        high: the largest.
    """

    def check(param: CallbackParam, value: Any) -> Any:
        for number in value if isinstance(value, list | tuple) else [value]:
            # An integer of any size is finite, and need not fit a float.
            if number is None or ((isinstance(number, int) or isfinite(number)) and low <= number <= high):
                continue
            raise UserError(f"{option_name(param)} {number}: give a number from {low:,} to {high:,}.")
        return value

    return check


def option_name(param: CallbackParam) -> str:
    """Return what a person calls an option (`--seed`) or an argument (`RUNS`)."""
    longest = max(param.opts, key=len, default=param.name or "")
    return longest if longest.startswith("-") else (param.metavar or longest).upper().removesuffix("...")


def new_file(param: CallbackParam, path: Path | None) -> Path | None:
    """Check, as an option's `callback`, that the file it names can be written: before the work, not after."""
    if path is not None:
        from stsbench.base.files import require_new_file

        _require_named(param, path)
        require_new_file(path.expanduser(), option_name(param))
    return path


def _require_named(param: CallbackParam, path: Path) -> None:
    """Refuse an empty name (`--out "$UNSET"`), which as a path is the working folder, as `.` is."""
    if path == Path():
        given = list(pairwise([*sys.argv, "."]))
        if any(
            first == f"{name}=" or (first, second) == (name, "") for name in param.opts for first, second in given
        ):
            raise UserError(f"{option_name(param)} names nothing: is a variable unset? Give a path.")


def new_folder(param: CallbackParam, path: Path | None) -> Path | None:
    """Check, as an option's `callback`, that files can be written into the folder it names."""
    if path is not None:
        from stsbench.base.files import require_new_folder

        _require_named(param, path)
        require_new_folder(path.expanduser(), option_name(param))
    return path


INTERVALS = "Intervals"

IntervalName = Literal["dyadic", "components", "independent"]
"""`statistics.dependence.Dependence`, which would load NumPy for a page of help."""

INTERVAL_HELP = f"Which pairs depend on each other. {DEPENDENCE_HELP}"


@dataclass(frozen=True)
class IntervalChoice:
    """How intervals are computed."""

    interval: Annotated[
        IntervalName, Option("--interval", help=INTERVAL_HELP, metavar="METHOD", rich_help_panel=INTERVALS)
    ] = "dyadic"
    no_intervals: Annotated[
        bool, Option("--no-intervals", help="Compute no intervals.", rich_help_panel=INTERVALS)
    ] = False

    @property
    def dependence(self) -> IntervalName | None:
        """Which pairs depend on each other; None for no intervals."""
        return None if self.no_intervals else self.interval


@dataclass(frozen=True)
class Output:
    """How a command prints."""

    format: Annotated[
        str | None,
        Option(
            "--format",
            help="`table`, `json`, `csv` (both in full precision), `markdown` or `latex`.",
            rich_help_panel=OUTPUT,
        ),
    ] = None
    json: Annotated[bool, Option("--json", help="`--format json`.", rich_help_panel=OUTPUT)] = False
    csv: Annotated[bool, Option("--csv", help="`--format csv`.", rich_help_panel=OUTPUT)] = False
    markdown: Annotated[bool, Option("--markdown", help="`--format markdown`.", rich_help_panel=OUTPUT)] = False
    latex: Annotated[bool, Option("--latex", help="`--format latex`.", rich_help_panel=OUTPUT)] = False
    spreadsheet_safe: Annotated[
        bool,
        Option(
            "--spreadsheet-safe",
            help="CSV in which no spreadsheet finds a formula: an apostrophe before `=`, `+`, `-`, `@`.",
            rich_help_panel=OUTPUT,
        ),
    ] = False
    quiet: Annotated[
        bool, Option("--quiet", "-q", help="No progress, notes or signatures.", rich_help_panel=OUTPUT)
    ] = False

    @property
    def style(self) -> str:
        """The one format that was asked for, as `render` names it: `terminal` if none was.

        Raises:
            UserError: if several were, or there is no such format.
        """
        named = [f"--{name}" for name in FORMATS[1:] if getattr(self, name)]
        if self.format is not None:
            if self.format not in FORMATS:
                raise UserError(f"--format {self.format!r}: {suggestion(self.format, FORMATS)}")
            if [f"--{self.format}"] != named:
                named = [f"--format {self.format}", *named]
        if len(named) > 1:
            raise UserError(f"{named[0]} and {named[1]} cannot go together: choose one output format.")
        chosen = named[0].split()[-1].removeprefix("--") if named else "table"
        if self.spreadsheet_safe and chosen != "csv":
            raise UserError("--spreadsheet-safe is about CSV: add --csv, or leave it out.")
        return "terminal" if chosen == "table" else chosen
