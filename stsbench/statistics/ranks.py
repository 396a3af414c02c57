"""Ranks of several scores that were estimated on the same pairs: which differ, what rank each can have, groups.

All of it rests on the scores and their covariance. Draws of a normal (with few degrees of freedom: a t) of that
covariance tell how far apart the scores of equal models come to lie by chance; the largest studentised difference
of each draw corrects for looking at all of them (a step-down max-statistic: Romano and Wolf 2005). Which ranks a
score can have follows from which others are shown to be above it and below it (Mogstad, Romano, Shaikh and Wilhelm
2024; Klein, Wright and Wieczorek 2020).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_letters
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.statistics.intervals import check_level, tail
from stsbench.statistics.seeds import generator
from stsbench.statistics.significance import holm

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

Adjustment = Literal["max", "holm"]
"""How the tests of all pairs of scores are corrected, by the distribution of the largest or as Holm does."""

_BLOCK = 4_000_000
"""Numbers that are held at once while the draws are gone through."""


@dataclass(frozen=True)
class Ranking:
    """What m scores show of their order. Ranks begin with 1, which is the highest score.

    Attributes:
        rank: (m,) ranks of the scores as they are; equal scores share the best rank.
        best: (m,) the best rank that each can have, and `worst`: the worst.
        p: (m, m) two-sided p-values of the differences, corrected for all pairs of scores; 1 on the diagonal.
        letters: (m,) groups: two scores that share a letter cannot be told apart.
        first: (m,) how often each is the highest in the draws: a frequency in a parametric bootstrap, not the
            probability of being the best.
    """

    rank: NDArray[np.int64]
    best: NDArray[np.int64]
    worst: NDArray[np.int64]
    p: Floats
    letters: tuple[str, ...]
    first: Floats


def rank_scores(
    values: ArrayLike,
    covariance: ArrayLike,
    errors: ArrayLike | None = None,
    *,
    df: float = np.inf,
    level: float = 0.95,
    simultaneous: bool = False,
    adjustment: Adjustment = "max",
    draws: int = 5000,
    seed: int = 0,
) -> Ranking:
    """Rank scores that were estimated together.

    Args:
        values: (m,) the scores, higher is better, m at least 2.
        covariance: (m, m) of their errors. It need not be positive: negative eigenvalues are cut off.
        errors: (m, m) standard errors of the differences, where better ones than the covariance's are known
            (floored ones); by default those of the covariance.
        df: degrees of freedom of the variances; infinite for a normal.
        level: of the rank intervals, and 1 less that of the tests that make the groups.
        simultaneous: whether all rank intervals hold at once; by default each by itself.
        adjustment: the correction for many pairs: `max` (step-down) or `holm`.
        draws: of the scores' errors.
        seed: of the draws.

    >>> ranking = rank_scores([70.0, 75.0, 75.1], np.eye(3) * 0.1)
    >>> ranking.rank.tolist(), ranking.best.tolist(), ranking.worst.tolist(), ranking.letters
    ([3, 2, 1], [3, 1, 1], [3, 2, 2], ('b', 'a', 'a'))
    """
    scores, matrix = np.asarray(values, dtype=np.float64), np.asarray(covariance, dtype=np.float64)
    size = len(scores)
    if scores.ndim != 1 or size < 2 or matrix.shape != (size, size):
        raise ValueError(f"expected m >= 2 scores and an (m, m) covariance, got {scores.shape} and {matrix.shape}")
    check_level(level)
    spread = difference_errors(matrix) if errors is None else np.asarray(errors, dtype=np.float64)
    t = _ratio(scores[:, None] - scores[None, :], spread)
    root = covariance_root(matrix)
    noise = _noise(root, df, draws, seed)
    # Of the draws: that their differences are in units of their own errors, as those of the scores are.
    drawn_spread = difference_errors(root @ root.T)
    first, second = np.triu_indices(size, 1)
    p = np.ones((size, size))
    if adjustment == "max":
        p[first, second] = _step_down(
            np.abs(t[None, first, second]), noise, drawn_spread, first[None], second[None]
        )[0]
    else:
        p[first, second] = holm(2 * tail(np.abs(t[first, second]), df))
    p = np.minimum(p, p.T)
    differ = p < 1 - level
    shown = differ if simultaneous else _p_for_each(t, noise, drawn_spread, df, adjustment) < 1 - level
    return Ranking(
        rank=1 + (scores[None, :] > scores[:, None]).sum(axis=1),
        best=1 + (shown & (t < 0)).sum(axis=1),
        worst=size - (shown & (t > 0)).sum(axis=1),
        p=p,
        letters=group_letters(differ, scores),
        first=_first(scores, noise),
    )


def difference_errors(covariance: ArrayLike) -> Floats:
    """Return the (m, m) standard errors of all differences of m scores, 0 for a variance below 0.

    >>> difference_errors([[1.0, 0.5], [0.5, 1.0]]).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    matrix = np.asarray(covariance, dtype=np.float64)
    diagonal = np.diag(matrix)
    variances: Floats = diagonal[:, None] + diagonal[None, :] - matrix - matrix.T
    return np.sqrt(np.maximum(variances, 0.0))


