"""Where a measured score lies among the scores of a method over many seeds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stsbench.published import Cell, PublishedRow
from stsbench.published.measured import seeded_systems, seeds
from stsbench.verify.check_outcome import CellCheck

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = {"Avg. STS": "Avg."}
"""Where the seeds' columns are not called as the task is."""


def share_below(row: PublishedRow, cell: Cell, measured: float) -> float | None:
    """Return the share of known seeds that score lower than a run; None where no seeds are known.

    Seeds are those of the row's own system in its own configuration, by Spearman on test.

    >>> from stsbench.published import row
    >>> average = row("unsup-simcse-bert-base")
    >>> share_below(average, average.cell("Avg."), 76.25)
    0.9
    """
    setting, system = cell.setting, row.row.system
    comparable = (setting.metric, setting.split, setting.group, setting.variant) == ("spearman", "test", "", "")
    if not comparable or system not in seeded_systems():
        return None
    column = _COLUMNS.get(setting.task, setting.task)
    scores = seeds(system)
    return float((scores[column] < measured).mean()) if column in scores else None


def told_place(row: PublishedRow, cells: Sequence[CellCheck]) -> str:
    """Return in a sentence where the run lies among the seeds; empty where none are known.

    The average is told of if it was measured, else the first score that was.
    """
    known = [cell for cell in cells if cell.seeds_below is not None and cell.measured is not None]
    if not known:
        return ""
    cell = next((cell for cell in known if row.cell(cell.name).setting.task == "Avg. STS"), known[0])
    task = row.cell(cell.name).setting.task
    scores = seeds(row.row.system)[_COLUMNS.get(task, task)]
    low, high, measured, expected = scores.min(), scores.max(), cell.measured or 0.0, cell.expected or 0.0
    outside = "" if low <= measured <= high else "; the run lies outside their range"
    return (
        f"the row is one training run: in {len(scores)} of an independent reproduction that differ in the seed "
        f"(raw text: close to the papers' protocol, not the same) {cell.name} is {scores.mean():.2f} ± "
        f"{scores.std():.2f}, from {low:.2f} to {high:.2f}; {_share(scores < measured)} are below the "
        f"{measured:.2f} measured here, {_share(scores < expected)} below the {expected:.2f} published{outside}"
    )


def _share(below: "pd.Series[bool]") -> str:
    return f"{100 * float(below.mean()):.0f} %"
