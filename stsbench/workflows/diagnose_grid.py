"""From vectors to the grid: every way of comparing two of them, held against every task's gold scores."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.encoders.protocol import FloatMatrix
from stsbench.evaluation.pairs import sides_of
from stsbench.evaluation.protocols import AGGREGATIONS, Protocol
from stsbench.evaluation.relatedness import score_relatedness
from stsbench.evaluation.sts import Bootstrap
from stsbench.foundation.progress import Progress
from stsbench.statistics import SIMILARITIES, Similarity, pair_similarities
from stsbench.verify.diagnose_grid import (
    AGGREGATION,
    COMPARISON,
    MAX_LENGTH,
    METRIC,
    METRICS,
    POOLING,
    SUPERVISED,
    TEXT,
    Axis,
    Grid,
    averages_of,
    split_of,
)
from stsbench.workflows.diagnose_data import DiagnosisData, TaskData, is_sts
from stsbench.workflows.diagnose_encoding import Cut, Encoded

Floats = NDArray[np.float64]

SCALED = ", scaled to unit length"
_RESCALED: tuple[Similarity, ...] = ("euclidean", "manhattan")
"""Similarities that scaling to unit length makes another; the dot product becomes the cosine."""
_REGRESSED = ("STS-B", "SICK-R")


class _Sides(NamedTuple):
    """Where a task's sentences stand among all texts: of its pairs' first sides, and of their second."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]


def build_grid(
    data: DiagnosisData,
    encoded: Encoded,
    *,
    pooling: str,
    protocol: Protocol,
    supervised: bool,
    progress: Progress,
) -> Grid:
    """Score every task by every choice.

    Args:
        data: the tasks.
        encoded: the vectors of `texts_of(data)`.
        pooling: the encoder's own.
        protocol: the default choices.
        supervised: whether to train SentEval's regressors on the default vectors too.
        progress: told how far it is.
    """
    unit = _are_unit(encoded.vectors[pooling])
    comparisons = _comparisons(unit=unit, supervised=supervised)
    found = {
        (one.data.task, one.text): np.full(
            (
                len(encoded.vectors),
                len(encoded.cuts),
                len(comparisons),
                len(METRICS),
                len(AGGREGATIONS) if one.scorer.has_subsets else 1,
                len(one.splits),
            ),
            np.nan,
        )
        for one in data.sets
    }
    sides = _sides(data.sets)
    for p, (name, vectors) in enumerate(encoded.vectors.items()):
        for one, where in zip(data.sets, sides, strict=True):
            _fill(found[one.data.task, one.text][p], one, where, vectors, encoded.cuts, unit=unit)
        progress("scoring", p + 1, len(encoded.vectors))
        if supervised and name == pooling:
            for one, where in zip(data.sets, sides, strict=True):
                if one.text in {None, protocol.text}:
                    rows = encoded.cuts[0].rows
                    _fill_supervised(
                        found[one.data.task, one.text][p],
                        one,
                        vectors[rows[where.left]],
                        vectors[rows[where.right]],
                    )
    axes = _axes(data, encoded, comparisons, pooling=pooling, protocol=protocol)
    return Grid(axes, {task: _as_axes(task, found, axes, data) for task in dict.fromkeys(t for t, _ in found)})


def texts_of(data: DiagnosisData) -> list[str]:
    """Return all sentences, in the order that `build_grid` expects their vectors."""
    return [text for one in data.sets for text in sides_of(one.data)]


def _fill(
    scores: Floats, one: TaskData, where: _Sides, vectors: FloatMatrix, cuts: Sequence[Cut], *, unit: bool
) -> None:
    """Fill in the (lengths, comparisons, metrics, aggregations, splits) scores of one task by one pooler."""
    whole, *others = cuts
    similarities = _compare(vectors, whole.rows[where.left], whole.rows[where.right], unit=unit)
    compared = len(similarities)
    scores[0, :compared] = one.scorer(similarities)
    for number, cut in enumerate(others, 1):
        changed = np.flatnonzero(cut.changed[where.left] | cut.changed[where.right])
        if not len(changed):
            scores[number, :compared] = scores[0, :compared]
            continue
        cut_there = similarities.copy()
        left, right = cut.rows[where.left[changed]], cut.rows[where.right[changed]]
        cut_there[:, changed] = _compare(vectors, left, right, unit=unit)
        scores[number, :compared] = one.scorer(cut_there)


