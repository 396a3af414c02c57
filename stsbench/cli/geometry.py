"""`stsbench geometry`."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from stsbench.cli.analysis import (
    FigureFile,
    Models,
    Pooling,
    Runs,
    Split,
    Task,
    Text,
    print_analysis,
    tell_of_sample,
    wanted,
)
from stsbench.cli.models import DataDirs, Device
from stsbench.cli.output import (
    CsvFlag,
    JsonFlag,
    LatexFlag,
    MarkdownFlag,
    QuietFlag,
    chosen_style,
    progress_bars,
)


def geometry(
    runs: Runs = None,
    model: Models = None,
    path: Annotated[
        Path | None,
        typer.Option("--path", help="A training run, or a folder of its checkpoints: draw their path, in order."),
    ] = None,
    pooling: Pooling = "auto",
    device: Device = "auto",
    task: Task = None,
    split: Split = None,
    text: Text = "senteval",
    positive: Annotated[float, typer.Option(help="Pairs with a gold score above are positive pairs.")] = 4.0,
    distinct: Annotated[
        bool, typer.Option("--distinct", help="Count a sentence once, however often it occurs.")
    ] = False,
    data_dir: DataDirs = None,
    figure: FigureFile = None,
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Measure alignment, uniformity and the mean cosine of random pairs on the sentences of STS-B.

    The figure is the plane of uniformity and alignment, with each run's STS score in brackets.

    Examples:
    * `stsbench geometry runs/a runs/b --figure plane.png`
    * `stsbench geometry --model minilm --task sample --json`
    * `stsbench geometry --path runs/my-training --figure path.svg`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.workflows import geometry as workflow

    along = workflow.checkpoints_in(path) if path else []
    with progress_bars(quiet=quiet) as progress:
        frame = workflow.geometry(
            [*wanted(runs, model), *along],
            task=task,
            split=split,
            text=text,
            positive=positive,
            distinct=distinct,
            data_dirs=data_dir or (),
            progress=progress,
            pooling=pooling,
            device=device,
        )
    tell_of_sample(frame, task, quiet=quiet)
    draw = partial(workflow.figure, frame, path=len(along))
    print_analysis(frame, workflow.views(frame), style, draw=draw, figure=figure, quiet=quiet)
