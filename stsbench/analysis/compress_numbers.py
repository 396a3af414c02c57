"""The numbers of `compress`: the smaller vectors of a model, their scores and losses."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.data.shared import FOLDED
from stsbench.records.kinds import AVERAGE
from stsbench.scoring.settings import MARGIN, Intervals
from stsbench.scoring.statistic import sharing_of
from stsbench.scoring.subjects import ScoredTask
from stsbench.statistics.compression import (
    BITS,
    Kind,
    Numbers,
    bytes_of,
    principal_of,
    ranges_of,
    similarities_by_choice,
    stored,
)
from stsbench.statistics.correlations import correlate_task
from stsbench.statistics.dependence import Sharing, Variance, variance
from stsbench.statistics.influence import task_terms
from stsbench.statistics.intervals import lower_bound, plain_interval, upper_bound
from stsbench.statistics.seeds import generator
from stsbench.statistics.threads import in_threads
from stsbench.statistics.ties import ties_of

Floats = NDArray[np.float64]

ALL, LEADING, RANDOM, PCA = "all", "leading", "random", "PCA"
"""The kept dimensions: all, the first, random ones, or the largest principal components."""

NO_WORSE, WORSE, CANNOT_TELL, UNDEFINED = "no worse", "worse", "cannot tell", "undefined"

SMALLEST = 16
"""The smallest default number of dimensions."""

_TIES = ("tied", "expected", "lowest", "highest")


@dataclass(frozen=True)
class Compression:
    """How vectors are compressed and compared with the full ones.

    Attributes:
        sizes: numbers of dimensions in addition to all; by default halves down to `SMALLEST`.
        draws: number of draws of random dimensions.
        seed: seed of the draws.
        similarity: `cosine` or `dot` for floats and int8; binary vectors use the Hamming distance.
        margin: allowed loss in points of 100.
        intervals: how intervals are computed.
    """

    sizes: tuple[int, ...] = ()
    draws: int = 5
    seed: int = 0
    similarity: Kind = "cosine"
    margin: float = MARGIN
    intervals: Intervals = field(default_factory=Intervals)


@dataclass(frozen=True, eq=False)
class PairedVectors:
    """The vectors of a model's pairs, and of other sentences for calibration.

    Attributes:
        tasks: the scored tasks.
        vectors: (m, d), one row per distinct token sequence.
        rows: (2, n) rows of both sides of the pairs, by task.
        calibration: (c, d) vectors of sentences that are in no task.
        left_out: number of sentences of the corpus that are in a task.
    """

    tasks: Sequence[ScoredTask]
    vectors: NDArray[np.floating[Any]]
    rows: Sequence[NDArray[np.int64]]
    calibration: NDArray[np.floating[Any]]
    left_out: int = 0


class Cell(NamedTuple):
    """A smaller vector."""

    dimensions: int
    kept: str
    stored: Numbers


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The pairs that every smaller vector is scored on.

    Attributes:
        tasks: the scored tasks.
        rows: (2, n) rows of both sides of the pairs, by task.
        codes: (n,) codes of the pairs' subsets, by task.
        sharing: which pairs share a sentence, by task.
        joined: which pairs share a sentence, over all tasks.
    """

    tasks: Sequence[ScoredTask]
    rows: Sequence[NDArray[np.int64]]
    codes: Sequence[NDArray[np.intp]]
    sharing: Sequence[Sharing]
    joined: Sharing

    @classmethod
    def of(cls, model: PairedVectors) -> "_Pairs":
        tasks = model.tasks
        codes = [pd.factorize(task.pairs["subset"])[0] for task in tasks]
        joined = Sharing.join([sharing_of(task.pairs, folded=True) for task in tasks])
        return cls(tasks, model.rows, codes, [sharing_of(task.pairs) for task in tasks], joined)


@dataclass(frozen=True, eq=False)
class _Measured:
    """The scores of a smaller vector over k draws of its dimensions (one unless they are random).

    Attributes:
        values: (k, tasks) scores.
        terms: (n,) terms of the mean score over the draws, by task.
        ties: means of `_TIES` over the draws, by task.
    """

    values: Floats
    terms: list[Floats]
    ties: list[dict[str, float]]


