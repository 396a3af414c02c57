"""The folder of an experiment, which is its only state; the states and numbers of its jobs.

A job's folder is complete or absent. Next to the jobs are unfinished trainings, logs and the reasons of failures.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.base.files import Manifest, atomic_path, writing
from stsbench.base.parsing import dump_yaml
from stsbench.records.kinds import KINDS
from stsbench.records.labels import task_labels
from stsbench.records.record import RECORD, RunRecord
from stsbench.records.store import load_run
from stsbench.sweeps.experiment import EXPERIMENT, Experiment, read_experiment
from stsbench.sweeps.jobs import Job
from stsbench.training.log import LOG, read_log

if TYPE_CHECKING:
    from stsbench.analysis.base import Analysis

JOB = "job.json"
"""The file of a finished job with its hash and results."""

JOB_LIST = "jobs.json"

DEV, DEV_STEP, DEV_LAST, LOSS_LAST = "dev", "dev at", "dev last", "loss last"
"""Measures of a training: best dev score and its step, dev score (if it was scored) and loss of the last step."""

LAST = "last: "
"""The prefix of the last step's measures."""

LAST_FOLDER = "last"
"""The folder with the record of the last step, in a job's folder."""

DONE, FAILED, WAITING = "done", "failed", "waiting"

_FILES = (RECORD, f"{LAST_FOLDER}/{RECORD}", LOG, "analyses/*.csv")
"""The files that numbers are read from."""

_REMEDY = "delete the folder, and run the same `stsbench sweep` again"

_JOBS = TypeAdapter(tuple[Job, ...])


@dataclass(frozen=True)
class ExperimentFolder:
    """The folder of an experiment; a unit is named by its hash."""

    path: Path

    @property
    def jobs(self) -> Path:
        """A folder for each finished job."""
        return self.path / "jobs"

    def work(self, unit: str) -> Path:
        """Returns the folder where a unit trains; a killed training resumes there."""
        return self.path / "work" / unit

    def log(self, unit: str) -> Path:
        """Returns the output of a unit's last attempt."""
        return self.path / "logs" / f"{unit}.txt"

    def failure(self, unit: str) -> Path:
        """Returns the file with the reason why a unit failed; absent if it did not."""
        return self.path / "failed" / f"{unit}.txt"

    def write_failure(self, unit: str, reason: str) -> None:
        """Writes the reason why a unit failed."""
        with atomic_path(self.failure(unit)) as path:
            path.write_text(f"{reason}\n", encoding="utf-8")

    def experiment(self) -> Experiment | None:
        """Returns the experiment in the folder; None if there is none yet."""
        return self.require() if (self.path / EXPERIMENT).is_file() else None

    def require(self) -> Experiment:
        """Returns the experiment in the folder; raises a UserError if there is none."""
        return read_experiment(self.path / EXPERIMENT)

    def claim(self, experiment: Experiment, jobs: Sequence[Job]) -> None:
        """Writes the experiment and its jobs into the folder.

        Raises:
            UserError: if the folder holds another experiment, or anything else.
        """
        list_file = self.path / JOB_LIST
        if (held := self.experiment()) is not None:
            if held.name != experiment.name:
                raise UserError(
                    f"{self.path} holds another experiment, {held.name}: choose another folder with --out for "
                    f"{experiment.name}."
                )
        elif any(entry for entry in self.path.glob("[!.]*") if entry != list_file):
            # An interrupted start leaves hidden files and the list of jobs.
            raise UserError(f"{self.path} holds other files: choose another folder with --out.")
        # The list is written first, so that a folder with an experiment always has one.
        content = {"jobs": [asdict(job) for job in jobs]}
        with atomic_path(list_file) as path:
            path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        with atomic_path(self.path / EXPERIMENT) as path:
            path.write_text(dump_yaml(experiment.model_dump(mode="json")), encoding="utf-8")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Locks the folder against a second sweep."""
        from filelock import FileLock, Timeout

        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.path / ".lock", timeout=0):
                yield
        except Timeout as error:
            raise UserError(
                f"another process is sweeping in {self.path}: wait for it, or stop it first; `--status` shows its "
                "progress."
            ) from error

    def planned(self) -> tuple[Job, ...]:
        """Returns the jobs of the experiment as they were last planned."""
        path = self.path / JOB_LIST
        try:
            return _JOBS.validate_python(json.loads(path.read_bytes())["jobs"])
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise UserError(
                f"{path} cannot be read: delete it, and run the same `stsbench sweep` again."
            ) from error

    def done(self) -> dict[str, Path]:
        """Returns the folders of finished jobs by the job's hash, also of cells removed since."""
        if not self.jobs.is_dir():
            return {}
        finished = (path for path in sorted(self.jobs.iterdir()) if (path / JOB).is_file())
        return {path.name.rpartition("-")[2]: path for path in finished if not path.name.startswith(".")}


