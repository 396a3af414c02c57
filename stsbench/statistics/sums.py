"""Bootstrap replicates of sums: the raw material of means, differences of means and regression slopes."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.statistics.resampling import resample_counts

_BLOCK_CELLS = 2**20


def bootstrap_sums(terms: ArrayLike, *, rng: np.random.Generator, resamples: int = 1000) -> NDArray[np.float64]:
    """Resample items and return the sums of several terms over each resample.

    All sums of a column come from one draw. A group's mean is the ratio of two of them (the values, and ones,
    of its members); a regression slope is a function of five.

    Args:
        terms: (m, n) the m terms of each of n items, n at least 1.
        rng: where the draws come from; see `generator`.
        resamples: number of resamples.

    Returns:
        (m, resamples) sums.

    Raises:
        ValueError: if `terms` is not two-dimensional, or there are no items.

    Example:
        >>> sums = bootstrap_sums([[1, 1, 1], [2, 4, 6]], rng=np.random.default_rng(0), resamples=500)
        >>> sums.shape, bool(3.9 < (sums[1] / sums[0]).mean() < 4.1)
        ((2, 500), True)
    """
    terms = np.asarray(terms, dtype=np.float64)
    if terms.ndim != 2 or not terms.shape[1]:
        raise ValueError(f"expected terms of at least one item in two dimensions, got shape {terms.shape}")
    sums = np.empty((len(terms), resamples))
    step = max(1, _BLOCK_CELLS // terms.shape[1])
    for start in range(0, resamples, step):
        counts = resample_counts(terms.shape[1], min(step, resamples - start), rng)
        sums[:, start : start + step] = terms @ counts
    return sums
