"""The search along the lazy axes: other ways of using the encoder, encoded only as far as the claim needs.

Ways with one change go first, then those with two. A claim of several numbers is held against the smallest task
first: where no setting of a way gives that number, its other tasks are not encoded. Where a way changes nothing
but the sentences, only those that the tokenizer reads otherwise are encoded. The search stops at the first way
whose changes explain the claim and few other numbers, after all ways with as many changes if they explain it at
all, and where its budget of seconds or sentences ends.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite

import numpy as np

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress
from stsbench.diagnosis.batches import compare_in, misread_vectors
from stsbench.diagnosis.choices import PADDING_SIDE, Change
from stsbench.diagnosis.encoding import Encoded
from stsbench.diagnosis.grid import SCORED_AT_POINTS, Point, Scores
from stsbench.diagnosis.misread import Misread
from stsbench.diagnosis.scores import DiagnosisData, TaskPairs, along, compare, comparisons_of
from stsbench.diagnosis.search import WEAK, Search
from stsbench.diagnosis.usage import (
    Way,
    WaysToTry,
    change_of_similarity,
    changes_of,
    encoder_of,
    poolings_of,
    sentences_of,
    ways_to_read,
)
from stsbench.encoders.plan import Embeddings, embed
from stsbench.encoders.protocol import Encoder, FloatMatrix
from stsbench.encoders.sides import SidedEncoder
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.scoring.settings import Protocol

DEFAULT_SECONDS = 60.0
"""How long the search goes on by default where the grid has no answer."""

MOST_CHANGES = 2
"""How many choices beyond the grid can be changed at once: there are hundreds of pairs."""


_MOST_NAMED = 4
"""Ways that were not tried and are named."""


@dataclass(frozen=True)
class Budget:
    """How far the search beyond the grid may go: choices that change at once, seconds, sentences to encode."""

    changes: int = 1
    seconds: float = DEFAULT_SECONDS
    sentences: int | None = None

    def __post_init__(self) -> None:
        """Refuse what is no budget."""
        if self.changes not in range(MOST_CHANGES + 1):
            raise UserError(f"{self.changes} changes beyond the grid: give 0 (none), 1 or {MOST_CHANGES}.")
        if not (isfinite(self.seconds) and self.seconds >= 0):
            raise UserError(f"a budget of {self.seconds:g} seconds: give 0 or more.")
        if self.sentences is not None and self.sentences < 0:
            raise UserError(f"a budget of {self.sentences} sentences: give 0 or more.")


@dataclass(frozen=True)
class Further:
    """What was searched beyond the grid.

    Attributes:
        tried: the ways that were tried, in words.
        untried: those that the budget left out, in words, and those that the checkpoint cannot do, with why.
        innocent: what cannot matter to this checkpoint, or cannot be done here, with why.
        sentences: how many went through the model.
        seconds: how long it took.
    """

    tried: tuple[str, ...]
    untried: tuple[str, ...]
    sentences: int
    seconds: float
    innocent: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """What was tried and what it took, and what the budget left out."""
        count = len(self.tried)
        ways = "one other way of reading the sentences was" if count == 1 else f"{count} other ways were"
        cost = f"Beyond the grid {ways} tried: {self.sentences:,} sentences, {self.seconds:.1f} s."
        left = f" Not tried: {'; '.join(self.untried)}." if self.untried else ""
        by_rule = (
            f" Not tried, as it cannot be the cause here: {'; '.join(self.innocent)}." if self.innocent else ""
        )
        return cost + left + by_rule


@dataclass
class _Spent:
    """What the search has cost so far, and what it may."""

    budget: Budget
    begun: float = field(default_factory=time.perf_counter)
    sentences: int = 0
    encoding: float = 0.0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.begun

    def allows(self, sentences: int) -> bool:
        """Whether so many sentences more are likely to be within the budget."""
        most = self.budget.sentences
        if most is not None and self.sentences + sentences > most:
            return False
        rate = self.encoding / self.sentences if self.sentences else 0.0
        return self.seconds + rate * sentences <= self.budget.seconds


def search_further(
    encoder: Encoder,
    base: Search,
    data: DiagnosisData,
    encoded: Encoded,
    *,
    protocol: Protocol,
    budget: Budget,
    likely: Sequence[str] = (),
    use_cache: bool,
    progress: Progress,
) -> tuple[Search, Further]:
    """Hold the claim against other ways of using the encoder, nearest first; return it with their points.

    `encoded` has the vectors of the grid in the order of `data.sentences`; `likely` templates are tried first.
    """
    tasks = _default_tasks(data, encoded, protocol)
    spent = _Spent(budget)
    trying = ways_to_read(encoder, [task.name for task in tasks], likely=likely, gap=base.default.distance)
    explorer = _Explorer(encoder, base, tasks, encoded, spent, use_cache, trying)
    ways = [way for way in trying.ways if way.count <= budget.changes]
    tried: list[str] = []
    untried: list[str] = []
    for number, way in enumerate(ways):
        if number and explorer.is_answered(ways[number - 1].count, all_of_them=ways[number - 1].count < way.count):
            break
        try:
            is_tried = explorer.try_way(way)
        except UserError as error:
            untried.append(f"{way} ({str(error).rstrip('.')})")
            continue
        (tried if is_tried else untried).append(str(way))
        progress("looking further", number + 1, len(ways))
    if len(untried) > _MOST_NAMED:
        untried = [*untried[:_MOST_NAMED], f"{len(untried) - _MOST_NAMED} more, for the budget"]
    uncut = isinstance(encoder, TransformerEncoder) and len(encoded.cuts) == 1
    innocent = (*trying.innocent, *(["a maximum length (none cuts a sentence elsewhere)"] if uncut else []))
    account = Further(tuple(tried), tuple(untried), spent.sentences, spent.seconds, innocent)
    return explorer.search, account


@dataclass(frozen=True)
class _Task:
    """A task in its default text and split, and the rows of its sentences in the vectors of the grid."""

    pairs: TaskPairs
    rows: np.ndarray

    @property
    def name(self) -> str:
        return self.pairs.data.task


def _default_tasks(data: DiagnosisData, encoded: Encoded, protocol: Protocol) -> list[_Task]:
    """Return the tasks that count, the smallest first."""
    tasks, end = [], 0
    for pairs in data.sets:
        table = pairs.data.pairs
        start, end = end, end + 2 * len(table)
        if pairs.text not in {None, protocol.text} or pairs.data.task not in data.tasks:
            continue
        chosen = np.ones(len(table), dtype=bool)
        if len(pairs.splits) > 1 and pairs.default_split != "all":
            chosen = (table["split"] == pairs.default_split).to_numpy()
        table = table[chosen].reset_index(drop=True)
        rows = encoded.cuts[0].rows[start:end].reshape(2, -1)[:, chosen].ravel()
        kept = replace(pairs, data=replace(pairs.data, pairs=table), splits=(pairs.default_split,))
        tasks.append(_Task(kept, rows))
    return sorted(tasks, key=lambda task: len(task.rows))


@dataclass(frozen=True)
class _Reading:
    """What one way gives: by a pooling, or a precision of the similarity; with the scores of the tasks so far."""

    pooling: str
    changes: tuple[Change, ...]
    precision: str = ""
    scores: dict[str, Scores] = field(default_factory=dict)


@dataclass
class _Explorer:
    """Tries ways, and keeps the points that they give; its tasks stand in order, the smallest first."""

    encoder: Encoder
    search: Search
    tasks: Sequence[_Task]
    encoded: Encoded
    spent: _Spent
    use_cache: bool
    trying: WaysToTry
    _sequences: dict[str, list[object]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take what the person's own vectors are compared by."""
        identity = self.encoder.identity
        self._comparisons = comparisons_of(self.encoded.vectors[identity.use.pooling], unit=identity.normalize)

    def is_answered(self, count: int, *, all_of_them: bool) -> bool:
        """Return whether the search may stop after ways with so many changes, or after all of them."""
        beyond = self.search.beyond
        explanations = beyond.explanations
        if not explanations or all_of_them:
            return bool(explanations)
        best = explanations[0].best
        return best.count <= max(count, 1) and beyond.chance(best.count) < WEAK

    def try_way(self, way: Way) -> bool:
        """Try a way; return whether the budget allowed it."""
        varied = encoder_of(self.encoder, way)
        poolings = poolings_of(self.encoder, varied, way, self.encoded.vectors)
        changes = changes_of(self.encoder, varied, way, poolings, self.trying)
        points = [_Reading(pooling, of_pooling) for pooling, of_pooling in changes.items()]
        if rounded := change_of_similarity(self.encoder, varied, way, self.trying):
            points.append(_Reading(varied.identity.use.pooling, (rounded,), rounded.value))
        reads_otherwise = False
        for task in self.tasks if points else ():
            texts = sentences_of(task.pairs.data, way, by_template=varied.identity.use.own_template is not None)
            changed = (
                self._changed(task, varied, texts) if way.is_of_sentences else np.ones(len(texts), dtype=bool)
            )
            reads_otherwise |= bool(changed.any())
            needed = [texts[place] for place in np.flatnonzero(changed).tolist()]
            if not self.spent.allows(len(set(needed))):
                return False
            wanted = list(dict.fromkeys(point.pooling for point in points))
            vectors, rows = (
                self._vectors(varied, needed, wanted, changed, task)
                if way[PADDING_SIDE] is None
                else self._misread(varied, way[PADDING_SIDE], texts, task)
            )
            for point in points:
                pairs = rows.reshape(2, -1)
                similarities = (
                    compare_in(point.precision, vectors[point.pooling], pairs, self._comparisons)
                    if point.precision
                    else compare(vectors[point.pooling], pairs, self._comparisons)
                )
                scored = task.pairs.scorer(similarities)[..., 0]
                point.scores[task.name] = along(self.search.grid.axes, SCORED_AT_POINTS, scored)
            if not self._can_fit(task.name, points):
                break
        if reads_otherwise:
            made = (Point(point.changes, point.scores, point.pooling) for point in points)
            self.search = replace(self.search, grid=self.search.grid.with_points(made))
        return True

    def _misread(
        self, varied: Encoder, misread: Misread, texts: Sequence[str], task: _Task
    ) -> tuple[Mapping[str, FloatMatrix], np.ndarray]:
        """Return the vectors of all sentences of a task in batches whose padding is mistaken, and their rows."""
        assert isinstance(varied, TransformerEncoder), "no other has batches to pad"
        begun = time.perf_counter()
        vectors = misread_vectors(varied, task.pairs.data.pairs, texts, misread)
        self.spent.sentences += len(texts)
        self.spent.encoding += time.perf_counter() - begun
        return {varied.use.pooling: vectors}, np.arange(len(texts))

    def _changed(self, task: _Task, varied: Encoder, texts: Sequence[str]) -> np.ndarray:
        """Return which sentences the model reads otherwise than in the person's own setting."""
        if task.name not in self._sequences:
            own = sentences_of(task.pairs.data, Way(), by_template=True)
            self._sequences[task.name] = list(self.encoder.tokenize(own).sequences)
        pairs = zip(self._sequences[task.name], varied.tokenize(texts).sequences, strict=True)
        return np.array([before != after for before, after in pairs], dtype=bool)

    def _vectors(
        self, varied: Encoder, needed: Sequence[str], poolings: Sequence[str], changed: np.ndarray, task: _Task
    ) -> tuple[Mapping[str, FloatMatrix], np.ndarray]:
        """Return for each pooling the vectors that a task needs, and the row of each of its sentences."""
        begun = time.perf_counter()
        part = None
        if needed:
            part = self._embedded(varied, needed, poolings)
            self.spent.sentences += part.cost.encoded
            self.spent.encoding += (time.perf_counter() - begun) if part.cost.encoded else 0.0
        if part is not None and changed.all():
            return part.vectors, part.rows
        known, places = np.unique(task.rows, return_inverse=True)
        vectors = {name: self.encoded.vectors[name][known] for name in poolings}
        rows = places.copy()
        if part is not None:
            rows[changed] = len(known) + part.rows
            vectors = {name: np.concatenate([vectors[name], part.vectors[name]]) for name in poolings}
        return vectors, rows

    def _embedded(self, varied: Encoder, texts: Sequence[str], poolings: Sequence[str]) -> Embeddings:
        """Return the vectors of texts; where each side has a prompt, the first half of them is the first side."""
        embedded = partial(embed, normalize=False, use_cache=self.use_cache)
        if not isinstance(varied, SidedEncoder):
            asked = list(poolings) if isinstance(varied, TransformerEncoder) else None
            return embedded(varied, texts, poolings=asked)
        half = len(texts) // 2
        first, second = (
            embedded(side, part, poolings=list(poolings))
            for side, part in zip(varied.sides, (texts[:half], texts[half:]), strict=True)
        )
        return replace(
            first,
            rows=np.concatenate([first.rows, len(first.vectors[poolings[0]]) + second.rows]),
            vectors={name: np.concatenate([first.vectors[name], second.vectors[name]]) for name in poolings},
            cost=replace(first.cost, encoded=first.cost.encoded + second.cost.encoded),
        )

    def _can_fit(self, task: str, points: Sequence[_Reading]) -> bool:
        """Return whether any setting of a way gives a claimed number of a task, if one is claimed."""
        claimed = next((value for value in self.search.claim.values if value.task == task), None)
        if claimed is None:
            return True
        values = np.concatenate([point.scores[task].ravel() for point in points])
        return bool((np.abs(values - claimed.score) <= claimed.tolerance).any())
