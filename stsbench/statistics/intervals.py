"""Intervals, p-values and power, computed from a value and its variance.

Intervals use Student's t: on Fisher's z scale for correlations, on the plain scale for differences and averages.
Shares such as accuracies use Wilson's score interval with an effective number of items, and differences of shares
of the same items Newcombe's interval. A level outside (0, 1) raises a ValueError.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import nctdtr, ndtr, ndtri, stdtr, stdtrit

from stsbench.statistics import LEVEL, Dependence, Reason
from stsbench.statistics.correlations import Metric
from stsbench.statistics.dependence import Sharing, Variance, variance
from stsbench.statistics.influence import ratio_terms

_ROUNDING = 1e-12
"""Correlations this close to 1 count as 1."""

_FEW_PAIRS = 50
"""Below this many pairs, an interval is never narrower than Bonett and Wright's."""

_LOST: Mapping[Metric, int] = {"spearman": 3, "pearson": 3, "kendall": 4}
"""The numbers that Bonett and Wright subtract from the number of pairs; an interval needs more pairs."""


class Limits(NamedTuple):
    """The ends of an interval, or two NaN and the reason why there is no interval."""

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
    """Returns the interval of a correlation, or of a mean of correlations over subsets.

    The standard error of Fisher's z = atanh(r) is that of r over 1 - r^2 (delta method). With fewer than 50 pairs,
    terms estimate the variance poorly, so the interval is at least as wide as Bonett and Wright's (2000). Their
    variance of z is (1 + r^2 / 2) / (n - 3) for Spearman's, 1 / (n - 3) for Pearson's and 0.437 / (n - 4) for
    Kendall's correlation of independent pairs; here it is multiplied by the ratio of dependent to independent
    variance.

    Args:
        value: the correlation, in [-1, 1].
        variance: the variance of the correlation.
        pairs: n, the number of pairs.
        level: the coverage of the interval.
        metric: the kind of correlation.

    Returns:
        The limits, inside (-1, 1); see `Reason` for the cases without an interval.

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
    """Returns the interval of a difference or of an average over tasks: value -+ t times the standard error.

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
    """Returns the interval of a share, such as an accuracy: Wilson's (1927) with an effective number of items.

    The effective number is that of independent items with the same variance, value (1 - value) / variance; for a
    share of 0 or 1 it is `items`. The interval stays inside [0, 1].

    >>> limits = share_interval(1.0, Variance(0.0, 0.0, math.nan), items=20)
    >>> round(limits.low, 3), limits.high
    (0.839, 1.0)
    """
    check_level(level)
    if math.isnan(value) or math.isnan(variance.value) or not items:
        return _no_limits("undefined")
    # For a share of 0 or 1 a positive variance is only rounding error.
    size = value * (1 - value) / variance.value if variance.value > 0 and 0 < value < 1 else float(items)
    t = t_quantile((1 + level) / 2, variance.df)
    shrink = 1 + t * t / size
    centre = (value + t * t / (2 * size)) / shrink
    reach = t / shrink * math.sqrt(value * (1 - value) / size + (t / (2 * size)) ** 2)
    # Rounding must not exclude the share itself.
    return Limits(min(max(centre - reach, 0.0), value), max(min(centre + reach, 1.0), value))


def share_difference_interval(one: ArrayLike, other: ArrayLike, of_one: Limits, of_other: Limits) -> Limits:
    """Returns the interval of the difference of two shares of the same items: Newcombe's (1998), method 10.

    It combines the Wilson intervals of the two shares with phi, their correlation over the items. It stays inside
    [-1, 1] and also exists if the shares agree on every item.

    Args:
        one: (n,) 1 for items that count towards the first share, else 0.
        other: (n,) the same for the second share, which is subtracted.
        of_one: the interval of the first share, by `share_interval`.
        of_other: the interval of the second share.
    """
    if not (of_one.exists and of_other.exists):
        return _no_limits(of_one.reason or of_other.reason or "undefined")
    first, second = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    n, p, q = len(first), float(first.mean()), float(second.mean())
    # ad - bc of the 2 x 2 table: n squared times the covariance.
    product = float(n * (first @ second) - first.sum() * second.sum())
    if product > 0:
        product = max(product - n / 2, 0.0)
    spread = n * n * math.sqrt(p * (1 - p) * q * (1 - q))
    phi = product / spread if spread > 0 else 0.0

    def reach(first: float, second: float) -> float:
        return math.sqrt(max(first * first - 2 * phi * first * second + second * second, 0.0))

    low = p - q - reach(p - of_one.low, of_other.high - q)
    return Limits(low, p - q + reach(of_one.high - p, q - of_other.low))


def two_sided_p(value: float, variance: Variance) -> float:
    """Returns the two-sided p-value of the hypothesis that the true value is 0, by Student's t.

    It is below 1 - level exactly if `plain_interval` excludes 0. It is 1 if value and variance are 0 (two models
    that rank the pairs identically), and NaN if only the variance is.

    >>> round(two_sided_p(0.02, Variance(0.0001, 0.0001, 100.0)), 4)
    0.0482
    """
    if math.isnan(value) or math.isnan(variance.value):
        return math.nan
    if variance.value <= 0:
        return 1.0 if value == 0 else math.nan
    return float(2 * tail(abs(value) / variance.standard_error, variance.df))


def lower_bound(value: float, variance: Variance, level: float = LEVEL) -> float:
    """Returns the one-sided lower confidence bound: the lower end of the two-sided interval at 2 level - 1.

    It is NaN without a positive variance.
    """
    check_level(level)
    if math.isnan(value) or not variance.value > 0:
        return math.nan
    return value - t_quantile(level, variance.df) * variance.standard_error


