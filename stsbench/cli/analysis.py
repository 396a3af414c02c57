"""What the commands that explain a model share: what is analysed, and how tables and figures come out."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stsbench.cli.output import drawable, print_frame, tell

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from stsbench.analysis.views import View

_SUBJECTS, _DATA, _OUTPUT = "What is analysed", "Data", "Output"


Runs = Annotated[
    list[str] | None,
    typer.Argument(help="Run folders. Their models' vectors come from the cache.", show_default=False),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        "-m",
        help="A model as in `stsbench run`, without a run. Repeatable. Default, with no run either: `minilm`.",
        rich_help_panel=_SUBJECTS,
    ),
]
Pooling = Annotated[str, typer.Option(help="Pooling of --model, as in `stsbench run`.", rich_help_panel=_SUBJECTS)]
Task = Annotated[
    str | None,
    typer.Option(
        help="Whose sentences. Default: `STS-B`, or the sample where its data is not here.", rich_help_panel=_DATA
    ),
]
Split = Annotated[str | None, typer.Option(help="Default: all that the task has.", rich_help_panel=_DATA)]
Text = Annotated[str, typer.Option(help="`senteval` or `raw` text.", rich_help_panel=_DATA)]
FigureFile = Annotated[
    Path | None,
    typer.Option(
        "--figure", help="Draw it, into a .png, .svg or .pdf file.", callback=drawable, rich_help_panel=_OUTPUT
    ),
]
Resamples = Annotated[int, typer.Option(min=0, help="Bootstrap resamples of the intervals; 0 for none.")]
Seed = Annotated[int, typer.Option(help="Seed of the bootstrap.")]


def wanted(runs: Sequence[str] | None, models: Sequence[str] | None) -> list[str]:
    """Return what was named, runs first.

    Raises:
        UserError: if a run is none.
    """
    from stsbench.workflows.subjects import runs_and_models

    return runs_and_models(runs or (), models or ())


def print_analysis(
    frame: "pd.DataFrame",
    views: "Sequence[View]",
    style: str,
    *,
    draw: "Callable[[], Figure]",
    figure: Path | None,
    quiet: bool,
) -> None:
    """Print an analysis: for readers its views, for programs the tidy table; and draw it if asked to.

    Raises:
        UserError: if the figure cannot be written.
    """
    if figure is not None:
        from stsbench.render.figures import save_figure

        tell(f"drawn in {save_figure(draw(), figure)}", quiet=quiet)
    if style in {"json", "csv"}:
        print_frame(frame, style)
    else:
        print_views(views, style)


def print_views(views: "Sequence[View]", style: str) -> None:
    """Print tables for readers, each with its caption."""
    for number, view in enumerate(views):
        if number:
            typer.echo()
        print_frame(view.table, style, decimals=view.decimals, caption=view.caption)


def tell_of_sample(frame: "pd.DataFrame", task: Any, *, quiet: bool) -> None:
    """Say that what was looked at is the sample, where nobody asked for it."""
    if task is None and "task" in frame and (frame["task"] == "sample").any():
        from stsbench.workflows.analysed_data import SAMPLE_USED

        tell(SAMPLE_USED, quiet=quiet)
