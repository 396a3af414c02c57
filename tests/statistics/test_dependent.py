"""Williams' and Steiger's tests against published worked examples and what they must hold."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stsbench.statistics.correlations import pearson, spearman
from stsbench.statistics.significance import steiger, williams

correlations = st.floats(-0.95, 0.95)

DEPCOR = (0.3, 0.4, 0.5, 100)
"""Silver, Hittner and May (2006), DEPCOR: a FORTRAN 77 program for comparing dependent correlations."""


def test_williams_gives_the_value_of_depcor():
    test = williams(*DEPCOR)
    assert (round(test.statistic, 4), round(test.p_value, 4)) == (-1.0767, 0.2843)


def test_steiger_gives_the_value_of_depcor():
    test = steiger(*DEPCOR)
    assert (round(test.statistic, 4), round(test.p_value, 4)) == (-1.0718, 0.2838)


def test_steiger_gives_the_worked_example_of_its_paper():
    # Steiger (1980), case A on page 249, prints -.8913, having rounded the covariance to .0042; the R package
    # cocor (Diedenhofen and Musch 2015) gives -0.8887185 for the same input.
    assert steiger(0.4, 0.5, 0.1, 103).statistic == pytest.approx(-0.8887185, abs=5e-8)


def test_both_give_what_cocor_gives_for_close_and_high_correlations():
    # cocor's output for three school subjects of 15549 pupils; the correlations are printed with four digits,
    # hence the tolerance.
    args = (0.7245, 0.7108, 0.8972, 15549)
    assert williams(*args).statistic == pytest.approx(5.5544, abs=0.03)
    assert steiger(*args).statistic == pytest.approx(5.5498, abs=0.03)


@pytest.mark.parametrize("test", [williams, steiger])
@given(first=correlations, second=correlations, between=correlations, size=st.integers(4, 10_000))
def test_exchanging_the_two_turns_the_sign_and_keeps_the_p_value(test, first, second, between, size):
    one, other = test(first, second, between, size), test(second, first, between, size)
    assert one.statistic == pytest.approx(-other.statistic)
    assert one.p_value == pytest.approx(other.p_value)
    assert 0 <= one.p_value <= 1


@pytest.mark.parametrize("test", [williams, steiger])
def test_equal_correlations_do_not_differ_even_of_one_and_the_same_model(test):
    assert test(0.8, 0.8, 1.0, 500) == (0.0, 1.0)
    assert test(0.8, 0.8, 0.5, 500) == (0.0, 1.0)


@pytest.mark.parametrize("test", [williams, steiger])
def test_undefined_correlations_and_too_few_pairs_have_no_test(test):
    assert math.isnan(test(math.nan, 0.5, 0.5, 100).p_value)
    assert math.isnan(test(0.5, 0.4, math.nan, 100).p_value)
    assert math.isnan(test(0.5, 0.4, 0.3, 3).p_value)


def rejected(correlate, samples=1000, pairs=200, **options):
    """Return how often each test rejects at 5 % where gold is equally correlated (0.8) with two models (0.86)."""
    rng = np.random.default_rng(5)
    p_values = np.empty((samples, 2))
    for row in p_values:
        gold, common, own, other = rng.normal(size=(4, pairs))
        a = 0.8 * gold + 0.6 * (math.sqrt(0.6) * common + math.sqrt(0.4) * own)
        b = 0.8 * gold + 0.6 * (math.sqrt(0.6) * common + math.sqrt(0.4) * other)
        found = correlate(a, gold), correlate(b, gold), correlate(a, b), pairs
        row[:] = [test(*found, **options).p_value for test in (williams, steiger)]
    return (p_values < 0.05).mean(axis=0)


TOLERANCE = 3 * math.sqrt(0.05 * 0.95 / 1000)


def test_under_the_hypothesis_pearson_is_rejected_as_often_as_it_should_be():
    assert rejected(pearson) == pytest.approx(0.05, abs=TOLERANCE)


def test_under_the_hypothesis_spearman_is_rejected_as_often_as_it_should_be():
    assert rejected(spearman, ranks=True) == pytest.approx(0.05, abs=TOLERANCE)


def test_without_the_allowance_for_ranks_high_correlations_are_rejected_too_often():
    assert (rejected(spearman) > 0.05 + TOLERANCE).all()