def _fill_supervised(scores: Floats, one: TaskData, left: FloatMatrix, right: FloatMatrix) -> None:
    if one.data.task not in _REGRESSED:
        # SentEval regresses the two tasks that have training data, and compares the others by cosine.
        scores[0, -1] = scores[0, 0]
        return
    result = score_relatedness(one.data, left, right, bootstrap=Bootstrap(resamples=0))
    scores[0, -1, :, 0, one.splits.index("test")] = 100 * result.spearman, 100 * result.pearson


def _compare(vectors: FloatMatrix, left: NDArray[np.int64], right: NDArray[np.int64], *, unit: bool) -> Floats:
    """Return the (comparisons, pairs) similarities in the order of `_comparisons`."""
    found = list(pair_similarities(vectors, left, right, tuple(SIMILARITIES)).values())
    if not unit:
        used, places = np.unique(np.concatenate([left, right]), return_inverse=True)
        norms = np.linalg.norm(vectors[used], axis=1, keepdims=True)
        scaled = vectors[used] / np.where(norms > 0, norms, 1)
        found += pair_similarities(scaled, places[: len(left)], places[len(left) :], _RESCALED).values()
    return np.array(found)


def _comparisons(*, unit: bool, supervised: bool) -> tuple[str, ...]:
    names = [*SIMILARITIES, *([] if unit else [name + SCALED for name in _RESCALED])]
    return (*names, SUPERVISED) if supervised else tuple(names)


def _are_unit(vectors: FloatMatrix) -> bool:
    norms = np.linalg.norm(vectors, axis=1)
    return bool(np.allclose(norms[norms > 0], 1, atol=1e-3))


def _axes(
    data: DiagnosisData, encoded: Encoded, comparisons: tuple[str, ...], *, pooling: str, protocol: Protocol
) -> tuple[Axis, ...]:
    """Return the choices, those that people get wrong most first."""
    splits = {one.data.task: one for one in data.sets if len(one.splits) > 1}
    compared = Axis.of(COMPARISON, comparisons, protocol.similarity)
    costs = tuple(
        int(name.removesuffix(SCALED) != protocol.similarity) + name.endswith(SCALED) for name in comparisons
    )
    return (
        Axis.of(POOLING, tuple(encoded.vectors), pooling),
        Axis.of(AGGREGATION, AGGREGATIONS, protocol.aggregation),
        *(Axis.of(split_of(task), one.splits, one.default_split) for task, one in splits.items()),
        Axis.of(METRIC, METRICS, protocol.metric),
        Axis.of(TEXT, data.texts, protocol.text),
        Axis.of(MAX_LENGTH, tuple(str(cut.max_length) for cut in encoded.cuts), str(encoded.cuts[0].max_length)),
        compared._replace(costs=costs),
        averages_of(data.tasks, with_sample=is_sts(data.tasks)),
    )


def _as_axes(
    task: str, found: dict[tuple[str, str | None], Floats], axes: tuple[Axis, ...], data: DiagnosisData
) -> Floats:
    """Return a task's scores with one dimension per axis."""
    texts = [None] if (task, None) in found else list(data.texts)
    shape = found[task, texts[0] if None in texts else data.texts[0]].shape
    absent = np.full(shape, np.nan)
    together = np.stack([found.get((task, text), absent) for text in texts])
    # From (text, pooling, length, comparison, metric, aggregation, split) to the order of the axes.
    ordered = together.transpose(1, 5, 6, 4, 0, 2, 3)
    pooling, aggregation, split, *rest = ordered.shape
    names = [axis.name for axis in axes if axis.name.endswith(" split")]
    splits = [split if name == split_of(task) else 1 for name in names]
    return ordered.reshape(pooling, aggregation, *splits, *rest, 1)


def _sides(sets: Sequence[TaskData]) -> list[_Sides]:
    found, start = [], 0
    for one in sets:
        size = len(one.data.pairs)
        places = np.arange(start, start + 2 * size)
        found.append(_Sides(places[:size], places[size:]))
        start += 2 * size
    return found
