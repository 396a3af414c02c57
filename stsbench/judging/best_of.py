"""`best_of`: the expected best of n runs, and how many runs it takes to reach a reported number."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.judging.aligned import common_values
from stsbench.judging.runs import Run, choose_runs, group_seeds
from stsbench.judging.verdicts import Judgement
from stsbench.published.catalogue import logged_dev_scores, logged_systems, row, seeds, source
from stsbench.records.kinds import AVERAGE, AVERAGES
from stsbench.render.table import Result, Table, Tables
from stsbench.statistics.seeds import best_of_below, best_of_quantiles, expected_best

_SHOWN = 10
"""The numbers of runs in the table; the last row is all runs."""


@dataclass(frozen=True)
class BestOf(Judgement):
    """The best score of n runs.

    Attributes:
        name: the method.
        task: the scored task.
        scores: score x 100 of each run.
        number: a reported score, or None.
        what: `runs`, or `checkpoints` of one training.
    """

    name: str
    task: str
    scores: tuple[float, ...]
    number: float | None = None
    what: str = "runs"

    @property
    def typical(self) -> tuple[int, int] | None:
        """The numbers of runs whose expected best is just below and just not below the number.

        The first is 0 if one run is expected to reach it. None if all runs are not enough, or without a number.
        """
        expected = expected_best(self.scores)
        if self.number is None or self.number > expected[-1]:
            return None
        below = int((expected < self.number).sum())
        return below, below + 1

    @property
    def sentence(self) -> str:
        """The mean score, the expected best, and where the number lies."""
        count, expected = len(self.scores), expected_best(self.scores)
        start = f"{self.name}: {expected[0]:.2f} on {self.task}, the mean of {count} {self.what}"
        if self.number is None:
            few = min(5, count)
            return f"{start}; expected best of {few}: {expected[few - 1]:.2f}, of {count}: {expected[-1]:.2f}."
        if self.typical is None:
            return f"{start}; {self.number:.2f} is above the best of them all, {expected[-1]:.2f}."
        share = f"({100 * best_of_below(self.scores, self.number)[0]:.0f} % of single {self.what} score less)"
        below, above = self.typical
        where = f"the expected best of {below} or {above} {self.what}" if below else "not above this mean"
        return f"{start}; {self.number:.2f} is {where} {share}."

    @property
    def frame(self) -> pd.DataFrame:
        """One row per number of `runs`: the `expected` best, its 5, 50 and 95 % quantiles `low`, `median`, `high`.

        With a number, `below` is the share of such bests that are below it.
        """
        quantiles = {"low": 0.05, "median": 0.5, "high": 0.95}
        columns: dict[str, Any] = {
            "runs": np.arange(1, len(self.scores) + 1),
            "expected": expected_best(self.scores),
            **{name: best_of_quantiles(self.scores, share) for name, share in quantiles.items()},
        }
        if self.number is not None:
            columns["below"] = best_of_below(self.scores, self.number)
        return pd.DataFrame(columns)

    def table(self) -> Tables:
        """Returns the expected best of 1 to 10 runs and of all, with a 90 % range."""
        frame = self.frame
        frame = frame[(frame["runs"] <= _SHOWN) | (frame["runs"] == len(frame))]
        shown = frame.rename(columns={"runs": "best of", "expected": self.task, "low": "5 %", "high": "95 %"})
        if self.number is not None:
            shares = [f"{100 * share:.0f} %" for share in shown.pop("below")]
            shown[f"below {self.number:.2f}"] = shares
        return Tables([Table(shown, headline=self.task)])

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields as plain data, and the rows of `frame` as `bests`."""
        return super().to_dict() | {"bests": Result.to_dict(self)}


def best_of(runs: str | Sequence[Run], number: float | str | None = None, *, task: str = "") -> BestOf:
    """Estimates the best score of n runs, and how many runs it takes to reach a reported number.

    Args:
        runs: runs of one recipe with different seeds; or a published system with known seeds; or, with the task
            `STS-B:dev` or `SICK-R:dev`, a system with a training log, whose checkpoints are the runs.
        number: a score in points, or a published row (`table/row`, or a system) whose value is used. By default
            the published value of the system in `runs`.
        task: the task; by default the average over tasks, or the only task.

    Returns:
        The estimate, with the answer as `.sentence`, and `.table()` and `.frame`.

    Raises:
        UserError: if there are fewer than two runs, they are of different recipes, or the task or number is
            unknown.

    Example:
        >>> best = best_of("unsup-simcse-bert-base")
        >>> best.number, best.typical
        (76.25, (7, 8))
    """
    best = _published_runs(runs, task or AVERAGE) if isinstance(runs, str) else _own_runs(runs, task)
    if number is None and isinstance(runs, str) and best.what == "runs":
        number = runs
    value = _published_value(number, best.task) if isinstance(number, str) else number
    if value is not None and not math.isfinite(value):
        raise UserError(f"a score of {value}: give a number of points, such as 76.25.")
    return replace(best, number=value)


def _published_runs(system: str, task: str) -> BestOf:
    """Returns the known seeds of a system, or the dev scores of the checkpoints in its log."""
    scores: dict[str, pd.Series[float]] = {}
    if task.endswith(":dev") and system in logged_systems():
        kind, what = "training-logs", "checkpoints"
        log = logged_dev_scores(system)
        scores = {f"{name}:dev": 100 * log[name].dropna() for name in log}
    if task not in scores:
        of_seeds = seeds(system)
        kind, what, scores = "seeds", "runs", {str(name): of_seeds[name] for name in of_seeds}
    if task not in scores:
        raise UserError(f"no seeds of {system} are known on {task!r}: {suggestion(task, scores)}")
    notes = (f"the scores are from: {source(kind).title}.",)
    return BestOf(system, task, tuple(scores[task].tolist()), what=what, notes=notes)


def _published_value(name: str, task: str) -> float:
    published = row(name)
    names = {task, "Avg. STS" if task == AVERAGE else task}
    for cell in published.cells:
        if cell.score is not None and (cell.column in names or cell.setting.task in names):
            return cell.score
    raise UserError(f"{published.name} has no value on {task}: give the number itself.")


def _own_runs(runs: Sequence[Run], task: str) -> BestOf:
    named, _ = choose_runs(runs, 2)
    group_seeds(named, dict.fromkeys(named, task))
    values, notes = common_values(named)
    scores = {label: of_runs.tolist() for (_, label), of_runs in values.items() if not np.isnan(of_runs).any()}
    chosen = task or next((name for name in (*AVERAGES, *scores) if name in scores), "")
    if chosen not in scores:
        raise UserError(
            f"the runs have no score in common on {chosen or 'any task'!r}: {suggestion(chosen, scores)}"
        )
    name = f"{next(iter(named))} and {len(named) - 1} more"
    return BestOf(name, chosen, tuple(scores[chosen]), notes=notes)
