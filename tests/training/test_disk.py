"""A full disk, a killed writer, files that were changed: told in a sentence, and nothing half-written."""

import json
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from damages import files_of_at_most, flip, make_a_folder

import stsbench as sb
from stsbench.cli.app import main
from stsbench.training import folder
from stsbench.training.folder import CheckpointWriter, RunFolder, load_state


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob(".*") if path.name != ".lock"]


# The tiny model's weights take more than the limit, its state too.
@pytest.mark.parametrize(
    ("owner", "writer"), [(CheckpointWriter, "write"), (folder, "save_state")], ids=["checkpoint", "state"]
)
def test_a_full_disk_is_one_sentence_and_the_training_goes_on_afterwards(
    owner, writer, recipe_file, corpus, tmp_path, monkeypatch, capsys
):
    run, write = tmp_path / "run", getattr(owner, writer)
    arguments = [str(recipe_file), "--corpus", str(corpus), "--out", str(run), "--device", "cpu", "--quiet"]
    with monkeypatch.context() as patched, ExitStack() as full:

        def write_on_a_full_disk(*given):
            full.enter_context(files_of_at_most(8192))
            write(*given)

        patched.setattr(owner, writer, write_on_a_full_disk)
        patched.setattr(sys, "argv", ["stsbench", "train", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 2
    (sentence,) = capsys.readouterr().err.strip().splitlines()
    assert sentence.startswith("stsbench: cannot write")
    assert "free some space" in sentence
    assert not hidden(run)
    assert not RunFolder(run).state.exists()
    assert sb.train(resume=run, device="cpu").steps == 6


def test_what_a_killed_writer_left_is_gone_after_the_next_start(stopped):
    state = stopped.state.with_name(".state.stsbench-abc123.pt")
    checkpoint = stopped.checkpoints / ".step-000004.stsbench-xyz"
    state.write_bytes(b"half")
    checkpoint.mkdir()
    (checkpoint / "config.json").write_text("{", encoding="utf-8")
    checkpoint.with_name(f"{checkpoint.name}.lock").touch()
    sb.train(resume=stopped.path, device="cpu")
    assert not hidden(stopped.path)


def test_a_training_that_another_version_began_is_refused_in_a_sentence(stopped):
    start = json.loads(stopped.start.read_text(encoding="utf-8"))
    stopped.start.write_text(json.dumps({"recipe": start["recipe"], "version": 1}), encoding="utf-8")
    with pytest.raises(sb.UserError, match=r"start\.json was written by another version of stsbench: start the"):
        sb.train(resume=stopped.path, device="cpu")


def test_a_table_is_not_read_from_the_store_of_a_text_with_the_same_bytes(train, tmp_path):
    content = "sentence\n" + "".join(f'"the cat, number {n}"\n' for n in range(20))
    notices: list[str] = []
    for name in ("f.txt", "f.csv"):
        (tmp_path / name).write_text(content, encoding="utf-8")
        train(out=f"of {name}", corpus=tmp_path / name, notice=notices.append)
    rows = [notice.split()[1] for notice in notices if notice.startswith("corpus:")]
    assert rows == ["21", "20"]


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("training/state.pt", flip, "state.pt is damaged"),
        ("training/state.pt", make_a_folder, "state.pt is not a file: move it away"),
        (
            "training/checkpoints/{best}/model.safetensors",
            flip,
            "model.safetensors is not what the training saved",
        ),
        ("training/checkpoints/{best}/config.json", Path.unlink, "config.json is not what the training saved"),
        ("log.jsonl", lambda path: flip(path, 0.1), "log.jsonl is not what the training wrote"),
        ("log.jsonl", Path.unlink, "log.jsonl is not what the training wrote"),
        ("recipe.yaml", make_a_folder, "recipe.yaml is not a file: move it away"),
    ],
)
def test_what_a_training_saved_and_is_changed_since_is_told_and_stays_as_it_is(stopped, name, damage, message):
    best = load_state(stopped.state, "cpu")["best"]["step"]
    damage(stopped.path / name.format(best=f"step-{best:06d}"))
    before = {
        path: path.read_bytes() for path in stopped.path.rglob("*") if path.is_file() and path.name != ".lock"
    }
    with pytest.raises(sb.UserError, match=message):
        sb.train(resume=stopped.path, device="cpu")
    after = {
        path: path.read_bytes() for path in stopped.path.rglob("*") if path.is_file() and path.name != ".lock"
    }
    assert after == before


def test_a_training_that_could_not_write_what_it_starts_from_leaves_nothing_in_its_way(
    train, tmp_path, monkeypatch
):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("stsbench.training.folder.asdict", full)
        with pytest.raises(sb.UserError, match="cannot write"):
            train()
    assert not (tmp_path / "run").exists()
    assert train().steps == 6
