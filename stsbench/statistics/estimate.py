"""A number with its variance: interval, p-value, and the one verdict on a difference."""

import math
import warnings
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import permutation_test, ttest_ind

from stsbench.statistics import LEVEL, Dependence
from stsbench.statistics.dependence import Sharing, Variance, variance
from stsbench.statistics.intervals import Limits, plain_interval, two_sided_p
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
