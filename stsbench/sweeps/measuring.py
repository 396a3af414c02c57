"""Measures the jobs of a unit, each of which writes its folder."""

import shutil
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench.base.files import atomic_folder
from stsbench.base.progress import Progress
from stsbench.records.record import RECORD
from stsbench.records.store import load_run
from stsbench.sweeps.folder import ExperimentFolder
from stsbench.sweeps.jobs import Job
from stsbench.sweeps.states import LAST_FOLDER, of_analysis, write_finished
from stsbench.training.folder import RunFolder

if TYPE_CHECKING:
    from stsbench.scoring.task import Task


@dataclass(frozen=True)
class Measuring:
    """Measures the jobs of a unit, whose checkpoint is None where none is trained."""

    folder: ExperimentFolder
    checkpoint: Path | None
    keeps: bool
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

    def _encoder(self, job: Job, checkpoint: Path | None, *, processed: bool = False) -> Any:
        """Returns the encoder to measure; `processed` with the job's processing of vectors."""
        from stsbench.encoders.load import load_with
        from stsbench.encoders.use import USUAL

        given = job.checkpoint
        use = USUAL if given is None else given.use
        if processed:
            use = replace(use, **job.postprocessing)
        if given is not None:
            return load_with(given.name, use)
        assert checkpoint is not None
        return load_with(checkpoint, use)

    def _score(self, job: Job, checkpoint: Path | None, out: Path) -> None:
        """Measure on the tasks, if there are some, and write the record."""
        from stsbench.records.store import save_run
        from stsbench.scoring.evaluate import evaluate
        from stsbench.scoring.settings import Classification, choose_protocol

        measure = job.measure
        if measure["tasks"] is None:
            return
        record = evaluate(
            self._encoder(job, checkpoint, processed=True),
            measure["tasks"],
            protocol=choose_protocol(measure["protocol"]),
            classification=Classification(measure["classifier"], measure["kfold"]),
            progress=self.progress,
        )
        if checkpoint is not None and not self.keeps:
            # What is not kept cannot be found again: its name says which job it was of.
            named = record.model.model_copy(update={"name": job.folder})
            record = record.model_copy(update={"model": named})
        save_run(record, out, overwrite=True)
        (out / ".lock").unlink(missing_ok=True)

    def _analyse(self, job: Job, out: Path) -> dict[str, float | None]:
        """Make the analyses, write their tables, and return their numbers."""
        from stsbench.analysis import analysis

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
            result = analysis(name).verb(subject, progress=self.progress, **options)
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


def read_tasks(job: Job, names: str | None = None) -> "list[Task]":
    """Return the tasks that a job measures, or others by their names, in its protocol."""
    from stsbench.scoring.settings import choose_protocol
    from stsbench.scoring.tasks import read_data

    wanted = names or job.measure["tasks"]
    if wanted is None:
        return []
    return list(read_data(wanted, protocol=choose_protocol(job.measure["protocol"])))


def log_line(sentence: str) -> None:
    """Write a sentence into the log."""
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()
