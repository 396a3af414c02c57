"""Similarities of pairs of vectors, exact nearest neighbours, and hubness.

Hubness measures how unevenly vectors are neighbours of each other.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import ThreadpoolController

from stsbench.base.progress import Progress, silent

Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

Item = TypeVar("Item")
Part = TypeVar("Part")

SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)
"""The similarities, by their name in a signature."""

_BLOCK_BYTES = 2**20
"""Size of a block of float64 vectors, chosen to fit into the cache of a core."""

QUERIES_AT_ONCE = 256

_NO_DIRECTION = 1e-9
"""Vectors shorter than this share of the longest uncentred one are rounding noise."""

DECIMALS = 9
"""Cosines that agree to this many decimals are ties."""

_MOST_THREADS = 4
"""Largest number of threads; it bounds memory on machines with many cores."""


def pair_similarities(
    vectors: NDArray[np.floating[Any]],
    left: ArrayLike,
    right: ArrayLike,
    kinds: Sequence[Similarity] = ("cosine",),
) -> dict[Similarity, Floats]:
    """Returns similarities of pairs of rows, (n,) in float64 for each kind.

    `cosine` is in [-1, 1], and 0 if a row is zero; `dot` is the inner product; `euclidean` and `manhattan` are
    negative distances. Higher always means more similar. The cosine of a row with itself is exactly 1: rounding
    noise would reorder the ties among identical sentences, of which STS has 93 scored pairs.

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


class Directions(NamedTuple):
    """(n, d) vectors of length 1, or zero if they have no direction, and an (n,) mask of those with one."""

    units: Floats
    directed: NDArray[np.bool_]


