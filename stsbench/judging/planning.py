"""`plan`: the smallest detectable difference, and the pairs and seeds that a claim needs.

Two models that agree on most pairs need fewer pairs: what counts is the standard error of their difference. A test
at 5 % detects 1.96 + 0.84 standard errors with 80 % power. A claim about methods also faces the spread over seeds,
which more pairs do not reduce.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.base.words import rounded_up
from stsbench.judging.aligned import MANY, AlignedScores, aligned_scores
from stsbench.judging.judgement import OfTwo
from stsbench.judging.runs import Run, named_runs, require_distinct_models
from stsbench.published.measured import seeds
from stsbench.records.kinds import AVERAGES
from stsbench.render.table import Table, Tables
from stsbench.statistics import DEPENDENCE, Dependence
from stsbench.statistics.dependence import Variance
from stsbench.statistics.intervals import detectable, pairs_needed, seeds_needed

_NO_VARIANCE = Variance(0.0, 0.0, math.inf)


@dataclass(frozen=True)
class PlannedTask:
    """What one task or average can show; scores and differences x 100. Unknown values are NaN.

    Attributes:
        kind: kind of the task (see `stsbench.records.kinds`).
        task: name of the task or average.
        size: number of pairs or items.
        a: score of A; `b`: of B.
        error: standard error of their difference.
        smallest: smallest difference that these pairs detect with the planned power.
        pairs: number of similar pairs that detect the planned difference, or that of A and B; infinite if it is 0.
        seed_sd: standard deviation of a method's scores over seeds.
        seeds_here: runs of each method that detect the difference on these pairs; 0 if no number is enough.
        seeds_anywhere: runs of each that detect it on other pairs too; 0 if no number is enough.
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
class Plan(OfTwo):
    """What a comparison of two models on these pairs can detect, and what a comparison of two methods needs.

    Attributes:
        a: name of A; `b`: of B.
        rows: each task; after the tasks of a kind their average.
        difference: the planned difference in points; None for the difference of A and B.
        spread: where the standard deviation over seeds comes from; empty if there is none.
        interval: which pairs are treated as dependent.
    """

    rows: tuple[PlannedTask, ...]
    difference: float | None
    spread: str
    interval: Dependence

    @property
    def sentence(self) -> str:
        """The smallest detectable difference, and the pairs and seeds for the planned one."""
        last = self.rows[-1]
        planned = f"{self.difference:g}" if self.difference else f"{abs(last.a - last.b):.2f}"
        sentence = f"These pairs detect a difference of {last.smallest:.2f} points on {last.task} with 80 % power"
        if last.pairs < MANY:
            sentence += f"; {planned} needs about {rounded_up(last.pairs):,} pairs (you have {last.size:,})"
        if not math.isnan(last.seed_sd):
            here = last.seeds_here or "more than 10,000"
            anywhere = last.seeds_anywhere or "no number is enough"
            sentence += (
                f". Between methods with a standard deviation of {last.seed_sd:.2f} over seeds, a difference of "
                f"{planned} needs {here} seeds of each on these pairs; to hold on other pairs too, {anywhere}"
            )
        return f"{sentence}."

    @property
    def frame(self) -> pd.DataFrame:
        """One row per task and average, with the columns of `PlannedTask`."""
        return pd.DataFrame([asdict(row) for row in self.rows])

    def table(self) -> Tables:
        """Returns standard errors, smallest detectable differences, pairs and, if requested, seeds."""
        planned = "A - B" if self.difference is None else f"{self.difference:g}"
        rows = []
        for row in self.rows:
            cells: dict[str, object] = {
                "task": row.task,
                "pairs": row.size,
                "A": row.a,
                "B": row.b,
                "standard error": row.error,
                "smallest": row.smallest,
                f"pairs for {planned}": f"{rounded_up(row.pairs):,}" if row.pairs < MANY else "–",
            }
            if self.spread:
                is_known = not math.isnan(row.seed_sd)
                cells["seeds' sd"] = row.seed_sd
                cells[f"seeds for {planned}"] = _count(row.seeds_here) if is_known else None
                cells["on other pairs"] = _count(row.seeds_anywhere) if is_known else None
            rows.append(cells)
        return Tables([Table(pd.DataFrame(rows), headline="smallest")])

    @property
    def remarks(self) -> list[str]:
        """What the plan assumes, and the notes; one line each."""
        assumed = "smallest: detected at 5 % with 80 % power, between models that agree as much as these two."
        seeds = [f"seeds: of each method; spread: {self.spread}."] if self.spread else []
        return [assumed, *seeds, *super().remarks]


