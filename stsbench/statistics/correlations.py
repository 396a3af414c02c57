"""The correlations of gold scores with similarities, one pair of samples at a time or many, in float64.

A correlation that does not exist (fewer than two pairs, a constant side, a value that is not finite) is NaN
here: what that means for a score, and what to tell the person, is for the caller to decide.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Metric = Literal["spearman", "pearson", "kendall"]

Floats = NDArray[np.float64]


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
    if is_undefined(x) or is_undefined(y):
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
    if is_undefined(x) or is_undefined(y):
        return float("nan")
    return pearson(average_ranks(x), average_ranks(y))


def partial_spearman(x: ArrayLike, y: ArrayLike, fixed: ArrayLike) -> float:
    """Return the first-order partial rank correlation of two samples, or NaN where it is undefined.

    It is the correlation that is left of the ranks of `x` and `y` after a straight line in the ranks of `fixed`
    has been taken out of both (Kendall 1942): (xy - xz yz) / sqrt((1 - xz^2) (1 - yz^2)).

    Args:
        x: (n,) numbers.
        y: (n,) numbers, paired with `x`.
        fixed: (n,) numbers, paired with both. A constant is held fixed already: then it is `spearman(x, y)`.

    Raises:
        ValueError: if they are not one-dimensional and of one length.

    Example:
        >>> x, y, length = [1, 2, 3, 4, 5], [2, 1, 4, 3, 5], [5, 1, 2, 4, 3]
        >>> round(spearman(x, y), 4), round(partial_spearman(x, y, length), 4)
        (0.8, 0.8182)
    """
    x, fixed = as_pairs(x, fixed)
    y, _ = as_pairs(y, fixed)
    if fixed.size and (fixed == fixed[0]).all():
        return spearman(x, y)
    xy, xz, yz = spearman(x, y), spearman(x, fixed), spearman(y, fixed)
    below = np.sqrt((1 - xz**2) * (1 - yz**2))
    return float(np.clip((xy - xz * yz) / below, -1.0, 1.0)) if below > 0 else float("nan")


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
    if is_undefined(x) or is_undefined(y):
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


def is_undefined(values: NDArray[np.float64]) -> bool:
    """Return whether a side of some pairs has no correlation with anything: too few, not finite, or constant.

    >>> is_undefined(np.array([1.0, 1.0])), is_undefined(np.array([1.0, 2.0]))
    (True, False)
    """
    # A constant is asked for by comparison, because the rounded mean of equal numbers can differ from them.
    return values.size < 2 or not np.isfinite(values).all() or bool(values.min() == values.max())


def average_ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Return the ranks 1..n of `values`, ties sharing their average rank.

    Args:
        values: (n,) numbers. A NaN has no place in an order: any NaN makes every rank NaN.

    Returns:
        (n,) float64; every rank is a whole or a half number, so float64 holds it exactly.

    Example:
        >>> average_ranks([0.3, 0.1, 0.3]).tolist()
        [2.5, 1.0, 2.5]
    """
    # As `scipy.stats.rankdata`, whose import takes half a second, and every run ranks.
    values = np.asarray(values, dtype=np.float64)
    if np.isnan(values).any():
        return np.full(values.shape, np.nan)
    _, codes, sizes = np.unique(values, return_inverse=True, return_counts=True)
    last_places = np.cumsum(sizes)
    ranks: NDArray[np.float64] = (last_places - (sizes - 1) / 2)[codes]
    return ranks


@dataclass(frozen=True)
class Gold:
    """One side of a correlation, made ready: unit vectors of its deviations.

    Attributes:
        values: (n,) of the values, for Pearson.
        ranks: (n,) of their average ranks, for Spearman. NaN, as the values, where it is constant.
    """

    values: Floats
    ranks: Floats

    @classmethod
    def of(cls, gold: ArrayLike) -> "Gold":
        """Make (n,) numbers ready."""
        values = np.asarray(gold, dtype=np.float64)
        return cls(_unit(values[np.newaxis])[0], _unit(average_ranks(values)[np.newaxis])[0])


def correlate_rows(gold: Gold, samples: ArrayLike) -> tuple[Floats, Floats]:
    """Correlate many samples with one, by Spearman and by Pearson.

    The same numbers as `spearman` and `pearson` give one by one, to rounding.

    Args:
        gold: made ready of (n,) numbers.
        samples: (k, n) numbers, a sample in each row.

    Returns:
        (k,) Spearman's and (k,) Pearson's correlations; NaN where undefined.

    Example:
        >>> spearman, pearson = correlate_rows(Gold.of([1, 2, 3, 4]), [[1, 30, 20, 400], [1, 3, 2, 4]])
        >>> spearman.round(6).tolist(), pearson.round(6).tolist()
        ([0.8, 0.8], [0.798641, 0.8])
    """
    values = np.asarray(samples, dtype=np.float64)
    ranks = rank_rows(values)
    ranks[~np.isfinite(values).all(axis=1)] = np.nan
    return _products(_unit(ranks), gold.ranks), _products(_unit(values), gold.values)


def rank_rows(samples: NDArray[np.float64]) -> Floats:
    """Return the ranks 1..n in each row of (k, n) numbers, ties sharing their average rank.

    Example:
        >>> rank_rows(np.array([[0.3, 0.1, 0.3], [1.0, 2.0, 3.0]])).tolist()
        [[2.5, 1.0, 2.5], [1.0, 2.0, 3.0]]
    """
    order = np.argsort(samples, axis=1)
    ordered = np.take_along_axis(samples, order, axis=1)
    places = np.arange(1.0, samples.shape[1] + 1)
    begins, ends = np.ones(samples.shape, dtype=bool), np.ones(samples.shape, dtype=bool)
    begins[:, 1:] = ends[:, :-1] = ordered[:, 1:] != ordered[:, :-1]
    # Of equal numbers each has the mean of the first and the last place.
    first = np.maximum.accumulate(np.where(begins, places, 0), axis=1)
    last = np.minimum.accumulate(np.where(ends, places, np.inf)[:, ::-1], axis=1)[:, ::-1]
    ranks: Floats = np.empty(samples.shape)
    np.put_along_axis(ranks, order, (first + last) / 2, axis=1)
    ranks[np.isnan(samples).any(axis=1)] = np.nan
    return ranks


def _unit(samples: Floats) -> Floats:
    """Return the deviations of each row from its mean, scaled to length 1; NaN for a constant row."""
    constant = samples.min(axis=1) == samples.max(axis=1)
    centred: Floats = samples - samples.mean(axis=1, keepdims=True)
    # By the largest first: squares can then neither overflow nor vanish.
    with np.errstate(invalid="ignore", divide="ignore"):
        centred /= np.abs(centred).max(axis=1, keepdims=True)
        centred /= np.sqrt(np.einsum("ij,ij->i", centred, centred))[:, np.newaxis]
    centred[constant] = np.nan
    return centred


def _products(samples: Floats, gold: Floats) -> Floats:
    correlations: Floats = np.clip(samples @ gold, -1.0, 1.0)
    return correlations
