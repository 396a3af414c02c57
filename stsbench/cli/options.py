"""Options that several commands share beside those of their verbs: flags, and groups of them.

def spectrum(subjects: Subjects, task: Task = None, output: Output = Output()) -> None: ...
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

from stsbench.base.errors import UserError
from stsbench.base.options import OUTPUT, Help, Panel, Spelled, Written
from stsbench.base.words import suggestion

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from stsbench.render.table import Style

FORMATS = ("table", "json", "csv", "markdown", "latex")
"""How a command can print; `table` is for the screen."""

INTERVALS = "Intervals"
"""The heading of options that say how intervals are computed."""

IntervalName = Literal["dyadic", "components", "independent"]
"""`statistics.dependence.Dependence`, which would load NumPy for a page of help."""

FigureWidth = Literal["column", "page"]
"""`render.figures.FigureSize`."""

_Flag = Annotated[bool, Panel(OUTPUT)]

QuietFlag = Annotated[_Flag, Spelled("--quiet", "-q"), Help("Print no progress, notes or signatures.")]
SubsetsFlag = Annotated[_Flag, Help("Print every subset, too.")]


@dataclass(frozen=True)
class FigureChoice:
    """Where a command draws its figure, and how wide."""

    figure: Annotated[
        Path | None, Written("figure"), Panel(OUTPUT), Help("Draw the figure into this .png, .svg or .pdf file.")
    ] = None
    figure_size: Annotated[
        FigureWidth,
        Panel(OUTPUT),
        Help(
            "How wide the figure is: `column`, of a two-column paper (3.3 inches), or `page`, of a paper with one "
            "column or a page on the screen (5 inches)."
        ),
    ] = "column"

    def __post_init__(self) -> None:
        """Refuse a size of no figure."""
        if self.figure is None and self.figure_size != "column":
            raise UserError("--figure-size says how wide the figure is: add --figure.")

    def draw(self, plot: "Callable[[], Figure]") -> Path | None:
        """Draw what a function plots into the file, if one was asked for; return the file."""
        if self.figure is None:
            return None
        from stsbench.render.figures import look, save_figure

        with look(self.figure_size):
            return save_figure(plot(), self.figure)


@dataclass(frozen=True)
class IntervalChoice:
    """How intervals are computed."""

    interval: Annotated[IntervalName, Panel(INTERVALS), Help("Which pairs depend on each other.")] = "dyadic"
    no_intervals: Annotated[bool, Panel(INTERVALS), Help("Compute no intervals.")] = False

    @property
    def dependence(self) -> IntervalName | None:
        """Which pairs depend on each other; None for no intervals."""
        return None if self.no_intervals else self.interval


@dataclass(frozen=True)
class Output:
    """How a command prints."""

    format: Annotated[
        str | None,
        Panel(OUTPUT),
        Help("How to print: as `table`, `json`, `csv` (both in full precision), `markdown` or `latex`."),
    ] = None
    json: Annotated[_Flag, Help("The same as `--format json`.")] = False
    csv: Annotated[_Flag, Help("The same as `--format csv`.")] = False
    markdown: Annotated[_Flag, Help("The same as `--format markdown`.")] = False
    latex: Annotated[_Flag, Help("The same as `--format latex`.")] = False
    spreadsheet_safe: Annotated[
        _Flag, Help("Write CSV in which no spreadsheet finds a formula: an apostrophe before `=`, `+`, `-`, `@`.")
    ] = False
    quiet: QuietFlag = False

    def __post_init__(self) -> None:
        """Refuse two formats before any work is done."""
        _ = self.style

    @property
    def style(self) -> "Style":
        """The one format that was asked for, as `render` names it: `terminal` if none was."""
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
        return "terminal" if chosen == "table" else cast("Style", chosen)
