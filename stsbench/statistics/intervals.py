"""Intervals and tests from a value and its variance.

A correlation has its interval on Fisher's scale, where it is nearly symmetric, with Student's t; a difference and
an average as they are; a share (an accuracy) by Wilson's score interval with an effective number of items, and a
difference of shares of the same items by Newcombe's. A level is between 0 and 1, else it is a ValueError.

From a standard error also follow how large a difference a test can find, and how many pairs or runs it takes.
"""

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.statistics.correlations import Metric
from stsbench.statistics.dependence import LEVEL, Variance

Reason = Literal["undefined", "perfect", "few pairs", "no spread"]
"""Why there is no interval. `undefined`: the value is. `perfect`: a correlation of 1 or -1, whose variance the
pairs do not show. `few pairs`: fewer than four (of Kendall's, five). `no spread`: all terms are zero."""

_ROUNDING = 1e-12
"""What a correlation of 1 may fall short of it."""

_FEW_PAIRS = 50
"""Below, an interval is never narrower than Bonett and Wright's."""

_LOST: Mapping[Metric, int] = {"spearman": 3, "pearson": 3, "kendall": 4}
"""What Bonett and Wright subtract from the number of pairs; no more pairs than that have no interval."""


class Limits(NamedTuple):
    """The two ends of an interval. Without one both are NaN, and there is a reason."""

    low: float
    high: float
    reason: Reason | None = None

    @property
    def exists(self) -> bool:
        """Whether there is an interval."""
        return self.reason is None


def _no_limits(reason: Reason) -> Limits:
    return Limits(math.nan, math.nan, reason)


def correlation_interval(
    value: float,
    variance: Variance,
    pairs: int,
    level: float = LEVEL,
    metric: Metric = "spearman",
) -> Limits:
    """Return the interval of a correlation, or of a mean of correlations over subsets.

    Fisher's z = atanh(r) has the standard error of r over 1 - r^2 (delta method); Student's t with the variance's
    degrees of freedom. The terms of few pairs say little of their variance: from fewer than 50 the interval is at
    least as wide as Bonett and Wright's (2000), whose variance of z is (1 + r^2 / 2) / (n - 3) for Spearman's,
    1 / (n - 3) for Pearson's and 0.437 / (n - 4) for Kendall's correlation of independent pairs, here times the
    ratio of dependent and independent variance.

    Args:
        value: the correlation, in [-1, 1].
        variance: of it.
        pairs: n, the number of pairs.
        level: how often the interval holds the true value.
        metric: which correlation it is.

    Returns:
        The limits, inside (-1, 1); none (with the reason) at a correlation of 1 or -1, below four pairs (five for
        Kendall's), or where the value is not defined.

    >>> limits = correlation_interval(0.8, Variance(0.0001, 0.0001, 500), pairs=1000)
    >>> round(limits.low, 3), round(limits.high, 3)
    (0.779, 0.819)
    >>> correlation_interval(1.0, Variance(0.0, 0.0, 5), pairs=5).reason
    'perfect'
    """
    check_level(level)
    if math.isnan(value) or math.isnan(variance.value):
        return _no_limits("undefined")
    if pairs <= _LOST[metric]:
        return _no_limits("few pairs")
    if abs(value) > 1 - _ROUNDING:
        return _no_limits("perfect")
    to_z = 1 / (1 - value * value)
    reach = t_quantile((1 + level) / 2, variance.df) * variance.standard_error * to_z
    if pairs < _FEW_PAIRS:
        constant = {"spearman": 1 + value * value / 2, "pearson": 1.0, "kendall": 0.437}[metric]
        of_normal = constant / (pairs - _LOST[metric])
        reach = max(reach, t_quantile((1 + level) / 2) * math.sqrt(of_normal) * variance.ratio)
    if reach <= 0:
        return _no_limits("no spread")
    centre = math.atanh(value)
    return Limits(math.tanh(centre - reach), math.tanh(centre + reach))


def plain_interval(value: float, variance: Variance, level: float = LEVEL) -> Limits:
    """Return the interval of a difference or of an average over tasks: value -+ t times the standard error.

    >>> limits = plain_interval(0.01, Variance(0.0001, 0.0001, 100.0))
    >>> round(limits.low, 4), round(limits.high, 4)
    (-0.0098, 0.0298)
    """
    check_level(level)
    if math.isnan(value) or math.isnan(variance.value):
        return _no_limits("undefined")
    if variance.value <= 0:
        return _no_limits("no spread")
    reach = t_quantile((1 + level) / 2, variance.df) * variance.standard_error
    return Limits(value - reach, value + reach)


