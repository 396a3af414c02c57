"""A training that is killed and resumed ends with the bits of one that was not."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from small_trainings import left

import stsbench as sb
from stsbench.training import job
from stsbench.training import train as publishing
from stsbench.training.folder import RunFolder, Start
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
        count, save = 0, checkpoints.save_state
        def save_state(path, state):
            global count
            count += 1
            if count == int(at):
                die()
            save(path, state)
        checkpoints.save_state = save_state
    sb.train(recipe, corpus, out, overrides=overrides, device="cpu")
    """
)

ESIMCSE = (
    "views.key={kind: subword-repetition, rate: 0.5}",
    "negatives.queue.size=20",
    "target.decay=0.9",
    "head=dense-tanh",
    "objective.mlm.weight=0.1",
    "optimiser={epochs: 2, accumulate: 2}",
    "selection.every=2",
    "saving={every: 2, keep: 2}",
    "log_every=1",
)


@pytest.fixture
def killed(recipe_file, corpus, tmp_path):
    def run(where: str, at: int, out: str) -> Path:
        command = [
            sys.executable,
            "-c",
            KILLED,
            str(recipe_file),
            str(corpus),
            str(tmp_path / out),
            where,
            str(at),
        ]
        # As many threads as here, where it will be resumed: another number may change the last bits.
        surroundings = os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())}
        done = subprocess.run(
            [*command, *ESIMCSE], check=False, capture_output=True, text=True, timeout=300, env=surroundings
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        return tmp_path / out

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "at"),
    [
        pytest.param("log", 1, marks=pytest.mark.long),
        pytest.param("log", 3, marks=pytest.mark.long),
        pytest.param("save", 2, marks=pytest.mark.long),
        ("log", 5),
    ],
)
def test_killed_at_any_step_or_save_and_resumed_gives_the_same_bits(where, at, train, killed):
    whole = left(train(*ESIMCSE, out="whole").folder)
    assert len(whole[0]) >= 3
    assert len(whole[1]) == 1 + 6 + 4  # the traceable distance; six steps; scores before, at 2, 4 and 6
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
    first, second, other = (
        left(train("saving.keep=0", out=out, seed=seed).folder) for out, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first == second
    assert first[0].keys() == other[0].keys()
    assert first[0] != other[0]


def test_a_resumed_training_is_held_against_what_it_started_from(train, tmp_path, corpus):
    with pytest.raises(_StoppedError):
        train("saving.every=2", listeners=[_stopping_at(4)])
    folder = tmp_path / "run"
    text = corpus.read_text(encoding="utf-8")
    corpus.write_text(text + "One sentence more.\n", encoding="utf-8")
    with pytest.raises(sb.UserError, match="the corpus differs from the one at the start of the training"):
        sb.train(resume=folder, device="cpu")
    corpus.write_text(text, encoding="utf-8")
    with pytest.raises(sb.UserError, match="--seed: not with --resume"):
        sb.train(resume=folder, seed=3, device="cpu")
    state = folder / "training" / "state.pt"
    whole = state.read_bytes()
    state.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(sb.UserError, match=r"state.pt is damaged"):
        sb.train(resume=folder, device="cpu")
    state.write_bytes(whole)
    sb.train(resume=folder, device="cpu")
    with pytest.raises(sb.UserError, match="is finished"):
        sb.train(resume=folder, device="cpu")


@pytest.mark.parametrize(("at", "place"), [(2, "its first step"), (5, "the last save")])
def test_ctrl_c_names_the_command_that_goes_on_and_it_does(
    at, place, recipe_file, corpus, tmp_path, monkeypatch, capsys
):
    from stsbench.cli.app import main

    out, write = tmp_path / "run", Log.write

    def stop(log, line):
        if line["step"] == at:
            raise KeyboardInterrupt
        write(log, line)

    monkeypatch.setattr(Log, "write", stop)
    typed = ["train", str(recipe_file), "--corpus", str(corpus), "--out", str(out), "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", ["stsbench", *typed, "--set", "log_every=1", "-q"])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr().err
    assert (ended.value.code, told) == (
        130,
        f"stsbench: interrupted: `stsbench train --resume {out}` resumes from {place}.\n",
    )
    monkeypatch.undo()
    assert sb.train(resume=out, device="cpu").steps == 6


def test_ctrl_c_before_anything_is_written_leaves_the_folder_to_the_same_command(
    recipe_file, corpus, tmp_path, monkeypatch, capsys
):
    from stsbench.cli.app import main

    def stop(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(job.Job, "_run", stop)
    typed = ["train", str(recipe_file), "--corpus", str(corpus), "--out", str(tmp_path / "run"), "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", ["stsbench", *typed, "-q"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "stsbench: interrupted: the same command resumes from the cache.\n"
    assert not (tmp_path / "run").exists()


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
