"""Tests of differences against published examples and libraries, and their size on seeded draws."""

import math
from itertools import combinations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from stsbench.statistics.correlations import pearson, spearman
from stsbench.statistics.dependence import Variance
from stsbench.statistics.estimate import Estimate, compare_means, holm, judge_loss, mcnemar, steiger, williams

correlations = st.floats(-0.95, 0.95)

DEPCOR = (0.3, 0.4, 0.5, 100)
SCHOOL = (0.7245, 0.7108, 0.8972, 15549)


@pytest.mark.parametrize(
    ("test", "arguments", "statistic", "tolerance"),
    [
        # Silver, Hittner and May (2006), DEPCOR, a FORTRAN 77 program for comparing dependent correlations.
        (williams, DEPCOR, -1.0767, 5e-5),
        (steiger, DEPCOR, -1.0718, 5e-5),
        # Steiger (1980), case A, prints -.8913 from a rounded covariance; the R package cocor gives this value.
        (steiger, (0.4, 0.5, 0.1, 103), -0.8887185, 5e-8),
        # cocor's output for three school subjects; the correlations are printed with four digits.
        (williams, SCHOOL, 5.5544, 0.03),
        (steiger, SCHOOL, 5.5498, 0.03),
    ],
)
def test_dependent_correlations_have_the_published_statistics(test, arguments, statistic, tolerance):
    assert test(*arguments).statistic == pytest.approx(statistic, abs=tolerance)


@pytest.mark.parametrize("test", [williams, steiger])
@given(first=correlations, second=correlations, between=correlations, size=st.integers(4, 10_000))
def test_swapping_the_models_changes_the_sign_and_keeps_the_p_value(test, first, second, between, size):
    one, other = test(first, second, between, size), test(second, first, between, size)
    assert one.statistic == pytest.approx(-other.statistic)
    assert one.p_value == pytest.approx(other.p_value)
    assert 0 <= one.p_value <= 1


@pytest.mark.parametrize("test", [williams, steiger])
def test_equal_correlations_do_not_differ_and_undefined_ones_have_no_test(test):
    assert test(0.8, 0.8, 1.0, 500) == test(0.8, 0.8, 0.5, 500) == (0.0, 1.0)
    for arguments in ((math.nan, 0.5, 0.5, 100), (0.5, 0.4, math.nan, 100), (0.5, 0.4, 0.3, 3)):
        assert math.isnan(test(*arguments).p_value)


def rejected(correlate, samples=1000, pairs=200, **options):
    """Returns how often each test rejects at 5 % if gold is equally correlated (0.8) with two models (0.86)."""
    rng = np.random.default_rng(5)
    p_values = np.empty((samples, 2))
    for row in p_values:
        gold, common, own, other = rng.normal(size=(4, pairs))
        a = 0.8 * gold + 0.6 * (math.sqrt(0.6) * common + math.sqrt(0.4) * own)
        b = 0.8 * gold + 0.6 * (math.sqrt(0.6) * common + math.sqrt(0.4) * other)
        found = correlate(a, gold), correlate(b, gold), correlate(a, b), pairs
        row[:] = [test(*found, **options).p_value for test in (williams, steiger)]
    return (p_values < 0.05).mean(axis=0)


def test_true_hypotheses_are_rejected_at_the_stated_rate_only_with_the_allowance_for_ranks():
    tolerance = 3 * math.sqrt(0.05 * 0.95 / 1000)
    assert rejected(pearson) == pytest.approx(0.05, abs=tolerance)
    assert rejected(spearman, ranks=True) == pytest.approx(0.05, abs=tolerance)
    assert (rejected(spearman) > 0.05 + tolerance).all()