def share_interval(value: float, variance: Variance, items: int, level: float = LEVEL) -> Limits:
    """Return the interval of a share, such as an accuracy: Wilson's (1927) with an effective number of items.

    Dependent items count as so many independent ones as give the same variance: value (1 - value) / variance. The
    interval stays inside [0, 1] and exists at 0 and 1 too, where the effective number is `items`.

    >>> limits = share_interval(1.0, Variance(0.0, 0.0, math.nan), items=20)
    >>> round(limits.low, 3), limits.high
    (0.839, 1.0)
    """
    check_level(level)
    if math.isnan(value) or math.isnan(variance.value) or not items:
        return _no_limits("undefined")
    # At 0 and 1 a variance that is not 0 is the rounding of one that is.
    size = value * (1 - value) / variance.value if variance.value > 0 and 0 < value < 1 else float(items)
    t = t_quantile((1 + level) / 2, variance.df)
    shrink = 1 + t * t / size
    centre = (value + t * t / (2 * size)) / shrink
    reach = t / shrink * math.sqrt(value * (1 - value) / size + (t / (2 * size)) ** 2)
    # Rounding must not put the share itself outside.
    return Limits(min(max(centre - reach, 0.0), value), max(min(centre + reach, 1.0), value))


def share_difference_interval(one: ArrayLike, other: ArrayLike, of_one: Limits, of_other: Limits) -> Limits:
    """Return the interval of the difference of two shares of the same items: Newcombe's (1998), method 10.

    Each share's own interval by Wilson (`share_interval`) says how far it may be off, and phi, the correlation of
    the two over the items, how far together. It stays inside [-1, 1] and exists where the items agree, too.

    Args:
        one: (n,) 1 where an item counts for the first share, else 0.
        other: (n,) the same for the second, which is subtracted.
        of_one: the interval of the first share.
        of_other: the interval of the second.

    >>> one, other = np.repeat([1, 1, 0], [36, 12, 2]), np.repeat([1, 0, 1], [36, 12, 2])
    >>> errors = [Variance(x.var() / 50, x.var() / 50, math.inf) for x in (one, other)]
    >>> limits = [share_interval(x.mean(), error, 50) for x, error in zip((one, other), errors)]
    >>> difference = share_difference_interval(one, other, *limits)
    >>> round(difference.low, 4), round(difference.high, 4)
    (0.0569, 0.3404)
    """
    if not (of_one.exists and of_other.exists):
        return _no_limits(of_one.reason or of_other.reason or "undefined")
    first, second = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    n, p, q = len(first), float(first.mean()), float(second.mean())
    # Of the table of both: ad - bc, which is n squared times the covariance.
    product = float(n * (first @ second) - first.sum() * second.sum())
    if product > 0:
        product = max(product - n / 2, 0.0)
    spread = n * n * math.sqrt(p * (1 - p) * q * (1 - q))
    phi = product / spread if spread > 0 else 0.0

    def reach(own: float, others: float) -> float:
        return math.sqrt(max(own * own - 2 * phi * own * others + others * others, 0.0))

    low = p - q - reach(p - of_one.low, of_other.high - q)
    return Limits(low, p - q + reach(of_one.high - p, q - of_other.low))


def two_sided_p(value: float, variance: Variance) -> float:
    """Return the two-sided p-value of the hypothesis that the true value is 0, by Student's t.

    Below 1 - level exactly where `plain_interval` leaves out 0. 1 where value and variance are 0 (two models that
    order the pairs alike), NaN where the variance alone is.

    >>> round(two_sided_p(0.02, Variance(0.0001, 0.0001, 100.0)), 4)
    0.0482
    """
    if math.isnan(value) or math.isnan(variance.value):
        return math.nan
    if variance.value <= 0:
        return 1.0 if value == 0 else math.nan
    return float(2 * tail(abs(value) / variance.standard_error, variance.df))


def lower_bound(value: float, variance: Variance, level: float = LEVEL) -> float:
    """Return the one-sided lower bound: the true value is above it with the probability `level`.

    It is the lower end of the two-sided interval at 2 level - 1. NaN where there is none.

    >>> round(lower_bound(0.02, Variance(0.0001, 0.0001, 100.0)), 4)
    0.0034
    """
    check_level(level)
    if math.isnan(value) or not variance.value > 0:
        return math.nan
    return value - t_quantile(level, variance.df) * variance.standard_error


def upper_bound(value: float, variance: Variance, level: float = LEVEL) -> float:
    """Return the one-sided upper bound: the true value is below it with the probability `level`.

    >>> round(upper_bound(0.02, Variance(0.0001, 0.0001, 100.0)), 4)
    0.0366
    """
    return -lower_bound(-value, variance, level)


