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


@pytest.mark.parametrize("number", [3.0, np.nan])
def test_equal_vectors_of_a_repeated_sentence_are_accepted(number, saved, vectors_of):
    matrix = np.array([[1, 2], [number, 4], [number, 4]])
    assert vectors_of(saved(matrix, "a cat\nthe dog ran\nthe dog ran\n"), ["a cat"]).tolist() == [[1, 2]]


def rows(value):
    return np.array([[1, 2], [value, 0], [3, 4]])


_NOT_NUMBERS = r"of shape .*: save numbers of shape \(sentences, dimensions\)"
MISTAKES = [
    ({"sentences": "a cat\na dog\ncafé"}, ["a bird"], r"sentences\.txt lacks 1 of the 1 sentences.* 'a bird'"),
    ({"sentences": "1\n2\n"}, ["1"], r"has 2 lines but .*vectors\.npy has 3 rows"),
    ({"sentences": "1\n2\n3\n4\n"}, ["1"], r"has 4 lines but .*vectors\.npy has 3 rows"),
    ({"sentences": "a cat\nthe dog ran\n a cat \n"}, ["the dog ran"], r"lines 1 and 3 .* rows 0 and 2 of .*npy"),
    ({"sentences": b"a cat\ncaf\xe9\nb\n"}, ["a cat"], r"sentences\.txt, line 2 is not UTF-8"),
    *(
        ({"matrix": matrix}, ["a cat"], _NOT_NUMBERS)
        for matrix in (
            np.zeros(3),
            np.zeros((3, 2, 2)),
            np.zeros((3, 0)),
            np.array([["a"], ["b"], ["c"]]),
            np.zeros((3, 2), dtype=complex),
            np.zeros((3, 2), dtype=bool),
        )
    ),
    ({"matrix": np.array([[{}], [{}], [{}]], dtype=object)}, ["a cat"], r"is not a \.npy file of numbers"),
    *(({"matrix": rows(value)}, SENTENCES, "NaN or infinite values in 1 of 3") for value in (np.nan, np.inf)),
    *(({"matrix": rows(value)}, SENTENCES, "range of float32 in 1 of 3") for value in (1e39, 1e-46)),
]


@pytest.mark.parametrize(("files", "texts", "said"), MISTAKES, ids=str)
def test_a_mistake_is_reported(files, texts, said, saved):
    with pytest.raises(UserError, match=said):
        embed(saved(**files), texts)


@pytest.mark.parametrize("content", [b"", b"1 2\n3 4\n", b"PK\x03\x04 zip", b"\x93NUMPY\x01\x00", "cut", None])
def test_a_file_that_is_not_an_npy_file_is_reported(content, saved):
    encoder = saved()
    if content is None:
        encoder.path.unlink()
    else:
        encoder.path.write_bytes(encoder.path.read_bytes()[:-5] if content == "cut" else content)
    with pytest.raises(UserError, match=r"vectors\.npy is not a \.npy file|no such file: .*vectors\.npy"):
        embed(encoder, ["a cat"])


def test_a_damaged_row_that_is_not_asked_for_does_no_harm(saved, vectors_of):
    assert vectors_of(saved(rows(np.nan)), ["a cat"]).tolist() == [[1, 2]]
    assert not vectors_of(saved(np.zeros((3, 2))), SENTENCES).any()


def test_a_pooling_cannot_be_chosen(saved):
    with pytest.raises(UserError, match="has no pooling 'cls'"):
        embed(saved(), ["a cat"], poolings=["cls"])
