"""Similarities of sentence pairs, in float64."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]
Floats = NDArray[np.float64]

SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)
"""The similarities, by their name in a signature."""

_BLOCK_BYTES = 2**20
"""Size of a block of float64 vectors, chosen to fit into the cache of a core."""


def pair_similarities(
    vectors: NDArray[np.floating[Any]],
    left: ArrayLike,
    right: ArrayLike,
    kinds: Sequence[Similarity] = ("cosine",),
) -> dict[Similarity, Floats]:
    """Returns similarities of pairs of rows, (n,) in float64 for each kind.

    `cosine` is in [-1, 1], and 0 if a row is zero; `dot` is the inner product; `euclidean` and `manhattan` are
    negative distances. Higher always means more similar. The cosine of a row with itself is exactly 1: rounding
    noise would reorder the ties among identical sentences, and STS has 93 scored pairs of those.

    Args:
        vectors: (m, d) float32 or float64, one row per distinct text.
        left: (n,) row of each pair's first sentence.
        right: (n,) row of each pair's second sentence.
        kinds: the similarities to compute.

    Returns:
        (n,) values by kind; NaN for pairs with a NaN in their vectors.

    Raises:
        IndexError: if a row number is outside `vectors`.
        ValueError: if `left` and `right` are not vectors of the same length.

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
        for kind in kinds:
            values[kind][block] = _FORMULAS[kind](u, v)
    if "cosine" in values:
        same = (left == right) & (values["cosine"] > 0)
        values["cosine"][same] = 1.0
    return values


def _dot(u: Floats, v: Floats) -> Floats:
    products: Floats = np.einsum("ij,ij->i", u, v)
    return products


def _cosine(u: Floats, v: Floats) -> Floats:
    norms = np.sqrt(_dot(u, u)) * np.sqrt(_dot(v, v))
    norms[norms == 0] = 1.0
    cosines: Floats = np.clip(_dot(u, v) / norms, -1.0, 1.0)
    return cosines


# Subtracting from zero avoids -0 for a distance of 0.
_FORMULAS: Mapping[Similarity, Callable[[Floats, Floats], Floats]] = {
    "cosine": _cosine,
    "dot": _dot,
    "euclidean": lambda u, v: 0.0 - np.sqrt(_dot(u - v, u - v)),
    "manhattan": lambda u, v: 0.0 - np.abs(u - v).sum(axis=1),
}


def zero_rows(vectors: NDArray[np.floating[Any]]) -> NDArray[np.bool_]:
    """Returns the (m,) mask of rows that are all zero, such as texts without a known word."""
    return np.asarray(~vectors.any(axis=1))
