"""The bootstrap over pairs or items: seeded draws, replicates of a statistic, and the interval that they give.

A resample is held as how often it has each pair, and statistics are computed from these counts (`counted`), which
is why the bootstrap is ours: `scipy.stats.bootstrap` would rank every resample anew.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.statistics.aggregation import Aggregation, aggregate, members_of
from stsbench.statistics.correlations import Metric, as_pairs, spearman
from stsbench.statistics.counted import COUNTED, counted_spearman

RESAMPLES = 1000
LEVEL = 0.95
SEED = 12345

_MOST_UNDEFINED = 0.01
"""The share of undefined replicates above which there is no interval."""

_BLOCK_CELLS = 2**18
"""Counts held at once (pairs times resamples). Two MiB an array: in the cache, and some 12 MiB in all."""

_BLOCK_SUMS = 2**20
"""The same where a resample is a product of matrices. (Other blocks would round products otherwise.)"""


def generator(seed: int, *names: str) -> np.random.Generator:
    """Return a random generator that depends on the seed and the names alone.

    Each subset of each task draws from a generator of its own, so neither the order of the tasks nor which
    others are scored changes a draw, and two models scored on one task get the same draws: their
    replicates are paired.

    Args:
        seed: any integer.
        names: what the draws are for, such as the task and the subset.

    Example:
        >>> first, second = generator(0, "STS16", "answer-answer"), generator(0, "STS16", "answer-answer")
        >>> bool(first.integers(1000) == second.integers(1000))
        True
    """
    # JSON keeps ("a", "bc") and ("ab", "c") apart; Python's own hash of strings changes with each process.
    digest = hashlib.sha256(json.dumps([seed, *names]).encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))


def resample_counts(size: int, resamples: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Draw resamples of `size` pairs with replacement, each as how often it holds each pair.

    The draws come one resample after the other, so drawing 1000 at once or in blocks gives the same ones.

    Args:
        size: number of pairs n, which is also the size of each resample.
        resamples: number of resamples.
        rng: where the draws come from; it is advanced.

    Returns:
        (n, resamples) counts; each column is one resample and sums to n. A pair's counts lie side by side
        in memory, because all that follows runs down the pairs for a block of resamples together.

    Example:
        >>> counts = resample_counts(5, 3, generator(0, "STS16"))
        >>> counts.shape, counts.sum(axis=0).tolist()
        ((5, 3), [5, 5, 5])
    """
    cells = rng.integers(size, size=(resamples, size))
    cells *= resamples
    cells += np.arange(resamples)[:, np.newaxis]
    counts = np.bincount(cells.ravel(), minlength=size * resamples).reshape(size, resamples)
    return counts.astype(np.int32)


@dataclass(frozen=True)
class TaskReplicates:
    """Bootstrap replicates of one task; row k of every array comes from the same draw.

    `subsets` is (resamples, k), the columns in the order of the subsets' codes; each of `aggregates` is
    (resamples,).
    """

    subsets: NDArray[np.float64]
    aggregates: dict[Aggregation, NDArray[np.float64]]


