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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any

import yaml

from stsbench.base.errors import UserError, by_interrupt
from stsbench.base.files import atomic_folder, atomic_path, told_as_unwritable
from stsbench.base.memory import is_of_memory
from stsbench.base.progress import Progress
from stsbench.data.locate import places
from stsbench.records.record import RECORD
from stsbench.records.store import load_run
from stsbench.sweeps.finished import LAST_FOLDER, write_finished
from stsbench.sweeps.folder import ExperimentFolder, Running, write_json
from stsbench.sweeps.jobs import Job, inputs_now, outdated
from stsbench.sweeps.measures import of_analysis
from stsbench.training.folder import RunFolder

PREPARE = "prepare"
"""In place of a unit: make what all jobs share."""

PROBE = "probe-"
"""Before a unit: take a few of its steps, and write into `PROBED` how long they took."""

PROBED = "probe.json"

PARENT = "STSBENCH_PARENT"
"""Set in the environment of a process whose standard input its parent holds open: it ends when that closes."""

LESS_MEMORY = "run fewer at once with --workers, or ask for less with optimiser.batch or optimiser.chunk"
"""What to do about a job that had too little."""

_SECONDS_BETWEEN = 1.0
"""Of what is told of how far it is."""

_IMPORT_SECONDS = 5.0
_RECORD_BYTES, _PAIR_BYTES = 100_000, 30
"""What a forecast takes for: loading torch; a record, and each of its sentences."""


def main(arguments: Sequence[str]) -> int:
    """Do one unit; return the exit code: 0 if all of its jobs are done, 2 for a mistake, 1 for anything else."""
    folder, unit = ExperimentFolder(Path(arguments[0])), arguments[1]
    if os.environ.pop(PARENT, ""):
        threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        if unit == PREPARE:
            prepare(folder)
        elif unit.startswith(PROBE):
            probe(folder, unit.removeprefix(PROBE))
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
    sys.stderr.write(f"stsbench: {reason}\n")
    sys.stderr.flush()
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
    """Make what all jobs share, and make sure of what they need: data, the tokenised corpus.

    Raises:
        UserError: if something is missing or broken: better before the first job than in each.
    """
    from stsbench.scoring.protocols import choose_protocol
    from stsbench.scoring.tasks import read_data

    jobs = folder.planned().jobs
    looked = _data_folders()
    measures = {str(job.measure): job.measure for job in jobs}
    for measure in measures.values():
        if measure["tasks"] is not None:
            read_data(measure["tasks"], protocol=choose_protocol(measure["protocol"]), data_dirs=looked)
    with _cache(folder.cache):
        prepared: set[str] = set()
        for job in jobs:
            if job.recipe is None:
                continue
            recipe = {key: job.recipe[key] for key in ("base", "pooling", "corpus", "views")}
            if str(recipe) not in prepared:
                prepared.add(str(recipe))
                _prepare_training(job, looked)


def _prepare_training(job: Job, looked: Sequence[Path]) -> None:
    from stsbench.training.recipe import Recipe
    from stsbench.training.train import prepare_training

    prepare_training(Recipe.model_validate(job.recipe), data_dirs=looked)


def probe(folder: ExperimentFolder, unit: str) -> None:
    """Take three steps of a training, and write down what all of it would take.

    Raises:
        UserError: if it cannot be trained.
    """
    import torch

    from stsbench.data.corpus import corpus_file, read_rows
    from stsbench.scoring.protocols import choose_protocol
    from stsbench.scoring.tasks import read_data, sentences_of
    from stsbench.training.log import read_log
    from stsbench.training.recipe import Recipe
    from stsbench.training.train import train

    start = time.perf_counter()
    jobs = folder.planned().jobs
    job = next(job for job in jobs if job.unit == unit)
    torch.set_num_threads(job.threads)
    recipe = Recipe.model_validate(job.recipe)
    changes = {
        "corpus.rows": 3 * recipe.optimiser.batch * recipe.optimiser.accumulate,
        "optimiser.epochs": 1,
        "selection.every": 10**9,
        "saving.every": 10**9,
        "log_every": 1,
    }
    looked = _data_folders()
    file = folder.path / "probe.yaml"
    file.write_text(yaml.safe_dump(dict(job.recipe or {}), sort_keys=False), encoding="utf-8")
    with _cache(folder.cache):
        overrides = [f"{key}={value}" for key, value in changes.items()]
        training = train(file, out=folder.work(unit), overrides=overrides, data_dirs=looked, notice=_told)
    log = read_log(training.folder / "log.jsonl")
    steps = [line["time"]["seconds"] for line in log if line["kind"] == "train"]
    scores = [line["time"]["seconds"] for line in log if line["kind"] == "dev"]
    names = [recipe.selection.task, *filter(None, [job.measure["tasks"]])]
    sets = [read_data(name, protocol=choose_protocol(job.measure["protocol"]), data_dirs=looked) for name in names]
    counts = [sum(len(set(sentences_of(task))) for task in of_name) for of_name in sets]
    corpus = corpus_file(str(recipe.corpus.path))
    rows = sum(1 for _ in read_rows(corpus, recipe.corpus.columns, recipe.corpus.names))
    # The first step warms up, and so does the first score.
    later = steps[1:] or steps
    weights = sum(path.stat().st_size for path in training.folder.glob("*.safetensors"))
    write_json(
        folder.path / PROBED,
        {
            "rows": rows,
            "seconds_per_row": sum(later) / len(later) / recipe.optimiser.batch / recipe.optimiser.accumulate,
            "dev_seconds": scores[-1],
            "start_seconds": time.perf_counter() - start - sum(steps) - sum(scores) + _IMPORT_SECONDS,
            "measuring_seconds": scores[-1] * sum(counts[1:]) / counts[0],
            "record_bytes": _RECORD_BYTES + _PAIR_BYTES * sum(counts[1:]),
            "weight_bytes": weights,
        },
    )


