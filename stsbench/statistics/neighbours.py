"""The nearest vectors by cosine: exact search in blocks."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.statistics.alignment import unit_rows

_BLOCK_ROWS = 8192


class Neighbours(NamedTuple):
    """For each query its nearest rows, nearest first, and their cosines; both of shape (queries, k)."""

    rows: NDArray[np.int64]
    cosines: NDArray[np.float64]


def nearest(queries: NDArray[np.floating[Any]], corpus: NDArray[np.floating[Any]], k: int) -> Neighbours:
    """Return the k rows of a corpus with the highest cosine to each query, by looking at every one.

    Of equal cosines the earlier row comes first. Memory does not grow with the corpus.

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
    units = unit_rows(queries)
    rows = np.empty((len(units), 0), dtype=np.int64)
    cosines = np.empty((len(units), 0))
    for start in range(0, len(corpus), _BLOCK_ROWS):
        block = np.clip(units @ unit_rows(corpus[start : start + _BLOCK_ROWS]).T, -1.0, 1.0)
        numbers = np.broadcast_to(np.arange(start, start + block.shape[1]), block.shape)
        # The best so far stand before the block: a stable order keeps the earlier row of equal cosines first.
        rows, cosines = np.hstack([rows, numbers]), np.hstack([cosines, block])
        best = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
        rows, cosines = np.take_along_axis(rows, best, axis=1), np.take_along_axis(cosines, best, axis=1)
    return Neighbours(rows, cosines)
