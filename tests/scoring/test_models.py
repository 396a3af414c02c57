"""Models by name: published systems, records, and functions that must be those that were measured."""

import logging
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb
from stsbench.data.benchmarks import load_sample
from stsbench.data.sentences import sentences_in
from stsbench.data.tables import StsData
from stsbench.encoders import load as module
from stsbench.encoders.load import Resolved, resolve
from stsbench.encoders.simple import from_function
from stsbench.encoders.use import Use
from stsbench.published.catalogue import checkpoint_by_name, checkpoints
from stsbench.records.show import cite
from stsbench.records.store import save_run
from stsbench.scoring import subjects
from stsbench.scoring.subjects import vectors_of

MIRROR = "cambridgeltl/mirror-bert-base-uncased-sentence"


@pytest.mark.parametrize(
    ("name", "model", "pooling", "note"),
    [
        ("esimcse-bert-base", "ffgcc/esimcse-bert-base-uncased", "cls_before_pooler", "of caskcsg"),
        ("sup-simcse-bert-base", "princeton-nlp/sup-simcse-bert-base-uncased", "cls", ""),
        ("Mirror BERT", MIRROR, "cls_before_pooler", r"pooling cls_before_pooler \(unverified\)"),
        (MIRROR, MIRROR, "cls_before_pooler", "unverified"),
        ("declutr", "johngiorgi/declutr-base", "avg", r"\(unverified\), pooling avg"),
    ],
)
def test_a_name_decides_checkpoint_and_pooling_and_unverified_choices_are_noted(
    name: str, model: str, pooling: str, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: dict[str, Any] = {}

    def load(name: str, options: Use) -> Any:
        loaded.update(vars(options), model=name)
        return from_function(lambda sentences: [[len(sentence), 1.0] for sentence in sentences])

    monkeypatch.setattr(module, "_load_checkpoint", load)
    notes = sb.load(name).notes
    assert (loaded["model"], loaded["pooling"]) == (model, pooling)
    assert re.search(note, notes[0])
    sb.load(name, pooling="last", max_length=16)
    assert (loaded["pooling"], loaded["max_length"]) == ("last", 16)


def test_other_names_and_folders_are_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "esimcse-bert-base").mkdir()
    monkeypatch.chdir(tmp_path)
    for name in ("minilm", "toys:esimcse", "gpt2", "nobody/esimcse-bert-base-uncased", "esimcse-bert-base"):
        assert resolve(name) == Resolved(name, Use())
    assert resolve("princeton-nlp/unsup-simcse-bert-base-uncased").notes == ()
    with pytest.raises(sb.UserError, match="without a known checkpoint on the Hugging Face Hub"):
        sb.load("mocose-bert-base")


@pytest.mark.parametrize("use", [Use(), Use(pooling="avg", max_length=64, prompt="query: ")])
def test_a_system_and_the_hub_name_of_its_checkpoint_resolve_alike(use: Use) -> None:
    for entry in checkpoints().values():
        if not entry.hub:
            continue
        resolved = resolve(entry.name, use)
        if use == Use():
            name = "minilm" if entry.name == "all-minilm-l6-v2" else entry.hub
            assert resolved.name == name
            assert resolved.use == Use(pooling=entry.pooling, max_length=entry.max_length)
        # If several systems share a checkpoint, the Hub name stands for the first of them.
        if checkpoint_by_name(entry.hub) == entry and entry.name != "all-minilm-l6-v2":
            by_hub_name = resolve(entry.hub, use)
            assert (resolved.name, resolved.use) == (by_hub_name.name, by_hub_name.use), entry.name


def test_known_models_and_tasks_are_cited_and_your_own_are_named_as_such(
    hash_encode: Callable[..., Any], toy_data: Callable[..., StsData], tmp_path: Path
) -> None:
    catalogued = [replace(toy_data(name), status="verified") for name in ("STS12", "STS-B")]
    record = sb.evaluate(hash_encode, catalogued)
    minilm = checkpoints()["all-minilm-l6-v2"]
    models = {MIRROR: (None, "liu-etal-2021-fast"), "runs/mine": (minilm.weights_sha256, "reimers-gurevych-2019")}
    for number, (name, (weights, paper)) in enumerate(models.items()):
        model = record.model.model_copy(update={"name": name, "weights_sha256": weights})
        save_run(record.model_copy(update={"model": model}).with_items(record.items), tmp_path / str(number))
        citations = cite([tmp_path / str(number)])
        assert list(citations) == [name, "STS12", "STS-B"]
        assert paper in citations[name].lower()
    # A file of your own may have the name of a task.
    sb.evaluate(hash_encode, [toy_data("STS12"), toy_data("mine")], out=tmp_path / "run")
    name, *tasks = cite([tmp_path / "run"]).values()
    assert name == "not known here: see its model card."
    assert tasks == ["a file of your own."] * 2


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
    changed = rf"{name} has changed: the \w+ similarity of pair \S+ of sample is .*"
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
