"""How commands print: one format chosen by a flag, tables on standard output, everything else beside it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stsbench.base.progress import Progress, silent

if TYPE_CHECKING:
    import pandas as pd

    from stsbench.cli.options import Output
    from stsbench.render.result import Result
    from stsbench.render.table import Tables

QuietFlag = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress, notes or signatures.", rich_help_panel="Output")
]


def drawable(path: Path | None) -> Path | None:
    """Return the file of a figure.

    Raises:
        UserError: if its name's ending is unknown: better before the work than after.
    """
    if path is not None:
        from stsbench.render.figures import figure_kind

        figure_kind(path)
    return path


def print_frame(
    frame: "pd.DataFrame",
    style: str,
    *,
    headline: str | None = None,
    decimals: int = 2,
    caption: str | None = None,
) -> None:
    """Print a table, for readers with so many digits; into a file it is as wide as it needs to be."""
    from stsbench.render.formats import print_table
    from stsbench.render.table import render

    if style == "terminal" and sys.stdout.isatty():
        from rich.console import Console

        print_table(frame, Console(highlight=False), headline=headline, decimals=decimals, caption=caption)
    else:
        typer.echo(render(frame, style, decimals, caption))  # type: ignore[arg-type]


def print_result(
    result: "Result", output: "Output", *, figure: Path | None = None, tables: "Tables | None" = None
) -> None:
    """Print a result in the format that was asked for, and draw it if asked to.

    Args:
        result: for readers its tables are printed, for programs all of it.
        output: how to print.
        figure: the file for its picture: only for results that have one.
        tables: what readers see instead of `result.table()`: with more rows, say.

    Raises:
        UserError: if the figure cannot be written.
    """
    if figure is not None:
        from stsbench.render.figures import save_figure

        tell(f"drawn in {save_figure(result.plot(), figure)}", quiet=output.quiet)  # type: ignore[attr-defined]
    if output.style in {"json", "csv"}:
        typer.echo(result.to(output.style))  # type: ignore[arg-type]
        return
    for number, table in enumerate(result.table() if tables is None else tables):
        if number:
            typer.echo()
        print_frame(
            table.frame,
            output.style,
            headline=table.headline or None,
            decimals=table.decimals,
            caption=table.caption or None,
        )
        for note in table.notes:
            tell(note, quiet=output.quiet)


def tell(sentence: str, *, quiet: bool = False) -> None:
    """Print a sentence for the person on standard error, where it is in no program's way."""
    if not quiet:
        typer.echo(sentence, err=True)


@contextmanager
def progress_bars(*, quiet: bool = False) -> Iterator[Progress]:
    """Show a bar per stage on standard error, if a person is looking at it."""
    if quiet or not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description:>12}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        stages = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in stages:
                stages[stage] = bars.add_task(stage, total=total or None)
            bars.update(stages[stage], completed=done, total=total or None)

        yield show
