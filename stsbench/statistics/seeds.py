"""Seeded random generators, and statistics of several runs of a method that differ only in their seed.

A score varies with the training seed, with the pairs, and with their interaction (the best run on these pairs need
not be the best on others). The variance of the mean of S runs is s^2 / S + V - I / S, where s^2 is the sample
variance of the runs, V the variance over pairs of their mean, and I the interaction. Both s^2 / S and V include
I / S, so it is subtracted once.

The expected best of n runs is estimated from all subsets of n of the N scores, which is unbiased. Dodge et al.
(2019, equation 6) draw with replacement, which counts some runs twice and is biased downwards.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtri

from stsbench.statistics import LEVEL
from stsbench.statistics.dependence import Variance

Floats = NDArray[np.float64]


def generator(seed: int, *names: str) -> np.random.Generator:
    """Returns a random generator that depends only on the seed (any integer) and the names.

    Each use has its own names, so draws do not depend on other draws or on their order.

    >>> first, second = generator(0, "STS16", "answer-answer"), generator(0, "STS16", "answer-answer")
    >>> bool(first.integers(1000) == second.integers(1000))
    True
    """
    # JSON distinguishes ("a", "bc") from ("ab", "c"); Python's hash of strings differs between processes.
    digest = hashlib.sha256(json.dumps([seed, *names]).encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))


RESAMPLES = 5000
"""Number of resamples of whole runs."""

SEED = 12345
"""Seed of the resamples."""


class Runs(NamedTuple):
    """The runs of one method on one task.

    Attributes:
        scores: (S,) scores of the runs.
        interaction: I, the variance over pairs of a run's deviation from the mean run, on the scale of the scores.
    """

    scores: Floats
    interaction: float


class MeanVariance(NamedTuple):
    """The variance of a mean over runs, or of a difference of two means, and its parts.

    Attributes:
        value: the variance, the sum of the three parts.
        seeds: part due to seeds.
        pairs: part due to pairs.
        both: part due to the interaction of seeds and pairs.
        df: degrees of freedom of Student's t (Satterthwaite 1946).
    """

    value: float
    seeds: float
    pairs: float
    both: float
    df: float

    def share(self, part: float) -> float:
        """Returns a part as a share of the variance; NaN if that is 0."""
        return part / self.value if self.value > 0 else math.nan


def interaction_of(covariance: ArrayLike) -> float:
    """Returns the interaction I of S runs, S at least 2, from the (S, S) covariance of their scores over pairs.

    It is the mean over the runs of V(terms_s - mean terms) S / (S - 1), at least 0.
    """
    matrix = np.asarray(covariance, dtype=np.float64)
    size = len(matrix)
    return max(float(np.trace(matrix) - size * matrix.mean()) / (size - 1), 0.0)


def mean_variance(methods: Sequence[Runs], over_pairs: Variance) -> MeanVariance:
    """Returns the variance of a method's mean, or of the difference of two methods' means.

    Args:
        methods: one method or two, with at least two runs each.
        over_pairs: variance over pairs of the mean run, or of the difference of the two mean runs.

    >>> runs = Runs(np.array([70.0, 72.0]), interaction=0.5)
    >>> variance = mean_variance([runs], Variance(0.5, 0.5, 100.0))
    >>> variance.value, variance.seeds, variance.pairs, variance.both
    (1.25, 0.75, 0.25, 0.25)
    """
    if any(len(runs.scores) < 2 for runs in methods):
        raise ValueError("the spread over seeds needs at least two runs of a method")
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
    """Returns the 95 % interval of a standard deviation of normal scores, as factors of the observed one."""
    df = runs - 1
    ends = (float(chdtri(df, (1 + side * LEVEL) / 2)) for side in (-1, 1))
    low, high = (math.sqrt(df / end) for end in ends)
    return low, high


def improvement(first: ArrayLike, second: ArrayLike) -> Floats:
    """Returns the probability that a run of the second method beats one of the first, with shape (...).

    It is the share of all pairs of (..., m) and (..., n) runs where it does, counting ties half: Mann and
    Whitney's U over the number of pairs (Agarwal et al. 2021, section 4.3).

    >>> float(improvement([1.0, 2.0], [2.0, 3.0]))
    0.875
    """
    scores1, scores2 = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    differences = scores2[..., None, :] - scores1[..., :, None]
    return np.asarray(((differences > 0) + 0.5 * (differences == 0)).mean(axis=(-2, -1)))


def interquartile_mean(values: ArrayLike) -> Floats:
    """Returns the mean of the middle half of (..., n) scores (Agarwal et al. 2021).

    If n is not a multiple of four, the scores at the ends of the middle half count partially. Agarwal et al. pool
    normalised tasks; STS tasks have no common scale, so this is applied to the runs of one task or to averages.

    >>> float(interquartile_mean([0.0, 1.0, 3.0, 100.0]))
    2.0
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64), axis=-1)
    size = ordered.shape[-1]
    places = np.arange(size)
    weights = np.clip(places + 1 - size / 4, 0, 1) - np.clip(places + 1 - 3 * size / 4, 0, 1)
    return np.asarray(ordered @ weights / weights.sum())


def best_of_weights(size: int) -> Floats:
    """Returns (N, N) probabilities: in row n - 1, column i, that the (i + 1)-th lowest score is the best of n.

    The i-th lowest of N scores is the highest in C(i - 1, n - 1) of the C(N, n) subsets.
    """
    weights = np.zeros((size, size))
    weights[0] = 1 / size if size else 0.0
    places = np.arange(size)
    for row in range(1, size):
        # C(i, n) / C(N, n + 1) by recursion, because factorials overflow.
        weights[row] = weights[row - 1] * np.maximum(places - row + 1, 0) / row * (row + 1) / (size - row)
    return weights


def expected_best(scores: ArrayLike) -> Floats:
    """Returns the (N,) expected best of 1, 2, ..., N runs, given the (N,) scores of N runs of one method.

    >>> expected_best([1.0, 2.0, 4.0]).round(4).tolist()
    [2.3333, 3.3333, 4.0]
    """
    ordered = np.sort(np.asarray(scores, dtype=np.float64))
    expected: Floats = best_of_weights(len(ordered)) @ ordered
    return expected


def best_of_below(scores: ArrayLike, value: float) -> Floats:
    """Returns the (N,) probabilities that the best of 1, 2, ..., N runs is below a value."""
    ordered = np.sort(np.asarray(scores, dtype=np.float64))
    below: Floats = best_of_weights(len(ordered))[:, ordered < value].sum(axis=1)
    return below


def best_of_quantiles(scores: ArrayLike, share: float) -> Floats:
    """Returns the (N,) quantiles of the best of 1, 2, ..., N runs: the lowest score with `share` up to it."""
    ordered = np.sort(np.asarray(scores, dtype=np.float64))
    reached = best_of_weights(len(ordered)).cumsum(axis=1) >= share - 1e-12
    return np.asarray(ordered[reached.argmax(axis=1)])
