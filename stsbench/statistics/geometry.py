"""The geometry of vectors: alignment, uniformity, spectra, compression."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.base.progress import Progress, silent
from stsbench.statistics.neighbours import in_threads

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
        raise ValueError(f"row {bad[0]} has the length {norms[bad[0]]} and so no direction")
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
        # The product of a block with itself has each pair twice, and the diagonal.
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
        # The triangle of a QR decomposition has the same singular values in a small square matrix.
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


Numbers = Literal["fp32", "fp16", "int8", "binary"]
Kind = Literal["cosine", "dot", "hamming"]

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
            # Overflow becomes infinite, which has no similarity.
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
    if codes.dtype == np.float16:
        # Lossless; reading float16 row by row is slow.
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
    """Returns the (n, k) dot products of n pairs of rows over k choices of dimensions, computed in blocks."""
    sums = np.empty((len(first), kept.shape[1]))
    step = max(1, _BLOCK // max(1, codes.shape[1]))
    for start in range(0, len(first), step):
        block = slice(start, start + step)
        with np.errstate(invalid="ignore", over="ignore"):
            products = codes[first[block]].astype(np.float64) * codes[second[block]]
            np.matmul(products, kept, out=sums[block])
    return sums
