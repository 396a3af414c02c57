"""Similarities of sentence pairs whose vectors are rows of one matrix, in float64."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]
Floats = NDArray[np.float64]

SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)
"""The name that every similarity has in a signature."""

_BLOCK_BYTES = 2**20
"""Size of the float64 copies of either side's vectors that are held at once: a core's own cache keeps them."""


def pair_similarities(
    vectors: NDArray[np.floating[Any]],
    left: ArrayLike,
    right: ArrayLike,
    kinds: Sequence[Similarity] = ("cosine",),
) -> dict[Similarity, Floats]:
    """Return similarities of pairs of rows, each a float64 vector with one value per pair.

    `cosine` is in [-1, 1], and 0 where a row is zero; `dot` is the inner product; `euclidean` and `manhattan` are
    the negative distances. For each, higher means more alike. A pair of one row with itself has the cosine 1
    exactly: rounding noise there would reorder the ties among identical sentences, and STS has 93 such pairs that
    are scored.

    Args:
        vectors: (m, d) float32 or float64, one row per distinct text.
        left: (n,) row of each pair's first sentence.
        right: (n,) row of each pair's second sentence.
        kinds: which similarities.

    Returns:
        (n,) values by kind. The value of a pair with a NaN in one of its vectors is NaN.

    Raises:
        IndexError: if `left` or `right` names a row that `vectors` does not have.
        ValueError: if the two do not name one row each for every pair.

    >>> vectors = np.array([[3.0, 4.0], [4.0, 3.0], [0.0, 0.0]])
    >>> values = pair_similarities(vectors, left=[0, 0, 0], right=[0, 1, 2], kinds=SIMILARITIES)
    >>> values["cosine"].tolist(), values["dot"].tolist()
    ([1.0, 0.96, 0.0], [25.0, 24.0, 0.0])
    >>> values["euclidean"].round(3).tolist(), values["manhattan"].tolist()
    ([0.0, -1.414, -5.0], [0.0, -2.0, -7.0])
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
    products = _dot(u, v) if {"cosine", "dot"} & set(kinds) else np.empty(0)
    difference = u - v if {"euclidean", "manhattan"} & set(kinds) else np.empty(0)
    for kind in kinds:
        match kind:
            case "cosine":
                norms = np.sqrt(_dot(u, u)) * np.sqrt(_dot(v, v))
                norms[norms == 0] = 1.0
                yield kind, np.clip(products / norms, -1.0, 1.0)
            case "dot":
                yield kind, products
            # Subtracted from zero, because the negative of a distance of 0 would print as -0.
            case "euclidean":
                yield kind, 0.0 - np.sqrt(_dot(difference, difference))
            case "manhattan":
                yield kind, 0.0 - np.abs(difference).sum(axis=1)


def _dot(u: Floats, v: Floats) -> Floats:
    products: Floats = np.einsum("ij,ij->i", u, v)
    return products


def zero_rows(vectors: NDArray[np.floating[Any]]) -> NDArray[np.bool_]:
    """Return which of m rows, (m, d), are all zero: texts without a known word, whose pairs have the cosine 0.

    >>> zero_rows(np.array([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [False, True]
    """
    return np.asarray(~vectors.any(axis=1))
