"""`sweep`: do what is left of an experiment, and read what is done."""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.base.extras import MODELS, require
from stsbench.base.progress import Progress, silent
from stsbench.base.words import suggestion
from stsbench.scoring.run import RUNS
from stsbench.sweeps.executors import Executor, LocalPool, Work
from stsbench.sweeps.experiment import Experiment, read_experiment
from stsbench.sweeps.folder import ExperimentFolder, Running, read_json
from stsbench.sweeps.jobs import Job, jobs_of, outdated, recalled, units_of
from stsbench.sweeps.result import Sweep
from stsbench.sweeps.run_job import LESS_MEMORY, PREPARE
from stsbench.sweeps.states import job_states

EXECUTORS = ("local", "ray", "slurm")
"""Where jobs can run."""

_KILLED = f"killed by the system (signal 9), most likely for memory: {LESS_MEMORY}"


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
    """Train and measure along the axes of an experiment: what is done is never done again.

    The folder is the only state. A job writes its own folder in it, whole or absent; a sweep that was stopped or
    killed goes on when it is started again, and a changed experiment adds jobs and touches no others. A job that
    fails does not stop the rest.

    Args:
        experiment: an experiment's YAML file, or the folder of one that was begun. In Python also an experiment.
        out: the folder of the experiment; by default `runs/NAME`, or the folder that was named.
        on: where jobs run: `local`, `ray` or `slurm`.
        workers: how many jobs run at once; by default one for each GPU, or one for each group of cores that the
            threads of a job fill.
        device: where local jobs compute: `auto`, `cpu`, `cuda` or `mps`.
        data_dirs: folders to look for data in, before `STSBENCH_DATA` and the cache.
        retry: whether to run failed jobs again.
        status: return the jobs and their states without running any.
        progress: told how many jobs are done.
        notice: told what the person should know.

    Returns:
        The jobs, their numbers and the cells.

    Raises:
        UserError: for a person's mistake, in one sentence; nothing that was done is lost.

    >>> import tempfile
    >>> plan = Experiment(name="a", axes={"checkpoint": ["minilm", "another"]}, measure={"tasks": "sample"})
    >>> with tempfile.TemporaryDirectory() as made:
    ...     print(sweep(plan, made, status=True).frame["state"].tolist())
    ['waiting', 'waiting']
    """
    asked, folder = _asked(experiment, out)
    held: tuple[Job, ...] = ()
    with suppress(UserError):  # where there is no list that can be read
        held = folder.job_list().jobs
    jobs = recalled(jobs_of(asked, fetch=not status), held)
    executor = executor_of(on, asked, workers=workers, device=device)
    folders = tuple(Path(path).expanduser().absolute() for path in data_dirs)
    if status:
        return Sweep(asked, folder.path, job_states(folder, jobs))
    require(MODELS, "to train and measure checkpoints")
    with folder.alone():
        folder.claim(asked, jobs)
        # Damaged files, and those of another job, are reported before any work.
        job_states(folder, jobs)
        sweeping = _Sweeping(folder, asked, jobs, executor, folders, progress, notice)
        sweeping.tell_changes(held)
        sweeping.do(retry=retry)
        result = Sweep(asked, folder.path, job_states(folder, jobs))
        result.save()
    return result


def executor_of(on: str, experiment: Experiment, *, workers: int | None, device: str) -> Executor:
    """Return the executor of a name."""
    if on not in EXECUTORS:
        raise UserError(f"--on {on}: {suggestion(on, EXECUTORS)}")
    if workers is not None and workers < 1:
        raise UserError(f"--workers {workers}: give a number from 1 on.")
    if on == "local":
        return LocalPool(workers, device, experiment.threads)
    if device != "auto":
        raise UserError(f"--device {device} is for --on local; GPUs on {on} are asked for in the experiment.")
    if on == "ray":
        from stsbench.sweeps.executors import RayCluster

        return RayCluster(experiment.ray, experiment.threads, workers)
    from stsbench.sweeps.executors import SlurmArray

    return SlurmArray(experiment.slurm, experiment.threads, workers)


