"""`stsbench report`."""

from pathlib import Path
from typing import Annotated

from stsbench.base.errors import UserError
from stsbench.base.options import Help, Panel, Written
from stsbench.cli.options import QuietFlag
from stsbench.cli.output import print_data, progress_bars, tell
from stsbench.cli.verbs import Call, Verb

_INSTEAD = "Instead of a page"


def report(
    asked: Annotated[Call, Verb("stsbench.reports.report:report", without=("out",))],
    out: Annotated[
        Path | None,
        Written("told later"),
        Help("The folder to write, `report` by default; with --model-card or --badge the file."),
    ] = None,
    model_card: Annotated[bool, Panel(_INSTEAD), Help("Write the Hub's model card instead.")] = False,
    badge: Annotated[
        bool, Panel(_INSTEAD), Help("Write the verdict of `stsbench check` as an SVG badge instead.")
    ] = False,
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
        _write_instead(asked, out, model_card, badge, quiet)
        return
    with progress_bars(quiet=quiet) as progress:
        page = asked(out=out or Path("report"), progress=progress)
    tell(f"written to {page}", quiet=quiet)


def _write_instead(asked: Call, out: Path | None, model_card: bool, badge: bool, quiet: bool) -> None:
    from stsbench.reports import cards

    if model_card and badge:
        raise UserError("--model-card and --badge cannot go together: write one after the other.")
    runs, checked = asked.options["runs"], asked.only("against", "tolerance")
    if badge and len(runs) > 1:
        raise UserError(f"a badge tells the check of one run, and {len(runs)} are named: name one.")
    text = cards.model_card(runs) if model_card else cards.badge(runs[0], **checked)
    if out is None:
        print_data(text)
    else:
        tell(f"written to {cards.write_text(text, out)}", quiet=quiet)
