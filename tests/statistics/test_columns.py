"""Many correlations at once are those one by one."""

import numpy as np
import pytest

from stsbench.statistics.correlations import Gold, correlate_rows, pearson, rank_rows, spearman


def one_by_one(gold: np.ndarray, samples: np.ndarray) -> tuple[list[float], list[float]]:
    return [spearman(gold, row) for row in samples], [pearson(gold, row) for row in samples]


@pytest.mark.parametrize("values", [2, 5, 1000])
def test_they_are_those_one_by_one_however_many_ties(values: int) -> None:
    rng = np.random.default_rng(values)
    gold, samples = rng.integers(0, 11, 60) / 2, rng.integers(0, values, (7, 60)) / 7
    np.testing.assert_allclose(correlate_rows(Gold.of(gold), samples), one_by_one(gold, samples), atol=1e-12)


def test_what_is_undefined_is_nan_and_leaves_the_others_alone() -> None:
    gold = np.array([0.0, 1.0, 2.0, 5.0])
    samples = np.array([[1.0, 1.0, 1.0, 1.0], [1.0, np.nan, 2.0, 3.0], [0.1, 0.2, 0.3, 0.9]])
    found = np.array(correlate_rows(Gold.of(gold), samples))
    assert np.isnan(found[:, :2]).all()
    np.testing.assert_allclose(found[:, 2], [1.0, pearson(gold, samples[2])])
    assert np.isnan(correlate_rows(Gold.of([3.0, 3.0, 3.0, 3.0]), samples)).all()


def test_neither_tiny_nor_huge_numbers_are_lost() -> None:
    gold, plain = [1.0, 2.0, 3.0, 4.0], np.array([1.0, 3.0, 2.0, 4.0])
    found = correlate_rows(Gold.of(gold), np.array([plain * 1e-200, plain * 1e200]))
    np.testing.assert_allclose(found, np.full((2, 2), 0.8))


def test_ties_at_the_end_of_one_row_do_not_run_into_the_next() -> None:
    assert rank_rows(np.array([[1.0, 2.0, 2.0], [2.0, 3.0, 4.0]])).tolist() == [[1, 2.5, 2.5], [1, 2, 3]]
