"""First-order influence of each pair on a statistic, the basis of every closed-form variance.

A statistic T of n pairs changes by about `terms[p]` when pair p is counted once more: `terms[p]` is the centred
influence of the pair (Hampel 1974) divided by n. Terms add up: those of a mean over tasks are the concatenated,
weighted terms of the tasks, and those of a difference of two models on the same pairs are the differences of the
models' terms. `dependence` turns terms into a variance.

The terms of a correlation of two samples, (n,) each, are (n,) numbers that sum to 0; NaN if it is undefined.
Samples that are not one-dimensional or differ in length raise a ValueError.

`Linear` applies the delta method: sums, differences, products and quotients of statistics get their terms by the
rules of calculus, so a ratio, a gap between groups or a slope needs no variance formula.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.statistics.correlations import (
    Aggregation,
    Metric,
    as_pairs,
    average_ranks,
    deviations,
    is_undefined,
    members_of,
)

Floats = NDArray[np.float64]


def pearson_terms(x: ArrayLike, y: ArrayLike) -> Floats:
    """Returns the (n,) terms of Pearson's correlation.

    With u and v the standardised variables, the influence is u v - r (u^2 + v^2) / 2 (Devlin, Gnanadesikan and
    Kettenring 1975).
    """
    x, y = as_pairs(x, y)
    if is_undefined(x) or is_undefined(y):
        return np.full(len(x), np.nan)
    u, v = (side / np.sqrt((side * side).mean()) for side in (deviations(x), deviations(y)))
    influence = u * v - (u * v).mean() * (u * u + v * v) / 2
    return _terms(influence)


def spearman_terms(x: ArrayLike, y: ArrayLike) -> Floats:
    """Returns the (n,) terms of Spearman's correlation, where ties share their average rank.

    A pair also shifts the ranks of all others, which adds two parts to Pearson's formula. With F and G the centred
    average ranks over n, sF and sG their standard deviations, and T(v, w)_i the mean over j of w_j where v_j > v_i
    (half of it at ties), the influence is

        [F G + T(x, G) + T(y, F) - rho / 2 ((F^2 + 2 T(x, F)) sG / sF + (G^2 + 2 T(y, G)) sF / sG)] / (sF sG),

    the derivative of the rank statistic (without ties: Croux and Dehon 2010). It agrees with the jackknife.

    >>> terms = spearman_terms([1, 2, 3, 4], [1, 30, 20, 400])
    >>> terms.round(3).tolist()
    [0.15, -0.15, -0.15, 0.15]
    """
    x, y = as_pairs(x, y)
    if is_undefined(x) or is_undefined(y):
        return np.full(len(x), np.nan)
    f, above_x = _ranks_and_above(x)
    g, above_y = _ranks_and_above(y)
    sd_f, sd_g = np.sqrt((f * f).mean()), np.sqrt((g * g).mean())
    rho = (f * g).mean() / (sd_f * sd_g)
    of_f = (f * f + 2 * above_x(f)) * (sd_g / sd_f)
    of_g = (g * g + 2 * above_y(g)) * (sd_f / sd_g)
    influence = (f * g + above_x(g) + above_y(f) - rho / 2 * (of_f + of_g)) / (sd_f * sd_g)
    return _terms(influence)


def kendall_terms(x: ArrayLike, y: ArrayLike) -> Floats:
    """Returns the (n,) terms of Kendall's tau-b, ties included.

    With s_i the number of pairs concordant with pair i minus the discordant ones, p_i and q_i the numbers of pairs
    that differ from it in x and in y, and S, P, Q their sums, tau-b is S / sqrt(P Q), a function of three
    U-statistics (Hoeffding 1948), and the term is

        (2 s_i - tau (p_i sqrt(Q / P) + q_i sqrt(P / Q))) / sqrt(P Q).
    """
    x, y = as_pairs(x, y)
    if is_undefined(x) or is_undefined(y):
        return np.full(len(x), np.nan)
    concordance, untied_x, untied_y = concordance_counts(x, y)
    of_x, of_y = np.sqrt(untied_x.sum()), np.sqrt(untied_y.sum())
    tau = concordance.sum() / (of_x * of_y)
    influence = 2 * concordance - tau * (untied_x * (of_y / of_x) + untied_y * (of_x / of_y))
    return _terms(len(x) * influence / (of_x * of_y))


_COMPARED_AT_ONCE = 2_000_000


def concordance_counts(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Counts for each of n pairs the others that are concordant minus discordant, and untied in x and in y."""
    step = max(1, _COMPARED_AT_ONCE // len(x))
    concordant = []
    for start in range(0, len(x), step):
        block = slice(start, start + step)
        # Comparisons instead of signs of differences, which could underflow.
        above_x, above_y = x[block, np.newaxis] > x, y[block, np.newaxis] > y
        below_x, below_y = x[block, np.newaxis] < x, y[block, np.newaxis] < y
        same = (above_x & above_y).sum(axis=1) + (below_x & below_y).sum(axis=1)
        opposite = (above_x & below_y).sum(axis=1) + (below_x & above_y).sum(axis=1)
        concordant.append(same - opposite)
    return np.concatenate(concordant).astype(np.float64), _untied(x), _untied(y)


def _untied(values: Floats) -> Floats:
    """Counts for each value how many others differ from it."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    different: Floats = (len(values) - sizes[group]).astype(np.float64)
    return different


TERMS: MappingProxyType[Metric, Callable[[ArrayLike, ArrayLike], Floats]] = MappingProxyType(
    {"spearman": spearman_terms, "pearson": pearson_terms, "kendall": kendall_terms}
)
"""The terms of the correlations, by name."""


def mean_terms(values: ArrayLike) -> Floats:
    """Returns the (n,) terms of a mean, such as an accuracy (values 1 for right answers and 0 for wrong ones).

    >>> mean_terms([1, 1, 0, 0]).tolist()
    [0.125, 0.125, -0.125, -0.125]
    """
    return _terms(np.asarray(values, dtype=np.float64))


def ratio_terms(above: ArrayLike, below: ArrayLike) -> Floats:
    """Returns the (n,) terms of the ratio R of two sums over items: (above - R below) / sum(below).

    For F1, `above` is twice the true positives and `below` adds the false positives and negatives. For the mean of
    a group, `above` is its members' values, `below` is 1 for members, and both are 0 for the others.

    Args:
        above: (n,) addends of the numerator.
        below: (n,) addends of the denominator.

    Returns:
        (n,) terms, which sum to 0; NaN if the denominator is zero.

    >>> ratio_terms([2, 0, 4], [1, 0, 1]).tolist()
    [-0.5, 0.0, 0.5]
    """
    above, below = as_pairs(above, below)
    total = below.sum()
    if total == 0:
        return np.full(len(above), np.nan)
    terms: Floats = (above - above.sum() / total * below) / total
    return terms


def task_terms(
    gold: ArrayLike,
    similarity: ArrayLike,
    codes: ArrayLike,
    metric: Metric = "spearman",
    aggregation: Aggregation = "all",
    *,
    by_subset: bool = True,
) -> Floats:
    """Returns the (n,) terms of a task's score.

    Args:
        gold: (n,) gold scores of the task's pairs.
        similarity: (n,) similarities of the same pairs.
        codes: (n,) integer codes 0..k-1, the subset of each pair.
        metric: the correlation, a key of `TERMS`.
        aggregation: of the task's subsets; see `aggregate`.
        by_subset: whether to centre the terms of `all` in each subset. Then the subsets and their sizes are fixed,
            and the interval is for new pairs from the same subsets; otherwise subsets are drawn with their pairs.
            (The terms of `mean` and `wmean` are always centred in each subset.)

    Returns:
        (n,) terms in the order of the pairs, which sum to 0; NaN if the score is undefined.
    """
    terms_of = TERMS[metric]
    gold, similarity = as_pairs(gold, similarity)
    members = members_of(codes, len(gold))
    if aggregation == "all":
        terms = terms_of(gold, similarity)
        if by_subset and len(members) > 1:
            for pairs in members:
                terms[pairs] -= terms[pairs].mean()
        return terms
    terms = np.empty(len(gold))
    for pairs in members:
        weight = 1 / len(members) if aggregation == "mean" else len(pairs) / len(gold)
        terms[pairs] = weight * terms_of(gold[pairs], similarity[pairs])
    if np.isnan(terms).any():
        terms[:] = np.nan
    return terms


def _terms(influence: Floats) -> Floats:
    terms: Floats = (influence - influence.mean()) / len(influence)
    return terms


def _ranks_and_above(values: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Returns the centred average ranks over n, and T(values, w) as a function of w."""
    size, ranks = len(values), average_ranks(values)
    # Ranks are multiples of a half and equal for ties: twice a rank is a code for its group of ties.
    group = (2 * ranks).astype(np.intp)

    def above(weights: Floats) -> Floats:
        sums = np.bincount(group, weights=weights)
        upwards = np.cumsum(sums[::-1])[::-1]
        means: Floats = ((upwards - sums / 2) / size)[group]
        return means

    return (ranks - (size + 1) / 2) / size, above


@dataclass(frozen=True, eq=False)
class Linear:
    """A statistic with its first-order terms.

    Attributes:
        value: the statistic.
        terms: the (n,) terms of each block of pairs (a task, say). The terms of a plain sum are its addends;
            those of a mean or a ratio add up to 0.

    >>> above, below = Linear(6.0, {"a": np.array([2.0, 0, 4])}), Linear(2.0, {"a": np.array([1.0, 0, 1])})
    >>> mean = above / below
    >>> mean.value, mean.terms["a"].tolist()
    (3.0, [-0.5, 0.0, 0.5])
    """

    value: float
    terms: Mapping[str, Floats]

    @classmethod
    def undefined(cls) -> "Linear":
        """Returns an undefined statistic, with the value NaN and no terms."""
        return cls(float("nan"), {})

    def __add__(self, other: "Linear") -> "Linear":
        """Adds two statistics."""
        return self._with(other, self.value + other.value, 1.0, 1.0)

    def __sub__(self, other: "Linear") -> "Linear":
        """Subtracts another statistic."""
        return self._with(other, self.value - other.value, 1.0, -1.0)

    def __mul__(self, other: Union["Linear", float]) -> "Linear":
        """Multiplies by another statistic or a number."""
        if not isinstance(other, Linear):
            return self.mapped(self.value * other, other)
        return self._with(other, self.value * other.value, other.value, self.value)

    __rmul__ = __mul__

    def __truediv__(self, other: Union["Linear", float]) -> "Linear":
        """Divides by another statistic or a number; undefined if that statistic is 0."""
        if not isinstance(other, Linear):
            return self.mapped(self.value / other, 1 / other)
        if other.value == 0:
            return Linear.undefined()
        value = self.value / other.value
        return self._with(other, value, 1 / other.value, -value / other.value)

    def mapped(self, value: float, slope: float) -> "Linear":
        """Returns a function of the statistic, given the value of the function and its slope there."""
        return Linear(value, {block: slope * terms for block, terms in self.terms.items()})

    def _with(self, other: "Linear", value: float, slope: float, other_slope: float) -> "Linear":
        terms = {block: slope * of_block for block, of_block in self.terms.items()}
        for block, of_block in other.terms.items():
            theirs = other_slope * of_block
            terms[block] = terms[block] + theirs if block in terms else theirs
        return Linear(value, terms)
