"""The difference of two cells of a table with the error that other seeds and other pairs bring.

The variance is of other seeds and other pairs where the pairs are known (see `statistics.seeds`), of seeds alone
where not; the interval is Student's, so two or three seeds decide what is plain and nothing else.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from stsbench.base.errors import UserError
from stsbench.judging.aligned import AlignedScores, aligned_scores
from stsbench.judging.seeds import runs_over_pairs
from stsbench.records.record import RunRecord
from stsbench.statistics import DEPENDENCE, Dependence
from stsbench.statistics.dependence import Variance
from stsbench.statistics.estimate import Estimate
from stsbench.statistics.intervals import seeds_needed
from stsbench.statistics.seeds import Runs, mean_variance

LEVEL = 0.95

_ONE_RUN = "no error is known: one run says nothing of how far a seed carries"
_ONE_CHECKPOINT = "pairs, of one checkpoint"
_TWO_CHECKPOINTS = "pairs, of these two checkpoints: of other seeds it says nothing"

_NO_VARIANCE = Variance(0.0, 0.0, math.inf)

_NORMAL_95 = 1.959963984540054


@dataclass(frozen=True)
class Numbers:
    """What was measured for one cell of a table: a number for each seed.

    Attributes:
        values: by seed (0 for a checkpoint): scores x 100, or what an analysis says.
        runs: the records that the values are of, by seed; empty where they are of no record's task.
        task: what the records call the task or average.
        error: standard error of the only value over pairs, as an analysis gives it; NaN for unknown.
        training: what the values come from: cells that share it are of the same trainings.
        checkpoint: the public checkpoint that the only value is of; empty where it was trained.
        low: lower limit of the interval of the mean, and `high`: the upper; NaN for none.
        over: what the interval is over: `seeds and pairs`, `seeds`, `pairs`; empty for no interval.
        last: the mean of the trainings' last step; NaN for unknown.
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
    """One difference that a claim asks to be above 0.

    Attributes:
        of: what is above what, for a reader.
        value: in points.
        low: lower limit of its interval, and `high`: the upper; NaN where no error is known.
        p: two-sided.
        seeds: how many runs the two sides have, the smaller number.
        over: what the error is of: `seeds and pairs`, `seeds`, `pairs`; or why none is known.
        needed: seeds of each that would decide a difference of this size with 80 % power; 0 for no number, None
            for unknown.
        is_one_run: whether a side is one run of its method, so that this answers nothing of the method.
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
    """The differences between cells, with the error that both seeds and pairs bring."""

    def __init__(self, interval: Dependence = DEPENDENCE, level: float = LEVEL) -> None:
        self.dependence: Dependence = interval
        self.level = level
        self.notes: list[str] = []

    def difference(
        self, of: str, a: Numbers, b: Numbers, *, margin: float = 0.0, sign: int = 1
    ) -> ClaimedDifference:
        """Return `sign` times (a less b), less a margin, with its interval.

        Two rows of the same trainings are compared seed by seed.
        """
        value = sign * (a.mean - b.mean) - margin
        if a.training and a.training == b.training:
            return self._seed_by_seed(of, value, _by_seed(a, b))
        aligned = self._aligned(a, b)
        sizes = (len(a.values), len(b.values))
        if sizes == (1, 1):
            return self._of_one_run_each(of, value, a, b, aligned)
        if min(sizes) < 2:
            return ClaimedDifference(of, value, seeds=min(sizes), over=_ONE_RUN)
        return self._over_seeds(of, value, a, b, aligned)

    def gap(self, of: str, pairs: Sequence[tuple[Numbers, Numbers]]) -> ClaimedDifference:
        """Return the second pair's difference less the first's: above 0 if the first pair's gap is the smaller."""
        smaller, larger = (Numbers(dict(enumerate(_by_seed(*pair)))) for pair in pairs)
        return self.difference(of, larger, smaller)

    def _over_seeds(
        self, of: str, value: float, a: Numbers, b: Numbers, aligned: AlignedScores | None
    ) -> ClaimedDifference:
        """Return the difference of two methods, each of several seeds."""
        scores = [np.array(list(side.values.values())) for side in (a, b)]
        methods, over_pairs = [Runs(side, 0.0) for side in scores], _NO_VARIANCE
        if aligned is not None:
            methods, over_pairs = runs_over_pairs(scores, aligned, self.dependence)
        of_mean = mean_variance(methods, over_pairs)
        variance = Variance(of_mean.value, of_mean.value, of_mean.df)
        sd = math.sqrt(float(np.mean([side.var(ddof=1) for side in scores])))
        over = "seeds and pairs" if aligned is not None else "seeds alone"
        return self._tested(
            of, value, variance, min(map(len, scores)), over, needed=self._needed(value, sd, over_pairs)
        )

    def _seed_by_seed(self, of: str, value: float, differences: Sequence[float]) -> ClaimedDifference:
        size = len(differences)
        if size < 2:
            return ClaimedDifference(of, value, seeds=size, over=_ONE_RUN)
        spread = float(np.var(differences, ddof=1))
        variance = Variance(spread / size, spread / size, size - 1)
        # Of one sample, as of two of half its variance each.
        needed = self._needed(value, math.sqrt(spread / 2), _NO_VARIANCE)
        return self._tested(of, value, variance, size, "seeds, compared seed by seed", needed=needed)

    def _of_one_run_each(
        self, of: str, value: float, a: Numbers, b: Numbers, aligned: AlignedScores | None
    ) -> ClaimedDifference:
        is_one = bool(a.checkpoint) and a.checkpoint == b.checkpoint
        squared = a.error**2 + b.error**2
        if aligned is not None:
            variance = aligned.estimate((1, -1), self.dependence).in_points.variance
        elif math.isnan(squared):
            return ClaimedDifference(of, value, over="no error is known", is_one_run=not is_one)
        else:
            variance = Variance(squared, squared, math.inf)
        tested = self._tested(of, value, variance, 1, _ONE_CHECKPOINT if is_one else _TWO_CHECKPOINTS)
        return replace(tested, is_one_run=not is_one)

    def _tested(
        self, of: str, value: float, variance: Variance, seeds: int, over: str, *, needed: int | None = None
    ) -> ClaimedDifference:
        if not variance.value > 0:
            return ClaimedDifference(of, value, seeds=seeds, over="no error is known: the runs do not differ")
        estimate = Estimate(value, variance)
        low, high, _ = estimate.interval(self.level)
        return ClaimedDifference(of, value, low, high, estimate.p, seeds, over, needed)

    def _needed(self, value: float, sd: float, over_pairs: Variance) -> int:
        if not value or not sd:
            return 0
        return seeds_needed(abs(value), sd, over_pairs, level=self.level) or 0

    def _aligned(self, a: Numbers, b: Numbers) -> AlignedScores | None:
        """Return what each pair contributes to the runs of both; None where that is not known, which is noted."""
        if not a.runs or not b.runs:
            return None
        named = {f"{side} {seed}": run for side, cell in (("a", a), ("b", b)) for seed, run in cell.runs.items()}
        try:
            tasks, _ = aligned_scores(named)
        except UserError as error:
            why = str(error).rstrip(".")
            note = f"what other pairs would change is not known ({why}): errors are over seeds alone."
            if note not in self.notes:
                self.notes.append(note)
            return None
        return next((task for task in tasks if task.task == a.task), None)


def _by_seed(a: Numbers, b: Numbers) -> list[float]:
    """Return the difference of each seed that both have."""
    return [a.values[seed] - b.values[seed] for seed in a.values if seed in b.values]


def error_of(low: float, high: float) -> float:
    """Return the standard error that an interval of 95 % comes from.

    >>> round(error_of(-1.96, 1.96), 3)
    1.0
    """
    return (high - low) / (2 * _NORMAL_95)
