"""Alignment, uniformity and mean cosine: their definitions computed plainly, known forms, and invariances."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import i0
from scipy.stats import ortho_group
from threadpoolctl import threadpool_limits

from stsbench.statistics import geometry as module
from stsbench.statistics.geometry import alignment, mean_cosine, row_norms, uniformity, unit_rows

Matrix = NDArray[Any]
SEEDS = st.integers(0, 10_000)


def random_vectors(seed: int, rows: int = 23, dimensions: int = 5) -> Matrix:
    rng = np.random.default_rng(seed)
    # Of all lengths, and not around zero: directions are what counts.
    return (rng.normal(size=(rows, dimensions)) + 0.5) * rng.uniform(0.1, 10, size=(rows, 1))


def plain_uniformity(vectors: Matrix, t: float = 2.0) -> float:
    """The definition: every pair i < j, one after the other."""
    units = vectors.astype(np.float64) / np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    values = [
        np.exp(-t * np.sum((units[i] - units[j]) ** 2))
        for i in range(len(units))
        for j in range(i + 1, len(units))
    ]
    return float(np.log(np.mean(values)))


@given(SEEDS, st.sampled_from([0.5, 2.0, 7.0]))
@settings(deadline=None, max_examples=25)
def test_uniformity_is_its_definition(seed: int, t: float) -> None:
    vectors = random_vectors(seed)
    assert uniformity(vectors, t=t) == pytest.approx(plain_uniformity(vectors, t), abs=1e-12)


@pytest.mark.parametrize("rows", [2, 7, 8, 9, 16, 30])
def test_blocks_count_every_pair_once(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAIR_ROWS", 8)
    vectors = random_vectors(1, rows)
    assert uniformity(vectors) == pytest.approx(plain_uniformity(vectors), abs=1e-12)


def test_float32_vectors_give_the_float64_value_to_a_millionth() -> None:
    vectors = random_vectors(3, 400, 64).astype(np.float32)
    assert uniformity(vectors) == pytest.approx(plain_uniformity(vectors), abs=1e-6)


def test_the_memory_of_uniformity_does_not_grow_with_the_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAIR_ROWS", 64)

    def peak(rows: int) -> int:
        vectors = random_vectors(0, rows, 8).astype(np.float32)
        tracemalloc.start()
        uniformity(vectors)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    # Each thread holds blocks of its own. Sixteen times the pairs: a matrix of all of them would take 64 MB.
    with threadpool_limits(1, "blas"):
        assert peak(4000) < 4 * peak(1000) < 4_000_000


@given(SEEDS)
@settings(deadline=None, max_examples=25)
def test_mean_cosine_is_its_definition(seed: int) -> None:
    units = unit_rows(random_vectors(seed))
    cosines = (units @ units.T)[np.triu_indices(len(units), 1)]
    assert mean_cosine(random_vectors(seed)) == pytest.approx(cosines.mean(), abs=1e-12)


@given(SEEDS)
@settings(deadline=None, max_examples=25)
def test_alignment_is_its_definition(seed: int) -> None:
    left, right = random_vectors(seed), random_vectors(seed + 1)
    each = [
        np.linalg.norm(u / np.linalg.norm(u) - v / np.linalg.norm(v)) for u, v in zip(left, right, strict=True)
    ]
    assert alignment(left, right) == pytest.approx(np.mean(np.square(each)), abs=1e-12)
    assert alignment(left, right, alpha=1) == pytest.approx(np.mean(each), abs=1e-12)


@given(SEEDS)
@settings(deadline=None, max_examples=25)
def test_rotation_scaling_and_order_change_nothing(seed: int) -> None:
    vectors, other = random_vectors(seed), random_vectors(seed + 1)
    rng = np.random.default_rng(seed)
    turn = ortho_group.rvs(vectors.shape[1], random_state=seed)
    scale = rng.uniform(0.01, 100, size=(len(vectors), 1))
    order = rng.permutation(len(vectors))
    changes: list[Any] = [lambda x: x @ turn, lambda x: x * scale, lambda x: x[order]]
    for change in changes:
        assert uniformity(change(vectors)) == pytest.approx(uniformity(vectors), abs=1e-9)
        assert mean_cosine(change(vectors)) == pytest.approx(mean_cosine(vectors), abs=1e-9)
        assert alignment(change(vectors), change(other)) == pytest.approx(alignment(vectors, other), abs=1e-9)


def test_orthonormal_vectors() -> None:
    # Every squared distance is 2.
    assert uniformity(np.eye(6)) == pytest.approx(-4.0, abs=1e-12)
    assert mean_cosine(np.eye(6)) == pytest.approx(0.0, abs=1e-12)
    assert alignment(np.eye(6), np.roll(np.eye(6), 1, axis=0)) == pytest.approx(2.0, abs=1e-12)


def test_one_repeated_vector() -> None:
    same = np.tile([3.0, -1.0, 2.0], (50, 1))
    assert uniformity(same) == pytest.approx(0.0, abs=1e-12)
    assert mean_cosine(same) == pytest.approx(1.0, abs=1e-12)
    assert alignment(same, same) == 0.0
    assert alignment(same, -same) == pytest.approx(4.0, abs=1e-12)


def test_vectors_uniform_on_the_circle() -> None:
    n = 5000
    angles = 2 * np.pi * np.arange(n) / n
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    # The mean of exp(4 cos a - 4) over the circle is I0(4) exp(-4); a vector is no pair with itself.
    expected = np.log((n * i0(4) * np.exp(-4) - 1) / (n - 1))
    assert uniformity(circle) == pytest.approx(expected, abs=1e-9)
    assert mean_cosine(circle) == pytest.approx(-1 / (n - 1), abs=1e-12)


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_a_vector_without_direction_is_refused_by_its_row(bad: float) -> None:
    vectors = np.ones((4, 3))
    vectors[2] = bad
    for refused in (uniformity, mean_cosine, row_norms, unit_rows):
        with pytest.raises(ValueError, match="row 2 has the length"):
            refused(vectors)


def test_too_few_vectors_are_refused() -> None:
    for refused in (uniformity, mean_cosine):
        with pytest.raises(ValueError, match="at least two vectors"):
            refused(np.ones((1, 3)))
    with pytest.raises(ValueError, match="expected pairs of vectors"):
        alignment(np.ones((0, 3)), np.ones((0, 3)))
    with pytest.raises(ValueError, match="expected pairs of vectors"):
        alignment(np.ones((2, 3)), np.ones((3, 3)))


def test_progress_ends_at_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAIR_ROWS", 8)
    told: list[tuple[str, int, int]] = []
    uniformity(random_vectors(0, 20), progress=lambda *step: told.append(step))
    assert told[-1] == ("uniformity", 190, 190)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
