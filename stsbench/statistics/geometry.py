"""Vectors as points: alignment and uniformity on the unit sphere, their mean cosine, and the singular values.

Singular values say how many directions are in use. A number that is not finite is a ValueError, and so are fewer
vectors than a number takes; so is a zero vector, which has no direction, but for axes and partition isotropy.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.base.progress import Progress, silent
from stsbench.statistics.threads import in_threads

Vectors = NDArray[np.floating[Any]]
Floats = NDArray[np.float64]

_BLOCK_ROWS = 4096

_SPECTRUM_ROWS = 2048

_PAIR_ROWS = 2048
"""Two blocks of vectors and the products between them: some 30 MB a thread for 768 dimensions in float32."""


def unit_rows(vectors: Vectors) -> Floats:
    """Return the rows of an (n, d) matrix scaled to length 1, in float64.

    >>> unit_rows(np.array([[3.0, 4.0]])).tolist()
    [[0.6, 0.8]]
    """
    if vectors.ndim != 2:
        raise ValueError(f"expected a matrix of vectors, got shape {vectors.shape}")
    rows = vectors.astype(np.float64)
    return rows / row_norms(rows)[:, np.newaxis]


def row_norms(vectors: Vectors) -> Floats:
    """Return the (n,) lengths of the rows of an (n, d) matrix, in float64."""
    squares = [
        np.einsum("ij,ij->i", block, block)
        for start in range(0, len(vectors), _BLOCK_ROWS)
        for block in (vectors[start : start + _BLOCK_ROWS].astype(np.float64),)
    ]
    norms: Floats = np.sqrt(np.concatenate(squares)) if squares else np.empty(0)
    bad = np.flatnonzero(~np.isfinite(norms) | (norms == 0))
    if len(bad):
        raise ValueError(f"row {bad[0]} has the length {norms[bad[0]]}: only a finite one gives a direction")
    return norms


def alignment(left: Vectors, right: Vectors, *, alpha: float = 2.0) -> float:
    """Return the alignment of positive pairs: the mean of ||u - v||^alpha over L2-normalised pairs.

    Lower is better: 0 where both vectors of every pair point the same way, 2^alpha where they are opposite.
    Wang and Isola (2020), section 4.1; SimCSE (2021), equation 2, takes alpha = 2.

    Args:
        left: (n, d) first vectors of the pairs, n at least 1.
        right: (n, d) second vectors.
        alpha: the power.

    >>> alignment(np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 3.0], [0.0, 1.0]]))
    1.0
    """
    if left.shape != right.shape or not len(left):
        raise ValueError(f"expected pairs of vectors, got shapes {left.shape} and {right.shape}")
    difference = unit_rows(left) - unit_rows(right)
    squares = np.einsum("ij,ij->i", difference, difference)
    return float(np.mean(squares ** (alpha / 2)))


def uniformity(vectors: Vectors, *, t: float = 2.0, progress: Progress = silent) -> float:
    """Return the uniformity of vectors: log of the mean of exp(-t ||u - v||^2) over all pairs i < j.

    The vectors are L2-normalised. Lower is better: 0 where all point the same way. Wang and Isola (2020),
    section 4.2; SimCSE (2021), equation 3, takes t = 2. Every pair is counted, none is sampled; the memory beside
    `vectors` does not grow with the square of n. Products are computed in the precision of `vectors` (float32 at
    least), sums in float64.

    Args:
        vectors: (n, d) matrix, n at least 2.
        t: how fast a pair's part falls with its distance.
        progress: told of the pairs done.

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


