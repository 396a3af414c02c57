"""Pairs that belong together or not, ordered by similarity: average precision, and the best threshold.

As MTEB's pair classification has them: average precision as scikit-learn's (pairs of one similarity count
together), and the accuracy at the best threshold as sentence-transformers' `BinaryClassificationEvaluator`. Both
take (n,) labels, 1 where a pair belongs together, else 0, and the (n,) similarities of the same pairs.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.statistics.correlations import as_pairs

Floats = NDArray[np.float64]


def average_precision(labels: ArrayLike, similarity: ArrayLike) -> float:
    """Return the mean, over the pairs that belong together, of the precision among those at least as similar.

    It is between 0 and 1; NaN where no pair belongs together, or all do.

    >>> round(average_precision([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1]), 4)
    0.8333
    """
    ordered = _Ordered.of(labels, similarity)
    return float("nan") if ordered is None else ordered.mean_precision


def average_precision_terms(labels: ArrayLike, similarity: ArrayLike) -> Floats:
    """Return each pair's term of the average precision.

    With A(s) and B(s) the shares of pairs at least as similar as s that belong together, and of all such, and p
    the share of those that belong together, it is E[y A(s) / B(s)] / p. A pair counts at its own place and in A
    and B of every pair that is not more similar: its influence is

        (y A / B - AP p + sum over such pairs i of y_i (y / B_i - A_i / B_i^2) / n) / p - AP (y - p) / p.

    The n terms sum to 0; they are NaN where the average precision is undefined.

    >>> terms = average_precision_terms([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1])
    >>> abs(float(terms.sum())) < 1e-12
    True
    """
    ordered = _Ordered.of(labels, similarity)
    size = len(np.asarray(labels))
    if ordered is None:
        return np.full(size, np.nan)
    y, precision, above = ordered.labels, ordered.precision, ordered.above
    share, value = ordered.positives / size, ordered.mean_precision
    # Sums over all pairs that are not more similar, pairs of one similarity together.
    at_place, over_above = _from_here(y / above, ordered), _from_here(y * precision / above, ordered)
    influence = y * precision - value * share + y * at_place - over_above
    influence = influence / share - value / share * (y - share)
    terms = np.empty(size)
    terms[ordered.order] = (influence - influence.mean()) / size
    return terms


class Threshold(NamedTuple):
    """The similarity from which on pairs count as belonging together, and the share that is right then."""

    threshold: float
    accuracy: float


def best_threshold(labels: ArrayLike, similarity: ArrayLike) -> Threshold:
    """Return the threshold with the highest accuracy; of equals the first from above wins.

    Thresholds lie above all pairs, at the lowest, and in the middle between neighbours of different similarity, so
    that the order of the pairs does not matter.

    >>> best = best_threshold([1, 1, 0], [0.9, 0.7, 0.1])
    >>> round(best.threshold, 3), best.accuracy
    (0.4, 1.0)
    """
    truth, values = as_pairs(labels, similarity)
    size = len(truth)
    if not size:
        return Threshold(float("nan"), float("nan"))
    order = np.argsort(-values, kind="stable")
    ordered, positive = values[order], truth[order] > 0
    # Right if the k most similar count as belonging together, where the k-th is more similar than the next.
    right = np.concatenate([[0], np.cumsum(np.where(positive, 1, -1))]) + int((~positive).sum())
    counts = np.concatenate([[0], np.flatnonzero(ordered[:-1] > ordered[1:]) + 1, [size]])
    best = int(counts[np.argmax(right[counts])])
    if best == 0:
        threshold = np.nextafter(ordered[0], np.inf)
    elif best == size:
        threshold = ordered[-1]
    else:
        middle = (ordered[best - 1] + ordered[best]) / 2
        threshold = middle if middle > ordered[best] else ordered[best - 1]
    return Threshold(float(threshold), float(right[best] / size))


class _Ordered(NamedTuple):
    """Pairs by falling similarity.

    Attributes:
        order: (n,) their places as they were given.
        labels: (n,) 1 or 0.
        last: (n,) the place of the last pair of the same similarity.
        above: (n,) how many pairs are at least as similar.
        precision: (n,) the share of these that belong together.
        positives: how many belong together at all.
    """

    order: NDArray[np.intp]
    labels: Floats
    last: NDArray[np.intp]
    above: Floats
    precision: Floats
    positives: float

    @classmethod
    def of(cls, labels: ArrayLike, similarity: ArrayLike) -> "_Ordered | None":
        truth, values = as_pairs(labels, similarity)
        positives = float((truth > 0).sum())
        if positives in {0.0, float(len(truth))}:
            return None
        order = np.argsort(-values, kind="stable")
        ordered, y = values[order], (truth[order] > 0).astype(np.float64)
        last = np.searchsorted(-ordered, -ordered, side="right") - 1
        above = (last + 1).astype(np.float64)
        return cls(order, y, last, above, np.cumsum(y)[last] / above, positives)

    @property
    def mean_precision(self) -> float:
        """The mean of the precision over the pairs that belong together."""
        return float((self.labels * self.precision).sum() / self.positives)


def _from_here(values: Floats, ordered: _Ordered) -> Floats:
    """Return for each pair the sum over all pairs that are not more similar."""
    firsts = np.searchsorted(ordered.last, ordered.last, side="left")
    sums: Floats = np.cumsum(values[::-1])[::-1][firsts]
    return sums
