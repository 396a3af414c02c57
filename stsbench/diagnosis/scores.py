"""From vectors to the grid and beyond: the pairs of each task are compared, correlated, aggregated in all ways."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress
from stsbench.data.sentences import sentences_in
from stsbench.diagnosis.axes import (
    AGGREGATION,
    MAX_LENGTH,
    METRIC,
    NORMALIZE,
    POOLING,
    SIMILARITY,
    TEXT,
    Axis,
    Claim,
    average_axis,
    split_axis,
)
from stsbench.diagnosis.data import DiagnosisData, Encoded, TaskPairs
from stsbench.diagnosis.grid import Grid, Point, Reading, Scores, Way, along, ways_to_read, with_poolings
from stsbench.diagnosis.search import WEAK, Search
from stsbench.diagnosis.variations import Case
from stsbench.encoders.fitted import normalize
from stsbench.encoders.plan import EncodingCost, embed
from stsbench.encoders.protocol import Encoder, FloatMatrix, Identity
from stsbench.encoders.template import RULES
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.scoring.settings import TEXTS, Protocol
from stsbench.statistics.correlations import aggregate, correlate_rows
from stsbench.statistics.neighbours import SIMILARITIES, in_threads, pair_similarities

CROSSED = (SIMILARITY.name, NORMALIZE.name, METRIC.name, AGGREGATION.name)
"""The axes that are scored for every way of using the encoder."""

_MOST_NAMED = 4
"""Ways that were not tried and are named in a note."""


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

    def compare(self, vectors: FloatMatrix, rows: NDArray[np.int64]) -> Scores:
        """Returns similarities, shape (similarities, scalings, pairs); NaN if scaling makes no difference.

        Args:
            vectors: shape (sequences, dimensions).
            rows: the row of each side, shape (2, pairs).
        """
        used, places = np.unique(rows, return_inverse=True)
        kept, pairs = vectors[used], places.reshape(rows.shape)
        compared = np.full((len(self.similarities), len(self.scalings), rows.shape[1]), np.nan)
        for column, scaled in enumerate(self.scalings):
            # Scaling does not change the cosine, and the dot product of scaled vectors is the cosine.
            alike = {"cosine"} if self.scalings[0] else {"cosine", "dot"}
            kinds = [kind for kind in SIMILARITIES if column == 0 or kind not in alike]
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
            for column, (length, rows) in enumerate(encoded.rows.items()):
                of_pairs = rows[place].reshape(2, -1)
                changed = encoded.changed[length][place].reshape(2, -1).any(axis=0)
                if column == 0:
                    whole = scorer.compare(vectors, of_pairs)
                    view[number] = scorer.score(pairs, whole)
                elif changed.any():
                    compared = whole.copy()
                    compared[..., changed] = scorer.compare(vectors, of_pairs[:, changed])
                    view[number, column] = scorer.score(pairs, compared)

    for done, _ in enumerate(in_threads(fill, range(len(poolings))), 1):
        progress("scoring", done, len(poolings))
    dimensions = (TEXT.name, *names)
    return Grid(axes, {task: along(axes, (*dimensions, f"{task} split"), its) for task, its in scores.items()})


def _axes(data: DiagnosisData, encoded: Encoded, identity: Identity, protocol: Protocol) -> tuple[Axis, ...]:
    """Returns the choices, those that people get wrong most first."""
    texts = {pairs.text for pairs in data.sets} - {None, protocol.text}
    splits = {pairs.data.task: pairs.splits for pairs in data.sets if len(pairs.splits) > 1}
    lengths = list(encoded.rows)
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


@dataclass
class Further:
    """What was searched beyond the grid.

    Attributes:
        tried: the ways that were tried.
        untried: the ways that were left out, with why if it was not for the time.
        innocent: choices that cannot matter to this checkpoint, or cannot be tried here, with why.
        sentences: the number of sentences that were encoded.
        seconds: how long it took.
    """

    innocent: Sequence[str]
    tried: list[str] = field(default_factory=list)
    untried: list[str] = field(default_factory=list)
    sentences: int = 0
    seconds: float = 0.0

    @property
    def note(self) -> str:
        """What was tried, what it took, and what was left out."""
        count, ways = len(self.tried), "way" if len(self.tried) == 1 else "ways"
        note = f"Beyond the grid: {count} other {ways}, {self.sentences:,} sentences, {self.seconds:.1f} s."
        if self.untried:
            more = len(self.untried) - _MOST_NAMED
            left = [*self.untried[:_MOST_NAMED], *([f"{more} more"] if more > 0 else [])]
            note += f" Not tried for lack of time (--budget) or memory: {'; '.join(left)}."
        return note + (f" Not tried, as they cannot matter: {'; '.join(self.innocent)}." if self.innocent else "")


def search_further(
    case: Case,
    search: Search,
    data: DiagnosisData,
    encoded: Encoded,
    *,
    protocol: Protocol,
    seconds: float,
    use_cache: bool,
    progress: Progress,
) -> tuple[Search, Further]:
    """Compares the claim with other ways of using the encoder; returns the search with their points.

    No forward pass starts after `seconds`.
    """
    ways, innocent = ways_to_read(case)
    passes: dict[Reading, list[Way]] = defaultdict(list)
    for way in ways:
        passes[way.reading.forward_pass].append(way)
    tasks = sorted(data.own(protocol.text), key=lambda pairs: len(pairs.data.pairs))
    begun, further = time.perf_counter(), Further(innocent)
    for number, group in enumerate(passes.values(), 1):
        name = group[0].changes[0].label + (f" and {len(group) - 1} more" if len(group) > 1 else "")
        pooled = [each for way in group for each in with_poolings(case, way, encoded.vectors)]
        scores: list[dict[str, Scores]] = [{} for _ in pooled]
        try:
            encoder = group[0].reading.encoder(case.encoder)
            for pairs in tasks:
                _require_time(begun + seconds)
                cost = _score_ways(encoder, pairs, pooled, search.grid.axes, scores, use_cache=use_cache)
                further.sentences += cost.encoded
                if not _can_fit(pairs.data.task, scores, search.claim):
                    break
        except TimeoutError:
            further.untried.append(name)
        except UserError as error:
            further.untried.append(f"{name} ({str(error).rstrip('.')})")
        else:
            further.tried.append(name)
            points = (Point(way.changes, its, way.options) for way, its in zip(pooled, scores, strict=True))
            search = replace(search, grid=replace(search.grid, points=(*search.grid.points, *points)))
        progress("looking further", number, len(passes))
        causes = search.beyond.explanations
        if causes and causes[0].best.count <= 1 and search.beyond.chance(1) < WEAK:
            break
    further.seconds = time.perf_counter() - begun
    return search, further


def _require_time(end: float) -> None:
    if time.perf_counter() > end:
        raise TimeoutError


def _score_ways(
    encoder: Encoder,
    pairs: TaskPairs,
    ways: Sequence[Way],
    axes: tuple[Axis, ...],
    scores: Sequence[dict[str, Scores]],
    *,
    use_cache: bool,
) -> EncodingCost:
    """Adds the scores of a task in ways with the same forward pass; returns what encoding took."""
    texts, first = sentences_in(pairs.data), ways[0].reading
    for rule in first.rules:
        texts = list(map(RULES[rule], texts))
    poolings = [way.reading.use.pooling for way in ways] if isinstance(encoder, TransformerEncoder) else None
    made, scorer = embed(encoder, texts, poolings=poolings, normalize=False, use_cache=use_cache), Scorer.of(axes)
    for way, of_way in zip(ways, scores, strict=True):
        compared = scorer.compare(made.vectors[way.reading.use.pooling], made.rows.reshape(2, -1))
        of_way[pairs.data.task] = along(axes, CROSSED, scorer.score(pairs, compared)[..., 0])
    return made.cost


def _can_fit(task: str, scores: Sequence[Mapping[str, Scores]], claim: Claim) -> bool:
    """Returns whether a setting gives the claimed number of a task, or none is claimed."""
    values = np.concatenate([of_way[task].ravel() for of_way in scores])
    claimed = [value for value in claim.values if value.task == task]
    return all((np.abs(values - value.score) <= value.tolerance).any() for value in claimed)
