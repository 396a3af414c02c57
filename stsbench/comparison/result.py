"""Results as data that JSON can hold."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from stsbench.base.words import listed
from stsbench.comparison.overlap import Overlap
from stsbench.records.record import AVERAGE, TRANSFER_AVERAGE
from stsbench.statistics.significance import holm

if TYPE_CHECKING:
    import pandas as pd

    from stsbench.comparison.seeds import SeedsDifference

    Row: TypeAlias = "Difference | SeedsDifference"


def plain(value: Any) -> Any:
    """Return nested data with None for every number that JSON has not.

    >>> plain({"p": float("nan"), "rows": (1.0,)})
    {'p': None, 'rows': [1.0]}
    """
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


Kind = Literal["sts", "transfer"]
AVERAGES: dict[Kind, str] = {"sts": AVERAGE, "transfer": TRANSFER_AVERAGE}
"""What the average of each kind of task is called."""

_NAMES: dict[Kind, str] = {"sts": "STS", "transfer": "Transfer"}


@dataclass(frozen=True)
class Difference:
    """How B differs from A on one task, one subset or on average. NaN where something is undefined.

    Attributes:
        kind: `sts` (scores are correlations) or `transfer` (accuracies).
        task: its name; `Avg.` or `Avg. transfer` for the average of a kind.
        subset: empty for a task as a whole.
        size: the number of pairs or items.
        a: the score of A, x 100; `b`: of B.
        difference: b - a, with the limits `low` and `high` of its interval.
        p: of the paired bootstrap, two-sided (`percentile_p_value`); `p_holm`: after Holm's correction over the
            tasks of a kind (or over all its subsets). The average is one question of its own: not corrected.
        effect: Cohen's q (correlations) or h (accuracies), with the limits `effect_low` and `effect_high`.
        test: `williams` or `mcnemar`; empty where neither is defined.
        test_p: its p-value; `test_p_holm`: after correction.
        details: what else that test tells: statistics, counts.
    """

    kind: Kind
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
    p_holm: float = math.nan
    test: str = ""
    test_p: float = math.nan
    test_p_holm: float = math.nan
    details: dict[str, float] = field(default_factory=dict)

    @property
    def is_task(self) -> bool:
        """Whether this is a task as a whole."""
        return not self.subset and self.task not in AVERAGES.values()


@dataclass(frozen=True)
class Comparison:
    """Two models on the same pairs and items.

    Attributes:
        a: the name of the one; `b`: of the other.
        rows: each task, followed by its subsets if it has several; after the tasks of a kind their average.
        level: of the intervals; 1 - level is what p-values are held against.
        resamples: of the bootstrap.
        seed: of the bootstrap.
        notes: what a reader should know.
        overlaps: what of the test sentences was found in training corpora, if any were given.
    """

    a: str
    b: str
    rows: tuple[Difference, ...]
    level: float
    resamples: int
    seed: int
    notes: tuple[str, ...] = ()
    overlaps: tuple[Overlap, ...] = ()

    @property
    def sentence(self) -> str:
        """What is to be said of the two, a sentence for the STS tasks and one for the transfer tasks."""
        kinds = list(dict.fromkeys(row.kind for row in self.rows))
        sentences = [
            verdict([row for row in self.rows if row.kind == kind and not row.subset], self.level)
            for kind in kinds
        ]
        if len(kinds) == 1:
            return sentences[0]
        return " ".join(f"{_NAMES[kind]}: {text}" for kind, text in zip(kinds, sentences, strict=True))

    def table(self) -> "pd.DataFrame":
        """Return one row per task, subset and average, with the columns of `Difference`."""
        import pandas as pd

        rows = [asdict(row) for row in self.rows]
        return pd.DataFrame([{**row, **row.pop("details")} for row in rows])

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as plain data; what is undefined is None."""
        data: dict[str, Any] = plain({"sentence": self.sentence} | asdict(self))
        return data


def corrected(rows: Sequence[Difference]) -> tuple[Difference, ...]:
    """Return rows of one kind with p-values after Holm's correction: over the tasks, and over all subsets."""
    adjusted = _adjusted(row for row in rows if row.is_task) | _adjusted(row for row in rows if row.subset)
    return tuple(adjusted.get((row.task, row.subset), row) for row in rows)


def _adjusted(family: Iterable[Difference]) -> dict[tuple[str, str], Difference]:
    rows = list(family)
    p, test_p = (holm([getattr(row, name) for row in rows]).tolist() for name in ("p", "test_p"))
    return {
        (row.task, row.subset): replace(row, p_holm=own, test_p_holm=its)
        for row, own, its in zip(rows, p, test_p, strict=True)
    }


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
