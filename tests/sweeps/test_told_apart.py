"""Tables are made from records; cells, jobs and models are identified by content, not by name."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from damages import files_of_at_most

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.sweeps.experiment import Experiment
from stsbench.sweeps.folder import JOB, ExperimentFolder
from stsbench.sweeps.jobs import jobs_of
from stsbench.sweeps.result import Sweep, read_sweep

Make = Callable[..., Experiment]


@pytest.fixture
def done(finished: Sweep, tmp_path: Path) -> Sweep:
    """Return a finished experiment in a folder of its own."""
    shutil.copytree(finished.folder, tmp_path / "x")
    return read_sweep(tmp_path / "x")


def job_file(sweep: Sweep) -> Path:
    """Return the `job.json` of its first job."""
    assert sweep.jobs[0].folder is not None
    return sweep.jobs[0].folder / JOB


def checkpoints(tiny: Path, folder: Path, *names: str) -> None:
    """Put copies of the tiny checkpoint into a folder, each with weights of its own."""
    import numpy as np
    from safetensors.numpy import load_file, save_file

    for number, name in enumerate(names):
        shutil.copytree(tiny.parent / "base", folder / name)
        weights = load_file(folder / name / "model.safetensors")
        changed = {key: np.roll(array, number) for key, array in weights.items()}
        save_file(changed, folder / name / "model.safetensors", {"format": "pt"})


def score(model: str | Path, **options: Any) -> float:
    record = sb.evaluate(sb.load(str(model), pooling="avg", **options), "sample", use_cache=False)
    return 100 * float(record.scores[0].value or 0)


@pytest.mark.parametrize(
    "change", [{"analyses": None}, {"times": {"training": 1.0}}, {"job": "a"}, {"files": []}, {"more": 1}]
)
def test_an_edited_job_file_is_an_error(change: dict[str, Any], done: Sweep) -> None:
    content = json.loads(job_file(done).read_text())
    job_file(done).write_text(json.dumps(content | change))
    for use in (read_sweep, sb.sweep):
        with pytest.raises(UserError, match=r"job\.json") as caught:
            use(done.folder)
        assert len(caught.value.sentences) == 1


def test_a_damaged_list_of_jobs_is_an_error(done: Sweep) -> None:
    (done.folder / "jobs.json").write_text('{"jobs": [1]}')
    with pytest.raises(UserError, match=r"jobs\.json cannot be read"):
        read_sweep(done.folder)


@pytest.mark.parametrize("name", ["run.json", "last/run.json", "log.jsonl", "analyses/geometry.csv"])
def test_a_file_of_another_job_is_told_and_not_used(name: str, done: Sweep) -> None:
    one, other = done.jobs[0].folder, done.jobs[1].folder
    assert one is not None
    assert other is not None
    shutil.copyfile(other / name, one / name)
    with pytest.raises(UserError, match=rf"{name} is not the file that its job\.json was written with"):
        sb.sweep(done.folder)
    (one / name).unlink()
    with pytest.raises(UserError, match=rf"lacks {name}, which its job\.json names: delete the folder"):
        read_sweep(done.folder)


def test_the_folder_of_another_job_under_this_name_is_told_and_not_used(done: Sweep, serial: list[str]) -> None:
    one, other = done.jobs[0].folder, done.jobs[1].folder
    assert one is not None
    assert other is not None
    shutil.rmtree(one)
    shutil.copytree(other, one)
    with pytest.raises(UserError, match=r"belongs to another job, \w+, not to postprocessing none, seed 1"):
        sb.sweep(done.folder)
    assert serial == []
    # What the sentence says is enough.
    shutil.rmtree(one)
    assert sb.sweep(done.folder).is_complete
    assert len(serial) == 1


def test_changed_weights_and_corpora_make_new_jobs(
    experiment: Make, tiny: Path, serial: list[str], tmp_path: Path
) -> None:
    checkpoints(tiny, tmp_path, "a", "b", "c")
    corpus = tmp_path / "corpus.txt"
    shutil.copyfile(tiny.parent / "corpus.txt", corpus)
    rows = {"a": {"checkpoint": str(tmp_path / "a"), "pooling": "avg"}, "b": {"base": str(tmp_path / "b")}}
    asked = experiment(corpus=str(corpus), axes={"row": rows})
    before = sb.sweep(asked, tmp_path / "x")
    for name, changed in (("a", 0), ("b", 1)):
        serial.clear()
        shutil.copyfile(tmp_path / "c" / "model.safetensors", tmp_path / name / "model.safetensors")
        after = sb.sweep(asked, tmp_path / "x")
        assert len(serial) == 1
        assert after.frame["sample"][changed] != before.frame["sample"][changed]
        assert after.frame["sample"][1 - changed] == before.frame["sample"][1 - changed]
        before = after
    assert after.frame["sample"][0] == pytest.approx(score(tmp_path / "a"))
    corpus.write_text(corpus.read_text() + "A crow and a clock share a roof.\n")
    sb.sweep(asked, tmp_path / "x")
    assert len(serial) == 2


def test_what_changes_between_the_plan_and_the_job_is_refused(
    experiment: Make, tiny: Path, tmp_path: Path
) -> None:
    from stsbench.sweeps.run_job import run_unit

    checkpoints(tiny, tmp_path, "a", "c")
    asked, folder = (
        experiment(axes={"row": {"a": {"checkpoint": str(tmp_path / "a")}}}),
        ExperimentFolder(tmp_path / "x"),
    )
    jobs = jobs_of(asked)
    folder.claim(asked, jobs)
    shutil.copyfile(tmp_path / "c" / "model.safetensors", tmp_path / "a" / "model.safetensors")
    with pytest.raises(
        UserError, match="the checkpoint, base or corpus changed since the sweep was started: start it"
    ):
        run_unit(folder, jobs[0].unit)
    assert folder.done() == {}


def test_a_relative_name_means_the_same_file_wherever_the_sweep_goes_on(
    tiny: Path, serial: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    checkpoints(tiny, tmp_path / "here", "plain", "other")
    (tmp_path / "there" / "plain").symlink_to(tmp_path / "here" / "other")
    (tmp_path / "there" / "other").symlink_to(tmp_path / "here" / "plain")
    asked = {
        "name": "a",
        "measure": {"tasks": "sample"},
        "axes": {"checkpoint": ["plain", "other"], "pooling": ["avg", "max"]},
    }
    file = tmp_path / "a.yaml"
    file.write_text(yaml.safe_dump(asked))
    monkeypatch.chdir(tmp_path / "here")
    first = sb.sweep(file, tmp_path / "x")
    assert first.frame["checkpoint"].tolist() == ["plain", "plain", "other", "other"]
    assert read_sweep(tmp_path / "x").experiment.relative_to == str(tmp_path / "here")
    lost = first.records(checkpoint="plain", pooling="avg")
    monkeypatch.chdir(tmp_path / "there")
    for experiment in (tmp_path / "x", file):
        shutil.rmtree(lost[0])
        serial.clear()
        again = sb.sweep(experiment, tmp_path / "x")
        assert len(serial) == 1
        assert again.frame["sample"].tolist() == first.frame["sample"].tolist()
    # Nor does a name that means nothing there find what lies here.
    (tmp_path / "here" / "plain").rename(tmp_path / "here" / "gone")
    with pytest.raises(UserError, match="no such model: plain is not a folder"):
        sb.sweep(tmp_path / "x")


def test_a_sweep_that_could_not_write_goes_on_once_there_is_room(
    tiny: Path, serial: list[str], tmp_path: Path
) -> None:
    rows = {name: {"checkpoint": str(tiny.parent / "base"), "pooling": name} for name in ("avg", "max")}
    asked = Experiment(name="a", axes={"row": rows}, measure={"tasks": "sample"})
    with files_of_at_most(1024), pytest.raises(UserError, match=r"jobs\.json \(File too large\)"):
        sb.sweep(asked, tmp_path / "x")
    # What a writer left that was killed in the middle is no other's either.
    (tmp_path / "x" / ".jobs.stsbench-abc.json").write_text("{")
    sb.sweep(asked, tmp_path / "x")
    assert read_sweep(tmp_path / "x").is_complete
