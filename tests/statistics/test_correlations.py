import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import stdtrit

from stsbench.statistics.correlations import CORRELATIONS, average_ranks, kendall, pearson, rank_rows, spearman
from stsbench.statistics.intervals import tail

SCIPY = {
    "spearman": scipy.stats.spearmanr,
    "pearson": scipy.stats.pearsonr,
    "kendall": scipy.stats.kendalltau,
}

tied = st.integers(-5, 5).map(lambda value: value / 5)
untied = st.floats(-1e3, 1e3, allow_subnormal=False)
pairs = st.lists(st.tuples(tied, st.one_of(tied, untied)), min_size=3, max_size=60)


def columns(rows):
    x, y = np.array(rows, dtype=np.float64).T
    assume(np.ptp(x) > 1e-6)
    assume(np.ptp(y) > 1e-6)
    return x, y


@pytest.mark.parametrize("metric", CORRELATIONS)
@given(rows=pairs)
def test_agrees_with_scipy_on_data_with_ties(metric, rows):
    x, y = columns(rows)
    assert CORRELATIONS[metric](x, y) == pytest.approx(SCIPY[metric](x, y).statistic, abs=1e-12)


@given(values=st.lists(st.one_of(tied, untied), max_size=60))
def test_ranks_agree_with_scipy(values):
    assert average_ranks(values).tolist() == scipy.stats.rankdata(values).tolist()


def test_ranks_with_a_nan_are_all_nan():
    assert np.isnan(average_ranks([1.0, math.nan, 2.0])).all()


@given(rows=pairs)
def test_spearman_and_kendall_only_see_the_order(rows):
    x, y = columns(rows)
    assert spearman(x**3, y) == spearman(x, y)
    assert kendall(np.exp(x), y) == kendall(x, y)


@given(rows=pairs, scale=st.floats(0.1, 100), shift=st.floats(-10, 10))
def test_pearson_does_not_see_scale_and_shift(rows, scale, shift):
    x, y = columns(rows)
    assert pearson(scale * x + shift, y) == pytest.approx(pearson(x, y), abs=1e-9)


@pytest.mark.parametrize("metric", CORRELATIONS)
@given(rows=pairs)
def test_is_symmetric_changes_sign_with_a_side_and_stays_within_one(metric, rows):
    x, y = columns(rows)
    value = CORRELATIONS[metric](x, y)
    assert -1 <= value <= 1
    assert CORRELATIONS[metric](y, x) == pytest.approx(value, abs=1e-12)
    assert CORRELATIONS[metric](-x, y) == pytest.approx(-value, abs=1e-12)


def test_spearman_without_ties_is_the_textbook_formula():
    x, y = np.arange(1.0, 9.0), np.array([2.0, 1.0, 4.0, 3.0, 8.0, 5.0, 7.0, 6.0])
    assert spearman(x, y) == pytest.approx(1 - 6 * np.sum((x - y) ** 2) / (8 * 63), abs=1e-15)


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
def test_what_is_undefined_is_nan(metric, x, y):
    assert math.isnan(CORRELATIONS[metric](x, y))


@pytest.mark.parametrize("metric", CORRELATIONS)
@pytest.mark.parametrize(("x", "y"), [([1, 2, 3], [1, 2]), ([[1, 2], [3, 4]], [[1, 2], [3, 4]])])
def test_samples_of_different_shape_are_refused(metric, x, y):
    with pytest.raises(ValueError, match="one length"):
        CORRELATIONS[metric](x, y)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_pearson_survives_extreme_scales(scale):
    assert pearson(np.array([1.0, 2.0, 3.0, 4.0]) * scale, [1, 3, 2, 4]) == pytest.approx(0.8, abs=1e-12)


def test_rows_are_ranked_as_scipy_ranks_them() -> None:
    rows = np.random.default_rng(0).integers(0, 9, size=(7, 40)) / 3
    rows[2, 5] = np.nan
    assert np.array_equal(rank_rows(rows), scipy.stats.rankdata(rows, axis=1), equal_nan=True)
    assert rank_rows(np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("df", [1.0, 7.3, 250.0, math.inf])
def test_p_values_of_pairs_are_those_of_scipys_distributions_to_the_last_bit(df: float) -> None:
    values = np.array([0.0, -0.3, 1.96, 12.5, -40.0])
    tails = scipy.stats.norm.sf(np.abs(values)) if math.isinf(df) else scipy.stats.t.sf(np.abs(values), df)
    assert np.array_equal(2 * tail(np.abs(values), df), 2 * tails)
    assert np.array_equal(stdtrit(df, [0.975, 0.6]), scipy.stats.t.ppf([0.975, 0.6], df)) or math.isinf(df)
