"""The folder of an experiment, which is its only state.

A job's folder is complete or absent. Beside it are unfinished trainings, logs and the reasons of failures.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path, writing
from stsbench.sweeps.experiment import EXPERIMENT, Experiment, read_experiment
from stsbench.sweeps.jobs import Job

JOB = "job.json"
"""The file of a finished job with its hash and results."""

JOB_LIST = "jobs.json"

_FOLDERS = ("jobs", "logs", "running", "work", "failed")


class JobList(BaseModel):
    """The content of `jobs.json`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    keep: Literal["record", "checkpoint"]
    jobs: tuple[Job, ...]


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

    def running(self, unit: str) -> Path:
        """Returns the file with a running unit's progress."""
        return self.path / "running" / f"{unit}.txt"

    def experiment(self) -> Experiment | None:
        """Returns the experiment in the folder; None if there is none."""
        file = self.path / EXPERIMENT
        return read_experiment(file) if file.is_file() else None

    def require(self) -> Experiment:
        """Returns the experiment in the folder.

        Raises:
            UserError: if there is none.
        """
        if (experiment := self.experiment()) is None:
            raise UserError(
                f"{self.path} holds no experiment: `stsbench sweep FILE --out {self.path}` starts one."
            )
        return experiment

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
        elif self.path.is_dir():
            for entry in self.path.iterdir():
                # An interrupted start leaves empty folders, hidden files and the list of jobs.
                is_started = (
                    entry.name in _FOLDERS
                    if entry.is_dir()
                    else entry.name.startswith(".") or entry.name == JOB_LIST
                )
                if not is_started:
                    raise UserError(f"{self.path} holds other files: choose another folder with --out.")
        with writing(self.path):
            for name in _FOLDERS:
                (self.path / name).mkdir(parents=True, exist_ok=True)
        # The list is written first, so that a folder with an experiment always has one.
        content = {"keep": experiment.keep, "jobs": [asdict(job) for job in jobs]}
        with atomic_path(list_file) as path:
            path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        with atomic_path(self.path / EXPERIMENT) as path:
            text = yaml.safe_dump(experiment.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
            path.write_text(text, encoding="utf-8")

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

    def planned(self) -> JobList:
        """Returns the jobs of the experiment as they were last planned."""
        path = self.path / JOB_LIST
        try:
            return JobList.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
            raise UserError(
                f"{path} cannot be read ({why}): delete it, and run the same `stsbench sweep` again."
            ) from error

    def done(self) -> dict[str, Path]:
        """Returns the folders of finished jobs by the job's hash, also of cells that were since removed."""
        if not self.jobs.is_dir():
            return {}
        finished = (path for path in sorted(self.jobs.iterdir()) if (path / JOB).is_file())
        return {path.name.rpartition("-")[2]: path for path in finished if not path.name.startswith(".")}


def clean(folder: ExperimentFolder, keep: str, jobs: Sequence[Job]) -> None:
    """Deletes what killed writers left, and trained checkpoints that are measured and not kept."""
    done = folder.done()
    unmeasured = {job.unit for job in jobs if job.id not in done}
    with writing(folder.path):
        for leftover in folder.jobs.glob(".*-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        for path in (folder.path / "checkpoints").glob("*") if keep == "record" else ():
            if path.name not in unmeasured:
                shutil.rmtree(path, ignore_errors=True)


def log_end(folder: ExperimentFolder, unit: str) -> list[str]:
    """Returns the last lines of a unit's log."""
    with suppress(OSError):
        return folder.log(unit).read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
    return []
