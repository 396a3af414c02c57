"""`stsbench report`."""

from pathlib import Path
from typing import Annotated

import typer

from stsbench.base.errors import UserError
from stsbench.cli.options import INTERVAL_HELP, IntervalName, number_within
from stsbench.cli.output import QuietFlag, print_data, progress_bars, tell


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help="Folders of runs or experiments, run.json, results of SentEval or MTEB."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The folder to write, `report` by default; of --model-card and --badge the file.",
        ),
    ] = None,
    paper: Annotated[
        str | None,
        typer.Option(help="One paper's tables in its order: `esimcse`, `mocose`, `simcse`, `gaussian-dropout`."),
    ] = None,
    model_card: Annotated[
        bool,
        typer.Option("--model-card", help="Instead: the Hub's model card.", rich_help_panel="Instead of a page"),
    ] = False,
    badge: Annotated[
        bool,
        typer.Option("--badge", help="Instead: the check as an SVG badge.", rich_help_panel="Instead of a page"),
    ] = False,
    against: Annotated[str, typer.Option(help="The published row to check against, as in `check`.")] = "auto",
    tolerance: Annotated[
        float, typer.Option(callback=number_within(0, 100), help="Points that a score may be off.")
    ] = 0.05,
    title: Annotated[str, typer.Option(help="Of the page. Default: it names the models.")] = "",
    date: Annotated[
        str, typer.Option(help="Of the page. Default: SOURCE_DATE_EPOCH, or the newest record's.")
    ] = "",
    analyse: Annotated[
        bool,
        typer.Option("--analyses/--no-analyses", help="Analyse and compare up to five runs: a minute or so each."),
    ] = True,
    interval: Annotated[
        IntervalName | None,
        typer.Option(
            help=f"Of analyses and comparisons. {INTERVAL_HELP} Default: as the runs were measured.",
            metavar="METHOD",
        ),
    ] = None,
    data_dir: Annotated[
        list[Path] | None, typer.Option(help="Look for the data of the analyses here first. Repeatable.")
    ] = None,
    quiet: QuietFlag = False,
) -> None:
    """Write a page about runs: HTML that needs no network, the same in Markdown, every table and figure as a file.

    Examples:
    * `stsbench report runs/mine-avg-sts --out reports/mine`
    * `stsbench report runs/* --out reports/all --no-analyses`
    * `stsbench report runs/mine-avg-sts --paper esimcse`
    * `stsbench report runs/mine-avg-sts --model-card --out README.md`
    * `stsbench report runs/mine-avg-sts --badge --against esimcse-bert-base --out check.svg`
    """
    from stsbench.base.files import require_new_file, require_new_folder

    if out is not None:
        # What it names depends on what is written.
        (require_new_file if model_card or badge else require_new_folder)(out.expanduser(), "--out")
    if model_card or badge:
        _write_instead(runs, out, model_card, badge, against, tolerance, quiet)
        return
    from stsbench.reports import report as workflow

    with progress_bars(quiet=quiet) as progress:
        page = workflow.report(
            runs,
            out or Path("report"),
            paper=paper,
            against=against,
            tolerance=tolerance,
            title=title,
            date=date,
            analyse=analyse,
            interval=interval,
            data_dirs=data_dir or (),
            progress=progress,
        )
    tell(f"written to {page}", quiet=quiet)


def _write_instead(
    runs: list[Path], out: Path | None, model_card: bool, badge: bool, against: str, tolerance: float, quiet: bool
) -> None:
    from stsbench.reports import cards

    if model_card and badge:
        raise UserError("--model-card and --badge cannot go together: write one after the other.")
    if badge and len(runs) > 1:
        raise UserError(f"a badge tells the check of one run, and {len(runs)} are named: name one.")
    text = cards.model_card(runs) if model_card else cards.badge(runs[0], against, tolerance=tolerance)
    if out is None:
        print_data(text)
    else:
        tell(f"written to {cards.write_text(text, out)}", quiet=quiet)
