"""What a finished job left in its folder: its numbers, read from its records, and whose they are.

`job.json` says which job did it, by the hash of all that it does, and holds the hashes of the files that numbers
are read from. So a file that was changed, or that another job left, is told and not used.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, NoReturn

from pydantic import BaseModel, ConfigDict, Field

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.base.files import DIGEST, digest_of, sha256_of
from stsbench.records.record import RECORD, RunRecord
from stsbench.records.store import load_run
from stsbench.sweeps.folder import JOB, read_json, write_json
from stsbench.sweeps.jobs import Job
from stsbench.sweeps.measures import LAST, of_record, of_training
from stsbench.training.log import LOG, read_log

LAST_FOLDER = "last"
"""Where in a job's folder the record of its training's last step is."""

_FILES = (RECORD, f"{LAST_FOLDER}/{RECORD}", LOG, "analyses/*.csv")
"""What numbers are read from."""

Seconds = Annotated[float, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Times(_Part):
    """The seconds that training and measuring took."""

    training: Seconds
    measuring: Seconds


class JobFile(_Part):
    """What `job.json` says.

    Attributes:
        job: the job's hash.
        files: the SHA-256 of each file that numbers are read from, by its name in the folder.
        analyses: the numbers of the analyses by measure, which no record has.
        checkpoint: the folder of the trained checkpoint in the experiment's; None if it was not kept.
        stsbench: the version that wrote it.
        times: how long it took.
        digest: over all of it.
    """

    job: str
    files: dict[str, str]
    analyses: dict[str, float | None]
    checkpoint: str | None
    stsbench: str
    times: Times
    digest: str = ""


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
    """Write `job.json` into a job's folder, as the last file.

    Args:
        job: that was done.
        folder: where its records are.
        analyses: the numbers of the analyses by measure.
        checkpoint: the folder of the trained checkpoint in the experiment's, if it is kept.
        training: seconds that the training took.
        measuring: seconds that the rest took.

    Raises:
        UserError: if it cannot be written.
    """
    read_from = sorted({path for pattern in _FILES for path in folder.glob(pattern)})
    about = JobFile(
        job=job.id,
        files={path.relative_to(folder).as_posix(): sha256_of(path) for path in read_from},
        analyses=dict(analyses),
        checkpoint=checkpoint,
        stsbench=__version__,
        times=Times(training=round(training, 3), measuring=round(measuring, 3)),
    )
    content = about.model_dump(mode="json")
    write_json(folder / JOB, content | {DIGEST: digest_of(content)})


def read_finished(job: Job, folder: Path) -> Finished:
    """Return what a job came to.

    Raises:
        UserError: if a file is damaged or was changed, or is not of this job; naming it.
    """
    about = read_json(folder / JOB, JobFile)
    if about.digest != digest_of(about.model_dump(mode="json")):
        _refuse(folder, f"{JOB} was edited after it was written")
    if about.job != job.id:
        _refuse(folder, f"it is the folder of another job, {about.job}, and not of {job.label}")
    for name, digest in about.files.items():
        if not (folder / name).is_file():
            _refuse(folder, f"{name} is missing")
        if sha256_of(folder / name) != digest:
            _refuse(folder, f"{name} is not the one that the job wrote")
    measures: dict[str, float | None] = {}
    record = load_run(folder) if RECORD in about.files else None
    if record is not None:
        _require_weights(job, record, folder)
        measures |= of_record(record)
    measures |= about.analyses
    if LOG in about.files:
        measures |= of_training(read_log(folder / LOG))
    if f"{LAST_FOLDER}/{RECORD}" in about.files:
        measures |= of_record(load_run(folder / LAST_FOLDER), LAST)
    return Finished(record, measures, about.checkpoint, about.times.training + about.times.measuring)


def _require_weights(job: Job, record: RunRecord, folder: Path) -> None:
    """Refuse a record of other weights than those of the checkpoint that was to be measured as it is."""
    if job.checkpoint is None:
        return
    meant, measured = job.inputs["checkpoint"]["weights_sha256"], record.model.weights_sha256
    if meant != measured:
        _refuse(folder, f"{RECORD} is of other weights than {job.checkpoint.name} had")


def _refuse(folder: Path, why: str) -> NoReturn:
    raise UserError(f"{folder}: {why}; delete the folder, and the same `stsbench sweep` makes it again.")
