"""`plan`: the smallest detectable difference, and the pairs and seeds that a claim needs.

Two models that agree on most pairs need fewer pairs, because the standard error of their difference is smaller. A
test at 5 % detects 1.96 + 0.84 standard errors with 80 % power. A claim about methods must also account for the
spread over seeds, which more pairs do not reduce.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.base.words import rounded_up
from stsbench.judging.aligned import MANY, AlignedScores, aligned_scores
from stsbench.judging.runs import Run, choose_runs
from stsbench.judging.verdicts import OfTwo, records
from stsbench.published.catalogue import seeds
from stsbench.records.kinds import AVERAGES
from stsbench.render.table import Table, Tables
from stsbench.statistics import DEPENDENCE, Dependence
from stsbench.statistics.dependence import Variance
from stsbench.statistics.intervals import detectable, pairs_needed, seeds_needed

_NO_VARIANCE = Variance(0.0, 0.0, math.inf)


@dataclass(frozen=True, eq=False)
class Plan(OfTwo):
    """The differences that these pairs can detect between two models, and the runs that a comparison of two
    methods needs.

    Attributes:
        a: name of A; `b`: of B.
        rows: a row per task; after the tasks of a kind their average. Scores and differences are x 100.

            - `kind`, `task`, `size` in pairs or items, the scores `a` and `b`;
            - `error`: standard error of their difference; `smallest`: the smallest difference that these pairs
              detect with the planned power; `pairs`: number of similar pairs that detect the planned difference,
              or that of A and B (infinite if it is 0);
            - `seed_sd`: standard deviation of a method's scores over seeds, NaN if unknown; `seeds_here`: runs of
              each method that detect the difference on these pairs; `seeds_anywhere`: on other pairs too. 0 if no
              number is enough.
        difference: the planned difference in points; None for the difference of A and B.
        spread: where the standard deviation over seeds comes from; empty if there is none.
        interval: which pairs are treated as dependent.
    """

    difference: float | None
    spread: str
    interval: Dependence

    @property
    def sentence(self) -> str:
        """The smallest detectable difference, and the pairs and seeds for the planned one."""
        last = records(self.rows)[-1]
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

    def table(self) -> Tables:
        """Returns standard errors, smallest detectable differences, pairs and, if requested, seeds."""
        planned = "A - B" if self.difference is None else f"{self.difference:g}"
        heads = {"task": "task", "size": "pairs", "a": "A", "b": "B", "error": "standard error"}
        heads |= {"smallest": "smallest", "pairs": f"pairs for {planned}"}
        pairs = self.rows["pairs"].map(lambda pairs: f"{rounded_up(pairs):,}" if pairs < MANY else "–")
        shown = self.rows.assign(pairs=pairs)
        if self.spread:
            heads |= {
                "seed_sd": "seeds' sd",
                "seeds_here": f"seeds for {planned}",
                "seeds_anywhere": "on other pairs",
            }
            is_known = shown["seed_sd"].notna()
            for name in ("seeds_here", "seeds_anywhere"):
                shown[name] = (
                    shown[name].map(lambda seeds: f"{seeds}" if seeds else "none is enough").where(is_known)
                )
        return Tables([Table(shown[list(heads)].rename(columns=heads), headline="smallest")])

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
        UserError: if the runs are not comparable or one model, or a number is out of range.

    Example:
        >>> import stsbench as sb
        >>> models = [lambda texts, k=k: [[len(s), s.count("e"), k * s.count("o")] for s in texts] for k in (0, 3)]
        >>> planned = plan(*(sb.evaluate(model, "sample") for model in models), difference=2, spread=0.9)
        >>> planned.rows["seeds_here"].tolist()
        [5]
    """
    if difference is not None and not (math.isfinite(difference) and difference > 0):
        raise UserError(f"a difference of {difference:g} points: give more than 0, such as 0.5.")
    named, _ = choose_runs([a, b], 2, comparable=True)
    tasks, notes = aligned_scores(named, progress=progress)
    spreads, spread_source = _spreads(spread, [task.task for task in tasks])
    rows = [_planned(task, interval, difference, spreads.get(task.task, math.nan)) for task in tasks]
    first, second = named
    return Plan(first, second, pd.DataFrame(rows), difference, spread_source, interval, notes=notes)


def _planned(task: AlignedScores, method: Dependence, difference: float | None, sd: float) -> dict[str, Any]:
    a, b = (100 * task.scores).tolist()
    planned, variance = difference or abs(a - b), task.estimate((-1, 1), method).in_points.variance
    smallest = detectable(variance.standard_error)
    row = {"kind": task.kind, "task": task.task, "size": task.size, "a": a, "b": b}
    row |= {"error": variance.standard_error, "smallest": smallest}
    row |= {"pairs": pairs_needed(task.size, planned, smallest), "seed_sd": sd}
    for name, over in (("seeds_here", _NO_VARIANCE), ("seeds_anywhere", variance)):
        row[name] = 0 if math.isnan(sd) else seeds_needed(planned, sd, over) or 0
    return row


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
