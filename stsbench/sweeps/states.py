"""How far each job of an experiment is, as its folder says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path

from stsbench.sweeps.finished import Finished, read_finished
from stsbench.sweeps.folder import ExperimentFolder, Failure
from stsbench.sweeps.jobs import Job

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
    """Return how far each job is, in their order.

    Raises:
        UserError: if a file that says so is damaged, or is not of its job.
    """
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
