"""`stsbench report`."""

from pathlib import Path
from typing import Annotated

import typer

from stsbench.base.errors import UserError
from stsbench.cli.groups import expand
from stsbench.cli.options import DataDirs, Interval, Quiet
from stsbench.cli.output import print_data, print_notes, progress_bars

_INSTEAD = "Instead of a page"


@expand
def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Folders of runs or experiments, or results of SentEval or MTEB."),
    ],
    paper: Annotated[
        str | None, typer.Option(help="The layout of a paper: `esimcse`, `mocose`, `simcse`, `gaussian-dropout`.")
    ] = None,
    against: Annotated[str, typer.Option(help="The published row to check against, as in `check`.")] = "auto",
    tolerance: Annotated[
        float, typer.Option(min=0, max=100, help="The allowed difference from the published value in points.")
    ] = 0.05,
    title: Annotated[str, typer.Option(help="The page's title; by default the models' names.")] = "",
    date: Annotated[
        str, typer.Option(help="The page's date; by default `SOURCE_DATE_EPOCH`, else the newest record's date.")
    ] = "",
    analyse: Annotated[
        bool,
        typer.Option(
            "--analyses/--no-analyses", help="Analyse and compare up to five runs (about a minute per run)."
        ),
    ] = True,
    interval: Interval = "dyadic",
    data_dirs: DataDirs = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="The folder to write, `report` by default; with --model-card or --badge the file."
        ),
    ] = None,
    model_card: Annotated[
        bool,
        typer.Option("--model-card", help="Write the Hub's model card instead.", rich_help_panel=_INSTEAD),
    ] = False,
    badge: Annotated[
        bool,
        typer.Option("--badge", help="Write the result of `check` as an SVG badge.", rich_help_panel=_INSTEAD),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Write a report about runs: a page in HTML and Markdown, with every table and figure as a file.

    Examples:
    * `stsbench report runs/mine-avg-sts --out reports/mine`
    * `stsbench report runs/* --out reports/all --no-analyses`
    * `stsbench report runs/mine-avg-sts --paper esimcse`
    * `stsbench report runs/mine-avg-sts --model-card --out README.md`
    * `stsbench report runs/mine-avg-sts --badge --against esimcse-bert-base --out check.svg`
    """
    from stsbench.base.files import require_writable

    is_file = model_card or badge
    if out is not None:
        require_writable(out.expanduser(), "--out", as_folder=not is_file)
    if is_file:
        if model_card and badge:
            raise UserError("--model-card and --badge cannot go together: write one at a time.")
        if badge and len(runs) > 1:
            raise UserError(f"--badge checks one run, but {len(runs)} are named: name one.")
        from stsbench.reports import cards

        text = cards.model_card(runs) if model_card else cards.badge(runs[0], against=against, tolerance=tolerance)
        if out is None:
            print_data(text)
        else:
            print_notes(f"written to {cards.write_text(text, out)}", quiet=quiet)
        return
    from stsbench.reports.report import report as write_report

    with progress_bars(quiet=quiet) as progress:
        page = write_report(
            runs,
            out or Path("report"),
            paper=paper,
            against=against,
            tolerance=tolerance,
            title=title,
            date=date,
            analyse=analyse,
            interval=interval,
            data_dirs=data_dirs or (),
            progress=progress,
        )
    print_notes(f"written to {page}", quiet=quiet)
