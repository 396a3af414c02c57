"""A callable's vectors are taken unchanged, or refused with what is wrong with them."""

import sys

import numpy as np
import pytest

from stsbench.base.errors import UserError
from stsbench.encoders.fitted import normalize
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed

TEXTS = ["a cat", "the dog ran", "a cat", ""]


def numbers(sentences):
    return [[len(sentence), 1.0] for sentence in sentences]


def as_tensor(sentences):
    import torch

    return torch.tensor(numbers(sentences), dtype=torch.bfloat16, requires_grad=True)


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
        lambda s: np.array(numbers(s)),
        lambda s: np.array(numbers(s), dtype=np.int64),
        as_tensor,
        lambda s: [np.array(row, dtype=np.float32) for row in numbers(s)],
        Model(),
    ],
)
def test_lists_arrays_tensors_and_objects_with_encode_are_taken(function, vectors_of):
    vectors = vectors_of(load(function), TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[5, 1], [11, 1], [5, 1], [0, 1]]


def test_a_callable_is_named_and_not_cached():
    encoder = load(numbers)
    assert encoder.identity.name.endswith("test_callables:numbers")
    assert load(Model()).identity.name.endswith("Model")
    assert "not cached" in encoder.notes[0]
    found = embed(encoder, TEXTS)
    assert found.lengths.tolist() == [-1] * 4
    assert not found.truncated.any()
    assert embed(encoder, TEXTS).cost.encoded == 3


def test_an_array_that_a_callable_reuses_is_copied(vectors_of):
    shared = np.zeros((1, 2), np.float32)

    def encode(sentences):
        shared[0] = len(sentences[0]), 1
        return shared

    assert vectors_of(load(encode), ["ab", "abcd"], token_budget=1).tolist() == [[2, 1], [4, 1]]


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
    (lambda n: [[1.0]] * (n - 1) + [[1.0, 2.0]], _NO_MATRIX.format(r"list, not a matrix of numbers\.")),
    (lambda n: [[10**400, 1]] * n, _NO_MATRIX.format(r"list, not a matrix of numbers\.")),
    (lambda n: np.ma.masked_equal(np.ones((n, 2)), 1), "MaskedArray, not a matrix"),
    (lambda n: np.full((n, 2), 1e39), r"float32 in 3 of 3 vectors \(such as 1e\+39\)"),
    (lambda n: np.full((n, 2), 1e-50), r"float32 in 3 of 3 vectors \(such as 1e-50\)"),
    (lambda n: [[None, 1.0]] * n, "NaN or infinite values in 3 of 3"),
    (lambda n: np.array([[1.0]] * (n - 1) + [[np.inf]]), "NaN or infinite values in 1 of 3"),
]


@pytest.mark.parametrize(("returned", "message"), MISTAKES)
def test_what_is_not_one_vector_per_sentence_is_refused(returned, message):
    with pytest.raises(UserError, match=message):
        embed(load(lambda sentences: returned(len(sentences))), ["a", "b", "c"])


def test_large_and_small_numbers_that_float32_represents_keep_their_value(vectors_of):
    function = {"a": [3e38, 3e38], "b": [3e-38, 4e-38], "c": [0.0, 0.0], "d": [3.0, 4.0]}
    vectors = vectors_of(load(lambda s: [function[text] for text in s]), list("abcd"))
    unit = normalize(vectors)
    np.testing.assert_allclose(unit, [[0.5**0.5] * 2, [0.6, 0.8], [0, 0], [0.6, 0.8]], atol=1e-7)
    assert normalize(vectors, out=vectors) is vectors
    assert np.array_equal(vectors, unit)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("def helper(s):\n    return s[99]\n\ndef encode(s):\n    return helper(s)\n", "IndexError.*line 2"),
        ("import json\ndef encode(s):\n    return json.loads('{')\n", "JSONDecodeError.*line"),
        ("def encode():\n    return []\n", "TypeError: .*takes 0 positional arguments"),
    ],
)
def test_an_error_in_a_callable_is_reported_with_its_line(content, words, module):
    module("mine", content)
    with pytest.raises(UserError, match=f"mine:encode raised {words}") as error:
        embed(load("mine:encode"), ["a", "b"])
    assert error.value.__cause__ is not None


def test_out_of_memory_in_a_callable_makes_its_calls_smaller(vectors_of):
    import torch

    def encode(sentences):
        if len(sentences) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return numbers(sentences)

    assert vectors_of(load(encode), TEXTS).tolist() == [[5, 1], [11, 1], [5, 1], [0, 1]]


def test_a_function_is_imported_from_the_current_folder(module, vectors_of):
    module("here", "class Model:\n    def encode(self, s):\n        return [[1.0]] * len(s)\nmodel = Model()\n")
    encoder = load("here:model.encode")
    assert encoder.identity.name == "here:model.encode"
    assert vectors_of(encoder, ["a"]).tolist() == vectors_of(load("here:model"), ["a"]).tolist() == [[1.0]]
    with pytest.raises(UserError, match="no pooling"):
        embed(encoder, ["a"], poolings=["avg"])


@pytest.mark.parametrize(
    ("content", "target", "words"),
    [
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
    with pytest.raises(UserError, match=words):
        load(target)
