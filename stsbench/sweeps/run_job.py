"""One unit of an experiment, in a process of its own: train or take a checkpoint, measure it, write its jobs.

`python -m stsbench.sweeps.run_job FOLDER UNIT` is what every executor starts, with the threads in its
environment. Killed at any moment and started again, it comes to the same.
"""

import os
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from stsbench.base.errors import UserError, by_interrupt
from stsbench.base.files import atomic_path, cache_at, writing
from stsbench.base.machine import is_of_memory
from stsbench.base.progress import Progress
from stsbench.sweeps.folder import ExperimentFolder, Running, write_json
from stsbench.sweeps.jobs import Job, inputs_now, outdated
from stsbench.sweeps.measuring import Measuring, log_line, read_tasks
from stsbench.training.folder import RunFolder

if TYPE_CHECKING:
    from stsbench.encoders.protocol import Encoder

PREPARE = "prepare"
"""In place of a unit: make what all jobs share."""

PARENT = "STSBENCH_PARENT"
"""Set in the environment of a process whose standard input its parent holds open: it ends when that closes."""

LESS_MEMORY = "run fewer at once with --workers, or ask for less with optimiser.batch or optimiser.chunk"
"""What to do about a job that had too little memory."""

_SECONDS_BETWEEN = 1.0
"""Between two reports of progress."""


def main(arguments: Sequence[str]) -> int:
    """Do one unit; return the exit code: 0 if all of its jobs are done, 2 for a mistake, 1 for anything else."""
    folder, unit = ExperimentFolder(Path(arguments[0])), arguments[1]
    if os.environ.pop(PARENT, ""):
        threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        if unit == PREPARE:
            prepare(folder)
        else:
            run_unit(folder, unit)
    except Exception as error:
        if by_interrupt(error):
            raise  # nothing failed: the job is made when the sweep goes on
        if isinstance(error, UserError):
            return _failed(folder, unit, str(error), 2)
        traceback.print_exc()
        if is_of_memory(error):
            return _failed(folder, unit, f"there was not enough memory: {LESS_MEMORY}", 1)
        return _failed(folder, unit, f"{type(error).__name__}: {error}", 1)
    finally:
        folder.running(unit).unlink(missing_ok=True)
    return 0


def _failed(folder: ExperimentFolder, unit: str, reason: str, code: int) -> int:
    log_line(f"stsbench: {reason}")
    # Where not even this can be written, whoever started the process tells of it.
    with suppress(UserError):
        folder.fail(unit, reason)
    return code


def _end_with_parent() -> None:
    """End at once when the parent does, even where it was killed: nobody would wait for us."""
    while os.read(0, 1024):
        pass
    os._exit(1)


def prepare(folder: ExperimentFolder) -> None:
    """Make what all jobs share, and make sure of what they need: data, the tokenised corpus."""
    from stsbench.training.recipe import Recipe
    from stsbench.training.train import prepare_training

    jobs = folder.job_list().jobs
    for job in {str(job.measure): job for job in jobs}.values():
        read_tasks(job)
    recipes: dict[str, Any] = {}
    for job in jobs:
        if job.recipe is not None:
            recipes.setdefault(
                str([job.recipe[key] for key in ("base", "pooling", "corpus", "views")]), job.recipe
            )
    with cache_at(folder.cache):
        for recipe in recipes.values():
            prepare_training(Recipe.model_validate(recipe))


