"""Wrong arguments: the call and a word of the message."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stsbench.statistics import (
    correlations,
    dependence,
    estimate,
    geometry,
    intervals,
    logistic,
    neighbours,
    ranks,
    seeds,
)

ROWS, VARIANCE = np.ones((4, 3)), dependence.Variance(0.01, 0.01, 10.0)
ZERO, INFINITE = (np.where(np.arange(4)[:, None] == 2, bad, ROWS) for bad in (0.0, np.inf))
THREE = dependence.Sharing.of(np.arange(3))
X, Y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2

MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "subsets, too few": (lambda: correlations.correlate_task([1, 2, 3], [1, 2, 3], [0, 0]), "one subset code"),
    "subsets, unused": (lambda: correlations.correlate_task([1, 2, 3], [1, 2, 3], [0, 0, 2]), "1 has no pair"),
    "subsets, negative": (lambda: correlations.correlate_task([1, 2, 3], [1, 2, 3], [0, -1, 1]), "negative"),
    "no pairs": (lambda: correlations.correlate_task([], [], []), "without pairs"),
    "covariance, pairs": (lambda: dependence.covariance(np.ones((2, 4)), THREE), "expected terms of 3 pairs"),
    "sharing, lengths": (lambda: dependence.Sharing.of([1, 2], [1]), "one length"),
    "sharing, nothing": (lambda: dependence.Sharing.join([]), "nothing to join"),
    "correlation interval, level": (lambda: intervals.correlation_interval(0.5, VARIANCE, 9, 0.0), "level"),
    "bound, level": (lambda: intervals.lower_bound(0.5, VARIANCE, 95), "level"),
    "ranks, one score": (lambda: ranks.rank_scores([1.0], *[np.eye(1)] * 3), "m >= 2"),
    "ranks, level": (lambda: ranks.rank_scores([1.0, 2.0], *[np.eye(2)] * 3, level=1.0), "level"),
    "mcnemar, lengths": (lambda: estimate.mcnemar([True, False], [True]), "one length"),
    "means, one value": (lambda: estimate.compare_means([1.0], [1.0, 2.0]), "at least two"),
    "seeds, one run": (lambda: seeds.mean_variance([seeds.Runs(np.ones(1), 0.0)], VARIANCE), "at least two"),
    "ties, lengths": (lambda: ranks.ties_of([1, 2, 3], [1, 2]), "similarities of 3 pairs"),
    "similarity, lengths": (lambda: neighbours.pair_similarities(np.eye(3), [0, 1], [0]), "row numbers"),
    "neighbours, all": (lambda: neighbours.nearest_others(np.eye(5), 5), "there are 1 to 4"),
    "alignment, nothing": (lambda: geometry.alignment(ROWS[:0], ROWS[:0]), "pairs of vectors"),
    "alignment, lengths": (lambda: geometry.alignment(ROWS[:2], ROWS), "pairs of vectors"),
    "uniformity, one": (lambda: geometry.uniformity(ROWS[:1]), "at least two vectors"),
    "unit rows, zero": (lambda: geometry.unit_rows(ZERO), "row 2 has the length 0"),
    "mean cosine, infinite": (lambda: geometry.mean_cosine(INFINITE), "row 2 has the length inf"),
    "axes, infinite": (lambda: geometry.principal_axes(INFINITE), "finite numbers"),
    "logistic, NaN": (lambda: logistic.fit_logistic(X * np.nan, Y, [1.0]), "not a finite number"),
    "logistic, class": (lambda: logistic.fit_logistic(X, Y, [1.0], (Y == 0)[:, None]), "no row of class 1"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_wrong_argument_is_refused_by_name(case: str) -> None:
    call, words = MISTAKES[case]
    with pytest.raises(ValueError, match=words):
        call()
