"""One score from a task's subsets, the three ways in the literature.

On the same vectors the three differ by up to six points, so a score never goes without the name of its
aggregation.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.statistics.correlations import CORRELATIONS, Metric, as_pairs

Aggregation = Literal["all", "mean", "wmean"]
"""`all`: one correlation over the concatenated pairs (SimCSE, ESimCSE, MoCoSE). `mean`: the plain mean of
the subsets' correlations. `wmean`: their mean weighted by pairs (SentEval's headline, SBERT-era papers)."""


@dataclass(frozen=True)
class TaskScores:
    """The correlations of one task: of each subset, in the order of their codes, and over all of them."""

    subsets: NDArray[np.float64]
    aggregates: dict[Aggregation, float]


def correlate_task(
    gold: ArrayLike, similarity: ArrayLike, subsets: ArrayLike, metric: Metric = "spearman"
) -> TaskScores:
    """Correlate gold with similarity in each subset of a task and over the task, in all three ways.

    Args:
        gold: (n,) gold scores of the task's pairs.
        similarity: (n,) similarities of the same pairs.
        subsets: (n,) integer codes 0..k-1, the subset of each pair.
        metric: the correlation, a key of `CORRELATIONS`.

    Returns:
        (k,) subset correlations and the aggregates by name. An undefined subset is NaN, and makes `mean`
        and `wmean` NaN.

    Raises:
        ValueError: if the arrays differ in length, or a code below the largest has no pair.

    Example:
        >>> scores = correlate_task([1, 2, 3, 1, 2, 3], [1, 2, 3, 6, 5, 4], [0, 0, 0, 1, 1, 1])
        >>> scores.subsets.tolist()
        [1.0, -1.0]
        >>> scores.aggregates["mean"], scores.aggregates["wmean"]
        (0.0, 0.0)
    """
    gold, similarity = as_pairs(gold, similarity)
    correlate = CORRELATIONS[metric]
    members = members_of(subsets, len(gold))
    values = np.array([correlate(gold[pairs], similarity[pairs]) for pairs in members])
    overall = np.asarray(correlate(gold, similarity))
    aggregates = aggregate(values, overall, [len(pairs) for pairs in members])
    return TaskScores(values, {name: float(value) for name, value in aggregates.items()})


def aggregate(
    subsets: NDArray[np.float64], overall: NDArray[np.float64], sizes: ArrayLike
) -> dict[Aggregation, NDArray[np.float64]]:
    """Return the three aggregates of subset correlations; leading dimensions are kept.

    Args:
        subsets: (..., k) correlations of the k subsets.
        overall: (...) correlations over the concatenated pairs.
        sizes: (k,) number of pairs in each subset.

    Example:
        >>> values = aggregate(np.array([0.6, 0.9]), np.array(0.8), sizes=[100, 200])
        >>> {name: round(float(value), 4) for name, value in values.items()}
        {'all': 0.8, 'mean': 0.75, 'wmean': 0.8}
    """
    return {
        "all": overall,
        "mean": np.mean(subsets, axis=-1),
        "wmean": np.average(subsets, axis=-1, weights=np.asarray(sizes)),
    }


def members_of(subsets: ArrayLike, pairs: int) -> list[NDArray[np.intp]]:
    """Return the positions of each subset's pairs, by code.

    Args:
        subsets: (n,) integer codes 0..k-1.
        pairs: n, the number of pairs expected.

    Raises:
        ValueError: if there are no pairs, not one code for each, or a code below the largest has no pair.

    Example:
        >>> [positions.tolist() for positions in members_of([0, 1, 0], pairs=3)]
        [[0, 2], [1]]
    """
    if pairs == 0:
        raise ValueError("a task without pairs has no subsets")
    codes = np.asarray(subsets)
    if codes.shape != (pairs,):
        raise ValueError(f"expected one subset code for each of {pairs} pairs, got shape {codes.shape}")
    sizes = np.bincount(codes)
    if not sizes.all():
        raise ValueError(f"subset codes must be 0..{len(sizes) - 1}, but {int(np.argmin(sizes))} has no pair")
    return np.split(np.argsort(codes, kind="stable"), np.cumsum(sizes)[:-1])