def covariance_root(covariance: ArrayLike) -> Floats:
    """Return R, (m, m), with R R' the covariance whose negative eigenvalues are set to 0.

    A dyadic covariance of many models may have some: it is a difference of two sums of squares.
    """
    matrix = np.asarray(covariance, dtype=np.float64)
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    root: Floats = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


def group_letters(differ: ArrayLike, values: ArrayLike) -> tuple[str, ...]:
    """Return a compact letter display: two share a letter exactly if they do not differ (Piepho 2004).

    The first letter is of the highest of the (m,) values; `differ`, (m, m), says whether two were told apart.
    Beyond 52 groups they are numbered.

    >>> group_letters([[0, 0, 1], [0, 0, 0], [1, 0, 0]], [3.0, 2.0, 1.0])
    ('a', 'ab', 'b')
    """
    apart = np.asarray(differ, dtype=bool)
    order = np.argsort(-np.asarray(values, dtype=np.float64), kind="stable")
    size = len(order)
    # A group is a set of bits, by place in the order. Each pair that differs splits every group that holds both.
    groups = [(1 << size) - 1]
    for first in range(size):
        for second in range(first + 1, size):
            if apart[order[first], order[second]]:
                groups = _split(groups, 1 << first, 1 << second)
    # From the highest score down; of groups that begin together the longer one first.
    groups.sort(key=lambda group: [place for place in range(size) if group >> place & 1])
    numbered = [f"{number}." for number in range(1, len(groups) + 1)]
    names = dict(zip(groups, ascii_letters if len(groups) <= len(ascii_letters) else numbered, strict=False))
    letters = [""] * size
    for place in range(size):
        letters[order[place]] = "".join(name for group, name in names.items() if group >> place & 1)
    return tuple(letters)


def _split(groups: Sequence[int], first: int, second: int) -> list[int]:
    both = first | second
    kept = [group for group in groups if group & both != both]
    for group in groups:
        if group & both == both:
            for part in (group & ~first, group & ~second):
                # What lies inside another group says nothing of its own.
                if not any(part & other == part for other in kept):
                    kept = [*(other for other in kept if other & part != other), part]
    return kept


def _noise(root: Floats, df: float, draws: int, seed: int) -> Floats:
    """Return (draws, m) errors of the scores, of a multivariate t."""
    rng = generator(seed, "ranks")
    noise: Floats = rng.standard_normal((draws, len(root))) @ root.T
    return noise if np.isinf(df) else noise / np.sqrt(rng.chisquare(df, size=(draws, 1)) / df)


def _step_down(tests: Floats, noise: Floats, errors: Floats, first: Places, second: Places) -> Floats:
    """Return p-values corrected for families of differences (Westfall and Young 1993, algorithm 2.8).

    The largest difference of a family is held against the largest of all draws, the next against the largest of
    what is left, and so on.

    Args:
        tests: (f, k) absolute studentised differences, f families of k.
        noise: (draws, m) errors of the scores.
        errors: (m, m) standard errors of the differences of the draws.
        first: (f, k) the score that each difference is of.
        second: (f, k) the score that is taken from it.
    """
    order = np.argsort(tests, axis=1)
    held = np.take_along_axis(tests, order, axis=1)
    left, right = np.take_along_axis(first, order, axis=1), np.take_along_axis(second, order, axis=1)
    above = np.zeros(tests.shape)
    step = max(1, _BLOCK // tests.size)
    for start in range(0, len(noise), step):
        block = noise[start : start + step]
        # From the smallest difference up: the largest of each and all that come before it.
        drawn = _ratio(np.abs(block[:, left] - block[:, right]), errors[left, right])
        above += (np.maximum.accumulate(drawn, axis=2, out=drawn) >= held).sum(axis=0)
    # Of as many draws no p-value can be below one of them; and none below that of a larger difference.
    p = (1 + above) / (1 + len(noise))
    p = np.maximum.accumulate(p[:, ::-1], axis=1)[:, ::-1]
    in_place = np.empty_like(p)
    np.put_along_axis(in_place, order, p, axis=1)
    return in_place


def _ratio(differences: Floats, errors: Floats) -> Floats:
    """Return differences in standard errors, 0 for those that have none: of models that order all pairs alike."""
    certain = errors <= 1e-12
    return np.asarray(np.where(certain, 0.0, differences / np.where(certain, 1.0, errors)))


def _p_for_each(t: Floats, noise: Floats, errors: Floats, df: float, adjustment: Adjustment) -> Floats:
    """Return (m, m) p-values of each score's differences, corrected for the comparisons of that score alone."""
    size = len(t)
    others = np.array([[other for other in range(size) if other != own] for own in range(size)])
    own = np.broadcast_to(np.arange(size)[:, None], others.shape)
    tests = np.take_along_axis(t, others, axis=1)
    if adjustment == "max":
        corrected = _step_down(np.abs(tests), noise, errors, own, others)
    else:
        corrected = np.array([holm(row) for row in 2 * tail(np.abs(tests), df)])
    p = np.ones((size, size))
    np.put_along_axis(p, others, corrected, axis=1)
    return p


def _first(values: Floats, noise: Floats) -> Floats:
    """Return how often each score is the highest; what is highest together shares."""
    drawn = values + noise
    highest = drawn >= drawn.max(axis=1, keepdims=True) - 1e-12
    return np.asarray((highest / highest.sum(axis=1, keepdims=True)).mean(axis=0))
