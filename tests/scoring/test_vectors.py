"""The vectors of a record's model: of the same model, or it is told that it is another one."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_sample
from stsbench.data.sentences import sentences_in
from stsbench.data.tables import StsData
from stsbench.encoders.protocol import Identity
from stsbench.encoders.use import own_use
from stsbench.scoring import subjects as vectors_module
from stsbench.scoring.subjects import vectors_of

NO_INTERVALS = sb.Intervals(None)
CODE = """
from pathlib import Path

def encode(sentences):
    factor = float(Path(__file__).with_name("factor.txt").read_text())
    return [[len(s), factor * s.count("e"), s.count("a"), 1.0] for s in sentences]
"""


@pytest.fixture
def function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> tuple[str, Path]:
    """Return the name of an encoding function, and the file that it reads a number from."""
    # Each test its own module: Python imports one of a name once.
    name = f"own_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(CODE)
    (tmp_path / "factor.txt").write_text("1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    vectors_module._tell_unknown.cache_clear()
    return f"{name}:encode", tmp_path / "factor.txt"


@pytest.mark.parametrize("options", [{}, {"dimensions": 2}, {"normalize": True}], ids=str)
def test_a_function_that_changed_since_its_record_was_made_is_told(
    options: dict[str, Any], function: tuple[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    name, factor = function
    record = sb.evaluate(sb.load(name, **options), "sample", intervals=NO_INTERVALS)
    sb.geometry(record, task="sample")
    factor.write_text("1.5")
    told = rf"{name} is not as it was when the run was made: the \w+ similarity of pair \S+ of sample is"
    with pytest.raises(UserError, match=told) as error:
        sb.geometry(record, task="sample")
    assert f"measure it again with `stsbench run --encoder-module {name}`." in str(error.value)
    assert not caplog.records


def test_a_function_is_held_against_its_record_where_other_sentences_are_asked_for(
    function: tuple[str, Path],
) -> None:
    name, factor = function
    record = sb.evaluate(name, "sample", intervals=NO_INTERVALS)
    texts = ["a sentence that was never measured", "and another"]
    assert vectors_of(record, texts).each().shape == (2, 4)
    factor.write_text("2")
    with pytest.raises(UserError, match="is not as it was when the run was made"):
        vectors_of(record, texts)


@pytest.mark.parametrize("why", ["whitened", "own pairs", "no items"])
def test_where_a_function_cannot_be_held_against_its_record_that_is_said_once(
    why: str,
    function: tuple[str, Path],
    caplog: pytest.LogCaptureFixture,
    toy_data: Callable[..., StsData],
    tmp_path: Path,
) -> None:
    name, _ = function
    tasks: Any = toy_data() if why == "own pairs" else "sample"
    whiten, out = (2 if why == "whitened" else None), tmp_path / "run"
    record = sb.evaluate(sb.load(name, whiten=whiten), tasks, intervals=NO_INTERVALS, out=out)
    if why == "no items":
        (out / "items.parquet").unlink()
        record = sb.load_run(out)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            vectors_of(record, ["a sentence", "another one", "a third"])
    reason = {"whitened": "whitened", "own pairs": "none of the sentences", "no items": "is missing"}[why]
    assert [reason in line and "cannot be known" in line for line in caplog.messages] == [True]


def test_the_rounding_of_other_batches_is_no_change(function: tuple[str, Path]) -> None:
    name, factor = function
    record = sb.evaluate(name, "sample", intervals=NO_INTERVALS)
    factor.write_text("1.00001")
    vectors_of(record, sentences_in(load_sample()))


def test_an_identity_is_compared_whole_and_the_difference_is_shown(tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("dog 1 2\ncat 3 4\n")
    record = sb.evaluate(str(words), "sample", intervals=NO_INTERVALS)
    weights = str(record.model.weights_sha256)
    other = f"{weights[:-1]}{'0' if weights[-1] != '0' else '1'}"
    altered = record.model_copy(update={"model": record.model.model_copy(update={"weights_sha256": other})})
    with pytest.raises(UserError, match=rf"its weights_sha256 is {weights}, the record's {other};"):
        vectors_of(altered, ["dog"])


def test_modules_that_differ_at_the_end_alone_are_another_identity() -> None:
    shorter, longer = (
        Identity("it", "transformer", own_use("avg"), modules=("dense:Tanh",) * count).key() for count in (2, 3)
    )
    assert {name for name in shorter if shorter[name] != longer[name]} == {"modules"}
