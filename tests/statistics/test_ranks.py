"""Ranks, rank intervals and groups of scores that were estimated together."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from stsbench.statistics.ranks import Ranking, covariance_root, group_letters, rank_scores


@given(st.integers(2, 7), st.randoms(use_true_random=False))
def test_two_share_a_letter_exactly_if_they_do_not_differ(size: int, random: object) -> None:
    apart = np.zeros((size, size), dtype=bool)
    for one, other in combinations(range(size), 2):
        apart[one, other] = apart[other, one] = random.random() < 0.5  # type: ignore[attr-defined]
    letters = group_letters(apart, np.arange(size, dtype=float))
    for one, other in combinations(range(size), 2):
        assert bool(set(letters[one]) & set(letters[other])) != apart[one, other]
    assert all(letters)


def test_no_group_lies_inside_another_and_the_first_letter_is_of_the_highest() -> None:
    apart = np.array([[0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]])
    assert group_letters(apart, [1.0, 2.0, 3.0, 4.0]) == (("b",), ("a", "b"), ("a", "b"), ("a",))


def test_more_groups_than_letters_are_numbered_and_share_nothing() -> None:
    size = 60
    apart = ~np.eye(size, dtype=bool)
    letters = group_letters(apart, -np.arange(size, dtype=float))
    assert letters == tuple((str(number),) for number in range(1, size + 1))


TIED = np.array([3.0, 3.0, 3.0, 2.0, 2.0, 0.0])
LOWEST, HIGHEST = np.array([1, 1, 1, 4, 4, 6]), np.array([3, 3, 3, 5, 5, 6])


def ranked(scores: ArrayLike, covariance: ArrayLike, **how: Any) -> Ranking:
    """Returns the ranking of scores with normal errors."""
    values, matrix, root = np.asarray(scores), np.asarray(covariance), covariance_root(covariance)
    errors = np.linalg.norm(root[:, None] - root[None, :], axis=2)
    z = np.divide(values[:, None] - values[None, :], errors, out=np.zeros_like(errors), where=errors > 1e-9)
    return rank_scores(values, matrix, 2 * norm.sf(np.abs(z)), root, **how)


def covered(*, simultaneous: bool, spread: float, trials: int = 300) -> NDArray[np.bool_]:
    """Returns (trials, m) whether each rank interval has all ranks that a tied model has."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(len(TIED), len(TIED))) * spread
    covariance = root @ root.T + np.eye(len(TIED)) * 0.05 * spread**2
    held = []
    for trial in range(trials):
        scores = TIED + rng.multivariate_normal(np.zeros(len(TIED)), covariance)
        ranking = ranked(scores, covariance, simultaneous=simultaneous, draws=250, seed=trial)
        held.append((ranking.best <= LOWEST) & (ranking.worst >= HIGHEST))
    return np.array(held)


# Three standard errors of a share of 0.95 in 300 trials.
ERROR = 3 * np.sqrt(0.95 * 0.05 / 300)


@pytest.mark.parametrize("spread", [0.1, 0.5])
def test_rank_intervals_of_tied_models_hold(spread: float) -> None:
    assert (covered(simultaneous=False, spread=spread).mean(axis=0) >= 0.95 - ERROR).all()
    together = covered(simultaneous=True, spread=spread)
    assert together.all(axis=1).mean() >= 0.95 - ERROR


def test_equal_models_are_told_apart_in_one_of_twenty_samples() -> None:
    # A correction that never rejects would hold, too: here every difference is chance.
    rng = np.random.default_rng(1)
    found = [(ranked(rng.normal(size=5), np.eye(5), draws=400, seed=seed).p < 0.05).any() for seed in range(500)]
    assert np.mean(found) == pytest.approx(0.05, abs=ERROR)


def test_the_largest_difference_has_the_p_value_of_the_largest_draw_and_steps_down_from_there() -> None:
    scores, errors = np.array([0.0, 1.0, 4.0]), np.sqrt(2)
    p = ranked(scores, np.eye(3), draws=20_000).p
    draws = np.random.default_rng(3).normal(size=(200_000, 3))
    z = np.abs(draws[:, [0, 0, 1]] - draws[:, [1, 2, 2]]) / errors
    assert p[0, 2] == pytest.approx((z.max(axis=1) >= 4 / errors).mean(), abs=0.003)
    assert p[1, 2] == pytest.approx((z[:, [0, 2]].max(axis=1) >= 3 / errors).mean(), abs=0.006)
    assert p[0, 1] == pytest.approx((z[:, 0] >= 1 / errors).mean(), abs=0.015)


def test_a_covariance_that_is_none_is_cut_off() -> None:
    matrix = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    assert np.linalg.eigvalsh(matrix).min() < 0
    root = covariance_root(matrix)
    values, vectors = np.linalg.eigh(matrix)
    assert root @ root.T == pytest.approx(vectors @ np.diag(values.clip(0)) @ vectors.T)
    assert np.isfinite(ranked([1.0, 2.0, 3.0], matrix).p).all()


def test_models_that_order_all_pairs_alike_are_one_group_and_share_the_first_place() -> None:
    ranking = ranked([1.0, 1.0, -50.0], [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert ranking.letters == (("a",), ("a",), ("b",))
    assert ranking.rank.tolist() == [1, 1, 3]
    assert ranking.first.tolist() == [0.5, 0.5, 0.0]
