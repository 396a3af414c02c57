"""What a comparison says: a row for each task, their average, and a plain sentence."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from stsbench.records.table import AVERAGE, TRANSFER_AVERAGE
from stsbench.statistics import holm
from stsbench.verify.overlap import Overlap
from stsbench.verify.plain import plain
from stsbench.verify.verdict import verdict

if TYPE_CHECKING:
    import pandas as pd

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
