"""Two models on the same pairs: is the difference of their STS scores real?

The paired bootstrap resamples the pairs, the same ones for both models (the draws depend on the task and the seed
alone, see `generator`), so the k-th replicate of the difference is that of two scores on one resample. With the
seed and resamples of the records its replicates are those of their own intervals.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stsbench.evaluation.sts import Bootstrap
from stsbench.foundation.progress import Progress, silent
from stsbench.records import RunRecord
from stsbench.statistics import (
    CORRELATIONS,
    Aggregation,
    Metric,
    bootstrap_task,
    correlate_task,
    steiger,
    williams,
)
from stsbench.verify.aligned import AlignedTask, align, left_out
from stsbench.verify.differences import AVERAGES, Difference, corrected
from stsbench.verify.scored import Scored, row_of


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