def reach_of_mean(deviation: float, size: int, level: float = LEVEL) -> float:
    """Return half the width of Student's interval of a mean.

    Args:
        deviation: the sample standard deviation of the values.
        size: how many values there are, at least 2.
        level: of the interval.

    >>> round(reach_of_mean(1.0, 3), 3)
    2.484
    """
    return float(t_quantile((1 + level) / 2, size - 1) * deviation / size**0.5)


def check_level(level: float) -> None:
    """Refuse a level that is not between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}")


def t_quantile(probability: float, df: float = math.inf) -> float:
    """Return a quantile of Student's t; of the normal distribution where the degrees of freedom are not known."""
    # Not by scipy.stats: its import takes half a second more, in every command that computes an interval.
    from scipy.special import ndtri, stdtrit

    return float(ndtri(probability) if not math.isfinite(df) else stdtrit(df, probability))


def tail(t: ArrayLike, df: float) -> NDArray[np.float64]:
    """Return how likely Student's t is above `t`, (...); the normal distribution where `df` is not finite.

    >>> round(float(tail(1.96, math.inf)), 4)
    0.025
    """
    from scipy.special import ndtr, stdtr

    below = -np.asarray(t, dtype=np.float64)
    return np.asarray(ndtr(below) if not math.isfinite(df) else stdtr(df, below))


_MOST = 10_000
_MANY = 1000
"""Degrees of freedom from which on Student's t is taken as normal: SciPy's noncentral one loses its way there."""


def detectable(standard_error: float, *, level: float = 0.95, power: float = 0.8) -> float:
    """Return the smallest difference that a two-sided test finds with this power: (1.96 + 0.84) standard errors.

    The test's size is 1 - level; its power is the chance to find the difference.

    >>> round(detectable(1.0), 3)
    2.802
    """
    return (t_quantile((1 + level) / 2) + t_quantile(power)) * standard_error


def pairs_needed(pairs: int, difference: float, found: float) -> float:
    """Return how many pairs show a difference, if these show one of `found` at the smallest (`detectable`).

    A standard error, and with it the smallest difference found, falls with the root of the number of pairs. No
    number of pairs shows a difference of 0.

    >>> pairs_needed(1000, 0.5, 1.0)
    4000.0
    """
    return pairs * (found / difference) ** 2 if difference else math.inf


def seeds_needed(
    difference: float, sd: float, over_pairs: Variance, *, level: float = 0.95, power: float = 0.8
) -> int | None:
    """Return how many runs of each of two methods a t test needs to find a difference of their means.

    Its variance is 2 sd^2 / S + V, V that of the difference over pairs, which more runs leave as it is; its
    degrees of freedom are Satterthwaite's.

    Args:
        difference: of the methods' means, above 0.
        sd: standard deviation of the scores of one method's runs.
        over_pairs: V with its degrees of freedom, in the squared unit of the scores; 0 for a claim about these
            pairs alone.
        level: 1 - level is the test's size.
        power: the chance to find it.

    Returns:
        S, at least 2; None if not even 10,000 are enough.

    >>> seeds_needed(1.0, 1.0, Variance(0.0, 0.0, math.inf))
    17
    """
    low, high = 1, 2
    while _power(high, difference, sd, over_pairs, level) < power:
        if high >= _MOST:
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(middle, difference, sd, over_pairs, level) >= power else (middle, high)
    return high


def _power(runs: int, difference: float, sd: float, over_pairs: Variance, level: float) -> float:
    """Return the power of the two-sided t test, by the noncentral t distribution."""
    from scipy.special import nctdtr, ndtr

    if runs < 2:
        return 0.0
    of_seeds = sd * sd / runs
    whole = 2 * of_seeds + over_pairs.value
    if whole <= 0:
        return 1.0
    uncertain = 2 * of_seeds**2 / (runs - 1)
    if over_pairs.value > 0:
        uncertain += over_pairs.value**2 / over_pairs.df
    df = whole**2 / uncertain if uncertain > 0 else math.inf
    shift = difference / math.sqrt(whole)
    if df > _MANY:
        critical = t_quantile((1 + level) / 2)
        return float(ndtr(shift - critical) + ndtr(-shift - critical))
    critical = t_quantile((1 + level) / 2, df)
    return float(1 - nctdtr(df, shift, critical) + nctdtr(df, shift, -critical))


def difference_error(pairs: float, correlation: float, between: float) -> float:
    """Return the standard error of the difference of two correlations with one gold, of independent pairs.

    Either model has this correlation with gold, and `between` is that of the two models' similarities; asymptotic,
    for normal scores (Olkin and Siotani 1976).

    >>> round(difference_error(1000, 0.8, 0.9), 5)
    0.0081
    """
    squared = correlation * correlation
    covariance = between * (1 - 2 * squared) - squared * (1 - 2 * squared - between * between) / 2
    return math.sqrt(max(0.0, 2 * ((1 - squared) ** 2 - covariance)) / pairs)
