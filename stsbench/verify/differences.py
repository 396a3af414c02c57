"""What a comparison says: a row for each task, their average, and one plain sentence."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from stsbench.records.record import AVERAGE
from stsbench.statistics import holm
from stsbench.verify.plain import plain

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Difference:
    """How B differs from A on one task, one subset or on average. NaN where something is undefined.

    Attributes:
        task: its name, `Avg.` for the average.
        subset: empty for a task as a whole.
        size: the number of pairs or items.
        a: the score of A, x 100; `b`: of B.
        difference: b - a, with the limits `low` and `high` of its interval.
        p: of the paired bootstrap, two-sided (`percentile_p_value`).
        p_holm: the same after Holm's correction over the tasks (or over all subsets); the average is one question
            of its own and has none.
        effect: Cohen's q (correlations) or h (accuracies), with the limits `effect_low` and `effect_high`.
        test: `williams` or `mcnemar`; empty where neither is defined.
        test_p: its p-value; `test_p_holm` after correction.
        details: what else that test tells: statistics, counts.
    """

    task: str
    subset: str
    size: int
    a: float
    b: float
    difference: float
    low: float
    high: float
    p: float
    effect: float
    effect_low: float
    effect_high: float
    test: str = ""
    test_p: float = math.nan
    details: dict[str, float] | None = None
    p_holm: float = math.nan
    test_p_holm: float = math.nan

    @property
    def is_task(self) -> bool:
        """Whether this is a task as a whole."""
        return not self.subset and self.task != AVERAGE


@dataclass(frozen=True)
class Comparison:
    """Two models on the same pairs or items.

    Attributes:
        a: the name of the one; `b`: of the other.
        kind: `sts` (correlations) or `transfer` (accuracies).
        rows: each task, followed by its subsets if it has several; the average last.
        level: of the intervals; 1 - level is what p-values are held against.
        resamples: of the bootstrap.
        seed: of the bootstrap.
        notes: what a reader should know.
    """

    a: str
    b: str
    kind: Literal["sts", "transfer"]
    rows: tuple[Difference, ...]
    level: float
    resamples: int
    seed: int
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """What is to be said of the two, in one sentence."""
        return verdict(self.rows, self.level)

    def table(self) -> "pd.DataFrame":
        """Return one row per task, subset and average, with the columns of `Difference`."""
        import pandas as pd

        rows = [asdict(row) for row in self.rows]
        return pd.DataFrame([{**row, **(row.pop("details") or {})} for row in rows])

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as plain data; what is undefined is None."""
        return plain({"sentence": self.sentence} | asdict(self))


def corrected(rows: Sequence[Difference]) -> tuple[Difference, ...]:
    """Return the rows with p-values after Holm's correction: over the tasks, and apart over all subsets."""
    done = {id(row): row for row in rows}
    for family in ([row for row in rows if row.is_task], [row for row in rows if row.subset]):
        p, test_p = holm([row.p for row in family]), holm([row.test_p for row in family])
        for row, own, its in zip(family, p.tolist(), test_p.tolist(), strict=True):
            done[id(row)] = replace(row, p_holm=own, test_p_holm=its)
    return tuple(done.values())


class Judged(Protocol):
    """What a verdict needs to know of a row; the fields are those of `Difference`."""

    @property
    def task(self) -> str: ...
    @property
    def is_task(self) -> bool: ...
    @property
    def difference(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def p(self) -> float: ...
    @property
    def p_holm(self) -> float: ...


def verdict(rows: Iterable[Judged], level: float) -> str:
    """Return what a test of each task and of the average shows, in one sentence.

    A task counts as different if its p-value is below 1 - level after Holm's correction; the average by its own.
    """
    rows = list(rows)
    alpha = 1 - level
    tasks = [row for row in rows if row.is_task]
    average = next((row for row in rows if row.task == AVERAGE), None)
    if average is None:
        (only,) = tasks
        return f"{_winner(only, alpha)} on {only.task}: {_told(only, 'the', alpha)}."
    parts = []
    for name, sign in (("B", 1), ("A", -1)):
        won = [row.task for row in tasks if row.p_holm < alpha and sign * row.difference > 0]
        if won:
            parts.append(f"{name} is better on {'all ' if len(won) == len(tasks) else ''}{_listed(won)}")
    undefined = [row.task for row in tasks if math.isnan(row.p)]
    if undefined:
        parts.append(f"{_listed(undefined)} could not be tested")
    start = "; ".join(parts) or "No task shows a difference"
    return f"{start}; {_told(average, 'the average', alpha)}."


def _winner(row: Judged, alpha: float) -> str:
    if not row.p < alpha:
        return "Neither is shown to be better"
    return f"{'B' if row.difference > 0 else 'A'} is better"


def _told(row: Judged, which: str, alpha: float) -> str:
    if math.isnan(row.difference):
        return f"{which} difference is undefined"
    values = f"{which} difference of {row.difference:.2f}"
    if math.isnan(row.p):
        return f"{values} could not be tested"
    judged = "is real" if row.p < alpha else "may be chance"
    return f"{values} [{row.low:.2f}, {row.high:.2f}] {judged} at {100 * alpha:g} %"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
