"""Statistics that carry along what each pair contributes to them: so does whatever is computed from them.

The delta method as arithmetic: a sum, difference, product or quotient of statistics has the terms (`influence`)
that calculus gives it. A ratio of sums, a gap between groups, a slope or a mean over tasks then has its variance
from `dependence` without a formula of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Union

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Linear:
    """A statistic, and what each pair contributes to it to first order.

    Attributes:
        value: the statistic.
        terms: by block of pairs (a task, say) the (n,) terms of its pairs. Those of a plain sum are what is
            summed; of a function of sums that does not change when every pair counts twice they add up to 0.

    Example:
        >>> above, below = Linear(6.0, {"a": np.array([2.0, 0, 4])}), Linear(2.0, {"a": np.array([1.0, 0, 1])})
        >>> mean = above / below
        >>> mean.value, mean.terms["a"].tolist()
        (3.0, [-0.5, 0.0, 0.5])
    """

    value: float
    terms: Mapping[str, Floats]

    @classmethod
    def undefined(cls) -> "Linear":
        """Return a statistic that is not defined."""
        return cls(float("nan"), {})

    def __add__(self, other: "Linear") -> "Linear":
        """Return the sum."""
        return self._with(other, self.value + other.value, 1.0, 1.0)

    def __sub__(self, other: "Linear") -> "Linear":
        """Return the difference."""
        return self._with(other, self.value - other.value, 1.0, -1.0)

    def __mul__(self, other: Union["Linear", float]) -> "Linear":
        """Return the product with another statistic or a number."""
        if not isinstance(other, Linear):
            return self.mapped(self.value * other, other)
        return self._with(other, self.value * other.value, other.value, self.value)

    __rmul__ = __mul__

    def __truediv__(self, other: Union["Linear", float]) -> "Linear":
        """Return the quotient with another statistic or a number; not defined where that is 0."""
        if not isinstance(other, Linear):
            return self.mapped(self.value / other, 1 / other)
        if other.value == 0:
            return Linear.undefined()
        value = self.value / other.value
        return self._with(other, value, 1 / other.value, -value / other.value)

    def mapped(self, value: float, slope: float) -> "Linear":
        """Return a function of the statistic: its value, and its slope there."""
        return Linear(value, {block: slope * terms for block, terms in self.terms.items()})

    def _with(self, other: "Linear", value: float, slope: float, other_slope: float) -> "Linear":
        terms = {block: slope * of_block for block, of_block in self.terms.items()}
        for block, of_block in other.terms.items():
            theirs = other_slope * of_block
            terms[block] = terms[block] + theirs if block in terms else theirs
        return Linear(value, terms)
