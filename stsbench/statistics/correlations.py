"""The correlations of gold scores with similarities, in float64.

A correlation that does not exist (fewer than two pairs, a constant side, a value that is not finite) is NaN
here: what that means for a score, and what to tell the person, is for the caller to decide.
"""

from collections.abc import Callable
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.statistics.ranks import average_ranks

Metric = Literal["spearman", "pearson", "kendall"]


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Return the product-moment correlation of two samples, in [-1, 1], or NaN where it is undefined.

    Args:
        x: (n,) numbers.
        y: (n,) numbers, paired with `x`.

    Raises:
        ValueError: if the two are not one-dimensional and of one length.

    Example:
        >>> round(pearson([1, 2, 3, 4], [1, 3, 2, 4]), 12)
        0.8
    """
    x, y = as_pairs(x, y)
    if _is_undefined(x) or _is_undefined(y):
        return float("nan")
    x, y = deviations(x), deviations(y)
    return float(np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Return the rank correlation of two samples (Pearson's of their average ranks), or NaN if undefined.

    This is the headline metric of the STS tables. Ties share their average rank: the textbook formula
    1 - 6 sum d^2 / (n^3 - n) holds only without ties, and STS gold scores are full of them.

    Args:
        x: (n,) numbers.
        y: (n,) numbers, paired with `x`.

    Raises:
        ValueError: if the two are not one-dimensional and of one length.

    Example:
        >>> round(spearman([1, 2, 3, 4], [1, 30, 20, 400]), 12)
        0.8
    """
    x, y = as_pairs(x, y)
    if _is_undefined(x) or _is_undefined(y):
        return float("nan")
    return pearson(average_ranks(x), average_ranks(y))


def kendall(x: ArrayLike, y: ArrayLike) -> float:
    """Return Kendall's tau-b of two samples (corrected for ties), or NaN where it is undefined.

    Args:
        x: (n,) numbers.
        y: (n,) numbers, paired with `x`.

    Raises:
        ValueError: if the two are not one-dimensional and of one length.

    Example:
        >>> round(kendall([1, 2, 3, 4], [1, 3, 2, 4]), 12)
        0.666666666667
    """
    # Imported here because scipy.stats takes longer to import than all of the rest together.
    from scipy.stats import kendalltau

    x, y = as_pairs(x, y)
    if _is_undefined(x) or _is_undefined(y):
        return float("nan")
    return float(kendalltau(x, y).statistic)


CORRELATIONS: MappingProxyType[Metric, Callable[[ArrayLike, ArrayLike], float]] = MappingProxyType(
    {"spearman": spearman, "pearson": pearson, "kendall": kendall}
)
"""Every correlation by the name it has in a signature."""


def as_pairs(x: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two samples as float64 vectors of one length.

    Raises:
        ValueError: if the two are not one-dimensional and of one length.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"expected two vectors of one length, got shapes {x.shape} and {y.shape}")
    return x, y


def deviations(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the deviations from the mean, scaled so that the largest is 1 (all zero for a constant).

    Pearson's correlation does not change with the scale, and squares of such deviations can neither
    overflow nor vanish.
    """
    centred: NDArray[np.float64] = values - values.mean()
    largest = np.abs(centred).max()
    return centred / largest if largest > 0 else centred


def _is_undefined(values: NDArray[np.float64]) -> bool:
    # A constant is asked for by comparison, because the rounded mean of equal numbers can differ from them.
    return values.size < 2 or not np.isfinite(values).all() or bool(values.min() == values.max())
