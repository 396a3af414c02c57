"""Vectors in files: word vectors as GloVe and word2vec write them, and saved vectors looked up by sentence."""

import gzip
import struct

import numpy as np
import pytest

from stsbench.base.errors import UserError
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed
from stsbench.encoders.simple import SavedVectors, StaticEncoder

VECTORS = {
    "the": [1.0, 2.0, 3.0, 4.0],
    "dog": [-1.0, 0.5, 0.25, 8.0],
    "ran": [0.1, 0.2, 0.3, 0.4],
    "café": [5.0, 6.0, 7.0, 8.0],
    "Paris": [9.0, 9.0, 9.0, 9.0],
}
TEXT = "".join(f"{word} {' '.join(map(str, values))}\n" for word, values in VECTORS.items())
WORD2VEC = f"{len(VECTORS)} 4\n{TEXT}".replace("0\n", "0 \n")  # word2vec ends rows with a space


def binary(newline=b""):
    rows = (word.encode() + b" " + struct.pack("<4f", *values) + newline for word, values in VECTORS.items())
    return f"{len(VECTORS)} 4\n".encode() + b"".join(rows)


FILES = {
    "glove.6B.4d.txt": TEXT.encode(),
    "vectors.vec": WORD2VEC.encode(),
    "text.bin": WORD2VEC.encode(),
    "plain.bin": binary(),
    "newlines.bin": binary(b"\n"),
    "glove.txt.gz": gzip.compress(TEXT.encode(), mtime=0),
    "GoogleNews.bin.gz": gzip.compress(binary(b"\n"), mtime=0),
}


@pytest.fixture
def file(tmp_path):
    """Return a function that writes a file of vectors."""

    def write(name="glove.6B.4d.txt", content=None):
        path = tmp_path / name
        path.write_bytes(FILES[name] if content is None else content)
        return path

    return write


def mean(*words):
    return np.mean([VECTORS[word] for word in words], axis=0)


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_mean_of_the_known_words_of_the_lower_cased_text(name, file, vectors_of):
    encoder = load(file(name))
    assert (encoder.identity.kind, encoder.identity.use.pooling) == ("static", "avg")
    expected = {
        "the dog ran": mean("the", "dog", "ran"),
        "The DOG": mean("the", "dog"),
        "the zyzzyva ran": mean("the", "ran"),
        "zyzzyva": np.zeros(4),
        "": np.zeros(4),
        "café": mean("café"),
        "Paris": np.zeros(4),
    }
    np.testing.assert_allclose(vectors_of(encoder, list(expected)), list(expected.values()), atol=1e-6)


def test_lengths_count_words_known_or_not_and_their_order_does_not_matter(file):
    found = embed(load(file()), ["the zyzzyva ran", "", "the dog ran café", "café ran dog the"], use_cache=False)
    assert found.lengths.tolist() == [3, 0, 4, 4]
    assert not found.truncated.any()
    forth, back = found.vectors["avg"][found.rows[2:]]
    assert np.array_equal(forth, back)


def test_the_file_is_scanned_only_for_new_words(file, vectors_of, monkeypatch):
    encoder, reads, read = load(file(content=f"{TEXT}\n".encode())), [], StaticEncoder._read
    monkeypatch.setattr(StaticEncoder, "_read", lambda self, words: reads.append(words) or read(self, words))
    for text in ("the dog unknown", "the dog unknown", "unknown dog the", "ran"):
        vectors_of(encoder, [text])
    assert reads == [{"the", "dog", "unknown"}, {"ran"}]


@pytest.mark.parametrize(
    ("content", "text", "expected"),
    [
        (b"the 1 2 3 4\n. . . 7 7 7 7\n. 5 5 5 5\n", ". the", [3, 3.5, 4, 4.5]),  # words with spaces
        (b"the 1 2\ndog 5 5\nthe 7 7\n", "the", [1, 2]),  # the first of two equal words
        (b"the 1 2\r\ndog 5 5\r\n", "dog", [5, 5]),
        (b"the 1 2 3 4\ndog 1 2 3 4 5\n", "dog", [0, 0, 0, 0]),  # the word is "dog 1"
    ],
)
def test_words_and_numbers_are_told_apart(content, text, expected, file, vectors_of):
    assert vectors_of(load(file(content=content)), [text]).tolist() == [expected]


