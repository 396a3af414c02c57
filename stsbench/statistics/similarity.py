"""Similarities of sentence pairs whose vectors are rows of one matrix, in float64."""

from collections.abc import Callable, Iterator, Sequence
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]
Floats = NDArray[np.float64]

_BLOCK_BYTES = 2**20
"""Size of the float64 copies of either side's vectors that are held at once: a core's own cache keeps them."""


def pair_similarities(
    vectors: NDArray[np.floating[Any]],
    left: ArrayLike,
    right: ArrayLike,
    kinds: Sequence[Similarity] = ("cosine",),
) -> dict[Similarity, Floats]:
    """Return similarities of pairs of rows, each a float64 vector with one value per pair.

    A pair of one row with itself has the cosine 1 exactly (0 if the row is zero): rounding noise there
    would reorder the ties among identical sentences, and STS has 93 such pairs that are scored.

    Args:
        vectors: (m, d) float32 or float64, one row per distinct text.
        left: (n,) row of each pair's first sentence.
        right: (n,) row of each pair's second sentence.
        kinds: which similarities, keys of `SIMILARITIES`.

    Returns:
        (n,) values by kind; for each kind higher means more alike. A NaN in a vector shows in its pairs.

    >>> vectors = np.array([[3.0, 4.0], [4.0, 3.0], [0.0, 0.0]])
    >>> pair_similarities(vectors, left=[0, 0, 0], right=[0, 1, 2])["cosine"].tolist()
    [1.0, 0.96, 0.0]
    """
    left, right = np.asarray(left), np.asarray(right)
    if left.ndim != 1 or left.shape != right.shape:
        raise ValueError(f"expected two vectors of row numbers, got shapes {left.shape} and {right.shape}")
    values = {kind: np.empty(len(left)) for kind in kinds}
    step = max(1, _BLOCK_BYTES // max(1, 8 * vectors.shape[1]))
    for start in range(0, len(left), step):
        block = slice(start, start + step)
        u = vectors[left[block]].astype(np.float64)
        v = vectors[right[block]].astype(np.float64)
        for kind, of_block in _similarities(u, v, kinds):
            values[kind][block] = of_block
    if "cosine" in values:
        same = (left == right) & (values["cosine"] > 0)
        values["cosine"][same] = 1.0
    return values


def _similarities(u: Floats, v: Floats, kinds: Sequence[Similarity]) -> Iterator[tuple[Similarity, Floats]]:
    """Yield some similarities of the rows of two (n, d) matrices, with what several of them need computed once."""
    products = dot(u, v) if {"cosine", "dot"} & set(kinds) else None
    difference = u - v if {"euclidean", "manhattan"} & set(kinds) else None
    for kind in kinds:
        match kind:
            case "cosine":
                yield kind, cosine(u, v, products)
            case "dot":
                yield kind, dot(u, v) if products is None else products
            case "euclidean":
                yield kind, euclidean(u, v, difference)
            case "manhattan":
                yield kind, manhattan(u, v, difference)


def zero_rows(vectors: NDArray[np.floating[Any]]) -> NDArray[np.bool_]:
    """Return which of m rows, (m, d), are all zero: texts without a known word, whose pairs have the cosine 0.

    >>> zero_rows(np.array([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [False, True]
    """
    rows = np.arange(len(vectors))
    for column in vectors.T:  # few rows are left after the first, and mostly none
        rows = rows[column[rows] == 0]
        if not len(rows):
            break
    zero = np.zeros(len(vectors), dtype=bool)
    zero[rows] = True
    return zero


def cosine(u: Floats, v: Floats, products: Floats | None = None) -> Floats:
    """Return the (n,) cosines of the rows of two (n, d) matrices, in [-1, 1]; 0 where a row is zero.

    `products` are the (n,) inner products, where they are known.

    >>> cosine(np.array([[3.0, 4.0]]), np.array([[4.0, 3.0]])).tolist()
    [0.96]
    """
    norms = np.sqrt(dot(u, u)) * np.sqrt(dot(v, v))
    norms[norms == 0] = 1.0
    cosines: Floats = np.clip((dot(u, v) if products is None else products) / norms, -1.0, 1.0)
    return cosines


def dot(u: Floats, v: Floats) -> Floats:
    """Return the (n,) inner products of the rows of two (n, d) matrices.

    >>> dot(np.array([[3.0, 4.0]]), np.array([[4.0, 3.0]])).tolist()
    [24.0]
    """
    products: Floats = np.einsum("ij,ij->i", u, v)
    return products


def euclidean(u: Floats, v: Floats, difference: Floats | None = None) -> Floats:
    """Return the (n,) negative Euclidean distances of the rows of two (n, d) matrices; `difference` is `u - v`.

    >>> euclidean(np.array([[3.0, 4.0]]), np.array([[0.0, 0.0]])).tolist()
    [-5.0]
    """
    difference = u - v if difference is None else difference
    # Subtracted from zero, because the negative of a distance of 0 would print as -0.
    distances: Floats = 0.0 - np.sqrt(dot(difference, difference))
    return distances


def manhattan(u: Floats, v: Floats, difference: Floats | None = None) -> Floats:
    """Return the (n,) negative Manhattan distances of the rows of two (n, d) matrices; `difference` is `u - v`.

    >>> manhattan(np.array([[3.0, 4.0]]), np.array([[0.0, 0.0]])).tolist()
    [-7.0]
    """
    distances: Floats = 0.0 - np.abs(u - v if difference is None else difference).sum(axis=1)
    return distances


SIMILARITIES: MappingProxyType[Similarity, Callable[[Floats, Floats], Floats]] = MappingProxyType(
    {"cosine": cosine, "dot": dot, "euclidean": euclidean, "manhattan": manhattan}
)
"""Every similarity of rows by the name it has in a signature."""
