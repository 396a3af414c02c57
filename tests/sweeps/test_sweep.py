"""A sweep runs unfinished jobs, reports failed ones, and makes tables that other functions read."""

import re
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import small_experiments
from small_experiments import contents, run_here
from typer.testing import CliRunner

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.cli.app import app
from stsbench.sweeps import run_job
from stsbench.sweeps.experiment import Experiment, read_experiment
from stsbench.sweeps.folder import ExperimentFolder, JobState, of_training
from stsbench.sweeps.jobs import Job, jobs_of
from stsbench.sweeps.result import Sweep, axis_figure, read_sweep
from stsbench.sweeps.sweep import RayCluster, SlurmArray, Work, executor_of

Make = Callable[..., Experiment]


def test_the_table_of_every_job_opens_in_one_line(finished: Sweep) -> None:
    table = pd.read_csv(finished.folder / "table.csv")
    assert table["postprocessing"].tolist() == ["none", "none", "whiten 8", "whiten 8"]
    assert table["seed"].tolist() == [1, 2, 1, 2]
    assert set(table["state"]) == {"done"}
    pd.testing.assert_frame_equal(table, finished.frame, check_dtype=False)
    assert table[["sample", "last: sample", "dev", "dev last", "geometry: alignment"]].notna().all(axis=None)


def test_the_last_step_has_a_dev_score_only_if_it_was_scored() -> None:
    scored = {"step": 2, "dev": 0.5, "best": 0.5, "best_step": 2}
    assert of_training([scored, {"step": 3, "loss": 1.0}]) == {"dev": 50.0, "dev at": 2.0, "loss last": 1.0}


def test_a_job_has_its_record_its_training_and_its_threads(finished: Sweep) -> None:
    assert len(finished.records()) == 4
    for row, folder in zip(finished.frame.to_dict("records"), finished.records(), strict=True):
        record = sb.load_run(folder)
        assert record.environment["threads"] == row["threads"] == 1
        assert 100 * record.scores[0].value == row["sample"]
        assert 100 * sb.load_run(folder / "last").scores[0].value == row["last: sample"]
        assert record.model.use.whiten == (8 if row["postprocessing"] == "whiten 8" else None)
        assert {"recipe.yaml", "log.jsonl", "job.json", "analyses", "last"} < {
            path.name for path in folder.iterdir()
        }
        assert f"seed: {row['seed']}\n" in (folder / "recipe.yaml").read_text()
        # The task is that which checkpoints were selected on.
        if row["postprocessing"] == "none":
            assert row["dev"] == pytest.approx(row["sample"])
    # Two ways of measuring one training share it, and its checkpoint is gone.
    logs = [(folder / "log.jsonl").read_text() for folder in finished.records()]
    assert [logs[place] == logs[place + 2] for place in (0, 1)] == [True] * 2
    assert list((finished.folder / "checkpoints").iterdir()) == []


def test_the_cells_have_the_intervals_of_compare(finished: Sweep) -> None:
    cells = finished.cells
    expected = sb.compare(finished.records(postprocessing="none")).frame.iloc[0]
    row = cells[(cells["cell"] == "none") & (cells["measure"] == "sample")].iloc[0]
    for name in ("mean", "sd", "low", "high", "seed_share", "pair_share"):
        assert row[name] == expected[f"a_{name}"], name
    assert (row["runs"], row["interval"]) == (2, "seeds and pairs")
    # What has no record has an interval over seeds: Student's.
    values = finished.frame.iloc[:2]["geometry: uniformity"]
    row = cells[(cells["cell"] == "none") & (cells["measure"] == "geometry: uniformity")].iloc[0]
    assert row["interval"] == "seeds"
    assert row["high"] - row["mean"] == pytest.approx(12.7062047 * values.std() / np.sqrt(2))


def test_a_reader_gets_a_row_for_each_cell_a_figure_and_a_section(finished: Sweep) -> None:
    (table,) = finished.table()
    assert table.frame["postprocessing"].tolist() == ["none", "whiten 8"]
    assert table.frame["runs"].tolist() == [2, 2]
    assert [label.get_text() for label in finished.plot().axes[0].get_yticklabels()] == ["none", "whiten 8"]
    section = finished.section()
    assert section.text == ("Does whitening help?",)
    assert (len(section.tables), len(section.figures)) == (1, 1)