def plan(
    a: Run,
    b: Run,
    *,
    difference: float | None = None,
    spread: float | str | None = None,
    interval: Dependence = DEPENDENCE,
    progress: Progress = silent,
) -> Plan:
    """Plans a comparison: the smallest detectable difference, and the pairs and seeds that a difference needs.

    Args:
        a: a run's folder or `run.json`, or a record.
        b: a run that agrees with the first about as much as the models to be compared will.
        difference: the difference to detect in points, such as 0.5; by default the difference of the two runs.
        spread: the standard deviation of a method's scores over seeds in points of the average (used for every
            task), or a published system with known seeds (used task by task).
        interval: which pairs are treated as dependent.
        progress: called with the stage and how much of it is done.

    Returns:
        The plan, with the answer as `.sentence`, and `.table()` and `.frame`.

    Raises:
        UserError: if the runs are not comparable or are one model, or a number is out of range.

    Example:
        >>> import stsbench as sb
        >>> models = [lambda texts, k=k: [[len(s), s.count("e"), k * s.count("o")] for s in texts] for k in (0, 3)]
        >>> planned = plan(*(sb.evaluate(model, "sample") for model in models), difference=2, spread=0.9)
        >>> planned.rows[0].seeds_here
        5
    """
    if difference is not None and not (math.isfinite(difference) and difference > 0):
        raise UserError(f"a difference of {difference:g} points: give more than 0, such as 0.5.")
    named = named_runs([a, b])
    tasks, notes = aligned_scores(named, progress=progress)
    require_distinct_models(named)  # after the check of protocols, whose message says more
    spreads, spread_source = _spreads(spread, [task.task for task in tasks])
    rows = [_planned(task, interval, difference, spreads.get(task.task, math.nan)) for task in tasks]
    first, second = named
    return Plan(first, second, tuple(rows), difference, spread_source, interval, notes=notes)


def _planned(task: AlignedScores, method: Dependence, difference: float | None, sd: float) -> PlannedTask:
    a, b = (100 * task.scores).tolist()
    planned, variance = difference or abs(a - b), task.estimate((-1, 1), method).in_points.variance
    smallest = detectable(variance.standard_error)
    pairs = pairs_needed(task.size, planned, smallest)
    row = PlannedTask(task.kind, task.task, task.size, a, b, variance.standard_error, smallest, pairs)
    if math.isnan(sd):
        return row
    here, anywhere = (seeds_needed(planned, sd, over) or 0 for over in (_NO_VARIANCE, variance))
    return replace(row, seed_sd=sd, seeds_here=here, seeds_anywhere=anywhere)


def _spreads(spread: float | str | None, tasks: Sequence[str]) -> tuple[dict[str, float], str]:
    """Returns the standard deviation over seeds by task, and where it comes from."""
    if spread is None:
        return {}, ""
    if isinstance(spread, str):
        frame = seeds(spread)
        known = {task: float(np.std(frame[task], ddof=1)) for task in tasks if task in frame}
        return known, f"{len(frame)} seeds of {spread}"
    if not (math.isfinite(spread) and spread > 0):
        raise UserError(f"a standard deviation of {spread:g} points: give more than 0, such as 0.8.")
    averages = [task for task in tasks if task in AVERAGES]
    # The given number is about the average, or about the only task.
    return dict.fromkeys(averages or tasks, spread), f"a standard deviation of {spread:g}, as given"


def _count(number: int) -> str:
    return f"{number}" if number else "none is enough"
