"""Alignment: how close the vectors of positive pairs are on the unit sphere (Wang and Isola, 2020)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCK_ROWS = 4096


def unit_rows(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return the rows of a matrix scaled to length 1, in float64.

    Args:
        vectors: (n, d) matrix.

    Raises:
        ValueError: if it is not a matrix, or a row is zero (which has no direction) or not finite.

    Example:
        >>> unit_rows(np.array([[3.0, 4.0]])).tolist()
        [[0.6, 0.8]]
    """
    if vectors.ndim != 2:
        raise ValueError(f"expected a matrix of vectors, got shape {vectors.shape}")
    rows = vectors.astype(np.float64)
    return rows / row_norms(rows)[:, np.newaxis]


def row_norms(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return the (n,) lengths of the rows of a matrix, in float64.

    Raises:
        ValueError: if one is zero or not finite.
    """
    squares = [
        np.einsum("ij,ij->i", block, block)
        for start in range(0, len(vectors), _BLOCK_ROWS)
        for block in (vectors[start : start + _BLOCK_ROWS].astype(np.float64),)
    ]
    norms: NDArray[np.float64] = np.sqrt(np.concatenate(squares)) if squares else np.empty(0)
    bad = np.flatnonzero(~np.isfinite(norms) | (norms == 0))
    if len(bad):
        raise ValueError(f"row {bad[0]} has the length {norms[bad[0]]}: only a finite one gives a direction")
    return norms


def alignment(left: NDArray[np.floating[Any]], right: NDArray[np.floating[Any]], *, alpha: float = 2.0) -> float:
    """Return the alignment of positive pairs: the mean of ||u - v||^alpha over L2-normalised pairs.

    Lower is better: 0 where both vectors of every pair point the same way, 2^alpha where they are opposite.
    Wang and Isola (2020), section 4.1; SimCSE (2021), equation 2, takes alpha = 2.

    Args:
        left: (n, d) first vectors of the pairs, n at least 1.
        right: (n, d) second vectors.
        alpha: the power.

    Raises:
        ValueError: if the shapes differ, there is no pair, or a vector is zero or not finite.

    Example:
        >>> alignment(np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 3.0], [0.0, 1.0]]))
        1.0
    """
    if left.shape != right.shape or not len(left):
        raise ValueError(f"expected pairs of vectors, got shapes {left.shape} and {right.shape}")
    difference = unit_rows(left) - unit_rows(right)
    squares = np.einsum("ij,ij->i", difference, difference)
    return float(np.mean(squares ** (alpha / 2)))
