"""`stsbench explore` and `stsbench board`."""

from pathlib import Path
from typing import Annotated

import typer

from stsbench.cli.options import DataDirs, Interval, Level, OwnTexts, Quiet, expand, new_file, refuse
from stsbench.cli.output import print_notes, progress_bars

_Page = Annotated[Path, typer.Option("--out", "-o", callback=new_file, help="The page to write.")]


@expand
def explore(
    context: typer.Context,
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN [RUN]", help="One or two run folders or `run.json` files.")
    ],
    data: OwnTexts = None,
    without_text: Annotated[
        bool, typer.Option("--without-text", help="Leave the sentences out, so that you may publish the page.")
    ] = False,
    data_dirs: DataDirs = None,
    out: _Page = Path("pairs.html"),
    quiet: Quiet = False,
) -> None:
    """Write a page with all pairs or queries of one or two runs, to see which of them cost the most.

    Examples:
    * `stsbench explore runs/mine-avg-sts --out pairs.html`
    * `stsbench explore runs/mine-avg-sts runs/theirs-avg-sts`
    * `stsbench explore runs/mine-captions --data captions.csv`
    * `stsbench explore runs/mine-my-set runs/theirs-my-set --data my-set/`
    * `stsbench explore runs/mine-avg-sts --without-text`
    """
    from stsbench.browsing.explore import explore as write_page

    if without_text:
        refuse(context, "a page with sentences", "data", "data_dirs")
    with progress_bars(quiet=quiet) as progress:
        explored = write_page(
            runs, out, data=data or (), without_text=without_text, data_dirs=data_dirs or (), progress=progress
        )
    print_notes(*(f"note: {note}" for note in explored.notes), quiet=quiet)
    if explored.texts is not None:
        print_notes(
            "the page contains sentences of the data sets: do not publish it (see --without-text).", quiet=quiet
        )
    print_notes(f"written to {out}: open it in a browser.", quiet=quiet)


@expand
def board(
    runs: Annotated[
        list[Path], typer.Argument(metavar="FOLDER...", help="Folders; every `run.json` below them is read.")
    ],
    interval: Interval = "dyadic",
    level: Level = 0.95,
    out: _Page = Path("board.html"),
    quiet: Quiet = False,
) -> None:
    """Write a leaderboard page of all runs below a folder: scores with intervals, ties, costs, comparisons.

    Examples:
    * `stsbench board runs/ --out board.html`
    * `stsbench board runs/ ../theirs/runs/`
    """
    from stsbench.browsing.board import board as write_board

    with progress_bars(quiet=quiet) as progress:
        made = write_board(runs, out, interval=interval, level=level, progress=progress)
    print_notes(*(f"note: {note}" for note in made.notes), quiet=quiet)
    print_notes(f"written to {out}: open it in a browser.", quiet=quiet)
