"""`sweep`: runs the unfinished jobs of an experiment, here, on Ray or on Slurm, and reads the finished ones."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from stsbench.base.errors import MODELS, UserError, require
from stsbench.base.machine import cores, ray_cluster
from stsbench.base.progress import Progress, silent
from stsbench.base.words import suggestion
from stsbench.encoders.backends import DEVICE_OF_JOBS, resolve_device
from stsbench.scoring.run import RUNS
from stsbench.scoring.settings import choose_protocol
from stsbench.scoring.tasks import read_data
from stsbench.sweeps.experiment import Experiment, read_experiment
from stsbench.sweeps.folder import ExperimentFolder, job_states
from stsbench.sweeps.jobs import jobs_of, units_of
from stsbench.sweeps.result import Sweep, read_sweep
from stsbench.sweeps.run_job import LESS_MEMORY, PARENT

_SECONDS_BETWEEN = 0.2
"""Seconds between two checks for processes that ended."""

_CODES = {"OUT_OF_MEMORY": -9, "CANCELLED": -15, "TIMEOUT": -14}
"""Exit codes for the states in which Slurm ends jobs."""


@dataclass(frozen=True)
class Work:
    """The process of a unit: its threads, log, data folders and further environment variables."""

    folder: Path
    unit: str
    threads: int
    log: Path
    data_dirs: tuple[Path, ...] = ()
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def arguments(self) -> list[str]:
        """The command line, with the Python of the machine that runs it."""
        return [sys.executable, "-m", "stsbench.sweeps.run_job", str(self.folder), self.unit]

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of the process."""
        # Processes that share the cores without a limit take three times as long.
        threads = {f"{library}_NUM_THREADS": str(self.threads) for library in ("OMP", "MKL", "OPENBLAS", "RAYON")}
        folders = filter(None, [*map(str, self.data_dirs), os.environ.get("STSBENCH_DATA")])
        named = {"STSBENCH_DATA": os.pathsep.join(folders)} if self.data_dirs else {}
        quiet = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_DISABLE_PROGRESS_BARS": "1", PARENT: "1"}
        return {**os.environ, **threads, **named, **quiet, **self.more}

    def start(self) -> "subprocess.Popen[bytes]":
        """Starts the process, in its own session and with a pipe whose closing ends it."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            return subprocess.Popen(
                self.arguments,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __call__(self) -> int:
        """Runs the process; returns its exit code, negative for a signal."""
        process = self.start()
        try:
            return process.wait()
        finally:
            end(process)

    def checkpoint(self) -> Any:
        """Queues the unit again when Slurm preempts its node, as submitit asks."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def end(process: "subprocess.Popen[bytes]") -> None:
    """Ends a process if it is still running."""
    process.terminate()
    try:
        process.wait(timeout=3)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin is not None:
        process.stdin.close()


class Running(NamedTuple):
    """A started unit: `code()` is None while it runs, then its exit code (negative for a signal)."""

    code: Callable[[], int | None]
    stop: Callable[[], None]


def run_all(
    executor: "Executor", work: Sequence[Work], ended: Callable[[str, int], None], idle: Callable[[int], None]
) -> None:
    """Runs all units, as many at once as there are places; an interrupt ends the running ones.

    Args:
        executor: where they run.
        work: the units.
        ended: called with a unit and its exit code.
        idle: called between two checks for ended units, with the number of remaining ones.
    """
    waiting, running = list(work), dict[str, Running]()
    try:
        while waiting or running:
            free = len(waiting) if executor.places is None else executor.places - len(running)
            batch, waiting = waiting[:free], waiting[free:]
            if batch:
                running |= zip((item.unit for item in batch), executor.start(batch), strict=True)
            for unit, started in list(running.items()):
                if (code := started.code()) is not None:
                    del running[unit]
                    ended(unit, code)
            idle(len(waiting) + len(running))
            time.sleep(_SECONDS_BETWEEN if running else 0)
    finally:
        for started in running.values():
            started.stop()


