"""Singular values against SciPy's, the summary numbers against their closed forms and definitions."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import ortho_group

from stsbench.statistics import geometry
from stsbench.statistics.geometry import (
    effective_rank,
    iso_score,
    partition_isotropy,
    principal_axes,
    top_share,
)

SEEDS = st.integers(0, 10_000)


def singular_values(vectors: NDArray[np.float64], *, centred: bool = False) -> NDArray[np.float64]:
    return principal_axes(vectors)[centred].values


@given(SEEDS, st.booleans())
@settings(deadline=None, max_examples=25)
def test_singular_values_are_scipys(seed: int, centred: bool) -> None:
    vectors = np.random.default_rng(seed).normal(size=(30, 7)) + 1
    matrix = vectors - vectors.mean(axis=0) if centred else vectors
    assert singular_values(vectors, centred=centred) == pytest.approx(scipy.linalg.svdvals(matrix), abs=1e-12)


@pytest.mark.parametrize(("n", "d"), [(1, 3), (4, 7), (30, 7), (7, 7), (8, 7)])
@pytest.mark.parametrize("at_once", [5, 2048])
def test_principal_axes_are_a_whole_decomposition(
    n: int, d: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(geometry, "_SPECTRUM_ROWS", at_once)
    vectors = np.random.default_rng(n).normal(size=(n, d)) + 2
    matrices = vectors, vectors - vectors.mean(axis=0)
    for axes, matrix in zip(principal_axes(vectors), matrices, strict=True):
        assert axes.values == pytest.approx(scipy.linalg.svdvals(matrix), abs=1e-12)
        assert axes.directions.T @ axes.directions == pytest.approx(np.eye(d), abs=1e-12)
        squares = np.zeros(d)
        squares[: len(axes.values)] = axes.values**2
        assert (axes.directions * squares) @ axes.directions.T == pytest.approx(matrix.T @ matrix, abs=1e-10)


@given(SEEDS)
@settings(deadline=None, max_examples=25)
def test_rotation_and_order_change_no_number_and_scaling_none_but_the_singular_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Of different spread along each direction: otherwise the principal directions are not fixed.
    vectors = rng.normal(size=(40, 5)) * [5, 4, 3, 2, 1] * 0.1 + 0.1
    turned = vectors @ ortho_group.rvs(5, random_state=seed)
    shuffled = vectors[rng.permutation(40)]
    values = singular_values(vectors, centred=True)
    for other in (turned, shuffled):
        assert singular_values(other, centred=True) == pytest.approx(values, abs=1e-10)
        assert partition_isotropy(other) == pytest.approx(partition_isotropy(vectors), abs=1e-9)
    for scaled in (3 * values, 1e-3 * values):
        assert effective_rank(scaled) == pytest.approx(effective_rank(values))
        assert iso_score(scaled, 5) == pytest.approx(iso_score(values, 5))
        assert top_share(scaled, 2) == pytest.approx(top_share(values, 2))


def test_orthonormal_vectors_use_every_direction() -> None:
    values = singular_values(np.eye(8))
    assert values == pytest.approx(np.ones(8))
    assert effective_rank(values) == pytest.approx(8)
    assert top_share(values, 2) == pytest.approx(2 / 8)
    both = np.vstack([np.eye(8), -np.eye(8)])
    assert iso_score(singular_values(both, centred=True), 8) == pytest.approx(1)
    assert partition_isotropy(both) == pytest.approx(1)


def test_one_repeated_vector_uses_one_direction() -> None:
    same = np.tile([3.0, 4.0, 0.0], (20, 1))
    values = singular_values(same)
    assert effective_rank(values) == pytest.approx(1, abs=1e-12)
    assert top_share(values, 1) == pytest.approx(1)
    # Z(c) is 20 exp(5) along the vector and 20 exp(-5) against it.
    assert partition_isotropy(same) == pytest.approx(np.exp(-10))
    # Nothing is left when the mean is taken out.
    assert np.isnan(effective_rank(np.zeros(3)))
    assert np.isnan(top_share(np.zeros(3), 1))
    assert np.isnan(iso_score(np.zeros(3), 3))


def test_the_circle_uses_its_two_directions_alike() -> None:
    angles = 2 * np.pi * np.arange(100) / 100
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    values = singular_values(circle, centred=True)
    assert values == pytest.approx([np.sqrt(50), np.sqrt(50)])
    assert effective_rank(values) == pytest.approx(2)
    assert iso_score(values, 2) == pytest.approx(1)
    assert partition_isotropy(circle) == pytest.approx(1)


@pytest.mark.parametrize("used", [1, 2, 5, 10])
def test_iso_score_is_the_share_of_dimensions_in_use(used: int) -> None:
    # Rudman et al. (2022): k of n dimensions in uniform use give (k - 1) / (n - 1).
    assert iso_score(np.ones(used), 10) == pytest.approx((used - 1) / 9)


def test_iso_score_is_the_papers_algorithm() -> None:
    vectors = np.random.default_rng(4).normal(size=(500, 6)) * [3, 2, 2, 1, 1, 0.2]
    # Steps 2 to 7 of algorithm 1, written out: PCA, the diagonal of the covariance, the defect, the score.
    _, axes = np.linalg.eigh(np.cov(vectors, rowvar=False))
    diagonal = np.diag(np.cov(vectors @ axes, rowvar=False))
    n = 6
    scaled = np.sqrt(n) * diagonal / np.linalg.norm(diagonal)
    defect = np.linalg.norm(scaled - np.ones(n)) / np.sqrt(2 * (n - np.sqrt(n)))
    share = (n - defect**2 * (n - np.sqrt(n))) ** 2 / n**2
    assert iso_score(singular_values(vectors, centred=True), n) == pytest.approx((n * share - 1) / (n - 1))


def test_partition_isotropy_is_its_definition() -> None:
    vectors = np.random.default_rng(5).normal(size=(60, 4)) * [1, 0.8, 0.5, 0.2] + 0.3
    _, _, axes = np.linalg.svd(vectors)
    sums = [np.exp(sign * vectors @ axis).sum() for axis in axes for sign in (1, -1)]
    assert partition_isotropy(vectors) == pytest.approx(min(sums) / max(sums))


def test_what_is_no_matrix_of_numbers_is_refused() -> None:
    for bad in (np.ones(3), np.ones((0, 3)), np.array([[1.0, np.nan]])):
        for refused in (principal_axes, partition_isotropy):
            with pytest.raises(ValueError, match="expected a matrix of finite numbers"):
                refused(bad)
