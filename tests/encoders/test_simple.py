"""What is no checkpoint: callables, files of word vectors, and saved vectors looked up by sentence."""

import gzip
import io
import struct
import sys
from dataclasses import replace

import numpy as np
import pytest
from tiny_models import vectors_of

from stsbench.base.errors import UserError
from stsbench.encoders.fitted import normalize
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed
from stsbench.encoders.simple import SavedVectors

TEXTS = ["a cat", "the dog ran", "a cat", ""]


def numbers(sentences):
    return [[len(sentence), 1.0] for sentence in sentences]


def as_tensor(sentences):
    import torch

    return torch.tensor(numbers(sentences), dtype=torch.bfloat16, requires_grad=True)


def one_at_a_time(sentences):
    import torch

    if len(sentences) > 1:
        raise torch.OutOfMemoryError("CUDA out of memory")
    return numbers(sentences)


class Model:
    def encode(self, sentences):
        return numbers(sentences)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Return a function that writes a module into the current folder, which is not on the path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(name, content):
        monkeypatch.delitem(sys.modules, name, raising=False)
        (tmp_path / f"{name}.py").write_text(content)

    return write


@pytest.mark.parametrize(
    "function",
    [
        numbers,
        one_at_a_time,
        lambda s: np.array(numbers(s)),
        lambda s: np.array(numbers(s), dtype=np.int64),
        as_tensor,
        lambda s: [np.array(row, dtype=np.float32) for row in numbers(s)],
        Model(),
    ],
)
def test_lists_arrays_tensors_and_objects_with_encode_are_taken(function):
    vectors = vectors_of(load(function), TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[5, 1], [11, 1], [5, 1], [0, 1]]


def test_a_callable_is_named_and_not_cached():
    encoder = load(numbers)
    assert encoder.identity.name.endswith("test_simple:numbers")
    assert load(Model()).identity.name.endswith("Model")
    assert "not cached" in encoder.notes[0]
    found = embed(encoder, TEXTS)
    assert found.lengths.tolist() == [-1] * 4
    assert not found.truncated.any()
    assert embed(encoder, TEXTS).cost.encoded == 3


def test_an_array_that_a_callable_reuses_is_copied():
    shared = np.zeros((1, 2), np.float32)

    def encode(sentences):
        shared[0] = len(sentences[0]), 1
        return shared

    assert vectors_of(replace(load(encode), token_budget=1), ["ab", "abcd"]).tolist() == [[2, 1], [4, 1]]


def conjugated(n):
    import torch

    return torch.ones((n, 2), dtype=torch.complex64).conj()


_NO_MATRIX = r"{} Return an array of real numbers of shape \(3, dimensions\)"
MISTAKES = [
    *(
        (returned, _NO_MATRIX.format(rf".*of shape {shape} for 3 sentences\."))
        for returned, shape in [
            (lambda n: [1.0] * n, r"\(3,\)"),
            (lambda n: np.zeros((n + 1, 4)), r"\(4, 4\)"),
            (lambda n: np.zeros((n, 0)), r"\(3, 0\)"),
            (lambda _: None, r"\(\)"),
            (lambda n: [["1.0", "2.0"]] * n, r"\(3, 2\)"),
            (conjugated, r"\(3, 2\)"),
        ]
    ),
    (lambda n: [[1.0]] * (n - 1) + [[1.0, 2.0]], "list, which is not a matrix of numbers"),
    (lambda n: [[10**400, 1]] * n, "list, which is not a matrix of numbers"),
    (lambda n: np.ma.masked_equal(np.ones((n, 2)), 1), "MaskedArray, which is not a matrix"),
    (lambda n: np.full((n, 2), 1e39), r"float32 in 3 of 3 vectors \(such as 1e\+39\)"),
    (lambda n: np.full((n, 2), 1e-50), r"float32 in 3 of 3 vectors \(such as 1e-50\)"),
    (lambda n: [[None, 1.0]] * n, "NaN or infinite values in 3 of 3"),
    (lambda n: np.array([[1.0]] * (n - 1) + [[np.inf]]), "NaN or infinite values in 1 of 3"),
]


@pytest.mark.parametrize(("returned", "message"), MISTAKES)
def test_what_is_not_one_vector_per_sentence_is_refused(returned, message):
    with pytest.raises(UserError, match=message):
        embed(load(lambda sentences: returned(len(sentences))), ["a", "b", "c"])


def test_large_and_small_numbers_that_float32_represents_keep_their_value():
    function = {"a": [3e38, 3e38], "b": [3e-38, 4e-38], "c": [0.0, 0.0], "d": [3.0, 4.0]}
    vectors = vectors_of(load(lambda s: [function[text] for text in s]), list("abcd"))
    unit = normalize(vectors)
    np.testing.assert_allclose(unit, [[0.5**0.5] * 2, [0.6, 0.8], [0, 0], [0.6, 0.8]], atol=1e-7)
    assert normalize(vectors, out=vectors) is vectors
    assert np.array_equal(vectors, unit)


def test_a_function_is_imported_from_the_current_folder(module):
    module("here", "class Model:\n    def encode(self, s):\n        return [[1.0]] * len(s)\nmodel = Model()\n")
    encoder = load("here:model.encode")
    assert encoder.identity.name == "here:model.encode"
    assert vectors_of(encoder, ["a"]).tolist() == vectors_of(load("here:model"), ["a"]).tolist() == [[1.0]]
    with pytest.raises(UserError, match="no pooling"):
        embed(encoder, ["a"], poolings=["avg"])