def mean_cosine(vectors: Vectors) -> float:
    """Return the mean cosine over all pairs i < j: what a random pair has on average.

    Exact without looking at any pair: the squared length of the sum of n unit vectors is n plus twice the sum of
    the cosines. Near 0 for vectors in all directions, near 1 for vectors in a narrow cone (Ethayarajh, 2019).

    Args:
        vectors: (n, d) matrix, n at least 2.

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


def mean_cosine_by_dimension(units: Floats) -> Floats:
    """Return what each dimension makes of the mean cosine over all pairs i < j, (d,); they add up to it.

    The contribution of a dimension of Timkey and van Schijndel (2021): the mean of u_k v_k over random pairs of
    unit vectors, here over all of them, exactly as in `mean_cosine`.

    Args:
        units: (n, d) vectors of length 1, n at least 2.

    >>> mean_cosine_by_dimension(np.array([[1.0, 0.0], [0.6, 0.8]])).round(12).tolist()
    [0.6, 0.0]
    """
    n = len(units)
    if units.ndim != 2 or n < 2:
        raise ValueError(f"a mean over pairs needs at least two vectors, got shape {units.shape}")
    sums, squares = units.sum(axis=0), np.einsum("ij,ij->j", units, units)
    shares: Floats = (sums * sums - squares) / (n * (n - 1))
    return shares


class PrincipalAxes(NamedTuple):
    """The singular value decomposition of a matrix of vectors, but for the part that is as long as the matrix.

    Attributes:
        values: (min(n, d),) singular values, largest first.
        directions: (d, d), in the columns; the k-th belongs to the k-th value, those that are left over to none.
    """

    values: Floats
    directions: Floats


def principal_axes(vectors: Vectors) -> tuple[PrincipalAxes, PrincipalAxes]:
    """Return the principal axes of a matrix as it is, and with the mean vector subtracted.

    A QR decomposition behind a column of ones leaves a triangle that has both: without the first column it has the
    singular values of the matrix, without the first row as well those of the centred matrix. MoCoSE (2022), figure
    7, draws them for the sentence vectors of STS-B, divided by the largest.

    Args:
        vectors: (n, d) matrix with at least one row.

    >>> plain, centred = principal_axes(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> [round(float(value), 3) for value in (*plain.values, *centred.values)]
    [7.634, 1.31, 1.414, 0.0]
    """
    _require_finite(vectors)
    n, d = vectors.shape

    def triangle_of(matrix: Floats) -> Floats:
        return np.asarray(np.linalg.qr(matrix, mode="r"), dtype=np.float64)

    def of_block(rows: slice) -> Floats:
        block = vectors[rows]
        return triangle_of(np.hstack([np.ones((len(block), 1)), block]))

    (triangle,) = in_threads(triangle_of, [np.vstack(list(in_threads(of_block, _blocks(n))))])

    def axes(matrix: Floats) -> PrincipalAxes:
        _, values, directions = np.linalg.svd(matrix, full_matrices=True)
        padded = np.zeros(min(n, d))
        padded[: len(values)] = values[: len(padded)]
        return PrincipalAxes(padded, directions.T)

    plain, centred = in_threads(axes, [triangle[:, 1:], triangle[1:, 1:]])
    return plain, centred


def effective_rank(singular: Floats) -> float:
    """Return the effective rank: exp of the entropy of (k,) singular values, scaled to sum 1.

    1 if one direction holds everything, d if d directions hold equal shares (Roy and Vetterli, 2007).

    >>> round(effective_rank(np.array([2.0, 2.0, 2.0])), 12)
    3.0
    """
    shares = singular[singular > 0] / singular.sum() if singular.any() else np.empty(0)
    return float(np.exp(-(shares * np.log(shares)).sum())) if len(shares) else float("nan")


def top_share(singular: Floats, directions: int) -> float:
    """Return the share of the squared singular values (of the variance, if centred) in the first directions.

    Args:
        singular: (k,) singular values, largest first.
        directions: how many directions count as the first.

    >>> top_share(np.array([3.0, 1.0]), 1)
    0.9
    """
    squares = singular**2
    return float(squares[:directions].sum() / squares.sum()) if squares.any() else float("nan")


def iso_score(singular: Floats, dimensions: int) -> float:
    """Return IsoScore: the share of dimensions in uniform use, 0 for one direction, 1 for all alike.

    Rudman et al. (2022), algorithm 1: the variances along the principal directions, scaled to the length of the
    all-ones vector, and their distance from it as a share of the largest possible.

    Args:
        singular: (k,) singular values of the centred matrix.
        dimensions: d, at least k; directions without a singular value have no variance.

    Returns:
        NaN where there is no variance at all, or one dimension alone.

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


def partition_isotropy(vectors: Vectors, axes: PrincipalAxes | None = None) -> float:
    """Return min Z(c) / max Z(c), with Z(c) = sum over vectors w of exp(c . w), c over the principal directions.

    1 for vectors spread alike over all directions, near 0 for a narrow cone (Mu and Viswanath, 2018, section 2,
    after Arora et al., 2016). A direction has no sign: both c and -c are taken.

    Args:
        vectors: (n, d) matrix with at least one row.
        axes: its own, where they are known.

    >>> round(partition_isotropy(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])), 12)
    1.0
    """
    _require_finite(vectors)
    directions = (principal_axes(vectors)[0] if axes is None else axes).directions

    def sums(rows: slice) -> Floats:
        products = vectors[rows].astype(np.float64) @ directions
        return np.stack([np.exp(products).sum(axis=0), np.exp(-products).sum(axis=0)])

    total: Floats = sum(in_threads(sums, _blocks(len(vectors))), start=np.zeros((2, vectors.shape[1])))
    return float(total.min() / total.max())


def _blocks(rows: int) -> list[slice]:
    return [slice(start, start + _SPECTRUM_ROWS) for start in range(0, rows, _SPECTRUM_ROWS)]


def _require_finite(vectors: Vectors) -> None:
    if vectors.ndim != 2 or not vectors.size or not np.isfinite(vectors).all():
        raise ValueError(f"expected a matrix of finite numbers, got shape {vectors.shape}")
