"""Correlations against SciPy: of single samples, of many rows, and of tasks with subsets."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st

from stsbench.statistics.correlations import (
    CORRELATIONS,
    average_ranks,
    correlate_rows,
    partial_spearman,
    pearson,
    spearman,
)

SCIPY = {"spearman": scipy.stats.spearmanr, "pearson": scipy.stats.pearsonr, "kendall": scipy.stats.kendalltau}

tied = st.integers(-5, 5).map(lambda value: value / 5)
untied = st.floats(-1e3, 1e3, allow_subnormal=False)
pairs = st.lists(st.tuples(tied, st.one_of(tied, untied)), min_size=3, max_size=60)


@pytest.mark.parametrize("metric", CORRELATIONS)
@given(rows=pairs)
def test_a_correlation_is_scipys_symmetric_and_changes_sign_with_a_side(metric, rows):
    x, y = np.array(rows, dtype=np.float64).T
    assume(min(np.ptp(x), np.ptp(y)) > 1e-6)
    value = CORRELATIONS[metric](x, y)
    assert -1 <= value <= 1
    assert value == pytest.approx(SCIPY[metric](x, y).statistic, abs=1e-12)
    assert CORRELATIONS[metric](y, x) == pytest.approx(value, abs=1e-12)
    assert CORRELATIONS[metric](-x, y) == pytest.approx(-value, abs=1e-12)
    if metric != "pearson":
        assert CORRELATIONS[metric](x**3, y) == value


@pytest.mark.parametrize("metric", CORRELATIONS)
@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([], []),
        ([1.0], [2.0]),
        ([0.1, 0.1, 0.1], [1.0, 2.0, 3.0]),
        ([1.0, 2.0, 3.0], [0.1, 0.1, 0.1]),
        ([1.0, math.nan, 3.0], [1.0, 2.0, 3.0]),
        ([1.0, 2.0, 3.0], [1.0, math.inf, 3.0]),
    ],
)
def test_an_undefined_correlation_is_nan(metric, x, y):
    assert math.isnan(CORRELATIONS[metric](x, y))


@given(values=st.lists(st.one_of(tied, untied), max_size=60))
def test_ranks_are_scipys_of_each_row_alone_and_a_nan_makes_its_row_nan(values):
    assert average_ranks(values).tolist() == scipy.stats.rankdata(values).tolist()
    rows = np.random.default_rng(0).integers(0, 9, size=(7, 40)) / 3
    rows[2, 5] = np.nan
    assert np.array_equal(average_ranks(rows), scipy.stats.rankdata(rows, axis=1), equal_nan=True)
    assert average_ranks(np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_extreme_scales_neither_overflow_nor_vanish(scale):
    gold, sample = [1, 3, 2, 4], np.array([1.0, 2.0, 3.0, 4.0]) * scale
    assert pearson(sample, gold) == pytest.approx(0.8, abs=1e-12)
    np.testing.assert_allclose(correlate_rows(gold, sample[None]), np.full((2, 1), 0.8))


@pytest.mark.parametrize("values", [2, 5, 1000])
def test_many_rows_have_the_correlations_of_each(values):
    rng = np.random.default_rng(values)
    gold, samples = rng.integers(0, 11, 60) / 2, rng.integers(0, values, (7, 60)) / 7
    samples[1], samples[2, 5], samples[3, 7] = 1.0, np.nan, np.inf
    expected = [[correlate(gold, row) for row in samples] for correlate in (spearman, pearson)]
    np.testing.assert_allclose(correlate_rows(gold, samples), expected, atol=1e-12)
    assert np.isnan(correlate_rows(np.ones(60), samples)).all()


def triple(seed, n=40):
    rng = np.random.default_rng(seed)
    fixed = rng.integers(0, 8, size=n).astype(float)
    return fixed + rng.normal(size=n), 0.5 * fixed + rng.normal(size=n), fixed


@given(st.integers(0, 10_000))
def test_a_partial_correlation_is_that_of_the_residuals_of_the_ranks(seed):
    x, y, fixed = (scipy.stats.rankdata(values) for values in triple(seed))
    left = [values - np.polyval(np.polyfit(fixed, values, 1), fixed) for values in (x, y)]
    assert partial_spearman(*triple(seed)) == pytest.approx(scipy.stats.pearsonr(*left).statistic, abs=1e-10)


def test_a_partial_correlation_with_constants():
    x, y, fixed = triple(2)
    assert partial_spearman(x, y, np.full(len(x), 3.0)) == spearman(x, y)
    assert np.isnan(partial_spearman(x, np.ones(len(x)), fixed))
    assert np.isnan(partial_spearman(x, fixed, fixed))
