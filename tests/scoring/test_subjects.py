"""Records and models by name, and the vectors of a record's model, which must be the model that was measured."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb
from stsbench.data.benchmarks import load_sample
from stsbench.data.sentences import sentences_in
from stsbench.data.tables import StsData
from stsbench.scoring import subjects
from stsbench.scoring.subjects import vectors_of

Encode = Callable[[list[str]], Any]
Data = Callable[..., StsData]
CODE = """
from pathlib import Path

def encode(sentences):
    factor = float(Path(__file__).with_name("factor.txt").read_text())
    return [[len(s), factor * s.count("e"), s.count("a"), 1.0] for s in sentences]
"""


@pytest.fixture
def function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> tuple[str, Path]:
    """Return the name of an encoding function, and the file that it reads a number from."""
    name = f"own_{abs(hash(request.node.name))}"  # Python imports a module of one name once
    (tmp_path / f"{name}.py").write_text(CODE)
    (tmp_path / "factor.txt").write_text("1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    subjects._warn_unchecked.cache_clear()
    return f"{name}:encode", tmp_path / "factor.txt"


@pytest.mark.parametrize("options", [{}, {"dimensions": 2}, {"normalize": True}], ids=str)
def test_a_function_that_has_changed_since_its_record_is_an_error(
    options: dict[str, Any], function: tuple[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    name, factor = function
    record = sb.evaluate(sb.load(name, **options), "sample")
    factor.write_text("1.00001")  # as much as the rounding in other batches
    sb.geometry(record, task="sample")
    factor.write_text("1.5")
    changed = rf"{name} has changed since the run: the \w+ similarity of pair \S+ of sample is .*"
    with pytest.raises(sb.UserError, match=changed + f"`stsbench run --encoder-module {name}`"):
        vectors_of(record, sentences_in(load_sample()))
    assert not caplog.records


@pytest.mark.parametrize("why", ["whitened", "own pairs", "no items"])
def test_a_function_that_cannot_be_checked_is_a_warning_once(
    why: str, function: tuple[str, Path], caplog: pytest.LogCaptureFixture, toy_data: Data, tmp_path: Path
) -> None:
    tasks: Any = toy_data() if why == "own pairs" else "sample"
    encoder = sb.load(function[0], whiten=2 if why == "whitened" else None)
    record = sb.evaluate(encoder, tasks, out=tmp_path / "run")
    if why == "no items":
        (tmp_path / "run" / "items.parquet").unlink()
        record = sb.load_run(tmp_path / "run")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            vectors_of(record, sentences_in(load_sample()))
    assert ["no recorded similarity could be compared" in line for line in caplog.messages] == [True]


def test_a_model_with_other_weights_is_an_error_that_shows_the_difference(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("dog 1 2\ncat 3 4\n")
    record = sb.evaluate(str(tmp_path / "words.txt"), "sample")
    weights = str(record.model.weights_sha256)
    other = f"{weights[:-1]}{'0' if weights[-1] != '0' else '1'}"
    altered = record.model_copy(update={"model": record.model.model_copy(update={"weights_sha256": other})})
    with pytest.raises(sb.UserError, match=rf"its weights_sha256 is {weights}, the record's {other}\."):
        vectors_of(altered, ["dog"])
