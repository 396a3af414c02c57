"""Ties: pairs of one similarity, and what Spearman's correlation would be were they told apart.

A low precision gives many pairs one similarity. Spearman's correlation lets them share their average rank, which
is one answer to a question that the similarities leave open. What the others are is known exactly (as Yang et al.
2025 have it of retrieval, arXiv 2508.03306): broken ties are some order of the n pairs, so the ranks are 1..n and
their spread is the same whatever the order. The correlation then moves with the sum of rank times gold rank alone,
which by the rearrangement inequality is largest where each tied block stands in rising order of gold, and smallest
where it stands in falling order. Over all orders, each as likely, the mean rank of a pair is its average rank.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.statistics.correlations import (
    Aggregation,
    aggregate,
    as_pairs,
    average_ranks,
    is_undefined,
    members_of,
    spearman,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Ties:
    """What the ties among the similarities of some pairs leave open. NaN where the correlation is undefined.

    Attributes:
        tied: the share of pairs whose similarity another pair has too, from 0 to 1.
        distinct: how many different similarities there are.
        score: Spearman's correlation, ties sharing their average rank.
        expected: its mean over all ways of breaking the ties. It is at most as far from 0 as the score, which
            divides by the smaller spread of ranks that are shared.
        lowest: the lowest that a way of breaking the ties gives.
        highest: the highest.
    """

    tied: float
    distinct: int
    score: float
    expected: float
    lowest: float
    highest: float


def ties_of(
    gold: ArrayLike, similarity: ArrayLike, subsets: ArrayLike | None = None, aggregation: Aggregation = "all"
) -> Ties:
    """Return the ties among n similarities, and the range of Spearman's correlation over ways of breaking them.

    Ties of the gold scores are not broken: people gave them. The score itself may lie above the range: of two
    blocks of gold scores that the similarities repeat exactly it is 1, and of no order without ties.

    Args:
        gold: (n,) gold scores.
        similarity: (n,) similarities of the same pairs.
        subsets: (n,) integer codes 0..k-1, the subset of each pair; by default there is one.
        aggregation: of the subsets' correlations; pairs of two subsets are ranked together by `all` alone, and
            tied there alone.

    >>> ties = ties_of([1, 2, 3, 4], [0.0, 0.0, 1.0, 1.0])
    >>> ties.tied, ties.distinct, round(ties.score, 4)
    (1.0, 2, 0.8944)
    >>> [round(value, 4) for value in (ties.expected, ties.lowest, ties.highest)]
    [0.8, 0.6, 1.0]
    """
    gold, similarity = as_pairs(gold, similarity)
    whole = _ties(gold, similarity)
    if subsets is None or aggregation == "all":
        return whole
    members = members_of(subsets, len(gold))
    parts = [_ties(gold[pairs], similarity[pairs]) for pairs in members]
    sizes = [len(pairs) for pairs in members]
    over = {
        name: float(aggregate(np.array([getattr(part, name) for part in parts]), np.array(np.nan), sizes)[aggregation])
        for name in ("score", "expected", "lowest", "highest")
    }
    tied = float(np.average([part.tied for part in parts], weights=sizes))
    return Ties(tied, sum(part.distinct for part in parts), **over)


def _ties(gold: Floats, similarity: Floats) -> Ties:
    size = len(gold)
    _, sizes = np.unique(similarity, return_counts=True)
    tied = float(sizes[sizes > 1].sum() / size) if size else 0.0
    if is_undefined(gold) or is_undefined(similarity):
        return Ties(tied, len(sizes), *[float("nan")] * 4)
    ranks = average_ranks(gold) - (size + 1) / 2
    places = np.arange(size) - (size - 1) / 2
    spread = np.sqrt((places @ places) * (ranks @ ranks))
    # In the order of similarity, blocks of one similarity in falling or in rising order of gold.
    lowest, highest = (float(places @ ranks[np.lexsort((side * ranks, similarity))]) / spread for side in (-1, 1))
    expected = float((average_ranks(similarity) - (size + 1) / 2) @ ranks) / spread
    return Ties(tied, len(sizes), spearman(gold, similarity), expected, lowest, highest)


def rounded(values: ArrayLike, bits: int) -> Floats:
    """Return numbers as a floating-point format with so many significant bits holds them, halves to even.

    fp16 has 11, bf16 has 8, fp8 (E4M3) has 4. The range of the exponent is not limited here: similarities far
    below 1 keep bits that fp16 would lose below 6e-5, and fp8 below 0.016.

    >>> rounded([0.30001, 0.3, -1.0], 8).tolist()
    [0.30078125, 0.30078125, -1.0]
    """
    fraction, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    nearest: Floats = np.ldexp(np.round(np.ldexp(fraction, bits)), exponent - bits)
    return nearest
