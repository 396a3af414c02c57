"""One plain sentence for a table of tests."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from stsbench.foundation.words import listed

if TYPE_CHECKING:
    from stsbench.verify.compare_seeds import SeedsDifference
    from stsbench.verify.differences import Difference

    Row: TypeAlias = Difference | SeedsDifference


def verdict(rows: "Sequence[Row]", level: float) -> str:
    """Return what a test of each task and of the average shows, in one sentence.

    A task counts as different if its p-value is below 1 - level after Holm's correction; the average by its own.

    Args:
        rows: the tasks of one kind; their average last, if there are several.
        level: of the intervals.
    """
    alpha = 1 - level
    tasks = [row for row in rows if row.is_task]
    average = rows[-1]
    if average.is_task:
        (only,) = tasks
        return f"{_winner(only, alpha)} on {only.task}: {_told(only, 'the', alpha)}."
    parts = []
    for name, sign in (("B", 1), ("A", -1)):
        won = [row.task for row in tasks if row.p_holm < alpha and sign * row.difference > 0]
        if won:
            parts.append(f"{name} is better on {'all tasks' if len(won) == len(tasks) else listed(won)}")
    undefined = [row.task for row in tasks if math.isnan(row.p)]
    if undefined:
        parts.append(f"{listed(undefined)} could not be tested")
    start = "; ".join(parts) or "No task shows a difference"
    return f"{start}; {_told(average, 'the average', alpha)}."


def _winner(row: "Row", alpha: float) -> str:
    if not row.p < alpha:
        return "Neither is shown to be better"
    return f"{'B' if row.difference > 0 else 'A'} is better"


def _told(row: "Row", which: str, alpha: float) -> str:
    if math.isnan(row.difference):
        return f"{which} difference is undefined"
    values = f"{which} difference of {row.difference:.2f}"
    if math.isnan(row.p):
        return f"{values} could not be tested"
    judged = "is real" if row.p < alpha else "may be chance"
    return f"{values} [{row.low:.2f}, {row.high:.2f}] {judged} at {100 * alpha:g} %"
