"""The nearest vectors by cosine: exact search in blocks, or FAISS's graph."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.statistics.geometry import unit_rows
from stsbench.statistics.similarity import zero_rows

_BLOCK_ROWS = 8192

Vectors = NDArray[np.floating[Any]]


class Neighbours(NamedTuple):
    """For each query its nearest rows, nearest first, and their cosines; both of shape (queries, k)."""

    rows: NDArray[np.int64]
    cosines: NDArray[np.float64]


def find_neighbours(
    model: str, queries: Vectors, corpus: Iterable[Vectors], k: int, search: str = "exact"
) -> Neighbours:
    """Return the k nearest rows of a corpus to each query, zero vectors left out.

    Args:
        model: whose vectors they are, for messages.
        queries: (q, d) matrix.
        corpus: the (n, d) matrix in parts of some of its rows. An exact search holds one part at a time.
        k: how many.
        search: `exact` or `faiss`.

    Raises:
        UserError: if a query's vector is zero, or too few of the corpus are not; or FAISS is not installed.
    """
    if zero_rows(queries).any():
        raise UserError(f"{model} knows no word of a query: its vector is zero, and nothing is near it.")
    if search == "faiss":
        whole = np.concatenate(list(corpus))
        usable = np.flatnonzero(~zero_rows(whole))
        _require_enough(model, k, len(usable))
        found = nearest_by_faiss(queries, whole[usable], k)
        return Neighbours(usable[found.rows], found.cosines)
    found, first, count = _none_of(queries), 0, 0
    for part in corpus:
        usable = np.flatnonzero(~zero_rows(part))
        found = _nearer(found, queries, part[usable], first + usable, k)
        first, count = first + len(part), count + len(usable)
    _require_enough(model, k, count)
    return found


def _require_enough(model: str, k: int, count: int) -> None:
    if k > count:
        raise UserError(f"{k} neighbours: {model} has a vector that is not zero for {count} sentences.")


def nearest(queries: Vectors, corpus: Vectors, k: int) -> Neighbours:
    """Return the k rows of a corpus with the highest cosine to each query, by looking at every one.

    Of equal cosines the earlier row comes first (scikit-learn's `NearestNeighbors` leaves their order open, and at
    the k-th place which of them is there: hence a search of our own). Memory does not grow with the corpus.

    Args:
        queries: (q, d) matrix.
        corpus: (n, d) matrix.
        k: how many, at most n.

    Raises:
        ValueError: if there are not so many, or a vector is zero or not finite.

    Example:
        >>> nearest(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]]), 2).rows.tolist()
        [[1, 2]]
    """
    if not 1 <= k <= len(corpus):
        raise ValueError(f"{k} neighbours of {len(corpus)} vectors")
    return _nearer(_none_of(queries), queries, corpus, np.arange(len(corpus)), k)


def _none_of(queries: Vectors) -> Neighbours:
    return Neighbours(np.empty((len(queries), 0), dtype=np.int64), np.empty((len(queries), 0)))


def _nearer(
    found: Neighbours, queries: Vectors, corpus: Vectors, numbers: NDArray[np.int64], k: int
) -> Neighbours:
    """Return the k nearest of those found and of more rows, which have higher numbers."""
    units = unit_rows(queries)
    rows, cosines = found
    for start in range(0, len(corpus), _BLOCK_ROWS):
        block = np.clip(units @ unit_rows(corpus[start : start + _BLOCK_ROWS]).T, -1.0, 1.0)
        of_block = np.broadcast_to(numbers[start : start + _BLOCK_ROWS], block.shape)
        # The best so far stand before the block: a stable order keeps the earlier row of equal cosines first.
        rows, cosines = np.hstack([rows, of_block]), np.hstack([cosines, block])
        best = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
        rows, cosines = np.take_along_axis(rows, best, axis=1), np.take_along_axis(cosines, best, axis=1)
    return Neighbours(rows, cosines)


def nearest_by_faiss(queries: Vectors, corpus: Vectors, k: int) -> Neighbours:
    """Return what an HNSW graph of the FAISS library finds: faster for many queries, and it may miss a neighbour.

    Raises:
        UserError: if FAISS is not installed.
    """
    try:
        import faiss
    except ImportError as error:
        raise UserError("FAISS is not installed: pip install 'stsbench[faiss]', or use --search exact.") from error
    units = [np.ascontiguousarray(matrix, dtype=np.float32) for matrix in (queries, corpus)]
    for matrix in units:
        faiss.normalize_L2(matrix)
    index = faiss.IndexHNSWFlat(corpus.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction, index.hnsw.efSearch = 200, max(128, 2 * k)
    index.add(units[1])
    cosines, rows = index.search(units[0], k)
    return Neighbours(rows.astype(np.int64), np.clip(cosines.astype(np.float64), -1, 1))