def run_unit(folder: ExperimentFolder, unit: str) -> None:
    """Do the jobs of a unit that are not done: train or take its checkpoint, and measure that.

    Raises:
        UserError: if a job cannot be done.
    """
    import torch
    from filelock import FileLock

    # Of two processes that were given the same, the second one finds it done.
    with FileLock(folder.lock(unit)):
        plan, done = folder.planned(), folder.done()
        keep, planned = plan.keep, plan.jobs
        jobs = [job for job in planned if job.unit == unit and job.id not in done]
        if not jobs:
            return
        _require_unchanged(jobs[0])
        torch.set_num_threads(jobs[0].threads)
        beacon = _Beacon(folder.running(unit), jobs)
        looked = _data_folders()
        checkpoint = None
        if jobs[0].recipe is not None:
            with _cache(folder.cache):
                checkpoint = _trained(folder, jobs[0], looked, beacon)
        vectors = folder.work(f".{unit}.vectors")
        # Vectors that a killed process left would be put into other batches, and their last bits differ.
        shutil.rmtree(vectors, ignore_errors=True)
        try:
            _take_shared(folder, jobs[0], planned, looked=looked, cache=vectors, progress=beacon)
            with _cache(vectors):
                measuring = _Measuring(folder, checkpoint, keep == "checkpoint", looked, beacon)
                for job in jobs:
                    measuring.measure(job)
        finally:
            shutil.rmtree(vectors, ignore_errors=True)
        if checkpoint is not None and keep == "record":
            shutil.rmtree(checkpoint, ignore_errors=True)


def _require_unchanged(job: Job) -> None:
    """Refuse what is no longer as it was when the jobs were planned: they are told apart by it.

    Raises:
        UserError: naming what changed.
    """
    for what in outdated([replace(job, inputs=inputs_now(job))], [job]):
        raise UserError(f"{what} changed since the sweep was started: start it again.")


def _take_shared(
    folder: ExperimentFolder,
    job: Job,
    planned: Sequence[Job],
    *,
    looked: Sequence[Path],
    cache: Path,
    progress: Progress,
) -> None:
    """Put what a checkpoint gives for the tasks into a unit's cache: encoded once, for all units and poolings.

    It is a copy, as what an analysis encodes beside them is for this unit alone: what the others find does not
    depend on who came first. What was trained here no other unit has, and nothing is put there.
    """
    from stsbench.encoders.load import load
    from stsbench.encoders.shared import shared_vectors
    from stsbench.scoring.protocols import choose_protocol
    from stsbench.scoring.tasks import read_data, sentences_of, split_by_kind

    given = job.checkpoint
    if given is None or job.measure["tasks"] is None:
        return
    encoder = load(given.name, **given.options)
    if encoder.identity.weights_sha256 is None or encoder.identity.kind == "vectors":
        return
    protocol = choose_protocol(job.measure["protocol"])
    kinds = split_by_kind(read_data(job.measure["tasks"], protocol=protocol, data_dirs=looked))
    sentences = [sentence for sets in kinds for task in sets for sentence in sentences_of(task)]
    alike = {str(of): of for other in planned if (of := other.checkpoint) is not None and of.name == given.name}
    identities = [load(of.name, **of.options).identity for of in alike.values()]
    poolings = {
        of.pooling for of in identities if replace(of, pooling="") == replace(encoder.identity, pooling="")
    }
    shared = folder.vectors(job.threads)
    kept = shared_vectors(encoder, sentences, shared, poolings=sorted(poolings), progress=progress)
    with told_as_unwritable(cache):
        shutil.copytree(kept, cache / "embeddings")


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


def _data_folders() -> list[Path]:
    """Return where data is looked for: found before the cache becomes the experiment's own."""
    return [place.folder for place in places() if place.folder.is_dir()]


@contextmanager
def _cache(path: Path) -> Iterator[None]:
    before = os.environ.get("STSBENCH_CACHE")
    os.environ["STSBENCH_CACHE"] = str(path)
    try:
        yield
    finally:
        if before is None:
            del os.environ["STSBENCH_CACHE"]
        else:
            os.environ["STSBENCH_CACHE"] = before


