"""A score of both models with its paired replicates, and the row that it makes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stsbench.base.progress import Progress, silent
from stsbench.comparison.aligned import AlignedTask, align, left_out
from stsbench.comparison.result import AVERAGES, Difference, Kind, corrected
from stsbench.records.record import RunRecord
from stsbench.scoring.sts import Bootstrap
from stsbench.statistics.aggregation import Aggregation, correlate_task
from stsbench.statistics.bootstrap import bootstrap_task, percentile_interval, percentile_p_value
from stsbench.statistics.correlations import CORRELATIONS, Metric
from stsbench.statistics.significance import steiger, williams

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scored:
    """A score of A and of B: on a task, a subset, or on average.

    Attributes:
        values: (2,) the scores, A first, from 0 or -1 to 1.
        replicates: (2, resamples) of the bootstrap; each column is of one resample.
    """

    values: Floats
    replicates: Floats

    @classmethod
    def mean(cls, scores: "Sequence[Scored]") -> "Scored":
        """Return the mean over tasks. They are resampled independently: k-th replicates average to one."""
        return cls(
            np.mean([own.values for own in scores], axis=0), np.mean([own.replicates for own in scores], axis=0)
        )


def fisher(correlations: Floats) -> Floats:
    """Return Fisher's z of correlations; their difference is Cohen's q (Cohen 1988, chapter 4)."""
    return np.arctanh(correlations)


def arcsine(shares: Floats) -> Floats:
    """Return twice the arcsine of the roots of shares; their difference is Cohen's h (Cohen 1988, chapter 6)."""
    return 2 * np.arcsin(np.sqrt(shares))


def row_of(
    scores: Scored, kind: Kind, task: str, size: int, *, level: float, subset: str = "", **test: Any
) -> Difference:
    """Return the row of a score: difference, interval and p-value of the paired bootstrap, effect size.

    Args:
        scores: of both models.
        kind: as in `Difference`, and so are the others.
        task: its name.
        size: of pairs or items.
        level: of the intervals.
        subset: its name.
        test: the test's fields of `Difference`.
    """
    scale = fisher if kind == "sts" else arcsine
    replicates = scores.replicates[1] - scores.replicates[0]
    low, high = percentile_interval(100 * replicates, level)
    # A perfect correlation is infinitely far from the others on Fisher's scale, and undefined from another such.
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = float(np.diff(scale(scores.values))[0])
        effects = np.diff(scale(scores.replicates), axis=0)[0]
        effect_low, effect_high = percentile_interval(effects, level)
    a, b = (100 * scores.values).tolist()
    return Difference(
        kind=kind,
        task=task,
        subset=subset,
        size=size,
        a=a,
        b=b,
        difference=b - a,
        low=low,
        high=high,
        p=percentile_p_value(replicates),
        effect=effect,
        effect_low=effect_low,
        effect_high=effect_high,
        **test,
    )


def compare_pairs(
    a: RunRecord,
    b: RunRecord,
    names: tuple[str, str],
    *,
    bootstrap: Bootstrap,
    progress: Progress = silent,
) -> tuple[tuple[Difference, ...], tuple[str, ...]]:
    """Return how two records differ on the STS tasks that both hold, and what a reader should know.

    Args:
        a: the one, often the baseline.
        b: the other.
        names: what to call them.
        bootstrap: resamples (at least one), level and seed.
        progress: told how far it is.

    Raises:
        UserError: if the records do not compare (see `align`).
    """
    tasks, alone = align(a, b, names)
    aggregation: Aggregation = a.protocol.aggregation  # type: ignore[assignment]
    metric: Metric = a.protocol.metric  # type: ignore[assignment]
    level = bootstrap.level
    rows: list[Difference] = []
    wholes: list[Scored] = []
    for number, task in enumerate(tasks):
        progress("bootstrap", number, len(tasks))
        whole, subsets = _scores(task, metric, aggregation, bootstrap)
        wholes.append(whole)
        everywhere = np.ones(len(task.gold), dtype=bool)
        is_one = len(subsets) == 1 or aggregation == "all"
        tests = _tests(task, everywhere, whole, metric) if is_one else {}
        rows.append(row_of(whole, "sts", task.label, len(task.gold), level=level, **tests))
        for code, subset in enumerate(task.subsets if len(subsets) > 1 else ()):
            members = task.codes == code
            tests = _tests(task, members, subsets[code], metric)
            size = int(members.sum())
            rows.append(row_of(subsets[code], "sts", task.label, size, level=level, subset=subset, **tests))
    progress("bootstrap", len(tasks), len(tasks))
    if len(tasks) > 1:
        size = sum(len(task.gold) for task in tasks)
        rows.append(row_of(Scored.mean(wholes), "sts", AVERAGES["sts"], size, level=level))
    return corrected(rows), left_out(alone)


def _scores(
    task: AlignedTask, metric: Metric, aggregation: Aggregation, bootstrap: Bootstrap
) -> tuple[Scored, list[Scored]]:
    """Return the scores of a task as a whole, and of each subset."""
    sides = (task.a, task.b)
    found = [correlate_task(task.gold, side, task.codes, metric) for side in sides]
    drawn = [
        bootstrap_task(
            task.gold,
            side,
            task.codes,
            metric,
            # Named as the records name their draws: the same seed gives the same intervals.
            task=f"{task.signature.task}:{task.signature.split}",
            names=task.subsets,
            resamples=bootstrap.resamples,
            seed=bootstrap.seed,
        )
        for side in sides
    ]
    whole = Scored(
        np.array([scores.aggregates[aggregation] for scores in found]),
        np.array([replicates.aggregates[aggregation] for replicates in drawn]),
    )
    values = np.array([scores.subsets for scores in found])
    replicates = np.array([replicates.subsets for replicates in drawn])
    return whole, [Scored(values[:, code], replicates[:, :, code]) for code in range(len(task.subsets))]


def _tests(task: AlignedTask, members: NDArray[np.bool_], scores: Scored, metric: Metric) -> dict[str, Any]:
    """Return the tests of two dependent correlations; none are known for Kendall's."""
    if metric == "kendall":
        return {}
    a, b = scores.values.tolist()
    between, size = CORRELATIONS[metric](task.a[members], task.b[members]), int(members.sum())
    by_williams, by_steiger = (
        test(b, a, between, size, ranks=metric == "spearman") for test in (williams, steiger)
    )
    return {
        "test": "williams",
        "test_p": by_williams.p_value,
        "details": {
            "correlation_between": between,
            "williams_t": by_williams.statistic,
            "steiger_z": by_steiger.statistic,
            "steiger_p": by_steiger.p_value,
        },
    }