@dataclass(frozen=True)
class JobState:
    """A job and its state.

    Attributes:
        job: the job.
        state: `done`, `failed` or `waiting`.
        folder: of a finished job.
        record: of a finished job that measured tasks.
        measures: the numbers of a finished job by name; None for undefined.
        seconds: of training and measuring; NaN if the job is not finished.
        failure: the reason why a job failed.
    """

    job: Job
    state: str
    folder: Path | None = None
    record: RunRecord | None = None
    measures: Mapping[str, float | None] = field(default_factory=dict)
    seconds: float = nan
    failure: str | None = None


def job_states(folder: ExperimentFolder, jobs: Sequence[Job]) -> tuple[JobState, ...]:
    """Returns the state of each job.

    Raises:
        UserError: if the folder of a finished job is damaged, edited or another job's.
    """
    done = folder.done()
    return tuple(_state(folder, job, done.get(job.id)) for job in jobs)


def _state(folder: ExperimentFolder, job: Job, path: Path | None) -> JobState:
    if path is not None:
        return read_finished(job, path)
    if (failure := folder.failure(job.unit)).is_file():
        return JobState(job, FAILED, failure=failure.read_text(encoding="utf-8").strip())
    return JobState(job, WAITING)


def write_finished(
    job: Job, folder: Path, analyses: Mapping[str, float | None], times: Mapping[str, float]
) -> None:
    """Writes `job.json` into a job's folder, as the last file; times are in seconds."""
    content = {
        "job": job.id,
        "analyses": dict(analyses),
        "stsbench": __version__,
        "times": {name: round(seconds, 3) for name, seconds in times.items()},
    }
    files = {path.relative_to(folder).as_posix() for pattern in _FILES for path in folder.glob(pattern)}
    Manifest.of(folder, content, files).write(folder, JOB)


def read_finished(job: Job, folder: Path) -> JobState:
    """Returns the results of a finished job, checked against its hash and those of its files."""
    manifest = Manifest.read(folder, JOB, _REMEDY)
    about: Mapping[str, Any] = manifest.content
    if about["job"] != job.id:
        raise UserError(f"{folder} belongs to another job, {about['job']}, not to {job.label}: {_REMEDY}.")
    measures: dict[str, float | None] = {}
    record = load_run(folder) if RECORD in manifest.files else None
    if record is not None:
        measures |= of_record(record)
    measures |= about["analyses"]
    if LOG in manifest.files:
        measures |= of_training(read_log(folder / LOG))
    if f"{LAST_FOLDER}/{RECORD}" in manifest.files:
        measures |= of_record(load_run(folder / LAST_FOLDER), LAST)
    return JobState(job, DONE, folder, record, measures, sum(about["times"].values()))


def headlines(record: RunRecord) -> Iterator[tuple[str, float | None, tuple[float, float] | None]]:
    """Yields the label, score and interval of each task, then of each average; None for undefined."""
    for label, score in zip(task_labels(record.scores), record.scores, strict=True):
        number = score.number(score.about.printed) or score.numbers[0]
        yield label, number.value, number.interval
    for average in record.averages:
        yield KINDS[average.kind].average, average.value, average.interval


def of_record(record: RunRecord, prefix: str = "") -> dict[str, float | None]:
    """Returns the scores and averages of a record, x 100."""
    return {prefix + name: None if score is None else 100 * score for name, score, _ in headlines(record)}


def of_training(log: Sequence[dict[str, Any]]) -> dict[str, float | None]:
    """Returns the measures of a training: dev scores x 100, the step of the best, the last loss.

    >>> log = [{"step": 4, "dev": 0.5, "best": 0.5, "best_step": 4, "loss": 1.0}]
    >>> of_training(log)
    {'dev': 50.0, 'dev at': 4.0, 'dev last': 50.0, 'loss last': 1.0}
    """
    measures: dict[str, float | None] = {}
    steps = max(line["step"] for line in log)
    for line in log:
        if line.get("best_step") == line["step"]:
            # Scores of single dev tasks are those of the best step.
            for task, scores in line.get("tasks", {}).items():
                for measure, score in scores.items():
                    measures[f"{DEV}: {task} {measure}"] = None if score is None else 100 * score
        if "best_step" in line:
            measures[DEV] = None if line["best"] is None else 100 * line["best"]
            measures[DEV_STEP] = float(line["best_step"])
        if "dev" in line and line["step"] == steps:
            measures[DEV_LAST] = None if line["dev"] is None else 100 * line["dev"]
        if "loss" in line:
            measures[LOSS_LAST] = float(line["loss"])
    return measures


def of_analysis(name: str, result: "Analysis") -> dict[str, float | None]:
    """Returns the measures of an analysis; None for undefined."""
    numbers = result.numbers().items()
    return {f"{name}: {of}": value if isfinite(value) else None for of, value in numbers}
