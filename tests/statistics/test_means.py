import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from stsbench.statistics.significance import compare_means, spread

values = st.lists(st.integers(0, 1000).map(lambda number: number / 10), min_size=2, max_size=6)


# SciPy warns of sets whose values are all alike, on which the two agree nevertheless.
@pytest.mark.filterwarnings("ignore:Precision loss")
@given(values, values)
def test_welch_s_test_and_interval_are_scipy_s(first, second):
    found = compare_means(first, second, level=0.9)
    if np.ptp(first) == np.ptp(second) == 0:
        assert math.isnan(found.welch_p)
        return
    test = scipy.stats.ttest_ind(second, first, equal_var=False)
    interval = test.confidence_interval(0.9)
    assert found.welch_p == pytest.approx(test.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


@given(values, values)
def test_the_permutation_test_of_few_values_is_exact(first, second):
    # SciPy misses a split as far apart as the one found if the last bit differs: whole numbers have no such bit.
    tenths = np.rint(10 * np.array(first)), np.rint(10 * np.array(second))
    exact = scipy.stats.permutation_test(
        tenths,
        lambda x, y, axis: np.abs(x.shape[axis] * y.sum(axis) - y.shape[axis] * x.sum(axis)),
        alternative="greater",
    )
    assert compare_means(first, second).permutation_p == pytest.approx(exact.pvalue)


def test_the_permutation_test_of_many_values_is_drawn_near_the_exact_one_and_seeded():
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=10), rng.normal(0.8, size=10)
    found = compare_means(first, second, seed=3)
    assert found == compare_means(first, second, seed=3)
    assert found.permutation_p != compare_means(first, second, seed=4).permutation_p
    assert found.permutation_p == pytest.approx(found.welch_p, abs=0.02)


def test_the_difference_is_the_second_less_the_first():
    found = compare_means([75.0, 76.0, 75.5], [77.0, 78.0, 77.5])
    assert found.difference == 2.0
    assert found.low < 2.0 < found.high


def test_a_single_value_has_no_standard_deviation():
    assert spread([75.5])[:2] == (1, 75.5)
    assert math.isnan(spread([75.5]).sd)
    with pytest.raises(ValueError, match="at least two"):
        compare_means([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="at least one"):
        spread([])
