"""Seeds: draws that depend on them alone, and several runs of a method that differ in nothing else.

A score varies with the seed of the training, with the pairs that it was measured on, and with both together (a run
that is better than others on these pairs need not be on others). The variance of the mean of S runs is
s^2 / S + V(mean terms) - I / S: s^2 is the runs' sample variance, V the variance over pairs of the mean of their
terms, and I that of what each run has of its own. The first two both hold the third, so it is taken off once.

Who trains n times (or looks at n checkpoints) and tells of the best has not told of the mean. The expected best
of n is estimated from all subsets of n of the N scores, without replacement: unbiased. Dodge et al. (2019,
equation 6) draw with replacement, which counts some runs twice and comes out too low.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.statistics.dependence import LEVEL, Variance

Floats = NDArray[np.float64]


def generator(seed: int, *names: str) -> np.random.Generator:
    """Return a random generator that depends on nothing but the seed (any integer) and the names.

    Everything that draws has a generator of its own by its names, so that no draw depends on which others are
    made, or in which order.

    >>> first, second = generator(0, "STS16", "answer-answer"), generator(0, "STS16", "answer-answer")
    >>> bool(first.integers(1000) == second.integers(1000))
    True
    """
    # JSON keeps ("a", "bc") and ("ab", "c") apart; Python's own hash of strings changes with each process.
    digest = hashlib.sha256(json.dumps([seed, *names]).encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))


RESAMPLES = 5000
"""How often whole runs are drawn."""

SEED = 12345
"""The seed of these draws."""


class Runs(NamedTuple):
    """The runs of one method on one task.

    Attributes:
        scores: (S,) a score each.
        interaction: I, the variance over pairs of what one run has of its own, on the scale of the scores.
    """

    scores: Floats
    interaction: float


class MeanVariance(NamedTuple):
    """The variance of a mean over runs, or of a difference of two, in its parts.

    Attributes:
        value: the whole: the sum of the next three.
        seeds: of other seeds, on whatever pairs.
        pairs: of other pairs, whatever the seed.
        both: of what single runs do on single pairs.
        df: degrees of freedom of Student's t (Satterthwaite 1946).
    """

    value: float
    seeds: float
    pairs: float
    both: float
    df: float

    def share(self, part: float) -> float:
        """Return a part as a share of the whole, NaN where that is 0."""
        return part / self.value if self.value > 0 else math.nan


def interaction_of(covariance: ArrayLike) -> float:
    """Return the variance over pairs of what one of S runs has of its own, S at least 2.

    From the (S, S) covariance of their scores over pairs: the mean over the runs of V(terms_s - mean terms)
    S / (S - 1), at least 0.

    >>> interaction_of([[3.0, 1.0], [1.0, 3.0]])
    2.0
    """
    matrix = np.asarray(covariance, dtype=np.float64)
    size = len(matrix)
    return max(float(np.trace(matrix) - size * matrix.mean()) / (size - 1), 0.0)


def mean_variance(methods: Sequence[Runs], over_pairs: Variance) -> MeanVariance:
    """Return the variance of a method's mean, or of the difference of two methods' means.

    Args:
        methods: one method, or the two that are compared; at least two runs of each.
        over_pairs: of the mean of the runs' terms, or of the difference of two such means.

    >>> runs = Runs(np.array([70.0, 72.0]), interaction=0.5)
    >>> variance = mean_variance([runs], Variance(0.5, 0.5, 100.0))
    >>> variance.value, variance.seeds, variance.pairs, variance.both
    (1.25, 0.75, 0.25, 0.25)
    """
    if any(len(runs.scores) < 2 for runs in methods):
        raise ValueError("the spread over seeds takes at least two runs of a method")
    sizes = [len(runs.scores) for runs in methods]
    spreads = [float(runs.scores.var(ddof=1)) for runs in methods]
    both = sum(runs.interaction / size for runs, size in zip(methods, sizes, strict=True))
    seeds = sum(
        max(spread - runs.interaction, 0.0) / size
        for runs, spread, size in zip(methods, spreads, sizes, strict=True)
    )
    pairs = max(over_pairs.value - both, 0.0)
    whole = seeds + pairs + both
    uncertain = sum((spread / size) ** 2 / (size - 1) for spread, size in zip(spreads, sizes, strict=True))
    if over_pairs.value > 0:
        uncertain += over_pairs.value**2 / over_pairs.df
    return MeanVariance(whole, seeds, pairs, both, whole**2 / uncertain if uncertain > 0 else math.nan)


def spread_factors(runs: int) -> tuple[float, float]:
    """Return how far the true standard deviation of normal scores may be from that of some runs, as 95 % factors.

    >>> low, high = spread_factors(3)
    >>> round(low, 2), round(high, 2)
    (0.52, 6.28)
    """
    from scipy.special import chdtri

    df = runs - 1
    ends = (float(chdtri(df, (1 + side * LEVEL) / 2)) for side in (-1, 1))
    low, high = (math.sqrt(df / end) for end in ends)
    return low, high


def improvement(first: ArrayLike, second: ArrayLike) -> Floats:
    """Return how likely a run of the second method is above one of the first (Agarwal et al. 2021, section 4.3).

    It is the share (...), from 0 to 1, of all pairs of (..., m) and (..., n) runs, ties half: Mann and Whitney's U
    over their number.

    >>> float(improvement([1.0, 2.0], [2.0, 3.0]))
    0.875
    """
    scores1, scores2 = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    differences = scores2[..., None, :] - scores1[..., :, None]
    return np.asarray(((differences > 0) + 0.5 * (differences == 0)).mean(axis=(-2, -1)))


def interquartile_mean(values: ArrayLike) -> Floats:
    """Return the mean of the middle half of some scores (Agarwal et al. 2021): a quarter is cut off at either end.

    Agarwal et al. pool runs and normalised tasks; STS tasks have no common scale, so it is of the runs of a task,
    or of their averages, (..., n). Of an n that four does not divide, the runs at the ends of the middle count in
    part.

    >>> float(interquartile_mean([0.0, 1.0, 3.0, 100.0]))
    2.0
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64), axis=-1)
    size = ordered.shape[-1]
    places = np.arange(size)
    weights = np.clip(places + 1 - size / 4, 0, 1) - np.clip(places + 1 - 3 * size / 4, 0, 1)
    return np.asarray(ordered @ weights / weights.sum())


