"""The partial rank correlation against its definition by residuals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr, rankdata

from stsbench.statistics.correlations import partial_spearman, spearman


def triple(seed: int, n: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    fixed = rng.integers(0, 8, size=n).astype(float)
    return fixed + rng.normal(size=n), 0.5 * fixed + rng.normal(size=n), fixed


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=25)
def test_it_is_the_correlation_of_what_a_line_in_the_third_leaves_of_the_ranks(seed: int) -> None:
    x, y, fixed = (rankdata(values) for values in triple(seed))
    left = [values - np.polyval(np.polyfit(fixed, values, 1), fixed) for values in (x, y)]
    assert partial_spearman(*triple(seed)) == pytest.approx(pearsonr(*left).statistic, abs=1e-10)


def test_what_is_constant_is_held_fixed_already() -> None:
    x, y, _ = triple(2)
    same = np.full(len(x), 3.0)
    assert partial_spearman(x, y, same) == spearman(x, y)


def test_it_is_undefined_where_a_side_is_constant_or_is_the_third() -> None:
    x, _, fixed = triple(3)
    assert np.isnan(partial_spearman(x, np.ones(len(x)), fixed))
    assert np.isnan(partial_spearman(x, fixed, fixed))


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        partial_spearman([1, 2, 3], [1, 2], [1, 2, 3])
