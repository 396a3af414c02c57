"""The correlations of gold scores with similarities: of a sample, of many at once, of a task with subsets.

All are in float64. A correlation that does not exist (fewer than two pairs, a constant side, a value that is not
finite) is NaN here: what that means for a score, and what to tell the person, is for the caller to decide. Samples
that are not one-dimensional and of one length are a ValueError.

A task's subsets make one score in three ways, which on the same vectors differ by up to six points: a score never
goes without the name of its aggregation. How high a correlation can be, the agreement of the raters tells.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Metric = Literal["spearman", "pearson", "kendall"]

Floats = NDArray[np.float64]

_FEW = 50_000
"""Numbers whose ranks are remembered: 128 times as many take 100 MB at most."""


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Return the product-moment correlation of two samples, (n,) each, in [-1, 1].

    >>> round(pearson([1, 2, 3, 4], [1, 3, 2, 4]), 12)
    0.8
    """
    x, y = as_pairs(x, y)
    return float("nan") if is_undefined(x) or is_undefined(y) else _defined_pearson(x, y)


def _defined_pearson(x: Floats, y: Floats) -> float:
    x, y = deviations(x), deviations(y)
    return float(np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Return the rank correlation of two samples, (n,) each: Pearson's of their average ranks.

    This is the headline metric of the STS tables. Ties share their average rank: the textbook formula
    1 - 6 sum d^2 / (n^3 - n) holds only without ties, and STS gold scores are full of them.

    >>> round(spearman([1, 2, 3, 4], [1, 30, 20, 400]), 12)
    0.8
    """
    x, y = as_pairs(x, y)
    if is_undefined(x) or is_undefined(y):
        return float("nan")
    return _defined_pearson(average_ranks(x), average_ranks(y))


def partial_spearman(x: ArrayLike, y: ArrayLike, fixed: ArrayLike) -> float:
    """Return the first-order partial rank correlation of two samples, (n,) each.

    It is the correlation that is left of the ranks of `x` and `y` after a straight line in the ranks of `fixed`
    has been taken out of both (Kendall 1942): (xy - xz yz) / sqrt((1 - xz^2) (1 - yz^2)).

    Args:
        x: (n,) numbers.
        y: (n,) numbers, paired with `x`.
        fixed: (n,) numbers, paired with both. A constant is held fixed already: then it is `spearman(x, y)`.

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
    """Return Kendall's tau-b of two samples, (n,) each; it is corrected for ties.

    >>> round(kendall([1, 2, 3, 4], [1, 3, 2, 4]), 12)
    0.666666666667
    """
    # Imported here because scipy.stats takes longer to import than all of the rest together.
    from scipy.stats import kendalltau

    x, y = as_pairs(x, y)
    if is_undefined(x) or is_undefined(y):
        return float("nan")
    return float(kendalltau(x, y).statistic)


CORRELATIONS: MappingProxyType[Metric, Callable[[ArrayLike, ArrayLike], float]] = MappingProxyType(
    {"spearman": spearman, "pearson": pearson, "kendall": kendall}
)
"""Every correlation by the name it has in a signature."""


def as_pairs(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Return two samples as float64 vectors of one length.

    Raises:
        ValueError: if the two are not one-dimensional and of one length.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"expected two vectors of one length, got shapes {x.shape} and {y.shape}")
    return x, y


def deviations(values: Floats) -> Floats:
    """Return the deviations from the mean, scaled so that the largest is 1 (all zero for a constant).

    Pearson's correlation does not change with the scale, and squares of such deviations can neither
    overflow nor vanish.
    """
    centred: Floats = values - values.mean()
    largest = np.abs(centred).max()
    return centred / largest if largest > 0 else centred


def is_undefined(values: Floats) -> bool:
    """Return whether a side of some pairs has no correlation with anything: too few, not finite, or constant.

    >>> is_undefined(np.array([1.0, 1.0])), is_undefined(np.array([1.0, 2.0]))
    (True, False)
    """
    # A constant is asked for by comparison, because the rounded mean of equal numbers can differ from them.
    return values.size < 2 or not np.isfinite(values).all() or bool(values.min() == values.max())


def average_ranks(values: ArrayLike) -> Floats:
    """Return the (n,) ranks 1..n of n numbers, ties sharing their average rank; any NaN makes every rank NaN.

    Every rank is a whole or a half number, so float64 holds it exactly.

    >>> average_ranks([0.3, 0.1, 0.3]).tolist()
    [2.5, 1.0, 2.5]
    """
    values = np.ascontiguousarray(values, dtype=np.float64)
    ranks: Floats = _ranked_before(values.tobytes()) if len(values) <= _FEW else _ranks(values)
    return ranks


@lru_cache(maxsize=128)
def _ranked_before(values: bytes) -> Floats:
    """Return the ranks of a few numbers: the same gold scores are ranked for each model, metric and subset."""
    ranks = _ranks(np.frombuffer(values))
    ranks.flags.writeable = False
    return ranks


def _ranks(values: Floats) -> Floats:
    # As `scipy.stats.rankdata`, whose import takes half a second, and every run ranks.
    order = np.argsort(values)
    ordered = values[order]
    bounds = run_bounds(ordered)
    ranks: Floats = np.empty(len(values))
    # Of equal numbers each has the mean of the first and the last place.
    ranks[order] = np.repeat((bounds[:-1] + 1 + bounds[1:]) / 2, np.diff(bounds))
    if len(values) and np.isnan(ordered[-1]):
        ranks[:] = np.nan
    return ranks


def run_bounds(ordered: Floats) -> NDArray[np.intp]:
    """Return where each run of equal ones begins among n ordered numbers, and n at last.

    >>> run_bounds(np.array([0.1, 0.3, 0.3])).tolist()
    [0, 1, 3]
    """
    size = len(ordered)
    return np.concatenate([[0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, [size]])[: size + 1]


def rank_rows(samples: NDArray[np.floating[Any]]) -> Floats:
    """Return the ranks 1..n in each row of (k, n) numbers, as `average_ranks` does one by one.

    >>> rank_rows(np.array([[0.3, 0.1, 0.3], [1.0, 2.0, 3.0]])).tolist()
    [[2.5, 1.0, 2.5], [1.0, 2.0, 3.0]]
    """
    order = np.argsort(samples, axis=1)
    ordered = np.take_along_axis(samples, order, axis=1)
    places = np.arange(1.0, samples.shape[1] + 1)
    begins, ends = np.ones(samples.shape, dtype=bool), np.ones(samples.shape, dtype=bool)
    begins[:, 1:] = ends[:, :-1] = ordered[:, 1:] != ordered[:, :-1]
    first = np.maximum.accumulate(np.where(begins, places, 0), axis=1)
    last = np.minimum.accumulate(np.where(ends, places, np.inf)[:, ::-1], axis=1)[:, ::-1]
    ranks: Floats = np.empty(samples.shape)
    np.put_along_axis(ranks, order, (first + last) / 2, axis=1)
    ranks[np.isnan(samples).any(axis=1)] = np.nan
    return ranks


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
        values = np.asarray(gold, dtype=np.float64)[np.newaxis]
        return cls(_unit(values)[0], _unit(rank_rows(values))[0])


def correlate_rows(gold: Gold, samples: ArrayLike) -> tuple[Floats, Floats]:
    """Correlate many samples with one, by Spearman and by Pearson, as one by one to rounding.

    Args:
        gold: made ready of (n,) numbers.
        samples: (k, n) numbers, a sample in each row.

    Returns:
        (k,) Spearman's and (k,) Pearson's correlations; NaN where undefined.

    >>> spearman, pearson = correlate_rows(Gold.of([1, 2, 3, 4]), [[1, 30, 20, 400], [1, 3, 2, 4]])
    >>> spearman.round(6).tolist(), pearson.round(6).tolist()
    ([0.8, 0.8], [0.798641, 0.8])
    """
    values = np.asarray(samples, dtype=np.float64)
    ranks = rank_rows(values)
    ranks[~np.isfinite(values).all(axis=1)] = np.nan
    return _products(_unit(ranks), gold.ranks), _products(_unit(values), gold.values)


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


Aggregation = Literal["all", "mean", "wmean"]
"""`all`: one correlation over the concatenated pairs (SimCSE, ESimCSE, MoCoSE). `mean`: the plain mean of
the subsets' correlations. `wmean`: their mean weighted by pairs (SentEval's headline, SBERT-era papers)."""


@dataclass(frozen=True)
class TaskScores:
    """The correlations of one task: of each subset, in the order of their codes, and over all of them."""

    subsets: Floats
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


def aggregate(subsets: Floats, overall: Floats, sizes: ArrayLike) -> dict[Aggregation, Floats]:
    """Return the three aggregates of subset correlations; leading dimensions are kept.

    Args:
        subsets: (..., k) correlations of the k subsets.
        overall: (...) correlations over the concatenated pairs.
        sizes: (k,) number of pairs in each subset.

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
    """Return the share of the variance of gold scores that is not the raters' noise.

    With s_i^2 the variance of the k_i ratings of pair i, the noise of its mean is s_i^2 / k_i, and

        R = 1 - mean_i(s_i^2 / k_i) / var(gold),

    which is the intraclass correlation ICC(1, k) where every pair has k ratings (Shrout and Fleiss 1979). Raters
    may be others for every pair; what one of them gives too high or too low throughout counts as noise. Pairs with
    fewer than two ratings say nothing of noise and are left out.

    Args:
        gold: (n,) means of the ratings.
        raters: (n,) how many ratings each pair has; NaN where nobody says.
        variances: (n,) of the ratings of each pair, with k - 1 in the denominator.

    Returns:
        At most 1; negative where raters differ more within pairs than pairs do. NaN where fewer than two pairs
        have two ratings, or all gold scores are equal.

    >>> gold, two = np.array([0.5, 2.0, 4.5]), np.array([2.0, 2.0, 2.0])
    >>> round(reliability(gold, two, np.array([0.5, 0.0, 0.5])), 4)
    0.9592
    """
    rated = (raters >= 2) & np.isfinite(variances)
    if rated.sum() < 2:
        return float("nan")
    spread = float(np.var(gold[rated], ddof=1))
    if spread == 0:
        return float("nan")
    return float(1 - np.mean(variances[rated] / raters[rated]) / spread)


def ceiling(reliable: float) -> float:
    """Return the Pearson correlation with gold that a similarity without any error has: the root of reliability.

    What people agree on in the long run correlates with the mean of a few of them no higher (Spearman 1904). Of
    ranks it is an approximation. Between 0 and 1; NaN where the reliability is NaN or negative.

    >>> ceiling(0.81)
    0.9
    """
    return float(np.sqrt(reliable)) if reliable >= 0 else float("nan")
