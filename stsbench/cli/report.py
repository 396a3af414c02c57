"""`stsbench report`."""

from pathlib import Path
from typing import Annotated

import typer

from stsbench.cli.output import QuietFlag, progress_bars, tell


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Run folders, run.json files, or results of SentEval or MTEB."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")] = Path("report"),
    paper: Annotated[
        str | None,
        typer.Option(help="One paper's tables in its order: `esimcse`, `mocose`, `simcse`, `gaussian-dropout`."),
    ] = None,
    against: Annotated[str, typer.Option(help="The published row to check against, as in `check`.")] = "auto",
    tolerance: Annotated[float, typer.Option(help="Points that a score may be off.")] = 0.05,
    title: Annotated[str, typer.Option(help="Of the page. Default: it names the models.")] = "",
    date: Annotated[
        str, typer.Option(help="Of the page. Default: SOURCE_DATE_EPOCH, or the newest record's.")
    ] = "",
    analyse: Annotated[
        bool,
        typer.Option("--analyses/--no-analyses", help="Analyse and compare up to five runs: a minute or so each."),
    ] = True,
    data_dir: Annotated[
        list[Path] | None, typer.Option(help="Look for the data of the analyses here first. Repeatable.")
    ] = None,
    quiet: QuietFlag = False,
) -> None:
    """Write a page about runs: HTML that needs no network, the same in Markdown, every table and figure as a file.

    Examples:
    * `stsbench report runs/mine-avg-sts --out reports/mine`
    * `stsbench report runs/* --out reports/all`
    * `stsbench report runs/mine-avg-sts --paper esimcse`
    """
    from stsbench.workflows import report as workflow

    with progress_bars(quiet=quiet) as progress:
        page = workflow.report(
            runs,
            out,
            paper=paper,
            against=against,
            tolerance=tolerance,
            title=title,
            date=date,
            analyse=analyse,
            data_dirs=data_dir or (),
            progress=progress,
        )
    tell(f"written to {page}", quiet=quiet)
