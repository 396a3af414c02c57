"""Smaller vectors: fewer dimensions, fewer bits a number, and the similarities of what is left.

A choice of dimensions is a row of zeros and ones. The products of two vectors' coordinates, added up by such rows,
are the dot products of every choice at once: one matrix product in place of a pass for each. Bits are signs, 1 and
-1, so that Hamming's distance comes of the same sums.
"""

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
"""Ways to store a number, and how many bits it takes."""

_LEVELS = 255
_NOISE = 1e-10
"""A direction with a smaller share of the largest variance is what rounding left of none."""

_BLOCK = 2**19
"""Numbers of either side that are held at once."""


def bytes_of(dimensions: int, numbers: Numbers) -> int:
    """Return how many bytes a stored vector takes.

    >>> bytes_of(384, "fp32"), bytes_of(384, "binary"), bytes_of(20, "binary")
    (1536, 48, 3)
    """
    return -(-dimensions * BITS[numbers] // 8)


def ranges_of(calibration: Vectors) -> NDArray[np.float32]:
    """Return the smallest and the largest number in each dimension of (m, d) vectors, shape (2, d).

    >>> ranges_of(np.array([[0.0, 2.0], [1.0, -1.0]])).tolist()
    [[0.0, -1.0], [1.0, 2.0]]
    """
    return np.stack([calibration.min(axis=0), calibration.max(axis=0)]).astype(np.float32)


def stored(vectors: Vectors, numbers: Numbers, ranges: ArrayLike | None = None) -> NDArray[Any]:
    """Return vectors as they are stored, which is what their similarity is computed of; shape (n, d).

    `fp32` and `fp16` round. `int8` cuts the range of each dimension into 255 equal steps, floor((x - low) / step)
    - 128, and what lies outside of the range becomes its end. `binary` is the sign: 1 above 0, else -1. The last
    two are those of sentence-transformers' `quantize_embeddings` (its bits are 1 and 0, eight a byte).

    Args:
        vectors: (n, d) numbers.
        numbers: how each is stored.
        ranges: (2, d) for `int8`, as `ranges_of` has them; a dimension without a range has steps of 1.

    >>> stored(np.array([[0.0, 0.5, 2.0]]), "int8", [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]).tolist()
    [[-128, -1, 127]]
    >>> stored(np.array([[0.2, -0.1, 0.0]]), "binary").tolist()
    [[1, -1, -1]]
    """
    match numbers:
        case "fp32":
            return vectors.astype(np.float32)
        case "fp16":
            # What fp16 cannot hold is infinite there, and has no similarity.
            with np.errstate(over="ignore"):
                return vectors.astype(np.float16)
        case "int8":
            low, high = np.asarray(ranges, dtype=np.float32)
            step = (high - low) / np.float32(_LEVELS)
            step[step == 0] = 1
            levels = vectors.astype(np.float32) - low
            levels /= step
            np.clip(np.floor(levels, out=levels), 0, _LEVELS, out=levels)
            codes: NDArray[np.int8] = (levels - 128).astype(np.int8)
            return codes
        case "binary":
            return np.where(vectors > 0, np.int8(1), np.int8(-1))


class Principal(NamedTuple):
    """The principal components of some vectors.

    Attributes:
        mean: (d,) of the vectors.
        directions: (d, r) columns of unit length, the direction of the largest variance first; r is the number of
            directions in which the vectors vary.
    """

    mean: Floats
    directions: Floats

    def of(self, vectors: Vectors) -> NDArray[np.float32]:
        """Return the (n, r) components of (n, d) vectors: what is left of each without the mean, turned."""
        directions = self.directions.astype(np.float32)
        # (x - mean) W is x W - mean W, which needs no copy of the vectors.
        return vectors.astype(np.float32, copy=False) @ directions - (self.mean @ self.directions).astype(
            np.float32
        )


def principal_of(calibration: Vectors) -> Principal:
    """Return the principal components of (m, d) vectors, m at least 2.

    >>> principal = principal_of(np.array([[0.0, 1.0], [2.0, 1.0]]))
    >>> principal.mean.tolist(), principal.directions.tolist()
    ([1.0, 1.0], [[1.0], [0.0]])
    """
    mean = calibration.mean(axis=0, dtype=np.float64)
    centred = calibration.astype(np.float64) - mean
    variances, directions = np.linalg.eigh(centred.T @ centred)
    variances, directions = variances[::-1], directions[:, ::-1]
    kept = directions[:, variances > _NOISE * max(variances[0], np.square(mean).max() * _NOISE)]
    # Either way round is an eigenvector: of the two, the one whose largest coordinate is positive.
    largest = np.abs(kept).argmax(axis=0)
    return Principal(mean, kept * np.sign(kept[largest, np.arange(kept.shape[1])]))


def similarities_by_choice(
    codes: NDArray[Any], left: ArrayLike, right: ArrayLike, choices: NDArray[np.bool_], kind: Kind
) -> Floats:
    """Return the similarities of n pairs of stored vectors by each of k choices of dimensions, shape (k, n).

    `cosine` is in [-1, 1], 0 where a vector is zero, and 1 of a vector with itself; `dot` the inner product;
    `hamming` the number of bits that differ, negative. Higher means more alike. Two pairs of the same two rows
    have one similarity to the last bit, in either order.

    Args:
        codes: (m, d) vectors as `stored` has them.
        left: (n,) row of each pair's first sentence.
        right: (n,) row of its second.
        choices: (k, d) which dimensions are kept.
        kind: the similarity.

    >>> codes = np.array([[3.0, 4.0], [4.0, 3.0]])
    >>> choices = np.array([[True, True], [True, False]])
    >>> similarities_by_choice(codes, [0, 0], [1, 0], choices, "dot").tolist()
    [[24.0, 25.0], [12.0, 9.0]]
    >>> similarities_by_choice(codes, [0, 0], [1, 0], choices, "cosine").tolist()
    [[0.96, 1.0], [1.0, 1.0]]
    """
    first, second = np.minimum(left, right), np.maximum(left, right)
    # Each pair once: how a matrix product rounds may depend on where a row stands.
    pairs, places = np.unique(first * np.int64(len(codes)) + second, return_inverse=True)
    first, second = np.divmod(pairs, len(codes))
    if codes.dtype == np.float16:
        # Nothing is lost, and processors are slow to read them one pair after the other.
        codes = codes.astype(np.float32)
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
    """Return (n, k) dot products of n pairs of rows over k choices of dimensions, some pairs at a time."""
    sums = np.empty((len(first), kept.shape[1]))
    step = max(1, _BLOCK // max(1, codes.shape[1]))
    for start in range(0, len(first), step):
        block = slice(start, start + step)
        with np.errstate(invalid="ignore", over="ignore"):
            products = codes[first[block]].astype(np.float64) * codes[second[block]]
            np.matmul(products, kept, out=sums[block])
    return sums
