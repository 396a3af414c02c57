"""A number with its variance: interval, p-value, and verdict on a difference; and classical tests.

The tests are Welch's and a permutation test of means, Williams' and Steiger's of dependent correlations, and
McNemar's of accuracies. `holm` corrects p-values for several tests.
"""

import math
import warnings
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr

from stsbench.statistics import LEVEL, Dependence
from stsbench.statistics.correlations import as_pairs
from stsbench.statistics.dependence import Sharing, Variance, variance
from stsbench.statistics.intervals import Limits, lower_bound, plain_interval, tail, two_sided_p, upper_bound
from stsbench.statistics.seeds import generator

Verdict = Literal["better", "worse", "within margin", "undecided"]


@dataclass(frozen=True)
class Estimate:
    """A score, a mean or a difference with its variance.

    Attributes:
        value: the number.
        variance: its variance over other items, or over other items and seeds.
    """

    value: float
    variance: Variance

    @classmethod
    def of(cls, value: float, terms: ArrayLike, sharing: Sharing, dependence: Dependence) -> "Estimate":
        """Returns the estimate of a statistic from the (n,) influence terms of its items."""
        return cls(value, variance(terms, sharing, dependence))

    @classmethod
    def with_error(cls, value: float, squared_error: float, df: float) -> "Estimate":
        """Returns the estimate of a number with a known squared standard error and its degrees of freedom."""
        return cls(value, Variance(squared_error, squared_error, df))

    @property
    def in_points(self) -> "Estimate":
        """The estimate x 100."""
        of = self.variance
        return Estimate(100 * self.value, replace(of, value=1e4 * of.value, independent=1e4 * of.independent))

    def interval(self, level: float = LEVEL) -> Limits:
        """Returns the interval by Student's t; it is [0, 0] for two models that do not differ on any item."""
        if self.value == 0 and self.variance.value == 0:
            return Limits(0.0, 0.0)
        return plain_interval(self.value, self.variance, level)

    @property
    def p(self) -> float:
        """The two-sided p-value of the hypothesis that the true value is 0."""
        return two_sided_p(self.value, self.variance)


def verdict(low: float, high: float, margin: float = 0.0) -> Verdict:
    """Judges the difference of a new score from an old one by its interval.

    Args:
        low: lower end of the interval, or a one-sided bound; NaN if there is none.
        high: upper end.
        margin: the largest loss that is acceptable, in the unit of the difference; 0 tests for any difference.

    >>> verdict(0.1, 0.4), verdict(-0.2, 0.4), verdict(-0.2, 0.4, margin=0.3), verdict(-0.9, -0.5, margin=0.3)
    ('better', 'undecided', 'within margin', 'worse')
    """
    if high < -margin:
        return "worse"
    if low > -margin:
        return "within margin" if margin else "better"
    return "undecided"


def judge_loss(
    loss: Estimate, margin: float, level: float = LEVEL, lower_level: float | None = None
) -> tuple[Verdict, float, float]:
    """Returns the verdict on a loss, and its one-sided lower and upper bounds, by default of the same level.

    A loss of 0 without variance is within any margin; another one without variance is undecided, with NaN bounds.

    >>> judge_loss(Estimate(0.2, Variance(1e-4, 1e-4, 500)), margin=0.3)[0]
    'within margin'
    """
    if loss.value == loss.variance.value == 0:
        return "within margin", 0.0, 0.0
    low = lower_bound(loss.value, loss.variance, level if lower_level is None else lower_level)
    high = upper_bound(loss.value, loss.variance, level)
    return verdict(-high, -low, margin), low, high


def verdict_of_p(difference: float, p: float, level: float = LEVEL) -> Verdict:
    """Judges a difference by its two-sided p-value, for p-values that were corrected for several tests."""
    return verdict(difference, difference) if p < 1 - level else "undecided"


_MOST_SPLITS = 20_000
"""With more splits than this (such as nine against nine, 48,620), the permutation test samples them."""


class MeansTest(NamedTuple):
    """The second mean minus the first: the difference, its interval, and two-sided p-values of two tests."""

    difference: float
    low: float
    high: float
    welch_p: float
    permutation_p: float


def compare_means(first: ArrayLike, second: ArrayLike, *, level: float = 0.95, seed: int = 0) -> MeansTest:
    """Tests whether two independent sets of values have the same mean.

    Welch's t test (1947) allows different variances and agrees with the interval; both are NaN if the values are
    constant in each set. The permutation test does not assume normality, but its smallest p-value is 2 over the
    number of splits: 0.008 for five against five.

    Args:
        first: (m,) values, m at least 2.
        second: (n,) values, n at least 2.
        level: of the interval.
        seed: of the permutations, if there are too many to enumerate.

    >>> test = compare_means([1.0, 2.0, 3.0], [3.0, 4.0, 5.0])
    >>> test.difference, round(test.welch_p, 4), test.permutation_p
    (2.0, 0.0705, 0.2)
    """
    from scipy.stats import ttest_ind  # as in `correlations`

    values1, values2 = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if min(len(values1), len(values2)) < 2:
        raise ValueError(f"expected at least two values in each set, got {len(values1)} and {len(values2)}")
    difference = float(values2.mean() - values1.mean())
    permutation_p = _permutation_p(values1, values2, seed)
    if np.ptp(values1) == np.ptp(values2) == 0:
        return MeansTest(difference, math.nan, math.nan, math.nan, permutation_p)
    with warnings.catch_warnings():
        # SciPy warns of lost precision if one of the sets is constant.
        warnings.simplefilter("ignore", RuntimeWarning)
        test = ttest_ind(values2, values1, equal_var=False)
    interval = test.confidence_interval(level)
    return MeansTest(difference, float(interval.low), float(interval.high), float(test.pvalue), permutation_p)


def _permutation_p(values1: NDArray[np.float64], values2: NDArray[np.float64], seed: int) -> float:
    """Returns the share of splits whose means differ at least as much as those of the two sets."""
    from scipy.stats import permutation_test

    def gap(first: NDArray[np.float64], second: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
        # Rounding keeps splits with the same difference equal.
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

    Items that both get right or both get wrong are ignored; under the hypothesis, the others are binomial with p =
    1/2.

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

    Rejecting adjusted p-values below alpha keeps the probability of any false rejection at alpha, for any
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
