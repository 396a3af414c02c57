"""`best_of`: what the best of n runs scores, and where a published number lies among such."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.judging.aligned import common_values
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
from stsbench.render.text import one_line
from stsbench.statistics.seeds import best_of_below, best_of_quantiles, expected_best

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FEW_POINTS = 30
"""Numbers of runs that the curve has a dot each for; more would lie on one another."""

_SHOWN = 10
"""Numbers of runs that a table for readers has, beside all of them as the last."""


@dataclass(frozen=True)
class BestOf(Result):
    """What the best of n runs scores.

    Attributes:
        name: whose runs.
        task: what was scored.
        scores: x 100, of each run.
        number: a published score, or the best of somebody's runs; None for none.
        notes: what a reader should know.
        what: whether the scores are of `runs`, or of `checkpoints` of one training.
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
        """How many runs have the number as their best on average, as the last below it and the first not below it.

        0 as the first if a single run scores as much on average; None if not even the best of all does, or there
        is no number.
        """
        if self.number is None or self.number > self.expected[-1]:
            return None
        below = sum(value < self.number for value in self.expected)
        return below, below + 1

    @property
    def sentence(self) -> str:
        """What a run and the best of some score on average, and where the number lies."""
        count = len(self.scores)
        start = f"{self.name} scores {self.expected[0]:.2f} on {self.task} on average over {count} {self.what}"
        if self.number is None:
            few = min(5, count)
            return (
                f"{start}; the best of {few} {self.expected[few - 1]:.2f}, of all {count} {self.expected[-1]:.2f}."
            )
        number = f"{self.number:.2f}"
        if self.typical is None:
            return f"{start}; {number} is above the best of all of them, {self.expected[-1]:.2f}."
        below, above = self.typical
        share = f"{100 * best_of_below(self.scores, self.number)[0]:.0f} % of single {self.what} are below it"
        if not below:
            return f"{start}; {number} is no more than one of the {self.what} scores on average, {share}."
        return f"{start}; {number} is what the best of {below} or {above} {self.what} gives on average, {share}."

    @property
    def frame(self) -> pd.DataFrame:
        """A row per number of `runs`: the `expected` best, its 5, 50 and 95 % quantiles `low`, `median`, `high`.

        `below` is the share of such bests that are below the number, if there is one.
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
        """Return the best of 1 to 10 runs and of all, with the range that nine in ten of such bests lie in."""
        frame = self.frame
        frame = frame[(frame["runs"] <= _SHOWN) | (frame["runs"] == len(frame))]
        task = Named("task", self.task)
        shown = frame.rename(columns={"runs": "best of", "expected": task, "low": "5 %", "high": "95 %"})
        if self.number is not None:
            shown = shown.rename(columns={"below": f"below {self.number:.2f}"})
            shown[f"below {self.number:.2f}"] = [f"{100 * share:.0f} %" for share in frame["below"]]
        return Tables([Table(shown, headline=task)])

    def plot(self) -> "Figure":
        """Return the curve: the expected best by number of runs, with the range of nine in ten, and the number."""
        frame = self.frame
        with style():
            figure = new_figure()
            axes = figure.add_subplot()
            limits: dict[str, Any] = {"low": frame["low"], "high": frame["high"]}
            words = [f"best of {runs}" for runs in frame["runs"]]
            drawn: dict[str, Any] = {
                "places": words,
                "markersize": 2.5,
                "marker": "o" if len(frame) <= _FEW_POINTS else "",
            }
            line(axes, self.task, frame["runs"], frame["expected"], ONE_COLOUR, **limits, **drawn)
            if self.number is not None:
                axes.axhline(self.number, color="0.3", linewidth=0.8, linestyle="--")
                how: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points"}
                how |= {"va": "center", "color": "0.3", "fontsize": 7, "annotation_clip": False}
                axes.annotate(f"{self.number:.2f}", (1, self.number), (4, 0), **how)
            axes.set_xlabel(f"best of so many {self.what}")
            axes.set_ylabel(f"{self.task} (band: 90 %)")
            axes.locator_params(axis="x", integer=True)
        return figure

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return {"sentence": self.sentence, **asdict(self), "bests": super().to_dict()}

    def __str__(self) -> str:
        """Return what a terminal shows: the table, the sentence, and what to know."""
        words = [self.sentence, *(f"note: {note}" for note in self.notes)]
        return f"{self.table()}\n\n" + "\n".join(map(one_line, words))


def best_of(
    runs: str | Sequence[Run],
    number: float | str | None = None,
    *,
    task: str = "",
) -> BestOf:
    """Tell what the best of n runs scores on average, and which n gives a published number.

    Args:
        runs: runs of one recipe with different seeds; or a published system that many seeds are known of, or (with
            the task `STS-B:dev` or `SICK-R:dev`) a training log: then n checkpoints of the training are looked at.
        number: a score in points: the answer tells of how many runs the best scores that much on average. A
            published row (`table/row`, or a system) stands for its value. By default the published value of the
            system, if one is named in place of runs.
        task: the task whose scores are looked at; by default the average over tasks, or the only task.

    Returns:
        `.sentence` says it, `.table()` and `.frame` hold the expected best by number of runs, `.plot()` the curve.

    Raises:
        UserError: if there are fewer than two runs, they are of different recipes, or the task or number is not
            known.

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
    """Return `seeds` and their scores, or `training-logs` and those of one training's checkpoints on dev."""
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
    wanted = {task, "Avg. STS" if task == AVERAGE else task}
    for cell in published.cells:
        if cell.score is not None and (cell.column in wanted or cell.setting.task in wanted):
            return cell.score
    raise UserError(f"{published.name} has no value on {task}: give the number itself.")


def _own_scores(records: Sequence[RunRecord], task: str) -> tuple[str, str, list[float]]:
    """Return a name of some runs, of the task, and their scores x 100."""
    if len(records) < 2:
        raise UserError("the best of one run is that run: name several of one recipe.")
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
