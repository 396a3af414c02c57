"""Bootstrap replicates of shares and ratios over items: accuracy, F1."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.statistics.resampling import resample_counts

_BLOCK_CELLS = 2**20


def bootstrap_ratio(
    numerators: ArrayLike,
    denominators: ArrayLike = 1.0,
    *,
    rng: np.random.Generator,
    resamples: int = 1000,
) -> NDArray[np.float64]:
    """Resample items and return the (resamples,) ratios of two sums over them, NaN where the lower one is zero.

    With ones below it is the mean: accuracy is that of being correct. F1 has twice the true positives above,
    and below those and the false positives and negatives.

    Args:
        numerators: (n,) each item's share of the upper sum, n at least 1.
        denominators: (n,) each item's share of the lower one, or one number for all.
        rng: where the draws come from; see `generator`.
        resamples: number of resamples.

    Raises:
        ValueError: if there are no items, or the two differ in length.

    Example:
        >>> correct = np.array([1, 1, 1, 0])
        >>> replicates = bootstrap_ratio(correct, rng=np.random.default_rng(0), resamples=500)
        >>> bool(0.7 < replicates.mean() < 0.8)
        True
    """
    above = np.asarray(numerators, dtype=np.float64)
    below = np.broadcast_to(np.asarray(denominators, dtype=np.float64), above.shape)
    if above.ndim != 1 or not len(above):
        raise ValueError(f"expected at least one item in one dimension, got shape {above.shape}")
    replicates = np.empty(resamples)
    step = max(1, _BLOCK_CELLS // len(above))
    for start in range(0, resamples, step):
        counts = resample_counts(len(above), min(step, resamples - start), rng)
        lower = below @ counts
        upper = above @ counts
        replicates[start : start + step] = np.where(lower == 0, np.nan, upper / np.where(lower == 0, 1, lower))
    return replicates
