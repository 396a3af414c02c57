"""The singular values of a matrix of vectors, and what they say about how many directions are in use."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.statistics.threads import in_threads

Floats = NDArray[np.float64]

_BLOCK_ROWS = 2048


class PrincipalAxes(NamedTuple):
    """The singular value decomposition of a matrix of vectors, but for the part that is as long as the matrix.

    Attributes:
        values: (min(n, d),) singular values, largest first.
        directions: (d, d), in the columns; the k-th belongs to the k-th value, those that are left over to none.
    """

    values: Floats
    directions: Floats


def principal_axes(vectors: NDArray[np.floating[Any]]) -> tuple[PrincipalAxes, PrincipalAxes]:
    """Return the principal axes of a matrix as it is, and with the mean vector subtracted.

    A QR decomposition behind a column of ones leaves a triangle that has both: without the first column it has the
    singular values of the matrix, without the first row as well those of the centred matrix.

    Args:
        vectors: (n, d) matrix with at least one row.

    Raises:
        ValueError: if there is no row, or a number is not finite.

    Example:
        >>> plain, centred = principal_axes(np.array([[1.0, 5.0], [3.0, 5.0]]))
        >>> [round(float(value), 3) for value in (*plain.values, *centred.values)]
        [7.634, 1.31, 1.414, 0.0]
    """
    _require_finite(vectors)
    n, d = vectors.shape
    triangles = np.vstack(list(in_threads(lambda rows: _triangle(_behind_ones(vectors[rows])), _blocks(n))))
    (triangle,) = in_threads(_triangle, [triangles])

    def axes(matrix: Floats) -> PrincipalAxes:
        _, values, directions = np.linalg.svd(matrix, full_matrices=True)
        padded = np.zeros(min(n, d))
        padded[: len(values)] = values[: len(padded)]
        return PrincipalAxes(padded, directions.T)

    plain, centred = in_threads(axes, [triangle[:, 1:], triangle[1:, 1:]])
    return plain, centred


def _behind_ones(vectors: NDArray[np.floating[Any]]) -> Floats:
    return np.hstack([np.ones((len(vectors), 1)), vectors])


def _triangle(matrix: Floats) -> Floats:
    return np.asarray(np.linalg.qr(matrix, mode="r"), dtype=np.float64)


def singular_values(vectors: NDArray[np.floating[Any]], *, centred: bool = False) -> Floats:
    """Return the singular values of a matrix, largest first; shape (min(n, d),), float64.

    MoCoSE (2022), figure 7, draws them for the sentence vectors of STS-B, divided by the largest.

    Args:
        vectors: (n, d) matrix with at least one row.
        centred: whether the mean vector is subtracted first.

    Raises:
        ValueError: if there is no row, or a number is not finite.

    Example:
        >>> singular_values(np.array([[3.0, 0.0], [0.0, 4.0]])).round(12).tolist()
        [4.0, 3.0]
    """
    return principal_axes(vectors)[centred].values


def effective_rank(singular: Floats) -> float:
    """Return the effective rank: exp of the entropy of the singular values, scaled to sum 1.

    1 if one direction holds everything, d if d directions hold equal shares (Roy and Vetterli, 2007).

    Args:
        singular: (k,) singular values, not negative.

    Example:
        >>> round(effective_rank(np.array([2.0, 2.0, 2.0])), 12)
        3.0
    """
    shares = singular[singular > 0] / singular.sum() if singular.any() else np.empty(0)
    return float(np.exp(-(shares * np.log(shares)).sum())) if len(shares) else float("nan")


def top_share(singular: Floats, directions: int) -> float:
    """Return the share of the squared singular values (of the variance, if centred) in the first directions.

    Args:
        singular: (k,) singular values, largest first.
        directions: how many.

    Example:
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

    Example:
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


def partition_isotropy(vectors: NDArray[np.floating[Any]], axes: PrincipalAxes | None = None) -> float:
    """Return min Z(c) / max Z(c), with Z(c) = sum over vectors w of exp(c . w), c over the principal directions.

    1 for vectors spread alike over all directions, near 0 for a narrow cone (Mu and Viswanath, 2018, section 2,
    after Arora et al., 2016). A direction has no sign: both c and -c are taken.

    Args:
        vectors: (n, d) matrix with at least one row.
        axes: its own, where they are known.

    Raises:
        ValueError: if there is no row, or a number is not finite.

    Example:
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
    return [slice(start, start + _BLOCK_ROWS) for start in range(0, rows, _BLOCK_ROWS)]


def _require_finite(vectors: NDArray[np.floating[Any]]) -> None:
    if vectors.ndim != 2 or not vectors.size or not np.isfinite(vectors).all():
        raise ValueError(f"expected a matrix of finite numbers, got shape {vectors.shape}")
