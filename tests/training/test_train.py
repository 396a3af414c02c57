"""The function and the command: what a training leaves and returns, and how a mistake ends."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

import stsbench as sb
from stsbench.cli.app import app
from stsbench.training.folder import Keeper, RunFolder
from stsbench.training.log import Best, log_frame, read_log
from stsbench.training.recipe import read_recipe
from stsbench.training.train import draw_dev_curve


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_training_leaves_a_checkpoint_a_record_a_log_and_a_curve(train):
    seen = []
    done = train(listeners=[seen.append])
    names = {path.name for path in done.folder.iterdir()}
    assert names >= {"model.safetensors", "config.json", "modules.json", "README.md", "recipe.yaml", "log.jsonl"}
    assert names >= {"run.json", "items.parquet", "dev-curve.png", "dev-curve.svg"}
    lines = [json.loads(line) for line in (done.folder / "log.jsonl").read_text().splitlines()]
    assert lines == seen
    steps = [line["step"] for line in lines if line["kind"] == "train"]
    assert steps == [2, 4, 6]
    for line in lines:
        if line["kind"] == "train":
            assert set(line) == {"kind", "step", "epoch", "loss", "learning_rate", "sentences", "tokens", "time"}
            assert line["time"]["seconds"] > 0
    assert sum(line["sentences"] for line in lines if line["kind"] == "train") == 2 * 42
    assert log_frame(lines).dropna(subset=["dev"])["step"].tolist() == [0, 4]
    assert not (done.folder / "training" / "state.pt").exists()


def test_the_learning_rate_falls_linearly_to_zero_after_the_warm_up(train):
    lines = []
    train("log_every=1", "optimiser={warmup: 0.3, epochs: 4}", "corpus.rows=24", listeners=[lines.append])
    rates = [line["learning_rate"] for line in lines if line["kind"] == "train"]
    expected = [1e-3 * min(step / 4, (12 - step) / 8) for step in range(12)]
    assert rates == pytest.approx(expected)


@pytest.mark.parametrize(
    ("overrides", "options", "message"),
    [
        (("optimiser.batch=64",), {}, "the corpus has 42 usable rows, fewer than one batch of 64"),
        (("optimiser.learning_rate=1.0e+30",), {}, r"the loss of step \d is not finite: lower optimiser.learning"),
        (("bogus=1",), {}, "unknown key 'bogus'"),
        (("negatives.queue.size=4",), {}, "negatives.queue.size 4 is smaller than optimiser.batch 8"),
        (("corpus.max_length=100",), {}, "reads at most 64 sub-words: corpus.max_length 100 is too long"),
        (("precision=fp16",), {}, "precision fp16 needs a GPU"),
        (("selection.task=STS-B:dev",), {}, "STS-B was not found"),
        (("selection.task='STS12,STS13'",), {}, "was not found|names 2 tasks"),
        (("corpus.columns=2",), {}, "found 1 columns, but the recipe needs 2 sentences per row"),
        ((), {"corpus": "none.txt"}, "there is no corpus none.txt"),
        ((), {"base": "no/such/model/at/all"}, "no such model"),
        ((), {"recipe": None}, "name a recipe, or a folder with --resume"),
        ((), {"seed": "x"}, "^seed: Input should be a valid integer"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_mistake_is_one_sentence_and_leaves_no_checkpoint(overrides, options, message, train, tmp_path):
    with pytest.raises(sb.UserError, match=message):
        train(*overrides, **options)
    # What had begun before it failed can be looked at; nothing else is left, and nothing is published.
    left = {path.name for path in (tmp_path / "run").glob("*")}
    begun = {"recipe.yaml", "log.jsonl", "training"}
    assert left == (begun if "not finite" in message else set())


def test_a_folder_that_holds_another_training_or_anything_is_left_alone(train, tmp_path):
    done = train()
    before = files(done.folder)
    with pytest.raises(sb.UserError, match="holds a finished training: choose another folder"):
        train()
    assert files(done.folder) == before
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("dear to me", encoding="utf-8")
    with pytest.raises(sb.UserError, match=r"other is not empty \(thesis.txt, ...\)"):
        train(out="other")
    assert list(files(other)) == ["thesis.txt"]


def test_a_masked_language_model_needs_its_head(train, tmp_path, base):
    import transformers

    transformers.AutoModel.from_pretrained(base).save_pretrained(tmp_path / "bare")
    transformers.AutoTokenizer.from_pretrained(base).save_pretrained(tmp_path / "bare")
    bare = str(tmp_path / "bare")
    with pytest.raises(sb.UserError, match="has no masked-language head"):
        train("objective.mlm.weight=0.1", base=bare)
    with pytest.raises(sb.UserError, match="has no masked-language head"):
        train(f"views.key={{kind: masked-insertion, rate: 0.2, model: {bare}}}")


def test_the_dev_curve_has_the_curve_of_the_same_system():
    log = pd.DataFrame({"step": [0, 5], "dev": [0.5, 0.6]})
    for name, labels in (("esimcse-bert-base-released", 2), ("minilm-simcse", 1)):
        (axes,) = draw_dev_curve(log, read_recipe(name), 5).axes
        assert len(axes.lines) == labels
        assert any("the authors' log" in line.get_label() for line in axes.lines) == (labels == 2)


def test_the_command_trains_lists_and_prints(recipe_file, corpus, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    listed = CliRunner().invoke(app, ["train", "--list"])
    assert "minilm-esimcse" in listed.output
    printed = CliRunner().invoke(app, ["train", "esimcse-bert-base", "--print", "--set", "seed=5"])
    assert "seed: 5" in printed.output
    assert "dup" not in printed.output
    command = ["train", str(recipe_file), "--corpus", str(corpus), "--device", "cpu", "--seed", "3"]
    done, plain = (CliRunner().invoke(app, [*command, *more]) for more in ((), ("--out", "x", "--json")))
    assert (done.exit_code, plain.exit_code) == (0, 0), done.output
    assert re.match(r"sample -?\d+\.\d\d at step \d of 6$", done.stdout.splitlines()[0])
    assert {"scores", "model", "training"} <= set(json.loads(plain.stdout))
    assert "seed: 3" in (tmp_path / "runs" / "tiny" / "recipe.yaml").read_text(encoding="utf-8")


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_a_gpu_trains_in_every_precision_and_resumes(precision, train, tmp_path):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")

    def crash(line):
        if line["step"] == 6:
            raise ZeroDivisionError

    parts = ("negatives.queue.size=20", "objective.mlm.weight=0.1", "head=dense-tanh")
    with pytest.raises(ZeroDivisionError):
        train(f"precision={precision}", *parts, device="cuda", listeners=[crash])
    done = sb.train(resume=tmp_path / "run", device="cuda")
    assert done.steps == 6
    again = sb.evaluate(sb.load(done.folder, device="cuda"), "sample", use_cache=False)
    assert again.scores[0].value == pytest.approx(done.best.score, abs=1e-6)


@pytest.mark.long
@pytest.mark.minilm
@pytest.mark.slow
def test_the_demo_scores_the_packaged_model_as_run_does_and_ends_with_a_checkpoint(tmp_path):
    lines = []
    done = sb.train("demo", out=tmp_path / "demo", device="cpu", listeners=[lines.append])
    before = sb.evaluate("minilm", "sample", use_cache=False).scores[0].value
    assert lines[0]["step"] == 0
    assert lines[0]["dev"] == pytest.approx(before, abs=1e-9)
    after = sb.evaluate(str(done.folder), "sample", use_cache=False).scores[0].value
    assert after == pytest.approx(done.best.score, abs=1e-9)
    assert after != pytest.approx(before, abs=1e-6)


def test_a_training_is_a_result(train):
    done = train("selection.every=2")
    assert done.frame.columns.tolist() == ["step", "loss", "learning_rate", "dev"]
    assert done.frame.dropna(subset=["dev"])["step"].tolist() == [0, 2, 4, 6]
    assert done.frame.dropna(subset=["loss"])["step"].tolist() == [2, 4, 6]
    (table,) = done.table()
    row = table.frame.iloc[0]
    assert (row["Recipe"], row["Steps"], row["At step"]) == ("tiny", 6, done.best.step)
    assert row["Best dev × 100"] == pytest.approx(100 * done.best.score)
    assert f"{100 * done.best.score:.2f}" in str(done)
    assert "<table>" in done._repr_html_()
    plain = json.loads(done.to("json"))
    assert plain["scores"][0]["numbers"][0]["value"] == done.record.scores[0].value
    assert plain["training"]["best"] == {"step": done.best.step, "dev": done.best.score}
    assert done.to("csv").splitlines()[0] == "step,loss,learning_rate,dev"


def test_a_test_set_is_refused_for_selection(train, tmp_path, benchmark_folder):
    with pytest.raises(sb.UserError, match=r"selection.task STS-B is a test set: select on a dev set"):
        train("selection.task=STS-B", data_dirs=[benchmark_folder])
    assert not (tmp_path / "run").exists()


def test_what_was_trained_on_the_tasks_own_text_says_so_everywhere_and_so_does_what_is_trained_from_it(train):
    notices = []
    done = train("corpus.of_tasks=true", notice=notices.append)
    said = "Trained on test sentences: "
    assert [notice for notice in notices if notice.startswith(said)]
    assert "of_tasks: true" in (done.folder / "recipe.yaml").read_text(encoding="utf-8")
    assert said in (done.folder / "README.md").read_text(encoding="utf-8").replace("\n", " ")
    assert done.log[0]["remark"].startswith(said)
    for record in (sb.load_run(done.folder), sb.evaluate(str(done.folder), "sample", out=None)):
        assert [note.startswith(said) for note in record.notes].count(True) == 1
    after = train(base=done.folder, out="after")
    assert [note.startswith(said) for note in after.record.notes].count(True) == 1


def test_an_undefined_dev_score_is_left_out_of_the_card_and_the_log(train, tmp_path, monkeypatch):
    from stsbench.training import log

    monkeypatch.setattr(log.Selector, "score", lambda _, **__: log.DevScore(float("-inf"), 0.0))
    done = train()
    assert all(line["dev"] is None for line in done.log if line["kind"] == "dev")
    assert done.frame["dev"].isna().all()
    assert ".nan" not in (done.folder / "README.md").read_text(encoding="utf-8")
    assert (done.folder / "dev-curve.png").is_file()


def test_a_damaged_log_is_told_with_its_line(tmp_path: Path):
    log = tmp_path / "log.jsonl"
    for content, message in (
        ('{"kind": "dev", "step": 0, "dev": 0.5}\n\n{"kind"', "is damaged"),
        ("[1]\n", "a line without a step"),
    ):
        log.write_text(content, encoding="utf-8")
        with pytest.raises(sb.UserError, match=message):
            read_log(log)


def test_the_first_of_equal_dev_scores_is_the_best(tmp_path):
    keeper = Keeper(RunFolder(tmp_path), SimpleNamespace(model=torch.nn.Linear(1, 1)), keep=1)
    for step, score in ((1, 0.4), (2, 0.5), (3, 0.5), (4, 0.3)):
        keeper.offer(step, score)
    assert keeper.best == Best(2, 0.5)
