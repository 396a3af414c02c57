"""Where a measured score lies among the scores of a method over many seeds."""

from collections.abc import Sequence

from stsbench.published import Cell, PublishedRow
from stsbench.published.measured import seeded_systems, seeds
from stsbench.verify.check_outcome import CellCheck

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
    below = f"{100 * (cell.seeds_below or 0):.0f} % of them lie below the {cell.measured:.2f} measured here"
    above = f"{100 * float((scores < cell.expected).mean()):.0f} % below the {cell.expected:.2f} published"
    inside = scores.min() <= cell.measured <= scores.max() if cell.measured is not None else False
    return (
        f"the row is one training run: over {len(scores)} seeds of an independent reproduction {cell.name} is "
        f"{scores.mean():.2f} ± {scores.std():.2f} ({scores.min():.2f} to {scores.max():.2f}); {below}, {above}"
        + ("" if inside else "; the run lies outside their range")
    )
