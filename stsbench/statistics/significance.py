"""Tests of a difference: of two dependent correlations, two classifiers, two means; and Holm's correction.

Welch's, the permutation and the binomial test are SciPy's. The tests of dependent correlations and Holm's
correction are ours: SciPy has neither (`false_discovery_control` bounds another error).

Two correlations are dependent if they share a variable: gold with model A, gold with model B, on the same pairs.
Both formulas are for Pearson's correlation of normal variables. Spearman's is Pearson's of the ranks, and varies
more where it is high: its Fisher z has the variance (1 + r^2 / 2) / (n - 3), not 1 / (n - 3) (Bonett and Wright
2000). With `ranks` the statistic is therefore divided by the root of 1 + r^2 / 2, r the mean of the two. It is an
approximation: where the hypothesis holds, it rejects 4 to 5.5 % at the 5 % level in simulations with correlations
from 0.2 to 0.9; without it, up to 9 %.

Both take the pairs as independent. Pairs that share sentences are not: in the coverage study these tests reject a
true hypothesis up to five times too often. `intervals.two_sided_p` with the dyadic variance is the test to go by.
"""

import math
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.statistics.intervals import tail
from stsbench.statistics.seeds import generator


class DependentTest(NamedTuple):
    """A test statistic, positive where the first correlation is higher, and its two-sided p-value."""

    statistic: float
    p_value: float


_UNDEFINED = DependentTest(math.nan, math.nan)


def williams(first: float, second: float, between: float, size: int, *, ranks: bool = False) -> DependentTest:
    """Return Williams' t test of two dependent correlations, n - 3 degrees of freedom.

    Williams (1959), in the form that Steiger (1980, equation 7) recommends. Assumes independent pairs.

    Args:
        first: the correlation of gold with the one, in [-1, 1].
        second: the correlation of gold with the other.
        between: the correlation of the one with the other.
        size: n, the number of pairs.
        ranks: whether the correlations are Spearman's.

    Returns:
        t and its p-value; NaN where a correlation is, or fewer than four pairs leave no degrees of freedom.

    >>> test = williams(0.3, 0.4, 0.5, 100)
    >>> round(test.statistic, 4), round(test.p_value, 4)
    (-1.0767, 0.2843)
    """
    if size < 4 or any(map(math.isnan, (first, second, between))):
        return _UNDEFINED
    if first == second:
        return DependentTest(0.0, 1.0)
    determinant = 1 - first**2 - second**2 - between**2 + 2 * first * second * between
    mean = (first + second) / 2
    # Of two sides that order the pairs alike the determinant is zero, and its rounding may be negative.
    variance = 2 * (size - 1) / (size - 3) * max(determinant, 0.0) + mean**2 * (1 - between) ** 3
    t = _ratio((first - second) * math.sqrt((size - 1) * (1 + between)), math.sqrt(variance))
    t /= _excess(mean) if ranks else 1.0
    return DependentTest(t, float(2 * tail(abs(t), size - 3)))


def steiger(first: float, second: float, between: float, size: int, *, ranks: bool = False) -> DependentTest:
    """Return Steiger's Z test of two dependent correlations, on Fisher's scale with the pooled covariance.

    Steiger (1980, equation 14): Dunn and Clark's (1969) Z with its covariance taken at the mean of the two
    correlations, which are equal under the hypothesis. Assumes independent pairs.

    Takes what `williams` takes, and returns Z and its p-value; NaN where a correlation is, or there are fewer than
    four pairs.

    >>> test = steiger(0.3, 0.4, 0.5, 100)
    >>> round(test.statistic, 4), round(test.p_value, 4)
    (-1.0718, 0.2838)
    """
    if size < 4 or any(map(math.isnan, (first, second, between))):
        return _UNDEFINED
    if first == second:
        return DependentTest(0.0, 1.0)
    mean = (first + second) / 2
    square = mean**2
    psi = between * (1 - 2 * square) - square * (1 - 2 * square - between**2) / 2
    covariance = psi / (1 - square) ** 2
    z = _ratio((_fisher(first) - _fisher(second)) * math.sqrt(size - 3), math.sqrt(max(2 - 2 * covariance, 0.0)))
    z /= _excess(mean) if ranks else 1.0
    return DependentTest(z, math.erfc(abs(z) / math.sqrt(2)))


def _excess(rank_correlation: float) -> float:
    return math.sqrt(1 + rank_correlation**2 / 2)


