"""Saved vectors are looked up by sentence, or refused with what is wrong with the files."""

import numpy as np
import pytest

from stsbench.base.errors import UserError
from stsbench.encoders.plan import embed
from stsbench.encoders.vector_files import SavedVectors

SENTENCES = ["a cat", "the dog ran", "café"]
MATRIX = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float32)


@pytest.fixture
def saved(tmp_path):
    def save(matrix=MATRIX, sentences="a cat\nthe dog ran\ncafé\n"):
        np.save(tmp_path / "vectors.npy", matrix)
        (tmp_path / "sentences.txt").write_bytes(
            sentences if isinstance(sentences, bytes) else sentences.encode("utf-8")
        )
        return SavedVectors(tmp_path / "vectors.npy", tmp_path / "sentences.txt")

    return save


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", ">f8"])
def test_rows_are_found_by_sentence(dtype, saved, vectors_of):
    vectors = vectors_of(saved(MATRIX.astype(dtype)), ["café", "a cat", "café"])
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[5, 6], [1, 2], [5, 6]]


def test_they_are_neither_cached_nor_hashed_by_name(saved, tmp_path):
    encoder = saved()
    embed(encoder, SENTENCES)
    assert not (tmp_path / "cache").exists()
    first = encoder.identity
    assert saved(MATRIX * 2).identity.weights_sha256 != first.weights_sha256


@pytest.mark.parametrize(
    "content",
    ["\r\n".join(SENTENCES) + "\r\n", "\ufeff" + "\n".join(SENTENCES), " a cat \nthe dog ran\t\ncafé"],
    ids=["windows", "byte-order mark", "blanks"],
)
def test_line_ends_and_marks_are_no_part_of_a_sentence(content, saved, vectors_of):
    assert vectors_of(saved(sentences=content), ["a cat", " café"]).tolist() == [[1, 2], [5, 6]]


def test_an_empty_sentence_has_a_row_too(saved, vectors_of):
    assert vectors_of(saved(sentences="\na\nb\n"), [""]).tolist() == [[1, 2]]


def test_a_sentence_without_vector_is_told(saved):
    with pytest.raises(UserError, match=r"sentences\.txt lacks 1 of the 2 sentences to score, such as 'a bird'"):
        embed(saved(), ["a cat", "a bird"])


@pytest.mark.parametrize("lines", [2, 4])
def test_unequal_counts_are_told(lines, saved):
    encoder = saved(sentences="".join(f"{n}\n" for n in range(lines)))
    with pytest.raises(UserError, match=rf"has {lines} lines but .*vectors\.npy has 3 rows"):
        embed(encoder, ["1"])


def test_two_vectors_for_one_sentence_are_told_with_their_lines_and_rows(saved):
    encoder = saved(sentences="a cat\nthe dog ran\n a cat \n")
    with pytest.raises(
        UserError, match=r"lines 1 and 3 are one sentence, and rows 0 and 2 of .*vectors\.npy \(the first is 0\)"
    ):
        embed(encoder, ["the dog ran"])


@pytest.mark.parametrize("number", [3.0, np.nan])
def test_one_vector_for_a_sentence_that_stands_there_twice_is_taken(number, saved, vectors_of):
    matrix = np.array([[1, 2], [number, 4], [number, 4]])
    assert vectors_of(saved(matrix, "a cat\nthe dog ran\nthe dog ran\n"), ["a cat"]).tolist() == [[1, 2]]


def test_a_line_that_is_not_utf8_is_named(saved):
    with pytest.raises(UserError, match=r"sentences\.txt, line 2 is not UTF-8"):
        embed(saved(sentences=b"a cat\ncaf\xe9\nb\n"), ["a cat"])


@pytest.mark.parametrize(
    "matrix",
    [
        np.zeros(3),
        np.zeros((3, 2, 2)),
        np.zeros((3, 0)),
        np.array([["a"], ["b"], ["c"]]),
        np.zeros((3, 2), dtype=complex),
        np.zeros((3, 2), dtype=bool),
    ],
    ids=lambda matrix: f"{matrix.dtype}{matrix.shape}",
)
def test_what_is_no_matrix_of_numbers_is_told(matrix, saved):
    with pytest.raises(UserError, match=r"holds .* of shape .*: save numbers of shape \(sentences, dimensions\)"):
        embed(saved(matrix), ["a cat"])


def test_python_objects_are_not_unpickled(saved):
    with pytest.raises(UserError, match=r"is not a NumPy \.npy file of numbers"):
        embed(saved(np.array([[{}], [{}], [{}]], dtype=object)), ["a cat"])


@pytest.mark.parametrize("content", [b"", b"1 2\n3 4\n", b"PK\x03\x04 zip", b"\x93NUMPY\x01\x00"])
def test_a_file_that_is_no_npy_is_told(content, saved):
    encoder = saved()
    encoder.path.write_bytes(content)
    with pytest.raises(UserError, match=r"is not a NumPy \.npy file"):
        embed(encoder, ["a cat"])


def test_an_archive_of_arrays_is_told(saved):
    encoder = saved()
    with encoder.path.open("wb") as stream:
        np.savez(stream, vectors=MATRIX)
    with pytest.raises(UserError, match=r"is not a NumPy \.npy file"):
        embed(encoder, ["a cat"])


def test_a_cut_file_is_told(saved):
    encoder = saved()
    encoder.path.write_bytes(encoder.path.read_bytes()[:-5])
    with pytest.raises(UserError, match=r"is not a NumPy \.npy file"):
        embed(encoder, ["a cat"])


def test_files_that_are_not_there_are_told(saved):
    encoder = saved()
    encoder.sentences.unlink()
    with pytest.raises(UserError, match=r"no such file: .*sentences\.txt"):
        embed(encoder, ["a cat"])
    encoder = saved()
    encoder.path.unlink()
    with pytest.raises(UserError, match=r"no such file: .*vectors\.npy"):
        _ = encoder.identity


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_vector_that_is_not_finite_is_told(value, saved):
    matrix = MATRIX.copy()
    matrix[1, 1] = value
    encoder = saved(matrix)
    with pytest.raises(UserError, match="vectors gives NaN or infinite values in 1 of 3 vectors"):
        embed(encoder, SENTENCES)
    assert embed(encoder, ["a cat"]).vectors["own"].tolist() == [[1, 2]]


@pytest.mark.parametrize("value", [1e39, 1e-46])
def test_a_number_that_float32_cannot_hold_is_told(value, saved):
    with pytest.raises(
        UserError, match=r"vectors\.npy returned numbers outside the range of float32 in 1 of 3 vectors"
    ):
        embed(saved(np.array([[1, 2], [value, 0], [3, 4]])), SENTENCES)


def test_a_zero_vector_is_no_error(saved, vectors_of):
    assert not vectors_of(saved(np.zeros((3, 2))), SENTENCES).any()


def test_a_pooling_is_not_theirs_to_choose(saved):
    with pytest.raises(UserError, match="has no pooling 'cls'"):
        embed(saved(), ["a cat"], poolings=["cls"])
