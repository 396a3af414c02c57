"""Every way of comparing two vectors: the similarities, as the model gives the vectors and scaled otherwise."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.encoders import normalize
from stsbench.encoders.protocol import FloatMatrix
from stsbench.statistics import SIMILARITIES, Similarity, pair_similarities
from stsbench.verify.diagnose_grid import SCALED, UNSCALED

Floats = NDArray[np.float64]


class Comparison(NamedTuple):
    """A way of comparing two vectors: the similarity, whether they are scaled to unit length, its name."""

    similarity: Similarity
    scale: bool
    name: str


def comparisons_of(vectors: FloatMatrix, *, unit: bool) -> tuple[Comparison, ...]:
    """Return every similarity of the vectors as the model gives them, then what differs if scaled otherwise.

    Args:
        vectors: of the person's own pooling, as they leave the network.
        unit: whether the model scales them to unit length.
    """
    found = [Comparison(kind, unit, kind) for kind in SIMILARITIES]
    norms = np.linalg.norm(vectors, axis=1)
    if unit or not np.allclose(norms[norms > 0], 1, atol=1e-3):
        # Scaling leaves the cosine as it is, and the dot product of scaled vectors is the cosine.
        others: tuple[Similarity, ...] = ("dot", "euclidean", "manhattan") if unit else ("euclidean", "manhattan")
        found += [Comparison(kind, not unit, kind + (UNSCALED if unit else SCALED)) for kind in others]
    return tuple(found)


def compare(
    vectors: FloatMatrix,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    comparisons: Sequence[Comparison],
) -> Floats:
    """Return the (comparisons, pairs) similarities of rows of the vectors as they leave the network."""
    used, places = np.unique(np.concatenate([left, right]), return_inverse=True)
    found: dict[Comparison, Floats] = {}
    for scale in (False, True):
        wanted = [one for one in comparisons if one.scale == scale]
        if wanted:
            own = normalize(vectors[used]) if scale else vectors[used]
            kinds = tuple(one.similarity for one in wanted)
            values = pair_similarities(own, places[: len(left)], places[len(left) :], kinds)
            found |= {one: values[one.similarity] for one in wanted}
    return np.array([found[one] for one in comparisons])
