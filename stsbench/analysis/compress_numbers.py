"""The scores of smaller vectors: some dimensions of a model's vectors in each number format."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.scoring.subjects import ScoredTask
from stsbench.statistics.compression import (
    BITS,
    Kind,
    Numbers,
    principal_of,
    ranges_of,
    similarities_by_choice,
    stored,
)
from stsbench.statistics.correlations import correlate_task
from stsbench.statistics.estimate import Estimate, verdict
from stsbench.statistics.influence import task_terms
from stsbench.statistics.intervals import lower_bound, upper_bound
from stsbench.statistics.seeds import generator
from stsbench.statistics.threads import in_threads
from stsbench.statistics.ties import ties_of

Floats = NDArray[np.float64]

ALL, LEADING, RANDOM, PCA = "all", "leading", "random", "PCA"
"""The kept dimensions: all, the first, random ones, or the largest principal components."""

WITHIN = "within margin"

SMALLEST = 16
"""The smallest default number of dimensions."""

TIES = ("tied", "expected", "lowest", "highest")


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


class Scores(NamedTuple):
    """The scores of a smaller vector over k draws of its dimensions (one unless they are random).

    Attributes:
        values: (k, tasks) scores.
        terms: (n,) terms of the mean score over the draws, by task.
        ties: means of `TIES` over the draws, by task.
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
    halves = [width // 2**power for power in range(1, width.bit_length()) if width // 2**power > SMALLEST]
    return sorted({width, *(chosen or [*halves, min(SMALLEST, width)])}, reverse=True)


def kind_of(numbers: Numbers, similarity: Kind) -> Kind:
    """Returns how vectors in a number format are compared."""
    return "hamming" if numbers == "binary" else similarity


def scores_of(
    model: PairedVectors, sizes: Sequence[int], draws: int, seed: int, similarity: Kind
) -> dict[Cell, Scores]:
    """Returns the scores of every smaller vector, the largest first; sizes above the rank have no components.

    Args:
        model: the vectors.
        sizes: the numbers of dimensions, all of them first.
        draws: the number of draws of random dimensions.
        seed: the seed of the draws.
        similarity: `cosine` or `dot` for floats and int8; binary vectors use the Hamming distance.
    """
    # Alone, as busy cores slow down a decomposition in several threads.
    (principal,) = in_threads(principal_of, [model.calibration])
    width, rank = sizes[0], principal.directions.shape[1]
    orders = [generator(seed, "compress", str(draw)).permutation(width) for draw in range(draws)]
    places = {(width, ALL): [np.arange(width)]}
    places |= {(size, LEADING): [np.arange(size)] for size in sizes[1:]}
    places |= {(size, RANDOM): [order[:size] for order in orders] for size in sizes[1:]}
    scores = _scores(model, model.vectors, model.calibration, places, similarity)
    if components := {(size, PCA): [np.arange(size)] for size in sizes if size <= rank}:
        turned, calibration = principal.of(model.vectors), principal.of(model.calibration)
        scores |= _scores(model, turned, calibration, components, similarity)
    order = [
        Cell(size, kept, numbers) for size in sizes for kept in (ALL, LEADING, RANDOM, PCA) for numbers in BITS
    ]
    return {cell: scores[cell] for cell in order if cell in scores}


def _scores(
    model: PairedVectors,
    vectors: NDArray[np.floating[Any]],
    calibration: NDArray[np.floating[Any]],
    places: Mapping[tuple[int, str], Sequence[NDArray[np.int64]]],
    similarity: Kind,
) -> dict[Cell, Scores]:
    """Returns the scores of some choices of dimensions of (m, d) vectors in each number format."""
    every = [chosen for draws in places.values() for chosen in draws]
    choices = np.zeros((len(every), vectors.shape[1]), dtype=bool)
    for choice, chosen in zip(choices, every, strict=True):
        choice[chosen] = True
    left, right = np.concatenate(model.rows, axis=1)
    ends = [0, *accumulate(rows.shape[1] for rows in model.rows)]
    starts = [0, *accumulate(len(draws) for draws in places.values())]
    ranges = ranges_of(calibration)

    def in_format(numbers: Numbers) -> dict[Cell, Scores]:
        codes = stored(vectors, numbers, ranges)
        values = similarities_by_choice(codes, left, right, choices, kind_of(numbers, similarity))
        by_task = [values[:, start:end] for start, end in pairwise(ends)]
        return {
            Cell(size, kept, numbers): _scored(model.tasks, [of_task[start:end] for of_task in by_task])
            for (size, kept), (start, end) in zip(places, pairwise(starts), strict=True)
        }

    return {cell: scores for part in in_threads(in_format, tuple(BITS)) for cell, scores in part.items()}


def _scored(tasks: Sequence[ScoredTask], similarities: Sequence[Floats]) -> Scores:
    """Returns the scores of k draws, given (k, n) similarities by task."""
    values, terms, ties = [], [], []
    for task, draws in zip(tasks, similarities, strict=True):
        codes, gold = pd.factorize(task.pairs["subset"])[0], task.pairs["gold"].to_numpy()
        metric, aggregation = task.statistic.metric, task.statistic.aggregation
        of_draws = [ties_of(gold, draw, codes, aggregation) for draw in draws]
        if metric == "spearman":
            values.append([draw.score for draw in of_draws])
        else:
            values.append([correlate_task(gold, draw, codes, metric).aggregates[aggregation] for draw in draws])
        terms.append(np.mean([task_terms(gold, draw, codes, metric, aggregation) for draw in draws], axis=0))
        known = TIES if metric == "spearman" else TIES[:1]
        ties.append({name: float(np.mean([getattr(draw, name) for draw in of_draws])) for name in known})
    return Scores(np.array(values).T, terms, ties)


def verdict_on(difference: Estimate, margin: float, level: float) -> str:
    """Returns whether a loss is significantly below or above a margin, as `stsbench check --margin` does."""
    loss, spread = -difference.value, difference.variance
    if np.isnan(loss) or np.isnan(spread.value):
        return "undefined"
    if spread.value <= 0:
        return WITHIN if loss == 0 else "undecided"
    return verdict(-upper_bound(loss, spread, level), -lower_bound(loss, spread, level), margin)
