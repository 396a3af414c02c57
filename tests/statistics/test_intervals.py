"""Intervals and tests from a value and its variance: what they must hold, and where there are none."""

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
    lower_bound,
    plain_interval,
    share_interval,
    two_sided_p,
    upper_bound,
)

values = st.floats(-0.999, 0.999)
variances = st.floats(1e-8, 0.2)
dfs = st.floats(1.0, 1e6)


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


@pytest.mark.parametrize(("metric", "factor"), [("spearman", 1 + 0.8**2 / 2), ("pearson", 1.0)])
def test_few_pairs_have_at_least_the_width_of_bonett_and_wright(metric, factor):
    # Bonett and Wright (2000), equations 2 and 3: tanh(atanh(r) -+ z sqrt(factor / (n - 3))).
    reach = norm.ppf(0.975) * math.sqrt(factor / 7)
    limits = correlation_interval(0.8, known(1e-9, 9.0), pairs=10, metric=metric)
    assert limits[:2] == pytest.approx((math.tanh(math.atanh(0.8) - reach), math.tanh(math.atanh(0.8) + reach)))
    wider = correlation_interval(0.8, Variance(4e-9, 1e-9, 9.0), pairs=10, metric=metric)
    assert math.atanh(wider.high) - math.atanh(0.8) == pytest.approx(2 * reach)


@pytest.mark.parametrize("order", [[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]])
def test_five_pairs_in_perfect_order_have_no_interval_and_the_reason(order):
    gold = [1, 2, 3, 4, 5]
    terms = spearman_terms(gold, order)
    limits = correlation_interval(spearman(gold, order), variance(terms, Sharing.independent(5)), pairs=5)
    assert math.isnan(limits.low)
    assert math.isnan(limits.high)
    assert limits.reason == "perfect"


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
def test_where_there_is_no_interval_the_reason_is_said(value, var, pairs, reason):
    limits = correlation_interval(value, known(var), pairs)
    assert (limits.exists, limits.reason) == (False, reason)
    assert math.isnan(limits.low)


def test_of_few_pairs_the_interval_is_at_least_bonett_and_wrights_of_the_metric():
    # Constants and what is taken off n as in their table 1; the normal quantile for 95 %.
    for metric, constant, lost in (("spearman", 1.125, 3), ("pearson", 1.0, 3), ("kendall", 0.437, 4)):
        limits = correlation_interval(0.5, known(1e-9), 20, metric=metric)
        half = 1.959963984540054 * math.sqrt(constant / (20 - lost))
        assert limits.high == pytest.approx(math.tanh(math.atanh(0.5) + half))
    assert correlation_interval(0.5, known(0.1), 4).exists
    assert correlation_interval(0.5, known(0.1), 4, metric="kendall").reason == "few pairs"
    assert correlation_interval(0.5, known(0.1), 5, metric="kendall").exists


@given(st.floats(-0.1, 0.1), variances, dfs, st.floats(0.5, 0.999))
def test_the_p_value_is_below_one_less_the_level_exactly_where_the_interval_leaves_out_zero(value, var, df, level):
    limits = plain_interval(value, known(var, df), level)
    p = two_sided_p(value, known(var, df))
    if abs(p - (1 - level)) > 1e-9:
        assert (p < 1 - level) == (not limits.low <= 0 <= limits.high)


@given(values, variances, dfs, st.floats(0.6, 0.99))
def test_one_sided_bounds_are_the_ends_of_the_two_sided_interval_with_twice_the_risk(value, var, df, level):
    limits = plain_interval(value, known(var, df), 2 * level - 1)
    assert lower_bound(value, known(var, df), level) == pytest.approx(limits.low)
    assert upper_bound(value, known(var, df), level) == pytest.approx(limits.high)


def test_two_models_that_order_pairs_alike_have_the_p_value_one_and_no_interval():
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
    sharing = Sharing.of(np.arange(items) // cluster)
    share = float(answers.mean())
    limits = share_interval(share, variance(mean_terms(answers), sharing), items)
    assert limits.exists
    assert 0 <= limits.low <= share <= limits.high <= 1


def test_dependent_items_widen_the_interval_of_a_share():
    answers = np.repeat([1, 1, 1, 0], 10)
    apart = share_interval(0.75, variance(mean_terms(answers), Sharing.independent(40)), 40)
    together = share_interval(0.75, variance(mean_terms(answers), Sharing.of(np.arange(40) // 10)), 40)
    assert together.low < apart.low
    assert together.high > apart.high


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0])
def test_a_level_outside_zero_and_one_is_refused(level):
    for compute in (
        lambda: correlation_interval(0.5, known(0.01), 100, level),
        lambda: plain_interval(0.5, known(0.01), level),
        lambda: share_interval(0.5, known(0.01), 100, level),
        lambda: lower_bound(0.5, known(0.01), level),
    ):
        with pytest.raises(ValueError, match="level must be between 0 and 1"):
            compute()