def upper_bound(value: float, variance: Variance, level: float = LEVEL) -> float:
    """Returns the one-sided upper confidence bound."""
    return -lower_bound(-value, variance, level)


def reach_of_mean(deviation: float, size: int, level: float = LEVEL) -> float:
    """Returns half the width of Student's interval of a mean.

    Args:
        deviation: the sample standard deviation of the values.
        size: the number of values, at least 2.
        level: the coverage of the interval.
    """
    return float(t_quantile((1 + level) / 2, size - 1) * deviation / size**0.5)


def design_effect(
    shares: Iterable[tuple[ArrayLike, ArrayLike]], sharing: Sharing, method: Dependence, level: float = LEVEL
) -> float:
    """Returns the average factor by which shared sentences multiply the variance of some shares; at least 1.

    The part above 1 is estimated, so it is multiplied by the squared ratio of the quantiles of Student's t and of
    the normal distribution at `level` (as Korn and Graubard 1998).

    Args:
        shares: for each share two (n,) masks: the counted pairs, and all pairs of its denominator.
        sharing: of the n pairs.
        method: which pairs are dependent.
        level: the one-sided confidence of the bound that uses it.
    """
    spreads = []
    for counted, among in shares:
        inside = np.asarray(among, dtype=bool)
        spreads.append(variance(ratio_terms(np.asarray(counted) & inside, inside), sharing, method))
    if not (spreads := [spread for spread in spreads if spread.independent > 0]):
        return 1.0
    ratio = np.mean([spread.value / spread.independent for spread in spreads])
    wider = t_quantile(level, float(np.mean([spread.df for spread in spreads]))) / t_quantile(level)
    return float(1 + (ratio - 1) * wider**2)


def check_level(level: float) -> None:
    """Raises a ValueError if a level is not between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}")


def t_quantile(probability: float, df: float = math.inf) -> float:
    """Returns a quantile of Student's t, or of the normal distribution if `df` is not finite."""
    return float(ndtri(probability) if not math.isfinite(df) else stdtrit(df, probability))


def tail(t: ArrayLike, df: float) -> NDArray[np.float64]:
    """Returns the upper tail probability of Student's t at `t`, (...); normal if `df` is not finite."""
    below = -np.asarray(t, dtype=np.float64)
    return np.asarray(ndtr(below) if not math.isfinite(df) else stdtr(df, below))


def detectable(standard_error: float, *, level: float = 0.95, power: float = 0.8) -> float:
    """Returns the smallest difference that a two-sided test of size 1 - level detects with the given power.

    >>> round(detectable(1.0), 3)
    2.802
    """
    return (t_quantile((1 + level) / 2) + t_quantile(power)) * standard_error


def pairs_needed(pairs: int, difference: float, found: float) -> float:
    """Returns the number of pairs needed to detect a difference, if `pairs` pairs detect one of `found`.

    The detectable difference falls with the square root of the number of pairs. No number detects a difference of
    0.

    >>> pairs_needed(1000, 0.5, 1.0)
    4000.0
    """
    return pairs * (found / difference) ** 2 if difference else math.inf


_MOST_RUNS = 2**14


def seeds_needed(
    difference: float, sd: float, over_pairs: Variance, *, level: float = 0.95, power: float = 0.8
) -> int | None:
    """Returns how many runs of each of two methods a t test needs to detect a difference of their means.

    The variance of the difference is 2 sd^2 / S + V for S runs, where V, the variance over pairs, does not shrink
    with more runs; the degrees of freedom are Satterthwaite's.

    Args:
        difference: of the methods' means, above 0.
        sd: standard deviation of the scores over the runs of one method.
        over_pairs: V with its degrees of freedom, in the squared unit of the scores; 0 for a claim about these
            pairs alone.
        level: 1 - level is the size of the test.
        power: the probability of detecting the difference.

    Returns:
        S, at least 2, or None if even 16,384 runs are not enough.

    >>> seeds_needed(1.0, 1.0, Variance(0.0, 0.0, math.inf))
    17
    """
    sizes = range(2, _MOST_RUNS + 1)
    place = bisect_left(sizes, power, key=lambda runs: _power(runs, difference, sd, over_pairs, level))
    return sizes[place] if place < len(sizes) else None


_NEARLY_NORMAL = 1000
"""Above this many degrees of freedom SciPy's noncentral t loses precision, and the normal is used."""


def _power(runs: int, difference: float, sd: float, over_pairs: Variance, level: float) -> float:
    """Returns the power of the two-sided t test, by the noncentral t distribution."""
    of_seeds = sd * sd / runs
    whole = 2 * of_seeds + over_pairs.value
    if whole <= 0:
        return 1.0
    uncertain = 2 * of_seeds**2 / (runs - 1)
    if over_pairs.value > 0:
        uncertain += over_pairs.value**2 / over_pairs.df
    df = whole**2 / uncertain if uncertain > 0 else math.inf
    shift = difference / math.sqrt(whole)
    if df > _NEARLY_NORMAL:
        critical = t_quantile((1 + level) / 2)
        return float(ndtr(shift - critical) + ndtr(-shift - critical))
    critical = t_quantile((1 + level) / 2, df)
    return float(1 - nctdtr(df, shift, critical) + nctdtr(df, shift, -critical))


def difference_error(pairs: float, correlation: float, between: float) -> float:
    """Returns the standard error of the difference of two models' correlations with gold, for independent pairs.

    Both models have this correlation with gold, and `between` is the correlation of their similarities. The
    formula is asymptotic, for normal scores (Olkin and Siotani 1976).
    """
    squared = correlation * correlation
    covariance = between * (1 - 2 * squared) - squared * (1 - 2 * squared - between * between) / 2
    return math.sqrt(max(0.0, 2 * ((1 - squared) ** 2 - covariance)) / pairs)
