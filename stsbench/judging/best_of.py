"""`best_of`: the expected best score of n runs, and of how many runs a reported number is the best."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.judging.aligned import common_values
from stsbench.judging.judgement import Judgement
from stsbench.judging.runs import Run, records_of, require_seeds_of_one_recipe
from stsbench.published.catalogue import row
from stsbench.published.measured import logged_dev_scores, logged_systems, seeds, source
from stsbench.records.kinds import AVERAGE, AVERAGES
from stsbench.records.record import RunRecord
from stsbench.render.cells import Named
from stsbench.render.charts import line
from stsbench.render.figures import ONE_COLOUR, new_figure, style
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables
from stsbench.statistics.seeds import best_of_below, best_of_quantiles, expected_best

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN = 10
"""Numbers of runs in the table, besides all of them."""


@dataclass(frozen=True)
class BestOf(Judgement):
    """The best score of n runs.

    Attributes:
        name: what was run.
        task: what was scored.
        scores: score x 100 of each run.
        number: a reported score, or None.
        notes: what limits the answer.
        what: `runs`, or `checkpoints` of one training.
    """

    name: str
    task: str
    scores: tuple[float, ...]
    number: float | None = None
    notes: tuple[str, ...] = ()
    what: str = "runs"

    @property
    def expected(self) -> tuple[float, ...]:
        """The expected best of 1, 2, ... runs."""
        return tuple(expected_best(self.scores).tolist())

    @property
    def typical(self) -> tuple[int, int] | None:
        """The numbers of runs whose expected best is just below and just not below the number.

        The first is 0 if one run is expected to reach it. None if all runs are not enough, or without a number.
        """
        if self.number is None or self.number > self.expected[-1]:
            return None
        below = sum(value < self.number for value in self.expected)
        return below, below + 1

    @property
    def sentence(self) -> str:
        """The mean score, the expected best, and where the number lies."""
        count = len(self.scores)
        start = f"{self.name}: {self.expected[0]:.2f} on {self.task}, the mean of {count} {self.what}"
        if self.number is None:
            few = min(5, count)
            best = f"{self.expected[few - 1]:.2f}, of {count}: {self.expected[-1]:.2f}"
            return f"{start}; expected best of {few}: {best}."
        number = f"{self.number:.2f}"
        if self.typical is None:
            return f"{start}; {number} is above the best of all of them, {self.expected[-1]:.2f}."
        below, above = self.typical
        share = f"{100 * best_of_below(self.scores, self.number)[0]:.0f} % of single {self.what} score less"
        if not below:
            return f"{start}; {number} is not above this mean ({share})."
        return f"{start}; {number} is the expected best of {below} or {above} {self.what} ({share})."

    @property
    def frame(self) -> pd.DataFrame:
        """One row per number of `runs`: the `expected` best, its 5, 50 and 95 % quantiles `low`, `median`, `high`.

        With a number, `below` is the share of such bests that are below it.
        """
        columns: dict[str, Any] = {
            "runs": np.arange(1, len(self.scores) + 1),
            "expected": expected_best(self.scores),
            "low": best_of_quantiles(self.scores, 0.05),
            "median": best_of_quantiles(self.scores, 0.5),
            "high": best_of_quantiles(self.scores, 0.95),
        }
        if self.number is not None:
            columns["below"] = best_of_below(self.scores, self.number)
        return pd.DataFrame(columns)

    def table(self) -> Tables:
        """Returns the expected best of 1 to 10 runs and of all, with a 90 % range."""
        frame = self.frame
        frame = frame[(frame["runs"] <= _SHOWN) | (frame["runs"] == len(frame))]
        task = Named("task", self.task)
        shown = frame.rename(columns={"runs": "best of", "expected": task, "low": "5 %", "high": "95 %"})
        if self.number is not None:
            shown = shown.rename(columns={"below": f"below {self.number:.2f}"})
            shown[f"below {self.number:.2f}"] = [f"{100 * share:.0f} %" for share in frame["below"]]
        return Tables([Table(shown, headline=task)])

    def plot(self) -> "Figure":
        """Returns the expected best by number of runs, with its 90 % range and the number."""
        frame = self.frame
        with style():
            figure = new_figure()
            axes = figure.add_subplot()
            line(
                axes,
                self.task,
                frame["runs"],
                frame["expected"],
                ONE_COLOUR,
                low=frame["low"],
                high=frame["high"],
                places=[f"best of {runs}" for runs in frame["runs"]],
                markersize=2.5,
                marker="o",
            )
            if self.number is not None:
                axes.axhline(self.number, color="0.3", linewidth=0.8, linestyle="--")
                beside = axes.get_yaxis_transform()
                axes.text(1, self.number, f" {self.number:.2f}", transform=beside, va="center", fontsize=7)
            axes.set_xlabel(f"number of {self.what}")
            axes.set_ylabel(f"best {self.task} (band: 90 %)")
            axes.locator_params(axis="x", integer=True)
        return figure

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields as plain data, and the rows of `frame` as `bests`."""
        return {"sentence": self.sentence, **asdict(self), "bests": Result.to_dict(self)}


