"""What goes to the Hub: the files that both libraries read to the same vectors, and a card that programs read."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from huggingface_hub import ModelCard
from typer.testing import CliRunner

import stsbench as sb
from stsbench.cli.app import app
from stsbench.data.benchmarks import sample_sentences
from stsbench.data.tables import StsData
from stsbench.encoders.plan import embed
from stsbench.records.hub import CARD, export_hub

Train = Callable[..., Any]

HEADS = [
    (("pooling=avg",), "avg"),
    (("pooling=cls_before_pooler", "head=dense-tanh"), "cls_before_pooler"),
    (("pooling=cls_before_pooler", "head={kind: dense-tanh, evaluate: true}"), "cls"),
]


@pytest.mark.parametrize(("overrides", "pooling"), HEADS, ids=["avg", "head in training only", "head scored"])
def test_what_is_exported_gives_three_loaders_the_vectors_of_the_training(
    overrides: tuple[str, ...], pooling: str, train: Train, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    library = pytest.importorskip("sentence_transformers")
    from transformers import AutoModel, AutoTokenizer

    folder = train(*overrides).folder
    out = tmp_path / "push"
    export_hub(folder, model="me/tiny", out=out)
    sentences = sample_sentences()[:20]

    def vectors(place: Path) -> Any:
        embeddings = embed(sb.load(place), sentences, use_cache=False)
        (matrix,) = embeddings.vectors.values()
        return matrix[embeddings.rows]

    expected = vectors(folder)
    np.testing.assert_array_equal(vectors(out), expected)
    scale = np.linalg.norm(expected, axis=1).max()
    by_library = library.SentenceTransformer(str(out), device="cpu").encode(sentences)
    assert np.abs(by_library - expected).max() < 1e-6 * scale
    model, tokenizer = AutoModel.from_pretrained(out).eval(), AutoTokenizer.from_pretrained(out)
    with torch.no_grad():
        states = [
            model(**tokenizer(text, return_tensors="pt", truncation=True, max_length=64)) for text in sentences
        ]
    read = {
        "avg": lambda state: state.last_hidden_state[0].mean(0),
        "cls_before_pooler": lambda state: state.last_hidden_state[0, 0],
        "cls": lambda state: state.pooler_output[0],
    }[pooling]
    by_transformers = np.stack([read(state).numpy() for state in states])
    assert np.abs(by_transformers - expected).max() < 1e-6 * scale


def test_the_files_are_those_that_loading_reads_and_nothing_else_of_the_training(
    train: Train, tmp_path: Path
) -> None:
    folder = train().folder
    (folder / "notes.txt").write_text("mine alone", encoding="utf-8")
    export = export_hub(folder, model="me/tiny", out=tmp_path / "push")
    written = {
        path.relative_to(tmp_path / "push").as_posix() for path in (tmp_path / "push").rglob("*") if path.is_file()
    }
    assert written == {
        "1_Pooling/config.json",
        CARD,
        "config.json",
        "model.safetensors",
        "modules.json",
        "sentence_bert_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert dict(export.frame.to_numpy().tolist()) == {
        name: (tmp_path / "push" / name).stat().st_size for name in written
    }
    assert export.command == f"hf upload me/tiny {tmp_path / 'push'}"
    assert export_hub(folder).command == "hf upload OWNER/run FOLDER"


def test_the_card_has_the_scores_of_the_training_and_those_of_further_runs(
    train: Train, toy_data: Callable[..., StsData], tmp_path: Path
) -> None:
    folder = train().folder
    run = sb.evaluate(folder, toy_data("STS16"), out=tmp_path / "measured")
    export = export_hub(folder, [tmp_path / "measured", folder], model="me/tiny")
    card = ModelCard(export.card)
    dev = sb.load_run(folder)
    assert card.data.model_name == "me/tiny"
    assert (card.data.library_name, card.data.pipeline_tag) == ("sentence-transformers", "sentence-similarity")
    assert card.data.base_model == "tiny"
    results = {result.dataset_name: result for result in card.data.eval_results or []}
    assert set(results) == {"sample", "STS16"}
    for record in (dev, run):
        result = results[record.scores[0].task]
        assert result.metric_type == "spearman_cosine"
        assert result.metric_value == round(record.scores[0].value or 0, 6)
        assert result.metric_args == {"signature": record.signature}
    assert len(card.data.eval_results or []) == 2  # the training's own is not told twice
    assert f"| STS16 | spearman | {100 * (run.scores[0].value or 0):.2f} |" in card.text
    assert "## Recipe" in card.text
    assert any("the card's base_model tiny is not a name on the Hub" in note for note in export.notes)
    assert any("the card has no license and language" in note for note in export.notes)


def test_a_card_is_made_of_the_runs_where_there_is_none(train: Train, tmp_path: Path) -> None:
    folder = train().folder
    (folder / CARD).unlink()
    with pytest.raises(sb.UserError, match=r"has no README\.md, and no run is named"):
        export_hub(folder)
    sb.evaluate(folder, "sample", out=tmp_path / "measured")
    export = export_hub(folder, [tmp_path / "measured"], model="me/tiny")
    assert [result.dataset_name for result in ModelCard(export.card).data.eval_results or []] == ["sample"]


def test_scores_that_whoever_loads_it_would_not_get_are_refused(train: Train, tmp_path: Path) -> None:
    folder, other = train().folder, train("seed=8", out="other").folder
    sb.evaluate(other, "sample", out=tmp_path / "of-other")
    with pytest.raises(sb.UserError, match=r"of-other is not a run of the weights in .*run: measure them"):
        export_hub(folder, [tmp_path / "of-other"])
    sb.evaluate(sb.load(folder, pooling="max", dimensions=4), "sample", out=tmp_path / "otherwise")
    with pytest.raises(sb.UserError, match=r"with other settings .*\(--pooling and --dimensions\)"):
        export_hub(folder, [tmp_path / "otherwise"])


def test_what_the_libraries_would_not_read_alike_is_refused(base: Path, train: Train, tmp_path: Path) -> None:
    with pytest.raises(sb.UserError, match=r"has no modules\.json, so sentence-transformers would use the mean"):
        export_hub(base)
    folder = Path(shutil.copytree(train().folder, tmp_path / "changed"))
    modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    modules[1]["type"] = "sentence_transformers.models.WeightedLayerPooling"
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    with pytest.raises(sb.UserError, match="modules or code that stsbench does not load itself"):
        export_hub(folder)
    with pytest.raises(sb.UserError, match="is not a folder: name the folder of a checkpoint"):
        export_hub(tmp_path / "nowhere")


def test_a_folder_that_holds_something_is_left_as_it_is(train: Train, tmp_path: Path) -> None:
    folder = train().folder
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(sb.UserError, match="exists and is not empty: choose another folder with --out"):
        export_hub(folder, out=tmp_path / "full")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]


def test_a_broken_card_and_a_file_that_names_a_folder_are_told(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = train().folder
    path = folder / "tokenizer_config.json"
    content = json.loads(path.read_text(encoding="utf-8")) | {"name_or_path": str(tmp_path / "home" / "base")}
    path.write_text(json.dumps(content), encoding="utf-8")
    assert "tokenizer_config.json names a folder or a user of this machine" in " ".join(export_hub(folder).notes)
    (folder / CARD).write_text("---\n- a list\n---\n", encoding="utf-8")
    with pytest.raises(sb.UserError, match=r"README\.md cannot be read as a model card"):
        export_hub(folder)


def test_the_command_shows_files_and_card_and_writes_only_where_it_is_asked_to(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, runner = train().folder, CliRunner()
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    shown = runner.invoke(app, ["export", "--hub", str(folder), "--model", "me/tiny"])
    assert shown.exit_code == 0
    assert sorted(tmp_path.rglob("*")) == before
    assert "model.safetensors" in shown.output
    assert "model-index:" in shown.output
    assert "nothing was written (add --out FOLDER); to push it: hf upload me/tiny FOLDER" in shown.output
    written = runner.invoke(app, ["export", "--hub", str(folder), "--model", "me/tiny", "--out", "push", "--json"])
    assert json.loads(written.stdout)["card"] == (tmp_path / "push" / CARD).read_text(encoding="utf-8")
    for arguments, sentence in (
        (["--hub", str(folder), "--overwrite"], "--overwrite cannot go with --hub"),
        ([str(folder)], "--out is missing"),
        ([str(folder), str(folder), "--out", "mteb"], "2 runs are named: export one at a time"),
    ):
        refused = runner.invoke(app, ["export", *arguments])
        assert isinstance(refused.exception, sb.UserError)
        assert sentence in str(refused.exception)
