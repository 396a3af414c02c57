"""How far each job of an experiment is, and the numbers of those that are done.

`job.json` says which job left a folder, by the hash of all that it does, and holds the hashes of the files that
numbers are read from. So a file that was changed, or that another job left, is told and not used.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.base.manifest import Manifest
from stsbench.records.kinds import KINDS
from stsbench.records.labels import task_labels
from stsbench.records.record import RECORD, RunRecord
from stsbench.records.store import load_run
from stsbench.sweeps.folder import JOB, ExperimentFolder, Failure
from stsbench.sweeps.jobs import Job
from stsbench.training.log import LOG, read_log

if TYPE_CHECKING:
    from stsbench.analysis.base import Analysis

DEV, DEV_STEP, DEV_LAST, LOSS_LAST = "dev", "dev at", "dev last", "loss last"
"""Measures of a training: its best dev score and the step of it, the dev score of its last step (absent if that
was not scored), the last loss."""

LAST = "last: "
"""Before the measures of the checkpoint of a training's last step."""


def headlines(record: RunRecord) -> Iterator[tuple[str, float | None, tuple[float, float] | None]]:
    """Yield the label, score and interval of each task of a record, then of its averages; None for none."""
    for label, score in zip(task_labels(record.scores), record.scores, strict=True):
        number = score.number(score.about.printed) or score.numbers[0]
        yield label, number.value, number.interval
    for average in record.averages:
        yield KINDS[average.kind].average, average.value, average.interval


def of_record(record: RunRecord, prefix: str = "") -> dict[str, float | None]:
    """Return the scores x 100 of a record by task, and the averages; None where a score is undefined."""
    return {prefix + name: None if score is None else 100 * score for name, score, _ in headlines(record)}


def of_training(log: Sequence[dict[str, Any]]) -> dict[str, float | None]:
    """Return what a training's log comes to: dev scores x 100, the step of the best, the last loss.

    >>> log = [{"step": 4, "dev": 0.5, "best": 0.5, "best_step": 4, "loss": 1.0}]
    >>> of_training(log)
    {'dev': 50.0, 'dev at': 4.0, 'dev last': 50.0, 'loss last': 1.0}
    """
    measures: dict[str, float | None] = {}
    steps = max(line["step"] for line in log)
    for line in log:
        if line.get("best_step") == line["step"]:
            # Of several tasks on the dev set: as they were at the best step.
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
    """Return the numbers that stand for an analysis; None for one that is undefined.

    >>> import stsbench as sb
    >>> result = sb.geometry(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], task="sample")
    >>> list(of_analysis("geometry", result))
    ['geometry: alignment', 'geometry: uniformity', 'geometry: mean cosine']
    """
    numbers = result.numbers().items()
    return {f"{name}: {of}": value if isfinite(value) else None for of, value in numbers}


LAST_FOLDER = "last"
"""Where in a job's folder the record of its training's last step is."""

_FILES = (RECORD, f"{LAST_FOLDER}/{RECORD}", LOG, "analyses/*.csv")
"""The files that numbers are read from."""

_AGAIN = "delete the folder, and the same `stsbench sweep` makes it again"

Seconds = Annotated[float, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Times(_Part):
    """The seconds that training and measuring took."""

    training: Seconds
    measuring: Seconds


class JobFile(_Part):
    """The content of `job.json`: the job's hash, and the numbers that no record has."""

    job: str
    analyses: dict[str, float | None]
    checkpoint: str | None
    stsbench: str
    times: Times


@dataclass(frozen=True)
class Finished:
    """What a job came to.

    Attributes:
        record: on the tasks; None where none were asked for.
        measures: its numbers by name.
        checkpoint: the folder of the trained checkpoint in the experiment's; None if it was not kept.
        seconds: that training and measuring took.
    """

    record: RunRecord | None
    measures: Mapping[str, float | None] = field(default_factory=dict)
    checkpoint: str | None = None
    seconds: float = 0.0


def write_finished(
    job: Job,
    folder: Path,
    *,
    analyses: Mapping[str, float | None],
    checkpoint: str | None,
    training: float,
    measuring: float,
) -> None:
    """Write `job.json` into a job's folder, as the last file; times are in seconds."""
    about = JobFile(
        job=job.id,
        analyses=dict(analyses),
        checkpoint=checkpoint,
        stsbench=__version__,
        times=Times(training=round(training, 3), measuring=round(measuring, 3)),
    )
    names = {path.relative_to(folder).as_posix() for pattern in _FILES for path in folder.glob(pattern)}
    Manifest.of(folder, about.model_dump(mode="json"), names).write(folder, JOB)


def read_finished(job: Job, folder: Path) -> Finished:
    """Return what a job came to."""
    manifest = Manifest.read(folder, JOB, _AGAIN)
    try:
        about = JobFile.model_validate(manifest.content)
    except ValidationError as error:
        first = error.errors()[0]
        _refuse(folder, f"{JOB} is damaged ({'.'.join(map(str, first['loc']))}: {first['msg']})")
    if about.job != job.id:
        _refuse(folder, f"it is the folder of another job, {about.job}, and not of {job.label}")
    measures: dict[str, float | None] = {}
    record = load_run(folder) if RECORD in manifest.files else None
    if record is not None:
        weights = record.model.weights_sha256
        if job.checkpoint is not None and weights != job.inputs["checkpoint"]["weights_sha256"]:
            _refuse(folder, f"{RECORD} is of other weights than {job.checkpoint.name} had")
        measures |= of_record(record)
    measures |= about.analyses
    if LOG in manifest.files:
        measures |= of_training(read_log(folder / LOG))
    if f"{LAST_FOLDER}/{RECORD}" in manifest.files:
        measures |= of_record(load_run(folder / LAST_FOLDER), LAST)
    return Finished(record, measures, about.checkpoint, about.times.training + about.times.measuring)


def _refuse(folder: Path, why: str) -> NoReturn:
    raise UserError(f"{folder}: {why}: {_AGAIN}.")


DONE, FAILED, RUNNING, WAITING = "done", "failed", "running", "waiting"
"""The states of a job."""


@dataclass(frozen=True)
class JobState:
    """A job, and how far it is.

    Attributes:
        job: what there is to do.
        state: `done`, `failed`, `running` or `waiting`.
        folder: of a job that is done.
        finished: what came out of a job that is done.
        failure: of a job that failed.
    """

    job: Job
    state: str
    folder: Path | None = None
    finished: Finished | None = None
    failure: Failure | None = None

    @property
    def measures(self) -> Mapping[str, float | None]:
        """Its numbers by name."""
        return {} if self.finished is None else self.finished.measures

    @property
    def seconds(self) -> float:
        """How long training and measuring took; NaN for a job that is not done."""
        return nan if self.finished is None else self.finished.seconds


def job_states(folder: ExperimentFolder, jobs: Sequence[Job]) -> tuple[JobState, ...]:
    """Return how far each job is, in their order."""
    done = folder.done()
    states = []
    for job in jobs:
        path = done.get(job.id)
        if path is not None:
            states.append(JobState(job, DONE, path, read_finished(job, path)))
        elif (failure := folder.failed(job.unit)) is not None:
            states.append(JobState(job, FAILED, failure=failure))
        else:
            states.append(JobState(job, RUNNING if folder.running(job.unit).is_file() else WAITING))
    return tuple(states)