def test_numbers_are_drawn_to_scale_with_a_band_and_a_line_for_each_series() -> None:
    rows = [
        {"place": rate, "series": method, "value": rate, "low": rate - 1, "high": rate + 1, "filled": True}
        for method in ("a", "b")
        for rate in (0.5, 0.1, 0.3)
    ]
    (axes,) = axis_figure(pd.DataFrame(rows), "rate", "dev").axes
    assert [line.get_xdata().tolist() for line in axes.get_lines()] == [[0.1, 0.3, 0.5]] * 2
    assert [line.get_label() for line in axes.get_lines()] == ["a", "b"]
    band = axes.collections[0].get_paths()[0].get_extents()
    assert (band.ymin, band.ymax) == (-0.9, 1.5)


def test_small_numbers_of_a_file_are_an_axis(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text("name: a\nrecipe: demo\naxes: {optimiser.learning_rate: [1e-5, 3e-5]}\n", encoding="utf-8")
    states = [JobState(job, "done", tmp_path, measures={"dev": 1.0}) for job in jobs_of(read_experiment(path))]
    swept = Sweep(read_experiment(path), tmp_path, tuple(states))
    assert swept.cells["optimiser.learning_rate"].tolist() == [1e-5, 3e-5]
    (axes,) = swept.plot().axes
    assert axes.get_lines()[0].get_xdata().tolist() == [1e-5, 3e-5]


def test_what_is_not_there_is_told(finished: Sweep) -> None:
    asked = finished.experiment
    for wrong, message in (
        (lambda: finished.plot("batch"), "there is no axis 'batch'"),
        (lambda: finished.plot(measure="STS"), "there is no measure 'STS'"),
        (lambda: finished.records(batch="8"), "there is no axis 'batch'"),
        (lambda: finished.records(postprocessing="flow"), "has no 'flow': choose one of none, whiten 8"),
        (lambda: read_sweep(finished.folder / "jobs"), "there is no experiment"),
        (lambda: executor_of("lokal", asked, workers=None, device="auto"), "--on lokal: did you mean local"),
        (lambda: executor_of("ray", asked, workers=None, device="cuda"), "--device cuda is for --on local"),
        (lambda: executor_of("local", asked, workers=0, device="auto"), "--workers 0"),
    ):
        with pytest.raises(UserError, match=message):
            wrong()


def test_what_is_done_is_not_done_again_and_a_changed_axis_adds_jobs(
    finished: Sweep, experiment: Make, serial: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "x"
    shutil.copytree(finished.folder, folder)
    again = sb.sweep(finished.experiment, folder)
    assert serial == []
    assert contents(folder) == contents(finished.folder)
    pd.testing.assert_frame_equal(again.frame, finished.frame)
    stamps = {path: path.stat().st_mtime_ns for path in (folder / "jobs").rglob("*")}
    changes = {"axes": {"postprocessing": ["none", {"dimensions": 8}]}, "seeds": [2, 3]}
    asked = experiment(**finished.experiment.model_dump() | changes)
    planned = sb.sweep(asked, folder, status=True)
    assert [state.state for state in planned.jobs] == ["done", "waiting", "waiting", "waiting"]
    more = sb.sweep(asked, folder)
    # The third seed, and the second one again, as its checkpoint was not kept.
    assert len(serial) == 2
    assert more.is_complete
    assert [state.job.label for state in more.jobs if state.folder not in stamps] == [
        "postprocessing none, seed 3",
        "postprocessing dimensions 8, seed 2",
        "postprocessing dimensions 8, seed 3",
    ]
    assert stamps == {path: path.stat().st_mtime_ns for path in stamps}


def test_a_failed_job_is_told_with_the_end_of_its_log_and_the_others_go_on(
    experiment: Make, tiny: Path, serial: list[str], tmp_path: Path
) -> None:
    base = str(tiny.parent / "base")
    rows = {"broken": {"optimiser.learning_rate": 1e30}, "base": {"checkpoint": base, "pooling": "avg"}}
    asked = experiment(axes={"row": rows})
    told: list[str] = []
    result = sb.sweep(asked, tmp_path / "x", notice=told.append)
    assert [state.state for state in result.jobs] == ["failed", "done"]
    (failed,) = result.failed
    assert "the loss of step 2 is not finite" in failed.failure
    assert any("failed: row broken, seed 42: the loss" in sentence for sentence in told)
    notes = "\n".join(result.status().notes)
    assert str(ExperimentFolder(tmp_path / "x").log(failed.job.unit)) in notes
    # It is left as it is until it is asked for.
    serial.clear()
    told.clear()
    sb.sweep(asked, tmp_path / "x", notice=told.append)
    assert serial == []
    assert told == ["1 failed before and will not run: --retry runs them again."]
    again = ["sweep", str(tmp_path / "x")]
    assert [CliRunner().invoke(app, [*again, *more]).exit_code for more in ((), ("--status",))] == [1, 0]
    sb.sweep(asked, tmp_path / "x", retry=True)
    assert serial == [failed.job.unit]
    state = sb.sweep(tmp_path / "x", status=True)
    assert isinstance(state, Sweep)
    assert [job.state for job in state.jobs] == ["failed", "done"]
    # The checkpoint was measured as it is: one run, with the interval of its record.
    (folder,) = state.records()
    record = sb.load_run(folder)
    assert record.model.name == base
    assert record.scores[0].value == sb.evaluate(sb.load(base, pooling="avg"), "sample").scores[0].value
    row = state.cells[state.cells["measure"] == "sample"].iloc[0]
    assert (row["low"], row["high"]) == tuple(100 * limit for limit in record.scores[0].interval)
    assert (row["runs"], row["interval"]) == (1, "pairs")


def test_the_folder_of_something_else_is_left_alone(finished: Sweep, experiment: Make, tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match="holds another experiment, small: choose another folder with --out for big"
    ):
        sb.sweep(experiment(name="big"), finished.folder)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="holds other files"):
        sb.sweep(experiment(), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} <= {"notes.txt", ".lock", "cache"}
    with (
        ExperimentFolder(tmp_path / "y").alone(),
        pytest.raises(UserError, match="another process is sweeping in"),
    ):
        sb.sweep(experiment(), tmp_path / "y")


def test_missing_data_is_told_before_the_first_job(experiment: Make, serial: list[str], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="STS13 was not found"):
        sb.sweep(experiment(measure={"tasks": "STS13"}), tmp_path / "x")
    with pytest.raises(UserError, match="nowhere"):
        sb.sweep(experiment(name="b", base="./nowhere"), tmp_path / "y")
    assert serial == []


def test_a_job_that_is_killed_for_memory_or_finds_the_disk_full_is_told_as_that_and_stops_no_other(
    experiment: Make, tiny: Path, serial: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {name: {"checkpoint": str(tiny.parent / "base"), "pooling": name} for name in ("avg", "max", "last")}
    asked = experiment(axes={"row": rows}, name="a")
    run, write = run_here, run_job.write_finished

    def killed(work: Work) -> int:
        return -signal.SIGKILL if work.unit == units["avg"] else run(work)

    def full(job: Job, *rest: Any, **named: Any) -> None:
        if job.cell == {"row": "max"}:
            raise OSError(28, "No space left on device")
        write(job, *rest, **named)

    units = {job.cell["row"]: job.unit for job in jobs_of(asked)}
    monkeypatch.setattr(small_experiments, "run_here", killed)
    monkeypatch.setattr(run_job, "write_finished", full)
    told: list[str] = []
    result = sb.sweep(asked, tmp_path / "x", notice=told.append)
    assert [state.state for state in result.jobs] == ["failed", "failed", "done"]
    reasons = [state.failure for state in result.failed]
    assert reasons[0].startswith("killed by the system (signal 9), most likely for memory: run fewer at once")
    assert re.fullmatch(r"cannot write .*jobs/row-max-\w+ \(No space left on device\): .*\.", reasons[1])
    assert [f"failed: row {name}: {why}" in told for name, why in zip(rows, reasons, strict=False)] == [True] * 2
    # Nothing of them is there, and nothing of the other is lost.
    assert [path.name.partition("-")[2][:4] for path in (tmp_path / "x" / "jobs").iterdir()] == ["last"]
    monkeypatch.undo()
    with small_experiments.in_this_process() as ran:
        again = sb.sweep(asked, tmp_path / "x", retry=True)
    assert (again.is_complete, set(ran)) == (True, {units["avg"], units["max"]})


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: 9")])
def test_memory_that_a_job_asks_for_in_vain_is_told_as_that(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_vain(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(run_job, "run_unit", in_vain)
    (tmp_path / "experiment.yaml").write_text("name: a")
    assert run_job.main([str(tmp_path), "u"]) == 1
    reason = ExperimentFolder(tmp_path).failure("u").read_text()
    assert reason.startswith("there was not enough memory: run fewer at once with --workers")


@pytest.mark.parametrize(("on", "package"), [("ray", "ray"), ("slurm", "submitit")])
def test_an_engine_that_is_not_installed_is_named_with_its_extra(
    on: str, package: str, experiment: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=rf"--on {on} needs the package {package}: pip install 'stsbench\[{on}\]'"):
        sb.sweep(experiment(), tmp_path / "x", on=on)


def test_an_executor_has_the_options_of_the_experiment(experiment: Make) -> None:
    asked = experiment(threads=2, ray={"num_gpus": 1})
    assert executor_of("ray", asked, workers=3, device="auto") == RayCluster({"num_gpus": 1}, 2, 3)
    assert executor_of("slurm", asked, workers=None, device="auto") == SlurmArray({}, 2, None)
