"""What an experiment will take: its jobs, the hours from measured steps or finished jobs, the room on the disk."""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from statistics import fmean as mean

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables
from stsbench.sweeps.executors import Work
from stsbench.sweeps.experiment import Experiment, described
from stsbench.sweeps.folder import ExperimentFolder, read_json
from stsbench.sweeps.jobs import Job, units_of
from stsbench.sweeps.measuring import PROBE, PROBED, Probed
from stsbench.sweeps.states import DONE, FAILED, JobState

_STATE = 6
"""Times the weights that a training takes: weights, two moments, best and last checkpoint, what is published."""


@dataclass(frozen=True)
class Forecast(Result):
    """What is to be done.

    Attributes:
        experiment: its name.
        cells: axes and seeds as a phrase.
        jobs: all of them.
        done: that are done.
        failed: that failed; they are done with `--retry` only.
        left: that are left, failed ones aside.
        places: jobs at once.
        hours: of computing that is left, summed over jobs; NaN where it is not known.
        source: what the hours are from.
        kept: bytes that stay on the disk.
        working: bytes that running trainings take on top.
        free: bytes that are free there.
    """

    experiment: str
    cells: str
    jobs: int
    done: int
    failed: int
    left: int
    places: int
    hours: float
    source: str
    kept: float
    working: float
    free: int

    @property
    def frame(self) -> pd.DataFrame:
        """One row of all numbers, and `hours_passing`: the hours divided by the jobs at once."""
        return pd.DataFrame([{**vars(self), "hours_passing": self.hours / max(1, min(self.places, self.left))}])

    def table(self) -> Tables:
        """Return it line by line."""
        passing = float(self.frame["hours_passing"].iloc[0])
        unknown = isnan(self.hours)
        room = f"{_bytes(self.kept)} to stay, {_bytes(self.working)} more while it runs"
        rows = {
            "jobs": f"{self.jobs}: {self.cells}",
            "done": str(self.done),
            "failed": f"{self.failed} (done with --retry)" if self.failed else "0",
            "to do": f"{self.left}, {self.places} at once",
            "computing": "unknown" if unknown else " ".join([_hours(self.hours), "in all", self.source]).strip(),
            "time that passes": "unknown" if unknown else f"about {_hours(passing)}",
            "disk": f"{'unknown' if isnan(self.kept) else room}; {_bytes(self.free)} free",
        }
        frame = pd.DataFrame({"what": list(rows), "how much": list(rows.values())})
        short = self.kept + self.working > self.free
        notes = ("The disk has not enough room: choose another folder with --out.",) if short else ()
        return Tables([Table(frame, f"Experiment {self.experiment}, nothing was started", notes=notes)])


@dataclass(frozen=True)
class _Estimate:
    """What the remaining jobs take: seconds of computing, bytes that stay, bytes more while trainings run."""

    seconds: float = nan
    kept: float = nan
    working: float = nan
    source: str = ""


def forecast(
    experiment: Experiment,
    folder: ExperimentFolder,
    states: Sequence[JobState],
    *,
    places: int,
    data_dirs: tuple[Path, ...],
    notice: Callable[[str], None],
) -> Forecast:
    """Return what an experiment will take.

    The hours are those of finished jobs where there are some: of the same cell, or else of all. Where there are
    none, one training is timed over a few steps and one dev score, with the experiment's threads.
    """
    done = [state for state in states if state.state == DONE]
    failed = [state for state in states if state.state == FAILED]
    left = [state.job for state in states if state.state not in {DONE, FAILED}]
    training = next((job for job in left if job.recipe is not None), None)
    estimate = _Estimate()
    if not left:
        estimate = _Estimate(0.0, 0.0, 0.0)
    elif done:
        estimate = _from_finished(folder, done, left, places)
    elif training is not None:
        notice(f"timing a few steps of {training.label}")
        probed = _probe(experiment, [state.job for state in states], training, data_dirs)
        estimate = _from_probed(probed, experiment, units_of(left), places)
    there = next(path for path in (folder.path, *folder.path.parents) if path.exists())
    return Forecast(
        experiment=experiment.name,
        cells=described(experiment),
        jobs=len(states),
        done=len(done),
        failed=len(failed),
        left=len(left),
        places=places,
        hours=estimate.seconds / 3600,
        source=estimate.source,
        kept=estimate.kept,
        working=estimate.working,
        free=shutil.disk_usage(there).free,
    )


def _from_finished(
    folder: ExperimentFolder, done: Sequence[JobState], left: Sequence[Job], places: int
) -> _Estimate:
    """Return the estimate if each job takes as long as finished jobs of its cell did, or else as all did."""
    by_cell: dict[tuple[str, ...], list[float]] = {}
    for state in done:
        by_cell.setdefault(tuple(state.job.cell.values()), []).append(state.seconds)
    every = [state.seconds for state in done]
    kept = mean([_size(state.folder) for state in done if state.folder is not None]) * len(left)
    checkpoints = [_size(path) for path in (folder.path / "checkpoints").glob("*")]
    working = 0.0
    if checkpoints:
        kept += mean(checkpoints) * len(units_of(left))
        working = _STATE * checkpoints[0] * places
    total = sum(mean(by_cell.get(tuple(job.cell.values()), every)) for job in left)
    return _Estimate(total, kept, working, f"(from {len(done)} finished jobs)")


def _from_probed(probed: Probed, experiment: Experiment, units: Sequence[Sequence[Job]], places: int) -> _Estimate:
    """Return the estimate if each step of every training takes as long as the timed steps did."""
    seconds = 0.0
    for unit in units:
        seconds += probed.start_seconds + len(unit) * probed.measuring_seconds
        if (recipe := unit[0].recipe) is not None:
            rows = min(recipe["corpus"]["rows"] or probed.rows, probed.rows)
            sentences = rows * recipe["optimiser"]["epochs"]
            steps = sentences / recipe["optimiser"]["batch"] / recipe["optimiser"]["accumulate"]
            scores = 1 + steps // recipe["selection"]["every"]
            seconds += sentences * probed.seconds_per_row + scores * probed.dev_seconds
    kept = sum(map(len, units)) * probed.record_bytes
    kept += len(units) * probed.weight_bytes if experiment.keep == "checkpoint" else 0
    working = _STATE * probed.weight_bytes * min(places, len(units))
    source = "(from a few steps of one job, without classifiers and analyses)"
    return _Estimate(seconds, float(kept), float(working), source)


def _probe(experiment: Experiment, jobs: Sequence[Job], job: Job, data_dirs: tuple[Path, ...]) -> Probed:
    """Time a job's training over a few steps, in a folder that is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="stsbench-") as made:
        folder = ExperimentFolder(Path(made) / "probe")
        folder.claim(experiment, jobs)
        unit = f"{PROBE}{job.unit}"
        code = Work(folder.path, unit, experiment.threads, folder.log(unit), data_dirs).run()
        if code != 0:
            failure = folder.failed(unit)
            raise UserError(failure.reason if failure else f"the timed training ended with exit code {code}.")
        return read_json(folder.path / PROBED, Probed)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _hours(hours: float) -> str:
    """Return hours for people.

    >>> _hours(0.25), _hours(30.0)
    ('15.0 minutes', '30.0 hours')
    """
    return f"{60 * hours:.1f} minutes" if hours < 1.5 else f"{hours:.1f} hours"


def _bytes(count: float) -> str:
    """Return a number of bytes for people.

    >>> _bytes(2.5e9), _bytes(3e6)
    ('2.5 GB', '3 MB')
    """
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
