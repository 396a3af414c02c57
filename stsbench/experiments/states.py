"""How far each job of an experiment is, as its folder says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from typing import Any

from stsbench.experiments.folder import JOB, ExperimentFolder, Failure, read_json
from stsbench.experiments.jobs import Job

DONE, FAILED, RUNNING, WAITING = "done", "failed", "running", "waiting"
"""The states of a job."""


@dataclass(frozen=True)
class JobState:
    """A job, and how far it is.

    Attributes:
        job: what there is to do.
        state: `done`, `failed`, `running` or `waiting`.
        folder: of a job that is done.
        about: what `job.json` says of it.
        failure: of a job that failed.
    """

    job: Job
    state: str
    folder: Path | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    failure: Failure | None = None

    @property
    def measures(self) -> Mapping[str, float | None]:
        """Its numbers by name."""
        measured: Mapping[str, float | None] = self.about.get("measures", {})
        return measured

    @property
    def seconds(self) -> float:
        """How long training and measuring took; NaN for a job that is not done."""
        return float(sum(self.about["times"].values())) if self.about else nan


def job_states(folder: ExperimentFolder, jobs: Sequence[Job]) -> tuple[JobState, ...]:
    """Return how far each job is, in their order.

    Raises:
        UserError: if a file that says so is damaged.
    """
    done = folder.done()
    states = []
    for job in jobs:
        path = done.get(job.id)
        if path is not None:
            states.append(JobState(job, DONE, path, read_json(path / JOB)))
        elif (failure := folder.failed(job.unit)) is not None:
            states.append(JobState(job, FAILED, failure=failure))
        else:
            states.append(JobState(job, RUNNING if folder.running(job.unit).is_file() else WAITING))
    return tuple(states)
