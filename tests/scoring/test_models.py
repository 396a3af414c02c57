"""A published system's name stands for its checkpoint, used as its paper used it."""

from pathlib import Path
from typing import Any

import pytest

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.encoders import load as module
from stsbench.encoders.load import resolve
from stsbench.published.catalogue import checkpoints


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Put a callable in place of any checkpoint, and return what was asked of the loader last."""
    asked: dict[str, Any] = {}
    real = module.load_checkpoint

    def load(model: Any, **options: Any) -> Any:
        asked.update(options, model=model)
        return real(lambda sentences: [[len(sentence), 1.0] for sentence in sentences])

    monkeypatch.setattr(module, "load_checkpoint", load)
    return asked


def test_the_name_says_what_to_load_how_to_pool_and_what_to_expect(loaded: dict[str, Any]) -> None:
    first, second, *_ = sb.load("esimcse-bert-base").notes
    assert loaded["model"] == "ffgcc/esimcse-bert-base-uncased"
    assert (loaded["pooling"], loaded["max_length"]) == ("cls_before_pooler", 512)
    assert first.startswith("esimcse-bert-base is ffgcc/esimcse-bert-base-uncased (ESimCSE/README.md of caskcsg")
    assert second.endswith("is expected to score as esimcse-coling2022-3/esimcse-bert-base, Avg. 78.27.")


def test_a_run_tells_it_too(loaded: dict[str, Any]) -> None:
    notes = sb.evaluate("esimcse-bert-base", "sample", bootstrap=sb.Bootstrap(resamples=0)).notes
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
    assert "avg was asked for, so its numbers are not to be expected" in encoder.notes[0]


@pytest.mark.parametrize("name", ["mocose-bert-base", "glove", "is-bert"])
def test_a_system_without_a_public_checkpoint_is_told_as_such(name: str) -> None:
    with pytest.raises(UserError, match="without a known checkpoint on the Hugging Face Hub"):
        sb.load(name)


@pytest.mark.parametrize(
    "name", ["minilm", "princeton-nlp/unsup-simcse-bert-base-uncased", "toys:esimcse", "gpt2"]
)
def test_every_other_name_is_left_alone(name: str) -> None:
    assert resolve(name) is None


def test_a_folder_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "esimcse-bert-base").mkdir()
    monkeypatch.chdir(tmp_path)
    assert resolve("esimcse-bert-base") is None


def test_every_known_checkpoint_resolves_to_what_its_entry_says() -> None:
    for entry in checkpoints().values():
        if entry.hub:
            found: Any = resolve(entry.name)
            name = "minilm" if entry.name == "all-minilm-l6-v2" else entry.hub
            assert (found.name, found.pooling, found.max_length) == (name, entry.pooling, entry.max_length)
