"""The bootstrap over pairs: replicates of a correlation, and the interval that they give.

The draws of a task are stratified: each subset is resampled to its own size. One set of draws therefore
serves each subset's interval and the task's by every aggregation; and since the seven tasks draw
independently, averaging the k-th replicate of each gives replicates of the seven-task average.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.statistics.aggregation import Aggregation, aggregate, members_of
from stsbench.statistics.correlations import Metric, as_pairs
from stsbench.statistics.counted import COUNTED
from stsbench.statistics.resampling import generator, resample_counts

RESAMPLES = 1000
LEVEL = 0.95
SEED = 12345

_MOST_UNDEFINED = 0.01
"""The share of undefined replicates above which there is no interval."""

_BLOCK_CELLS = 2**18
"""Counts held at once (pairs times resamples). Two MiB an array: in the cache, and some 12 MiB in all."""


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
    correlate = COUNTED[metric](x, y)
    replicates = np.empty(resamples)
    for block in _blocks(len(x), resamples):
        counts = resample_counts(len(x), block.stop - block.start, rng)
        replicates[block] = correlate(counts)
    return replicates


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


def _blocks(pairs: int, resamples: int) -> Iterator[slice]:
    step = max(1, _BLOCK_CELLS // max(1, pairs))
    for start in range(0, resamples, step):
        yield slice(start, min(start + step, resamples))
