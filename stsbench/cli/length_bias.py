"""`stsbench length-bias`."""

from functools import partial
from typing import Annotated

import typer

from stsbench.cli.analysis import (
    FigureFile,
    Models,
    Pooling,
    Resamples,
    Runs,
    Seed,
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
from stsbench.foundation.errors import UserError


def length_bias(
    runs: Runs = None,
    model: Models = None,
    pooling: Pooling = "auto",
    device: Device = "auto",
    tasks: Annotated[
        str | None,
        typer.Option(
            "--tasks", "-t", help="Tasks, with commas. Default: all that a run has; the seven for --model."
        ),
    ] = None,
    length: Annotated[str, typer.Option(help="`words` (as released), `subwords` or `characters`.")] = "words",
    threshold: Annotated[
        int | None, typer.Option(help="Largest length difference that counts as short. Default: 3; 15 characters.")
    ] = None,
    bins: Annotated[
        str | None, typer.Option(help="Where the bins of the curve begin, such as `0,1,2,4,8`.")
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="Put the papers' rows (ESimCSE) beside them.")
    ] = False,
    resamples: Resamples = 1000,
    seed: Seed = 12345,
    data_dir: DataDirs = None,
    figure: FigureFile = None,
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Ask whether a model finds sentences more alike because they are of like length.

    Spearman and mean similarity difference in the groups of short and long length difference, per task; one slope;
    the partial Spearman; on the sample the contrast of its designed pairs. The figure is the curve of the error.

    Examples:
    * `stsbench length-bias runs/minilm-avg-sts --published`
    * `stsbench length-bias runs/a runs/b --length subwords --threshold 5 --figure bias.pdf`
    * `stsbench length-bias --model minilm --tasks sample --json`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.workflows import length_bias as workflow

    with progress_bars(quiet=quiet) as progress:
        frame = workflow.length_bias(
            wanted(runs, model),
            tasks=[name for name in (tasks or "").split(",") if name.strip()],
            length=length,
            threshold=threshold,
            bins=_starts(bins),
            published=published,
            bootstrap=workflow.Bootstrap(resamples=resamples, seed=seed),
            data_dirs=data_dir or (),
            progress=progress,
            pooling=pooling,
            device=device,
        )
    tell_of_sample(frame, tasks or runs, quiet=quiet)
    draw = partial(workflow.figure, frame)
    print_analysis(frame, workflow.views(frame), style, draw=draw, figure=figure, quiet=quiet)


def _starts(bins: str | None) -> list[int]:
    try:
        return [int(start) for start in bins.split(",")] if bins else []
    except ValueError as error:
        raise UserError(f"--bins {bins}: give where each bin begins, such as 0,1,2,4,8.") from error
