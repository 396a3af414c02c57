"""The influence of each pair on a statistic: first-order terms, from which every closed-form variance is made.

A statistic T of n pairs moves by about `terms[p]` when pair p is counted once more: `terms[p]` is the influence of
the pair (Hampel 1974), centred, divided by n. Terms add. Those of a mean over subsets or tasks are the terms of
each, times its weight, side by side; those of a difference of two models on the same pairs are the differences of
theirs. `dependence` sums products of terms to a variance.

A correlation of two samples, (n,) each, has (n,) terms, which sum to 0; they are NaN where it is undefined.
Samples that are not one-dimensional and of one length are a ValueError.

`Linear` is the delta method as arithmetic: a sum, difference, product or quotient of statistics has the terms that
calculus gives it. A ratio of sums, a gap between groups, a slope or a mean over tasks then has its variance from
`dependence` without a formula of its own.
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
    """Return each pair's term, (n,), of Pearson's correlation.

    With u and v the two variables scaled to mean 0 and variance 1, the influence is u v - r (u^2 + v^2) / 2
    (Devlin, Gnanadesikan and Kettenring 1975).

    >>> terms = pearson_terms([1, 2, 3, 4], [1, 3, 2, 4])
    >>> terms.round(3).tolist()
    [0.09, -0.09, -0.09, 0.09]
    """
    x, y = as_pairs(x, y)
    if is_undefined(x) or is_undefined(y):
        return np.full(len(x), np.nan)
    u, v = _standardised(x), _standardised(y)
    influence = u * v - (u * v).mean() * (u * u + v * v) / 2
    return _terms(influence)


def spearman_terms(x: ArrayLike, y: ArrayLike) -> Floats:
    """Return each pair's term, (n,), of Spearman's correlation, ties sharing their average rank.

    A pair counts in the ranks of all others, so that its influence has two parts more than Pearson's of the ranks.
    With F and G the centred average ranks over n, sF and sG their standard deviations, and T(v, w)_i the mean over
    j of w_j where v_j > v_i (half of it at ties), it is

        [F G + T(x, G) + T(y, F) - rho / 2 ((F^2 + 2 T(x, F)) sG / sF + (G^2 + 2 T(y, G)) sF / sG)] / (sF sG),

    which is the derivative of the rank statistic (without ties: Croux and Dehon 2010), and agrees with the
    jackknife.

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
    """Return each pair's term, (n,), of Kendall's tau-b, ties included.

    With s_i the number of pairs that are concordant with pair i less those that are discordant, p_i and q_i the
    number that differ from it in x and in y, and S, P, Q their sums, tau-b is S / sqrt(P Q), a function of three
    U-statistics (Hoeffding 1948), and the term is

        (2 s_i - tau (p_i sqrt(Q / P) + q_i sqrt(P / Q))) / sqrt(P Q).

    Without pair i the sums are exactly S - 2 s_i, P - 2 p_i and Q - 2 q_i. n log n operations, n numbers held.

    >>> kendall_terms([1, 2, 3, 4], [1, 30, 20, 400]).round(3).tolist()
    [0.167, -0.167, -0.167, 0.167]
    """
    x, y = as_pairs(x, y)
    if is_undefined(x) or is_undefined(y):
        return np.full(len(x), np.nan)
    concordance, untied_x, untied_y = concordance_counts(x, y)
    of_x, of_y = np.sqrt(untied_x.sum()), np.sqrt(untied_y.sum())
    tau = concordance.sum() / (of_x * of_y)
    influence = 2 * concordance - tau * (untied_x * (of_y / of_x) + untied_y * (of_x / of_y))
    return _terms(len(x) * influence / (of_x * of_y))


