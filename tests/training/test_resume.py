"""Interrupted trainings resume to the same bits; full disks and damaged files are reported."""

import copy
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import torch
from damages import files_of_at_most, flip, make_a_folder
from small_trainings import left

import stsbench as sb
from stsbench.cli.app import main
from stsbench.training import folder, job
from stsbench.training import train as publishing
from stsbench.training.folder import CheckpointWriter, RunFolder, Start, load_state
from stsbench.training.log import Log
from stsbench.training.recipe import Recipe

# Kills itself when it is about to write a line of the log for a step, or in the middle of a save.
KILLED = textwrap.dedent(
    """
    import os, signal, sys
    import stsbench as sb
    from stsbench.training import folder, log

    recipe, corpus, out, where, at, *overrides = sys.argv[1:]

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    if where == "log":
        write = log.Log.write
        log.Log.write = lambda self, line: die() if line["step"] == int(at) else write(self, line)
    else:
        count, save = 0, folder.save_state
        def save_state(path, state):
            global count
            count += 1
            if count == int(at):
                die()
            save(path, state)
        folder.save_state = save_state
    sb.train(recipe, corpus, out, overrides=overrides, device="cpu")
    """
)

ESIMCSE = (
    "views.key={kind: subword-repetition, rate: 0.5}",
    "negatives.queue.size=20",
    "target.decay=0.9",
    "head=dense-tanh",
    "objective.mlm.weight=0.1",
    "optimiser={epochs: 2, accumulate: 2, adam_epsilon: before_correction}",
    "noise.key.parts=[{kind: position-shuffle, padded_to: 12}, "
    "{kind: token-cutoff, rate: 0.1, count: at_least_one, padded_to: 12}]",
    "selection.every=2",
    "saving={every: 2, keep: 2}",
    "log_every=1",
)


@pytest.fixture
def killed(recipe_file, corpus, tmp_path):
    def run(where: str, at: int, out: str) -> Path:
        arguments = (recipe_file, corpus, tmp_path / out, where, at)
        command = [sys.executable, "-c", KILLED, *map(str, arguments), *ESIMCSE]
        # As many threads as here, where it will be resumed: another number may change the last bits.
        surroundings = os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())}
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, env=surroundings)
        assert done.returncode == -signal.SIGKILL, done.stderr
        return tmp_path / out

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "at"),
    [*(pytest.param(*case, marks=pytest.mark.long) for case in [("log", 1), ("log", 3), ("save", 2)]), ("log", 5)],
)
def test_killed_at_any_step_or_save_and_resumed_gives_the_same_bits(where, at, train, killed):
    whole = left(train(*ESIMCSE, out="whole").folder)
    assert len(whole[0]) >= 3
    assert len(whole[1]) == 6 + 4  # six steps; scores before, at 2, 4 and 6
    folder = killed(where, at, "killed")
    # Twice: while it goes on, too.
    with pytest.raises(_StoppedError):
        sb.train(resume=folder, device="cpu", listeners=[_stopping_at(6)])
    sb.train(resume=folder, device="cpu")
    assert left(folder) == whole


def _stopping_at(step: int) -> Callable[[dict[str, object]], None]:
    def stop(line: dict[str, object]) -> None:
        if line["step"] == step:
            raise _StoppedError

    return stop


class _StoppedError(Exception):
    """Stands for a crash."""


def test_the_same_seed_gives_the_same_bits_and_another_others(train):
    first, second, other = (left(train(out=out, seed=seed).folder) for out, seed in (("a", 1), ("b", 1), ("c", 2)))
    assert first == second
    assert first[0].keys() == other[0].keys()
    assert first[0] != other[0]


def test_a_resumed_training_needs_the_corpus_and_the_options_that_it_started_from(train, tmp_path, corpus):
    with pytest.raises(_StoppedError):
        train("saving.every=2", listeners=[_stopping_at(4)])
    folder, text = tmp_path / "run", corpus.read_text(encoding="utf-8")
    corpus.write_text(text + "One sentence more.\n", encoding="utf-8")
    with pytest.raises(sb.UserError, match="the corpus differs from the one at the start of the training"):
        sb.train(resume=folder, device="cpu")
    corpus.write_text(text, encoding="utf-8")
    with pytest.raises(sb.UserError, match="--seed: not with --resume"):
        sb.train(resume=folder, seed=3, device="cpu")


@pytest.fixture
def interrupted(recipe_file, corpus, tmp_path, monkeypatch, capsys):
    """Run the command in tmp_path / "run"; return its exit code and what it prints on stderr."""
    typed = ["train", str(recipe_file), "--corpus", str(corpus), "--out", str(tmp_path / "run"), "--device", "cpu"]

    def run(*options):
        monkeypatch.setattr(sys, "argv", ["stsbench", *typed, "-q", *options])
        with pytest.raises(SystemExit) as ended:
            main()
        monkeypatch.undo()
        return ended.value.code, capsys.readouterr().err

    return run