class LocalPool:
    """Processes on this machine: by default one for each GPU, or for each group of `threads` cores."""

    def __init__(self, workers: int | None = None, device: str = "auto", threads: int = 1) -> None:
        devices = gpus() if device in {"auto", "cuda"} else []
        if device == "cuda" and not devices:
            raise UserError("--device cuda: no GPU was found on this machine; use --device cpu.")
        if device not in {"auto", "cuda"}:
            resolve_device(device)
        chosen = {} if device == "auto" else {DEVICE_OF_JOBS: device}
        if device == "cpu":
            chosen["CUDA_VISIBLE_DEVICES"] = ""
        self.places = workers or len(devices) or max(1, cores() // threads)
        visible = [{"CUDA_VISIBLE_DEVICES": name} for name in devices] or [{}]
        self.free = [chosen | visible[place % len(visible)] for place in reversed(range(self.places))]
        """The environment variables of each free place."""

    def start(self, work: Sequence[Work]) -> list[Running]:
        """Starts a process for each unit."""
        return [self._start(item, self.free.pop()) for item in work]

    def _start(self, item: Work, place: dict[str, str]) -> Running:
        process = replace(item, more=place).start()

        def code() -> int | None:
            code = process.poll()
            if code is not None:
                end(process)
                self.free.append(place)
            return code

        return Running(code, partial(end, process))


def gpus() -> list[str]:
    """Returns the visible GPUs as `CUDA_VISIBLE_DEVICES` names them."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [name for name in named.split(",") if name.strip() and name != "-1"]
    import torch

    return list(map(str, range(torch.cuda.device_count())))


@dataclass(frozen=True)
class RayCluster:
    """Tasks of the Ray cluster in `RAY_ADDRESS`, or of a new one on this machine."""

    options: Mapping[str, Any]
    threads: int = 1
    places: int | None = None

    def start(self, work: Sequence[Work]) -> list[Running]:
        """Submits a task for each unit."""
        ray = ray_cluster()
        try:
            task = ray.remote(**{"num_cpus": self.threads, **self.options})(Work.__call__)
        except (TypeError, ValueError) as error:
            raise UserError(f"ray: {str(error).rstrip('.')}.") from error
        tasks = [task.options(name=item.unit).remote(item) for item in work]
        return [Running(partial(_ray_code, task), partial(ray.cancel, task, force=True)) for task in tasks]


def _ray_code(task: Any) -> int | None:
    import ray

    if not ray.wait([task], timeout=0)[0]:
        return None
    try:
        return int(ray.get(task))
    except ray.exceptions.RayError:  # its worker was lost too often
        return -9


@dataclass(frozen=True)
class SlurmArray:
    """An array job of Slurm; `cluster` can be submitit's `local`, for processes on this machine."""

    parameters: Mapping[str, Any]
    threads: int = 1
    workers: int | None = None
    cluster: str = "slurm"
    places: None = None

    def start(self, work: Sequence[Work]) -> list[Running]:
        """Submits all units as an array job."""
        require("slurm", "--on slurm")
        import submitit

        try:
            executor = submitit.AutoExecutor(folder=work[0].folder / "slurm" / "%j", cluster=self.cluster)
        except RuntimeError as error:
            raise UserError(f"Slurm was not found ({error}): run this where `sbatch` is.") from error
        limits = {"timeout_min": 24 * 60, "cpus_per_task": self.threads, "slurm_array_parallelism": 64}
        at_once = {"slurm_array_parallelism": self.workers} if self.workers else {}
        try:
            executor.update_parameters(**{**limits, **self.parameters, **at_once})
        except (NameError, AssertionError, TypeError, ValueError) as error:
            raise UserError(f"slurm: {str(error).rstrip('.')}.") from error
        with executor.batch():
            jobs = [executor.submit(item) for item in work]
        return [Running(partial(_slurm_code, job), job.cancel) for job in jobs]


def _slurm_code(job: Any) -> int | None:
    if not job.done():
        return None
    try:
        return int(job.result())
    except Exception:  # cancelled, or out of time or memory
        return _CODES.get(job.state.partition(" ")[0], 1)


Executor = LocalPool | RayCluster | SlurmArray


def sweep(
    experiment: Experiment | str | Path,
    out: str | Path | None = None,
    *,
    on: str = "local",
    workers: int | None = None,
    device: str = "auto",
    data_dirs: Sequence[str | Path] = (),
    retry: bool = False,
    status: bool = False,
    progress: Progress = silent,
    notice: Callable[[str], None] = lambda _: None,
) -> Sweep:
    """Trains and measures along the axes of an experiment; finished jobs are never repeated.

    The folder is the only state. A stopped or killed sweep resumes when it is started again; a changed experiment
    adds jobs and leaves the others. A failed job does not stop the rest.

    Args:
        experiment: an experiment's YAML file, the folder of one that was started, or an `Experiment`.
        out: the folder of the experiment; by default `runs/NAME`, or the folder that was given.
        on: where jobs run: `local`, `ray` or `slurm`.
        workers: how many jobs run at once; by default one for each GPU, or one for each group of cores that the
            threads of a job fill.
        device: where local jobs compute: `auto`, `cpu`, `cuda` or `mps`.
        data_dirs: folders to look for data in, before `STSBENCH_DATA` and the cache.
        retry: runs failed jobs again.
        status: returns the jobs and their states; runs nothing.
        progress: reports how many trainings and checkpoints are done.
        notice: called with messages for the user.

    Returns:
        The jobs, their numbers and the cells.

    Raises:
        UserError: for a mistake, in one sentence; finished jobs are kept.

    >>> import tempfile
    >>> plan = Experiment(name="a", axes={"checkpoint": ["minilm", "another"]}, measure={"tasks": "sample"})
    >>> with tempfile.TemporaryDirectory() as made:
    ...     print(sweep(plan, made, status=True).frame["state"].tolist())
    ['waiting', 'waiting']
    """
    if status and not isinstance(experiment, Experiment) and Path(experiment).expanduser().is_dir():
        return read_sweep(experiment)
    asked, folder = _experiment_and_folder(experiment, out)
    if status and folder.experiment() is None:
        return Sweep(asked, folder.path, job_states(folder, jobs_of(asked, is_read=False)))
    require(MODELS, "to train and measure checkpoints")
    executor = executor_of(on, asked, workers=workers, device=device)
    with chdir(asked.relative_to or "."):
        jobs = jobs_of(asked)
    if status:
        return Sweep(asked, folder.path, job_states(folder, jobs))
    folders = tuple(Path(path).expanduser().absolute() for path in data_dirs)
    with folder.alone():
        folder.claim(asked, jobs)
        job_states(folder, jobs)  # damaged files are reported before any work
        done = folder.done()
        unfinished = {unit: of for unit, of in units_of(jobs).items() if any(job.id not in done for job in of)}
        for unit in unfinished if retry else ():
            folder.failure(unit).unlink(missing_ok=True)
        units = {unit: of for unit, of in unfinished.items() if not folder.failure(unit).is_file()}
        if len(units) < len(unfinished):
            notice(f"{len(unfinished) - len(units)} failed before and will not run: --retry runs them again.")
        if units:
            todo = sum(map(len, units.values()))
            notice(f"{len(jobs)} jobs: {sum(job.id in done for job in jobs)} are done, {todo} to do.")
            if (tasks := asked.measure.tasks) is not None:  # missing data is reported before any work
                list(read_data(tasks, protocol=choose_protocol(asked.measure.protocol), data_dirs=folders))
            work = [Work(folder.path, unit, asked.threads, folder.log(unit), folders) for unit in units]

            def ended(unit: str, code: int) -> None:
                if code != 0:
                    reason = _reason(folder, unit, code)
                    folder.write_failure(unit, reason)
                    notice(f"failed: {units[unit][0].label}: {reason}")

            run_all(executor, work, ended, lambda left: progress("jobs", len(units) - left, len(units)))
        result = Sweep(asked, folder.path, job_states(folder, jobs))
        result.save()
    return result


def executor_of(on: str, experiment: Experiment, *, workers: int | None, device: str) -> Executor:
    """Returns the executor with a name."""
    if on not in {"local", "ray", "slurm"}:
        raise UserError(f"--on {on}: {suggestion(on, ('local', 'ray', 'slurm'))}")
    if workers is not None and workers < 1:
        raise UserError(f"--workers {workers}: give a number from 1 on.")
    if on == "local":
        return LocalPool(workers, device, experiment.threads)
    if device != "auto":
        raise UserError(f"--device {device} is for --on local; set the GPUs for {on} in the experiment.")
    if on == "ray":
        return RayCluster(experiment.ray, experiment.threads, workers)
    return SlurmArray(experiment.slurm, experiment.threads, workers)


def _experiment_and_folder(
    experiment: Experiment | str | Path, out: str | Path | None
) -> tuple[Experiment, ExperimentFolder]:
    if isinstance(experiment, Experiment):
        asked, given = experiment, None
    elif (path := Path(experiment).expanduser()).is_dir():
        asked, given = ExperimentFolder(path).require(), path
    else:
        asked, given = read_experiment(path), None
    place = Path(out).expanduser() if out is not None else given or RUNS / asked.name
    folder = ExperimentFolder(place.absolute())
    # Relative names keep their meaning if the sweep is resumed from another current folder.
    held = folder.experiment()
    start = asked.relative_to or (held.relative_to if held else None) or "."
    return asked.model_copy(update={"relative_to": str(Path(start).expanduser().absolute())}), folder


def _reason(folder: ExperimentFolder, unit: str, code: int) -> str:
    """Returns why a process failed: its own reason, or one for its exit code."""
    if (failure := folder.failure(unit)).is_file():
        return failure.read_text(encoding="utf-8").strip()
    if code == -9:
        return f"killed by the system (signal 9), most likely for memory: {LESS_MEMORY}"
    if code < 0:
        return f"ended by signal {-code}"
    log = folder.log(unit)
    if not log.is_file():
        return f"ended with exit code {code}: there is no log: all machines must see {folder.path}"
    *_, last = ["", *log.read_text(encoding="utf-8", errors="replace").splitlines()]
    return f"ended with exit code {code}: {last}"
