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
    average_ranks,
    is_undefined,
    members_of,
    run_bounds,
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


@dataclass(frozen=True, eq=False)
class OrderedGold:
    """The gold scores of n pairs, made ready to be held against many similarities.

    Attributes:
        members: of each subset the positions of its pairs; one of all pairs where those are ranked together.
        units: of each subset the deviations of the average ranks of its gold scores, scaled to length 1; None
            where they are constant.
        rising: of each subset the positions in `members` by rising gold score.
        aggregation: of the subsets' correlations.
    """

    members: tuple[NDArray[np.intp], ...]
    units: tuple[Floats | None, ...]
    rising: tuple[NDArray[np.intp], ...]
    aggregation: Aggregation = "all"

    @classmethod
    def of(
        cls, gold: ArrayLike, subsets: ArrayLike | None = None, aggregation: Aggregation = "all"
    ) -> "OrderedGold":
        """Make (n,) gold scores ready; arguments as in `ties_of`."""
        scores = np.asarray(gold, dtype=np.float64)
        together = subsets is None or aggregation == "all"
        members = [np.arange(len(scores))] if together else members_of(subsets, len(scores))  # type: ignore[arg-type]
        parts = [scores[pairs] for pairs in members]
        units = tuple(None if is_undefined(part) else _unit(average_ranks(part)) for part in parts)
        rising = tuple(np.argsort(part, kind="stable") for part in parts)
        return cls(tuple(members), units, rising, "all" if together else aggregation)


def ties_of(
    gold: ArrayLike | OrderedGold,
    similarity: ArrayLike,
    subsets: ArrayLike | None = None,
    aggregation: Aggregation = "all",
) -> Ties:
    """Return the ties among n similarities, and the range of Spearman's correlation over ways of breaking them.

    Ties of the gold scores are not broken: people gave them. The score itself may lie above the range: of two
    blocks of gold scores that the similarities repeat exactly it is 1, and of no order without ties.

    Args:
        gold: (n,) gold scores, or these made ready with the next two.
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
    ready = gold if isinstance(gold, OrderedGold) else OrderedGold.of(gold, subsets, aggregation)
    values = np.asarray(similarity, dtype=np.float64)
    sizes = [len(pairs) for pairs in ready.members]
    if values.shape != (sum(sizes),):
        raise ValueError(f"expected similarities of {sum(sizes)} pairs, got shape {values.shape}")
    parts = [
        _ties(values[pairs], units, rising)
        for pairs, units, rising in zip(ready.members, ready.units, ready.rising, strict=True)
    ]
    if len(parts) == 1:
        return parts[0]
    over = {
        name: aggregate(np.array([getattr(part, name) for part in parts]), np.array(np.nan), sizes)
        for name in ("score", "expected", "lowest", "highest")
    }
    return Ties(
        tied=float(np.average([part.tied for part in parts], weights=sizes)),
        distinct=sum(part.distinct for part in parts),
        **{name: float(aggregates[ready.aggregation]) for name, aggregates in over.items()},
    )


def _ties(similarity: Floats, gold: Floats | None, rising: NDArray[np.intp]) -> Ties:
    size = len(similarity)
    # By similarity, and where that is one by rising gold; with each block turned round, by falling gold.
    order = rising[np.argsort(similarity[rising], kind="stable")]
    bounds = run_bounds(similarity[order])
    begins, ends = bounds[:-1], bounds[1:]
    blocks = ends - begins
    tied = float(blocks[blocks > 1].sum() / size) if size else 0.0
    if gold is None or is_undefined(similarity):
        return Ties(tied, len(blocks), *[float("nan")] * 4)
    places = _unit(np.arange(size, dtype=np.float64))
    highest = float(places @ gold[order])
    turned = np.repeat(begins + ends - 1, blocks) - np.arange(size)
    lowest = float(places @ gold[order[turned]])
    # Each of a block has its middle place, which is the mean over all of its orders.
    middle = np.repeat(np.add.reduceat(places, begins) / blocks, blocks)
    expected = float(middle @ gold[order])
    return Ties(
        tied, len(blocks), float(np.clip(expected / np.sqrt(middle @ middle), -1, 1)), expected, lowest, highest
    )


def _unit(values: Floats) -> Floats:
    """Return the deviations from the mean, scaled to length 1."""
    centred = values - values.mean()
    unit: Floats = centred / np.sqrt(centred @ centred)
    return unit


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