def run_unit(folder: ExperimentFolder, unit: str) -> None:
    """Do the jobs of a unit that are not done: train or take its checkpoint, and measure that."""
    import torch
    from filelock import FileLock

    # Of two processes that were given the same, the second one finds it done.
    with FileLock(folder.work(f".{unit}.lock")):
        asked, done = folder.job_list(), folder.done()
        jobs = [job for job in asked.jobs if job.unit == unit and job.id not in done]
        if not jobs:
            return
        # Jobs are told apart by what they read, as it was when they were planned.
        for what in outdated([replace(jobs[0], inputs=inputs_now(jobs[0]))], [jobs[0]]):
            raise UserError(f"{what} changed since the sweep was started: start it again.")
        torch.set_num_threads(jobs[0].threads)
        beacon = _Beacon(folder.running(unit), jobs)
        checkpoint = None
        if jobs[0].recipe is not None:
            with cache_at(folder.cache):
                checkpoint = _trained(folder, jobs[0], beacon)
        vectors = folder.work(f".{unit}.vectors")
        # Vectors that a killed process left would be put into other batches, and their last bits differ.
        shutil.rmtree(vectors, ignore_errors=True)
        try:
            _take_shared(folder, jobs[0], asked.jobs, cache=vectors, progress=beacon)
            with cache_at(vectors):
                measuring = Measuring(folder, checkpoint, asked.keep == "checkpoint", beacon)
                for job in jobs:
                    measuring.measure(job)
        finally:
            shutil.rmtree(vectors, ignore_errors=True)
        if checkpoint is not None and asked.keep == "record":
            shutil.rmtree(checkpoint, ignore_errors=True)


def _take_shared(
    folder: ExperimentFolder,
    job: Job,
    jobs: Sequence[Job],
    *,
    cache: Path,
    progress: Progress,
) -> None:
    """Put what a checkpoint gives for the tasks into a unit's cache: encoded once, for all units and poolings.

    It is a copy, as what an analysis encodes beside them is for this unit alone: what the others find does not
    depend on who came first. What was trained here no other unit has, and nothing is put there.
    """
    from stsbench.encoders.load import load_with
    from stsbench.encoders.plan import shared_vectors
    from stsbench.scoring.kinds import in_order
    from stsbench.scoring.measure import readings

    checkpoint = job.checkpoint
    if checkpoint is None or job.measure["tasks"] is None:
        return
    encoder = load_with(checkpoint.name, checkpoint.use)
    if encoder.identity.weights_sha256 is None or encoder.identity.kind == "vectors":
        return
    sentences: dict[int, tuple[Encoder, list[str]]] = {}
    for task in in_order(read_tasks(job)):
        for reader, texts in readings(encoder, task, task.sentences()):
            sentences.setdefault(id(reader), (reader, []))[1].extend(texts)
    planned = [job.checkpoint for job in jobs if job.checkpoint is not None]
    uses = dict.fromkeys(other.use for other in planned if other.name == checkpoint.name)
    identities = [load_with(checkpoint.name, use).identity for use in uses]
    own = encoder.identity.key() | {"pooling": ""}
    poolings = {identity.use.pooling for identity in identities if identity.key() | {"pooling": ""} == own}
    shared = folder.vectors(job.threads)
    for reader, texts in sentences.values():
        kept = shared_vectors(reader, texts, shared, poolings=sorted(poolings), progress=progress)
        with writing(cache):
            shutil.copytree(kept, cache / "embeddings", dirs_exist_ok=True)


class _Beacon:
    """Says in a file how far the unit is, at most once a second."""

    def __init__(self, path: Path, jobs: Sequence[Job]) -> None:
        self.path, self.label = path, jobs[0].label
        self._next = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Take note of how far a stage is, as `base.progress.Progress` says."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _SECONDS_BETWEEN
        # A full disk is told by what matters more.
        with suppress(UserError):
            write_json(self.path, asdict(Running(self.label, stage, done, total)))


def _trained(folder: ExperimentFolder, job: Job, progress: Progress) -> Path:
    """Return the folder of the finished training, which is taken up where it was left."""
    from stsbench.training.train import train

    finished, work, shared = folder.checkpoint(job.unit), folder.work(job.unit), folder.vectors(job.threads)
    if finished.is_dir():
        return finished
    run = RunFolder(work)
    if not run.start.is_file():
        shutil.rmtree(work, ignore_errors=True)
        file = work.with_name(f"{job.unit}.yaml")
        with atomic_path(file) as path:
            path.write_text(yaml.safe_dump(dict(job.recipe or {}), sort_keys=False), encoding="utf-8")
        train(file, out=work, progress=progress, notice=log_line, shared=shared)
    elif not run.is_finished:
        train(resume=work, progress=progress, notice=log_line, shared=shared)
    finished.parent.mkdir(parents=True, exist_ok=True)
    work.rename(finished)
    return finished


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
