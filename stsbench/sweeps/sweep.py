"""`sweep`: runs the unfinished jobs of an experiment and reads the finished ones."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir, suppress
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.base.extras import MODELS, require
from stsbench.base.files import atomic_path
from stsbench.base.progress import Progress, silent
from stsbench.base.words import suggestion
from stsbench.scoring.run import RUNS
from stsbench.scoring.settings import choose_protocol
from stsbench.scoring.tasks import read_data
from stsbench.sweeps.executors import Executor, LocalPool, RayCluster, SlurmArray, Work, run_all
from stsbench.sweeps.experiment import Experiment, read_experiment
from stsbench.sweeps.folder import ExperimentFolder, clean, log_end
from stsbench.sweeps.jobs import Job, jobs_of, units_of
from stsbench.sweeps.result import Sweep, read_sweep
from stsbench.sweeps.run_job import LESS_MEMORY
from stsbench.sweeps.states import job_states

_EXECUTORS = ("local", "ray", "slurm")


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
        status: returns the jobs and their states; runs and reads nothing.
        progress: reports how many jobs are done.
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
    executor = executor_of(on, asked, workers=workers, device=device)
    if status:
        planned = folder.planned().jobs if folder.experiment() else ()
        return Sweep(asked, folder.path, job_states(folder, jobs_of(asked, planned)))
    with chdir(asked.relative_to or "."):
        jobs = jobs_of(asked)
    require(MODELS, "to train and measure checkpoints")
    folders = tuple(Path(path).expanduser().absolute() for path in data_dirs)
    with folder.alone():
        folder.claim(asked, jobs)
        job_states(folder, jobs)  # damaged files are reported before any work
        clean(folder, asked.keep, jobs)
        done = folder.done()
        unfinished = {unit: of for unit, of in units_of(jobs).items() if any(job.id not in done for job in of)}
        units = _without_failed(folder, unfinished, retry=retry, notice=notice)
        if units:
            todo = sum(map(len, units.values()))
            notice(f"{len(jobs)} jobs: {sum(job.id in done for job in jobs)} are done, {todo} to do.")
            if (tasks := asked.measure.tasks) is not None:  # missing data is reported before any work
                list(read_data(tasks, protocol=choose_protocol(asked.measure.protocol), data_dirs=folders))
            work = [Work(folder.path, unit, asked.threads, folder.log(unit), folders) for unit in units]
            _run(folder, executor, work, units, len(jobs), progress=progress, notice=notice)
        result = Sweep(asked, folder.path, job_states(folder, jobs))
        result.save()
    return result


def executor_of(on: str, experiment: Experiment, *, workers: int | None, device: str) -> Executor:
    """Returns the executor with a name."""
    if on not in _EXECUTORS:
        raise UserError(f"--on {on}: {suggestion(on, _EXECUTORS)}")
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


def _without_failed(
    folder: ExperimentFolder, units: Mapping[str, list[Job]], *, retry: bool, notice: Callable[[str], None]
) -> dict[str, list[Job]]:
    """Returns the units that did not fail before; with `retry` all of them, their failures forgotten."""
    failed = [unit for unit in units if folder.failure(unit).is_file()]
    if retry:
        for unit in failed:
            folder.failure(unit).unlink()
        return dict(units)
    if count := sum(len(units[unit]) for unit in failed):
        notice(f"{count} job{'s' if count > 1 else ''} failed before and will not run: --retry runs failed jobs.")
    return {unit: jobs for unit, jobs in units.items() if unit not in failed}


def _run(
    folder: ExperimentFolder,
    executor: Executor,
    work: Sequence[Work],
    units: Mapping[str, list[Job]],
    total: int,
    *,
    progress: Progress,
    notice: Callable[[str], None],
) -> None:
    count = total - sum(map(len, units.values()))

    def ended(unit: str, code: int) -> None:
        nonlocal count
        count += len(units[unit])
        if code != 0:
            reason = _reason(folder, unit, code)
            with atomic_path(folder.failure(unit)) as path:
                path.write_text(f"{reason}\n", encoding="utf-8")
            notice(f"failed: {units[unit][0].label}: {reason}")

    run_all(executor, work, ended, lambda: report_running(folder, progress, count, total))


def report_running(folder: ExperimentFolder, progress: Progress, count: int, total: int) -> None:
    """Reports how many jobs ended, and the stages of those that run."""
    progress("jobs", count, total)
    stages = []
    for path in sorted((folder.path / "running").glob("*.txt")):
        with suppress(OSError):  # it has just ended
            stages.append(path.read_text(encoding="utf-8"))
    if hasattr(progress, "describe"):  # the bars of the command line
        progress.describe("jobs", "; ".join(stages))


def _reason(folder: ExperimentFolder, unit: str, code: int) -> str:
    """Returns why a process failed: its own reason, or one for its exit code."""
    if (failure := folder.failure(unit)).is_file():
        return failure.read_text(encoding="utf-8").strip()
    if code == -9:
        return f"killed by the system (signal 9), most likely for memory: {LESS_MEMORY}"
    if code < 0:
        return f"ended by signal {-code}"
    end = log_end(folder, unit)
    why = end[-1] if end else f"there is no log: all machines must see {folder.path}"
    return f"ended with exit code {code}: {why}"
