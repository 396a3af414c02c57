"""What stands beside a published model: its model card, and a badge."""

from collections.abc import Sequence
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path
from stsbench.checking.check import check
from stsbench.records import card as cards
from stsbench.records.imports.read import read_results
from stsbench.records.record import RunRecord
from stsbench.records.scores import labels
from stsbench.reports import badge as badges

__all__ = ["badge", "model_card", "write_text"]

Run = RunRecord | str | Path


def model_card(runs: Run | Sequence[Run]) -> str:
    """Return the Hub's model card of a model, with its scores as `model-index`.

    Args:
        runs: a record, its folder or `run.json`; or several of one model (of STS and of transfer tasks, say).

    Raises:
        UserError: if a run cannot be found, or they are of several models.
    """
    records = [read_results(run) for run in ([runs] if isinstance(runs, RunRecord | str | Path) else runs)]
    if not records:
        raise UserError("nothing to write a model card of: name a run.")
    return cards.model_card(labels(records[:1])[0], records)


def badge(run: Run, against: str | None = None, *, tolerance: float | None = None) -> str:
    """Return the verdict of a check as an SVG badge.

    Args:
        run: a record, its folder or `run.json`, or a file of results of SentEval or MTEB.
        against: which published row to check against, as in `check`.
        tolerance: how many points a score may be off, as in `check`.

    Raises:
        UserError: if the run or a row cannot be found.
    """
    return badges.badge(check(run, against, tolerance=tolerance))


def write_text(text: str, path: Path) -> Path:
    """Write a card or a badge whole.

    Raises:
        UserError: if the file cannot be written.
    """
    path = path.expanduser()
    if path.is_dir():
        raise UserError(f"{path} is a folder: name a file with --out.")
    with atomic_path(path) as file:
        file.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
    return path