def bootstrap_task(
    gold: ArrayLike,
    similarity: ArrayLike,
    subsets: ArrayLike,
    metric: Metric = "spearman",
    *,
    task: str,
    names: Sequence[str],
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> TaskReplicates:
    """Resample the pairs of a task, subset by subset, and correlate each resample.

    The draws depend on the seed, the task's and the subsets' names and sizes alone (see `generator`): two
    models scored on the same pairs in the same order have paired replicates.

    Args:
        gold: (n,) gold scores of the task's pairs.
        similarity: (n,) similarities of the same pairs.
        subsets: (n,) integer codes 0..k-1, the subset of each pair.
        metric: the correlation, a key of `CORRELATIONS`. Kendall's takes some 20 s for all STS tasks,
            the other two a second or less.
        task: the task's name.
        names: (k,) the subsets' names, in the order of their codes.
        resamples: number of resamples.
        seed: any integer.

    Raises:
        ValueError: if the arrays differ in length, a code below the largest has no pair, or there is not
            one name for each subset.

    Example:
        >>> gold, similarity = np.arange(8.0), np.array([1, 2, 4, 3, 5, 6, 8, 7])
        >>> codes = [0, 0, 0, 0, 1, 1, 1, 1]
        >>> replicates = bootstrap_task(gold, similarity, codes, task="toy", names=["a", "b"], resamples=50)
        >>> replicates.subsets.shape, replicates.aggregates["all"].shape
        ((50, 2), (50,))
    """
    gold, similarity = as_pairs(gold, similarity)
    members = members_of(subsets, len(gold))
    if len(names) != len(members):
        raise ValueError(f"expected a name for each of {len(members)} subsets, got {len(names)}")
    prepare = COUNTED[metric]
    correlate_subset = [prepare(gold[pairs], similarity[pairs]) for pairs in members]
    together = np.concatenate(members)
    correlate_all = prepare(gold[together], similarity[together])
    rngs = [generator(seed, task, name) for name in names]

    values = np.empty((resamples, len(members)))
    overall = np.empty(resamples)
    for block in _blocks(len(gold), resamples):
        draws = [
            resample_counts(len(pairs), block.stop - block.start, rng)
            for pairs, rng in zip(members, rngs, strict=True)
        ]
        for column, (correlate, counts) in enumerate(zip(correlate_subset, draws, strict=True)):
            values[block, column] = correlate(counts)
        # A task of one subset is that subset: no need to correlate the same counts again.
        overall[block] = correlate_all(np.concatenate(draws)) if len(draws) > 1 else values[block, 0]
    return TaskReplicates(values, aggregate(values, overall, [len(pairs) for pairs in members]))


def bootstrap_correlation(
    x: ArrayLike,
    y: ArrayLike,
    metric: Metric = "spearman",
    *,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> NDArray[np.float64]:
    """Resample the pairs of one sample and return the (resamples,) correlations, NaN where undefined.

    Args:
        x: (n,) numbers, n at least 1.
        y: (n,) numbers, paired with `x`.
        metric: the correlation, a key of `CORRELATIONS`.
        rng: where the draws come from; see `generator`.
        resamples: number of resamples.

    Raises:
        ValueError: if the two are not one-dimensional and of one length, or are empty.

    Example:
        >>> x = np.arange(100.0)
        >>> replicates = bootstrap_correlation(x, np.sin(x) * 50 + x, rng=generator(0, "sine"))
        >>> low, high = percentile_interval(replicates)
        >>> bool(0 < low < high < 1)
        True
    """
    x, y = as_pairs(x, y)
    return _replicates(COUNTED[metric](x, y), len(x), resamples, rng)


def percentile_interval(replicates: ArrayLike, level: float = LEVEL) -> tuple[float, float]:
    """Return the percentile interval of bootstrap replicates (Efron 1979).

    A resample may be constant and have no correlation. Such replicates (NaN) are left out as long as they
    are at most one in a hundred; if they are more, what is left would be a selection, and there is no
    interval.

    Args:
        replicates: (resamples,) values.
        level: the share of replicates inside, between 0 and 1; as much is cut off at either end.

    Returns:
        The lower and upper limit, (NaN, NaN) if more than 1 % of the replicates are undefined.

    Raises:
        ValueError: if `level` is not between 0 and 1, or there are no replicates.

    Example:
        >>> percentile_interval(np.arange(101.0), level=0.5)
        (25.0, 75.0)
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}")
    values = np.asarray(replicates, dtype=np.float64)
    if values.size == 0:
        raise ValueError("an interval needs at least one replicate")
    undefined = np.isnan(values)
    if undefined.mean() > _MOST_UNDEFINED:
        return float("nan"), float("nan")
    low, high = np.quantile(values[~undefined], [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def percentile_p_value(replicates: ArrayLike) -> float:
    """Return the two-sided p-value of the hypothesis that the true value is 0, by inverting the interval.

    It is 1 less the level of the widest percentile interval that leaves out 0: p is below 0.05 exactly where
    the 95 % interval next to it does not reach 0. A centred bootstrap (shifting the replicates to the
    hypothesis) could contradict that interval where the replicates are skewed.

    Args:
        replicates: (resamples,) differences; undefined ones (NaN) are treated as in `percentile_interval`.

    Returns:
        A number from 2 / (resamples + 1), below which so many replicates cannot see, to 1; NaN if more than 1 %
        of the replicates are undefined.

    Raises:
        ValueError: if there are no replicates.

    Example:
        >>> percentile_p_value(np.arange(-1.0, 100.0))
        0.02
    """
    values = np.asarray(replicates, dtype=np.float64)
    if values.size == 0:
        raise ValueError("a p-value needs at least one replicate")
    undefined = np.isnan(values)
    if undefined.mean() > _MOST_UNDEFINED:
        return float("nan")
    values = np.sort(values[~undefined])
    tail = min(_highest_quantile_not_above_zero(values), _highest_quantile_not_above_zero(-values[::-1]))
    return float(np.clip(2 * tail, 2 / (len(values) + 1), 1.0))


def _highest_quantile_not_above_zero(values: NDArray[np.float64]) -> float:
    # Quantiles are interpolated between the sorted values, as `np.quantile` does for the interval.
    below = int(np.searchsorted(values, 0.0, side="right"))
    if below in {0, len(values)}:
        return below / len(values)
    lower, upper = values[below - 1], values[below]
    return float((below - 1 - lower / (upper - lower)) / (len(values) - 1))


def bootstrap_ratio(
    numerators: ArrayLike,
    denominators: ArrayLike = 1.0,
    *,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> NDArray[np.float64]:
    """Resample items and return the (resamples,) ratios of two sums over them, NaN where the lower one is zero.

    With ones below it is the mean: accuracy is that of being correct. F1 has twice the true positives above,
    and below those and the false positives and negatives.

    Args:
        numerators: (n,) each item's share of the upper sum, n at least 1.
        denominators: (n,) each item's share of the lower one, or one number for all.
        rng: where the draws come from; see `generator`.
        resamples: number of resamples.

    Raises:
        ValueError: if there are no items, or the two differ in length.

    Example:
        >>> correct = np.array([1, 1, 1, 0])
        >>> replicates = bootstrap_ratio(correct, rng=np.random.default_rng(0), resamples=500)
        >>> bool(0.7 < replicates.mean() < 0.8)
        True
    """
    above = np.asarray(numerators, dtype=np.float64)
    below = np.broadcast_to(np.asarray(denominators, dtype=np.float64), above.shape)
    if above.ndim != 1 or not len(above):
        raise ValueError(f"expected at least one item in one dimension, got shape {above.shape}")

    def ratios(counts: NDArray[np.int32]) -> NDArray[np.float64]:
        lower, upper = below @ counts, above @ counts
        return np.where(lower == 0, np.nan, upper / np.where(lower == 0, 1, lower))

    return _replicates(ratios, len(above), resamples, rng, _BLOCK_SUMS)


def bootstrap_sums(
    terms: ArrayLike, *, rng: np.random.Generator, resamples: int = RESAMPLES
) -> NDArray[np.float64]:
    """Resample items and return the sums of several terms over each resample.

    All sums of a column come from one draw. A group's mean is the ratio of two of them (the values, and ones,
    of its members); a regression slope is a function of five.

    Args:
        terms: (m, n) the m terms of each of n items, n at least 1.
        rng: where the draws come from; see `generator`.
        resamples: number of resamples.

    Returns:
        (m, resamples) sums.

    Raises:
        ValueError: if `terms` is not two-dimensional, or there are no items.

    Example:
        >>> sums = bootstrap_sums([[1, 1, 1], [2, 4, 6]], rng=np.random.default_rng(0), resamples=500)
        >>> sums.shape, bool(3.9 < (sums[1] / sums[0]).mean() < 4.1)
        ((2, 500), True)
    """
    terms = np.asarray(terms, dtype=np.float64)
    if terms.ndim != 2 or not terms.shape[1]:
        raise ValueError(f"expected terms of at least one item in two dimensions, got shape {terms.shape}")
    sums = np.empty((len(terms), resamples))
    for block in _blocks(terms.shape[1], resamples, _BLOCK_SUMS):
        sums[:, block] = terms @ resample_counts(terms.shape[1], block.stop - block.start, rng)
    return sums


def partial_spearman(x: ArrayLike, y: ArrayLike, fixed: ArrayLike) -> float:
    """Return the first-order partial rank correlation of two samples, or NaN where it is undefined.

    It is the correlation that is left of the ranks of `x` and `y` after a straight line in the ranks of `fixed`
    has been taken out of both (Kendall 1942): (xy - xz yz) / sqrt((1 - xz^2) (1 - yz^2)).

    Args:
        x: (n,) numbers.
        y: (n,) numbers, paired with `x`.
        fixed: (n,) numbers, paired with both. A constant is held fixed already: then it is `spearman(x, y)`.

    Raises:
        ValueError: if they are not one-dimensional and of one length.

    Example:
        >>> x, y, length = [1, 2, 3, 4, 5], [2, 1, 4, 3, 5], [5, 1, 2, 4, 3]
        >>> round(spearman(x, y), 4), round(partial_spearman(x, y, length), 4)
        (0.8, 0.8182)
    """
    x, fixed = as_pairs(x, fixed)
    y, _ = as_pairs(y, fixed)
    if fixed.size and (fixed == fixed[0]).all():
        return spearman(x, y)
    return float(_partial(*(np.array([spearman(a, b)]) for a, b in ((x, y), (x, fixed), (y, fixed))))[0])


def bootstrap_partial_spearman(
    x: ArrayLike, y: ArrayLike, fixed: ArrayLike, *, rng: np.random.Generator, resamples: int = RESAMPLES
) -> NDArray[np.float64]:
    """Resample the triples of three samples and return the (resamples,) partial correlations.

    Args:
        x: (n,) numbers, n at least 1.
        y: (n,) numbers, paired with `x`.
        fixed: (n,) numbers, paired with both.
        rng: where the draws come from; see `generator`.
        resamples: number of resamples.

    Returns:
        NaN where a resample is constant in `x` or `y`.

    Raises:
        ValueError: if they are not one-dimensional and of one length.
    """
    x, fixed = as_pairs(x, fixed)
    y, _ = as_pairs(y, fixed)
    correlations = [counted_spearman(a, b) for a, b in ((x, y), (x, fixed), (y, fixed))]

    def partial(counts: NDArray[np.int32]) -> NDArray[np.float64]:
        both, of_x, of_y = (correlate(counts) for correlate in correlations)
        constant = np.isnan(of_x) & np.isnan(of_y)
        return np.where(constant, both, _partial(both, of_x, of_y))

    return _replicates(partial, len(x), resamples, rng)


def _partial(xy: NDArray[np.float64], xz: NDArray[np.float64], yz: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", divide="ignore"):
        partial = (xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2))
    return np.where(np.isfinite(partial), np.clip(partial, -1.0, 1.0), np.nan)


def _replicates(
    statistic: Callable[[NDArray[np.int32]], NDArray[np.float64]],
    items: int,
    resamples: int,
    rng: np.random.Generator,
    cells: int = _BLOCK_CELLS,
) -> NDArray[np.float64]:
    """Return a statistic of each resample of so many items; it takes (items, k) counts and returns (k,) values."""
    values = np.empty(resamples)
    for block in _blocks(items, resamples, cells):
        values[block] = statistic(resample_counts(items, block.stop - block.start, rng))
    return values


def _blocks(items: int, resamples: int, cells: int = _BLOCK_CELLS) -> Iterator[slice]:
    step = max(1, cells // max(1, items))
    for start in range(0, resamples, step):
        yield slice(start, min(start + step, resamples))
