"""Sentences that are nearly the same: by the runs of three letters that both have, found without missing any.

The measure is Jaccard's of the sets of three letters in a row: those of both over those of either, of the letters
and digits alone, case folded, so that neither tokenisation nor punctuation counts. MinHash estimates that measure;
for some ten thousand sentences it can be had exactly. Two sets that reach a threshold t share one of the first
n - ceil(t n) + 1 of their n elements, whichever order all sets are put in (the prefix filter of Chaudhuri, Ganti
and Kaushik 2006, and Bayardo, Ma and Srikant 2007): in the order of their rarity few others share one.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

NEAR = 0.8
"""From which share of common letter triples on two sentences are nearly the same."""

_RUN = 3
_CELLS_AT_ONCE = 4_000_000


def triples(text: str) -> set[str]:
    """Return each three letters in a row of a text; what is shorter stands for itself.

    >>> sorted(triples("kettle"))
    ['ett', 'ket', 'tle', 'ttl']
    """
    return {text[place : place + _RUN] for place in range(len(text) - _RUN + 1)} or {text}


def nearness(left: str, right: str) -> float:
    """Return Jaccard's measure of two texts' letter triples, 0 to 1.

    >>> nearness("kettle", "kettles")
    0.8
    """
    first, second = triples(left), triples(right)
    return len(first & second) / len(first | second)


def near_matches(
    left: Sequence[str], right: Sequence[str], threshold: float = NEAR
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which texts of either side have one on the other side that is nearly the same.

    Args:
        left: n distinct texts, of letters and digits alone (`same_letters`).
        right: m of them.
        threshold: the least measure, above 0 and up to 1.

    Returns:
        (n,) and (m,).

    >>> [side.tolist() for side in near_matches(["thekettlesings", "anowlnaps"], ["thekettlessing"], 0.6)]
    [[True, False], [True]]
    """
    matched = np.zeros(len(left), dtype=bool), np.zeros(len(right), dtype=bool)
    if not left or not right:
        return matched
    sets = _incidence([*left, *right])
    sizes = np.diff(sets.indptr)
    prefixes = _prefixes(sets, sizes, threshold)
    of_left, of_right = sets[: len(left)], sets[len(left) :]
    by_triple = prefixes[len(left) :].T.tocsr()
    step = max(1, _CELLS_AT_ONCE // len(right))
    for start in range(0, len(left), step):
        candidates = (prefixes[start : min(start + step, len(left))] @ by_triple).tocoo()
        rows, columns = candidates.row + start, candidates.col
        # Of sets whose sizes differ more than the threshold allows, one can at most be part of the other.
        sides = sizes[rows], sizes[len(left) + columns]
        fitting = np.minimum(*sides) >= threshold * np.maximum(*sides)
        rows, columns = rows[fitting], columns[fitting]
        common = _common(of_left, of_right, rows, columns)
        either = sizes[rows] + sizes[len(left) + columns] - common
        # As whole numbers, so that exactly the threshold is reached.
        near = common >= np.ceil(threshold * either - 1e-9)
        matched[0][rows[near]] = True
        matched[1][columns[near]] = True
    return matched


def _incidence(texts: Sequence[str]) -> Any:
    """Return which text has which triple, (texts, triples), the rarest triple first; a sparse matrix of ones."""
    from scipy.sparse import csr_matrix

    places: dict[str, int] = {}
    columns: list[int] = []
    ends = [0]
    for text in texts:
        columns += [places.setdefault(triple, len(places)) for triple in triples(text)]
        ends.append(len(columns))
    flat = np.asarray(columns, dtype=np.int64)
    rank = np.empty(len(places), dtype=np.int64)
    rank[np.argsort(np.bincount(flat, minlength=len(places)), kind="stable")] = np.arange(len(places))
    ones = np.ones(len(flat), dtype=np.int32)
    matrix = csr_matrix((ones, rank[flat], np.asarray(ends)), shape=(len(texts), len(places)))
    matrix.sort_indices()
    return matrix


def _prefixes(sets: Any, sizes: NDArray[np.int64], threshold: float) -> Any:
    """Return the same with the rarest n - ceil(t n) + 1 of each text's n triples alone."""
    from scipy.sparse import csr_matrix

    # At least one triple is in common, however small the threshold.
    least = np.maximum(np.ceil(threshold * sizes - 1e-9), 1)
    kept = sizes - least.astype(np.int64) + 1
    within = np.arange(sets.nnz) - np.repeat(sets.indptr[:-1], sizes)
    chosen = within < np.repeat(kept, sizes)
    ends = np.concatenate([[0], np.cumsum(kept)])
    return csr_matrix((sets.data[chosen], sets.indices[chosen], ends), shape=sets.shape)


def _common(left: Any, right: Any, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many triples each candidate pair has in common, a part of the pairs at a time."""
    parts = [np.zeros(0, dtype=np.int64)]
    step = 200_000
    for start in range(0, len(rows), step):
        both = left[rows[start : start + step]].multiply(right[columns[start : start + step]])
        parts.append(np.asarray(both.sum(axis=1)).ravel().astype(np.int64))
    return np.concatenate(parts)


def within(threshold: float) -> bool:
    """Return whether a number can be a threshold."""
    return math.isfinite(threshold) and 0 < threshold <= 1
