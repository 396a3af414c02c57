"""The difference of two cells of a table, with an error over other seeds and other pairs.

The error is over seeds only if the pairs are not known. Intervals are Student's, so two or three seeds detect
only large differences.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from stsbench.base.errors import UserError
from stsbench.judging.aligned import AlignedScores, aligned_scores
from stsbench.judging.seeds import runs_over_pairs
from stsbench.records.record import RunRecord
from stsbench.statistics import DEPENDENCE, LEVEL
from stsbench.statistics.dependence import Variance
from stsbench.statistics.estimate import Estimate
from stsbench.statistics.intervals import seeds_needed
from stsbench.statistics.seeds import Runs, mean_variance

_ONE_RUN = "the error is unknown: one run does not show how much seeds differ"
_ONE_CHECKPOINT = "pairs, of one checkpoint"
_TWO_CHECKPOINTS = "pairs, of these two checkpoints, not of other seeds"

_NO_VARIANCE = Variance(0.0, 0.0, math.inf)


@dataclass(frozen=True)
class Numbers:
    """The numbers of a cell: one for each seed.

    Attributes:
        values: by seed (0 for a checkpoint): scores x 100, or an analysis' numbers.
        runs: the records of the values by seed; empty if they are not scores of a record.
        task: the name of the task or average in the records.
        error: standard error of the only value over pairs, from an analysis; NaN for unknown.
        training: identifies the trainings that the values come from.
        checkpoint: the public checkpoint of the only value; empty if it was trained.
        low: lower limit of the interval of the mean, and `high`: the upper; NaN for none.
        over: the sources of the error: `seeds and pairs`, `seeds`, `pairs`; empty for none.
        last: the mean of the last steps; NaN for unknown.
    """

    values: Mapping[int, float]
    runs: Mapping[int, RunRecord] = field(default_factory=dict)
    task: str = ""
    error: float = math.nan
    training: str = ""
    checkpoint: str = ""
    low: float = math.nan
    high: float = math.nan
    over: str = ""
    last: float = math.nan

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return float(np.mean(list(self.values.values())))

    @property
    def sd(self) -> float:
        """The sample standard deviation over seeds; NaN for one."""
        return float(np.std(list(self.values.values()), ddof=1)) if len(self.values) > 1 else math.nan


@dataclass(frozen=True)
class ClaimedDifference:
    """A difference that a claim asks to be above 0.

    Attributes:
        of: a description.
        value: in points.
        low: lower limit of its interval, and `high`: the upper; NaN if no error is known.
        p: two-sided.
        seeds: the smaller number of runs.
        over: the sources of the error: `seeds and pairs`, `seeds`, `pairs`; or why none is known.
        needed: seeds of each that decide a difference of this size with 80 % power; 0 if no number does, None for
            unknown.
        is_one_run: whether a side is one run of its method, so that nothing follows for the method.
    """

    of: str
    value: float
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    seeds: int = 1
    over: str = ""
    needed: int | None = None
    is_one_run: bool = False


class Comparer:
    """Computes differences between cells, and collects notes on missing errors."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def difference(self, of: str, a: Numbers, b: Numbers, *, margin: float = 0.0) -> ClaimedDifference:
        """Returns a minus b minus a margin; cells of the same trainings are compared seed by seed."""
        value, sizes = a.mean - b.mean - margin, (len(a.values), len(b.values))
        if a.training and a.training == b.training:
            return _seed_by_seed(of, value, _by_seed(a, b))
        aligned = self._aligned(a, b)
        if sizes == (1, 1):
            return self._of_one_run_each(of, value, a, b, aligned)
        if min(sizes) < 2:
            return ClaimedDifference(of, value, seeds=min(sizes), over=_ONE_RUN)
        scores = [np.array(list(side.values.values())) for side in (a, b)]
        methods, over_pairs = [Runs(side, 0.0) for side in scores], _NO_VARIANCE
        if aligned is not None:
            methods, over_pairs = runs_over_pairs(scores, aligned, DEPENDENCE)
        of_mean = mean_variance(methods, over_pairs)
        variance = Variance(of_mean.value, of_mean.value, of_mean.df)
        sd = math.sqrt(float(np.mean([side.var(ddof=1) for side in scores])))
        over = "seeds and pairs" if aligned is not None else "seeds alone"
        return _tested(of, value, variance, min(sizes), over, needed=_needed(value, sd, over_pairs))

    def gap(self, of: str, larger: tuple[Numbers, Numbers], smaller: tuple[Numbers, Numbers]) -> ClaimedDifference:
        """Returns the difference of a pair of cells minus that of another pair."""
        a, b = (Numbers(dict(enumerate(_by_seed(*pair)))) for pair in (larger, smaller))
        return self.difference(of, a, b)

    def _of_one_run_each(
        self, of: str, value: float, a: Numbers, b: Numbers, aligned: AlignedScores | None
    ) -> ClaimedDifference:
        is_one = bool(a.checkpoint) and a.checkpoint == b.checkpoint
        squared = a.error**2 + b.error**2
        if aligned is not None:
            variance = aligned.estimate((1, -1), DEPENDENCE).in_points.variance
        elif math.isnan(squared):
            return ClaimedDifference(of, value, over="no error is known", is_one_run=not is_one)
        else:
            variance = Variance(squared, squared, math.inf)
        tested = _tested(of, value, variance, 1, _ONE_CHECKPOINT if is_one else _TWO_CHECKPOINTS)
        return replace(tested, is_one_run=not is_one)

    def _aligned(self, a: Numbers, b: Numbers) -> AlignedScores | None:
        """Returns the pairs' contributions to both cells; None, with a note, if they are not known."""
        if not a.runs or not b.runs:
            return None
        named = {f"{side} {seed}": run for side, cell in (("a", a), ("b", b)) for seed, run in cell.runs.items()}
        try:
            tasks, _ = aligned_scores(named)
        except UserError as error:
            note = f"Errors are over seeds only, because the pairs are not known ({str(error).rstrip('.')})."
            if note not in self.notes:
                self.notes.append(note)
            return None
        return next((task for task in tasks if task.task == a.task), None)


def _seed_by_seed(of: str, value: float, differences: Sequence[float]) -> ClaimedDifference:
    size = len(differences)
    if size < 2:
        return ClaimedDifference(of, value, seeds=size, over=_ONE_RUN)
    spread = float(np.var(differences, ddof=1))
    variance = Variance(spread / size, spread / size, size - 1)
    # One sample has the variance of two samples with half of it each.
    needed = _needed(value, math.sqrt(spread / 2), _NO_VARIANCE)
    return _tested(of, value, variance, size, "seeds, compared seed by seed", needed=needed)


def _tested(
    of: str, value: float, variance: Variance, seeds: int, over: str, *, needed: int | None = None
) -> ClaimedDifference:
    if not variance.value > 0:
        return ClaimedDifference(of, value, seeds=seeds, over="the error is unknown: the runs do not differ")
    estimate = Estimate(value, variance)
    low, high, _ = estimate.interval(LEVEL)
    return ClaimedDifference(of, value, low, high, estimate.p, seeds, over, needed)


def _needed(value: float, sd: float, over_pairs: Variance) -> int:
    return (seeds_needed(abs(value), sd, over_pairs, level=LEVEL) or 0) if value and sd else 0


def _by_seed(a: Numbers, b: Numbers) -> list[float]:
    return [a.values[seed] - b.values[seed] for seed in a.values if seed in b.values]
