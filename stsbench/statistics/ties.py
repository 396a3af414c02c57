"""Tied similarities, and the range of Spearman's correlation over all ways of breaking the ties.

Low precision gives many pairs the same similarity. Spearman's correlation gives them their average rank; breaking
the ties instead gives other values, whose range is known exactly (for retrieval: Yang et al. 2025, arXiv
2508.03306). Every order of the n pairs has the ranks 1..n with the same spread, so the correlation depends only on
the sum of rank times gold rank. By the rearrangement inequality it is largest if each tied block is in rising
order of gold, and smallest if it is in falling order. Over all orders, the mean rank of a pair is its average
rank.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.statistics.correlations import Aggregation, aggregate, average_ranks, is_undefined, members_of

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Ties:
    """Ties among similarities and their effect on Spearman's correlation (NaN where it is undefined).

    Attributes:
        tied: share of pairs with the same similarity as another pair, from 0 to 1.
        distinct: number of different similarities.
        score: Spearman's correlation with average ranks.
        expected: mean over all ways of breaking the ties. It is at most as far from 0 as the score, because
            average ranks have a smaller spread.
        lowest: minimum over all ways of breaking the ties.
        highest: maximum over all ways of breaking the ties.
    """

    tied: float
    distinct: int
    score: float
    expected: float
    lowest: float
    highest: float


def ties_of(
    gold: ArrayLike,
    similarity: ArrayLike,
    subsets: ArrayLike | None = None,
    aggregation: Aggregation = "all",
) -> Ties:
    """Returns the ties among n similarities, and the range of Spearman's correlation over ways of breaking them.

    Ties of the gold scores are kept. The score may lie above the range: it is 1 if the similarities repeat two
    blocks of gold scores exactly, which no order without ties achieves.

    Args:
        gold: (n,) gold scores.
        similarity: (n,) similarities of the same pairs.
        subsets: (n,) integer codes 0..k-1, the subset of each pair; by default there is one.
        aggregation: of the subsets' correlations. Only `all` ranks pairs of different subsets together, where they
            can be tied.

    >>> ties = ties_of([1, 2, 3, 4], [0.0, 0.0, 1.0, 1.0])
    >>> ties.tied, ties.distinct, round(ties.score, 4)
    (1.0, 2, 0.8944)
    >>> [round(value, 4) for value in (ties.expected, ties.lowest, ties.highest)]
    [0.8, 0.6, 1.0]
    """
    scores, values = np.asarray(gold, dtype=np.float64), np.asarray(similarity, dtype=np.float64)
    if values.shape != scores.shape:
        raise ValueError(f"expected similarities of {len(scores)} pairs, got shape {values.shape}")
    if subsets is None or aggregation == "all":
        return _ties(scores, values)
    members = members_of(subsets, len(scores))
    parts, sizes = [_ties(scores[pairs], values[pairs]) for pairs in members], [len(pairs) for pairs in members]
    if len(parts) == 1:
        return parts[0]
    over = {
        name: aggregate(np.array([getattr(part, name) for part in parts]), np.array(np.nan), sizes)
        for name in ("score", "expected", "lowest", "highest")
    }
    return Ties(
        tied=float(np.average([part.tied for part in parts], weights=sizes)),
        distinct=sum(part.distinct for part in parts),
        **{name: float(aggregates[aggregation]) for name, aggregates in over.items()},
    )


def _ties(gold: Floats, similarity: Floats) -> Ties:
    size = len(similarity)
    # By similarity, and by rising gold within a tied block; reversing each block gives falling gold.
    order = np.lexsort((gold, similarity))
    _, blocks = np.unique(similarity, return_counts=True)
    begins = np.cumsum(blocks) - blocks
    tied = float(blocks[blocks > 1].sum() / size) if size else 0.0
    if is_undefined(gold) or is_undefined(similarity):
        return Ties(tied, len(blocks), *[float("nan")] * 4)
    ranks, places = _unit(average_ranks(gold)), _unit(np.arange(size, dtype=np.float64))
    highest = float(places @ ranks[order])
    reversed_ = np.repeat(2 * begins + blocks - 1, blocks) - np.arange(size)
    lowest = float(places @ ranks[order[reversed_]])
    # The middle place of a block is the mean over all its orders.
    middle = np.repeat(np.add.reduceat(places, begins) / blocks, blocks)
    expected = float(middle @ ranks[order])
    score = float(np.clip(expected / np.sqrt(middle @ middle), -1, 1))
    return Ties(tied, len(blocks), score, expected, lowest, highest)


def _unit(values: Floats) -> Floats:
    """Returns the deviations from the mean, scaled to length 1."""
    centred = values - values.mean()
    unit: Floats = centred / np.sqrt(centred @ centred)
    return unit


def rounded(values: ArrayLike, bits: int) -> Floats:
    """Rounds numbers to a given number of significant bits, halves to even.

    fp16 has 11 bits, bf16 has 8, fp8 (E4M3) has 4. The range of exponents is not limited: numbers below 6e-5
    (fp16) or 0.016 (fp8) keep bits that those formats would lose.

    >>> rounded([0.30001, 0.3, -1.0], 8).tolist()
    [0.30078125, 0.30078125, -1.0]
    """
    fraction, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    nearest: Floats = np.ldexp(np.round(np.ldexp(fraction, bits)), exponent - bits)
    return nearest
