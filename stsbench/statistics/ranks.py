"""Ranks of values, ties sharing the average of the places they take."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


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
    values = np.asarray(values, dtype=np.float64)
    if np.isnan(values).any():
        return np.full(values.shape, np.nan)
    _, codes, sizes = np.unique(values, return_inverse=True, return_counts=True)
    last_places = np.cumsum(sizes)
    ranks: NDArray[np.float64] = (last_places - (sizes - 1) / 2)[codes]
    return ranks
