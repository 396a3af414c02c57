"""`stsbench retrieve`."""

from functools import partial
from typing import Annotated

import typer

from stsbench.cli.analysis import (
    FigureFile,
    Models,
    Pooling,
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


def retrieve(
    runs: Runs = None,
    model: Models = None,
    pooling: Pooling = "auto",
    device: Device = "auto",
    corpus: Annotated[
        str, typer.Option(help="A file with one sentence a line, or `sample` for the sample's sentences.")
    ] = "sample",
    query: Annotated[list[str] | None, typer.Option("--query", help="A sentence. Repeatable.")] = None,
    k: Annotated[int, typer.Option("--top", "-k", help="How many neighbours.")] = 5,
    search: Annotated[
        str, typer.Option(help="`exact`, or `faiss` (an HNSW graph; `pip install 'stsbench[faiss]'`).")
    ] = "exact",
    figure: FigureFile = None,
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Find the sentences of a corpus that are nearest to a query, for several models side by side.

    Examples:
    * `stsbench retrieve runs/a runs/b --corpus wiki.txt --query "A dog runs." -k 3`
    * `stsbench retrieve --corpus sample --query "The bridge is closed." --markdown`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.workflows import retrieve as workflow

    with progress_bars(quiet=quiet) as progress:
        frame = workflow.retrieve(
            wanted(runs, model),
            corpus=corpus,
            query=query or (),
            k=k,
            search=search,
            progress=progress,
            pooling=pooling,
            device=device,
        )
    draw = partial(workflow.figure, frame)
    print_analysis(frame, workflow.views(frame), style, draw=draw, figure=figure, quiet=quiet)
