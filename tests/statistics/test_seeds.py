"""Means over seeds and pairs: variances, and resampling whole runs."""

import math

import numpy as np
import pytest
import scipy.stats

from stsbench.statistics.dependence import Sharing, Variance, covariance, variance
from stsbench.statistics.intervals import plain_interval
from stsbench.statistics.seeds import (
    Runs,
    improvement,
    interaction_of,
    interquartile_mean,
    mean_variance,
    resampled_runs,
    spread_factors,
)

PAIRS = 150


def coverage(seed_sd: float, pair_sd: float, both_sd: float, runs: int, trials: int = 1500) -> float:
    """Return how often the interval of a method's mean, over other seeds and other pairs, holds 0."""
    rng = np.random.default_rng(0)
    sharing = Sharing.independent(PAIRS)
    held = 0
    for _ in range(trials):
        values = (
            seed_sd * rng.normal(size=(runs, 1))
            + pair_sd * rng.normal(size=PAIRS)
            + both_sd * rng.normal(size=(runs, PAIRS))
        )
        terms = (values - values.mean(axis=1, keepdims=True)) / PAIRS
        own = Runs(values.mean(axis=1), interaction_of(covariance(terms, sharing)))
        found = mean_variance([own], variance(terms.mean(axis=0), sharing))
        limits = plain_interval(float(values.mean()), Variance(found.value, found.value, found.df))
        held += limits.low <= 0 <= limits.high
    return held / trials


@pytest.mark.parametrize(
    ("seed_sd", "pair_sd", "both_sd"), [(1.0, 0.0, 1.0), (0.1, 1.0, 1.0), (0.3, 3.0, 1.0), (0.0, 1.0, 4.0)]
)
def test_the_interval_of_a_mean_over_seeds_and_pairs_holds(seed_sd: float, pair_sd: float, both_sd: float) -> None:
    share = coverage(seed_sd, pair_sd, both_sd, runs=5)
    # The floors make it wide where one part is missing.
    assert 0.95 - 3 * math.sqrt(0.95 * 0.05 / 1500) <= share <= 0.99


def test_seeds_alone_are_too_few_where_the_pairs_vary() -> None:
    # What would happen without the pairs: the test above is no matter of course.
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(500):
        values = 0.1 * rng.normal(size=(5, 1)) + rng.normal(size=PAIRS)
        scores = values.mean(axis=1)
        reach = scipy.stats.t.ppf(0.975, 4) * scores.std(ddof=1) / math.sqrt(5)
        held += abs(scores.mean()) <= reach
    assert held / 500 < 0.9


def test_the_parts_are_the_whole_and_the_interaction_counts_once() -> None:
    runs = Runs(np.array([1.0, 2.0, 4.0]), interaction=0.9)
    found = mean_variance([runs], Variance(0.8, 0.8, 50.0))
    assert found.value == pytest.approx(runs.scores.var(ddof=1) / 3 + 0.8 - 0.9 / 3)
    assert found.seeds + found.pairs + found.both == pytest.approx(found.value)
    assert found.share(found.seeds) + found.share(found.pairs) + found.share(found.both) == pytest.approx(1)


def test_without_pairs_the_difference_of_two_methods_is_tested_as_welch_does() -> None:
    one, other = np.array([1.0, 2.0, 4.0, 4.5]), np.array([2.0, 5.0, 9.0])
    found = mean_variance([Runs(one, 0.0), Runs(other, 0.0)], Variance(0.0, 0.0, math.nan))
    test = scipy.stats.ttest_ind(other, one, equal_var=False)
    assert found.df == pytest.approx(test.df)
    assert (other.mean() - one.mean()) / math.sqrt(found.value) == pytest.approx(test.statistic)


def test_one_run_has_no_spread() -> None:
    with pytest.raises(ValueError, match="at least two runs"):
        mean_variance([Runs(np.array([1.0]), 0.0)], Variance(1.0, 1.0, 10.0))


def test_the_improvement_is_mann_and_whitneys() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=6).round(1), rng.normal(0.5, size=5).round(1)
    expected = scipy.stats.mannwhitneyu(other, one).statistic / 30
    assert float(improvement(one, other)) == pytest.approx(expected)


def test_the_interquartile_mean_is_the_trimmed_one() -> None:
    values = np.random.default_rng(0).normal(size=(3, 12))
    assert interquartile_mean(values) == pytest.approx(scipy.stats.trim_mean(values, 0.25, axis=1))


def test_whole_runs_are_drawn_within_each_method() -> None:
    drawn = resampled_runs([5, 3], 100, np.random.default_rng(0))
    assert [places.shape for places in drawn] == [(100, 5), (100, 3)]
    assert {int(places.max()) for places in drawn} == {4, 2}


def test_two_runs_hardly_know_the_spread() -> None:
    for runs in (2, 3, 10):
        low, high = spread_factors(runs)
        ends = scipy.stats.chi2.ppf([0.975, 0.025], runs - 1)
        assert (low, high) == pytest.approx(tuple(np.sqrt((runs - 1) / ends)))
