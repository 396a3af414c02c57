"""Compressed vectors: fewer dimensions, fewer bits per number, and the similarities that remain."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = Literal["fp32", "fp16", "int8", "binary"]
Kind = Literal["cosine", "dot", "hamming"]
Vectors = NDArray[np.floating[Any]]
Floats = NDArray[np.float64]

BITS: Mapping[Numbers, int] = MappingProxyType({"fp32": 32, "fp16": 16, "int8": 8, "binary": 1})
"""Number formats and their bits."""

_LEVELS = 255
_NOISE = 1e-10
"""Directions with a smaller share of the largest variance are rounding noise."""

_BLOCK = 2**19
"""Numbers per block of products."""


def bytes_of(dimensions: int, numbers: Numbers) -> int:
    """Returns the number of bytes of a stored vector.

    >>> bytes_of(384, "fp32"), bytes_of(384, "binary"), bytes_of(20, "binary")
    (1536, 48, 3)
    """
    return -(-dimensions * BITS[numbers] // 8)


def ranges_of(calibration: Vectors) -> NDArray[np.float32]:
    """Returns the minimum and maximum of each dimension of (m, d) vectors, shape (2, d)."""
    return np.stack([calibration.min(axis=0), calibration.max(axis=0)]).astype(np.float32)


def stored(vectors: Vectors, numbers: Numbers, ranges: ArrayLike | None = None) -> NDArray[Any]:
    """Converts (n, d) vectors to a number format.

    `fp32` and `fp16` round. `int8` splits the range of each dimension into 255 equal steps,
    floor((x - low) / step) - 128, and clips values outside the range. `binary` is 1 for positive numbers, else -1.
    The last two match `quantize_embeddings` of sentence-transformers (which packs bits 1 and 0 into bytes).

    Args:
        vectors: (n, d) numbers.
        numbers: the number format.
        ranges: (2, d) minima and maxima for `int8`, by `ranges_of`; a dimension of zero width has steps of 1.

    >>> stored(np.array([[0.0, 0.5, 2.0]]), "int8", [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]).tolist()
    [[-128, -1, 127]]
    >>> stored(np.array([[0.2, -0.1, 0.0]]), "binary").tolist()
    [[1, -1, -1]]
    """
    match numbers:
        case "fp32":
            return vectors.astype(np.float32)
        case "fp16":
            # Overflow becomes infinite, and has no similarity.
            with np.errstate(over="ignore"):
                return vectors.astype(np.float16)
        case "int8":
            low, high = np.asarray(ranges, dtype=np.float32)
            step = (high - low) / np.float32(_LEVELS)
            step[step == 0] = 1
            levels = np.clip(np.floor((vectors.astype(np.float32) - low) / step), 0, _LEVELS)
            codes: NDArray[np.int8] = (levels - 128).astype(np.int8)
            return codes
        case "binary":
            return np.where(vectors > 0, np.int8(1), np.int8(-1))


class Principal(NamedTuple):
    """The principal components of a set of vectors.

    Attributes:
        mean: (d,) mean vector.
        directions: (d, r) unit columns, largest variance first; r is the number of directions with variance.
    """

    mean: Floats
    directions: Floats

    def of(self, vectors: Vectors) -> NDArray[np.float32]:
        """Projects (n, d) vectors, centred by the mean, onto the directions; shape (n, r)."""
        directions = self.directions.astype(np.float32)
        # (x - mean) W = x W - mean W, which needs no copy of the vectors.
        offset = (self.mean @ self.directions).astype(np.float32)
        return vectors.astype(np.float32, copy=False) @ directions - offset


def principal_of(calibration: Vectors) -> Principal:
    """Returns the principal components of (m, d) vectors, m at least 2."""
    mean = calibration.mean(axis=0, dtype=np.float64)
    centred = calibration.astype(np.float64) - mean
    variances, directions = np.linalg.eigh(centred.T @ centred)
    variances, directions = variances[::-1], directions[:, ::-1]
    kept = directions[:, variances > _NOISE * max(variances[0], np.square(mean).max() * _NOISE)]
    # Fix the arbitrary sign of each eigenvector: its largest coordinate is positive.
    largest = np.abs(kept).argmax(axis=0)
    return Principal(mean, kept * np.sign(kept[largest, np.arange(kept.shape[1])]))


def similarities_by_choice(
    codes: NDArray[Any], left: ArrayLike, right: ArrayLike, choices: NDArray[np.bool_], kind: Kind
) -> Floats:
    """Returns the similarities of n pairs of stored vectors for each of k choices of dimensions, shape (k, n).

    `cosine` is in [-1, 1], 0 for zero vectors and exactly 1 for a vector with itself; `dot` is the inner product;
    `hamming` is the negative number of differing bits. Pairs of the same two rows, in either order, have the same
    similarity to the last bit. One product with the matrix of choices serves all of them.

    Args:
        codes: (m, d) vectors as returned by `stored`.
        left: (n,) row of each pair's first sentence.
        right: (n,) row of its second.
        choices: (k, d) masks of the dimensions to keep.
        kind: the similarity.

    >>> codes = np.array([[3.0, 4.0], [4.0, 3.0]])
    >>> choices = np.array([[True, True], [True, False]])
    >>> similarities_by_choice(codes, [0, 0], [1, 0], choices, "dot").tolist()
    [[24.0, 25.0], [12.0, 9.0]]
    >>> similarities_by_choice(codes, [0, 0], [1, 0], choices, "cosine").tolist()
    [[0.96, 1.0], [1.0, 1.0]]
    """
    first, second = np.minimum(left, right), np.maximum(left, right)
    # Compute each pair once: the rounding of a matrix product may depend on the position of a row.
    pairs, places = np.unique(first * np.int64(len(codes)) + second, return_inverse=True)
    first, second = np.divmod(pairs, len(codes))
    kept = choices.astype(np.float64).T
    products = _products(codes, first, second, kept)
    if kind == "hamming":
        products = (products - kept.sum(axis=0)) / 2
    if kind == "cosine":
        rows = np.arange(len(codes))
        lengths = np.sqrt(_products(codes, rows, rows, kept))
        lengths[lengths == 0] = np.inf
        with np.errstate(invalid="ignore"):
            products = np.clip(products / (lengths[first] * lengths[second]), -1.0, 1.0)
        products[(first == second)[:, np.newaxis] & (products > 0)] = 1.0
    return np.ascontiguousarray(products[places].T)


def _products(codes: NDArray[Any], first: NDArray[Any], second: NDArray[Any], kept: Floats) -> Floats:
    """Returns the (n, k) dot products of n pairs of rows over k choices of dimensions, computed in blocks."""
    sums = np.empty((len(first), kept.shape[1]))
    step = max(1, _BLOCK // max(1, codes.shape[1]))
    for start in range(0, len(first), step):
        block = slice(start, start + step)
        with np.errstate(invalid="ignore", over="ignore"):
            products = codes[first[block]].astype(np.float64) * codes[second[block]]
            np.matmul(products, kept, out=sums[block])
    return sums
