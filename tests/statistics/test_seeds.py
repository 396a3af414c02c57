"""Random generators, and means and bests over seeds."""

import math
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from stsbench.statistics.dependence import Sharing, Variance, covariance, variance
from stsbench.statistics.intervals import plain_interval
from stsbench.statistics.seeds import (
    Runs,
    best_of_below,
    best_of_quantiles,
    expected_best,
    generator,
    improvement,
    interaction_of,
    interquartile_mean,
    mean_variance,
    spread_factors,
)


def test_draws_depend_on_seed_and_names_and_not_on_the_process_or_the_release():
    keys = [(0, "T", "a"), (1, "T", "a"), (0, "U", "a"), (0, "Ta")]
    assert len({generator(*key).integers(2**32) for key in keys}) == 4
    draw = "generator(12345, 'STS16', 'postediting').integers(10**9)"
    code = f"from stsbench.statistics.seeds import generator\nprint({draw})"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(printed) == 173099328


@pytest.mark.parametrize(
    ("seed_sd", "pair_sd", "both_sd"), [(1.0, 0.0, 1.0), (0.1, 1.0, 1.0), (0.3, 3.0, 1.0), (0.0, 1.0, 4.0)]
)
def test_the_interval_of_a_mean_over_seeds_and_pairs_covers(seed_sd, pair_sd, both_sd):
    rng, pairs, trials, held, by_seeds = np.random.default_rng(0), 150, 1500, 0, 0
    sharing = Sharing.of(np.arange(pairs))
    for _ in range(trials):
        of_pairs, of_both = pair_sd * rng.normal(size=pairs), both_sd * rng.normal(size=(5, pairs))
        values = seed_sd * rng.normal(size=(5, 1)) + of_pairs + of_both
        terms = (values - values.mean(axis=1, keepdims=True)) / pairs
        scores = values.mean(axis=1)
        own = Runs(scores, interaction_of(covariance(terms, sharing)))
        found = mean_variance([own], variance(terms.mean(axis=0), sharing))
        limits = plain_interval(float(scores.mean()), Variance(found.value, found.value, found.df))
        held += limits.low <= 0 <= limits.high
        by_seeds += abs(scores.mean()) <= scipy.stats.t.ppf(0.975, 4) * scores.std(ddof=1) / math.sqrt(5)
    # The floors make intervals wide where a part is missing.
    assert 0.95 - 3 * math.sqrt(0.95 * 0.05 / trials) <= held / trials <= 0.99
    # The spread over seeds alone is not enough where the pairs vary.
    assert (by_seeds / trials < 0.9) == (pair_sd >= both_sd)


def test_without_pairs_the_difference_of_two_methods_is_welchs():
    one, other = np.array([1.0, 2.0, 4.0, 4.5]), np.array([2.0, 5.0, 9.0])
    found = mean_variance([Runs(one, 0.0), Runs(other, 0.0)], Variance(0.0, 0.0, math.nan))
    test = scipy.stats.ttest_ind(other, one, equal_var=False)
    assert found.df == pytest.approx(test.df)
    assert (other.mean() - one.mean()) / math.sqrt(found.value) == pytest.approx(test.statistic)


def test_summaries_of_runs_are_scipys():
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=6).round(1), rng.normal(0.5, size=5).round(1)
    assert improvement(one, other) == pytest.approx(scipy.stats.mannwhitneyu(other, one).statistic / 30)
    scores = rng.normal(size=(3, 12))
    assert interquartile_mean(scores) == pytest.approx(scipy.stats.trim_mean(scores, 0.25, axis=1))
    for runs in (2, 3, 10):
        ends = scipy.stats.chi2.ppf([0.975, 0.025], runs - 1)
        assert spread_factors(runs) == pytest.approx(tuple(np.sqrt((runs - 1) / ends)))


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=7))
def test_the_best_of_n_runs_is_that_of_all_subsets(scores):
    bests = [np.array([max(chosen) for chosen in combinations(scores, n)]) for n in range(1, len(scores) + 1)]
    assert expected_best(scores) == pytest.approx([best.mean() for best in bests], abs=1e-9)
    assert best_of_below(scores, 0.5) == pytest.approx([(best < 0.5).mean() for best in bests], abs=1e-9)
    medians = [np.sort(best)[math.ceil(len(best) / 2) - 1] for best in bests]
    assert best_of_quantiles(scores, 0.5).tolist() == medians
