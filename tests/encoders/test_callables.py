"""A callable's vectors are taken as they are, or refused with what was wrong with them."""

import sys

import numpy as np
import pytest

from stsbench.base.errors import UserError
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed

TEXTS = ["a cat", "the dog ran", "a cat", ""]


def numbers(sentences):
    return [[len(sentence), 1.0] for sentence in sentences]


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Return a function that writes a module into the current folder, which is not on the path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(name, content):
        monkeypatch.delitem(sys.modules, name, raising=False)
        (tmp_path / f"{name}.py").write_text(content)

    return write


def as_list(sentences):
    return numbers(sentences)


def as_double(sentences):
    return np.array(numbers(sentences))


def as_integers(sentences):
    return np.array(numbers(sentences), dtype=np.int64)


def as_tensor(sentences):
    import torch

    return torch.tensor(numbers(sentences), dtype=torch.bfloat16, requires_grad=True)


def as_rows(sentences):
    return [np.array(row, dtype=np.float32) for row in numbers(sentences)]


@pytest.mark.parametrize("function", [as_list, as_double, as_integers, as_tensor, as_rows])
def test_lists_arrays_and_tensors_are_taken(function, vectors_of):
    vectors = vectors_of(load(function), TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[5, 1], [11, 1], [5, 1], [0, 1]]


def test_it_is_named_and_not_cached():
    encoder = load(as_list)
    assert encoder.identity.name.endswith("test_callables:as_list")
    assert "not cached" in encoder.notes[0]
    found = embed(encoder, TEXTS)
    assert found.lengths.tolist() == [-1] * 4
    assert not found.truncated.any()
    assert embed(encoder, TEXTS).cost.encoded == 3


def test_an_object_with_a_method_encode_is_taken(vectors_of):
    class Model:
        def encode(self, sentences):
            return numbers(sentences)

    encoder = load(Model())
    assert encoder.identity.name.endswith("Model")
    assert vectors_of(encoder, ["abc"]).tolist() == [[3, 1]]


def test_a_callable_may_fill_the_same_array_again(vectors_of):
    held = np.zeros((1, 1), dtype=np.float32)

    def encode(sentences):
        held[:] = [[len(sentence)] for sentence in sentences]
        return held

    assert vectors_of(load(encode), ["a", "bb", "ccc"], token_budget=1).tolist() == [[1], [2], [3]]


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (np.zeros, r"returned shape \(3,\) for 3 sentences: return an array of shape \(3, dim"),
        (lambda n: np.zeros((n + 1, 4)), r"returned shape \(4, 4\) for 3 sentences"),
        (lambda n: np.zeros((n, 0)), r"returned shape \(3, 0\)"),
        (lambda n: np.zeros((n, 2, 2)), r"returned shape \(3, 2, 2\)"),
        (lambda n: [[1.0]] * (n - 1) + [[1.0, 2.0]], "returned list that is no matrix of numbers"),
        (lambda n: ["a vector"] * n, "returned list that is no matrix of numbers"),
        (lambda n: {"vectors": 1}, "returned dict that is no matrix of numbers"),
        (lambda n: None, "returned NoneType that is no matrix of numbers"),
        (lambda n: [["1.0", "2.0"]] * n, "returned list that is no matrix of numbers"),
        (lambda n: [[None, 1.0]] * n, "NaN or infinite values in 3 of 3 vectors"),
        (lambda n: np.full((n, 2), np.datetime64("2020-01-01")), "returned ndarray that is no matrix of numbers"),
        (lambda n: np.ma.masked_equal(np.ones((n, 2)), 1), "returned MaskedArray that is no matrix of numbers"),
        (lambda n: np.full((n, 2), 1 + 2j), "returned complex numbers, whose imaginary parts"),
        (lambda n: [[1.0, 1j]] * n, "returned complex numbers, whose imaginary parts"),
        (
            lambda n: np.full((n, 2), 1e39),
            r"numbers that float32 cannot hold in 3 of 3 vectors \(such as 1e\+39\)",
        ),
        (lambda n: [[10**400, 1]] * n, "returned list that is no matrix of numbers"),
        (
            lambda n: np.full((n, 2), 1e-50),
            r"numbers that float32 cannot hold in 3 of 3 vectors \(such as 1e-50\)",
        ),
        (lambda n: (row for row in [[1.0]] * n), "returned generator that is no matrix"),
        (lambda n: np.full((n, 2), np.nan), "NaN or infinite values in 3 of 3 vectors"),
        (lambda n: np.array([[1.0]] * (n - 1) + [[np.inf]]), "NaN or infinite values in 1 of 3 vectors"),
    ],
)
def test_what_is_not_one_vector_a_sentence_is_refused(returned, said):
    with pytest.raises(UserError, match=said):
        embed(load(lambda sentences: returned(len(sentences))), ["a", "b", "c"])


