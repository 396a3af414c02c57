"""Correlations of many resamples at once, from how often each pair was drawn.

A resample is a column of counts, never a copy of the data. What does not depend on the draw (the order of
the values, the ties) is worked out once per sample; each resample then costs a few passes over the pairs,
without sorting.
"""

from collections.abc import Callable
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.statistics.correlations import Metric, as_pairs, deviations, kendall

Floats = NDArray[np.float64]
Counts = NDArray[np.int32]
Counted = Callable[[Counts], Floats]
"""Takes (n, resamples) counts of the pairs, gives (resamples,) correlations, NaN where undefined."""


def counted_spearman(x: ArrayLike, y: ArrayLike) -> Counted:
    """Return the function from counts to Spearman's correlation of each resample.

    All sums are of whole numbers that float64 holds exactly (up to some 200,000 pairs), so a resample's
    value does not depend on the order of the pairs.

    Args:
        x: (n,) numbers.
        y: (n,) numbers, paired with `x`.

    Raises:
        ValueError: if the two are not one-dimensional and of one length.

    Example:
        >>> correlate = counted_spearman([1, 2, 3, 4], [1, 30, 20, 400])
        >>> correlate(np.array([[1, 2, 4], [1, 0, 0], [1, 0, 0], [1, 2, 0]])).tolist()
        [0.8, 1.0, nan]
    """
    x, y = as_pairs(x, y)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return _undefined
    ranks_of_x, ranks_of_y = _counted_ranks(x), _counted_ranks(y)

    def correlate(counts: Counts) -> Floats:
        ranks_x, ranks_y = ranks_of_x(counts), ranks_of_y(counts)
        weights = counts.astype(np.float64)
        covariance = np.einsum("ij,ij,ij->j", weights, ranks_x, ranks_y)
        variance_x = np.einsum("ij,ij,ij->j", weights, ranks_x, ranks_x)
        variance_y = np.einsum("ij,ij,ij->j", weights, ranks_y, ranks_y)
        return _ratio(covariance, variance_x, variance_y)

    return correlate


def counted_pearson(x: ArrayLike, y: ArrayLike) -> Counted:
    """Return the function from counts to Pearson's correlation of each resample.

    The moments of all resamples are one matrix product. A resample whose variance is nothing but the rounding
    of its terms counts as constant.

    Args:
        x: (n,) numbers.
        y: (n,) numbers, paired with `x`.

    Raises:
        ValueError: if the two are not one-dimensional and of one length.

    Example:
        >>> correlate = counted_pearson([1, 2, 3, 4], [1, 3, 2, 4])
        >>> correlate(np.array([[1, 2], [1, 0], [1, 0], [1, 2]])).round(12).tolist()
        [0.8, 1.0]
    """
    x, y = as_pairs(x, y)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return _undefined
    x, y = deviations(x), deviations(y)
    terms = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y])

    def correlate(counts: Counts) -> Floats:
        total, *sums = terms @ counts.astype(np.float64)
        mean_x, mean_y, square_x, square_y, product = np.array(sums) / total
        variance_x, variance_y = square_x - mean_x**2, square_y - mean_y**2
        variance_x[variance_x <= 1e-12 * square_x] = np.nan
        variance_y[variance_y <= 1e-12 * square_y] = np.nan
        return _ratio(product - mean_x * mean_y, variance_x, variance_y)

    return correlate


def counted_kendall(x: ArrayLike, y: ArrayLike) -> Counted:
    """Return the function from counts to Kendall's tau-b of each resample.

    The slow one: each resample is written out and given to SciPy, which sorts it; some twenty times the
    cost of Spearman's.

    Args:
        x: (n,) numbers.
        y: (n,) numbers, paired with `x`.

    Raises:
        ValueError: if the two are not one-dimensional and of one length.

    Example:
        >>> correlate = counted_kendall([1, 2, 3, 4], [1, 3, 2, 4])
        >>> correlate(np.array([[1, 2], [1, 0], [1, 0], [1, 2]])).round(12).tolist()
        [0.666666666667, 1.0]
    """
    x, y = as_pairs(x, y)

    def correlate(counts: Counts) -> Floats:
        return np.array([kendall(np.repeat(x, times), np.repeat(y, times)) for times in counts.T])

    return correlate


COUNTED: MappingProxyType[Metric, Callable[[ArrayLike, ArrayLike], Counted]] = MappingProxyType(
    {"spearman": counted_spearman, "pearson": counted_pearson, "kendall": counted_kendall}
)
"""The counted form of every correlation in `CORRELATIONS`."""


def _counted_ranks(values: Floats) -> Counted:
    """Return the function from counts to each pair's rank in each resample, centred and doubled.

    A group of tied values drawn from place `below` + 1 to place `upto` of N has the average rank
    (below + upto + 1) / 2, and ranks have the mean (N + 1) / 2: twice their difference is the whole number
    below + upto - N. The running count over the sorted pairs, read at the edges of the groups, is all
    it takes.
    """
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    edges = np.concatenate([[0], np.cumsum(sizes)])

    def ranks(counts: Counts) -> Floats:
        # Running sums of integers are several times as fast as of floats, where each waits for the last.
        running = np.zeros((len(counts) + 1, counts.shape[1]), dtype=np.int32)
        np.cumsum(np.take(counts, order, axis=0), axis=0, out=running[1:])
        at_edges = np.take(running, edges, axis=0)
        doubled = at_edges[:-1] + at_edges[1:]
        doubled -= at_edges[-1]
        return np.take(doubled.astype(np.float64), group, axis=0)

    return ranks


def _ratio(covariance: Floats, variance_x: Floats, variance_y: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        correlations: Floats = np.clip(covariance / np.sqrt(variance_x * variance_y), -1.0, 1.0)
    return correlations


def _undefined(counts: Counts) -> Floats:
    return np.full(counts.shape[1], np.nan)
