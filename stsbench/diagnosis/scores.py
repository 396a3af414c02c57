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
    average_axis,
    split_axis,
)
from stsbench.diagnosis.data import DiagnosisData, Encoded, TaskPairs
from stsbench.diagnosis.grid import Grid, Point, Reading, Scores, Way, along, ways_to_read, with_poolings
from stsbench.diagnosis.search import WEAK, Search
from stsbench.diagnosis.variations import Case
from stsbench.encoders.fitted import normalize
from stsbench.encoders.plan import embed
from stsbench.encoders.protocol import FloatMatrix, Identity
from stsbench.encoders.template import RULES
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.scoring.settings import TEXTS, Protocol
from stsbench.statistics.correlations import aggregate, correlate_rows
from stsbench.statistics.neighbours import SIMILARITIES, in_threads, pair_similarities

CROSSED = (SIMILARITY.name, NORMALIZE.name, METRIC.name, AGGREGATION.name)
"""The axes that are scored for every way of using the encoder."""

_MOST_NAMED = 4
"""Ways that were not tried and are named in a note."""

_Vectors = tuple[Mapping[str, FloatMatrix], NDArray[np.int64]]
"""The vectors by pooling, and the row of each sentence in them."""


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


@dataclass(frozen=True)
class Further:
    """What was searched beyond the grid.

    Attributes:
        tried: the ways that were tried.
        untried: the ways that were left out, with why if it was not for the time.
        innocent: choices that cannot matter to this checkpoint, or cannot be tried here, with why.
        sentences: the number of sentences that were encoded.
        seconds: how long it took.
    """

    tried: tuple[str, ...]
    untried: tuple[str, ...]
    innocent: tuple[str, ...]
    sentences: int
    seconds: float

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
    base: Search,
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
    counted = (each for each in data.sets if each.text in {None, protocol.text} and each.data.task in data.tasks)
    tasks = sorted((each.default for each in counted), key=lambda pairs: len(pairs.data.pairs))
    explorer = _Explorer(case, base, tasks, encoded, budget=seconds, use_cache=use_cache)
    tried: list[str] = []
    untried: list[str] = []
    for number, group in enumerate(passes.values(), 1):
        name = group[0].changes[0].label + (f" and {len(group) - 1} more" if len(group) > 1 else "")
        try:
            (tried if explorer.try_pass(group) else untried).append(name)
        except UserError as error:
            untried.append(f"{name} ({str(error).rstrip('.')})")
        progress("looking further", number, len(passes))
        causes = explorer.search.beyond.explanations
        if causes and causes[0].best.count <= 1 and explorer.search.beyond.chance(1) < WEAK:
            break
    taken = time.perf_counter() - explorer.begun
    return explorer.search, Further(tuple(tried), tuple(untried), innocent, explorer.sentences, taken)


def _sentences(pairs: TaskPairs, reading: Reading) -> list[str]:
    """Returns the sentences as a reading gives them to its encoder; a template applies its rules itself."""
    texts = sentences_in(pairs.data)
    for rule in reading.rules if reading.use.own_template is None else ():
        texts = list(map(RULES[rule], texts))
    return texts


@dataclass
class _Explorer:
    """Tries ways, and keeps the points that they give."""

    case: Case
    search: Search
    tasks: Sequence[TaskPairs]
    encoded: Encoded
    budget: float
    use_cache: bool
    sentences: int = 0
    begun: float = field(default_factory=time.perf_counter)

    def try_pass(self, group: Sequence[Way]) -> bool:
        """Tries ways with the same forward pass; returns whether the time allowed it."""
        first = group[0].reading
        encoder, scorer = first.encoder(self.case.encoder), Scorer.of(self.search.grid.axes)
        ways = [pooled for way in group for pooled in with_poolings(self.case, way, self.encoded.vectors)]
        poolings = list(dict.fromkeys(way.reading.use.pooling for way in ways))
        names = poolings if isinstance(encoder, TransformerEncoder) else None
        scores: list[dict[str, Scores]] = [{} for _ in ways]
        for pairs in self.tasks:
            if time.perf_counter() - self.begun > self.budget:
                return False
            texts = _sentences(pairs, first)
            made = embed(encoder, texts, poolings=names, normalize=False, use_cache=self.use_cache)
            self.sentences += made.cost.encoded
            for way, of_way in zip(ways, scores, strict=True):
                compared = scorer.compare(made.vectors[way.reading.use.pooling], made.rows.reshape(2, -1))
                scored = scorer.score(pairs, compared)[..., 0]
                of_way[pairs.data.task] = along(self.search.grid.axes, CROSSED, scored)
            if not self._can_fit(pairs.data.task, scores):
                break
        points = (Point(way.changes, its, way.options) for way, its in zip(ways, scores, strict=True))
        self.search = replace(self.search, grid=self.search.grid.with_points(points))
        return True

    def _can_fit(self, task: str, scores: Sequence[Mapping[str, Scores]]) -> bool:
        """Returns whether a setting gives the claimed number of a task, or none is claimed."""
        claimed = next((value for value in self.search.claim.values if value.task == task), None)
        if claimed is None:
            return True
        values = np.concatenate([of_way[task].ravel() for of_way in scores])
        return bool((np.abs(values - claimed.score) <= claimed.tolerance).any())