@pytest.mark.parametrize(
    ("content", "target", "words"),
    [
        (
            "def helper(s):\n    return s[9]\n\ndef x(s):\n    return helper(s)\n",
            "them:x",
            "x raised IndexError.*line 2",
        ),
        ("import json\ndef x(s):\n    return json.loads('{')\n", "them:x", "them:x raised JSONDecodeError.*line"),
        ("def x():\n    return []\n", "them:x", "x raised TypeError: .*takes 0 positional arguments"),
        ("x = 'text'", "them:x", "is a str"),
        ("x = 3", "them:y", "no attribute 'y'"),
        ("x = 3", "them:x.y", "no attribute 'y'"),
        ("x = 3", "them:", "module:function"),
        ("x = 3", ":x", "module:function"),
        ("x = 3", "nowhere:x", "'nowhere'"),
        ("import not_installed", "them:x", "'not_installed'"),
        ("def x(:\n", "them:x", r"SyntaxError: .*them\.py, line 1\)"),
        ("import os\nos.nothing", "them:x", r"AttributeError: .*them\.py, line 2\)"),
    ],
)
def test_a_target_that_does_not_exist_or_fails_is_refused(content, target, words, module):
    module("them", content)
    with pytest.raises(UserError, match=words) as error:
        embed(load(target), ["a", "b"])
    assert " raised " not in words or error.value.__cause__ is not None


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
def test_every_format_gives_the_mean_of_the_known_words_of_the_lower_cased_text(name, file):
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


@pytest.mark.parametrize(
    ("content", "text", "expected"),
    [
        (b"the 1 2 3 4\n. . . 7 7 7 7\n. 5 5 5 5\n", ". the", [3, 3.5, 4, 4.5]),  # words with spaces
        (b"the 1 2\ndog 5 5\nthe 7 7\n", "the", [1, 2]),  # the first of two equal words
        (b"the 1 2\r\ndog 5 5\r\n", "dog", [5, 5]),
        (b"the 1 2 3 4\ndog 1 2 3 4 5\n", "dog", [0, 0, 0, 0]),  # the word is "dog 1"
    ],
)
def test_words_and_numbers_are_told_apart(content, text, expected, file):
    assert vectors_of(load(file(content=content)), [text]).tolist() == [expected]


_GZIPPED = FILES["glove.txt.gz"]
FILE_MISTAKES = [
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


@pytest.mark.parametrize(("name", "content", "message"), FILE_MISTAKES)
def test_a_mistake_in_a_file_of_word_vectors_is_reported(name, content, message, file):
    with pytest.raises(UserError, match=message):
        embed(load(file(name, content)), ["dog"])


# --- saved vectors

SENTENCES = ["a cat", "the dog ran", "café"]
MATRIX = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float32)


@pytest.fixture
def saved(tmp_path):
    def save(matrix=MATRIX, sentences="a cat\nthe dog ran\ncafé\n"):
        if isinstance(matrix, bytes):
            (tmp_path / "vectors.npy").write_bytes(matrix)
        elif matrix is not None:
            np.save(tmp_path / "vectors.npy", matrix)
        (tmp_path / "sentences.txt").write_bytes(
            sentences if isinstance(sentences, bytes) else sentences.encode("utf-8")
        )
        return SavedVectors(tmp_path / "vectors.npy", tmp_path / "sentences.txt")

    return save


REPEATED = "a cat\nthe dog ran\nthe dog ran\n"


@pytest.mark.parametrize(
    "files",
    [
        *({"matrix": MATRIX.astype(dtype)} for dtype in ("float16", "float32", "float64", "int64", ">f8")),
        {"sentences": "\r\n".join(SENTENCES) + "\r\n"},
        {"sentences": "\ufeff" + "\n".join(SENTENCES)},
        {"sentences": " a cat \n\ncafé"},
        *({"sentences": f"{REPEATED}café", "matrix": [[1, 2], [n, 4], [n, 4], [5, 6]]} for n in (3.0, np.nan)),
    ],
    ids=str,
)
def test_rows_are_found_by_sentence(files, saved):
    vectors = vectors_of(saved(**files), ["café", "a cat", " café"])
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[5, 6], [1, 2], [5, 6]]


def cut_short(matrix):
    stream = io.BytesIO()
    np.save(stream, matrix)
    return stream.getvalue()[:-5]


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
    ({"matrix": None}, ["a cat"], r"there is no file .*vectors\.npy"),
    *(
        ({"matrix": content}, ["a cat"], r"vectors\.npy is not a \.npy file")
        for content in (b"", b"1 2\n3 4\n", b"PK\x03\x04 zip", b"\x93NUMPY\x01\x00", cut_short(MATRIX))
    ),
    ({"matrix": np.array([[{}], [{}], [{}]], dtype=object)}, ["a cat"], r"is not a \.npy file of numbers"),
    *(({"matrix": rows(value)}, SENTENCES, "NaN or infinite values in 1 of 3") for value in (np.nan, np.inf)),
    *(({"matrix": rows(value)}, SENTENCES, "range of float32 in 1 of 3") for value in (1e39, 1e-46)),
]


@pytest.mark.parametrize(("files", "texts", "message"), SAVED_MISTAKES, ids=str)
def test_a_mistake_in_saved_vectors_is_reported(files, texts, message, saved):
    with pytest.raises(UserError, match=message):
        embed(saved(**files), texts)
