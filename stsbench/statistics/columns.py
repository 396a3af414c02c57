"""Many samples correlated with one: the gold is made ready once, the others go through together."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.statistics.ranks import average_ranks

Floats = NDArray[np.float64]


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
    rows, size = samples.shape
    order = np.argsort(samples, axis=1)
    ordered = np.take_along_axis(samples, order, axis=1)
    begins = np.ones(samples.shape, dtype=bool)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    # Each row begins a group of ties of its own, so the groups of all rows can be numbered through.
    group = np.cumsum(begins.ravel()) - 1
    sizes = np.bincount(group)
    average_places = np.cumsum(sizes) - (sizes - 1) / 2
    ranks = np.empty(samples.shape)
    placed = average_places[group].reshape(rows, size) - size * np.arange(rows)[:, np.newaxis]
    np.put_along_axis(ranks, order, placed, axis=1)
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
