"""Geometry of vectors: definitions computed plainly, closed forms, invariances; and reproducible threads."""

import threading

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group, skew
from threadpoolctl import ThreadpoolController, threadpool_limits

from stsbench.statistics import geometry
from stsbench.statistics.geometry import (
    alignment,
    effective_rank,
    iso_score,
    mean_cosine,
    mean_cosine_by_dimension,
    partition_isotropy,
    principal_axes,
    top_share,
    uniformity,
    unit_rows,
)
from stsbench.statistics.neighbours import directions, hubness, in_threads, nearest, nearest_others


def random_vectors(seed, rows=23, dimensions=5):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(rows, dimensions)) + 0.5) * rng.uniform(0.1, 10, size=(rows, 1))


def isotropy(vectors):
    return partition_isotropy(vectors, principal_axes(vectors))


def plain_uniformity(vectors):
    units = unit_rows(vectors)
    first, second = np.triu_indices(len(units), 1)
    return np.log(np.mean(np.exp(-2 * ((units[first] - units[second]) ** 2).sum(axis=1))))


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=25)
def test_numbers_of_pairs_are_their_definitions_and_do_not_change_with_rotation_scale_and_order(seed):
    vectors, other = random_vectors(seed), random_vectors(seed + 1)
    units, others = unit_rows(vectors), unit_rows(other)
    assert uniformity(vectors) == pytest.approx(plain_uniformity(vectors), abs=1e-12)
    first, second = np.triu_indices(23, 1)
    of_dimensions = (units[first] * units[second]).mean(axis=0)
    assert mean_cosine_by_dimension(units) == pytest.approx(of_dimensions, abs=1e-12)
    assert mean_cosine(vectors) == pytest.approx(of_dimensions.sum(), abs=1e-12)
    assert alignment(vectors, other) == pytest.approx(((units - others) ** 2).sum(axis=1).mean(), abs=1e-12)
    rng = np.random.default_rng(seed)
    turn, order = ortho_group.rvs(5, random_state=seed), rng.permutation(23)
    scale = rng.uniform(0.01, 100, size=(23, 1))
    for change in (lambda x: x @ turn, lambda x: x * scale, lambda x: x[order]):
        assert uniformity(change(vectors)) == pytest.approx(uniformity(vectors), abs=1e-9)
        assert mean_cosine(change(vectors)) == pytest.approx(mean_cosine(vectors), abs=1e-9)
        assert alignment(change(vectors), change(other)) == pytest.approx(alignment(vectors, other), abs=1e-9)


@pytest.mark.parametrize("rows", [2, 7, 8, 9, 16, 30])
def test_blocks_count_every_pair_once(rows, monkeypatch):
    monkeypatch.setattr(geometry, "_PAIR_ROWS", 8)
    vectors = random_vectors(1, rows)
    found = uniformity(vectors)
    assert found == pytest.approx(plain_uniformity(vectors), abs=1e-12)
    assert uniformity(vectors.astype(np.float32)) == pytest.approx(found, abs=1e-6)
    assert mean_cosine(vectors) == pytest.approx(mean_cosine_by_dimension(unit_rows(vectors)).sum())


@pytest.mark.parametrize(("n", "d"), [(1, 3), (4, 7), (30, 7), (7, 7), (8, 7)])
def test_principal_axes_are_a_singular_value_decomposition(n, d):
    matrix = np.random.default_rng(n).normal(size=(n, d)) + 2
    axes = principal_axes(matrix)
    assert axes.values == pytest.approx(scipy.linalg.svdvals(matrix), abs=1e-12)
    assert axes.directions.T @ axes.directions == pytest.approx(np.eye(d), abs=1e-12)
    squares = np.pad(axes.values**2, (0, d - len(axes.values)))
    assert (axes.directions * squares) @ axes.directions.T == pytest.approx(matrix.T @ matrix, abs=1e-10)


def test_known_forms_of_spectra():
    angles = 2 * np.pi * np.arange(100) / 100
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    for matrix, size in ((np.vstack([np.eye(8), -np.eye(8)]), 8), (circle, 2)):
        values = principal_axes(matrix).values
        assert (effective_rank(values), top_share(values, 1)) == pytest.approx((size, 1 / size))
        assert (iso_score(values, size), isotropy(matrix)) == pytest.approx((1, 1))
    same = np.tile([3.0, 4.0, 0.0], (20, 1))
    values = principal_axes(same).values
    assert (effective_rank(values), top_share(values, 1)) == pytest.approx((1, 1))
    # Z(c) is 20 exp(5) along the vector and 20 exp(-5) against it.
    assert isotropy(same) == pytest.approx(np.exp(-10))
    assert np.isnan([effective_rank(np.zeros(3)), top_share(np.zeros(3), 1), iso_score(np.zeros(3), 3)]).all()
    # Rudman et al. (2022): k of n dimensions in uniform use give (k - 1) / (n - 1).
    assert [iso_score(np.ones(k), 10) for k in (1, 2, 5, 10)] == pytest.approx([0, 1 / 9, 4 / 9, 1])


