"""The items of compared pairs: a row for each."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.spatial import distance

from stsbench.data.benchmarks import load_sample
from stsbench.data.tables import StsData
from stsbench.scoring.kinds.sts import StsPairs, compared, compared_elsewhere
from stsbench.scoring.settings import GIVEN_SIMILARITY
from stsbench.scoring.task import Vectors

COLUMNS = {
    "kind": "str",
    "task": "str",
    "split": "str",
    "text": "str",
    "subset": "str",
    "item_id": "str",
    "sentence_a": "id",
    "sentence_b": "id",
    "folded_a": "id",
    "folded_b": "id",
    "gold": "float",
    "words_a": "int",
    "characters_a": "int",
    "words_b": "int",
    "characters_b": "int",
    "cosine": "float",
    "dot": "float",
    "euclidean": "float",
    "manhattan": "float",
    "subwords_a": "int",
    "subwords_b": "int",
    "identical": "bool",
    "zero": "bool",
}


@pytest.fixture
def table(toy_data: Callable[..., StsData], hash_encode: Callable[..., Any]) -> Any:
    data = toy_data(pairs=40)
    sides = StsPairs(data).sentences()
    distinct = list(dict.fromkeys(sides))
    rows = np.array([distinct.index(text) for text in sides])
    lengths = np.array([len(text.split()) for text in sides])
    return compared(StsPairs(data), Vectors(hash_encode(distinct), rows, lengths))


def test_the_columns_and_their_types_are_as_documented(table: Any) -> None:
    assert list(table.columns) == list(COLUMNS)
    kinds = {"float": "f8", "int": "i8", "bool": "?", "id": "u8"}
    for name, kind in COLUMNS.items():
        if kind == "str":
            assert all(isinstance(value, str) for value in table[name])
        else:
            assert table[name].dtype == np.dtype(kinds[kind]), name


def test_a_pair_of_one_sequence_has_the_cosine_one_exactly(table: Any, toy_data: Any) -> None:
    data = toy_data(pairs=40).pairs
    same = (data["sentence1"] == data["sentence2"]).to_numpy()
    assert (table["identical"] == same).all()
    left = np.array([0, 0])
    noisy = np.array([[0.1, 0.3, 0.7]], dtype=np.float32)
    pairs = compared(StsPairs(toy_data(pairs=2)), Vectors(noisy, np.concatenate([left, left]), np.full(4, -1)))
    assert pairs["cosine"].tolist() == [1.0, 1.0]
    assert pairs["identical"].all()


def test_a_zero_vector_scores_zero_and_is_marked(toy_data: Callable[..., StsData]) -> None:
    vectors = np.array([[1.0, 0.0], [0.0, 0.0], [0.6, 0.8]], dtype=np.float32)
    rows = np.array([0, 1, 1, 0, 2, 2, 1, 0])
    table = compared(StsPairs(toy_data(pairs=4)), Vectors(vectors, rows, np.full(8, -1)))
    assert table["cosine"].tolist() == [pytest.approx(0.6), 0.0, 0.0, 1.0]
    assert table["zero"].tolist() == [False, True, True, False]
    assert table["identical"].tolist() == [False, False, True, True]


def test_every_similarity_is_that_of_scipy(table: Any, toy_data: Any, hash_encode: Any) -> None:
    data = toy_data(pairs=40).pairs
    u, v = hash_encode(list(data["sentence1"])), hash_encode(list(data["sentence2"]))
    for kind, function in {
        "cosine": lambda a, b: 1 - distance.cosine(a, b),
        "dot": np.dot,
        "euclidean": lambda a, b: -distance.euclidean(a, b),
        "manhattan": lambda a, b: -distance.cityblock(a, b),
    }.items():
        expected = [function(a, b) for a, b in zip(u, v, strict=True)]
        np.testing.assert_allclose(table[kind], expected, rtol=1e-12, atol=1e-12)


def test_lengths_are_of_each_side(table: Any, toy_data: Any) -> None:
    data = toy_data(pairs=40).pairs
    for side, column in (("a", "sentence1"), ("b", "sentence2")):
        assert table[f"words_{side}"].tolist() == [len(text.split()) for text in data[column]]
        assert table[f"characters_{side}"].tolist() == [len(text) for text in data[column]]
        assert table[f"subwords_{side}"].tolist() == table[f"words_{side}"].tolist()


def test_given_similarities_stand_in_a_column_of_their_own(toy_data: Callable[..., StsData]) -> None:
    values = np.linspace(-1, 1, 30)
    table = compared_elsewhere(StsPairs(toy_data()), {GIVEN_SIMILARITY: values})
    assert table["given"].tolist() == values.tolist()
    assert set(COLUMNS) - {"cosine", "dot", "euclidean", "manhattan"} <= set(table.columns)
    assert (table["subwords_a"] == -1).all()
    assert not table["identical"].any()


def test_the_sample_s_design_is_kept() -> None:
    sample = load_sample()
    table = compared_elsewhere(StsPairs(sample), {GIVEN_SIMILARITY: np.zeros(len(sample.pairs))})
    assert table["design"].tolist() == sample.pairs["design"].tolist()