def best_of(
    runs: str | Sequence[Run],
    number: float | str | None = None,
    *,
    task: str = "",
) -> BestOf:
    """Estimates the best score of n runs, and of how many runs a reported number is the best.

    Args:
        runs: runs of one recipe with different seeds; or a published system with known seeds; or, with the task
            `STS-B:dev` or `SICK-R:dev`, a system with a training log, whose checkpoints are the runs.
        number: a score in points, or a published row (`table/row`, or a system) whose value is used. By default
            the published value of the system in `runs`.
        task: the task; by default the average over tasks, or the only task.

    Returns:
        The estimate, with the answer as `.sentence`, and `.table()`, `.frame` and `.plot()`.

    Raises:
        UserError: if there are fewer than two runs, they are of different recipes, or the task or number is
            unknown.

    Example:
        >>> best = best_of("unsup-simcse-bert-base")
        >>> best.number, best.typical
        (76.25, (7, 8))
    """
    if isinstance(runs, str):
        name, chosen = runs, task or AVERAGE
        kind, scores = _published_scores(runs, chosen)
        notes: tuple[str, ...] = (f"the scores are from: {source(kind).title}.",)
        number = runs if number is None and kind == "seeds" else number
    else:
        name, chosen, scores = _own_scores(records_of(runs), task)
        notes, kind = (), "seeds"
    value = _published_value(number, chosen) if isinstance(number, str) else number
    if value is not None and not math.isfinite(value):
        raise UserError(f"a score of {value}: give a number of points, such as 76.25.")
    return BestOf(name, chosen, tuple(scores), value, notes, "runs" if kind == "seeds" else "checkpoints")


def _published_scores(system: str, task: str) -> tuple[str, list[float]]:
    """Returns `seeds` and their scores, or `training-logs` and the dev scores of one training's checkpoints."""
    curve, _, split = task.partition(":")
    if split == "dev" and system in logged_systems():
        frame = logged_dev_scores(system)
        if curve in frame:
            return "training-logs", (100 * frame[curve].dropna()).tolist()
    frame = seeds(system)
    if task not in frame:
        raise UserError(f"no seeds of {system} are known on {task!r}: {suggestion(task, map(str, frame.columns))}")
    return "seeds", frame[task].tolist()


def _published_value(name: str, task: str) -> float:
    published = row(name)
    names = {task, "Avg. STS" if task == AVERAGE else task}
    for cell in published.cells:
        if cell.score is not None and (cell.column in names or cell.setting.task in names):
            return cell.score
    raise UserError(f"{published.name} has no value on {task}: give the number itself.")


def _own_scores(records: Sequence[RunRecord], task: str) -> tuple[str, str, list[float]]:
    """Returns a name for the runs, the task, and their scores x 100."""
    if len(records) < 2:
        raise UserError("expected at least two runs of one recipe, got one.")
    names = {
        f"run {place}" if run.folder is None else str(run.folder): run for place, run in enumerate(records, 1)
    }
    if len(names) < len(records):
        raise UserError("a run is named twice: give each run once.")
    require_seeds_of_one_recipe(names)
    values, _ = common_values(names)
    scores = {label: of_runs.tolist() for (_, label), of_runs in values.items() if not np.isnan(of_runs).any()}
    chosen = task or next((name for name in (*AVERAGES, *scores) if name in scores), "")
    if chosen not in scores:
        raise UserError(
            f"the runs have no score in common on {chosen or 'any task'!r}: {suggestion(chosen, scores)}"
        )
    return f"{next(iter(names))} and {len(names) - 1} more", chosen, scores[chosen]
