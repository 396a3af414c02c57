"""McNemar's test of two classifiers on the same items."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


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

    Raises:
        ValueError: if the two are not one-dimensional and of one length.

    Example:
        >>> mcnemar([1, 1, 1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1])
        McNemar(only_first=6, only_second=1, p_value=0.125)
    """
    one, other = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    if one.ndim != 1 or one.shape != other.shape:
        raise ValueError(f"expected two vectors of one length, got shapes {one.shape} and {other.shape}")
    only_first, only_second = int((one & ~other).sum()), int((other & ~one).sum())
    if only_first == only_second:
        return McNemar(only_first, only_second, 1.0)

    from scipy.stats import binomtest

    return McNemar(only_first, only_second, float(binomtest(only_first, only_first + only_second).pvalue))
