"""Ranks of several scores estimated on the same pairs: significant differences, rank intervals, groups.

Each difference is tested alone first. Draws of normal errors then estimate how often equal models show a
difference that large somewhere among all pairs, which corrects for testing all of them (a step-down min-p
procedure: Westfall and Young 1993, algorithm 2.8). The draws of a score do not depend on the other scores, so
adding a score never lowers a corrected p-value. Rank intervals follow from the significant differences (Mogstad,
Romano, Shaikh and Wilhelm 2024; Klein, Wright and Wieczorek 2020).

`ties_of` is about the ranks of pairs: how much Spearman's correlation depends on the order of tied similarities.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_letters

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from stsbench.statistics.correlations import Aggregation, aggregate, average_ranks, is_undefined, members_of
from stsbench.statistics.intervals import check_level
from stsbench.statistics.seeds import generator

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

_BLOCK = 4_000_000
"""Numbers per block of draws."""

_SOURCES = 1000
"""Largest number of sources of error; pooling more changes correlations of differences by about 0.03."""


@dataclass(frozen=True)
class Ranking:
    """Ranks of m scores; rank 1 is the highest score.

    Attributes:
        rank: (m,) observed ranks; equal scores share the best rank.
        best: (m,) lower ends of the rank intervals.
        worst: (m,) upper ends of the rank intervals.
        p: (m, m) two-sided p-values of the differences, corrected for all pairs of scores; 1 on the diagonal.
        letters: (m,) groups of each score: scores that share a group do not differ significantly.
        first: (m,) share of draws of a parametric bootstrap in which each score is the highest (not the
            probability that the model is the best).
    """

    rank: NDArray[np.int64]
    best: NDArray[np.int64]
    worst: NDArray[np.int64]
    p: Floats
    letters: tuple[tuple[str, ...], ...]
    first: Floats


def rank_scores(
    values: ArrayLike,
    covariance: ArrayLike,
    p_alone: ArrayLike,
    sums: ArrayLike,
    *,
    df: float = np.inf,
    level: float = 0.95,
    simultaneous: bool = False,
    draws: int = 5000,
    seed: int = 0,
) -> Ranking:
    """Ranks scores that were estimated on the same pairs.

    Args:
        values: (m,) scores, higher is better, m at least 2.
        covariance: (m, m) covariance of their errors; negative eigenvalues are set to 0.
        p_alone: (m, m) uncorrected two-sided p-values of the differences.
        sums: (m, k) contributions of k independent sources (such as sentences) to the error of each score, from
            which the correction draws.
        df: degrees of freedom of the covariance; infinite for a normal.
        level: coverage of the rank intervals; 1 - level is the size of the tests behind the groups.
        simultaneous: whether the level holds for all rank intervals jointly; by default for each alone.
        draws: number of draws of the errors.
        seed: of the draws.
    """
    scores, matrix = np.asarray(values, dtype=np.float64), np.asarray(covariance, dtype=np.float64)
    size = len(scores)
    if scores.ndim != 1 or size < 2 or matrix.shape != (size, size):
        raise ValueError(f"expected m >= 2 scores and an (m, m) covariance, got {scores.shape} and {matrix.shape}")
    check_level(level)
    root = covariance_root(matrix)
    alone, parts = np.asarray(p_alone, dtype=np.float64), _pooled(np.asarray(sums, dtype=np.float64), seed)
    p, p_of_each = _corrected(alone, parts, draws, generator(seed, "ranks"))
    shown = (p if simultaneous else p_of_each) < 1 - level
    above = scores[None, :] > scores[:, None]
    return Ranking(
        rank=1 + above.sum(axis=1),
        best=1 + (shown & above).sum(axis=1),
        worst=size - (shown & above.T).sum(axis=1),
        p=p,
        letters=group_letters(p < 1 - level, scores),
        first=_first(scores, root, df, draws, seed),
    )


def covariance_root(covariance: ArrayLike) -> Floats:
    """Returns an (m, m) root R, so that R R' is the covariance with its negative eigenvalues set to 0.

    The dyadic covariance of many models can have negative eigenvalues: it is a difference of two sums of squares.
    """
    matrix = np.asarray(covariance, dtype=np.float64)
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    root: Floats = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


def group_letters(differ: ArrayLike, values: ArrayLike) -> tuple[tuple[str, ...], ...]:
    """Returns a compact letter display: two scores share a letter exactly if they do not differ (Piepho 2004).

    `differ`, (m, m), is a mask of the significant differences. The highest of the (m,) values gets the first
    letter. More than 52 groups are numbered.

    >>> group_letters([[0, 0, 1], [0, 0, 0], [1, 0, 0]], [3.0, 2.0, 1.0])
    (('a',), ('a', 'b'), ('b',))
    """
    apart = np.asarray(differ, dtype=bool)
    order = np.argsort(-np.asarray(values, dtype=np.float64), kind="stable")
    size = len(order)
    # A group is a bit set of places in the order. Each pair that differs splits every group that has both.
    groups = [(1 << size) - 1]
    for first in range(size):
        for second in range(first + 1, size):
            if apart[order[first], order[second]]:
                groups = _split(groups, 1 << first, 1 << second)
    # From the highest score down; among groups with the same first member, the longer one comes first.
    groups.sort(key=lambda group: [place for place in range(size) if group >> place & 1])
    numbers = [str(number) for number in range(1, len(groups) + 1)]
    names = ascii_letters if len(groups) <= len(ascii_letters) else numbers
    letters: list[tuple[str, ...]] = [()] * size
    for place in range(size):
        held = (name for group, name in zip(groups, names, strict=False) if group >> place & 1)
        letters[order[place]] = tuple(held)
    return tuple(letters)


def letters_text(letters: Sequence[str]) -> str:
    """Joins the groups of a score for a table: letters without spaces, numbers with spaces.

    >>> letters_text(["a", "b"]), letters_text(["9", "10"])
    ('ab', '9 10')
    """
    return ("" if all(map(str.isalpha, letters)) else " ").join(letters)


def _split(groups: Sequence[int], first: int, second: int) -> list[int]:
    both = first | second
    kept = [group for group in groups if group & both != both]
    for group in groups:
        if group & both == both:
            for part in (group & ~first, group & ~second):
                # Drop groups that are part of another.
                if not any(part & other == part for other in kept):
                    kept = [*(other for other in kept if other & part != other), part]
    return kept


def _pooled(sums: Floats, seed: int) -> Floats:
    """Returns (m, k) sums; more than `_SOURCES` sources are pooled in random groups with random signs."""
    sources = sums.shape[1]
    if sources <= _SOURCES:
        return sums
    rng = generator(seed, "sources")
    groups, signs = rng.integers(_SOURCES, size=sources), rng.choice([-1.0, 1.0], size=sources)
    return np.array([np.bincount(groups, weights=signs * row, minlength=_SOURCES) for row in sums])


def _noise(parts: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Draws (draws, m) normal errors of the scores from (m, k) parts."""
    noise: Floats = rng.standard_normal((draws, parts.shape[1])) @ parts.T
    return noise


