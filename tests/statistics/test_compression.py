"""Stored vectors and their similarities, held against sentence-transformers and plain NumPy."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stsbench.statistics.compression import (
    BITS,
    bytes_of,
    principal_of,
    ranges_of,
    similarities_by_choice,
    stored,
)
from stsbench.statistics.similarity import pair_similarities

Matrix = NDArray[Any]


@pytest.fixture
def vectors() -> Matrix:
    return np.random.default_rng(0).normal(size=(40, 12)).astype(np.float32)


@pytest.fixture
def others() -> Matrix:
    """Return vectors whose ranges are narrower, one of them a point."""
    matrix = np.random.default_rng(1).normal(size=(9, 12)).astype(np.float32)
    matrix[:, 3] = 0.25
    return matrix


def test_int8_and_bits_are_those_of_sentence_transformers(vectors: Matrix, others: Matrix) -> None:
    quantization = pytest.importorskip("sentence_transformers.util.quantization")
    # Outside of the ranges old versions wrap around, which is nothing to hold oneself against.
    inside = np.clip(vectors, others.min(axis=0), others.max(axis=0))
    theirs = quantization.quantize_embeddings(inside, "int8", calibration_embeddings=others)
    kept = np.arange(12) != 3
    assert np.array_equal(stored(inside, "int8", ranges_of(others))[:, kept], theirs[:, kept])
    bits = np.unpackbits(quantization.quantize_embeddings(vectors, "ubinary"), axis=1)[:, :12]
    assert np.array_equal(stored(vectors, "binary"), 2 * bits.astype(int) - 1)


def test_what_is_outside_of_the_ranges_becomes_their_end(vectors: Matrix, others: Matrix) -> None:
    codes = stored(vectors, "int8", ranges_of(others))
    low, high = others.min(axis=0), others.max(axis=0)
    assert (codes[vectors >= high] == 127)[np.broadcast_to(low != high, vectors.shape)[vectors >= high]].all()
    assert (codes[vectors < low] == -128).all()
    assert codes.dtype == np.int8


def test_floats_are_rounded_and_what_does_not_fit_is_infinite() -> None:
    values = np.array([[1 / 3, 1e6]])
    assert stored(values, "fp16").tolist() == [[float(np.float16(1 / 3)), np.inf]]
    assert stored(values, "fp32").dtype == np.float32


def test_bytes_are_those_of_the_stored_arrays() -> None:
    matrix = np.ones((1, 20))
    assert [bytes_of(20, numbers) for numbers in BITS] == [80, 40, 20, 3]
    assert np.packbits(matrix > 0, axis=1).nbytes == bytes_of(20, "binary")
    for numbers in ("fp32", "fp16", "int8"):
        assert stored(matrix, numbers, np.array([matrix[0], matrix[0]])).nbytes == bytes_of(20, numbers)


@pytest.mark.parametrize("numbers", BITS)
def test_similarities_of_every_choice_are_those_of_plain_numpy(
    numbers: Any, vectors: Matrix, others: Matrix
) -> None:
    rng = np.random.default_rng(2)
    choices = np.vstack([np.ones(12, dtype=bool), np.arange(12) < 5, rng.permutation(12) < 4])
    left, right = rng.integers(0, 40, (2, 60))
    codes = stored(vectors, numbers, ranges_of(others))
    kinds: tuple[Any, ...] = ("hamming",) if numbers == "binary" else ("cosine", "dot")
    for kind in kinds:
        found = similarities_by_choice(codes, left, right, choices, kind)
        for values, choice in zip(found, choices, strict=True):
            kept = codes[:, choice].astype(np.float64)
            for value, one, other in zip(values, kept[left], kept[right], strict=True):
                if kind == "hamming":
                    # By the bits themselves, eight a byte.
                    bits = np.bitwise_xor(*(np.packbits(side > 0) for side in (one, other)))
                    assert value == -int(np.unpackbits(bits).sum())
                elif kind == "dot":
                    assert value == pytest.approx(one @ other, rel=1e-12, abs=1e-12)
                else:
                    assert value == pytest.approx(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_one_pair_has_one_similarity_to_the_last_bit_and_a_vector_is_like_itself(vectors: Matrix) -> None:
    left, right = np.tile([0, 1, 2, 5], 9), np.tile([1, 0, 2, 6], 9)
    choices = np.ones((1, 12), dtype=bool)
    (cosines,) = similarities_by_choice(vectors, left, right, choices, "cosine")
    assert len(set(cosines.tolist())) == 3
    assert cosines[2] == 1.0
    assert cosines == pytest.approx(pair_similarities(vectors, left, right)["cosine"], abs=1e-15)


def test_a_zero_vector_has_the_cosine_0(vectors: Matrix) -> None:
    vectors[0, :5] = 0
    choices = np.vstack([np.arange(12) < 5, np.ones(12, dtype=bool)])
    cosines = similarities_by_choice(vectors, [0, 0], [0, 1], choices, "cosine")
    assert cosines[0].tolist() == [0.0, 0.0]
    assert cosines[1][0] == 1.0


def test_cosine_and_dot_of_all_dimensions_do_not_turn_with_the_vectors(vectors: Matrix) -> None:
    turn = np.linalg.qr(np.random.default_rng(4).normal(size=(12, 12)))[0]
    left, right = np.arange(20), np.arange(20, 40)
    choices = np.ones((1, 12), dtype=bool)
    for kind in ("cosine", "dot"):
        one, other = (
            similarities_by_choice(matrix, left, right, choices, kind)  # type: ignore[arg-type]
            for matrix in (vectors.astype(np.float64), vectors.astype(np.float64) @ turn)
        )
        assert other == pytest.approx(one, abs=1e-12)


def test_principal_components_are_those_of_a_singular_value_decomposition(vectors: Matrix, others: Matrix) -> None:
    principal = principal_of(vectors)
    centred = vectors - vectors.mean(axis=0, dtype=np.float64)
    _, _, directions = np.linalg.svd(centred)
    assert np.abs(principal.directions.T) == pytest.approx(np.abs(directions), abs=1e-9)
    assert np.abs(principal.of(others)) == pytest.approx(
        np.abs((others - vectors.mean(axis=0)) @ directions.T), abs=1e-5
    )
    # Few sentences vary in few directions, and equal ones in none.
    assert principal_of(vectors[:4]).directions.shape == (12, 3)
    assert principal_of(np.repeat(vectors[:1], 5, axis=0)).directions.shape == (12, 0)
    # Turned back and forth they are the same components.
    turn = np.linalg.qr(np.random.default_rng(5).normal(size=(12, 12)))[0]
    turned = principal_of(vectors.astype(np.float64) @ turn)
    assert np.abs(turned.of(others @ turn)) == pytest.approx(np.abs(principal.of(others)), abs=1e-4)
