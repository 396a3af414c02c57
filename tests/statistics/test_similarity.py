"""Similarities against SciPy, and stored vectors against sentence-transformers and plain NumPy."""

import numpy as np
import pytest
import scipy.spatial.distance
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from stsbench.statistics.geometry import bytes_of, ranges_of, similarities_by_choice, stored
from stsbench.statistics.neighbours import SIMILARITIES, pair_similarities, zero_rows

matrices = st.sampled_from([np.float32, np.float64]).flatmap(
    lambda dtype: arrays(
        dtype,
        st.tuples(st.integers(1, 8), st.integers(1, 6)),
        elements=st.floats(-100, 100, width=32, allow_subnormal=False),
    )
)


@given(vectors=matrices, data=st.data())
def test_values_are_scipys_in_double_precision(vectors, data):
    rows = st.lists(st.integers(0, len(vectors) - 1), min_size=5, max_size=5)
    left, right = data.draw(rows), data.draw(rows)
    values = pair_similarities(vectors, left, right, list(SIMILARITIES))
    for pair, (u, v) in enumerate(zip(vectors[left].astype(float), vectors[right].astype(float), strict=True)):
        assert values["dot"][pair] == pytest.approx(u @ v, rel=1e-12, abs=1e-9)
        assert values["euclidean"][pair] == pytest.approx(-scipy.spatial.distance.euclidean(u, v))
        assert values["manhattan"][pair] == pytest.approx(-scipy.spatial.distance.cityblock(u, v))
        expected = 1 - scipy.spatial.distance.cosine(u, v) if u.any() and v.any() else 0.0
        assert values["cosine"][pair] == pytest.approx(expected, abs=1e-12)
    assert (np.abs(values["cosine"]) <= 1).all()
    assert pair_similarities(vectors * 4, left, right)["cosine"].tolist() == values["cosine"].tolist()


@given(vectors=matrices)
def test_a_row_with_itself_has_the_cosine_exactly_one_unless_it_is_zero(vectors):
    rows = np.arange(len(vectors))
    values = pair_similarities(vectors, rows, rows, ["cosine", "euclidean"])
    assert zero_rows(vectors).tolist() == [not row.any() for row in vectors]
    assert values["cosine"].tolist() == np.where(zero_rows(vectors), 0.0, 1.0).tolist()
    assert not np.signbit(values["euclidean"]).any()


def test_zeros_and_nans_are_kept_visible():
    vectors = np.array([[1.0, np.nan], [1.0, 0.0], [0.0, -0.0]])
    cosines = pair_similarities(vectors, [0, 0, 1, 1, 2], [0, 1, 1, 2, 2])["cosine"]
    assert np.array_equal(cosines, [np.nan, np.nan, 1.0, 0.0, 0.0], equal_nan=True)
    assert zero_rows(vectors).tolist() == [False, False, True]


@pytest.fixture
def vectors():
    return np.random.default_rng(0).normal(size=(40, 12)).astype(np.float32)


@pytest.fixture
def others():
    """Returns vectors with narrower ranges, one of zero width."""
    matrix = np.random.default_rng(1).normal(size=(9, 12)).astype(np.float32)
    matrix[:, 3] = 0.25
    return matrix


def test_int8_and_bits_are_those_of_sentence_transformers(vectors, others):
    quantization = pytest.importorskip("sentence_transformers.util.quantization")
    # Old versions wrap around outside the ranges.
    inside = np.clip(vectors, others.min(axis=0), others.max(axis=0))
    theirs = quantization.quantize_embeddings(inside, "int8", calibration_embeddings=others)
    kept = np.arange(12) != 3
    assert np.array_equal(stored(inside, "int8", ranges_of(others))[:, kept], theirs[:, kept])
    bits = np.unpackbits(quantization.quantize_embeddings(vectors, "ubinary"), axis=1)[:, :12]
    assert np.array_equal(stored(vectors, "binary"), 2 * bits.astype(int) - 1)


def test_numbers_outside_a_range_or_a_format_become_its_end_and_arrays_have_the_stated_bytes(vectors, others):
    codes = stored(vectors, "int8", ranges_of(others))
    low, high = others.min(axis=0), others.max(axis=0)
    assert (codes[(vectors >= high) & (low != high)] == 127).all()
    assert (codes[vectors < low] == -128).all()
    assert stored(np.array([[1 / 3, 1e6]]), "fp16").tolist() == [[float(np.float16(1 / 3)), np.inf]]
    assert np.packbits(vectors[:1] > 0, axis=1).nbytes == bytes_of(12, "binary")
    for numbers in ("fp32", "fp16", "int8"):
        assert stored(vectors[:1], numbers, ranges_of(others)).nbytes == bytes_of(12, numbers)


def test_equal_pairs_have_equal_similarities_to_the_last_bit_and_zero_vectors_0(vectors):
    left, right = np.tile([0, 1, 2, 5], 9), np.tile([1, 0, 2, 6], 9)
    (cosines,) = similarities_by_choice(vectors, left, right, np.ones((1, 12), dtype=bool), "cosine")
    assert len(set(cosines.tolist())) == 3
    assert cosines[2] == 1.0
    assert cosines == pytest.approx(pair_similarities(vectors, left, right)["cosine"], abs=1e-15)
    vectors[0, :5] = 0
    cosines = similarities_by_choice(vectors, [0, 0], [0, 1], np.arange(12)[None] < 5, "cosine")
    assert cosines.tolist() == [[0.0, 0.0]]