def answers(only_first, only_second, both=3, neither=2):
    """Returns the right answers of two classifiers, with this many items of each kind."""
    first = np.repeat([True, False, True, False], [only_first, only_second, both, neither])
    second = np.repeat([False, True, True, False], [only_first, only_second, both, neither])
    return first, second


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 500))
def test_mcnemars_test_is_the_sign_test_of_the_discordant_items(only_first, only_second, neither):
    found = mcnemar(*answers(only_first, only_second, neither=neither))
    assert found[:2] == (only_first, only_second)
    below = scipy.stats.binom.cdf(min(only_first, only_second), only_first + only_second, 0.5)
    assert found.p_value == pytest.approx(min(1.0, 2 * below))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=10), st.floats(0.001, 0.5))
def test_holm_rejects_what_the_step_down_procedure_rejects(p_values, alpha):
    rejected = set()
    for step, place in enumerate(np.argsort(p_values, kind="stable")):
        if (len(p_values) - step) * p_values[place] > alpha:
            break
        rejected.add(int(place))
    adjusted = holm(p_values)
    assert {place for place, p in enumerate(adjusted) if p <= alpha} == rejected
    assert (adjusted >= p_values).all()
    assert (adjusted <= np.minimum(len(p_values) * np.array(p_values), 1)).all()


def test_holm_keeps_undefined_p_values_and_does_not_count_them():
    adjusted = holm([0.02, math.nan, 0.03])
    assert adjusted == pytest.approx([0.04, math.nan, 0.04], nan_ok=True)
    assert holm([]).tolist() == []


tenths = st.lists(st.integers(0, 1000), min_size=2, max_size=6)


@given(tenths, tenths)
def test_welchs_test_and_the_permutation_test_are_their_definitions(first, second):
    one, other = np.array(first) / 10, np.array(second) / 10
    found = compare_means(one, other, level=0.9)
    whole, size = [*first, *second], len(first)

    def gap(members):
        inside = sum(whole[place] for place in members)
        return abs((sum(whole) - inside) * size - inside * (len(whole) - size))

    gaps = [gap(members) for members in combinations(range(len(whole)), size)]
    assert found.permutation_p == pytest.approx(sum(other >= gap(range(size)) for other in gaps) / len(gaps))
    if np.ptp(first) == np.ptp(second) == 0:
        assert math.isnan(found.welch_p)
        return
    parts = np.array([np.var(side, ddof=1) / len(side) for side in (one, other)])
    freedom = parts.sum() ** 2 / (parts**2 / [len(first) - 1, len(second) - 1]).sum()
    student, error = scipy.stats.t(freedom), math.sqrt(parts.sum())
    assert found.welch_p == pytest.approx(2 * student.sf(abs(found.difference) / error), abs=1e-9)
    assert found.difference == pytest.approx(other.mean() - one.mean())
    margin = student.ppf(0.95) * error
    assert (found.low, found.high) == pytest.approx((found.difference - margin, found.difference + margin))


def test_the_permutation_test_of_many_values_is_sampled_near_the_exact_one_and_seeded():
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=10), rng.normal(0.8, size=10)
    found = compare_means(first, second, seed=3)
    assert found == compare_means(first, second, seed=3)
    assert found.permutation_p != compare_means(first, second, seed=4).permutation_p
    assert found.permutation_p == pytest.approx(found.welch_p, abs=0.02)


def test_the_verdict_on_a_loss_needs_a_spread_and_compares_its_bounds_with_the_margin() -> None:
    none, some = Variance(0.0, 0.0, float("nan")), Variance(1e-6, 1e-6, 100.0)
    verdicts = {
        (0.0, none): "within margin",
        (0.001, none): "undecided",
        (float("nan"), some): "undecided",
        (0.003, some): "within margin",
        (0.0045, some): "undecided",
        (0.007, some): "worse",
    }
    for (loss, spread), expected in verdicts.items():
        assert judge_loss(Estimate(loss, spread), 0.005)[0] == expected
    bounds = judge_loss(Estimate(0.0045, some), 0.005, 0.95, 0.99)[1:]
    assert bounds == pytest.approx([0.0045 - 0.00236, 0.0045 + 0.00166], abs=1e-5)
