"""The result of a sweep: the table of jobs, the cells with intervals, and a figure for each axis."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path
from stsbench.base.words import listed, suggestion
from stsbench.judging.runs import group_seeds
from stsbench.judging.seeds import compare_seeds
from stsbench.records.kinds import AVERAGE, TRANSFER_AVERAGE
from stsbench.render.charts import forest, line, plain_logarithms
from stsbench.render.figures import (
    ONE_COLOUR,
    colours,
    legend_above,
    new_figure,
    shortened,
    style,
    svg_of,
)
from stsbench.render.formats import to_csv
from stsbench.render.page import ReportFigure, Section
from stsbench.render.table import Result, Table, Tables, interval
from stsbench.scoring.recompute import require_recomputed
from stsbench.statistics.intervals import reach_of_mean
from stsbench.sweeps.experiment import COLUMNS, OF_CELLS, Experiment, label_of
from stsbench.sweeps.folder import (
    DEV_STEP,
    DONE,
    FAILED,
    LOSS_LAST,
    WAITING,
    ExperimentFolder,
    JobState,
    headlines,
    job_states,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BOTH, _SEEDS, _PAIRS = "seeds and pairs", "seeds", "pairs"


def cell_frame(axes: Sequence[str], jobs: Sequence[JobState]) -> pd.DataFrame:
    """Returns a row for each cell and measure of finished jobs; scores x 100, NaN for undefined.

    The interval of a score's mean is over other seeds and other pairs, as in `compare`; of a single run it is its
    record's, over other pairs. Without a record (a dev score, an alignment) it is over other seeds only. `sd` is
    the sample standard deviation; `seed_share` and `pair_share` are shares of the variance of the mean.
    `attrs["notes"]` has a sentence for each cell with records whose intervals are over seeds only.
    """
    cells: dict[tuple[str, ...], list[JobState]] = {}
    for state in jobs:
        if state.folder is not None:
            cells.setdefault(tuple(state.job.labels.values()), []).append(state)
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for labels, states in cells.items():
        name = ", ".join(labels)
        scored, why = _intervals(states)
        measures = dict.fromkeys(measure for state in states for measure in state.measures)
        rows += [{"cell": name, **states[0].job.cell, **_row(states, of), **scored.get(of, {})} for of in measures]
        notes += [f"{name}: intervals are over seeds only: {why}"] if why else []
    frame = pd.DataFrame(rows, columns=[OF_CELLS[0], *axes, *OF_CELLS[1:]])
    frame.attrs["notes"] = notes
    return frame


def _row(states: Sequence[JobState], measure: str) -> dict[str, Any]:
    values = [value for state in states if (value := state.measures.get(measure)) is not None]
    mean = float(np.mean(values)) if values else nan
    row = {"measure": measure, "runs": len(values), "mean": mean, "interval": ""}
    if len(values) < 2:
        return row
    sd = float(np.std(values, ddof=1))
    half = reach_of_mean(sd, len(values))
    return row | {"sd": sd, "low": mean - half, "high": mean + half, "interval": _SEEDS}


def _intervals(states: Sequence[JobState]) -> tuple[dict[Any, dict[Any, Any]], str]:
    """Returns the interval of each score in the records, or else why there is none."""
    records = {str(state.folder): state.record for state in states if state.record is not None}
    if not records:
        return {}, ""
    require_recomputed(*records.values(), intervals=False)
    if len(records) == 1:
        (record,) = records.values()
        limits = {name: pair for name, _, pair in headlines(record) if pair is not None}
        return {
            name: {"low": 100 * low, "high": 100 * high, "interval": _PAIRS}
            for name, (low, high) in limits.items()
        }, ""
    try:
        methods, _ = group_seeds(records, dict.fromkeys(records, ""))
        compared = compare_seeds(methods)
    except UserError as error:
        # A score is undefined in one of them, or two seeds have the same weights.
        return {}, str(error)
    rows = pd.DataFrame(map(asdict, compared.rows["a"]), index=compared.rows["task"])
    rows["interval"] = rows["pair_share"].map(lambda share: _SEEDS if isnan(share) else _BOTH)
    return rows[["low", "high", "seed_share", "pair_share", "interval"]].to_dict("index"), ""


def axis_figure(points: pd.DataFrame, axis: str, label: str) -> "Figure":
    """Draws values with their intervals: over an axis if all places are numbers, else row by row.

    Args:
        points: columns `series`, `place` (a number or a label), `value`, `low`, `high` (NaN for no interval) and
            `filled` (otherwise dashed or hollow).
        axis: label of the axis with the places.
        label: label of the values.
    """
    if not is_numeric_dtype(points["place"]):
        rows = points.assign(label=points["place"].map(label_of), summary=False)
        return forest(rows, shortened(label))
    series = list(dict.fromkeys(points["series"]))
    palette = colours(series) if len(series) > 1 else dict.fromkeys(series, ONE_COLOUR)
    with style():
        figure = new_figure()
        panel = figure.add_subplot()
        for name, of_series in points.groupby("series", sort=False):
            at = of_series.sort_values("place").astype({"place": float})
            look: dict[str, Any] = {"low": at["low"], "high": at["high"], "marker": "o", "markersize": 3}
            look["linestyle"] = "-" if at["filled"].all() else "--"
            line(panel, shortened(str(name)), at["place"], at["value"], palette[str(name)], **look)
        if points["place"].min() > 0 and points["place"].max() > 20 * points["place"].min():
            panel.set_xscale("log")
            plain_logarithms(panel.xaxis)
        panel.set_xlabel(shortened(axis))
        panel.set_ylabel(shortened(label))
        legend_above(figure, panel)
    return figure


@dataclass(frozen=True)
class Sweep(Result):
    """An experiment and the results of its finished jobs.

    Attributes:
        experiment: the experiment.
        folder: its folder.
        jobs: the jobs with their states.
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
        return [state for state in self.jobs if state.state == FAILED]

    @property
    def is_complete(self) -> bool:
        """Whether all jobs are done."""
        return all(state.state == DONE for state in self.jobs)

    @property
    def measures(self) -> list[str]:
        """The names of the measures that any job has."""
        return list(dict.fromkeys(name for state in self.jobs for name in state.measures))

    @property
    def headline(self) -> str | None:
        """The main measure, an average or else the first; None before any job is done."""
        names = self.measures
        return next((name for name in (AVERAGE, TRANSFER_AVERAGE) if name in names), names[0] if names else None)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The content of `table.csv`: a row per job with axes, seed, state, seconds, threads, folder and measures.

        Scores are x 100. `folder` is relative to the experiment's.
        """
        rows = [
            {
                "job": state.job.id,
                **state.job.cell,
                "seed": state.job.seed,
                "state": state.state,
                "seconds": state.seconds,
                "threads": state.job.threads,
                "folder": state.folder and state.folder.relative_to(self.folder).as_posix(),
                **state.measures,
            }
            for state in self.jobs
        ]
        columns = [COLUMNS[0], *self.axes, *COLUMNS[1:], *self.measures]
        frame = pd.DataFrame(rows, columns=columns)
        return frame.astype({"seed": "Int64"} | dict.fromkeys(self.measures, float))

    @cached_property
    def cells(self) -> pd.DataFrame:
        """A row per cell and measure, with its interval over other seeds and pairs (`cell_frame`)."""
        return cell_frame(self.axes, self.jobs)

    def records(self, **labels: str) -> list[Path]:
        """Returns the folders of finished jobs' records, for `compare`, `rank`, `report` and `load_run`.

        Args:
            labels: labels of axes, as in `method="plain"` or `**{"optimiser.batch": "32"}`; by default all cells.

        Raises:
            UserError: if there is no such axis or label.
        """
        jobs = list(self.jobs)
        for axis, label in labels.items():
            self._require_axis(axis)
            known = list(dict.fromkeys(state.job.labels[axis] for state in self.jobs))
            if str(label) not in known:
                raise UserError(f"the axis {axis} has no {str(label)!r}: {suggestion(str(label), known)}")
            jobs = [state for state in jobs if state.job.labels[axis] == str(label)]
        return [state.folder for state in jobs if state.folder is not None and state.record is not None]

    def _require_axis(self, axis: str) -> None:
        if axis not in self.axes:
            raise UserError(
                f"there is no axis {axis!r}: {suggestion(axis, self.axes, otherwise='there is none.')}"
            )

    def table(self) -> Tables:
        """Returns a table of the cells, and one of the jobs if not all are done."""
        is_started = any(state.state == DONE for state in self.jobs)
        return Tables(
            [*([self._cells_table()] if is_started else []), *([] if self.is_complete else [self.status()])]
        )

    def status(self) -> Table:
        """Returns the jobs with their states; for failed jobs the reason and the log."""
        counts = {name: sum(job.state == name for job in self.jobs) for name in (DONE, FAILED, WAITING)}
        frame = pd.DataFrame([state.job.labels for state in self.jobs])
        frame[["seed", "state", "hours"]] = self.frame[["seed", "state", "seconds"]]
        frame["hours"] /= 3600
        log = ExperimentFolder(self.folder).log
        notes = [
            f"failed: {state.job.label}: {state.failure} (log: {log(state.job.unit)})" for state in self.failed
        ]
        if frame["seed"].isna().all():
            frame = frame.drop(columns="seed")
        states = listed([f"{number} {name}" for name, number in counts.items() if number])
        caption = f"Experiment {self.experiment.name}: {len(self.jobs)} jobs, {states}"
        return Table(frame, caption, name="status", notes=tuple(notes))

    def _cells_table(self) -> Table:
        headline = self.headline
        cells = dict.fromkeys(tuple(state.job.labels.items()) for state in self.jobs if state.folder is not None)
        rows = []
        groups = self.cells.groupby(self.axes or ["cell"], sort=False)
        for labels, (_, part) in zip(cells, groups, strict=True):
            row: dict[str, Any] = dict(labels)
            plain = part[~part["measure"].str.contains(": ") & ~part["measure"].isin([DEV_STEP, LOSS_LAST])]
            for number in (plain if len(plain) else part).to_dict("records"):
                is_headline = number["measure"] == headline
                row |= {"runs": int(number["runs"])} if is_headline else {}
                row[number["measure"]] = number["mean"]
                if is_headline:
                    row |= {"sd": number["sd"], "95 %": interval(number["low"], number["high"])}
            rows.append(row)
        notes = [
            f"sd and 95 % are of {headline}: the interval is over other seeds and pairs, for a single run "
            "over other pairs only. `cells.csv` has those of every measure.",
            *self.cells.attrs["notes"],
        ]
        caption = f"Experiment {self.experiment.name}, means over seeds"
        return Table(pd.DataFrame(rows), caption, name="cells", notes=tuple(notes), headline=headline or "")

    def plot(self, axis: str | None = None, measure: str | None = None) -> "Figure":
        """Draws a measure with its interval over an axis; a line or colour for each choice of the other axes.

        Args:
            axis: by default the first.
            measure: by default the headline.

        Raises:
            UserError: if there is no such axis or measure.
        """
        axis, measure = axis or next(iter(self.axes), ""), measure or self.headline
        self._require_axis(axis)
        if measure is None:
            raise UserError("no job is done yet: there is nothing to draw.")
        if measure not in self.measures:
            raise UserError(f"there is no measure {measure!r}: {suggestion(measure, self.measures)}")
        rows = self.cells[self.cells["measure"] == measure].rename(columns={"mean": "value"})
        others = [rows[name].map(label_of) for name in self.axes if name != axis]
        series = [", ".join(labels) for labels in zip(*others, strict=True)] if others else ""
        points = rows.assign(place=rows[axis], series=series, filled=True)
        return axis_figure(points, axis, measure)

    def section(self) -> Section:
        """Returns a section for a report."""
        name = f"experiment-{self.experiment.name}"
        tables = tuple(replace(table, name=f"{name}-{table.name}") for table in self.table())
        figures = []
        for number, axis in enumerate(self.axes if self.headline else (), 1):
            caption = f"{self.headline} over {axis}"
            alt = f"{caption}; the numbers are in the table above it."
            figures.append(ReportFigure(f"{name}-axis-{number}", caption, alt, svg_of(self.plot(axis))))
        about = (self.experiment.about,) if self.experiment.about else ()
        return Section(name, f"Experiment {self.experiment.name}", about, tables, tuple(figures))

    def save(self) -> None:
        """Writes `table.csv` and `cells.csv` into the experiment's folder.

        Raises:
            UserError: if the folder cannot be written.
        """
        for name, frame in (("table.csv", self.frame), ("cells.csv", self.cells)):
            with atomic_path(self.folder / name) as temporary:
                temporary.write_text(to_csv(frame) + "\n", encoding="utf-8", newline="")


def read_sweep(folder: str | Path) -> Sweep:
    """Reads an experiment's folder; runs nothing.

    Raises:
        UserError: if it has no experiment, or a finished job's folder is damaged.
    """
    place = ExperimentFolder(Path(folder).expanduser().absolute())
    return Sweep(place.require(), place.path, job_states(place, place.planned()))