def test_iso_score_and_partition_isotropy_are_their_definitions():
    vectors = np.random.default_rng(4).normal(size=(500, 6)) * [3, 2, 2, 1, 1, 0.2]
    # Algorithm 1 of Rudman et al. (2022), steps 2 to 7.
    _, axes = np.linalg.eigh(np.cov(vectors, rowvar=False))
    diagonal, n = np.diag(np.cov(vectors @ axes, rowvar=False)), 6
    defect = np.linalg.norm(np.sqrt(n) * diagonal / np.linalg.norm(diagonal) - 1) / np.sqrt(2 * (n - np.sqrt(n)))
    share = (n - defect**2 * (n - np.sqrt(n))) ** 2 / n**2
    centred = principal_axes(vectors - vectors.mean(axis=0)).values
    assert iso_score(centred, n) == pytest.approx((n * share - 1) / (n - 1))
    _, _, axes = np.linalg.svd(vectors)
    sums = [np.exp(sign * vectors @ axis).sum() for axis in axes for sign in (1, -1)]
    assert isotropy(vectors) == pytest.approx(min(sums) / max(sums))


def plain_nearest(units, k):
    cosines = np.round(units @ units.T, 9)
    np.fill_diagonal(cosines, -2)
    return np.argsort(-cosines, axis=1, kind="stable")[:, :k]


@pytest.mark.parametrize(("n", "k"), [(2, 1), (12, 11), (17, 10), (300, 10), (700, 1), (700, 40)])
def test_the_nearest_others_are_those_of_a_full_sort_even_if_nearly_equal(n, k):
    rng = np.random.default_rng(n + k)
    close = unit_rows(rng.normal(size=(1, 9)) + 3e-3 * rng.normal(size=(n, 9)))
    for units in (directions(rng.normal(size=(n, 9)) + 0.3).units, close):
        found = nearest_others(units, k)
        assert found.rows.tolist() == plain_nearest(units, k).tolist()
        expected = np.take_along_axis(units @ units.T, found.rows, axis=1)
        assert found.cosines == pytest.approx(expected, abs=1e-12)


def test_among_ties_the_earlier_vector_comes_first_in_any_blocks():
    rows = np.repeat(np.eye(3), 4, axis=0)
    assert nearest_others(rows, 4).rows[[0, 5, 11]].tolist() == [[1, 2, 3, 4], [4, 6, 7, 0], [8, 9, 10, 0]]
    assert nearest_others(rows, 2).rows[3].tolist() == [0, 1]
    corpus = unit_rows(np.outer(np.arange(1, 51), [1.0, 2.0, 3.0]))  # equal but for rounding
    parts = [(np.arange(20), corpus[:20]), (np.arange(20, 50), corpus[20:])]
    assert nearest(unit_rows(np.array([[3.0, 1.0, 0.7]])), parts, 50).rows.tolist() == [[*range(50)]]


def test_hubness_is_scipys_skewness_and_its_terms_are_slopes():
    units = directions(np.random.default_rng(1).normal(size=(200, 30))).units
    found = hubness(plain_nearest(units, 5))
    counts = np.bincount(plain_nearest(units, 5).ravel(), minlength=200)
    assert found.counts.tolist() == counts.tolist()
    assert (found.skewness, found.antihubs) == pytest.approx((skew(counts), (counts == 0).mean()))
    for number in (0, 7, int(np.argmax(counts))):
        weights = np.full(200, 1 / 200)
        weights[number] += 1e-7
        weights /= weights.sum()
        moved = (weights @ (counts - 5.0) ** 3) / (weights @ (counts - 5.0) ** 2) ** 1.5
        assert found.skewness_terms[number] == pytest.approx((moved - found.skewness) / 1e-7 / 200, abs=1e-5)
    assert (found.skewness_terms.sum(), found.antihub_terms.sum()) == pytest.approx((0, 0))
    balanced = hubness(np.array([[1], [2], [0]]))
    assert np.isnan(balanced.skewness)
    assert balanced.antihubs == 0


def blas_threads():
    return {library["num_threads"] for library in ThreadpoolController().select(user_api="blas").info()}


def test_parts_have_one_thread_each_come_in_order_and_restore_the_threads():
    started = threading.Barrier(2)

    def part(item):
        started.wait(10)  # two parts at the same time
        return item, blas_threads()

    def failing(item):
        raise ValueError(f"part {item}")

    with threadpool_limits(2, "blas"):
        before = blas_threads()
        assert list(in_threads(part, [0, 1])) == [(0, {1}), (1, {1})]
        with pytest.raises(ValueError, match="part 0"):
            list(in_threads(failing, range(5)))
        assert blas_threads() == before
    with threadpool_limits(1, "blas"):
        assert set(in_threads(lambda _: threading.get_ident(), range(3))) == {threading.get_ident()}


def test_numbers_are_the_same_with_one_thread_and_with_two():
    vectors = np.random.default_rng(0).standard_normal((5000, 16)).astype(np.float32)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, "blas"):
            found.append(uniformity(vectors))
    assert found[0] == found[1]