def sizes_of(width: int, chosen: Sequence[int], name: str) -> list[int]:
    """Returns the numbers of dimensions, the largest first: all, and the chosen ones or halves.

    Args:
        width: number of dimensions of the full vectors.
        chosen: chosen numbers; none for halves.
        name: the model's name, for the message.

    >>> sizes_of(384, (), "minilm")
    [384, 192, 96, 48, 24, 16]
    """
    for size in chosen:
        if not 1 <= size <= width:
            raise UserError(f"--sizes {size}: the vectors of {name} have {width} dimensions; give 1 to {width}.")
    sizes = {width, *chosen}
    if not chosen:
        half = width // 2
        while half > SMALLEST:
            sizes.add(half)
            half //= 2
        sizes.add(min(SMALLEST, width))
    return sorted(sizes, reverse=True)


def compressed_rows(name: str, model: PairedVectors, how: Compression) -> Iterator[dict[str, Any]]:
    """Yields the rows of every smaller vector of a model; see `compress` for the columns."""
    sizes = sizes_of(model.vectors.shape[1], how.sizes, name)
    needed = max(sizes[-1] + 1, 2)
    if len(model.calibration) < needed:
        left_out = f" ({model.left_out:,} more are in the tasks)" if model.left_out else ""
        raise UserError(
            f"{sizes[-1]} principal components take {needed} other sentences, but the corpus has "
            f"{len(model.calibration)}{left_out}: name a longer file with --corpus."
        )
    pairs = _Pairs.of(model)
    measured = dict(_measure(model, pairs, sizes, how))
    full = measured[Cell(sizes[0], ALL, "fp32")]
    for task, value in zip(model.tasks, full.values[0].tolist(), strict=True):
        if np.isnan(value):
            raise UserError(f"{name} has no score on {task.task} (its similarities are constant): leave it out.")
    about = {
        "metric": model.tasks[0].statistic.metric,
        "calibration": len(model.calibration),
        "left_out": model.left_out,
        "margin": how.margin,
    }
    order = {cell: place for place, cell in enumerate(_cells(sizes))}
    for cell in sorted(measured, key=order.__getitem__):
        similarity = _kind(cell.stored, how)
        of_cell = cell._asdict() | {"similarity": similarity, "bytes": bytes_of(cell.dimensions, cell.stored)}
        for row in _compared(pairs, measured[cell], full, how):
            yield {"task": row.pop("task")} | of_cell | row | about


def _cells(sizes: Sequence[int]) -> Iterator[Cell]:
    for size in sizes:
        for kept in (ALL, PCA) if size == sizes[0] else (LEADING, RANDOM, PCA):
            for numbers in BITS:
                yield Cell(size, kept, numbers)


def _kind(numbers: Numbers, how: Compression) -> Kind:
    return "hamming" if numbers == "binary" else how.similarity


def _measure(
    model: PairedVectors, pairs: _Pairs, sizes: Sequence[int], how: Compression
) -> Iterator[tuple[Cell, _Measured]]:
    """Yields every smaller vector with its scores: dimensions of the vectors, then principal components."""
    principal = principal_of(model.calibration)
    width, rank = sizes[0], principal.directions.shape[1]
    orders = [generator(how.seed, "compress", str(draw)).permutation(width) for draw in range(how.draws)]
    places = {(width, ALL): [np.arange(width)]}
    places |= {(size, LEADING): [np.arange(size)] for size in sizes[1:]}
    places |= {(size, RANDOM): [order[:size] for order in orders] for size in sizes[1:]}
    yield from _measure_choices(pairs, model.vectors, model.calibration, places, how)
    components = {(size, PCA): [np.arange(size)] for size in sizes if size <= rank}
    if components:
        turned, calibration = principal.of(model.vectors), principal.of(model.calibration)
        yield from _measure_choices(pairs, turned, calibration, components, how)


def _measure_choices(
    pairs: _Pairs,
    vectors: NDArray[np.floating[Any]],
    calibration: NDArray[np.floating[Any]],
    places: Mapping[tuple[int, str], Sequence[NDArray[np.int64]]],
    how: Compression,
) -> Iterator[tuple[Cell, _Measured]]:
    """Yields the scores of some choices of dimensions of (m, d) vectors in each number format."""
    every = [chosen for draws in places.values() for chosen in draws]
    choices = np.zeros((len(every), vectors.shape[1]), dtype=bool)
    for choice, chosen in zip(choices, every, strict=True):
        choice[chosen] = True
    left, right = np.concatenate(pairs.rows, axis=1)
    ends = [0, *accumulate(rows.shape[1] for rows in pairs.rows)]
    starts = [0, *accumulate(len(draws) for draws in places.values())]
    ranges = ranges_of(calibration)

    def scored(numbers: Numbers) -> list[tuple[Cell, _Measured]]:
        codes = stored(vectors, numbers, ranges)
        values = similarities_by_choice(codes, left, right, choices, _kind(numbers, how))
        by_task = [values[:, start:end] for start, end in pairwise(ends)]
        return [
            (Cell(size, kept, numbers), _scored(pairs, [of_task[start:end] for of_task in by_task]))
            for (size, kept), (start, end) in zip(places, pairwise(starts), strict=True)
        ]

    for cells in in_threads(scored, tuple(BITS)):
        yield from cells


