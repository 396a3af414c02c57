"""An experiment whose processes are killed, and started again, comes to the same as one that was left alone."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from small_experiments import contents

import stsbench as sb
from stsbench.records.store import load_run
from stsbench.sweeps import run_job
from stsbench.sweeps.experiment import Experiment
from stsbench.sweeps.folder import ExperimentFolder
from stsbench.sweeps.result import Sweep
from stsbench.sweeps.sweep import Work


@pytest.mark.long
def test_a_job_that_is_killed_in_the_middle_of_its_training_comes_to_the_same(
    finished: Sweep, serial: list[str], tmp_path: Path
) -> None:
    folder = ExperimentFolder(tmp_path / "x")
    shutil.copytree(finished.folder, folder.path)
    state = next(state for state in finished.jobs if state.job.seed == 1)
    unit = state.job.unit
    lost = [state.folder for state in finished.jobs if state.job.unit == unit]
    for path in lost:
        shutil.rmtree(folder.jobs / path.name)
    process = Work(folder.path, unit, 1, folder.log(unit)).start()
    while process.poll() is None and not (folder.work(unit) / "training" / "state.pt").is_file():
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert contents(folder.path) != contents(finished.folder)
    result = sb.sweep(finished.experiment, folder.path)
    assert serial == [unit]
    assert "resumed after step" in folder.log(unit).read_text()
    assert isinstance(result, Sweep)
    assert result.is_complete
    assert contents(folder.path) == contents(finished.folder)
    # Nothing of what was half-done is left.
    assert [path.name for path in (folder.path / "work").iterdir() if path.is_dir()] == []
    assert [path.name for path in folder.jobs.iterdir() if path.name.startswith(".")] == []


def test_a_unit_that_is_killed_between_its_jobs_goes_on_and_says_what_it_encoded_again(
    finished: Sweep, serial: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ExperimentFolder(tmp_path / "x")
    shutil.copytree(finished.folder, folder.path)
    for state in finished.jobs:
        if state.job.seed == 1:
            assert state.folder is not None
            shutil.rmtree(folder.jobs / state.folder.name)
    measure, cleared = run_job.measure_job, shutil.rmtree

    class Killed(BaseException):
        """As SIGKILL: nothing is caught or cleared."""

    def once(*arguments: Any, **options: Any) -> None:
        measure(*arguments, **options)
        monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
        raise Killed

    monkeypatch.setattr(run_job, "measure_job", once)
    with pytest.raises(Killed):
        sb.sweep(finished.experiment, folder.path)
    monkeypatch.setattr(shutil, "rmtree", cleared)
    monkeypatch.setattr(run_job, "measure_job", measure)
    assert len(folder.done()) == 3
    assert list((folder.path / "work").glob(".*.vectors"))
    result = sb.sweep(finished.experiment, folder.path)
    assert isinstance(result, Sweep)
    assert len(set(serial)) == 1
    assert contents(folder.path) == contents(finished.folder)
    # The other seed's second job found all in the cache, this one's had lost it.
    last, other = (load_run(state.folder).encoding for state in (result.jobs[2], result.jobs[3]))
    assert (last["encoded"], other["encoded"]) == (last["sequences"], 0)


@pytest.mark.slow
@pytest.mark.long
def test_an_experiment_killed_at_ten_random_moments_comes_to_the_same(
    experiment: Callable[..., Experiment], tmp_path: Path
) -> None:
    asked = experiment(
        axes={"optimiser.learning_rate": [1e-3, 3e-3], "postprocessing": ["none", {"whiten": 8}]},
        set={"corpus.rows": 16, "optimiser.epochs": 3},
        seeds=[1, 2],
    )
    file = tmp_path / "e.yaml"
    file.write_text(yaml.safe_dump(asked.model_dump(mode="json")))

    def start(out: str) -> "subprocess.Popen[bytes]":
        arguments = [sys.executable, "-m", "stsbench", "sweep", str(file), "--out", str(tmp_path / out), "-q"]
        return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, start_new_session=True)

    began = time.monotonic()
    assert start("left-alone").wait() == 0
    took = time.monotonic() - began
    draw = random.Random(20260)
    kills = 0
    while kills < 10:
        process = start("killed")
        try:
            code = process.wait(timeout=draw.uniform(0.1, 0.9) * took)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
        else:
            # It came to its end before ten kills: from the beginning, then.
            assert code == 0
            shutil.rmtree(tmp_path / "killed")
    assert start("killed").wait() == 0
    # Records have the hashes of the weights.
    assert contents(tmp_path / "killed") == contents(tmp_path / "left-alone")
    assert list((tmp_path / "killed" / "checkpoints").iterdir()) == []
