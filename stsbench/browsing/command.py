"""`stsbench explore` and `stsbench board`."""

from pathlib import Path
from typing import Annotated

from stsbench.base.options import Help, Spelled, Written
from stsbench.cli.options import QuietFlag
from stsbench.cli.output import progress_bars, tell
from stsbench.cli.verbs import Call, Verb


def explore(
    asked: Annotated[Call, Verb("stsbench.browsing.explore:explore", without=("out",))],
    out: Annotated[Path, Spelled("--out", "-o"), Written("file"), Help("The page to write.")] = Path("pairs.html"),
    quiet: QuietFlag = False,
) -> None:
    """Write a page with all pairs of one run, or of two side by side, to see which of them the score is lost on.

    Examples:
    * `stsbench explore runs/mine-avg-sts --out pairs.html`
    * `stsbench explore runs/mine-avg-sts runs/theirs-avg-sts`
    * `stsbench explore runs/mine-captions --data captions.csv`
    * `stsbench explore runs/mine-avg-sts --without-text`
    """
    with progress_bars(quiet=quiet) as progress:
        explored = asked(out=out, progress=progress)
    for note in explored.notes:
        tell(f"note: {note}", quiet=quiet)
    if explored.texts is not None:
        tell("the page holds the data sets' sentences: do not publish it with them.", quiet=quiet)
    tell(f"written to {out}", quiet=quiet)


def board(
    asked: Annotated[Call, Verb("stsbench.browsing.board:board", without=("out",))],
    out: Annotated[Path, Spelled("--out", "-o"), Written("file"), Help("The page to write.")] = Path("board.html"),
    quiet: QuietFlag = False,
) -> None:
    """Write a page with all runs below a folder: scores with intervals, groups, costs, and any two compared.

    Examples:
    * `stsbench board runs/ --out board.html`
    * `stsbench board runs/ ../theirs/runs/`
    """
    with progress_bars(quiet=quiet) as progress:
        made = asked(out=out, progress=progress)
    for note in made.notes:
        tell(f"note: {note}", quiet=quiet)
    tell(f"written to {out}", quiet=quiet)
