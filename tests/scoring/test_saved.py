"""Similarities that someone computed elsewhere."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.scoring.kinds.pair_classification import PairClassification
from stsbench.scoring.kinds.sts import StsPairs

Data = Callable[..., StsData]


@pytest.fixture
def scored(toy_data: Data, hash_encode: Callable[..., Any]) -> tuple[list[StsData], sb.RunRecord]:
    sets = [toy_data("a"), toy_data("b", seed=1, pairs=45)]
    return sets, sb.evaluate(hash_encode, sets)


@pytest.mark.parametrize("ending", [".npy", ".txt"])
def test_saved_similarities_score_as_the_vectors_they_came_from(
    ending: str, scored: tuple[list[StsData], sb.RunRecord], tmp_path: Path
) -> None:
    sets, record = scored
    path = tmp_path / f"mine{ending}"
    values = record.items["cosine"].to_numpy()
    if ending == ".npy":
        np.save(path, values)
    else:
        path.write_text("".join(f"{value!r}\r\n" for value in values.tolist()) + "\n", encoding="utf-8")
    given = sb.evaluate_similarities(path, sets)
    assert [task.value for task in given.scores] == [task.value for task in record.scores]
    assert [task.interval for task in given.scores] == [task.interval for task in record.scores]
    assert given.items["given"].tolist() == values.tolist()
    assert given.protocol.similarity == "given"
    assert given.signatures[0].similarity == "given"
    assert given.model.name == "mine"
    assert given.model.weights_sha256 is not None


def test_tasks_of_two_kinds_get_their_own_similarities_whatever_their_order(
    toy_data: Data, hash_encode: Callable[..., Any], tmp_path: Path
) -> None:
    pairs = toy_data("paired", seed=3, pairs=45).pairs
    labelled = replace(toy_data("paired"), pairs=pairs.assign(gold=(pairs["gold"] > 2.5).astype(float)))
    tasks = [PairClassification(labelled), StsPairs(toy_data("a"))]
    record = sb.evaluate(hash_encode, tasks)
    np.save(tmp_path / "s.npy", record.items["cosine"].to_numpy())
    for order in (tasks, tasks[::-1]):
        given = sb.evaluate_similarities(tmp_path / "s.npy", order)
        assert [(task.task, task.value) for task in given.scores] == [
            (task.task, task.value) for task in record.scores
        ]


@pytest.mark.parametrize("count", [0, 29, 31])
def test_another_count_than_that_of_the_pairs_is_a_mistake(count: int, toy_data: Data, tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", np.linspace(0, 1, count))
    with pytest.raises(sb.UserError, match=rf"s\.npy has {count} similarities for 30 pairs \(toy\): give one"):
        sb.evaluate_similarities(tmp_path / "s.npy", toy_data())


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_similarity_that_is_no_finite_number_is_named_by_its_place(
    bad: float, toy_data: Data, tmp_path: Path
) -> None:
    values = np.linspace(0, 1, 30)
    values[12] = bad
    np.save(tmp_path / "s.npy", values)
    (tmp_path / "s.txt").write_text("\n".join(map(str, values)), encoding="utf-8")
    for name in ("s.npy", "s.txt"):
        with pytest.raises(sb.UserError, match=rf"{name}: number 13 of 30 is {bad}: give a finite number"):
            sb.evaluate_similarities(tmp_path / name, toy_data())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("s.txt", b"0.5\nhalf\n", r"s\.txt, line 2: 'half' is not a number"),
        ("s.txt", b"0.5\n\n0.5\n", r"s\.txt, line 2: '' is not a number"),
        ("s.txt", b"", r"s\.txt, line 1: '' is not a number"),
        ("s.txt", b"\xff\xfe", r"s\.txt is not UTF-8 text"),
        ("s.npy", b"", r"s\.npy is not a \.npy file of numbers"),
        ("s.npy", b"0.5\n0.6\n", r"s\.npy is not a \.npy file of numbers"),
    ],
)
def test_a_file_of_something_else_is_told_with_its_line(
    name: str, content: bytes, message: str, toy_data: Data, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(sb.UserError, match=message):
        sb.evaluate_similarities(tmp_path / name, toy_data())


@pytest.mark.parametrize("values", [np.zeros((30, 2)), np.array(["a"] * 30), np.zeros(30, dtype=complex)])
def test_an_array_that_is_no_vector_of_numbers_is_told(values: Any, toy_data: Data, tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", values)
    with pytest.raises(sb.UserError, match=r"s\.npy holds .* of shape .*: save one number per pair"):
        sb.evaluate_similarities(tmp_path / "s.npy", toy_data())


def test_an_archive_of_arrays_is_told(toy_data: Data, tmp_path: Path) -> None:
    with (tmp_path / "s.npy").open("wb") as stream:
        np.savez(stream, a=np.zeros(30))
    with pytest.raises(sb.UserError, match=r"s\.npy holds an archive"):
        sb.evaluate_similarities(tmp_path / "s.npy", toy_data())


def test_a_missing_file_is_told(toy_data: Data, tmp_path: Path) -> None:
    for name in ("s.npy", "s.txt"):
        with pytest.raises(sb.UserError, match=rf"no such file: .*{name}"):
            sb.evaluate_similarities(tmp_path / name, toy_data())
