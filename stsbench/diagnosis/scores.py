"""From vectors to the grid: the pairs of each task are compared, correlated and aggregated in all ways."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stsbench.base.progress import Progress
from stsbench.diagnosis.axes import (
    AGGREGATION,
    MAX_LENGTH,
    METRIC,
    NORMALIZE,
    POOLING,
    SIMILARITY,
    TEXT,
    Axis,
    average_axis,
    split_axis,
)
from stsbench.diagnosis.data import DiagnosisData, TaskPairs
from stsbench.diagnosis.encoding import Encoded
from stsbench.diagnosis.grid import Grid, Scores, along
from stsbench.encoders.postprocess import normalize
from stsbench.encoders.protocol import FloatMatrix, Identity
from stsbench.encoders.use import PRECISIONS
from stsbench.scoring.settings import TEXTS, Protocol
from stsbench.statistics.correlations import aggregate, correlate_rows
from stsbench.statistics.similarity import SIMILARITIES, pair_similarities
from stsbench.statistics.threads import in_threads

CROSSED = (SIMILARITY.name, NORMALIZE.name, METRIC.name, AGGREGATION.name)
"""The axes that are scored for every way of using the encoder."""


@dataclass(frozen=True)
class Scorer:
    """Compares and scores pairs in all ways, in the order of the axes' values."""

    similarities: tuple[str, ...]
    scalings: tuple[bool, ...]
    metrics: tuple[str, ...]
    aggregations: tuple[str, ...]

    @classmethod
    def of(cls, axes: tuple[Axis, ...]) -> "Scorer":
        """Returns the scorer of a grid."""
        values = {axis.name: axis.values for axis in axes}
        return cls(*(values[name] for name in CROSSED))

    def compare(self, vectors: FloatMatrix, rows: NDArray[np.int64], precision: str = "") -> Scores:
        """Returns similarities, shape (similarities, scalings, pairs); NaN if scaling makes no difference.

        Args:
            vectors: shape (sequences, dimensions).
            rows: the row of each side, shape (2, pairs).
            precision: `bf16` or `fp16` to round vectors and compute similarities in it, as sentence-transformers
                does with tensors; empty for float64.
        """
        used, places = np.unique(rows, return_inverse=True)
        kept, pairs = vectors[used], places.reshape(rows.shape)
        compared = np.full((len(self.similarities), len(self.scalings), rows.shape[1]), np.nan)
        for column, scaled in enumerate(self.scalings):
            # Scaling does not change the cosine, and the dot product of scaled vectors is the cosine.
            alike = {"cosine"} if self.scalings[0] else {"cosine", "dot"}
            kinds = [kind for kind in SIMILARITIES if column == 0 or kind not in alike]
            if precision:
                values = {kind: _rounded(kept, pairs, kind, precision, scaled=scaled) for kind in kinds}
            else:
                values = dict(pair_similarities(normalize(kept) if scaled else kept, pairs[0], pairs[1], kinds))
            for kind in kinds:
                compared[self.similarities.index(kind), column] = values[kind]
        return compared

    def score(self, pairs: TaskPairs, compared: Scores) -> Scores:
        """Returns scores x 100, shape (similarities, scalings, metrics, aggregations, splits).

        Without subsets there is one aggregation. `compared` has the shape (similarities, scalings, pairs).
        """
        gold, subset = (np.asarray(pairs.data.pairs[name]) for name in ("gold", "subset"))
        usable = ~np.isnan(compared).all(axis=2)
        samples = compared[usable]
        aggregations = self.aggregations if pairs.has_subsets else ("all",)
        scores = np.full((*usable.shape, len(self.metrics), len(aggregations), len(pairs.splits)), np.nan)
        for place, split in enumerate(pairs.splits):
            rows = pairs.rows(split)
            names = dict.fromkeys(subset[rows]) if pairs.has_subsets else ()
            groups = [rows[subset[rows] == name] for name in names]
            values = np.array([correlate_rows(gold[group], samples[:, group]) for group in (*groups, rows)])
            for number, metric in enumerate(self.metrics):
                of_metric = values[:, ("spearman", "pearson").index(metric)]
                aggregates: Mapping[Any, Scores] = {"all": of_metric[-1]}
                if groups:
                    aggregates = aggregate(of_metric[:-1].T, of_metric[-1], [len(group) for group in groups])
                for column, name in enumerate(aggregations):
                    scores[usable, number, column, place] = 100 * aggregates[name]
        return scores