@pytest.mark.parametrize(("at", "place"), [(2, "its first step"), (5, "the last save")])
def test_ctrl_c_names_the_command_that_resumes_and_it_does(at, place, interrupted, tmp_path, monkeypatch):
    out, write = tmp_path / "run", Log.write

    def stop(log, line):
        if line["step"] == at:
            raise KeyboardInterrupt
        write(log, line)

    monkeypatch.setattr(Log, "write", stop)
    sentence = f"stsbench: interrupted: `stsbench train --resume {out}` resumes from {place}.\n"
    assert interrupted("--set", "log_every=1") == (130, sentence)
    assert sb.train(resume=out, device="cpu").steps == 6


def test_ctrl_c_before_anything_is_written_leaves_the_folder_to_the_same_command(
    interrupted, tmp_path, monkeypatch
):
    def stop(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(job.Job, "_run", stop)
    assert interrupted() == (130, "stsbench: interrupted: the same command resumes from the cache.\n")
    monkeypatch.undo()
    RunFolder(tmp_path / "run").require_free()


def test_stopped_with_all_published_and_the_state_about_to_go_it_is_published_again(train, tmp_path, monkeypatch):
    write_start = publishing.write_start

    def mark(folder: RunFolder, start: Start, recipe: Recipe) -> None:
        write_start(folder, start, recipe)
        if start.finished:
            raise _StoppedError

    monkeypatch.setattr(publishing, "write_start", mark)
    with pytest.raises(_StoppedError):
        train()
    monkeypatch.undo()
    folder = RunFolder(tmp_path / "run")
    published = left(folder.path)
    assert folder.state.exists()
    assert not folder.is_finished
    assert sb.train(resume=folder.path, device="cpu").steps == published[1][-1]["step"]
    assert left(folder.path) == published
    assert not folder.state.exists()
    with pytest.raises(sb.UserError, match="is finished"):
        sb.train(resume=folder.path, device="cpu")


CHOICES = (
    ["dropout=0.1", "dropout=0.2"],
    [
        "views.key={kind: subword-repetition, rate: 0.5}",
        "views.key={kind: crop, rate: 0.3}",
        "views.query={kind: word-deletion}",
        "views.key={kind: stop-words, rate: 0.3}",
        "views.query={kind: typos, rate: 0.2}",
        "views.key={kind: masked-insertion, rate: 0.5, model: 'BASE'}",
        "views.query={kind: masked-replacement, rate: 0.3, model: 'BASE'}",
        "views.key={kind: in-turn, views: [{kind: crop, rate: 0.2}, {kind: word-repetition, rate: 0.5}]}",
    ],
    [
        "noise.key.parts=[position-shuffle]",
        "noise.query.parts=[{kind: token-cutoff, rate: 0.1}, {kind: feature-cutoff, rate: 0.1}]",
        "noise.query.parts=[{kind: feature-cutoff, rate: 0.2, count: share, place: layer}]",
        "noise.key.parts=[gaussian-replacement]",
    ],
    [
        "noise.adversarial={step: 0.01, gradient: own}",
        "noise.adversarial={step: 0.01, gradient: previous}",
        "optimiser.gradient_cache=true",
        "optimiser.accumulate=2",
    ],
    ["head=dense-tanh", "head={kind: dense, start: pooler}", "head=none"],
    ["projector={layers: 2, dropout: 0.2}", "predictor={layers: 2, ends: tanh}"],
    [
        "target={encodes: keys, embeddings: shared, dropout: true}",
        "target={encodes: keys, gradient: true, decay: {kind: cosine, start: 0.5, end: 0.9, after: returns}}",
        "target={modules: [encoder], update: before_loss, start: random}",
        "target={encodes: keys, modules: [encoder, head], decay: 0.5}",
        "target={encodes: keys, gradient: true, trained: [projector], decay: 0.5}",
    ],
    [
        "negatives.queue={size: 20, initial: 6, uses: [[0, 4], [6, 20]]}",
        "negatives.queue={size: 12, emptied: each_epoch, keeps: last_rows}",
    ],
    ["negatives.in_batch=false", "objective.similarity=dot", "corpus.buckets=[8, 11]", "objective.mlm.weight=0.1"],
)


PHASES = (
    "phases=[]",
    "phases=[{takes: [contrastive], epochs: 1}, {takes: [mood, same, score]}]",
    "phases=[{takes: [same, contrastive]}, {takes: [score, contrastive, mood]}]",
)


@pytest.mark.parametrize("seed", range(6))
def test_a_random_composition_resumes_to_the_bit(seed, assembled, tasks, benchmark_folder, base):
    rng = np.random.default_rng(seed)
    chosen = (str(rng.choice(choices)) for choices in CHOICES)
    parts = ["optimiser.epochs=2", *(choice.replace("BASE", str(base)) for choice in chosen)]
    # Two parts that do not go together by their definition.
    if "optimiser.gradient_cache=true" in parts:
        parts = [part for part in parts if "adversarial" not in part]
    # One of the six is the contrastive term alone.
    parts += [] if seed == len(PHASES) else [*tasks.splitlines(), PHASES[seed % len(PHASES)]]
    one, other = (assembled(*parts, data_dirs=[benchmark_folder]) for _ in range(2))
    # Where there are phases, two steps stand before the first one's end and two behind it.
    paces = np.diff(one.timetable.epochs)
    ends = 1 + np.flatnonzero(~np.isclose(paces[1:], paces[:-1]))
    start = ends[0] - 2 if len(ends) else 0
    for step in range(start, start + 2):
        one.step(step)
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for step in range(start + 2, start + 4):
        losses = one.step(step)[0], other.step(step)[0]
        assert torch.isfinite(losses[0])
        assert torch.equal(*losses)
    modules = one.state_dict()["modules"]
    assert seed == len(PHASES) or {"tasks.mood", "tasks.same", "tasks.score"} <= modules.keys()
    for module, weights in modules.items():
        for name, value in weights.items():
            assert torch.equal(value, other.state_dict()["modules"][module][name]), (module, name)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob(".*") if path.name != ".lock"]


