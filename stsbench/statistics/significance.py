"""Tests of a difference between two dependent correlations or two classifiers, and Holm's correction.

SciPy has neither the tests of dependent correlations nor Holm's correction.

Two correlations are dependent if they share a variable: gold with model A and gold with model B, on the same
pairs. Both tests are for Pearson's correlation of normal variables. Spearman's correlation varies more where it is
high: the variance of its Fisher z is (1 + r^2 / 2) / (n - 3), not 1 / (n - 3) (Bonett and Wright 2000). With
`ranks` the statistic is therefore divided by the square root of 1 + r^2 / 2, r being the mean of the two. In
simulations with correlations from 0.2 to 0.9 this rejects true hypotheses at the 5 % level in 4 to 5.5 % of cases;
without it, in up to 9 %.

Both tests assume independent pairs. With pairs that share sentences they reject true hypotheses up to five times
too often (see the coverage study); prefer `intervals.two_sided_p` with the dyadic variance.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr

from stsbench.statistics.correlations import as_pairs
from stsbench.statistics.intervals import tail


class DependentTest(NamedTuple):
    """A test statistic, positive if the first correlation is higher, and its two-sided p-value."""

    statistic: float
    p_value: float


def williams(first: float, second: float, between: float, size: int, *, ranks: bool = False) -> DependentTest:
    """Performs Williams' t test of two dependent correlations, with n - 3 degrees of freedom.

    Williams (1959), in the form recommended by Steiger (1980, equation 7). Assumes independent pairs.

    Args:
        first: correlation of gold with the first model, in [-1, 1].
        second: correlation of gold with the second model.
        between: correlation of the two models.
        size: n, the number of pairs.
        ranks: whether the correlations are Spearman's.

    Returns:
        t and its p-value; NaN for undefined correlations or fewer than four pairs.

    >>> test = williams(0.3, 0.4, 0.5, 100)
    >>> round(test.statistic, 4), round(test.p_value, 4)
    (-1.0767, 0.2843)
    """
    if trivial := _trivial(first, second, between, size):
        return trivial
    determinant = 1 - first**2 - second**2 - between**2 + 2 * first * second * between
    mean = (first + second) / 2
    # For models that rank the pairs identically the determinant is zero, and rounding can make it negative.
    variance = 2 * (size - 1) / (size - 3) * max(determinant, 0.0) + mean**2 * (1 - between) ** 3
    t = _ratio((first - second) * math.sqrt((size - 1) * (1 + between)), math.sqrt(variance))
    t /= _excess(mean) if ranks else 1.0
    return DependentTest(t, float(2 * tail(abs(t), size - 3)))


def steiger(first: float, second: float, between: float, size: int, *, ranks: bool = False) -> DependentTest:
    """Performs Steiger's Z test of two dependent correlations, on Fisher's scale with the pooled covariance.

    Steiger (1980, equation 14): Dunn and Clark's (1969) Z with the covariance at the mean of the two correlations.
    Assumes independent pairs. Arguments and special cases are those of `williams`.

    >>> test = steiger(0.3, 0.4, 0.5, 100)
    >>> round(test.statistic, 4), round(test.p_value, 4)
    (-1.0718, 0.2838)
    """
    if trivial := _trivial(first, second, between, size):
        return trivial
    mean = (first + second) / 2
    square = mean**2
    psi = between * (1 - 2 * square) - square * (1 - 2 * square - between**2) / 2
    covariance = psi / (1 - square) ** 2
    z = _ratio((_fisher(first) - _fisher(second)) * math.sqrt(size - 3), math.sqrt(max(2 - 2 * covariance, 0.0)))
    z /= _excess(mean) if ranks else 1.0
    return DependentTest(z, math.erfc(abs(z) / math.sqrt(2)))


def _trivial(first: float, second: float, between: float, size: int) -> DependentTest | None:
    """Returns the test of undefined or equal correlations, or None for all others."""
    if size < 4 or any(map(math.isnan, (first, second, between))):
        return DependentTest(math.nan, math.nan)
    return DependentTest(0.0, 1.0) if first == second else None


def _excess(rank_correlation: float) -> float:
    return math.sqrt(1 + rank_correlation**2 / 2)


def _fisher(correlation: float) -> float:
    return math.copysign(math.inf, correlation) if abs(correlation) >= 1 else math.atanh(correlation)


def _ratio(above: float, below: float) -> float:
    return above / below if below else math.copysign(math.inf, above)


class McNemar(NamedTuple):
    """Numbers of items that only the first or only the second classifier got right, and the two-sided p-value."""

    only_first: int
    only_second: int
    p_value: float


def mcnemar(first: ArrayLike, second: ArrayLike) -> McNemar:
    """Performs McNemar's exact test of whether two classifiers have the same accuracy (McNemar 1947).

    Items that both get right or both get wrong are ignored; the others are binomial with one half under the
    hypothesis.

    Args:
        first: (n,) whether the first classifier got each item right.
        second: (n,) the same for the second classifier, in the same order.

    >>> mcnemar([1, 1, 1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1])
    McNemar(only_first=6, only_second=1, p_value=0.125)
    """
    right1, right2 = (side > 0 for side in as_pairs(first, second))
    only_first, only_second = int((right1 & ~right2).sum()), int((right2 & ~right1).sum())
    if only_first == only_second:
        return McNemar(only_first, only_second, 1.0)
    # The two tails are equal, and do not overlap because the counts differ.
    below = bdtr(min(only_first, only_second), only_first + only_second, 0.5)
    return McNemar(only_first, only_second, float(2 * below))


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjusts (m,) p-values by Holm's step-down procedure (Holm 1979).

    Rejecting adjusted p-values below alpha keeps the probability of any false rejection at alpha, whatever the
    dependence of the tests. The order is kept, values are at most 1, and NaN values stay NaN and are not counted.

    >>> holm([0.01, 0.04, 0.03, 0.005]).round(6).tolist()
    [0.03, 0.06, 0.06, 0.02]
    """
    values = np.array(p_values, dtype=np.float64)
    tested = np.flatnonzero(~np.isnan(values))
    order = tested[np.argsort(values[tested], kind="stable")]
    steps = np.arange(len(order), 0, -1) * values[order]
    values[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return values