def directions(vectors: NDArray[np.floating[Any]], *, centred: bool = False) -> Directions:
    """Scales the rows of an (n, d) matrix to length 1, in float64; rows without a direction become zero.

    Args:
        vectors: n at least 1.
        centred: whether to subtract the mean of the rows first.

    >>> directions(np.array([[3.0, 4.0], [0.0, 0.0]])).units.tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    rows = vectors.astype(np.float64)
    longest = np.linalg.norm(rows, axis=1).max(initial=0.0)
    if centred:
        rows = rows - rows.mean(axis=0)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    directed = np.asarray(lengths[:, 0] > _NO_DIRECTION * longest)
    units = np.divide(rows, lengths, out=np.zeros_like(rows), where=directed[:, np.newaxis])
    return Directions(units, directed)


class Nearest(NamedTuple):
    """The numbers of the k nearest vectors of each of q queries, (q, k), nearest first, and their cosines."""

    rows: Counts
    cosines: Floats


def nearest(queries: Floats, corpus: Iterable[tuple[Counts, Floats]], k: int, *, highest: float = 1.0) -> Nearest:
    """Returns the k corpus vectors with the highest cosine to each query; among ties, the earlier one comes first.

    Cosines that agree to nine decimals are ties, so rounding does not decide the order.

    Args:
        queries: (q, d) unit vectors.
        corpus: blocks of (numbers, unit vectors) in rising order of numbers; one block at a time is held in
            memory.
        k: number of neighbours; a smaller corpus returns as many as it has.
        highest: the highest possible similarity; infinity for inner products of vectors of any length.

    >>> nearest(np.array([[1.0, 0.0]]), [(np.arange(2), np.eye(2)), (np.array([2]), np.array([[0.6, 0.8]]))], 2)
    Nearest(rows=array([[0, 2]]), cosines=array([[1. , 0.6]]))
    """
    places = range(0, max(1, len(queries)), QUERIES_AT_ONCE)
    some = [queries[start : start + QUERIES_AT_ONCE] for start in places]
    parts = [Nearest(np.empty((len(part), 0), dtype=np.int64), np.empty((len(part), 0))) for part in some]
    for numbers, units in corpus:
        blocks = (np.clip(part @ units.T, -highest, highest) for part in some)
        parts = [_with_block(best, numbers, block, k) for best, block in zip(parts, blocks, strict=True)]
    return Nearest(*(np.concatenate(side) for side in zip(*parts, strict=True)))


def _with_block(best: Nearest, numbers: Counts, block: Floats, k: int) -> Nearest:
    """Returns the k best of the neighbours so far and of a block of later vectors with their cosines."""
    if best.rows.shape[1] == k:
        # Almost no later vector is closer than the k-th, and only those are sorted.
        columns = (block > best.cosines[:, -1:] - 10.0**-DECIMALS).any(axis=0)
        numbers, block = numbers[columns], block[:, columns]
    highest = _highest(block, k)
    # The best so far precede those of the block, so that the earlier of two ties stays first.
    rows = np.hstack([best.rows, numbers[highest]])
    cosines = np.hstack([best.cosines, np.take_along_axis(block, highest, axis=1)])
    order = _highest(cosines, k)
    return Nearest(np.take_along_axis(rows, order, axis=1), np.take_along_axis(cosines, order, axis=1))


def _highest(cosines: Floats, k: int) -> NDArray[np.intp]:
    """Returns the columns of the k highest values of each row, highest first; among ties, the first column."""
    keys = -np.round(cosines, DECIMALS)
    if k >= keys.shape[1]:
        return np.argsort(keys, axis=1, kind="stable")
    limits = np.partition(keys, k - 1, axis=1)[:, [k - 1]]
    places, columns = np.divmod(np.flatnonzero(keys <= limits), keys.shape[1])
    order = np.lexsort((columns, keys[places, columns], places))
    firsts = np.searchsorted(places, np.arange(len(keys)))
    chosen: NDArray[np.intp] = columns[order[firsts[:, np.newaxis] + np.arange(k)]]
    return chosen


def nearest_others(units: Floats, k: int, progress: Progress = silent) -> Nearest:
    """Returns the k nearest other rows of each of n unit vectors, (n, d); ties as in `nearest`.

    Args:
        units: n above k.
        k: number of neighbours, at least 1.
        progress: called with the number of rows done.
    """
    n = len(units)
    if not 1 <= k < n:
        raise ValueError(f"{k} neighbours among {n} rows: there are 1 to {n - 1}")

    def of_block(start: int) -> Nearest:
        queries = np.arange(start, min(start + QUERIES_AT_ONCE, n))[:, np.newaxis]
        near = nearest(units[queries[:, 0]], [(np.arange(n), units)], k + 1)
        # A row is among its own k + 1 nearest unless earlier duplicates take all places.
        kept = near.rows != queries
        kept[kept.all(axis=1), -1] = False
        return Nearest(near.rows[kept].reshape(-1, k), near.cosines[kept].reshape(-1, k))

    parts: list[Nearest] = []
    blocks = range(0, n, QUERIES_AT_ONCE)
    for start, part in zip(blocks, in_threads(of_block, blocks), strict=True):
        parts.append(part)
        progress("neighbours", start + len(part.rows), n)
    return Nearest(*(np.concatenate(side) for side in zip(*parts, strict=True)))


class Hubness(NamedTuple):
    """How unevenly n vectors are neighbours of each other.

    Attributes:
        counts: (n,) k-occurrence: how many others have the vector among their k nearest; k on average.
        skewness: of the counts, m3 / m2^(3/2); NaN if all counts are k.
        antihubs: share of the vectors with a count of 0.
        skewness_terms: (n,) first-order terms of the skewness, which sum to 0.
        antihub_terms: (n,) first-order terms of the share.
    """

    counts: Counts
    skewness: float
    antihubs: float
    skewness_terms: Floats
    antihub_terms: Floats


def hubness(neighbours: Counts) -> Hubness:
    """Returns the skewness of the k-occurrence and the share of anti-hubs (Radovanović et al. 2010).

    The terms treat the counts as a sample with the known mean k and ignore that counts of nearby vectors are
    dependent. For normal clouds of 5 to 50 dimensions the resulting standard errors are 0.95 to 1.35 times the
    true ones (the jackknife's: 1.2 to 3 times).

    Args:
        neighbours: (n, k) rows of the nearest others, as returned by `nearest_others`.

    >>> star = np.array([[1], [0], [0], [0]])
    >>> star_hubness = hubness(star)
    >>> star_hubness.counts.tolist(), round(star_hubness.skewness, 3), star_hubness.antihubs
    ([3, 1, 0, 0], 0.816, 0.5)
    """
    n, k = neighbours.shape
    counts = np.bincount(neighbours.ravel(), minlength=n)
    deviations = (counts - k).astype(np.float64)
    squares, cubes = deviations**2, deviations**3
    second, third = squares.mean(), cubes.mean()
    antihubs = counts == 0
    share = float(antihubs.mean())
    share_terms = (antihubs - share) / n
    if not second:
        return Hubness(counts, float("nan"), share, np.full(n, np.nan), share_terms)
    skewness = float(third / second**1.5)
    terms = ((cubes - third) / second**1.5 - 1.5 * skewness * (squares - second) / second) / n
    return Hubness(counts, skewness, share, terms, share_terms)


def in_threads(function: Callable[[Item], Part], items: Sequence[Item]) -> Iterator[Part]:
    """Yields the results of a function for the items, in order, computed in up to four threads.

    The number of threads is that of NumPy's linear algebra (the cores, or `OMP_NUM_THREADS`). Meanwhile each
    matrix product or decomposition uses one thread: rounding depends on how BLAS splits a matrix between threads,
    so this makes results the same on any number of cores.

    >>> list(in_threads(lambda exponent: 10**exponent, range(3)))
    [1, 10, 100]
    """
    blas = ThreadpoolController().select(user_api="blas")
    threads = max((library["num_threads"] for library in blas.info()), default=1)
    workers = min(threads, _MOST_THREADS, len(items))
    with blas.limit(limits=1):
        if workers <= 1:
            yield from map(function, items)
            return
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(function, items)
