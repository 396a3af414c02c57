"""What a sweep comes to: the table of all jobs, the cells with their intervals, a figure for each axis."""

import re
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path
from stsbench.base.words import listed, suggestion
from stsbench.records.kinds import AVERAGE, TRANSFER_AVERAGE
from stsbench.render.cells import unique_labels
from stsbench.render.figures import save_figure, svg_of
from stsbench.render.result import Result
from stsbench.render.section import ReportFigure, Section
from stsbench.render.table import Table, Tables, interval
from stsbench.render.text import one_line
from stsbench.sweeps.cells import OF_CELLS, cell_frame
from stsbench.sweeps.experiment import Experiment
from stsbench.sweeps.folder import ExperimentFolder
from stsbench.sweeps.jobs import Job
from stsbench.sweeps.states import DEV_STEP, DONE, FAILED, LOSS_LAST, RUNNING, WAITING, JobState, job_states

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PLAIN = ("job", "seed", "state", "seconds", "threads", "folder")
"""Columns of the table of jobs beside the axes and the measures."""


@dataclass(frozen=True)
class Sweep(Result):
    """An experiment, as far as it is.

    Attributes:
        experiment: what was asked.
        folder: where it is.
        jobs: in their order.
    """

    experiment: Experiment
    folder: Path
    jobs: tuple[JobState, ...]

    @property
    def axes(self) -> list[str]:
        """The names of the axes."""
        return list(self.experiment.axes)

    @property
    def failed(self) -> list[JobState]:
        """The jobs that failed."""
        return [job for job in self.jobs if job.state == FAILED]

    @property
    def is_complete(self) -> bool:
        """Whether all jobs are done."""
        return all(job.state == DONE for job in self.jobs)

    @property
    def measures(self) -> list[str]:
        """The names of the numbers that any job has."""
        return list(dict.fromkeys(name for job in self.jobs for name in job.measures))

    @property
    def headline(self) -> str | None:
        """The measure that matters most, an average or else the first; None where nothing is done yet."""
        names = self.measures
        return next((name for name in (AVERAGE, TRANSFER_AVERAGE) if name in names), names[0] if names else None)

    @cached_property
    def _columns(self) -> dict[str, str]:
        """The column of each axis: its name, or `state [2]` if another column has that name."""
        own = [*_PLAIN, *OF_CELLS, "value", "hours", "95 %", *self.measures]
        return dict(zip(self.axes, unique_labels(self.axes, taken=own), strict=True))

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row a job, with `job`, a column an axis, `seed`, `state`, `seconds`, `threads`, `folder`, measures.

        Scores are x 100. `folder` is relative to the experiment's. It is what stands in `table.csv`. An axis that
        is called as another column (`state`) has a column `state [2]`, here and in `cells`.
        """
        rows = [
            {
                "job": state.job.id,
                **{column: state.job.values[axis] for axis, column in self._columns.items()},
                "seed": state.job.seed,
                "state": state.state,
                "seconds": state.seconds,
                "threads": state.job.threads,
                "folder": None if state.folder is None else state.folder.relative_to(self.folder).as_posix(),
                **state.measures,
            }
            for state in self.jobs
        ]
        columns = ["job", *self._columns.values(), *_PLAIN[1:], *self.measures]
        frame = pd.DataFrame(rows, columns=columns)
        return frame.astype({"seed": "Int64"} | dict.fromkeys(self.measures, float))

    @property
    def cells(self) -> pd.DataFrame:
        """A row for each cell and measure, with its interval over other seeds and pairs (`cell_frame`)."""
        return self._cells[0]

    @cached_property
    def _cells(self) -> "tuple[pd.DataFrame, list[int], list[str]]":
        columns = self._columns
        jobs = [
            replace(state, job=replace(state.job, values={columns[a]: v for a, v in state.job.values.items()}))
            for state in self.jobs
        ]
        return cell_frame(list(columns.values()), jobs)

    def records(self, **labels: str) -> list[Path]:
        """Return the folders of the records of jobs that are done, for `compare`, `rank`, `report` and `load_run`.

        Args:
            labels: of axes, as in `method="plain"`; of an axis whose name is no keyword, `**{"optimiser.batch":
                "32"}`. By default those of all cells.

        Raises:
            UserError: if there is no such axis or label.
        """
        for axis, label in labels.items():
            if axis not in self.axes:
                raise UserError(
                    f"there is no axis {axis!r}: {suggestion(axis, self.axes, otherwise='there is none.')}"
                )
            known = list(dict.fromkeys(state.job.cell[axis] for state in self.jobs))
            if str(label) not in known:
                raise UserError(f"the axis {axis} has no {str(label)!r}: {suggestion(str(label), known)}")
        return [
            state.folder
            for state in self.jobs
            if state.folder is not None
            and (state.folder / "run.json").is_file()
            and all(state.job.cell[axis] == str(label) for axis, label in labels.items())
        ]

    def table(self) -> Tables:
        """Return the cells, a row each, and what is not done."""
        tables = []
        if any(state.state == DONE for state in self.jobs):
            tables.append(self._cells_table())
        if not self.is_complete:
            tables.append(self.status())
        return Tables(tables)

    def status(self) -> Table:
        """Return how many jobs are in which state; of those that failed the reason and the end of the log."""
        counts = {name: sum(job.state == name for job in self.jobs) for name in (DONE, RUNNING, FAILED, WAITING)}
        in_words = [f"{number} {name}" for name, number in counts.items() if number]
        rows = [
            {
                **self._by_axis(state.job),
                "seed": state.job.seed,
                "state": state.state,
                "hours": None if isnan(state.seconds) else state.seconds / 3600,
            }
            for state in self.jobs
        ]
        notes = [line for state in self.failed for line in self._failure_lines(state)]
        frame = pd.DataFrame(rows).astype({"seed": "Int64"})
        if frame["seed"].isna().all():
            frame = frame.drop(columns="seed")
        caption = f"Experiment {self.experiment.name}: {len(self.jobs)} jobs, {listed(in_words)}"
        return Table(frame, caption, name="status", notes=tuple(notes))

    def _failure_lines(self, state: JobState) -> list[str]:
        assert state.failure is not None
        log = ExperimentFolder(self.folder).log(state.job.unit)
        return [
            f"failed: {state.job.label}: {state.failure.reason}",
            *(f"    {line}" for line in state.failure.end[-5:]),
            f"    all of it: {log}",
        ]

    def _cells_table(self) -> Table:
        (cells, numbers, why), headline = self._cells, self.headline
        done = {tuple(state.job.cell.values()): state.job for state in self.jobs if state.folder is not None}
        rows = []
        for job, (_, part) in zip(done.values(), cells.groupby(numbers, sort=False), strict=True):
            row = self._by_axis(job)
            plain = part[~part["measure"].str.contains(": ") & ~part["measure"].isin([DEV_STEP, LOSS_LAST])]
            for number in (plain if len(plain) else part).to_dict("records"):
                if number["measure"] == headline:
                    row["runs"] = int(number["runs"])
                row[number["measure"]] = number["mean"]
                if number["measure"] == headline:
                    row["sd"] = number["sd"]
                    row["95 %"] = interval(number["low"], number["high"])
            rows.append(row)
        frame = pd.DataFrame(rows)
        notes = [
            f"sd and 95 % are of {headline}: the interval is over other seeds and other pairs; of one run "
            "over other pairs alone. `cells.csv` has those of every measure.",
            *why,
        ]
        caption = f"Experiment {self.experiment.name}, means over seeds"
        return Table(frame, caption, name="cells", notes=tuple(notes), headline=headline or "")

    def _by_axis(self, job: Job) -> dict[str, Any]:
        return {self._columns[axis]: label for axis, label in job.cell.items()}

    def plot(self, axis: str | None = None, measure: str | None = None) -> "Figure":
        """Draw a measure over the values of an axis, with its band; a line for each choice of the other axes.

        Args:
            axis: by default the first.
            measure: by default the headline.

        Raises:
            UserError: if there is no such axis or measure.
        """
        from stsbench.sweeps.cells import axis_figure

        measure = measure or self.headline
        axis = axis or (self.axes[0] if self.axes else None)
        if axis is None:
            raise UserError(f"experiment {self.experiment.name} has no axis to draw over.")
        if axis not in self.axes:
            raise UserError(f"there is no axis {axis!r}: {suggestion(axis, self.axes)}")
        if measure is None:
            raise UserError("no job is done yet: there is nothing to draw.")
        if measure not in self.measures:
            raise UserError(f"there is no measure {measure!r}: {suggestion(measure, self.measures)}")
        return axis_figure(self.cells, list(self._columns.values()), self._columns[axis], measure)

    def section(self) -> Section:
        """Return it as a part of a report."""
        name = f"experiment-{self.experiment.name}"
        tables = tuple(replace(table, name=f"{name}-{table.name}") for table in self.table())
        figures = []
        if self.headline is not None:
            for number, axis in enumerate(self.axes, 1):
                caption = f"{self.headline} over {axis}"
                alt = f"{caption}; the numbers stand in the table above it."
                figures.append(ReportFigure(f"{name}-axis-{number}", caption, alt, svg_of(self.plot(axis))))
        about = (self.experiment.about,) if self.experiment.about else ()
        return Section(name, f"Experiment {self.experiment.name}", about, tables, tuple(figures))

    def save(self) -> None:
        """Write the tables of jobs and cells and a figure for each axis into the experiment's folder.

        Raises:
            UserError: if the folder cannot be written.
        """
        from stsbench.render.formats import to_csv

        for name, frame in (("table.csv", self.frame), ("cells.csv", self.cells)):
            with atomic_path(self.folder / name) as temporary:
                temporary.write_text(to_csv(frame) + "\n", encoding="utf-8", newline="")
        if self.headline is not None:
            names = (re.sub(r"[^\w.-]", "-", one_line(axis)) for axis in self.axes)
            for axis, name in zip(self.axes, unique_labels(list(names)), strict=True):
                for kind in ("png", "svg"):
                    save_figure(self.plot(axis), self.folder / f"axis-{name}.{kind}")


def read_sweep(folder: str | Path) -> Sweep:
    """Read an experiment's folder as far as it is done, without doing anything."""
    place = ExperimentFolder(Path(folder).expanduser().absolute())
    return Sweep(place.require(), place.path, job_states(place, place.job_list().jobs))
