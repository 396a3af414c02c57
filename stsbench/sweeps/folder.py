"""The folder of an experiment: what lies where. It is the only state, and says what is done.

A job's folder is whole or absent. Beside it stand what a job that goes on needs, what failed and why, and what is
shared by all jobs.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path, is_leftover, writing
from stsbench.base.parsing import parse_json
from stsbench.encoders.template import Template
from stsbench.sweeps.experiment import EXPERIMENT, Experiment, read_experiment
from stsbench.sweeps.jobs import Job

JOB = "job.json"
"""The name of the file of a finished job that says what was done, and what came out."""

_JOB_LIST = "jobs.json"

_FOLDERS = ("jobs", "logs", "running", "work")
"""What is made in an experiment's folder before anything is written there."""

_LOG_END = 15
"""How many lines of a failed job's log are shown."""


@dataclass(frozen=True)
class Failure:
    """Why a unit failed.

    Attributes:
        reason: in a sentence.
        end: the last lines of its log.
    """

    reason: str
    end: tuple[str, ...] = ()


@dataclass(frozen=True)
class Running:
    """How far a unit is that is running; a total of 0 is one that nobody knows."""

    label: str
    stage: str
    done: int
    total: int


class JobList(BaseModel):
    """What `jobs.json` says: what there is to do, and what is kept of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    keep: Literal["record", "checkpoint"]
    jobs: tuple[Job, ...]


JobList.model_rebuild(_types_namespace={"Template": Template})

_Schema = TypeVar("_Schema")


@dataclass(frozen=True)
class ExperimentFolder:
    """The folder of an experiment."""

    path: Path

    @property
    def experiment(self) -> Path:
        """The experiment in full, as it was asked for last."""
        return self.path / EXPERIMENT

    @property
    def jobs_file(self) -> Path:
        """The jobs of the experiment, for those who do them."""
        return self.path / _JOB_LIST

    @property
    def jobs(self) -> Path:
        """A folder for each job that is done."""
        return self.path / "jobs"

    @property
    def cache(self) -> Path:
        """What all jobs share: the tokenised corpus."""
        return self.path / "cache"

    def vectors(self, threads: int) -> Path:
        """Return where jobs share vectors of checkpoints not trained here, which depend on the threads."""
        return self.cache / "vectors" / f"threads-{threads}"

    def work(self, unit: str) -> Path:
        """Return where a unit trains; a killed training goes on from there."""
        return self.path / "work" / unit

    def checkpoint(self, unit: str) -> Path:
        """Return the folder of a finished training."""
        return self.path / "checkpoints" / unit

    def log(self, unit: str) -> Path:
        """Return what a unit printed when it was tried last."""
        return self.path / "logs" / f"{unit}.txt"

    def failure(self, unit: str) -> Path:
        """Return the file that says why a unit failed."""
        return self.path / "failed" / f"{unit}.json"

    def running(self, unit: str) -> Path:
        """Return the file that says how far a unit is."""
        return self.path / "running" / f"{unit}.json"

    @property
    def exists(self) -> bool:
        """Whether there is an experiment."""
        return self.experiment.is_file()

    def require(self) -> Experiment:
        """Return the experiment that the folder holds."""
        if not self.exists:
            raise UserError(
                f"{self.path} holds no experiment: `stsbench sweep FILE --out {self.path}` starts one."
            )
        return read_experiment(self.experiment)

    def claim(self, experiment: Experiment, jobs: Sequence[Job]) -> None:
        """Make this the folder of an experiment: say what it is, and what there is to do."""
        if self.exists:
            held = self.require()
            if held.name != experiment.name:
                raise UserError(
                    f"{self.path} holds another experiment, {held.name}: choose another folder with --out for "
                    f"{experiment.name}."
                )
        elif self.path.is_dir() and any(map(self._is_foreign, self.path.iterdir())):
            raise UserError(
                f"{self.path} holds something that is no experiment: choose another folder with --out."
            )
        with writing(self.path):
            for name in _FOLDERS:
                (self.path / name).mkdir(parents=True, exist_ok=True)
        # The list first: a folder with an experiment has one.
        write_json(self.jobs_file, {"keep": experiment.keep, "jobs": [asdict(job) for job in jobs]})
        with atomic_path(self.experiment) as path:
            text = yaml.safe_dump(experiment.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
            path.write_text(text, encoding="utf-8")

    def _is_foreign(self, entry: Path) -> bool:
        """Return whether an entry of the folder is none that `claim` leaves where it cannot write all of it."""
        if entry.is_dir():
            return entry.name not in _FOLDERS or any(entry.iterdir())
        return entry.name != ".lock" and entry != self.jobs_file and not is_leftover(entry, self.jobs_file)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep a second sweep out of the folder."""
        from filelock import FileLock, Timeout

        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.path / ".lock", timeout=0):
                yield
        except Timeout as error:
            raise UserError(
                f"another process is sweeping in {self.path}: wait for it, or stop it first; `--status` tells how "
                "far it is."
            ) from error

    def job_list(self) -> JobList:
        """Return what there is to do."""
        return read_json(self.jobs_file, JobList)

    def done(self) -> dict[str, Path]:
        """Return the folders of the jobs that are done, of axes that were since changed too, by the job's hash."""
        with suppress(FileNotFoundError):
            return {
                path.name.rpartition("-")[2]: path
                for path in sorted(self.jobs.iterdir())
                if not path.name.startswith(".") and (path / JOB).is_file()
            }
        return {}

    def fail(self, unit: str, reason: str) -> Failure:
        """Write down why a unit failed, with its log's end."""
        failure = Failure(reason, tuple(self.log_end(unit)))
        write_json(self.failure(unit), asdict(failure))
        return failure

    def failed(self, unit: str) -> Failure | None:
        """Return why a unit failed; None if it did not."""
        if not self.failure(unit).is_file():
            return None
        return read_json(self.failure(unit), Failure)

    def log_end(self, unit: str) -> list[str]:
        """Return the last lines of a unit's log."""
        with suppress(OSError), self.log(unit).open("rb") as stream:
            stream.seek(max(0, self.log(unit).stat().st_size - 10_000))
            return stream.read().decode("utf-8", errors="replace").splitlines()[-_LOG_END:]
        return []

    def forget(self, unit: str) -> None:
        """Forget that a unit failed, so that it is tried again."""
        self.failure(unit).unlink(missing_ok=True)

    def sweep_up(self, keep: str, jobs: Sequence[Job]) -> None:
        """Delete what killed writers left, and checkpoints that were measured and are not kept."""
        with writing(self.path):
            for leftover in self.jobs.glob(".*-*"):
                shutil.rmtree(leftover, ignore_errors=True)
            if keep == "checkpoint":
                return
            done = self.done()
            waited_for = {job.unit for job in jobs if job.id not in done}
            for path in (self.path / "checkpoints").glob("*"):
                if path.name not in waited_for and path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)


def write_json(path: Path, content: Any) -> None:
    """Write plain data, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: Path, schema: type[_Schema]) -> _Schema:
    """Return what `write_json` wrote; refuse a file that is missing, damaged or of another kind."""
    try:
        return TypeAdapter(schema).validate_python(parse_json(path.read_bytes()))
    except ValidationError as error:
        first = error.errors()[0]
        why = ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))
    except (OSError, ValueError) as error:
        why = str(error)
    raise UserError(f"{path} cannot be read ({why}): delete it, and the same `stsbench sweep` makes it again.")