def _corrected(alone: Floats, parts: Floats, draws: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Returns (m, m) p-values corrected for all differences, and for those of the score of the row alone."""
    size = len(alone)
    # A single difference needs no correction.
    noise = _noise(parts, draws if size > 2 else 0, rng)
    matrix = parts @ parts.T
    diagonal = np.diag(matrix)
    errors = np.sqrt(np.maximum(diagonal[:, None] + diagonal[None, :] - matrix - matrix.T, 0.0))

    p, p_of_each = np.ones((2, size, size))
    first, second = np.triu_indices(size, 1)
    p[first, second] = p[second, first] = _step_down(alone, noise, errors, first[None], second[None])[0]
    others = np.array([[other for other in range(size) if other != place] for place in range(size)])
    places = np.broadcast_to(np.arange(size)[:, None], others.shape)
    np.put_along_axis(p_of_each, others, _step_down(alone, noise, errors, places, others), axis=1)
    return p, p_of_each


def _step_down(p_values: Floats, noise: Floats, errors: Floats, first: Places, second: Places) -> Floats:
    """Corrects p-values for families of differences (Westfall and Young 1993, algorithm 2.8).

    The smallest p-value of a family is compared with the smallest in each draw, the next one with the smallest of
    the remaining differences, and so on. The uncorrected p-value, which is exact, covers the difference itself;
    the draws only add the probability that another difference is as large while this one is not.

    Args:
        p_values: (m, m) uncorrected p-values.
        noise: (draws, m) normal errors of the scores.
        errors: (m, m) standard errors of the differences of the draws.
        first: (f, k) first score of each difference, f families of k.
        second: (f, k) second score, which is subtracted.
    """
    order = np.argsort(-p_values[first, second], axis=1, kind="stable")
    left, right = np.take_along_axis(first, order, axis=1), np.take_along_axis(second, order, axis=1)
    alone = p_values[left, right]
    # Normal deviates, regardless of the degrees of freedom of each difference.
    held = -ndtri(alone / 2)
    above = np.zeros(alone.shape)
    step = max(1, _BLOCK // alone.size)
    for start in range(0, len(noise), step):
        block = noise[start : start + step]
        drawn = _ratio(np.abs(block[:, left] - block[:, right]), errors[left, right])
        # The largest difference among those with larger p-values.
        before = np.maximum.accumulate(drawn, axis=2)[:, :, :-1]
        above[:, 1:] += ((drawn < held)[:, :, 1:] & (before >= held[:, 1:])).sum(axis=0)
    # Count at least one draw, and keep p-values monotone in the differences.
    p = alone.copy()
    p[:, 1:] += (1 + above[:, 1:]) / (1 + len(noise))
    p = np.minimum(np.maximum.accumulate(p[:, ::-1], axis=1)[:, ::-1], 1.0)
    in_place = np.empty_like(p)
    np.put_along_axis(in_place, order, p, axis=1)
    return in_place


def _ratio(differences: Floats, errors: Floats) -> Floats:
    """Divides differences by their standard errors; 0 if that is 0 (models that rank all pairs identically)."""
    certain = errors <= 1e-12
    return np.asarray(np.where(certain, 0.0, differences / np.where(certain, 1.0, errors)))


def _first(values: Floats, root: Floats, df: float, draws: int, seed: int) -> Floats:
    """Returns the share of draws of a multivariate t in which each score is the highest; ties share a draw."""
    rng = generator(seed, "ranks")
    noise = _noise(root, draws, rng)
    if np.isfinite(df):
        noise = noise / np.sqrt(rng.chisquare(df, size=(draws, 1)) / df)
    drawn = values + noise
    highest = drawn >= drawn.max(axis=1, keepdims=True) - 1e-12
    return np.asarray((highest / highest.sum(axis=1, keepdims=True)).mean(axis=0))


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
