"""Estimates with their bootstrap replicates: one array holds the value itself, then its replicates.

Whatever is computed from such arrays element by element (ratios, differences, means over tasks) is the value and
its replicates again.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.statistics.bootstrap import LEVEL, RESAMPLES, SEED, bootstrap_sums, generator, percentile_interval

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
