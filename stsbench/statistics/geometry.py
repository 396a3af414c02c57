"""Geometry of sentence vectors: alignment, uniformity, mean cosine and singular values.

Vectors must be finite. A ValueError is raised for too few vectors, and for zero vectors (which have no direction)
except in the functions on singular values.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.base.progress import Progress, silent
from stsbench.statistics.threads import in_threads

Vectors = NDArray[np.floating[Any]]
Floats = NDArray[np.float64]

_PAIR_ROWS = 2048
"""Rows per block of `uniformity`: about 30 MB per thread for 768 dimensions in float32."""


def unit_rows(vectors: Vectors) -> Floats:
    """Scales the rows of an (n, d) matrix to length 1, in float64."""
    if vectors.ndim != 2:
        raise ValueError(f"expected a matrix of vectors, got shape {vectors.shape}")
    rows = vectors.astype(np.float64)
    return rows / row_norms(rows)[:, np.newaxis]


def row_norms(vectors: Vectors) -> Floats:
    """Returns the (n,) lengths of the rows of an (n, d) matrix, in float64; raises a ValueError for zero rows."""
    rows = vectors.astype(np.float64, copy=False)
    norms: Floats = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    bad = np.flatnonzero(~np.isfinite(norms) | (norms == 0))
    if len(bad):
        raise ValueError(f"row {bad[0]} has the length {norms[bad[0]]}, which gives no direction")
    return norms


def alignment(left: Vectors, right: Vectors) -> float:
    """Returns the alignment of positive pairs: the mean of ||u - v||^2 over L2-normalised pairs.

    Lower is better: 0 if the vectors of every pair have the same direction, 4 if they are opposite. Wang and Isola
    (2020), section 4.1; SimCSE (2021), equation 2.

    Args:
        left: (n, d) first vectors of the pairs, n at least 1.
        right: (n, d) second vectors.

    >>> alignment(np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 3.0], [0.0, 1.0]]))
    1.0
    """
    if left.shape != right.shape or not len(left):
        raise ValueError(f"expected pairs of vectors, got shapes {left.shape} and {right.shape}")
    difference = unit_rows(left) - unit_rows(right)
    return float(np.mean(np.einsum("ij,ij->i", difference, difference)))


def uniformity(vectors: Vectors, *, progress: Progress = silent) -> float:
    """Returns the uniformity: log of the mean of exp(-2 ||u - v||^2) over all pairs i < j of unit vectors.

    The vectors are L2-normalised. Lower is better: 0 if all have the same direction. Wang and Isola (2020),
    section 4.2; SimCSE (2021), equation 3. Every pair is counted; memory does not grow with the square of n.
    Products are computed in the precision of `vectors` (at least float32), sums in float64.

    Args:
        vectors: (n, d) matrix, n at least 2.
        progress: called with the number of pairs done.

    >>> round(uniformity(np.array([[1.0, 0.0], [0.0, 1.0]])), 12)  # the squared distance is 2
    -4.0
    """
    n = _require_two(vectors, "uniformity")
    dtype = np.result_type(vectors.dtype, np.float32)
    norms = row_norms(vectors).astype(dtype)[:, np.newaxis]
    blocks = [slice(start, min(start + _PAIR_ROWS, n)) for start in range(0, n, _PAIR_ROWS)]

    def summed(between: tuple[slice, slice]) -> float:
        rows, columns = between
        left = vectors[rows] / norms[rows]
        right = left if columns is rows else vectors[columns] / norms[columns]
        # For unit vectors -2 ||u - v||^2 = 4 u.v - 4.
        products = (left * dtype.type(4)) @ right.T
        products -= dtype.type(4)
        np.exp(products, out=products)
        total = float(products.sum(dtype=np.float64))
        # A block with itself holds each pair twice, and the diagonal.
        return (total - float(products.trace(dtype=np.float64))) / 2 if columns is rows else total

    pairs = [(rows, columns) for number, rows in enumerate(blocks) for columns in blocks[number:]]
    total, done = 0.0, 0
    for (rows, columns), part in zip(pairs, in_threads(summed, pairs), strict=True):
        total += part
        done += (rows.stop - rows.start) * (columns.stop - columns.start)
        progress("uniformity", min(done, n * (n - 1) // 2), n * (n - 1) // 2)
    return float(np.log(total / (n * (n - 1) / 2)))


def mean_cosine(vectors: Vectors) -> float:
    """Returns the mean cosine over all pairs i < j of (n, d) vectors, n at least 2.

    It is near 0 for vectors in all directions and near 1 for vectors in a narrow cone (Ethayarajh, 2019). It is
    exact without visiting pairs: the squared length of the sum of n unit vectors is n plus twice the sum of the
    cosines.
    """
    n = _require_two(vectors, "a mean over pairs")
    norms = row_norms(vectors)
    total = np.zeros(vectors.shape[1])
    for start in range(0, n, _PAIR_ROWS):
        rows = slice(start, start + _PAIR_ROWS)
        total += (1 / norms[rows]) @ vectors[rows].astype(np.float64)
    return float((total @ total - n) / (n * (n - 1)))


def mean_cosine_by_dimension(units: Floats) -> Floats:
    """Returns the (d,) contributions of the dimensions to the mean cosine, which add up to it.

    Following Timkey and van Schijndel (2021), the contribution of dimension k is the mean of u_k v_k, here over
    all pairs i < j of the (n, d) unit vectors, n at least 2.
    """
    n = _require_two(units, "a mean over pairs")
    sums, squares = units.sum(axis=0), np.einsum("ij,ij->j", units, units)
    shares: Floats = (sums * sums - squares) / (n * (n - 1))
    return shares


def _require_two(vectors: Vectors, purpose: str) -> int:
    if vectors.ndim != 2 or len(vectors) < 2:
        raise ValueError(f"{purpose} needs at least two vectors, got shape {vectors.shape}")
    return len(vectors)


class PrincipalAxes(NamedTuple):
    """Singular values and right singular vectors of a matrix.

    Attributes:
        values: (min(n, d),) singular values, largest first.
        directions: (d, d) orthonormal columns; column k belongs to value k, extra columns to the value 0.
    """

    values: Floats
    directions: Floats


def principal_axes(vectors: Vectors) -> PrincipalAxes:
    """Returns the singular values and directions of an (n, d) matrix, n at least 1.

    MoCoSE (2022), figure 7, plots them for the sentence vectors of STS-B, divided by the largest.
    """
    _require_finite(vectors)

    def decompose(matrix: Vectors) -> PrincipalAxes:
        # The triangle of a QR decomposition has the same singular values, and no long side.
        triangle = np.linalg.qr(matrix.astype(np.float64), mode="r")
        _, values, directions = np.linalg.svd(triangle, full_matrices=True)
        return PrincipalAxes(values, directions.T)

    (axes,) = in_threads(decompose, [vectors])
    return axes


def effective_rank(singular: Floats) -> float:
    """Returns the effective rank: exp of the entropy of (k,) singular values, scaled to sum to 1.

    It is 1 if one direction has all the variance, and d for d directions of equal shares (Roy and Vetterli, 2007).

    >>> round(effective_rank(np.array([2.0, 2.0, 2.0])), 12)
    3.0
    """
    shares = singular[singular > 0] / singular.sum() if singular.any() else np.empty(0)
    return float(np.exp(-(shares * np.log(shares)).sum())) if len(shares) else float("nan")


def top_share(singular: Floats, directions: int) -> float:
    """Returns the share of the first directions in the sum of squared singular values.

    For a centred matrix it is their share of the variance.

    Args:
        singular: (k,) singular values, largest first.
        directions: the number of first directions.
    """
    squares = singular**2
    return float(squares[:directions].sum() / squares.sum()) if squares.any() else float("nan")


def iso_score(singular: Floats, dimensions: int) -> float:
    """Returns IsoScore: 0 if one direction has all the variance, 1 if all dimensions have the same.

    Rudman et al. (2022), algorithm 1: the variances along the principal directions are scaled to the length of the
    all-ones vector, and their distance from it is divided by the largest possible.

    Args:
        singular: (k,) singular values of the centred matrix.
        dimensions: d, at least k; directions without a singular value have no variance.

    Returns:
        The score; NaN without variance, or for a single dimension.

    >>> iso_score(np.array([2.0, 2.0]), 2), iso_score(np.array([2.0]), 2)
    (1.0, 0.0)
    """
    variances = np.zeros(dimensions)
    variances[: len(singular)] = singular**2
    length = np.linalg.norm(variances)
    if dimensions < 2 or length == 0:
        return float("nan")
    scaled = np.sqrt(dimensions) * variances / length
    defect_squared = ((scaled - 1) ** 2).sum() / (2 * (dimensions - np.sqrt(dimensions)))
    used = (dimensions - defect_squared * (dimensions - np.sqrt(dimensions))) ** 2 / dimensions
    return float(np.clip((used - 1) / (dimensions - 1), 0.0, 1.0))


def partition_isotropy(vectors: Vectors, axes: PrincipalAxes) -> float:
    """Returns min Z(c) / max Z(c) over principal directions c, where Z(c) is the sum of exp(c . w) over vectors w.

    It is 1 for vectors spread evenly over all directions and near 0 for a narrow cone (Mu and Viswanath, 2018,
    section 2, after Arora et al., 2016). Directions have no sign, so c and -c are both included.

    Args:
        vectors: (n, d) matrix with at least one row.
        axes: of `vectors`, by `principal_axes`.
    """
    _require_finite(vectors)

    def sums(start: int) -> Floats:
        products = vectors[start : start + _PAIR_ROWS].astype(np.float64) @ axes.directions
        return np.stack([np.exp(products).sum(axis=0), np.exp(-products).sum(axis=0)])

    total = sum(in_threads(sums, range(0, len(vectors), _PAIR_ROWS)), start=np.zeros((2, vectors.shape[1])))
    return float(total.min() / total.max())


def _require_finite(vectors: Vectors) -> None:
    if vectors.ndim != 2 or not vectors.size or not np.isfinite(vectors).all():
        raise ValueError(f"expected a matrix of finite numbers, got shape {vectors.shape}")