# The tiny model's weights take more than the limit, its state too.
@pytest.mark.parametrize(
    ("owner", "writer"), [(CheckpointWriter, "write"), (folder, "save_state")], ids=["checkpoint", "state"]
)
def test_a_full_disk_is_one_sentence_and_the_training_resumes_afterwards(
    owner, writer, interrupted, tmp_path, monkeypatch
):
    run, write = tmp_path / "run", getattr(owner, writer)
    with ExitStack() as full:

        def write_on_a_full_disk(*given):
            full.enter_context(files_of_at_most(8192))
            write(*given)

        monkeypatch.setattr(owner, writer, write_on_a_full_disk)
        code, printed = interrupted()
    (sentence,) = printed.strip().splitlines()
    assert code == 2
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


def test_a_table_is_not_read_from_the_store_of_a_text_with_the_same_bytes(train, tmp_path):
    content = "sentence\n" + "".join(f'"the cat, number {n}"\n' for n in range(20))
    notices: list[str] = []
    for name in ("f.txt", "f.csv"):
        (tmp_path / name).write_text(content, encoding="utf-8")
        train(out=f"of {name}", corpus=tmp_path / name, notice=notices.append)
    rows = [notice.split()[1] for notice in notices if notice.startswith("corpus:")]
    assert rows == ["21", "20"]


def with_another_key(path):
    path.write_text(path.read_text(encoding="utf-8").replace('"seed":', '"sed":'), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("training/state.pt", flip, "state.pt is damaged"),
        ("training/state.pt", make_a_folder, "state.pt is not a file: move it away"),
        ("training/checkpoints/{best}/model.safetensors", flip, "model.safetensors is not what the training"),
        ("training/checkpoints/{best}/config.json", Path.unlink, "config.json is not what the training saved"),
        ("log.jsonl", lambda path: flip(path, 0.1), "log.jsonl is not what the training wrote"),
        ("log.jsonl", Path.unlink, "log.jsonl is not what the training wrote"),
        ("recipe.yaml", make_a_folder, "recipe.yaml is not a file: move it away"),
        ("training/start.json", with_another_key, r"start.json cannot be read \(sed: Extra .*\): start "),
    ],
)
def test_what_a_training_saved_and_is_changed_since_is_told_and_stays_as_it_is(stopped, name, damage, message):
    best = load_state(stopped.state, "cpu")["best"]["step"]
    damage(stopped.path / name.format(best=f"step-{best:06d}"))
    before = contents(stopped.path)
    with pytest.raises(sb.UserError, match=message):
        sb.train(resume=stopped.path, device="cpu")
    assert contents(stopped.path) == before


def test_a_training_that_could_not_write_what_it_starts_from_leaves_nothing_in_its_way(
    train, tmp_path, monkeypatch
):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("stsbench.training.folder.asdict", full)
        with pytest.raises(sb.UserError, match="cannot write"):
            train()
    assert train().steps == 6