def concordance_counts(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Return for each pair how many others are concordant with it less those discordant, and how many are untied.

    Of two samples of n finite numbers: (n,) concordant less discordant pairs, and the (n,) numbers that differ in
    x, and in y; all are whole.

    >>> [counts.tolist() for counts in concordance_counts(np.array([1.0, 1, 2]), np.array([3.0, 1, 2]))]
    [[-1.0, 1.0, 0.0], [1.0, 1.0, 2.0], [2.0, 2.0, 2.0]]
    """
    below_both = _below_both(x, y) + _below_both(-x, -y)
    across = _below_both(x, -y) + _below_both(-x, y)
    return (below_both - across).astype(np.float64), _untied(x), _untied(y)


def _untied(values: Floats) -> Floats:
    """Return how many of the values differ from each."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    different: Floats = (len(values) - sizes[group]).astype(np.float64)
    return different


def _below_both(x: Floats, y: Floats) -> NDArray[np.int64]:
    """Return how many pairs are below each in x and in y, both strictly."""
    # Ties in x are put in falling order of y, ties in y in falling order of the place: none counts as below.
    order = np.lexsort((-y, x))
    ranks = np.empty(len(x), dtype=np.int64)
    ranks[np.lexsort((-np.arange(len(x)), y[order]))] = np.arange(len(x))
    counts = np.empty(len(x), dtype=np.int64)
    counts[order] = _smaller_before(ranks)
    return counts


def _smaller_before(ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many smaller numbers stand before each in a permutation of 0..n-1.

    The larger of two numbers has a 1 in the highest bit that they differ in, and the smaller a 0. So the bits are
    gone through from the highest to the lowest. At each, numbers that agree in all higher bits stand side by side
    as a group, in the order given: a number whose bit is 1 is larger than those of its group whose bit is 0. As no
    number is left out, a group begins at the place that is its lowest number.
    """
    places, values = np.arange(len(ranks)), ranks
    counts = np.zeros(len(ranks), dtype=np.int64)
    for bit in reversed(range(len(ranks).bit_length())):
        is_upper = (values >> bit & 1).astype(bool)
        start = values >> (bit + 1) << (bit + 1)
        zeros_before = np.cumsum(~is_upper) - ~is_upper - start // 2
        counts[values[is_upper]] += zeros_before[is_upper]
        ones_before = places - start - zeros_before
        arranged = np.empty_like(values)
        arranged[start + np.where(is_upper, (1 << bit) + ones_before, zeros_before)] = values
        values = arranged
    return counts[ranks]


TERMS: MappingProxyType[Metric, Callable[[ArrayLike, ArrayLike], Floats]] = MappingProxyType(
    {"spearman": spearman_terms, "pearson": pearson_terms, "kendall": kendall_terms}
)
"""The terms of every correlation."""


def mean_terms(values: ArrayLike) -> Floats:
    """Return the (n,) terms of a mean: of an accuracy, if the n values are 1 where the answer is right, else 0.

    >>> mean_terms([1, 1, 0, 0]).tolist()
    [0.125, 0.125, -0.125, -0.125]
    """
    return _terms(np.asarray(values, dtype=np.float64))


def ratio_terms(above: ArrayLike, below: ArrayLike) -> Floats:
    """Return each item's term of the ratio R of two sums over the items: (above - R below) / sum(below).

    F1 has twice the true positives above, and below those and the false positives and negatives. A group's mean
    has its members' values above and ones below, zeros for all others.

    Args:
        above: (n,) each item's share of the upper sum.
        below: (n,) each item's share of the lower one.

    Returns:
        (n,) terms, which sum to 0; NaN where the lower sum is zero.

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
    """Return each pair's term of a task's score.

    Args:
        gold: (n,) gold scores of the task's pairs.
        similarity: (n,) similarities of the same pairs.
        codes: (n,) integer codes 0..k-1, the subset of each pair.
        metric: the correlation, a key of `TERMS`.
        aggregation: of the task's subsets; see `aggregate`.
        by_subset: whether the terms of `all` are centred in each subset: the subsets and their sizes are fixed,
            and the interval is of new pairs from the same subsets. Otherwise a subset counts as drawn with its
            pairs. (`mean` and `wmean` are centred in each subset by themselves.)

    Returns:
        (n,) terms in the order of the pairs, which sum to 0; NaN where the score is undefined.

    >>> terms = task_terms([1, 2, 3, 1, 2, 3], [1, 3, 2, 6, 4, 5], [0, 0, 0, 1, 1, 1], aggregation="mean")
    >>> terms.shape, abs(float(terms.sum())) < 1e-12
    ((6,), True)
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


def _standardised(values: Floats) -> Floats:
    centred = deviations(values)
    scaled: Floats = centred / np.sqrt((centred * centred).mean())
    return scaled


def _terms(influence: Floats) -> Floats:
    terms: Floats = (influence - influence.mean()) / len(influence)
    return terms


def _ranks_and_above(values: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Return the centred average ranks over n, and the T of these values as a function of the weights."""
    size, ranks = len(values), average_ranks(values)
    # Ranks are whole or half numbers, and equal where the values are: twice a rank is the place of its group.
    group = (2 * ranks).astype(np.intp)

    def above(weights: Floats) -> Floats:
        sums = np.bincount(group, weights=weights)
        upwards = np.cumsum(sums[::-1])[::-1]
        means: Floats = ((upwards - sums / 2) / size)[group]
        return means

    return (ranks - (size + 1) / 2) / size, above


@dataclass(frozen=True, eq=False)
class Linear:
    """A statistic, and what each pair contributes to it to first order.

    Attributes:
        value: the statistic.
        terms: by block of pairs (a task, say) the (n,) terms of its pairs. Those of a plain sum are what is
            summed; of a function of sums that does not change when every pair counts twice they add up to 0.

    >>> above, below = Linear(6.0, {"a": np.array([2.0, 0, 4])}), Linear(2.0, {"a": np.array([1.0, 0, 1])})
    >>> mean = above / below
    >>> mean.value, mean.terms["a"].tolist()
    (3.0, [-0.5, 0.0, 0.5])
    """

    value: float
    terms: Mapping[str, Floats]

    @classmethod
    def undefined(cls) -> "Linear":
        """Return a statistic that is not defined."""
        return cls(float("nan"), {})

    def __add__(self, other: "Linear") -> "Linear":
        """Return the sum."""
        return self._with(other, self.value + other.value, 1.0, 1.0)

    def __sub__(self, other: "Linear") -> "Linear":
        """Return the difference."""
        return self._with(other, self.value - other.value, 1.0, -1.0)

    def __mul__(self, other: Union["Linear", float]) -> "Linear":
        """Return the product with another statistic or a number."""
        if not isinstance(other, Linear):
            return self.mapped(self.value * other, other)
        return self._with(other, self.value * other.value, other.value, self.value)

    __rmul__ = __mul__

    def __truediv__(self, other: Union["Linear", float]) -> "Linear":
        """Return the quotient with another statistic or a number; not defined where that is 0."""
        if not isinstance(other, Linear):
            return self.mapped(self.value / other, 1 / other)
        if other.value == 0:
            return Linear.undefined()
        value = self.value / other.value
        return self._with(other, value, 1 / other.value, -value / other.value)

    def mapped(self, value: float, slope: float) -> "Linear":
        """Return a function of the statistic: its value, and its slope there."""
        return Linear(value, {block: slope * terms for block, terms in self.terms.items()})

    def _with(self, other: "Linear", value: float, slope: float, other_slope: float) -> "Linear":
        terms = {block: slope * of_block for block, of_block in self.terms.items()}
        for block, of_block in other.terms.items():
            theirs = other_slope * of_block
            terms[block] = terms[block] + theirs if block in terms else theirs
        return Linear(value, terms)
