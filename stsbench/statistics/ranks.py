"""Ranks of several scores that were estimated on the same pairs: which differ, what rank each can have, groups.

All of it rests on the scores and their covariance. Draws of a normal (with few degrees of freedom: a t) of that
covariance tell how far apart the scores of equal models come to lie by chance; the largest studentised difference
of each draw corrects for looking at all of them (a max-statistic: Hothorn, Bretz and Westfall 2008). Which ranks a
score can have follows from which others are shown to be above it and below it (Mogstad, Romano, Shaikh and Wilhelm
2024; Klein, Wright and Wieczorek 2020).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import ascii_letters
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.statistics.bootstrap import generator
from stsbench.statistics.significance import holm

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

Adjustment = Literal["max", "holm"]
"""How the tests of all pairs of scores are corrected: by the distribution of the largest, or as Holm does."""

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
        adjustment: the correction for many pairs: `max` (single step) or `holm`.
        draws: of the scores' errors.
        seed: of the draws.

    Raises:
        ValueError: if the arrays do not fit together, or the level is not between 0 and 1.

    Example:
        >>> ranking = rank_scores([70.0, 75.0, 75.1], np.eye(3) * 0.1)
        >>> ranking.rank.tolist(), ranking.best.tolist(), ranking.worst.tolist(), ranking.letters
        ([3, 2, 1], [3, 1, 1], [3, 2, 2], ('b', 'a', 'a'))
    """
    scores, matrix = np.asarray(values, dtype=np.float64), np.asarray(covariance, dtype=np.float64)
    size = len(scores)
    if scores.ndim != 1 or size < 2 or matrix.shape != (size, size):
        raise ValueError(f"expected m >= 2 scores and an (m, m) covariance, got {scores.shape} and {matrix.shape}")
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}")
    spread = difference_errors(matrix) if errors is None else np.asarray(errors, dtype=np.float64)
    t = _ratio(scores[:, None] - scores[None, :], spread)
    noise = _noise(matrix, df, draws, seed)
    highest = np.concatenate([_highest(block, spread) for block in _blocks(noise)])
    overall = np.sort(highest.max(axis=1))
    if adjustment == "max":
        # Of as many draws no p-value can be below one of them.
        above = len(overall) - np.searchsorted(overall, np.abs(t), side="left")
        p = (1 + above) / (1 + len(overall))
    else:
        p = _holm_of_pairs(t, df)
    np.fill_diagonal(p, 1.0)
    differ = p < 1 - level
    shown = differ if simultaneous else _shown_for_each(t, highest, level, df, adjustment)
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
    own = np.diag(matrix)
    variances: Floats = own[:, None] + own[None, :] - matrix - matrix.T
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

    Args:
        differ: (m, m) whether two were told apart, symmetric.
        values: (m,) the scores: the first letter is of the highest. Beyond 52 groups they are numbered.

    Example:
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
    names = (
        list(ascii_letters) if len(groups) <= len(ascii_letters) else [f"{n}." for n in range(1, len(groups) + 1)]
    )
    letters = [""] * size
    for place in range(size):
        letters[order[place]] = "".join(
            name for name, group in zip(names, groups, strict=False) if group >> place & 1
        )
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


def _noise(covariance: Floats, df: float, draws: int, seed: int) -> Floats:
    """Return (draws, m) errors of the scores, of a multivariate t."""
    rng = generator(seed, "ranks")
    noise: Floats = rng.standard_normal((draws, len(covariance))) @ covariance_root(covariance).T
    return noise if np.isinf(df) else noise / np.sqrt(rng.chisquare(df, size=(draws, 1)) / df)


def _blocks(noise: Floats) -> Iterator[Floats]:
    step = max(1, _BLOCK // noise.shape[1] ** 2)
    for start in range(0, len(noise), step):
        yield noise[start : start + step]


def _highest(noise: Floats, errors: Floats) -> Floats:
    """Return (draws, m) the largest studentised difference of each score from any other."""
    return np.asarray(_ratio(np.abs(noise[:, :, None] - noise[:, None, :]), errors).max(axis=2))


def _ratio(differences: Floats, errors: Floats) -> Floats:
    """Return differences in standard errors. Without an error: none is told apart from what it equals."""
    # The rounding of equal scores is no difference.
    certain = np.broadcast_to(errors <= 1e-12, differences.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = differences / errors
        t[certain] = np.where(np.abs(differences[certain]) <= 1e-9, 0.0, np.inf * np.sign(differences[certain]))
    return t


def _pair_p(t: Floats, df: float) -> Floats:
    from scipy.stats import norm
    from scipy.stats import t as student

    tails = norm.sf(np.abs(t)) if np.isinf(df) else student.sf(np.abs(t), df)
    return np.asarray(2 * tails)


def _holm_of_pairs(t: Floats, df: float) -> Floats:
    above = np.triu_indices(len(t), 1)
    adjusted = np.ones_like(t)
    adjusted[above] = holm(_pair_p(t[above], df))
    return np.minimum(adjusted, adjusted.T)


def _shown_for_each(t: Floats, highest: Floats, level: float, df: float, adjustment: Adjustment) -> Flags:
    """Return (m, m) which others each score is told apart from, corrected for its own comparisons alone."""
    if adjustment == "max":
        return np.abs(t) > np.quantile(highest, level, axis=0)[:, None]
    shown = np.zeros(t.shape, dtype=bool)
    for row, tests in enumerate(t):
        others = np.arange(len(t)) != row
        shown[row, others] = holm(_pair_p(tests[others], df)) < 1 - level
    return shown


def _first(values: Floats, noise: Floats) -> Floats:
    """Return how often each score is the highest; what is highest together shares."""
    drawn = values + noise
    highest = drawn >= drawn.max(axis=1, keepdims=True) - 1e-12
    return np.asarray((highest / highest.sum(axis=1, keepdims=True)).mean(axis=0))