def resampled_runs(sizes: Sequence[int], resamples: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
    """Return draws of whole runs with replacement, method by method (the strata): (resamples, S) places each.

    One run gives the scores of all tasks, so the same draws serve every task. (Agarwal et al. 2021 draw task by
    task, since their runs are of one task each.)
    """
    return [rng.integers(size, size=(resamples, size)) for size in sizes]


def percentile_interval(replicates: ArrayLike, level: float = LEVEL) -> tuple[float, float]:
    """Return the two limits of the percentile interval of a statistic of resampled runs (Efron 1979).

    Args:
        replicates: (resamples,) values, at least one.
        level: the share of replicates inside, between 0 and 1; as much is cut off at either end.

    >>> percentile_interval(np.arange(101.0), level=0.5)
    (25.0, 75.0)
    """
    low, high = np.quantile(np.asarray(replicates, dtype=np.float64), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def best_of_weights(size: int) -> Floats:
    """Return (N, N) how likely each score is the best of n: row n - 1, column i for the (i + 1)-th lowest score.

    The i-th lowest of N is the highest of C(i - 1, n - 1) of the C(N, n) subsets.

    >>> best_of_weights(3).round(3).tolist()
    [[0.333, 0.333, 0.333], [0.0, 0.333, 0.667], [0.0, 0.0, 1.0]]
    """
    weights = np.zeros((size, size))
    weights[0] = 1 / size if size else 0.0
    places = np.arange(size)
    for row in range(1, size):
        # C(i, n) / C(N, n + 1) from the row above: no factorial that overflows.
        weights[row] = weights[row - 1] * np.maximum(places - row + 1, 0) / row * (row + 1) / (size - row)
    return weights


def expected_best(scores: ArrayLike) -> Floats:
    """Return (N,) the expected best of 1, 2, ... N runs, from (N,) scores of runs that are alike but for chance.

    >>> expected_best([1.0, 2.0, 4.0]).round(4).tolist()
    [2.3333, 3.3333, 4.0]
    """
    ordered = _ordered(scores)
    expected: Floats = best_of_weights(len(ordered)) @ ordered
    return expected


def best_of_below(scores: ArrayLike, value: float) -> Floats:
    """Return (N,) the share of the bests of 1, 2, ... N runs that are below a value.

    >>> best_of_below([1.0, 2.0, 4.0], 3.0).round(4).tolist()
    [0.6667, 0.3333, 0.0]
    """
    ordered = _ordered(scores)
    below: Floats = best_of_weights(len(ordered))[:, ordered < value].sum(axis=1)
    return below


def best_of_quantiles(scores: ArrayLike, share: float) -> Floats:
    """Return (N,) the quantile of the best of 1, 2, ... N runs: the lowest score with so much at or below it.

    >>> best_of_quantiles([1.0, 2.0, 4.0], 0.5).tolist()
    [2.0, 4.0, 4.0]
    """
    ordered = _ordered(scores)
    reached = best_of_weights(len(ordered)).cumsum(axis=1) >= share - 1e-12
    return np.asarray(ordered[reached.argmax(axis=1)])


def _ordered(scores: ArrayLike) -> Floats:
    values = np.sort(np.asarray(scores, dtype=np.float64))
    if values.ndim != 1 or not len(values):
        raise ValueError(f"expected at least one score in one dimension, got shape {values.shape}")
    return values
