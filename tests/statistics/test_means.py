import math
from itertools import combinations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from stsbench.statistics.significance import compare_means, spread

values = st.lists(st.integers(0, 1000).map(lambda number: number / 10), min_size=2, max_size=6)


@given(values, values)
def test_welch_s_test_and_interval_are_those_of_his_formulas(first, second):
    found = compare_means(first, second, level=0.9)
    if np.ptp(first) == np.ptp(second) == 0:
        assert math.isnan(found.welch_p)
        return
    parts = np.array([np.var(side, ddof=1) / len(side) for side in (first, second)])
    freedom = parts.sum() ** 2 / (parts**2 / [len(first) - 1, len(second) - 1]).sum()
    student = scipy.stats.t(freedom)
    error = math.sqrt(parts.sum())
    assert found.welch_p == pytest.approx(2 * student.sf(abs(found.difference) / error), abs=1e-9)
    margin = student.ppf(0.95) * error
    assert (found.low, found.high) == pytest.approx((found.difference - margin, found.difference + margin))


@given(values, values)
def test_the_permutation_test_of_few_values_tries_every_split(first, second):
    # In whole tenths, so that no split misses the one found by the last bit.
    tenths = [round(10 * value) for value in (*first, *second)]
    size, total = len(first), len(tenths)

    def gap(members):
        inside = sum(tenths[place] for place in members)
        return abs((sum(tenths) - inside) * size - inside * (total - size))

    gaps = [gap(members) for members in combinations(range(total), size)]
    share = sum(other >= gap(range(size)) for other in gaps) / len(gaps)
    assert compare_means(first, second).permutation_p == pytest.approx(share)


def test_no_split_is_missed_by_the_last_bit():
    first, second = [75.1, 75.2, 75.3, 75.4, 75.5], [76.1, 76.2, 76.3, 76.4, 76.5]
    assert compare_means(first, second).permutation_p == 2 / 252
    assert compare_means(second, first).permutation_p == 2 / 252


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
