"""Scores of one method over several seeds: their spread, and tests between two methods."""

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.statistics.resampling import generator

_MOST_SPLITS = 20_000
"""Splits that are enumerated; beyond, as many are drawn. Nine against nine are 48,620, eight 12,870."""


class Spread(NamedTuple):
    """Mean, sample standard deviation (NaN for a single value), lowest and highest of (n,) values."""

    size: int
    mean: float
    sd: float
    lowest: float
    highest: float


class MeansTest(NamedTuple):
    """The second mean less the first: the difference, its interval, and two-sided p-values of two tests."""

    difference: float
    low: float
    high: float
    welch_p: float
    permutation_p: float


def spread(values: ArrayLike) -> Spread:
    """Return the spread of some values.

    Raises:
        ValueError: if there are none.

    Example:
        >>> spread([76.0, 75.0, 77.0])
        Spread(size=3, mean=76.0, sd=1.0, lowest=75.0, highest=77.0)
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise ValueError(f"expected at least one value in one dimension, got shape {array.shape}")
    sd = float(array.std(ddof=1)) if len(array) > 1 else math.nan
    return Spread(len(array), float(array.mean()), sd, float(array.min()), float(array.max()))


def compare_means(first: ArrayLike, second: ArrayLike, *, level: float = 0.95, seed: int = 0) -> MeansTest:
    """Test whether two independent sets of values have the same mean.

    Welch's t test (1947) allows different variances; its p-value and the interval say the same. The permutation
    test assumes no normality, but its smallest p-value is 2 over the number of splits: 0.008 for five against
    five.

    Args:
        first: (m,) values, m at least 2.
        second: (n,) values, n at least 2.
        level: of the interval.
        seed: of the permutations, where there are too many to try them all.

    Returns:
        The test; its interval and p-value by Welch are NaN where no value differs from its set's mean.

    Raises:
        ValueError: if a set has fewer than two values.

    Example:
        >>> test = compare_means([1.0, 2.0, 3.0], [3.0, 4.0, 5.0])
        >>> test.difference, round(test.welch_p, 4), test.permutation_p
        (2.0, 0.0705, 0.2)
    """
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if min(len(one), len(other)) < 2:
        raise ValueError(f"expected at least two values in each set, got {len(one)} and {len(other)}")
    difference = float(other.mean() - one.mean())
    permutation_p = _permutation_p(one, other, seed)
    parts = np.array([one.var(ddof=1) / len(one), other.var(ddof=1) / len(other)])
    error = math.sqrt(parts.sum())
    if not error:
        return MeansTest(difference, math.nan, math.nan, math.nan, permutation_p)

    from scipy.stats import t as student

    freedom = parts.sum() ** 2 / (parts**2 / [len(one) - 1, len(other) - 1]).sum()
    margin = float(student.ppf((1 + level) / 2, freedom)) * error
    welch_p = float(2 * student.sf(abs(difference) / error, freedom))
    return MeansTest(difference, difference - margin, difference + margin, welch_p, permutation_p)


def _permutation_p(one: NDArray[np.float64], other: NDArray[np.float64], seed: int) -> float:
    """Return the share of splits of all values whose means differ at least as much as those found."""
    values = np.concatenate([one, other])
    size, total = len(one), len(values)
    exact = math.comb(total, size) <= _MOST_SPLITS
    if exact:
        members = np.array(list(combinations(range(total), size)))
    else:
        rng = generator(seed, "permutation")
        members = np.argsort(rng.random((_MOST_SPLITS, total)), axis=1)[:, :size]
    sums = values[members].sum(axis=1)
    gaps = np.abs((values.sum() - sums) / (total - size) - sums / size)
    found = abs(other.mean() - one.mean())
    # A split that is the one found, or its mirror image, must not miss it by rounding.
    extreme = int((gaps >= found - 1e-9 * max(1.0, np.abs(values).max())).sum())
    return extreme / len(gaps) if exact else (extreme + 1) / (len(gaps) + 1)
