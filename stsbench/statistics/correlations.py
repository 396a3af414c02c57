"""Correlations of gold scores with similarities: of one sample, of many at once, of a task with subsets.

All are computed in float64. An undefined correlation (fewer than two pairs, a constant side, a value that is not
finite) is NaN. Samples that are not one-dimensional or differ in length raise a ValueError.

The subsets of a task can be aggregated in three ways that differ by up to six points on the same vectors, so every
score names its aggregation.

For gold labels instead of scores there are the average precision and the threshold with the best accuracy.
"""

from collections.abc import Callable
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Metric = Literal["spearman", "pearson", "kendall"]

Floats = NDArray[np.float64]


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Returns Pearson's correlation of two samples, (n,) each, in [-1, 1]."""
    x, y = as_pairs(x, y)
    return float("nan") if is_undefined(x) or is_undefined(y) else _defined_pearson(x, y)


def _defined_pearson(x: Floats, y: Floats) -> float:
    x, y = deviations(x), deviations(y)
    return float(np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Returns Spearman's correlation of two samples, (n,) each: Pearson's correlation of their average ranks.

    STS gold scores have many ties, so the textbook formula 1 - 6 sum d^2 / (n^3 - n) does not apply.

    >>> round(spearman([1, 2, 3, 4], [1, 30, 20, 400]), 12)
    0.8
    """
    x, y = as_pairs(x, y)
    if is_undefined(x) or is_undefined(y):
        return float("nan")
    return _defined_pearson(average_ranks(x), average_ranks(y))


def partial_spearman(x: ArrayLike, y: ArrayLike, fixed: ArrayLike) -> float:
    """Returns the first-order partial rank correlation of `x` and `y` given `fixed`, (n,) each.

    It correlates the residuals of the ranks of `x` and `y` after regressing both on the ranks of `fixed` (Kendall
    1942): (xy - xz yz) / sqrt((1 - xz^2) (1 - yz^2)). If `fixed` is constant, it is `spearman(x, y)`.

    >>> x, y, length = [1, 2, 3, 4, 5], [2, 1, 4, 3, 5], [5, 1, 2, 4, 3]
    >>> round(spearman(x, y), 4), round(partial_spearman(x, y, length), 4)
    (0.8, 0.8182)
    """
    x, fixed = as_pairs(x, fixed)
    y, _ = as_pairs(y, fixed)
    if fixed.size and (fixed == fixed[0]).all():
        return spearman(x, y)
    xy, xz, yz = spearman(x, y), spearman(x, fixed), spearman(y, fixed)
    below = np.sqrt((1 - xz**2) * (1 - yz**2))
    return float(np.clip((xy - xz * yz) / below, -1.0, 1.0)) if below > 0 else float("nan")


def kendall(x: ArrayLike, y: ArrayLike) -> float:
    """Returns Kendall's tau-b of two samples, (n,) each, corrected for ties."""
    # scipy.stats takes longer to import than everything else that `stsbench show` needs.
    from scipy.stats import kendalltau

    x, y = as_pairs(x, y)
    if is_undefined(x) or is_undefined(y):
        return float("nan")
    return float(kendalltau(x, y).statistic)


CORRELATIONS: MappingProxyType[Metric, Callable[[ArrayLike, ArrayLike], float]] = MappingProxyType(
    {"spearman": spearman, "pearson": pearson, "kendall": kendall}
)
"""The correlations, by their name in a signature."""


def as_pairs(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Returns two samples as float64 vectors; raises a ValueError if they are not vectors of the same length."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"expected two vectors of one length, got shapes {x.shape} and {y.shape}")
    return x, y


def deviations(values: Floats) -> Floats:
    """Returns the deviations from the mean, scaled so that the largest is 1 (all zero for a constant).

    Scaling does not change a correlation and keeps the squares from overflowing or vanishing.
    """
    centred: Floats = values - values.mean()
    largest = np.abs(centred).max()
    return centred / largest if largest > 0 else centred


def is_undefined(values: Floats) -> bool:
    """Returns whether a sample has no correlation: fewer than two values, or non-finite or only equal ones."""
    # Compare values, not deviations: the rounded mean of equal numbers can differ from them.
    return values.size < 2 or not np.isfinite(values).all() or bool(values.min() == values.max())


def average_ranks(values: ArrayLike) -> Floats:
    """Returns the ranks 1..n of (n,) numbers, or of each row of (k, n); ties share their average rank.

    A NaN makes all ranks of its row NaN. Ranks are multiples of a half, so float64 represents them exactly.

    >>> average_ranks([0.3, 0.1, 0.3]).tolist()
    [2.5, 1.0, 2.5]
    """
    samples = np.asarray(values, dtype=np.float64)
    ranks = np.empty(samples.shape)
    for row, of_row in zip(np.atleast_2d(samples), np.atleast_2d(ranks), strict=True):
        _, codes, sizes = np.unique(row, return_inverse=True, return_counts=True)
        of_row[:] = np.nan if np.isnan(row).any() else (np.cumsum(sizes) - (sizes - 1) / 2)[codes]
    return ranks


def correlate_rows(gold: ArrayLike, samples: ArrayLike) -> tuple[Floats, Floats]:
    """Correlates many samples with the same gold scores.

    Args:
        gold: (n,) gold scores.
        samples: (k, n) numbers, one sample per row.

    Returns:
        (k,) Spearman's and (k,) Pearson's correlations; NaN where undefined.

    >>> spearman, pearson = correlate_rows([1, 2, 3, 4], [[1, 30, 20, 400], [1, 3, 2, 4]])
    >>> spearman.round(6).tolist(), pearson.round(6).tolist()
    ([0.8, 0.8], [0.798641, 0.8])
    """
    scores = np.asarray(gold, dtype=np.float64)[np.newaxis]
    values = np.asarray(samples, dtype=np.float64)
    ranks = average_ranks(values)
    ranks[~np.isfinite(values).all(axis=1)] = np.nan
    by_rank = _unit(ranks) @ _unit(average_ranks(scores))[0]
    return np.clip(by_rank, -1.0, 1.0), np.clip(_unit(values) @ _unit(scores)[0], -1.0, 1.0)


def _unit(samples: Floats) -> Floats:
    """Returns the deviations of each row from its mean, scaled to length 1; NaN for a constant row."""
    constant = samples.min(axis=1) == samples.max(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        centred: Floats = samples - samples.mean(axis=1, keepdims=True)
        # Dividing by the largest first keeps squares from overflowing or vanishing.
        centred /= np.abs(centred).max(axis=1, keepdims=True)
        centred /= np.sqrt(np.einsum("ij,ij->i", centred, centred))[:, np.newaxis]
    centred[constant] = np.nan
    return centred


Aggregation = Literal["all", "mean", "wmean"]
"""`all`: one correlation over the concatenated pairs (SimCSE, ESimCSE, MoCoSE). `mean`: the plain mean of
the subsets' correlations. `wmean`: their mean weighted by pairs (SentEval's headline, SBERT-era papers)."""


def correlate_task(
    gold: ArrayLike, similarity: ArrayLike, subsets: ArrayLike, metric: Metric = "spearman"
) -> dict[Aggregation, float]:
    """Correlates gold scores with similarities in each subset of a task, and aggregates in all three ways.

    Args:
        gold: (n,) gold scores of the task's pairs.
        similarity: (n,) similarities of the same pairs.
        subsets: (n,) integer codes 0..k-1, the subset of each pair.
        metric: the correlation, a key of `CORRELATIONS`.

    Returns:
        The aggregates by name. A subset without a correlation makes `mean` and `wmean` NaN.

    >>> scores = correlate_task([1, 2, 3, 1, 2, 3], [1, 2, 3, 6, 5, 4], [0, 0, 0, 1, 1, 1])
    >>> scores["mean"], scores["wmean"]
    (0.0, 0.0)
    """
    gold, similarity = as_pairs(gold, similarity)
    correlate = CORRELATIONS[metric]
    members = members_of(subsets, len(gold))
    values = np.array([correlate(gold[pairs], similarity[pairs]) for pairs in members])
    overall = np.asarray(correlate(gold, similarity))
    aggregates = aggregate(values, overall, [len(pairs) for pairs in members])
    return {name: float(value) for name, value in aggregates.items()}


def aggregate(subsets: Floats, overall: Floats, sizes: ArrayLike) -> dict[Aggregation, Floats]:
    """Returns the three aggregates of subset correlations; leading dimensions are kept.

    Args:
        subsets: (..., k) correlations of the k subsets.
        overall: (...) correlations over the concatenated pairs.
        sizes: (k,) number of pairs in each subset.
    """
    return {
        "all": overall,
        "mean": np.mean(subsets, axis=-1),
        "wmean": np.average(subsets, axis=-1, weights=np.asarray(sizes)),
    }


def members_of(subsets: ArrayLike, pairs: int) -> list[NDArray[np.intp]]:
    """Returns the positions of the pairs of each subset.

    Args:
        subsets: (n,) integer codes 0..k-1.
        pairs: n, the number of pairs expected.

    Raises:
        ValueError: if there are no pairs, the number of codes is not n, or a code below the largest is unused.

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


def reliability(gold: Floats, raters: Floats, variances: Floats) -> float:
    """Returns the share of the variance of gold scores that is not rater noise.

    With s_i^2 the variance of the k_i ratings of pair i, the noise of their mean is s_i^2 / k_i, and

        R = 1 - mean_i(s_i^2 / k_i) / var(gold),

    the intraclass correlation ICC(1, k) if every pair has k ratings (Shrout and Fleiss 1979). Raters may differ
    between pairs; a rater's bias counts as noise. Pairs with fewer than two ratings are left out.

    Args:
        gold: (n,) means of the ratings.
        raters: (n,) number of ratings of each pair; NaN if unknown.
        variances: (n,) sample variances of the ratings of each pair.

    Returns:
        At most 1; negative if ratings vary more within pairs than between them. NaN if fewer than two pairs have
        two ratings, or all gold scores are equal.
    """
    rated = (raters >= 2) & np.isfinite(variances)
    if rated.sum() < 2:
        return float("nan")
    spread = float(np.var(gold[rated], ddof=1))
    if spread == 0:
        return float("nan")
    return float(1 - np.mean(variances[rated] / raters[rated]) / spread)


def ceiling(reliable: float) -> float:
    """Returns the Pearson correlation of an error-free similarity with gold: the root of the reliability.

    It is exact for Pearson's correlation (Spearman 1904) and an approximation for Spearman's. NaN if the
    reliability is NaN or negative.
    """
    return float(np.sqrt(reliable)) if reliable >= 0 else float("nan")


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