def _rounded(vectors: FloatMatrix, rows: NDArray[np.int64], kind: str, precision: str, *, scaled: bool) -> Scores:
    """Returns similarities of pairs, with vectors, scaling, products and differences in a precision."""
    import torch

    rounded = torch.from_numpy(vectors).to(getattr(torch, PRECISIONS[precision]))
    if scaled or kind == "cosine":
        rounded = torch.nn.functional.normalize(rounded, dim=1)
    first, second = rounded[torch.from_numpy(rows)]
    if kind == "euclidean":
        similarities = -torch.sqrt(torch.sum((first - second) ** 2, dim=-1))
    elif kind == "manhattan":
        similarities = -torch.sum(torch.abs(first - second), dim=-1)
    else:
        similarities = (first * second).sum(dim=-1)
    return similarities.double().numpy()


def build_grid(
    data: DiagnosisData, encoded: Encoded, *, identity: Identity, protocol: Protocol, progress: Progress
) -> Grid:
    """Scores all tasks in all ways."""
    axes = _axes(data, encoded, identity, protocol)
    values, scorer = {axis.name: axis.values for axis in axes}, Scorer.of(axes)
    texts, poolings = values[TEXT.name], values[POOLING.name]
    names = (POOLING.name, MAX_LENGTH.name, *CROSSED)
    scores: dict[str, Scores] = {}
    views: list[tuple[TaskPairs, slice, Scores]] = []
    for pairs, place in zip(data.sets, data.places(), strict=True):
        sizes = [1 if name == AGGREGATION.name and not pairs.has_subsets else len(values[name]) for name in names]
        shape = (len(texts) if pairs.text else 1, *sizes, len(pairs.splits))
        of_task = scores.setdefault(pairs.data.task, np.full(shape, np.nan))
        views.append((pairs, place, of_task[texts.index(pairs.text) if pairs.text else 0]))

    def fill(number: int) -> None:
        vectors = encoded.vectors[poolings[number]]
        for pairs, place, view in views:
            whole = scorer.compare(vectors, encoded.cuts[0].rows[place].reshape(2, -1))
            view[number, 0] = scorer.score(pairs, whole)
            for length, cut in enumerate(encoded.cuts[1:], 1):
                changed = cut.changed[place].reshape(2, -1).any(axis=0)
                view[number, length] = view[number, 0]
                if changed.any():
                    compared = whole.copy()
                    compared[..., changed] = scorer.compare(vectors, cut.rows[place].reshape(2, -1)[:, changed])
                    view[number, length] = scorer.score(pairs, compared)

    for done, _ in enumerate(in_threads(fill, range(len(poolings))), 1):
        progress("scoring", done, len(poolings))
    dimensions = (TEXT.name, *names)
    return Grid(axes, {task: along(axes, (*dimensions, f"{task} split"), its) for task, its in scores.items()})


def _axes(data: DiagnosisData, encoded: Encoded, identity: Identity, protocol: Protocol) -> tuple[Axis, ...]:
    """Returns the choices, those that people get wrong most first."""
    texts = {pairs.text for pairs in data.sets} - {None, protocol.text}
    splits = {pairs.data.task: pairs.splits for pairs in data.sets if len(pairs.splits) > 1}
    lengths = [cut.max_length for cut in encoded.cuts]
    unit = identity.normalize
    norms = np.linalg.norm(encoded.vectors[identity.use.pooling], axis=1)
    scaling_matters = unit or not np.allclose(norms[norms > 0], 1, atol=1e-3)
    return (
        POOLING.over(encoded.vectors, identity.use.pooling),
        AGGREGATION.over(AGGREGATION.values, protocol.aggregation),
        *(split_axis(task, values, values[0]) for task, values in splits.items()),
        METRIC.over(METRIC.values, protocol.metric),
        TEXT.over([text for text in TEXTS if text in texts], protocol.text),
        MAX_LENGTH.over(lengths, lengths[0], encoded.limits),
        SIMILARITY.over(SIMILARITIES, protocol.similarity),
        NORMALIZE.over([not unit] if scaling_matters else [], unit),
        average_axis(data.tasks),
    )
