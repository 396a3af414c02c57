"""`stsbench repetition-bias`."""

from functools import partial
from typing import Annotated

import typer

from stsbench.cli.analysis import (
    FigureFile,
    Models,
    Pooling,
    Resamples,
    Runs,
    print_analysis,
    wanted,
)
from stsbench.cli.models import Device
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


def repetition_bias(
    runs: Runs = None,
    model: Models = None,
    pooling: Pooling = "auto",
    device: Device = "auto",
    corpus: Annotated[
        str, typer.Option(help="A file with one sentence a line, or `sample` for the sample's sentences.")
    ] = "sample",
    queries: Annotated[int, typer.Option(help="Queries for each seed.")] = 100,
    seeds: Annotated[int, typer.Option(help="Draws of queries and candidates.")] = 5,
    seed: Annotated[int, typer.Option(help="The first of their seeds.")] = 0,
    overlap: Annotated[
        str, typer.Option(help="Smallest and largest share of common tokens, in per cent.")
    ] = "13-17",
    share_of: Annotated[
        str, typer.Option(help="Of whose tokens that is a share: `candidate` or `query`.")
    ] = "candidate",
    tokens: Annotated[str, typer.Option(help="`words`, or `subwords` of the first model.")] = "words",
    published: Annotated[
        bool, typer.Option("--published", help="Put the paper's rows (ESimCSE) beside them.")
    ] = False,
    resamples: Resamples = 1000,
    figure: FigureFile = None,
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Probe for repetition bias: does repeating the words that two sentences share make them more alike?

    Examples:
    * `stsbench repetition-bias runs/a --corpus wiki.txt --published`
    * `stsbench repetition-bias --model minilm --queries 50 --overlap 10-20 --figure repetition.png`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.workflows import repetition_bias as workflow

    low, high = _shares(overlap)
    with progress_bars(quiet=quiet) as progress:
        frame = workflow.repetition_bias(
            wanted(runs, model),
            corpus=corpus,
            queries=queries,
            seeds=seeds,
            seed=seed,
            low=low,
            high=high,
            share_of=share_of,
            tokens=tokens,
            published=published,
            bootstrap=workflow.Bootstrap(resamples=resamples),
            progress=progress,
            pooling=pooling,
            device=device,
        )
    draw = partial(workflow.figure, frame)
    print_analysis(frame, workflow.views(frame), style, draw=draw, figure=figure, quiet=quiet)


def _shares(overlap: str) -> tuple[float, float]:
    try:
        low, high = (float(end) / 100 for end in overlap.split("-"))
    except ValueError as error:
        raise UserError(f"--overlap {overlap}: give the smallest and largest per cent, such as 13-17.") from error
    return low, high
