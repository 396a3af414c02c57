"""Every way of comparing two vectors: the similarities, as the model gives the vectors and scaled otherwise."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.base.progress import Progress
from stsbench.diagnosis.data import DiagnosisData, TaskPairs
from stsbench.diagnosis.encoding import Cut, Encoded
from stsbench.diagnosis.grid import (
    AGGREGATION,
    COMPARISON,
    MAX_LENGTH,
    METRIC,
    METRICS,
    POOLING,
    REGRESSED,
    SCALED,
    TEXT,
    UNSCALED,
    Axis,
    Grid,
    averages_of,
    split_of,
)
from stsbench.encoders.postprocess import normalize
from stsbench.encoders.protocol import FloatMatrix, Identity
from stsbench.scoring.protocols import AGGREGATIONS, Protocol
from stsbench.scoring.relatedness import score_relatedness
from stsbench.scoring.sts import Bootstrap
from stsbench.scoring.tasks import SUPERVISED, sentences_of
from stsbench.statistics.similarity import SIMILARITIES, Similarity, pair_similarities

Floats = NDArray[np.float64]


class Comparison(NamedTuple):
    """A way of comparing two vectors: the similarity, whether they are scaled to unit length, its name."""

    similarity: Similarity
    scale: bool
    name: str


def comparisons_of(vectors: FloatMatrix, *, unit: bool) -> tuple[Comparison, ...]:
    """Return every similarity of the vectors as the model gives them, then what differs if scaled otherwise.

    Args:
        vectors: of the person's own pooling, as they leave the network.
        unit: whether the model scales them to unit length.
    """
    found = [Comparison(kind, unit, kind) for kind in SIMILARITIES]
    norms = np.linalg.norm(vectors, axis=1)
    if unit or not np.allclose(norms[norms > 0], 1, atol=1e-3):
        # Scaling leaves the cosine as it is, and the dot product of scaled vectors is the cosine.
        others: tuple[Similarity, ...] = ("dot", "euclidean", "manhattan") if unit else ("euclidean", "manhattan")
        found += [Comparison(kind, not unit, kind + (UNSCALED if unit else SCALED)) for kind in others]
    return tuple(found)


def compare(
    vectors: FloatMatrix,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    comparisons: Sequence[Comparison],
) -> Floats:
    """Return the (comparisons, pairs) similarities of rows of the vectors as they leave the network."""
    used, places = np.unique(np.concatenate([left, right]), return_inverse=True)
    found: dict[Comparison, Floats] = {}
    for scale in (False, True):
        wanted = [one for one in comparisons if one.scale == scale]
        if wanted:
            own = normalize(vectors[used]) if scale else vectors[used]
            kinds = tuple(one.similarity for one in wanted)
            values = pair_similarities(own, places[: len(left)], places[len(left) :], kinds)
            found |= {one: values[one.similarity] for one in wanted}
    return np.array([found[one] for one in comparisons])


class _Sides(NamedTuple):
    """Where a task's sentences stand among all texts: of its pairs' first sides, and of their second."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]


def build_grid(
    data: DiagnosisData,
    encoded: Encoded,
    *,
    own: Identity,
    protocol: Protocol,
    supervised: bool,
    progress: Progress,
) -> Grid:
    """Score every task by every choice.

    Args:
        data: the tasks.
        encoded: the vectors of `texts_of(data)`.
        own: the encoder's pooling and scaling, the default.
        protocol: the default choices.
        supervised: whether to train SentEval's regressors on the default vectors too.
        progress: told how far it is.
    """
    comparisons = comparisons_of(encoded.vectors[own.pooling], unit=own.normalize)
    names = (*(one.name for one in comparisons), *([SUPERVISED] if supervised else []))
    found = {
        (one.data.task, one.text): np.full(
            (
                len(encoded.vectors),
                len(encoded.cuts),
                len(names),
                len(METRICS),
                len(AGGREGATIONS) if one.scorer.has_subsets else 1,
                len(one.splits),
            ),
            np.nan,
        )
        for one in data.sets
    }
    sides = _sides(data.sets)
    for p, vectors in enumerate(encoded.vectors.values()):
        for one, where in zip(data.sets, sides, strict=True):
            _fill(
                found[one.data.task, one.text][p], one, where, vectors, cuts=encoded.cuts, comparisons=comparisons
            )
        progress("scoring", p + 1, len(encoded.vectors))
    if supervised:
        vectors, rows = encoded.vectors[own.pooling], encoded.cuts[0].rows
        p = list(encoded.vectors).index(own.pooling)
        for one, where in zip(data.sets, sides, strict=True):
            if one.text in {None, protocol.text}:
                left, right = vectors[rows[where.left]], vectors[rows[where.right]]
                _fill_supervised(found[one.data.task, one.text][p], one, left, right)
    axes = _axes(data, encoded, names, pooling=own.pooling, protocol=protocol)
    return Grid(axes, {task: _as_axes(task, found, axes, data) for task in dict.fromkeys(t for t, _ in found)})


