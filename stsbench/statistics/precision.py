"""Pair classification by similarity: average precision, and accuracy at the best threshold.

Both are those of MTEB's pair classification: average precision as in scikit-learn (tied pairs count together), and
the threshold of sentence-transformers' `BinaryClassificationEvaluator`. Labels are (n,) with 1 for positive pairs,
else 0; similarities are (n,).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.statistics.correlations import as_pairs

Floats = NDArray[np.float64]


def average_precision(labels: ArrayLike, similarity: ArrayLike) -> tuple[float, Floats]:
    """Returns the mean over positive pairs of the precision among the pairs at least as similar, and its terms.

    It is between 0 and 1. Let B(s) be the share of pairs at least as similar as s, A(s) the share of such positive
    pairs, and p the share of positive pairs. Average precision is E[y A(s) / B(s)] / p. A pair counts at its own
    place and in A and B of every pair that is not more similar, so its influence is

        (y A / B - AP p + sum over such pairs i of y_i (y / B_i - A_i / B_i^2) / n) / p - AP (y - p) / p.

    The (n,) terms sum to 0. All numbers are NaN if the pairs are all positive or all negative.

    >>> round(average_precision([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1])[0], 4)
    0.8333
    """
    truth, values = as_pairs(labels, similarity)
    size, positives = len(truth), float((truth > 0).sum())
    if positives in {0.0, float(size)}:
        return float("nan"), np.full(size, np.nan)
    order = np.argsort(-values, kind="stable")
    ordered, y = values[order], (truth[order] > 0).astype(np.float64)
    # Tied pairs count together: the first and the last position of the same similarity.
    last = np.searchsorted(-ordered, -ordered, side="right") - 1
    first = np.searchsorted(last, last, side="left")
    above = (last + 1).astype(np.float64)
    precision = np.cumsum(y)[last] / above
    value, share = float((y * precision).sum() / positives), positives / size

    def from_here(addends: Floats) -> Floats:
        sums: Floats = np.cumsum(addends[::-1])[::-1][first]
        return sums

    influence = y * precision - value * share + y * from_here(y / above) - from_here(y * precision / above)
    influence = influence / share - value / share * (y - share)
    terms = np.empty(size)
    terms[order] = (influence - influence.mean()) / size
    return value, terms


class Threshold(NamedTuple):
    """The lowest similarity classified as positive, and the accuracy of that threshold."""

    threshold: float
    accuracy: float


def best_threshold(labels: ArrayLike, similarity: ArrayLike) -> Threshold:
    """Returns the threshold with the highest accuracy; among ties, the highest threshold.

    Candidates are a threshold above all pairs, the lowest similarity, and the midpoints between neighbouring
    different similarities, so the order of the pairs does not matter.

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
    # Number of correct pairs if the k most similar are positive, at k where the next pair is less similar.
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
