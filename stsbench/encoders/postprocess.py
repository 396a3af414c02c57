"""Processing of vectors after encoding: unit length, the first dimensions, whitening."""

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.encoders.protocol import LARGEST, SMALLEST, FloatMatrix, Identity

# Directions with a smaller share of the largest variance are rounding noise.
_NOISE = 1e-8
_CONSTANT = 1e-20


def normalize(vectors: FloatMatrix, out: FloatMatrix | None = None) -> FloatMatrix:
    """Scales rows to unit length; zero vectors stay zero.

    Args:
        vectors: shape (rows, d).
        out: an array for the result, possibly `vectors` itself; a new array by default.
    """
    # In float64, because the squares of a tiny vector are zero in float32.
    squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    exact = np.sqrt(squares)
    # Lengths that float32 cannot represent, or only with few digits.
    extreme = np.flatnonzero((exact > LARGEST) | ((exact < SMALLEST) & (exact > 0)))
    rescued = (vectors[extreme] / exact[extreme, None]).astype(np.float32)
    unit = np.zeros_like(vectors) if out is None else out
    with np.errstate(over="ignore"):
        lengths = exact.astype(np.float32)[:, None]
    np.divide(vectors, lengths, out=unit, where=lengths > 0)
    unit[extreme] = rescued
    return unit


def processed(vectors: FloatMatrix, identity: Identity) -> FloatMatrix:
    """Applies an encoder's truncation and normalisation (not its whitening) to its vectors, in place.

    Args:
        vectors: shape (rows, d).
        identity: of the encoder.
    """
    if identity.use.dimensions is not None:
        vectors = truncate(vectors, identity.use.dimensions)
    return normalize(vectors, out=vectors) if identity.normalize else vectors


def truncate(vectors: FloatMatrix, dimensions: int) -> FloatMatrix:
    """Keeps the first dimensions, as for Matryoshka models.

    Args:
        vectors: shape (rows, d).
        dimensions: number to keep, at most d.

    Raises:
        UserError: if there are fewer.
    """
    if not 1 <= dimensions <= vectors.shape[1]:
        raise UserError(f"--dimensions {dimensions}: the model's vectors have {vectors.shape[1]}.")
    return vectors[:, :dimensions]


def whiten(
    vectors: FloatMatrix, reference: FloatMatrix, dimensions: int | None = None, *, task: str | None = None
) -> NDArray[np.float64]:
    """Returns vectors of shape (rows, d) whitened as shape (rows, dimensions), float64; see `whitening_of`."""
    mean, directions = whitening_of(reference, dimensions, option="--whiten", task=task)
    whitened: NDArray[np.float64] = (vectors - mean) @ directions
    return whitened


def whitening_of(
    reference: FloatMatrix, dimensions: int | None = None, *, option: str, task: str | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the mean of some vectors, and the matrix that makes their covariance the identity.

    Su et al. (2021): the covariance is U S U^T, the matrix the first columns of U S^-1/2. As in their public code
    (bojone/BERT-whitening, eng/utils.py), the covariance is divided by n - 1.

    Args:
        reference: the vectors, shape (sentences, d).
        dimensions: number of directions of largest variance to keep; None for all in which they vary.
        option: that chooses this number, for messages.
        task: of the sentences, for messages.

    Returns:
        The mean, shape (d,), and the matrix, shape (d, dimensions), float64.

    Raises:
        UserError: if the reference varies in fewer directions.
    """
    if len(reference) < 2:
        raise UserError(f"whitening needs at least 2 sentences for a covariance: there is {len(reference)}.")
    mean = reference.mean(axis=0, dtype=np.float64)
    covariance = np.atleast_2d(np.cov(reference.astype(np.float64), rowvar=False))
    directions, variances, _ = np.linalg.svd(covariance)
    which = f"{len(reference)} sentences" + (f" of {task}" if task else "")
    # The variance of equal vectors is rounding noise.
    varies = variances[0] > _CONSTANT * np.square(mean).max()
    usable = int((variances > _NOISE * variances[0]).sum()) if varies else 0
    if usable == 0:
        raise UserError(f"whitening needs different vectors: those of the {which} are equal.")
    kept = usable if dimensions is None else dimensions
    if not 1 <= kept <= usable:
        raise UserError(
            f"whitening cannot keep {kept} dimensions: {which} vary in {usable} of {reference.shape[1]}; keep "
            f"fewer ({option} {usable})."
        )
    return mean, directions[:, :kept] / np.sqrt(variances[:kept])