def texts_of(data: DiagnosisData) -> list[str]:
    """Return all sentences, in the order that `build_grid` expects their vectors."""
    return [text for one in data.sets for text in sentences_of(one.data)]


def _fill(
    scores: Floats,
    one: TaskPairs,
    where: _Sides,
    vectors: FloatMatrix,
    *,
    cuts: Sequence[Cut],
    comparisons: Sequence[Comparison],
) -> None:
    """Fill in the (lengths, comparisons, metrics, aggregations, splits) scores of one task by one pooler."""
    whole, *others = cuts
    similarities = compare(vectors, whole.rows[where.left], whole.rows[where.right], comparisons)
    compared = len(similarities)
    scores[0, :compared] = one.scorer(similarities)
    for number, cut in enumerate(others, 1):
        changed = np.flatnonzero(cut.changed[where.left] | cut.changed[where.right])
        if not len(changed):
            scores[number, :compared] = scores[0, :compared]
            continue
        cut_there = similarities.copy()
        left, right = cut.rows[where.left[changed]], cut.rows[where.right[changed]]
        cut_there[:, changed] = compare(vectors, left, right, comparisons)
        scores[number, :compared] = one.scorer(cut_there)


def _fill_supervised(scores: Floats, one: TaskPairs, left: FloatMatrix, right: FloatMatrix) -> None:
    if one.data.task not in REGRESSED:
        # SentEval regresses the two tasks that have training data, and compares the others by cosine.
        scores[0, -1] = scores[0, 0]
        return
    none, test = Bootstrap(resamples=0), one.splits.index("test")
    for m, metric in enumerate(METRICS):
        # As `stsbench run` does, training stops by the metric that is reported.
        result = score_relatedness(one.data, left, right, stop_by=metric, bootstrap=none)
        scores[0, -1, m, 0, test] = 100 * getattr(result, metric)


def _axes(
    data: DiagnosisData, encoded: Encoded, names: tuple[str, ...], *, pooling: str, protocol: Protocol
) -> tuple[Axis, ...]:
    """Return the choices, those that people get wrong most first."""
    splits = {one.data.task: one for one in data.sets if len(one.splits) > 1}
    compared = Axis.of(COMPARISON, names, protocol.similarity)
    # The similarity and the scaling behind the comma are two choices.
    costs = tuple(int(name.partition(", ")[0] != protocol.similarity) + (", " in name) for name in names)
    return (
        Axis.of(POOLING, tuple(encoded.vectors), pooling),
        Axis.of(AGGREGATION, AGGREGATIONS, protocol.aggregation),
        *(Axis.of(split_of(task), one.splits, one.default_split) for task, one in splits.items()),
        Axis.of(METRIC, METRICS, protocol.metric),
        Axis.of(TEXT, data.texts, protocol.text),
        Axis.of(MAX_LENGTH, tuple(str(cut.max_length) for cut in encoded.cuts), str(encoded.cuts[0].max_length)),
        compared._replace(costs=costs),
        averages_of(data.tasks, with_sample=data.has_sample),
    )


def _as_axes(
    task: str,
    found: dict[tuple[str, str | None], Floats],
    axes: tuple[Axis, ...],
    data: DiagnosisData,
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


def _sides(sets: Sequence[TaskPairs]) -> list[_Sides]:
    found, start = [], 0
    for one in sets:
        size = len(one.data.pairs)
        places = np.arange(start, start + 2 * size)
        found.append(_Sides(places[:size], places[size:]))
        start += 2 * size
    return found
