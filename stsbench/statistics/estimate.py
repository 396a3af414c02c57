"""A number with its variance: interval, p-value, and the one verdict on a difference."""

from dataclasses import dataclass, replace
from typing import Literal

from numpy.typing import ArrayLike

from stsbench.statistics import LEVEL, Dependence
from stsbench.statistics.dependence import Sharing, Variance, variance
from stsbench.statistics.intervals import Limits, plain_interval, two_sided_p

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
