"""One unit of an experiment in its own process: trains or loads a checkpoint, measures it, writes job folders.

Every executor runs `python -m stsbench.sweeps.run_job FOLDER UNIT` with the threads in its environment. A process
that is killed at any time and started again gives the same results.
"""

import os
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import chdir, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from stsbench.base.errors import UserError, by_interrupt
from stsbench.base.files import atomic_folder, atomic_path, cache_at
from stsbench.base.machine import is_of_memory
from stsbench.base.parsing import dump_yaml
from stsbench.encoders.load import load_with
from stsbench.records.record import RECORD
from stsbench.records.store import load_run, save_run
from stsbench.sweeps.folder import LAST_FOLDER, ExperimentFolder, of_analysis, write_finished
from stsbench.sweeps.jobs import Job, read_inputs
from stsbench.training.folder import RunFolder
from stsbench.training.log import read_log

PARENT = "STSBENCH_PARENT"
"""Set for a process that ends when its standard input closes, which its parent holds open."""

LESS_MEMORY = "run fewer at once with --workers, or ask for less with optimiser.batch or optimiser.chunk"


def main(arguments: Sequence[str]) -> int:
    """Does one unit; returns exit code 0 if all its jobs are done, 2 for a user's mistake, 1 for other errors."""
    folder, unit = ExperimentFolder(Path(arguments[0])), arguments[1]
    if os.environ.pop(PARENT, ""):
        threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        experiment = folder.require()
        with chdir(experiment.relative_to or "."):
            run_unit(folder, unit)
    except Exception as error:
        if by_interrupt(error):
            raise  # an interrupted job did not fail: the next sweep resumes it
        reason = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        if is_of_memory(error):
            reason = f"there was not enough memory: {LESS_MEMORY}"
        if not isinstance(error, UserError):
            traceback.print_exc()
        _log(f"stsbench: {reason}")
        with suppress(UserError):  # on a full disk the parent reports the exit code instead
            folder.write_failure(unit, reason)
        return 2 if isinstance(error, UserError) else 1
    return 0


def _log(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def _end_with_parent() -> None:
    while os.read(0, 1024):
        pass
    os._exit(1)


def run_unit(folder: ExperimentFolder, unit: str) -> None:
    """Does the unfinished jobs of a unit: trains or loads its checkpoint, measures it, and deletes a trained one.

    Raises:
        UserError: if what the jobs read changed since they were planned.
    """
    import torch
    from filelock import FileLock

    # A second process with the same unit waits, and finds it done.
    with FileLock(folder.work(f".{unit}.lock")):
        done = folder.done()
        jobs = [job for job in folder.planned() if job.unit == unit and job.id not in done]
        if not jobs:
            return
        if read_inputs(jobs[0]) != jobs[0].inputs:
            raise UserError("the checkpoint, base or corpus changed since the sweep was started: start it again.")
        torch.set_num_threads(jobs[0].threads)
        checkpoint = None
        if jobs[0].recipe is not None:
            with cache_at(folder.path / "cache"):
                checkpoint = _train(folder, jobs[0])
        # Vectors left by a killed process would change the batches, and so the last bits of the others.
        vectors = folder.work(f".{unit}.vectors")
        shutil.rmtree(vectors, ignore_errors=True)
        with cache_at(vectors):
            for job in jobs:
                measure_job(folder, job, checkpoint)
        shutil.rmtree(vectors, ignore_errors=True)
        if checkpoint is not None:
            shutil.rmtree(checkpoint, ignore_errors=True)


def _train(folder: ExperimentFolder, job: Job) -> Path:
    """Returns the folder of the finished training; an interrupted one is resumed."""
    from stsbench.training.train import train

    finished, work = folder.path / "checkpoints" / job.unit, folder.work(job.unit)
    if finished.is_dir():
        return finished
    run = RunFolder(work)
    if not run.start.is_file():
        shutil.rmtree(work, ignore_errors=True)
        file = work.with_name(f"{job.unit}.yaml")
        with atomic_path(file) as path:
            path.write_text(dump_yaml(dict(job.recipe or {})), encoding="utf-8")
        train(file, out=work, notice=_log)
    elif not run.is_finished:
        train(resume=work, notice=_log)
    finished.parent.mkdir(parents=True, exist_ok=True)
    work.rename(finished)
    return finished


def measure_job(folder: ExperimentFolder, job: Job, checkpoint: Path | None) -> None:
    """Measures a checkpoint as a job asks, and writes the job's folder.

    Args:
        folder: the experiment's.
        job: the job.
        checkpoint: the trained checkpoint; None to load the job's own.
    """
    start, training = time.perf_counter(), 0.0
    with atomic_folder(folder.jobs / job.folder) as building:
        _score(job, checkpoint, building)
        analyses = _analyse(job, checkpoint, building)
        if checkpoint is not None:
            training = _copy_training(checkpoint, building)
            if job.measure["last"]:
                _score(job, max(RunFolder(checkpoint).checkpoints.glob("step-*")), building / LAST_FOLDER)
        times = {"training": training, "measuring": time.perf_counter() - start}
        write_finished(job, building, analyses, times)


def _load(job: Job, checkpoint: Path | None, **processing: Any) -> Any:
    return load_with(checkpoint or (job.checkpoint or {})["name"], replace(job.use, **processing))


def _score(job: Job, checkpoint: Path | None, out: Path) -> None:
    from stsbench.scoring.measure import evaluate
    from stsbench.scoring.settings import Classification, choose_protocol

    measure = job.measure
    if measure["tasks"] is None:
        return
    record = evaluate(
        _load(job, checkpoint, **job.postprocessing),
        measure["tasks"],
        protocol=choose_protocol(measure["protocol"]),
        classification=Classification(measure["classifier"], measure["kfold"]),
    )
    if checkpoint is not None:
        # The checkpoint is deleted, so the record names its job instead.
        record = record.model_copy(update={"model": record.model.model_copy(update={"name": job.folder})})
    save_run(record, out, overwrite=True)
    (out / ".lock").unlink(missing_ok=True)


def _analyse(job: Job, checkpoint: Path | None, out: Path) -> dict[str, float | None]:
    """Writes the tables of the analyses and returns their headline numbers."""
    from stsbench.analysis import analysis

    measures: dict[str, float | None] = {}
    if not job.measure["analyses"]:
        return measures
    encoder = _load(job, checkpoint)
    subject: Any = encoder
    if (out / RECORD).is_file():
        # The record has the pairs and the post-processing.
        record = load_run(out)
        model = record.model.model_copy(update={"name": encoder.identity.name})
        subject = record.model_copy(update={"model": model})
    (out / "analyses").mkdir()
    for name, options in job.measure["analyses"].items():
        result = analysis(name).verb(subject, **options)
        measures |= of_analysis(name, result)
        text = result.to("csv") + "\n"
        (out / "analyses" / f"{name}.csv").write_text(text, encoding="utf-8", newline="")
    return measures


def _copy_training(checkpoint: Path, out: Path) -> float:
    """Copies the recipe and log of a training; returns its seconds."""
    run = RunFolder(checkpoint)
    for path in (run.recipe, run.log):
        shutil.copyfile(path, out / path.name)
    return float(sum(line.get("time", {}).get("seconds", 0.0) for line in read_log(run.log)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
