"""How large a difference a test can find, and how many runs it takes to find one."""

import math

from stsbench.statistics.dependence import Variance

_MOST = 10_000
_MANY = 1000
"""Degrees of freedom from which on Student's t is taken as normal: SciPy's noncentral one loses its way there."""


def detectable(standard_error: float, *, level: float = 0.95, power: float = 0.8) -> float:
    """Return the smallest difference that a two-sided test finds with this power: (1.96 + 0.84) standard errors.

    Args:
        standard_error: of the difference.
        level: 1 - level is the test's size.
        power: the chance to find it.

    >>> round(detectable(1.0), 3)
    2.802
    """
    from scipy.special import ndtri

    return float(ndtri((1 + level) / 2) + ndtri(power)) * standard_error


def pairs_needed(pairs: int, difference: float, found: float) -> float:
    """Return how many pairs show a difference with the power with which so many pairs show another one.

    A standard error, and with it the smallest difference found, falls with the root of the number of pairs.

    Args:
        pairs: how many there are.
        difference: that is to be shown; of 0 no number of pairs shows it.
        found: the smallest difference that these pairs show (`detectable`).

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

    Example:
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
    from scipy.special import nctdtr, ndtr, ndtri, stdtrit

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
        critical = float(ndtri((1 + level) / 2))
        return float(ndtr(shift - critical) + ndtr(-shift - critical))
    critical = float(stdtrit(df, (1 + level) / 2))
    return float(1 - nctdtr(df, shift, critical) + nctdtr(df, shift, -critical))


def difference_error(pairs: float, correlation: float, between: float) -> float:
    """Return the standard error of the difference of two correlations with one gold, of independent pairs.

    Both models correlate alike with gold; asymptotic, for normal scores (Olkin and Siotani 1976).

    Args:
        pairs: how many.
        correlation: of either model with gold.
        between: correlation of the two models' similarities.

    >>> round(difference_error(1000, 0.8, 0.9), 5)
    0.0081
    """
    squared = correlation * correlation
    covariance = between * (1 - 2 * squared) - squared * (1 - 2 * squared - between * between) / 2
    return math.sqrt(max(0.0, 2 * ((1 - squared) ** 2 - covariance)) / pairs)
