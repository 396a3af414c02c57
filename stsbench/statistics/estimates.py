"""Estimates with their bootstrap replicates: one array holds the value itself, then its replicates.

Whatever is computed from such arrays element by element (ratios, differences, means over tasks) is the value and
its replicates again.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.statistics.bootstrap import LEVEL, RESAMPLES, SEED, generator, percentile_interval, resample_counts

Floats = NDArray[np.float64]


class Resampling(NamedTuple):
    """How intervals are computed: number of resamples (0 for none), share of replicates inside, seed."""

    resamples: int = RESAMPLES
    level: float = LEVEL
    seed: int = SEED


def sums_of(terms: Floats, resampling: Resampling, *names: str) -> Floats:
    """Return the sums of terms over items, and over resamples of the items.

    Args:
        terms: (m, n) the m terms of n items, n at least 1.
        resampling: how often, and the seed.
        names: what the draws are for; the same names give the same draws.

    Returns:
        (m, 1 + resamples); the first column holds the sums themselves.
    """
    rng = generator(resampling.seed, *names)
    replicates = bootstrap_sums(terms, rng=rng, resamples=resampling.resamples)
    return np.column_stack([terms.sum(axis=1), replicates])


def ratio(above: Floats, below: Floats) -> Floats:
    """Return the ratio of two sums, NaN where the lower one is zero (a group without members)."""
    return np.divide(above, below, out=np.full_like(above, np.nan), where=below != 0)


def with_interval(estimate: Floats, resampling: Resampling) -> dict[str, Any]:
    """Return an estimate's value and the limits of its percentile interval, NaN where there are none."""
    value, replicates = float(estimate[0]), estimate[1:]
    low, high = float("nan"), float("nan")
    if len(replicates) and not np.isnan(value):
        low, high = percentile_interval(replicates, resampling.level)
    return {"value": value, "low": low, "high": high}


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