def test_dimensions_that_vary_between_calls_are_refused():
    with pytest.raises(UserError, match="returned vectors of 2 and of 4 dimensions"):
        embed(load(lambda s: np.ones((len(s), len(s[0])))), ["ab", "abcd"], token_budget=1)


def test_complex_tensors_are_refused():
    import torch

    with pytest.raises(UserError, match="returned complex numbers"):
        embed(load(lambda s: torch.ones((len(s), 2), dtype=torch.complex64).conj()), ["a"])


def test_large_and_small_numbers_that_float32_holds_are_taken_at_their_value(vectors_of):
    from stsbench.encoders.postprocess import normalize

    function = {"a": [3e38, 3e38], "b": [3e-38, 4e-38], "c": [0.0, 0.0], "d": [3.0, 4.0]}
    vectors = vectors_of(load(lambda s: [function[text] for text in s]), list("abcd"))
    unit = normalize(vectors)
    np.testing.assert_allclose(unit, [[0.5**0.5] * 2, [0.6, 0.8], [0, 0], [0.6, 0.8]], atol=1e-7)
    assert normalize(vectors, out=vectors) is vectors
    assert np.array_equal(vectors, unit)


@pytest.mark.parametrize(
    "change",
    [list.sort, list.reverse, list.clear, lambda s: s.append("more"), lambda s: s.__setitem__(0, "other")],
    ids=["sort", "reverse", "clear", "append", "set"],
)
def test_a_callable_that_changes_the_list_it_is_given_is_refused(change):
    def encode(sentences):
        vectors = numbers(sentences)
        change(sentences)
        return vectors

    with pytest.raises(UserError, match=r"changes the list of sentences that it is given.*work on a copy"):
        embed(load(encode), ["b", "a", "cc"])


def test_an_error_in_it_is_told_as_its_own_with_the_line(module):
    module("mine", "def helper(s):\n    return s[99]\n\ndef encode(sentences):\n    return helper(sentences)\n")
    with pytest.raises(UserError, match=r"mine:encode raised IndexError: .*mine\.py, line 2\)") as told:
        embed(load("mine:encode"), ["a", "b"])
    assert isinstance(told.value.__cause__, IndexError)


def test_an_error_below_it_is_told_with_its_own_line(module):
    module("deep", "import json\ndef encode(sentences):\n    return json.loads('{')\n")
    with pytest.raises(UserError, match=r"deep:encode raised JSONDecodeError: .*deep\.py, line 3\)"):
        embed(load("deep:encode"), ["a"])


def test_a_callable_that_takes_no_list_is_told():
    with pytest.raises(UserError, match=r"raised TypeError: .*takes 0 positional arguments"):
        embed(load(lambda: []), ["a"])


def test_an_interrupt_in_it_is_not_an_error_of_its_own():
    def encode(sentences):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed(load(encode), ["a"])


def test_out_of_memory_in_it_makes_the_calls_smaller(vectors_of):
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
    assert vectors_of(encoder, ["a"]).tolist() == [[1.0]]
    assert vectors_of(load("here:model"), ["a"]).tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("content", "target", "said"),
    [
        ("x = 3", "them:x", "is a int, not a callable"),
        ("x = 'text'", "them:x", "is a str, not a callable"),
        ("x = 3", "them:y", "module them has no 'y'"),
        ("x = 3", "them:x.y", r"module them has no 'x\.y'"),
        ("x = 3", "them:", "does not name a callable"),
        ("x = 3", ":x", "does not name a callable"),
        ("x = 3", "nowhere:x", "no module named 'nowhere'"),
        ("import not_installed", "them:x", "no module named 'not_installed'"),
        ("def x(:\n", "them:x", r"importing them raised SyntaxError: .*them\.py, line 1\)"),
        ("x = {}['key']", "them:x", r"importing them raised KeyError: 'key' \(.*them\.py, line 1\)"),
        ("import os\nos.nothing", "them:x", r"importing them raised AttributeError: .*them\.py, line 2\)"),
    ],
)
def test_a_target_that_is_not_there_or_fails_is_told(content, target, said, module):
    module("them", content)
    with pytest.raises(UserError, match=said):
        load(target)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pooling": "cls"}, "--pooling: not for a callable"),
        ({"max_length": 32}, "--max-length: not for a callable"),
        ({"prompt": "query: ", "precision": "bf16"}, "--prompt and --precision: not for a callable"),
        ({"revision": "main"}, "--revision: not for a callable"),
        ({"device": "cuda"}, "--device: not for a callable"),
    ],
)
def test_options_that_would_do_nothing_are_refused(options, said):
    with pytest.raises(UserError, match=said):
        load(as_list, **options)


def test_a_pooling_that_it_does_not_have_is_refused():
    with pytest.raises(UserError, match="has no pooling 'avg': its own is 'own'"):
        embed(load(as_list), ["a"], poolings=["avg"])
