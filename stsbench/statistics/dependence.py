"""Dependence between pairs that share sentences, and the variance of a statistic that accounts for it.

The pairs are the edges of a graph whose nodes are the distinct sentences. Two pairs are dependent if they share a
sentence; then the product of their terms (see `influence`) enters the variance. This is the dyadic estimator
(Fafchamps and Gubert 2007; Aronow, Samii and Assenova 2015). It needs no resampling and works for every statistic
that has terms: a score, an average over tasks, the difference of two models.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from stsbench.statistics import Dependence

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Sharing:
    """The sentences of each pair, as codes.

    Attributes:
        first: (n,) code of each pair's first sentence, 0..v-1.
        second: (n,) code of the second sentence; equal to the first for items of one sentence.
        nodes: (v,) sorted ids behind the codes.
    """

    first: Codes
    second: Codes
    nodes: NDArray[Any]

    @classmethod
    def of(cls, first: ArrayLike, second: ArrayLike | None = None) -> "Sharing":
        """Builds the sharing of n pairs from the ids (hashes, numbers or texts) of their sentences, (n,) each.

        Without `second`, each item is one sentence.

        >>> sharing = Sharing.of(["a", "a", "c"], ["b", "d", "e"])
        >>> sharing.components.tolist()
        [0, 0, 1]
        """
        left = np.asarray(first)
        right = left if second is None else np.asarray(second)
        if left.ndim != 1 or left.shape != right.shape:
            raise ValueError(f"expected two vectors of one length, got shapes {left.shape} and {right.shape}")
        nodes, codes = np.unique(np.concatenate([left, right]), return_inverse=True)
        return cls(codes[: len(left)], codes[len(left) :], nodes)

    @classmethod
    def join(cls, sharings: Sequence["Sharing"]) -> "Sharing":
        """Concatenates the pairs of several tasks; sentences with the same id become one node.

        To find sentences shared between tasks, build each sharing from ids that do not depend on the release (the
        folded hashes).

        >>> joined = Sharing.join([Sharing.of(["a"], ["b"]), Sharing.of(["c", "a"], ["d", "e"])])
        >>> joined.components.tolist()
        [0, 1, 0]
        """
        if not sharings:
            raise ValueError("there is nothing to join")
        nodes = np.unique(np.concatenate([sharing.nodes for sharing in sharings]))
        places = [np.searchsorted(nodes, sharing.nodes) for sharing in sharings]
        first = np.concatenate([place[sharing.first] for place, sharing in zip(places, sharings, strict=True)])
        second = np.concatenate([place[sharing.second] for place, sharing in zip(places, sharings, strict=True)])
        return cls(first, second, nodes)

    def take(self, pairs: ArrayLike) -> "Sharing":
        """Returns the sharing of some of the pairs: (k,) positions or an (n,) mask."""
        chosen = np.asarray(pairs)
        return Sharing(self.first[chosen], self.second[chosen], self.nodes)

    @property
    def pairs(self) -> int:
        """Number of pairs, n."""
        return len(self.first)

    @cached_property
    def sentences(self) -> int:
        """Number of codes, v. After `take` some codes may be unused."""
        return int(max(self.first.max(), self.second.max())) + 1 if self.pairs else 0

    @cached_property
    def components(self) -> Codes:
        """(n,) connected component of each pair, numbered by first appearance."""
        graph = coo_array((np.ones(self.pairs), (self.first, self.second)), shape=(self.sentences,) * 2)
        labels = connected_components(graph, directed=False)[1][self.first]
        _, firsts, codes = np.unique(labels, return_index=True, return_inverse=True)
        places = np.empty(len(firsts), dtype=np.intp)
        places[np.argsort(firsts)] = np.arange(len(firsts))
        numbered: Codes = places[codes]
        return numbered

    @cached_property
    def same_two(self) -> tuple[Codes, Codes]:
        """The positions of pairs with two different sentences, (k,), and codes of their unordered pairs, (k,)."""
        different = np.flatnonzero(self.first != self.second)
        low = np.minimum(self.first, self.second)[different]
        high = np.maximum(self.first, self.second)[different]
        _, codes = np.unique(low * self.sentences + high, return_inverse=True)
        return different, codes


@dataclass(frozen=True)
class Variance:
    """The variance of a statistic.

    Attributes:
        value: the variance; at least `independent`.
        independent: the variance if all pairs were independent.
        df: degrees of freedom of Student's t for intervals and tests (Satterthwaite 1946).
    """

    value: float
    independent: float
    df: float

    @property
    def standard_error(self) -> float:
        """The square root of the variance."""
        return float(np.sqrt(self.value))

    @property
    def ratio(self) -> float:
        """The standard error divided by that of independent pairs, at least 1 (1 if both are 0)."""
        return float(np.sqrt(self.value / self.independent)) if self.independent > 0 else 1.0


def covariance(terms: ArrayLike, sharing: Sharing, method: Dependence = "dyadic") -> Floats:
    """Returns the covariance matrix of several statistics of the same pairs.

    `dyadic` sums terms_p terms_q over all p and q that share a sentence, including p = q. It equals the sum of
    squares of each sentence's sum, minus the pairs of the same two sentences, which that counts twice.

    Args:
        terms: (m, n) the terms of m statistics (models, tasks), or (n,) those of one.
        sharing: of the n pairs.
        method: which pairs are dependent.

    Returns:
        (m, m) symmetric matrix. That of `dyadic` may have negative eigenvalues and is not floored.

    >>> sharing = Sharing.of(["a", "a", "c"], ["b", "d", "e"])
    >>> covariance([1, 1, -2], sharing).tolist(), covariance([1, 1, -2], sharing, "independent").tolist()
    ([[8.0]], [[6.0]])
    """
    sums, twice = _sums_of(_rows(terms, sharing), sharing, method)
    return sums @ sums.T - twice @ twice.T


def variance(terms: ArrayLike, sharing: Sharing, method: Dependence = "dyadic") -> Variance:
    """Returns the variance of one statistic, floored at that of independent pairs, with its degrees of freedom.

    The dyadic sum includes estimated negative products, so in small samples it can fall below the independent
    variance, even below zero.

    The degrees of freedom are Satterthwaite's (1946) for a sum of squares, here of the sums by sentence (or by
    component, or by pair): (sum of squares)^2 over the sum of fourth powers. A few sentences in many pairs leave
    few degrees of freedom.

    Args:
        terms: (n,) terms of the statistic. A NaN makes all results NaN.
        sharing: of the n pairs.
        method: which pairs are dependent.

    >>> variance([1.0, 1.0, -2.0], Sharing.of(["a", "a", "c"], ["b", "d", "e"]))
    Variance(value=8.0, independent=6.0, df=2.0)
    """
    row = np.asarray(terms, dtype=np.float64)
    sums, twice = _sums_of(_rows(row, sharing), sharing, method)
    return _variance_of(_powers(row), _powers(sums[0]), _powers(twice[0]))


def difference_variances(
    terms: ArrayLike, sharing: Sharing, method: Dependence = "dyadic"
) -> list[list[Variance]]:
    """Returns the `variance` of every difference of two among several statistics.

    Args:
        terms: (m, n) the terms of m statistics of the same pairs.
        sharing: of the n pairs.
        method: which pairs are dependent.

    Returns:
        For each statistic the m - 1, m - 2, ..., 0 variances of its differences from the later ones.
    """
    rows = _rows(terms, sharing)
    parts = (rows, *_sums_of(rows, sharing, method))
    return [
        [
            _variance_of(*(_powers(part[other] - part[one]) for part in parts))
            for other in range(one + 1, len(rows))
        ]
        for one in range(len(rows))
    ]


def shared_sums(terms: ArrayLike, sharing: Sharing, method: Dependence = "dyadic") -> Floats:
    """Returns the (m, k) sums of (m, n) terms over k sentences, components or pairs.

    Their products sum to the covariance for `components` and `independent`. For `dyadic` they sum to the dyadic
    plus the independent covariance, which has no negative eigenvalues.

    >>> shared_sums([[1, 1, -2]], Sharing.of(["a", "a", "c"], ["b", "d", "e"]))
    array([[ 2.,  1., -2.,  1., -2.]])
    """
    return _sums_of(_rows(terms, sharing), sharing, method)[0]


def _variance_of(single: tuple[float, float], summed: tuple[float, float], twice: tuple[float, float]) -> Variance:
    """Combines sums of squares and fourth powers: of the terms, their sums, and the parts counted twice."""
    (independent, fourth), (estimate, fourths), (twice_estimate, twice_fourths) = single, summed, twice
    estimate -= twice_estimate
    # Without shared sentences the two differ only by rounding.
    if estimate < independent * (1 - 1e-9):
        estimate = independent
    else:
        # Fourth powers count the same pairs twice; the difference can fall below that of single pairs.
        fourth = max(fourth, fourths - twice_fourths)
    df = estimate * estimate / fourth if fourth > 0 else float("nan")
    return Variance(max(estimate, independent), independent, df)


def _powers(values: Floats) -> tuple[float, float]:
    """Returns the sum of squares and the sum of fourth powers."""
    squares = values * values
    return float(squares.sum()), float(squares @ squares)


def _rows(terms: ArrayLike, sharing: Sharing) -> Floats:
    rows = np.atleast_2d(np.asarray(terms, dtype=np.float64))
    if rows.ndim != 2 or rows.shape[1] != sharing.pairs:
        raise ValueError(f"expected terms of {sharing.pairs} pairs, got shape {rows.shape}")
    return rows


def _sums_of(rows: Floats, sharing: Sharing, method: Dependence) -> tuple[Floats, Floats]:
    """Returns two sets of sums of (m, n) terms; the covariance is the products of the first minus the second's."""
    if method == "independent":
        return rows, rows[:, :0]
    if method == "components":
        return _sums(rows, sharing.components), rows[:, :0]
    different, codes = sharing.same_two
    by_sentence = _sums(rows, sharing.first, sharing.sentences)
    by_sentence += _sums(rows[:, different], sharing.second[different], sharing.sentences)
    return by_sentence, _sums(rows[:, different], codes)


def _sums(rows: Floats, codes: Codes, size: int = 0) -> Floats:
    """Returns (m, groups) sums of the columns of an (m, n) matrix by code."""
    groups = max(size, int(codes.max()) + 1 if len(codes) else 0)
    return np.array([np.bincount(codes, weights=row, minlength=groups) for row in rows])
