"""Vectors on the unit sphere: alignment and uniformity (Wang and Isola, 2020), and their mean cosine."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stsbench.base.progress import Progress, silent
from stsbench.statistics.threads import in_threads

_BLOCK_ROWS = 4096

_PAIR_ROWS = 2048
"""Two blocks of vectors and the products between them: some 30 MB a thread for 768 dimensions in float32."""


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


def uniformity(vectors: NDArray[np.floating[Any]], *, t: float = 2.0, progress: Progress = silent) -> float:
    """Return the uniformity of vectors: log of the mean of exp(-t ||u - v||^2) over all pairs i < j.

    The vectors are L2-normalised. Lower is better: 0 where all point the same way. Wang and Isola (2020),
    section 4.2; SimCSE (2021), equation 3, takes t = 2. Every pair is counted, none is sampled; the memory beside
    `vectors` does not grow with the square of n. Products are computed in the precision of `vectors` (float32 at
    least), sums in float64.

    Args:
        vectors: (n, d) matrix, n at least 2.
        t: how fast a pair's part falls with its distance.
        progress: told of the pairs done.

    Raises:
        ValueError: if there are fewer than two vectors, or one is zero or not finite.

    Example:
        >>> round(uniformity(np.array([[1.0, 0.0], [0.0, 1.0]])), 12)  # the squared distance is 2
        -4.0
    """
    n = len(vectors)
    if vectors.ndim != 2 or n < 2:
        raise ValueError(f"uniformity needs at least two vectors, got shape {vectors.shape}")
    dtype = np.result_type(vectors.dtype, np.float32)
    norms = row_norms(vectors).astype(dtype)[:, np.newaxis]
    blocks = [slice(start, min(start + _PAIR_ROWS, n)) for start in range(0, n, _PAIR_ROWS)]

    def summed(between: tuple[slice, slice]) -> float:
        rows, columns = between
        left = vectors[rows] / norms[rows]
        right = left if columns is rows else vectors[columns] / norms[columns]
        # With unit vectors -t ||u - v||^2 = 2 t u.v - 2 t: the factor costs nothing where it scales one side.
        products = (left * dtype.type(2 * t)) @ right.T
        products -= dtype.type(2 * t)
        np.exp(products, out=products)
        total = float(products.sum(dtype=np.float64))
        # The diagonal is no pair, and every other pair is there twice.
        return (total - float(products.trace(dtype=np.float64))) / 2 if columns is rows else total

    pairs = [(rows, columns) for number, rows in enumerate(blocks) for columns in blocks[number:]]
    total, done = 0.0, 0
    for (rows, columns), part in zip(pairs, in_threads(summed, pairs), strict=True):
        total += part
        done += (rows.stop - rows.start) * (columns.stop - columns.start)
        progress("uniformity", min(done, n * (n - 1) // 2), n * (n - 1) // 2)
    return float(np.log(total / (n * (n - 1) / 2)))


def mean_cosine(vectors: NDArray[np.floating[Any]]) -> float:
    """Return the mean cosine over all pairs i < j: what a random pair has on average.

    Exact without looking at any pair: the squared length of the sum of n unit vectors is n plus twice the sum of
    the cosines. Near 0 for vectors in all directions, near 1 for vectors in a narrow cone (Ethayarajh, 2019).

    Args:
        vectors: (n, d) matrix, n at least 2.

    Raises:
        ValueError: if there are fewer than two vectors, or one is zero or not finite.

    Example:
        >>> round(mean_cosine(np.array([[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0]])), 12)
        -0.333333333333
    """
    n = len(vectors)
    if vectors.ndim != 2 or n < 2:
        raise ValueError(f"a mean over pairs needs at least two vectors, got shape {vectors.shape}")
    norms = row_norms(vectors)
    total = np.zeros(vectors.shape[1])
    for start in range(0, n, _PAIR_ROWS):
        rows = slice(start, start + _PAIR_ROWS)
        total += (1 / norms[rows]) @ vectors[rows].astype(np.float64)
    return float((total @ total - n) / (n * (n - 1)))