def _fisher(correlation: float) -> float:
    return math.copysign(math.inf, correlation) if abs(correlation) >= 1 else math.atanh(correlation)


def _ratio(above: float, below: float) -> float:
    return above / below if below else math.copysign(math.inf, above)


class McNemar(NamedTuple):
    """How many items only the one gets right, how many only the other, and the two-sided p-value."""

    only_first: int
    only_second: int
    p_value: float


def mcnemar(first: ArrayLike, second: ArrayLike) -> McNemar:
    """Return McNemar's exact test of whether two classifiers err equally often (McNemar 1947).

    Items that both get right or both get wrong tell nothing. Of the others, the one has as many as the other
    under the hypothesis: binomial with one half. It is exact at any number of them, so that no rule is needed
    for when the chi-squared approximation would do.

    Args:
        first: (n,) whether the one got each item right.
        second: (n,) whether the other did, on the same items in the same order.

    >>> mcnemar([1, 1, 1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1])
    McNemar(only_first=6, only_second=1, p_value=0.125)
    """
    right1, right2 = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    if right1.ndim != 1 or right1.shape != right2.shape:
        raise ValueError(f"expected two vectors of one length, got shapes {right1.shape} and {right2.shape}")
    only_first, only_second = int((right1 & ~right2).sum()), int((right2 & ~right1).sum())
    if only_first == only_second:
        return McNemar(only_first, only_second, 1.0)

    from scipy.special import bdtr

    # With one half the two tails are alike; they cannot overlap, as the two counts differ.
    tail = bdtr(min(only_first, only_second), only_first + only_second, 0.5)
    return McNemar(only_first, only_second, float(2 * tail))


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
    """Return the spread of (n,) values, n at least 1.

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

    Its interval and p-value by Welch are NaN where no value differs from its set's mean.

    Args:
        first: (m,) values, m at least 2.
        second: (n,) values, n at least 2.
        level: of the interval.
        seed: of the permutations, where there are too many to try them all.

    >>> test = compare_means([1.0, 2.0, 3.0], [3.0, 4.0, 5.0])
    >>> test.difference, round(test.welch_p, 4), test.permutation_p
    (2.0, 0.0705, 0.2)
    """
    values1, values2 = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if min(len(values1), len(values2)) < 2:
        raise ValueError(f"expected at least two values in each set, got {len(values1)} and {len(values2)}")
    difference = float(values2.mean() - values1.mean())
    permutation_p = _permutation_p(values1, values2, seed)
    if np.ptp(values1) == np.ptp(values2) == 0:
        return MeansTest(difference, math.nan, math.nan, math.nan, permutation_p)

    from scipy.stats import ttest_ind

    with warnings.catch_warnings():
        # Of a set whose values are all alike SciPy warns that it may have lost digits: its variance is 0.
        warnings.simplefilter("ignore", RuntimeWarning)
        test = ttest_ind(values2, values1, equal_var=False)
    interval = test.confidence_interval(level)
    return MeansTest(difference, float(interval.low), float(interval.high), float(test.pvalue), permutation_p)


def _permutation_p(values1: NDArray[np.float64], values2: NDArray[np.float64], seed: int) -> float:
    """Return the share of splits of all values whose means differ at least as much as those of these two sets."""
    from scipy.stats import permutation_test

    def gap(first: NDArray[np.float64], second: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
        # Rounded, so that no split misses its mirror image, or the one found, by the last bit.
        gaps: NDArray[np.float64] = np.abs(second.mean(axis) - first.mean(axis)).round(9)
        return gaps

    test = permutation_test(
        (values1, values2),
        gap,
        vectorized=True,
        n_resamples=_MOST_SPLITS,
        alternative="greater",
        random_state=generator(seed, "permutation"),
    )
    return float(test.pvalue)


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return p-values adjusted by Holm's step-down procedure (Holm 1979).

    Rejecting what is below alpha afterwards keeps the chance of even one false rejection at alpha, however the
    tests depend on one another. The (m,) p-values of one family come back in their order, at most 1; a NaN (no
    test was possible) stays NaN and does not count.

    >>> holm([0.01, 0.04, 0.03, 0.005]).round(6).tolist()
    [0.03, 0.06, 0.06, 0.02]
    """
    values = np.array(p_values, dtype=np.float64)
    tested = np.flatnonzero(~np.isnan(values))
    order = tested[np.argsort(values[tested], kind="stable")]
    steps = np.arange(len(order), 0, -1) * values[order]
    values[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return values
