"""What a training returns, and what its card and log state."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import yaml

import stsbench as sb
from stsbench.training import log
from stsbench.training.folder import Keeper, RunFolder
from stsbench.training.log import Best, read_log
from stsbench.training.train import _public_name


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


def test_the_plot_is_the_dev_curve_alone_or_among_others(train):
    one, other = train(out="one"), train(out="other", seed=9)
    assert one.plot().axes[0].lines[0].get_label() == "tiny, 6 steps"
    together = one.plot(other, other.folder)
    assert [line.get_label() for line in together.axes[0].lines] == ["one", "other"]
    again = one.plot(other)
    assert [line.get_ydata().tolist() for line in again.axes[0].lines] == [
        line.get_ydata().tolist() for line in together.axes[0].lines
    ]


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


def test_the_card_names_a_base_by_what_others_know_it_by(train, base, tmp_path):
    text = (train().folder / "README.md").read_text(encoding="utf-8")
    assert yaml.safe_load(text.split("---\n")[1])["base_model"] == "tiny"
    assert str(base.parent) not in text
    assert str(tmp_path) not in text
    assert _public_name("minilm", "") == "sentence-transformers/all-MiniLM-L6-v2"
    assert _public_name("owner/model", "") == "owner/model"
    renamed = tmp_path / "bert-base-uncased"
    renamed.mkdir()
    assert _public_name(str(renamed), "f" * 64) == "bert-base-uncased"


def test_an_undefined_dev_score_is_left_out_of_the_card_and_the_log(train, tmp_path, monkeypatch):

    monkeypatch.setattr(log.Selector, "score", lambda _, **__: log.DevScore(float("-inf"), 0.0))
    done = train()
    assert all(line["dev"] is None for line in done.log if line["kind"] == "dev")
    assert done.frame["dev"].isna().all()
    assert ".nan" not in (done.folder / "README.md").read_text(encoding="utf-8")
    assert (done.folder / "dev-curve.png").is_file()


def test_a_damaged_log_is_told_with_its_line(tmp_path: Path):
    log = tmp_path / "log.jsonl"
    for content, message in (
        ('{"kind": "dev", "step": 0, "dev": 0.5}\n\n{"kind"', "line 3 is damaged"),
        ("[1]\n", "line 1 names no step"),
    ):
        log.write_text(content, encoding="utf-8")
        with pytest.raises(sb.UserError, match=message):
            read_log(log)


def test_the_first_of_equal_dev_scores_is_the_best(tmp_path: Path) -> None:
    writer: Any = SimpleNamespace(model=torch.nn.Linear(1, 1))
    keeper = Keeper(RunFolder(tmp_path), writer, keep=0)
    for step, score in ((1, 0.4), (2, 0.5), (3, 0.5), (4, 0.3)):
        keeper.offer(step, score)
    assert keeper.best == Best(2, 0.5)
