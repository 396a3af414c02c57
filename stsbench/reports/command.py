"""`stsbench report`."""

from pathlib import Path
from typing import Annotated

import typer

from stsbench.base.files import atomic_path, require_writable
from stsbench.cli.options import DataDirs, Interval, OwnTexts, Quiet, expand, refuse
from stsbench.cli.output import print_data, print_notes, progress_bars


@expand
def report(
    context: typer.Context,
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
    like: Annotated[
        str | None, typer.Option(help="The checkpoint whose vectors a server's run should have, as in `diagnose`.")
    ] = None,
    title: Annotated[str, typer.Option(help="The page's title; by default the models' names.")] = "",
    analyse: Annotated[
        bool,
        typer.Option(
            "--analyses/--no-analyses", help="Analyse and compare up to five runs (8 to 10 s for one, if cached)."
        ),
    ] = True,
    interval: Interval = "dyadic",
    data: OwnTexts = None,
    data_dirs: DataDirs = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The folder to write, `report` by default; with --model-card the file."),
    ] = None,
    model_card: Annotated[
        bool, typer.Option("--model-card", help="Write the Hub's model card instead of a page.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Write a report about runs: a page in HTML and Markdown, with every table and figure as a file.

    Examples:
    * `stsbench report runs/mine-avg-sts --out reports/mine`
    * `stsbench report runs/* --out reports/all --no-analyses`
    * `stsbench report runs/mine-avg-sts --paper esimcse`
    * `stsbench report runs/mine-avg-sts --model-card --out README.md`
    """
    from stsbench.reports import report as room

    if out is not None:
        require_writable(out.expanduser(), "--out", as_folder=not model_card)
    if model_card:
        of_pages = ("paper", "against", "tolerance", "like", "title", "analyse", "interval", "data", "data_dirs")
        refuse(context, "a page, not to a model card", *of_pages)
        text = room.model_card(runs)
        if out is None:
            print_data(text)
        else:
            with atomic_path(out.expanduser()) as file:
                file.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
            print_notes(f"written to {out.expanduser()}", quiet=quiet)
        return
    with progress_bars(quiet=quiet) as progress:
        page = room.report(
            runs,
            out or Path("report"),
            paper=paper,
            against=against,
            tolerance=tolerance,
            like=like,
            title=title,
            analyse=analyse,
            interval=interval,
            data=data or (),
            data_dirs=data_dirs or (),
            progress=progress,
        )
    print_notes(f"written to {page}: open it in a browser.", quiet=quiet)