def _asked(experiment: Experiment | str | Path, out: str | Path | None) -> tuple[Experiment, ExperimentFolder]:
    """Return the experiment and its folder."""
    if isinstance(experiment, Experiment):
        asked, named = experiment, None
    else:
        path = Path(experiment).expanduser()
        if path.is_dir():
            asked, named = ExperimentFolder(path).require(), path
        else:
            asked, named = read_experiment(path), None
    place = Path(out).expanduser() if out is not None else named or RUNS / asked.name
    folder = ExperimentFolder(place.absolute())
    start = asked.relative_to or (folder.require().relative_to if folder.exists else None) or "."
    # A sweep that is resumed from another folder still means the same files by relative names.
    start = str(Path(start).expanduser().absolute())
    return asked.model_copy(update={"relative_to": start}), folder


@dataclass(frozen=True)
class _Sweeping:
    """An experiment whose remaining jobs are being done."""

    folder: ExperimentFolder
    experiment: Experiment
    jobs: Sequence[Job]
    executor: Executor
    data_dirs: tuple[Path, ...]
    progress: Progress
    notice: Callable[[str], None]

    def tell_changes(self, held: Sequence[Job]) -> None:
        """Tell which jobs are done again, as what stands behind their names has changed."""
        done = self.folder.done()
        for what, old in outdated(self.jobs, held).items():
            count = sum(job.id in done for job in old)
            if count:
                jobs = f"{count} job{'s were' if count > 1 else ' was'}"
                self.notice(f"{what} changed since {jobs} done: made anew.")

    def do(self, *, retry: bool) -> None:
        """Do the jobs that are left."""
        folder, jobs = self.folder, self.jobs
        folder.sweep_up(self.experiment.keep, jobs)
        done = [job.id for job in jobs if job.id in folder.done()]
        left = self._left(done, retry=retry)
        if not left:
            return
        self.notice(f"{len(jobs)} jobs: {len(done)} are done, {sum(map(len, left.values()))} to do.")
        self.executor.check(folder)
        self._prepare()
        for unit in left:
            folder.forget(unit)
        count = len(done)

        def tell() -> None:
            tell_running(folder, self.progress, count, len(jobs))

        def ended(unit: str, code: int) -> None:
            nonlocal count
            count += len(left[unit])
            if code != 0:
                failure = folder.failed(unit) or folder.fail(unit, _reason(folder, unit, code))
                self.notice(f"failed: {left[unit][0].label}: {failure.reason}")
            tell()

        tell()
        self.executor.run(list(map(self._work, left)), ended, tell)

    def _left(self, done: Collection[str], *, retry: bool) -> dict[str, tuple[Job, ...]]:
        """Return the units that are left, with their jobs; those that failed only where they are retried."""
        left = {unit[0].unit: unit for unit in units_of(self.jobs) if any(job.id not in done for job in unit)}
        failed = {unit: of_unit for unit, of_unit in left.items() if self.folder.failed(unit) is not None}
        if not failed or retry:
            return left
        count = sum(map(len, failed.values()))
        if count == 1:
            self.notice("1 job failed before and is left as it is: --retry tries it again.")
        else:
            self.notice(f"{count} jobs failed before and are left: --retry tries them again.")
        return {unit: of_unit for unit, of_unit in left.items() if unit not in failed}

    def _prepare(self) -> None:
        """Make what all jobs share, once, in a process of its own: this one loads nothing that is heavy."""
        self.progress("preparing", 0, 1)
        self.folder.forget(PREPARE)
        code = self._work(PREPARE).run()
        if code != 0:
            failure = self.folder.failed(PREPARE)
            self.folder.forget(PREPARE)
            raise UserError(failure.reason if failure is not None else _reason(self.folder, PREPARE, code))
        self.progress("preparing", 1, 1)

    def _work(self, unit: str) -> Work:
        return Work(self.folder.path, unit, self.experiment.threads, self.folder.log(unit), self.data_dirs)


def tell_running(folder: ExperimentFolder, progress: Progress, count: int, total: int) -> None:
    """Tell how many jobs ended, and what is running."""
    progress("jobs", count, total)
    phrases = []
    for path in sorted((folder.path / "running").glob("*.json")):
        with suppress(UserError):  # it has just ended
            about = read_json(path, Running)
            share = f" {about.done} of {about.total}" if about.total else ""
            phrases.append(f"{about.label}: {about.stage}{share}")
    if hasattr(progress, "describe"):  # the bars of the command line
        progress.describe("jobs", "; ".join(phrases))


def _reason(folder: ExperimentFolder, unit: str, code: int) -> str:
    """Return why a process ended that did not say so itself."""
    if code == -9:
        return _KILLED
    if code < 0:
        return f"ended by signal {-code}"
    end = folder.log_end(unit)
    return f"ended with exit code {code}" + (f": {end[-1]}" if end else "")