def _trained(folder: ExperimentFolder, job: Job, looked: Sequence[Path], progress: Progress) -> Path:
    """Return the folder of the finished training, which is taken up where it was left."""
    from stsbench.training.train import train

    finished, work, shared = folder.checkpoint(job.unit), folder.work(job.unit), folder.vectors(job.threads)
    if finished.is_dir():
        return finished
    run, told = RunFolder(work), _told
    began = run.start.is_file()
    if not began:
        shutil.rmtree(work, ignore_errors=True)
        file = work.with_name(f"{job.unit}.yaml")
        with atomic_path(file) as path:
            path.write_text(yaml.safe_dump(dict(job.recipe or {}), sort_keys=False), encoding="utf-8")
        train(file, out=work, data_dirs=looked, progress=progress, notice=told, shared=shared)
    elif not run.is_finished:
        train(resume=work, data_dirs=looked, progress=progress, notice=told, shared=shared)
    finished.parent.mkdir(parents=True, exist_ok=True)
    work.rename(finished)
    return finished


def _told(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")


@dataclass(frozen=True)
class _Measuring:
    """What measuring a unit's jobs shares.

    Attributes:
        folder: of the experiment.
        checkpoint: the folder of the training; None for a checkpoint that is measured as it is.
        keeps: whether the checkpoint is kept.
        data: folders of data.
        progress: told how far it is.
    """

    folder: ExperimentFolder
    checkpoint: Path | None
    keeps: bool
    data: Sequence[Path]
    progress: Progress

    def measure(self, job: Job) -> None:
        """Measure the checkpoint as a job says, and write the job's folder."""
        start, seconds = time.perf_counter(), 0.0
        with atomic_folder(self.folder.jobs / job.folder) as building:
            self._score(job, self.checkpoint, building)
            analyses = self._analyse(job, building)
            if self.checkpoint is not None:
                seconds = _take_training(self.checkpoint, building)
                if job.measure["last"]:
                    self._score(job, RunFolder(self.checkpoint).last_checkpoint, building / LAST_FOLDER)
            kept = self.checkpoint.relative_to(self.folder.path).as_posix() if self.checkpoint else None
            write_finished(
                job,
                building,
                analyses=analyses,
                checkpoint=kept if self.keeps else None,
                training=seconds,
                measuring=time.perf_counter() - start,
            )

    def _encoder(self, job: Job, checkpoint: Path | None) -> Any:
        from stsbench.encoders.load import load

        if job.checkpoint is not None:
            return load(job.checkpoint.name, **job.checkpoint.options)
        assert checkpoint is not None
        return load(str(checkpoint))

    def _score(self, job: Job, checkpoint: Path | None, out: Path) -> None:
        """Measure on the tasks, if there are some, and write the record."""
        from stsbench.records.store import save_run
        from stsbench.scoring.evaluate import evaluate
        from stsbench.scoring.protocols import choose_protocol

        measure = job.measure
        if measure["tasks"] is None:
            return
        record = evaluate(
            self._encoder(job, checkpoint),
            measure["tasks"],
            protocol=choose_protocol(measure["protocol"]),
            data_dirs=self.data,
            classifier=measure["classifier"],
            kfold=measure["kfold"],
            progress=self.progress,
            **job.postprocessing,
        )
        if checkpoint is not None and not self.keeps:
            # What is not kept cannot be found again: its name says which job it was of.
            named = record.model.model_copy(update={"name": job.folder})
            record = record.model_copy(update={"model": named})
        save_run(record, out, overwrite=True)
        (out / ".lock").unlink(missing_ok=True)

    def _analyse(self, job: Job, out: Path) -> dict[str, float | None]:
        """Make the analyses, write their tables, and return their numbers."""
        from stsbench.analysis.registry import analysis

        measures: dict[str, float | None] = {}
        if not job.measure["analyses"]:
            return measures
        encoder = self._encoder(job, self.checkpoint)
        subject: Any = encoder
        if (out / RECORD).is_file():
            # The record brings its pairs, and what is done to its vectors.
            record = load_run(out)
            subject = record.model_copy(
                update={"model": record.model.model_copy(update={"name": encoder.identity.name})}
            )
        for name, options in job.measure["analyses"].items():
            verb = analysis(name).verb
            data = {"data_dirs": self.data} if "data_dirs" in signature(verb).parameters else {}
            result = verb(subject, progress=self.progress, **{**data, **options})
            measures |= of_analysis(name, result)
            (out / "analyses").mkdir(exist_ok=True)
            text = result.to("csv") + "\n"
            (out / "analyses" / f"{name}.csv").write_text(text, encoding="utf-8", newline="")
        return measures


def _take_training(checkpoint: Path, out: Path) -> float:
    """Copy recipe and log of a training; return the seconds that it took."""
    from stsbench.training.log import read_log

    run = RunFolder(checkpoint)
    for path in (run.recipe, run.log):
        shutil.copyfile(path, out / path.name)
    return float(sum(line.get("time", {}).get("seconds", 0.0) for line in read_log(run.log)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
