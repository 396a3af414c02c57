"""`stsbench density`."""

from functools import partial
from typing import Annotated

import typer

from stsbench.cli.analysis import (
    FigureFile,
    Models,
    Pooling,
    Runs,
    Task,
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


def density(
    runs: Runs = None,
    model: Models = None,
    pooling: Pooling = "auto",
    device: Device = "auto",
    task: Task = None,
    buckets: Annotated[int, typer.Option(help="Equal buckets of the scale of gold scores.")] = 5,
    data_dir: DataDirs = None,
    figure: FigureFile = None,
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Estimate the density of the cosines in each bucket of gold scores, on STS-B.

    Examples:
    * `stsbench density runs/a runs/b --figure density.png`
    * `stsbench density runs/a --task STS16 --buckets 3 --markdown`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.workflows import density as workflow

    with progress_bars(quiet=quiet) as progress:
        frame = workflow.density(
            wanted(runs, model),
            task=task,
            buckets=buckets,
            data_dirs=data_dir or (),
            progress=progress,
            pooling=pooling,
            device=device,
        )
    tell_of_sample(frame, task or runs, quiet=quiet)
    draw = partial(workflow.figure, frame)
    print_analysis(frame, workflow.views(frame), style, draw=draw, figure=figure, quiet=quiet)
