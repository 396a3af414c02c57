"""Partial rank correlation: how two samples go together while a third is held fixed."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.statistics.correlations import as_pairs, spearman
from stsbench.statistics.counted import counted_spearman
from stsbench.statistics.resampling import resample_counts

_BLOCK_CELLS = 2**18


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
    return float(_partial(*(np.array([spearman(a, b)]) for a, b in ((x, y), (x, fixed), (y, fixed))))[0])


def bootstrap_partial_spearman(
    x: ArrayLike, y: ArrayLike, fixed: ArrayLike, *, rng: np.random.Generator, resamples: int = 1000
) -> NDArray[np.float64]:
    """Resample the triples of three samples and return the (resamples,) partial correlations.

    Args:
        x: (n,) numbers, n at least 1.
        y: (n,) numbers, paired with `x`.
        fixed: (n,) numbers, paired with both.
        rng: where the draws come from; see `generator`.
        resamples: number of resamples.

    Returns:
        NaN where a resample is constant in `x` or `y`.

    Raises:
        ValueError: if they are not one-dimensional and of one length.
    """
    x, fixed = as_pairs(x, fixed)
    y, _ = as_pairs(y, fixed)
    correlations = [counted_spearman(a, b) for a, b in ((x, y), (x, fixed), (y, fixed))]
    replicates = np.empty(resamples)
    step = max(1, _BLOCK_CELLS // len(x))
    for start in range(0, resamples, step):
        counts = resample_counts(len(x), min(step, resamples - start), rng)
        both, of_x, of_y = (correlate(counts) for correlate in correlations)
        constant = np.isnan(of_x) & np.isnan(of_y)
        replicates[start : start + step] = np.where(constant, both, _partial(both, of_x, of_y))
    return replicates


def _partial(xy: NDArray[np.float64], xz: NDArray[np.float64], yz: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", divide="ignore"):
        partial = (xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2))
    return np.where(np.isfinite(partial), np.clip(partial, -1.0, 1.0), np.nan)
