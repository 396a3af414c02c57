"""What training leaves is loaded by the ecosystem, with the vectors that were scored."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

import stsbench as sb
from stsbench.data.corpus import load_corpus
from stsbench.encoders.plan import embed
from stsbench.training.recipe import read_recipe

SENTENCES = [*load_corpus("sample")[50:58], "A very long sentence " * 30]


def ours(folder: Path) -> np.ndarray:
    found = embed(sb.load(folder), SENTENCES, use_cache=False)
    (vectors,) = found.vectors.values()
    return vectors[found.rows]


def by_auto_model(folder: Path, pooling: str) -> np.ndarray:
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    pool = {
        "avg": lambda output: output.last_hidden_state[0].mean(0),
        "cls_before_pooler": lambda output: output.last_hidden_state[0, 0],
        "cls": lambda output: output.pooler_output[0],
    }[pooling]
    with torch.no_grad():
        tokens = [tokenizer(text, return_tensors="pt", truncation=True, max_length=64) for text in SENTENCES]
        return np.stack([pool(model(**each)).numpy() for each in tokens])


@pytest.mark.parametrize(
    ("overrides", "pooling"),
    [
        (("pooling=avg",), "avg"),
        (("pooling=cls_before_pooler", "head=dense-tanh"), "cls_before_pooler"),
        (("pooling=cls_before_pooler", "head={kind: dense-tanh, evaluate: true}"), "cls"),
    ],
    ids=["avg", "head in training only", "head scored"],
)
def test_three_loaders_give_the_same_vectors(overrides, pooling, train):
    from sentence_transformers import SentenceTransformer

    folder = train(*overrides).folder
    expected = ours(folder)
    np.testing.assert_allclose(SentenceTransformer(str(folder)).encode(SENTENCES), expected, atol=1e-5)
    np.testing.assert_allclose(by_auto_model(folder, pooling), expected, atol=1e-5)
    if overrides[-1] == "head=dense-tanh":  # a head that is not scored is where the authors' checkpoints have it
        assert sb.load(folder).identity.use.pooling == "cls_before_pooler"
        behind = embed(sb.load(folder, pooling="cls"), SENTENCES, use_cache=False)
        np.testing.assert_allclose(behind.vectors["cls"][behind.rows], by_auto_model(folder, "cls"), atol=1e-5)


def closed(base: Path, folder: Path, *modules: str) -> Path:
    """Return a copy of a base that sentence-transformers reads, with these modules behind its mean pooling."""
    from safetensors.torch import save_file
    from torch import nn

    shutil.copytree(base, folder)
    kinds = ["Transformer", "Pooling", *modules]
    listing = [
        {"idx": n, "name": str(n), "path": f"{n}_{kind}" * (n > 0), "type": f"sentence_transformers.models.{kind}"}
        for n, kind in enumerate(kinds)
    ]
    dense = {"in_features": 16, "out_features": 16, "bias": True}
    dense["activation_function"] = "torch.nn.modules.activation.Tanh"
    about = {"Pooling": {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True}, "Dense": dense}
    for kind, module in list(zip(kinds, listing, strict=True))[1:]:
        place = folder / module["path"]
        place.mkdir()
        (place / "config.json").write_text(json.dumps(about.get(kind, {})), encoding="utf-8")
        if kind == "Dense":
            weights = {f"linear.{name}": value for name, value in nn.Linear(16, 16).state_dict().items()}
            save_file(weights, place / "model.safetensors")
    (folder / "modules.json").write_text(json.dumps(listing), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "overrides",
    [(), ("pooling=cls_before_pooler", "head={kind: dense-tanh, evaluate: true}")],
    ids=["no head", "head scored"],
)
def test_what_is_trained_from_a_base_that_normalises_has_vectors_of_unit_length(overrides, train, base, tmp_path):
    from sentence_transformers import SentenceTransformer

    normalised = closed(base, tmp_path / "normalised", "Normalize")
    folder, plain = train(*overrides, base=normalised).folder, train(*overrides, out="plain").folder
    expected = ours(folder)
    np.testing.assert_allclose(np.linalg.norm(expected, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(SentenceTransformer(str(folder)).encode(SENTENCES), expected, atol=1e-5)
    identity = sb.load(folder).identity
    assert identity.normalize
    assert identity.modules == sb.load(plain).identity.modules
    # The same training: the weights to the bit, and the vectors but for their length.
    assert (folder / "model.safetensors").read_bytes() == (plain / "model.safetensors").read_bytes()
    vectors = ours(plain)
    assert np.linalg.norm(vectors, axis=1).min() > 1.1 or overrides
    np.testing.assert_allclose(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), expected, atol=1e-6)
    log, record = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines(), sb.load_run(folder)
    best = max(line["dev"] for line in map(json.loads, log) if line["kind"] == "dev" and line["step"])
    assert record.scores[0].value == pytest.approx(best, abs=1e-9)
    assert "|norm|" in record.scores[0].signature
    assert sb.load(train(out="again", base=folder).folder).identity.normalize


def test_dense_modules_of_a_base_are_not_read_through_and_that_is_said(train, base, tmp_path):
    notices: list[str] = []
    closing = closed(base, tmp_path / "dense", "Dense", "Normalize")
    folder = train(base=closing, notice=notices.append).folder
    assert [note for note in notices if "and so does the checkpoint" in note] == [
        f"{closing} has modules after its pooling (dense): training leaves them out, and so does the checkpoint."
    ]
    identity = sb.load(folder).identity
    assert (identity.modules, identity.normalize) == ((), True)
    notices.clear()
    train(out="plain", notice=notices.append)
    assert not any("and so does the checkpoint" in note for note in notices)


def test_the_dev_score_of_the_log_is_that_of_the_published_checkpoint(train):
    done = train("head={kind: dense-tanh, evaluate: true}", "selection.every=2")
    lines = [json.loads(line) for line in (done.folder / "log.jsonl").read_text().splitlines()]
    scores = {line["step"]: line["dev"] for line in lines if line["kind"] == "dev"}
    assert list(scores) == [0, 2, 4, 6]
    best = max((step for step in scores if step), key=lambda step: scores[step])
    assert (done.best.step, done.best.score) == (best, scores[best])
    assert done.record.scores[0].value == pytest.approx(scores[best], abs=1e-12)
    assert sb.load_run(done.folder).scores[0].value == done.record.scores[0].value
    again = sb.evaluate(sb.load(done.folder), "sample", use_cache=False)
    assert again.scores[0].value == pytest.approx(scores[best], abs=1e-12)


def test_the_best_and_the_last_checkpoints_are_kept_and_no_others(train):
    done = train("optimiser.epochs=2", "selection.every=2", "saving={every: 2, keep: 2}")
    assert done.steps == 12
    kept = {path.name for path in (done.folder / "training" / "checkpoints").iterdir()}
    assert kept == {f"step-{step:06d}" for step in {10, 12, done.best.step}}
    best = done.folder / "training" / "checkpoints" / f"step-{done.best.step:06d}" / "model.safetensors"
    assert best.read_bytes() == (done.folder / "model.safetensors").read_bytes()


def test_the_card_states_what_it_is_and_how_it_scores_and_no_folder(train, tmp_path, base):
    done = train(out="my-model")
    text = (done.folder / "README.md").read_text(encoding="utf-8")
    _, front, body = text.split("---\n", 2)
    about = yaml.safe_load(front)
    (entry,) = about["model-index"]
    assert (entry["name"], about["base_model"]) == ("my-model", "tiny")
    assert str(base.parent) not in text
    assert str(tmp_path) not in text
    (result,) = entry["results"]
    assert result["metrics"][0]["value"] == pytest.approx(done.record.scores[0].value, abs=1e-6)
    assert f"{100 * done.record.scores[0].value:.2f}" in body
    assert done.record.scores[0].signature in body
    recipe = yaml.safe_load(body.split("```yaml\n")[1].split("```")[0])
    assert recipe["optimiser"]["batch"] == 8
    assert recipe["corpus"]["path"] == "corpus.txt"


def test_the_recipe_in_the_folder_is_whole_and_trains_again(train, tmp_path):
    done = train("views.key={kind: subword-repetition, rate: 0.5}")
    assert read_recipe(done.folder / "recipe.yaml") == done.recipe
    again = sb.train(done.folder / "recipe.yaml", out=tmp_path / "again", device="cpu")
    assert (again.folder / "model.safetensors").read_bytes() == (done.folder / "model.safetensors").read_bytes()
