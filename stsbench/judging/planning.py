"""`plan`: which difference can these pairs show, how many pairs and how many seeds does a claim take?

Two models that agree on most pairs need fewer of them to be told apart than two that do not: what counts is the
standard error of their difference. A test of 5 % finds 1.96 + 0.84 standard errors with 80 % power.
For a claim of methods the spread of seeds comes to it, which no number of pairs makes smaller.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.base.words import rounded_up
from stsbench.judging.aligned import MANY, AlignedScores, aligned_scores, in_points
from stsbench.judging.comparison import Judgement
from stsbench.judging.runs import Run, named_runs, require_distinct_models
from stsbench.published.measured import seeds
from stsbench.records.kinds import AVERAGES
from stsbench.render.table import Table, Tables
from stsbench.statistics import DEPENDENCE, Dependence
from stsbench.statistics.dependence import Variance
from stsbench.statistics.intervals import detectable, pairs_needed, seeds_needed

POWER = 0.8


@dataclass(frozen=True)
class PlannedTask:
    """What can be shown on one task or on average; scores and differences x 100. NaN where something is not known.

    Attributes:
        kind: of the task (see `stsbench.records.kinds`).
        task: its name; of an average what that of its kind is called.
        size: the number of pairs or items.
        a: the score of A; `b`: of B.
        error: standard error of their difference.
        smallest: the smallest difference that these pairs show with the planned power.
        pairs: how many pairs like these show the planned difference of two models with that power, or where none
            is planned the difference of A and B; infinite where that is 0.
        seed_sd: standard deviation of a method's scores over seeds.
        seeds_here: runs of each method that show that difference on these pairs; 0 where no number is enough.
        seeds_anywhere: runs of each that show it for other pairs like these, too; 0 where no number is enough.
    """

    kind: str
    task: str
    size: int
    a: float
    b: float
    error: float
    smallest: float
    pairs: float
    seed_sd: float = math.nan
    seeds_here: int = 0
    seeds_anywhere: int = 0


@dataclass(frozen=True)
class Plan(Judgement):
    """What a comparison of two models on these pairs can show, and what one of two methods takes.

    Attributes:
        a: the name of A; `b`: of B.
        rows: each task; after the tasks of a kind their average.
        difference: the planned difference in points; None for the difference of A and B.
        spread: where the seeds' standard deviation comes from; empty for nowhere.
        level: 1 - level is the test's size.
        power: the chance to find the difference where it is there.
        interval: how pairs that share sentences were seen.
        notes: what a reader should know.
    """

    a: str
    b: str
    rows: tuple[PlannedTask, ...]
    difference: float | None
    spread: str
    level: float
    power: float
    interval: Dependence
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """What these pairs can show, and how many seeds the planned difference takes."""
        last = self.rows[-1]
        sentence = (
            f"For two models that agree as much as {self.a} and {self.b} these pairs show a difference of "
            f"{last.smallest:.2f} points on {last.task} with {100 * self.power:g} % power"
        )
        if last.pairs < MANY:
            what = f"one of {self.difference:g}" if self.difference else f"their own of {abs(last.a - last.b):.2f}"
            sentence += f"; {what} takes about {rounded_up(last.pairs):,} pairs like these {last.size:,}"
        if not self.spread or math.isnan(last.seed_sd):
            return f"{sentence}."
        planned = f"{self.difference:g}" if self.difference else f"{abs(last.a - last.b):.2f}"
        here = f"{last.seeds_here} seeds of each" if last.seeds_here else "more than 10,000 seeds of each"
        anywhere = (
            f"{last.seeds_anywhere} for other pairs like these, too"
            if last.seeds_anywhere
            else "and no number of seeds shows it for other pairs, since these are too few"
        )
        return (
            f"{sentence}. A difference of {planned} between methods whose seeds have a standard "
            f"deviation of {last.seed_sd:.2f} takes {here} on these pairs, {anywhere}."
        )

    @property
    def frame(self) -> pd.DataFrame:
        """One row per task and average, with the columns of `PlannedTask`."""
        return pd.DataFrame([asdict(row) for row in self.rows])

    def table(self) -> Tables:
        """Return standard errors, smallest differences, the pairs that one takes, and seeds if asked for."""
        planned = "A - B" if self.difference is None else f"{self.difference:g}"
        rows = []
        for row in self.rows:
            pairs = f"{rounded_up(row.pairs):,}" if row.pairs < MANY else "–"
            cells: dict[str, object] = {
                "task": row.task,
                "pairs": row.size,
                "A": row.a,
                "B": row.b,
                "standard error": row.error,
                "smallest": row.smallest,
                f"pairs for {planned}": pairs,
            }
            if self.spread:
                known = not math.isnan(row.seed_sd)
                cells["seeds' sd"] = row.seed_sd
                cells[f"seeds for {planned}"] = _count(row.seeds_here) if known else None
                cells["on other pairs"] = _count(row.seeds_anywhere) if known else None
            rows.append(cells)
        return Tables([Table(pd.DataFrame(rows), headline="smallest")])

    @property
    def words(self) -> list[str]:
        """What the columns are, and the notes; a line each."""
        lines = [
            f"A: {self.a}",
            f"B: {self.b}",
            f"smallest: the difference that a test of {100 * (1 - self.level):g} % finds with "
            f"{100 * self.power:g} % power on these pairs, for two models that agree as much as these do",
        ]
        if self.spread:
            lines.append(f"seeds: of each method; their spread is {self.spread}")
        return [*lines, *(f"note: {note}" for note in self.notes)]


def plan(
    a: Run,
    b: Run,
    *,
    difference: float | None = None,
    spread: float | str | None = None,
    level: float = 0.95,
    power: float = POWER,
    interval: Dependence = DEPENDENCE,
    progress: Progress = silent,
) -> Plan:
    """Plan a comparison: what can these pairs show, and how many pairs and seeds does a difference take?

    Args:
        a: a run's folder or `run.json`. In Python also a record.
        b: a run of a model that agrees with the first about as much as those to be compared will.
        difference: the difference to find, in points (0.5, say): the plan tells how many pairs that takes. By
            default the difference of the two runs.
        spread: the standard deviation of a method's scores over seeds, in points of the average (taken for every
            task), or a published system whose seeds are known (task by task). It tells how many seeds the
            difference takes if it is one between methods.
        level: one minus the size of the test: 0.95 for a test at 5 %.
        power: the chance to find the difference if it is there.
        interval: which pairs depend on each other, whatever the records' own intervals are.
        progress: told how far it is.

    Returns:
        `.sentence` says it, `.table()` and `.frame` hold it by task.

    Raises:
        UserError: if the two do not compare, are one model, or a number makes no sense.

    Example:
        >>> import stsbench as sb
        >>> models = [lambda texts, k=k: [[len(s), s.count("e"), k * s.count("o")] for s in texts] for k in (0, 3)]
        >>> planned = plan(*(sb.evaluate(model, "sample") for model in models), difference=2, spread=0.9)
        >>> planned.rows[0].seeds_here
        5
    """
    for name, share in (("level", level), ("power", power)):
        if not 0 < share < 1:
            raise UserError(f"a {name} of {share}: give a share between 0 and 1, such as 0.8.")
    if difference is not None and not (math.isfinite(difference) and difference > 0):
        raise UserError(f"a difference of {difference:g} points: give more than 0, such as 0.5.")
    named = named_runs([a, b])
    tasks, notes = aligned_scores(named, progress=progress)
    require_distinct_models(named)  # of two that do not compare, another protocol is the better reason
    spreads, spread_source = _spreads(spread, [task.task for task in tasks])
    rows = [
        _planned(task, interval, difference, spreads.get(task.task, math.nan), (level, power)) for task in tasks
    ]
    first, second = named
    return Plan(first, second, tuple(rows), difference, spread_source, level, power, interval, notes)


def _planned(
    task: AlignedScores, method: Dependence, difference: float | None, sd: float, test: tuple[float, float]
) -> PlannedTask:
    level, power = test
    variance = in_points(task.variance_of((-1.0, 1.0), method))
    a, b = (100 * task.scores).tolist()
    smallest = detectable(variance.standard_error, level=level, power=power)
    planned = difference or abs(a - b)
    pairs = pairs_needed(task.size, planned, smallest)
    row = PlannedTask(task.kind, task.task, task.size, a, b, variance.standard_error, smallest, pairs)
    if math.isnan(sd):
        return row
    return replace(
        row,
        seed_sd=sd,
        seeds_here=seeds_needed(planned, sd, Variance(0.0, 0.0, math.inf), level=level, power=power) or 0,
        seeds_anywhere=seeds_needed(planned, sd, variance, level=level, power=power) or 0,
    )


def _spreads(spread: float | str | None, tasks: Sequence[str]) -> tuple[Mapping[str, float], str]:
    """Return the seeds' standard deviation by task, and where it comes from."""
    if spread is None:
        return {}, ""
    if isinstance(spread, str):
        frame = seeds(spread)
        known = {task: float(np.std(frame[task], ddof=1)) for task in tasks if task in frame}
        return known, f"that of {len(frame)} seeds of {spread}"
    if not (math.isfinite(spread) and spread > 0):
        raise UserError(f"a standard deviation of {spread:g} points: give more than 0, such as 0.8.")
    averages = [task for task in tasks if task in AVERAGES]
    # Of the average, which tasks need not share; where there is one task alone, of that.
    return dict.fromkeys(averages or tasks, spread), f"a standard deviation of {spread:g}, as given"


def _count(number: int) -> str:
    return f"{number}" if number else "none is enough"