_GZIPPED = FILES["glove.txt.gz"]
MISTAKES = [
    ("glove.txt", b"the 1 2 3 4\ndog 1 2 3\n", r"glove\.txt, line 2.* 4 numbers"),
    ("glove.txt", b"the 1 2 3 4\ndog 1 2 3 x\n", r"glove\.txt, line 2.* 4 numbers"),
    ("glove.txt", b"the 1 2 3 4\ndog\n", r"glove\.txt, line 2.* 4 numbers"),
    ("w2v.txt", b"2 3\nthe 1 2 3\ndog 1 2\n", r"w2v\.txt, line 3"),
    ("glove.txt", b"dog 1 nan\n", "NaN or infinite values in 1 of 1 vectors"),
    ("words.txt", b"", r"words\.txt.* GloVe or word2vec"),
    ("words.txt", b"hello\n", r"words\.txt, line 1.* GloVe or word2vec"),
    ("words.txt", b"\x80\x04\x95 pickle\n", r"words\.txt, line 1.* GloVe or word2vec"),
    ("words.txt", b"3 0\nthe\n", "line 1"),
    ("vectors.bin", binary()[:-3], r"row 5, .* 5 rows"),
    ("vectors.bin", binary()[:-20], r"row [45], .* 5 rows"),
    ("glove.txt.gz", _GZIPPED[:-9], "gzip"),
    ("glove.txt.gz", b"plain", "gzip"),
    ("glove.txt.gz", _GZIPPED[:20] + b"\xff" + _GZIPPED[21:], "gzip"),
]


@pytest.mark.parametrize(("name", "content", "message"), MISTAKES)
def test_a_mistake_in_a_file_of_word_vectors_is_reported(name, content, message, file):
    with pytest.raises(UserError, match=message):
        embed(load(file(name, content)), ["dog"])


def test_only_the_mean_can_be_chosen(file):
    path = file()
    assert load(path, pooling="avg").identity.use.pooling == "avg"
    for use, option in (({"pooling": "max"}, "--pooling"), ({"max_length": 12}, "--max-length")):
        with pytest.raises(UserError, match=f"{option}: not for word vectors, which are averaged"):
            load(path, **use)
    with pytest.raises(UserError, match="has no pooling 'max'"):
        embed(load(path), ["the"], poolings=["max"])


# --- saved vectors

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


@pytest.mark.parametrize(
    "content",
    ["\r\n".join(SENTENCES) + "\r\n", "\ufeff" + "\n".join(SENTENCES), " a cat \n\ncafé"],
    ids=["windows", "byte-order mark", "blanks"],
)
def test_line_ends_and_marks_are_no_part_of_a_sentence(content, saved, vectors_of):
    assert vectors_of(saved(sentences=content), ["a cat", " café"]).tolist() == [[1, 2], [5, 6]]


@pytest.mark.parametrize("number", [3.0, np.nan])
def test_equal_vectors_of_a_repeated_sentence_are_accepted(number, saved, vectors_of):
    matrix = np.array([[1, 2], [number, 4], [number, 4]])
    assert vectors_of(saved(matrix, "a cat\nthe dog ran\nthe dog ran\n"), ["a cat"]).tolist() == [[1, 2]]


def rows(value):
    return np.array([[1, 2], [value, 0], [3, 4]])


_NOT_NUMBERS = r"of shape .*: save numbers of shape \(sentences, dimensions\)"
SAVED_MISTAKES = [
    ({"sentences": "a cat\na dog\ncafé"}, ["a bird"], r"sentences\.txt lacks 1 of the 1 sentences.* 'a bird'"),
    ({"sentences": "1\n2\n"}, ["1"], r"has 2 lines but .*vectors\.npy has 3 rows"),
    ({"sentences": "1\n2\n3\n4\n"}, ["1"], r"has 4 lines but .*vectors\.npy has 3 rows"),
    ({"sentences": "a cat\nthe dog ran\n a cat \n"}, ["the dog ran"], r"lines 1 and 3 .* rows 0 and 2 of .*npy"),
    ({"sentences": b"a cat\ncaf\xe9\nb\n"}, ["a cat"], r"sentences\.txt, line 2: byte 0xe9"),
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


@pytest.mark.parametrize(("files", "texts", "message"), SAVED_MISTAKES, ids=str)
def test_a_mistake_in_saved_vectors_is_reported(files, texts, message, saved):
    with pytest.raises(UserError, match=message):
        embed(saved(**files), texts)


@pytest.mark.parametrize("content", [b"", b"1 2\n3 4\n", b"PK\x03\x04 zip", b"\x93NUMPY\x01\x00", "cut", None])
def test_a_file_that_is_not_an_npy_file_is_reported(content, saved):
    encoder = saved()
    if content is None:
        encoder.path.unlink()
    else:
        encoder.path.write_bytes(encoder.path.read_bytes()[:-5] if content == "cut" else content)
    with pytest.raises(UserError, match=r"vectors\.npy is not a \.npy file|there is no file .*vectors\.npy"):
        embed(encoder, ["a cat"])
