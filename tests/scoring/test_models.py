"""A published system's name stands for its checkpoint, used as its paper used it."""

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.encoders import load as module
from stsbench.encoders.callables import from_function
from stsbench.encoders.load import load_with
from stsbench.encoders.published_names import Resolved, resolve
from stsbench.encoders.use import Use
from stsbench.published.catalogue import checkpoints, known_checkpoint
from stsbench.records.show import cite
from stsbench.records.store import save_run


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Put a callable in place of any checkpoint, and return what was asked of the loader last."""
    asked: dict[str, Any] = {}

    def load(name: str, options: Use) -> Any:
        asked.update(vars(options), model=name)
        return from_function(lambda sentences: [[len(sentence), 1.0] for sentence in sentences])

    monkeypatch.setattr(module, "_load_checkpoint", load)
    return asked


def test_the_name_says_what_to_load_how_to_pool_and_what_to_expect(loaded: dict[str, Any]) -> None:
    first, second, *_ = sb.load("esimcse-bert-base").notes
    assert loaded["model"] == "ffgcc/esimcse-bert-base-uncased"
    assert (loaded["pooling"], loaded["max_length"]) == ("cls_before_pooler", 512)
    assert first.startswith("esimcse-bert-base is ffgcc/esimcse-bert-base-uncased (ESimCSE/README.md of caskcsg")
    assert second.endswith("is expected to score as esimcse-coling2022-3/esimcse-bert-base, Avg. 78.27.")


def test_a_run_tells_it_too(loaded: dict[str, Any]) -> None:
    notes = sb.evaluate("esimcse-bert-base", "sample", intervals=sb.Intervals(None)).notes
    assert any("expected to score as esimcse-coling2022-3/esimcse-bert-base" in note for note in notes)


def test_a_supervised_system_is_pooled_with_its_head(loaded: dict[str, Any]) -> None:
    sb.load("sup-simcse-bert-base")
    assert loaded["pooling"] == "cls"


def test_what_no_document_gives_is_marked_unverified(loaded: dict[str, Any]) -> None:
    assert "pooling cls_before_pooler (unverified)" in sb.load("Mirror BERT").notes[0]
    assert "(unverified), pooling avg" in sb.load("declutr").notes[0]


def test_a_choice_of_the_person_s_is_obeyed_and_remarked_on(loaded: dict[str, Any]) -> None:
    encoder = sb.load("mirror-bert", pooling="avg", max_length=16)
    assert (loaded["pooling"], loaded["max_length"]) == ("avg", 16)
    assert "with pooling avg instead, other scores are to be expected" in encoder.notes[0]


@pytest.mark.parametrize("name", ["mocose-bert-base", "glove", "is-bert"])
def test_a_system_without_a_public_checkpoint_is_told_as_such(name: str) -> None:
    with pytest.raises(UserError, match="without a known checkpoint on the Hugging Face Hub"):
        sb.load(name)


@pytest.mark.parametrize("name", ["minilm", "toys:esimcse", "gpt2", "nobody/esimcse-bert-base-uncased"])
def test_every_other_name_is_left_alone(name: str) -> None:
    assert resolve(name) == Resolved(name, Use())


def test_a_folder_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "esimcse-bert-base").mkdir()
    monkeypatch.chdir(tmp_path)
    assert resolve("esimcse-bert-base") == Resolved("esimcse-bert-base", Use())


@pytest.mark.parametrize("asked", [Use(), Use(pooling="avg", max_length=64, prompt="query: ")])
def test_a_system_and_the_hub_name_of_its_checkpoint_are_used_alike(asked: Use) -> None:
    for entry in checkpoints().values():
        # Where several systems share a checkpoint, the Hub name stands for the first of them.
        if entry.hub and known_checkpoint(entry.hub) == entry and entry.name != "all-minilm-l6-v2":
            by_system, by_hub_name = resolve(entry.name, asked), resolve(entry.hub, asked)
            assert (by_system.name, by_system.use) == (by_hub_name.name, by_hub_name.use), entry.name


def test_mirror_bert_is_pooled_alike_by_either_name_and_the_doubt_is_told(loaded: dict[str, Any]) -> None:
    for name in ("mirror-bert-base", "cambridgeltl/mirror-bert-base-uncased-sentence"):
        encoder = sb.load(name)
        assert loaded["model"] == "cambridgeltl/mirror-bert-base-uncased-sentence"
        assert loaded["pooling"] == "cls_before_pooler"
        assert "cls_before_pooler" in encoder.notes[0]
        assert "unverified" in encoder.notes[0]


def test_a_hub_name_whose_use_is_verified_needs_no_words(loaded: dict[str, Any]) -> None:
    assert resolve("princeton-nlp/unsup-simcse-bert-base-uncased").notes == ()


def test_every_known_checkpoint_resolves_to_what_its_entry_says() -> None:
    for entry in checkpoints().values():
        if entry.hub:
            resolved = resolve(entry.name)
            name = "minilm" if entry.name == "all-minilm-l6-v2" else entry.hub
            options = Use(pooling=entry.pooling, max_length=entry.max_length)
            assert (resolved.name, resolved.use) == (name, options)


def test_the_options_of_loading_are_one_list_with_one_set_of_defaults() -> None:
    of_fields = {field.name: field.default for field in dataclasses.fields(Use)}
    signature = inspect.signature(sb.load).parameters.values()
    assert of_fields == {
        parameter.name: parameter.default
        for parameter in signature
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }


def test_options_of_loading_know_which_differ_from_the_defaults() -> None:
    assert Use().changed() == []
    assert Use(prompt="", device="cpu").changed() == ["prompt", "device"]


def test_every_option_of_load_reaches_the_loader(loaded: dict[str, Any]) -> None:
    options = Use(
        pooling="max",
        max_length=9,
        prompt="q: ",
        precision="bf16",
        device="cpu",
        revision="v2",
        trust_remote_code=True,
    )
    sb.load("some/model", **vars(options))
    assert loaded == vars(options) | {"model": "some/model"}
    load_with("other/model", options)
    assert loaded == vars(options) | {"model": "other/model"}


def test_the_paper_of_mirror_bert_is_cited_by_the_hub_name_and_for_a_folder_by_the_hash_of_its_weights(
    loaded: dict[str, Any], tmp_path: Path
) -> None:
    record = sb.evaluate("mirror-bert-base", "sample", intervals=sb.Intervals(None))
    minilm = checkpoints()["all-minilm-l6-v2"]
    named = {
        "cambridgeltl/mirror-bert-base-uncased-sentence": ("", "liu-etal-2021-fast"),
        "runs/mine": (minilm.weights_sha256, "reimers-gurevych-2019"),
    }
    for number, (name, (weights, paper)) in enumerate(named.items()):
        model = record.model.model_copy(update={"name": name, "weights_sha256": weights or None})
        folder = tmp_path / str(number)
        save_run(record.model_copy(update={"model": model}).with_items(record.items), folder)
        assert paper in cite([folder])[name]