def _scored(pairs: _Pairs, similarities: Sequence[Floats]) -> _Measured:
    """Returns the scores of k draws, given (k, n) similarities by task."""
    values, terms, ties = [], [], []
    for task, codes, draws in zip(pairs.tasks, pairs.codes, similarities, strict=True):
        metric, aggregation = task.statistic.metric, task.statistic.aggregation
        scores = task.pairs["gold"].to_numpy()
        of_draws = [ties_of(scores, draw, codes, aggregation) for draw in draws]
        if metric == "spearman":
            values.append([draw.score for draw in of_draws])
        else:
            values.append([correlate_task(scores, draw, codes, metric).aggregates[aggregation] for draw in draws])
        terms.append(np.mean([task_terms(scores, draw, codes, metric, aggregation) for draw in draws], axis=0))
        known = _TIES if metric == "spearman" else _TIES[:1]
        ties.append({name: float(np.mean([getattr(draw, name) for draw in of_draws])) for name in known})
    return _Measured(np.array(values).T, terms, ties)


def _compared(pairs: _Pairs, small: _Measured, full: _Measured, how: Compression) -> Iterator[dict[str, Any]]:
    """Yields the score of a smaller vector and its difference to the full ones, for each task and the average."""
    lost = [of_small - of_full for of_small, of_full in zip(small.terms, full.terms, strict=True)]
    for place, (task, sharing) in enumerate(zip(pairs.tasks, pairs.sharing, strict=True)):
        difference = _difference(small.values[:, place], full.values[0, place], lost[place], sharing, how)
        yield {"task": task.task} | difference | _in_points(small.ties[place])
    if len(lost) > 1:
        means, terms = small.values.mean(axis=1), np.concatenate(lost) / len(lost)
        difference = _difference(means, full.values[0].mean(), terms, pairs.joined, how)
        ties = {name: float(np.mean([of_task[name] for of_task in small.ties])) for name in small.ties[0]}
        yield {"task": AVERAGE} | difference | _in_points(ties)


def _in_points(ties: Mapping[str, float]) -> dict[str, float]:
    return {name: 100 * ties.get(name, float("nan")) for name in _TIES}


def _difference(values: Floats, full: float, terms: Floats, sharing: Sharing, how: Compression) -> dict[str, Any]:
    difference = float(values.mean() - full)
    numbers = {
        "score": 100 * float(values.mean()),
        "spread": 100 * float(values.std(ddof=1)) if len(values) > 1 else float("nan"),
        "difference": 100 * difference,
    }
    if how.intervals.interval is None:
        return numbers | {"low": float("nan"), "high": float("nan"), "verdict": ""}
    spread = variance(terms, sharing, how.intervals.interval)
    limits = plain_interval(difference, spread, how.intervals.level)
    verdict = verdict_on(-difference, spread, how.margin / 100, how.intervals.level)
    # The full vectors, and others that order all pairs alike, have no difference and no spread.
    low, high = (0.0, 0.0) if limits.reason == "no spread" and difference == 0 else limits[:2]
    return numbers | {"low": 100 * low, "high": 100 * high, "verdict": verdict}


def verdict_on(loss: float, spread: Variance, margin: float, level: float) -> str:
    """Returns whether a loss is significantly below a margin, like `stsbench check --margin`.

    No worse if the one-sided upper bound of the loss is below the margin, worse if the lower one is above it.
    """
    if np.isnan(loss) or np.isnan(spread.value):
        return UNDEFINED
    if spread.value <= 0:
        return NO_WORSE if loss == 0 else CANNOT_TELL
    if upper_bound(loss, spread, level) < margin:
        return NO_WORSE
    return WORSE if lower_bound(loss, spread, level) > margin else CANNOT_TELL


def folded_of(tasks: Sequence[ScoredTask]) -> NDArray[np.uint64]:
    """Returns the ids of the tasks' sentences by letters and digits."""
    return np.unique(np.concatenate([task.pairs[side] for task in tasks for side in FOLDED]))
