"""The best of n runs: its mean and its distribution, from the scores of N runs.

Who trains n times (or looks at n checkpoints) and tells of the best has not told of the mean. The expected best
of n is estimated from all subsets of n of the N scores, without replacement: unbiased. Dodge et al. (2019,
equation 6) draw with replacement, which counts some runs twice and comes out too low.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def best_of_weights(size: int) -> Floats:
    """Return (N, N) how likely each score is the best of n: row n - 1, column i for the (i + 1)-th lowest score.

    The i-th lowest of N is the highest of C(i - 1, n - 1) of the C(N, n) subsets.

    >>> best_of_weights(3).round(3).tolist()
    [[0.333, 0.333, 0.333], [0.0, 0.333, 0.667], [0.0, 0.0, 1.0]]
    """
    weights = np.zeros((size, size))
    weights[0] = 1 / size if size else 0.0
    places = np.arange(size)
    for row in range(1, size):
        # C(i, n) / C(N, n + 1) from the row above: no factorial that overflows.
        weights[row] = weights[row - 1] * np.maximum(places - row + 1, 0) / row * (row + 1) / (size - row)
    return weights


def expected_best(scores: ArrayLike) -> Floats:
    """Return (N,) the expected best of 1, 2, ... N runs.

    Args:
        scores: (N,) of runs that are alike but for chance.

    Raises:
        ValueError: if there are none.

    Example:
        >>> expected_best([1.0, 2.0, 4.0]).round(4).tolist()
        [2.3333, 3.3333, 4.0]
    """
    ordered = _ordered(scores)
    expected: Floats = best_of_weights(len(ordered)) @ ordered
    return expected


def best_of_below(scores: ArrayLike, value: float) -> Floats:
    """Return (N,) the share of the bests of 1, 2, ... N runs that are below a value.

    >>> best_of_below([1.0, 2.0, 4.0], 3.0).round(4).tolist()
    [0.6667, 0.3333, 0.0]
    """
    ordered = _ordered(scores)
    below: Floats = best_of_weights(len(ordered))[:, ordered < value].sum(axis=1)
    return below


def best_of_quantiles(scores: ArrayLike, share: float) -> Floats:
    """Return (N,) the quantile of the best of 1, 2, ... N runs: the lowest score with so much at or below it.

    >>> best_of_quantiles([1.0, 2.0, 4.0], 0.5).tolist()
    [2.0, 4.0, 4.0]
    """
    ordered = _ordered(scores)
    reached = best_of_weights(len(ordered)).cumsum(axis=1) >= share - 1e-12
    return np.asarray(ordered[reached.argmax(axis=1)])


def _ordered(scores: ArrayLike) -> Floats:
    values = np.sort(np.asarray(scores, dtype=np.float64))
    if values.ndim != 1 or not len(values):
        raise ValueError(f"expected at least one score in one dimension, got shape {values.shape}")
    return values
