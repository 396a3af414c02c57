"""Intervals, tests and power: their formulas, their properties, and their coverage on seeded draws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, t

from stsbench.statistics.correlations import spearman
from stsbench.statistics.dependence import Sharing, Variance, variance
from stsbench.statistics.influence import mean_terms, spearman_terms
from stsbench.statistics.intervals import (
    correlation_interval,
    detectable,
    lower_bound,
    plain_interval,
    seeds_needed,
    share_interval,
    two_sided_p,
    upper_bound,
)

values, variances, dfs = st.floats(-0.999, 0.999), st.floats(1e-8, 0.2), st.floats(1.0, 1e6)


def known(value, df=math.inf):
    return Variance(value, value, df)


@given(values, variances, dfs, st.integers(4, 5000))
def test_a_correlation_lies_inside_its_interval_and_the_interval_inside_the_possible(value, var, df, pairs):
    limits = correlation_interval(value, known(var, df), pairs)
    assert limits.exists
    assert -1 <= limits.low <= value <= limits.high <= 1


def test_a_correlation_interval_is_fishers_with_the_delta_method_and_student():
    limits = correlation_interval(0.6, known(0.0004, 40.0), pairs=2000)
    reach = t.ppf(0.975, 40) * 0.02 / (1 - 0.36)
    assert limits[:2] == pytest.approx((math.tanh(math.atanh(0.6) - reach), math.tanh(math.atanh(0.6) + reach)))


@pytest.mark.parametrize(
    ("metric", "constant", "lost"), [("spearman", 1 + 0.8**2 / 2, 3), ("pearson", 1.0, 3), ("kendall", 0.437, 4)]
)
def test_few_pairs_have_at_least_the_interval_of_bonett_and_wright(metric, constant, lost):
    # Bonett and Wright (2000), equations 2 and 3 and table 1.
    reach = norm.ppf(0.975) * math.sqrt(constant / (20 - lost))
    limits = correlation_interval(0.8, known(1e-9, 9.0), pairs=20, metric=metric)
    assert limits[:2] == pytest.approx((math.tanh(math.atanh(0.8) - reach), math.tanh(math.atanh(0.8) + reach)))
    wider = correlation_interval(0.8, Variance(4e-9, 1e-9, 9.0), pairs=20, metric=metric)
    assert math.atanh(wider.high) - math.atanh(0.8) == pytest.approx(2 * reach)
    assert correlation_interval(0.5, known(0.1), lost, metric=metric).reason == "few pairs"
    assert correlation_interval(0.5, known(0.1), lost + 1, metric=metric).exists


@pytest.mark.parametrize(
    ("value", "var", "pairs", "reason"),
    [
        (math.nan, 0.1, 10, "undefined"),
        (0.5, math.nan, 10, "undefined"),
        (0.5, 0.1, 3, "few pairs"),
        (1 - 1e-15, 0.0, 100, "perfect"),
        (0.5, 0.0, 100, "no spread"),
    ],
)
def test_a_missing_interval_has_a_reason(value, var, pairs, reason):
    limits = correlation_interval(value, known(var), pairs)
    assert (limits.exists, limits.reason) == (False, reason)
    assert np.isnan(limits[:2]).all()


@given(st.floats(-0.1, 0.1), variances, dfs, st.floats(0.6, 0.999))
def test_p_values_bounds_and_intervals_agree(value, var, df, level):
    spread = known(var, df)
    limits, p = plain_interval(value, spread, level), two_sided_p(value, spread)
    if abs(p - (1 - level)) > 1e-9:
        assert (p < 1 - level) == (not limits.low <= 0 <= limits.high)
    one_sided = plain_interval(value, spread, 2 * level - 1)
    assert lower_bound(value, spread, level) == pytest.approx(one_sided.low)
    assert upper_bound(value, spread, level) == pytest.approx(one_sided.high)


def test_models_that_rank_the_pairs_identically_have_p_value_one_and_no_interval():
    nothing = known(0.0, math.nan)
    assert two_sided_p(0.0, nothing) == 1.0
    assert math.isnan(two_sided_p(0.1, nothing))
    assert plain_interval(0.0, nothing).reason == "no spread"
    assert math.isnan(upper_bound(0.0, nothing))


@pytest.mark.parametrize(("right", "items"), [(8, 10), (1, 10), (470, 500)])
def test_the_interval_of_a_share_of_independent_items_is_wilsons(right, items):
    from statsmodels.stats.proportion import proportion_confint

    share = right / items
    limits = share_interval(share, known(share * (1 - share) / items), items)
    assert limits[:2] == pytest.approx(proportion_confint(right, items, method="wilson"))


@given(st.integers(1, 300), st.integers(0, 300), st.integers(1, 4))
def test_the_interval_of_a_share_exists_and_stays_inside_the_possible(items, right, cluster):
    answers = np.arange(items) < min(right, items)
    share, sharing = float(answers.mean()), Sharing.of(np.arange(items) // cluster)
    limits = share_interval(share, variance(mean_terms(answers), sharing), items)
    assert limits.exists
    assert 0 <= limits.low <= share <= limits.high <= 1


NO_PAIRS = known(0.0)


@pytest.mark.parametrize("difference", [0.3, 0.5, 1.0, 2.0])
def test_on_fixed_pairs_the_number_of_runs_is_statsmodels(difference):
    from statsmodels.stats.power import TTestIndPower

    expected = TTestIndPower().solve_power(difference, power=0.8, alpha=0.05)
    assert seeds_needed(difference, 1.0, NO_PAIRS) == math.ceil(expected)


def test_detectable_differences_and_needed_runs_have_the_stated_power():
    rng, trials = np.random.default_rng(0), 4000
    estimates = detectable(0.3) + 0.3 * rng.normal(size=100_000)
    assert (np.abs(estimates) > 1.96 * 0.3).mean() == pytest.approx(0.8, abs=0.005)
    runs = seeds_needed(1.0, 0.8, known(0.04, 100.0)) or 0
    scores = 0.8 * rng.normal(size=(2, trials, runs))
    error = np.sqrt(scores.var(axis=2, ddof=1).sum(axis=0) / runs + 0.04)
    gap = 1.0 + 0.2 * rng.normal(size=trials) + scores[1].mean(axis=1) - scores[0].mean(axis=1)
    assert (np.abs(gap) / error > 2.03).mean() == pytest.approx(0.8, abs=0.03)
    assert seeds_needed(0.5, 0.8, NO_PAIRS) < seeds_needed(0.5, 0.8, known(0.01, 100.0))
    assert seeds_needed(0.5, 0.8, known(0.2**2, 100.0)) is None
    assert seeds_needed(50.0, 1.0, NO_PAIRS) == 2


DRAWS, CORRELATION = 300, 0.8
TRUTH = 6 / math.pi * math.asin(CORRELATION / 2)


def stars():
    """Returns 90 stars of 4 pairs around a sentence, and the sentences with an effect: the centres."""
    hubs = np.arange(360) // 4
    return Sharing.of(hubs, 1000 + np.arange(360)), [hubs]


def chains():
    """Returns 30 chains of 12 pairs, each sharing a sentence with the next; all sentences have an effect."""
    first = np.arange(360) + np.arange(360) // 12
    return Sharing.of(first, first + 1), [first, first + 1]


def draw(effects, rng):
    """Returns (360,) dependent normal numbers with 0.8 of the variance due to the effects."""
    parts = [rng.normal(size=codes.max() + 1)[codes] for codes in effects]
    return math.sqrt(0.8 / len(effects)) * sum(parts) + math.sqrt(0.2) * rng.normal(size=360)


@pytest.mark.parametrize("graph", [stars, chains])
def test_with_shared_sentences_dependent_intervals_cover_and_tests_keep_their_size(graph):
    sharing, effects = graph()
    rng = np.random.default_rng(20)
    held, found = (dict.fromkeys(("dyadic", "components", "independent"), 0.0) for _ in range(2))
    for _ in range(DRAWS):
        gold = draw(effects, rng)
        one, other = (CORRELATION * gold + math.sqrt(1 - CORRELATION**2) * draw(effects, rng) for _ in range(2))
        scores = spearman(gold, one), spearman(gold, other)
        terms = spearman_terms(gold, one), spearman_terms(gold, other)
        for method in held:
            limits = correlation_interval(scores[0], variance(terms[0], sharing, method), pairs=360)
            held[method] += (limits.low <= TRUTH <= limits.high) / DRAWS
            difference = variance(terms[1] - terms[0], sharing, method)
            found[method] += (two_sided_p(scores[1] - scores[0], difference) < 0.05) / DRAWS
    for method in ("dyadic", "components"):  # the standard error of the simulation is 1.3 points
        assert 0.91 <= held[method] <= 0.985
        assert 0.015 <= found[method] <= 0.09
    if graph is stars:
        assert held["independent"] < 0.9
        assert found["independent"] > 0.1
