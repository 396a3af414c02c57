"""The search beyond today's grid: variations of the encoder, encoded only as far as the claim needs.

Passes with one change go first, then those with two. A claim of several numbers is held against the smallest task
first: where no setting of a pass gives that number, its other tasks are not encoded. Where a pass changes nothing
but the sentences, only those that the tokenizer reads otherwise are encoded. The search stops at the first pass
whose changes explain the claim and few other numbers, after all passes with as many changes if they explain it at
all, and where its budget of seconds or sentences ends.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite

import numpy as np

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress
from stsbench.diagnosis.encoding import Encoded
from stsbench.diagnosis.grid import (
    AGGREGATION,
    COMPARISON,
    METRIC,
    METRICS,
    Axis,
    Comparing,
    Grid,
    Scores,
    axis_of_means,
)
from stsbench.diagnosis.scores import DiagnosisData, Scorer, TaskPairs, compare, comparisons_of
from stsbench.diagnosis.search import WEAK, Search
from stsbench.diagnosis.variations import (
    VARIATION,
    Pass,
    Variation,
    encoder_of,
    passes,
    poolings_of_pass,
    sentences_of_pass,
    variations,
)
from stsbench.encoders.plan import embed
from stsbench.encoders.protocol import Encoder, FloatMatrix
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.scoring.protocols import AGGREGATIONS, Protocol

DEFAULT_SECONDS = 60.0
"""How long the search goes on by default where today's grid has no answer."""

MOST_CHANGES = 2
"""How many choices beyond the grid can be changed at once: there are hundreds of pairs."""


@dataclass(frozen=True)
class Budget:
    """How far the search beyond today's grid may go.

    Attributes:
        changes: how many choices beyond the grid may change at once; 0 for no such search.
        seconds: for encoding and scoring.
        sentences: that go through the model; None for any number.
    """

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
    """What was searched beyond today's grid.

    Attributes:
        search: the claim held against the variations that were tried.
        tried: the passes that were made, in words.
        untried: those that the budget left out, in words, and those that the checkpoint cannot do, with why.
        sentences: how many went through the model.
        seconds: how long it took.
    """

    search: Search
    tried: tuple[str, ...]
    untried: tuple[str, ...]
    sentences: int
    seconds: float

    @property
    def note(self) -> str:
        """What was tried and what it took, and what the budget left out."""
        count = len(self.tried)
        ways = "one other way of reading the sentences was" if count == 1 else f"{count} other ways were"
        cost = f"Beyond the grid {ways} tried: {self.sentences:,} sentences, {self.seconds:.1f} s."
        return cost + (f" Not tried: {'; '.join(self.untried)}." if self.untried else "")


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
) -> Further:
    """Hold the claim against variations of the encoder, nearest first.

    Args:
        encoder: the person's own.
        base: the claim held against today's grid.
        data: the tasks; their default text and split are read.
        encoded: the vectors of today's grid, in the order of `data.sentences`.
        protocol: the default choices.
        budget: how far to go.
        likely: templates to try before others.
        use_cache: whether to read and write the embedding cache.
        progress: told how many passes are done.
    """
    tasks = _default_tasks(data, encoded, protocol)
    spent = _Spent(budget)
    explorer = _Explorer(encoder, base, tasks, encoded, protocol, spent, use_cache)
    ways = [
        way
        for way in passes(encoder, [task.name for task in tasks], likely=likely, gap=base.default.distance)
        if way.count <= budget.changes
    ]
    tried: list[str] = []
    untried: list[str] = []
    for number, way in enumerate(ways):
        if number and explorer.is_answered(ways[number - 1].count, all_of_them=ways[number - 1].count < way.count):
            break
        try:
            made = explorer.make(way)
        except UserError as error:
            untried.append(f"{way} ({str(error).rstrip('.')})")
            continue
        (tried if made else untried).append(str(way))
        progress("looking further", number + 1, len(ways))
    return Further(explorer.search, tuple(tried), _shortened(untried), spent.sentences, spent.seconds)


def _shortened(names: Sequence[str], most: int = 4) -> tuple[str, ...]:
    return (*names[:most], f"{len(names) - most} more, for the budget") if len(names) > most else tuple(names)


@dataclass(frozen=True)
class _Task:
    """A task in its default text and split.

    Attributes:
        pairs: its pairs, whose sentences stand in order: all first sides, then all second sides.
        scorer: its gold scores, made ready.
        rows: of each sentence, in the vectors of today's grid.
    """

    pairs: TaskPairs
    scorer: Scorer
    rows: np.ndarray

    @property
    def name(self) -> str:
        return self.pairs.data.task


def _default_tasks(data: DiagnosisData, encoded: Encoded, protocol: Protocol) -> list[_Task]:
    """Return the tasks that count, the smallest first."""
    tasks, end = [], 0
    for pairs in data.sets:
        table = pairs.data.table
        start, end = end, end + 2 * len(table)
        if pairs.text not in {None, protocol.text} or pairs.data.task not in data.tasks:
            continue
        chosen = np.ones(len(table), dtype=bool)
        if len(pairs.splits) > 1 and pairs.default_split != "all":
            chosen = table["split"] == pairs.default_split
        table = table.take(chosen)
        rows = encoded.cuts[0].rows[start:end].reshape(2, -1)[:, chosen].ravel()
        kept = replace(pairs, data=replace(pairs.data, pairs=table), splits=(pairs.default_split,))
        tasks.append(_Task(kept, Scorer.of(table, kept.splits), rows))
    return sorted(tasks, key=lambda task: len(task.rows))


@dataclass
class _Explorer:
    """Makes passes, and keeps what they give.

    Attributes:
        encoder: the person's own.
        base: the claim held against today's grid.
        tasks: in their default text and split, the smallest first.
        encoded: the vectors of today's grid.
        protocol: the default choices.
        spent: what it has cost so far.
        use_cache: whether to read and write the embedding cache.
    """

    encoder: Encoder
    base: Search
    tasks: Sequence[_Task]
    encoded: Encoded
    protocol: Protocol
    spent: _Spent
    use_cache: bool
    _found: list[tuple[Variation, dict[str, Scores]]] = field(default_factory=list)
    _read: dict[str, list[object]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with the person's own setting alone."""
        identity = self.encoder.identity
        self._comparisons = comparisons_of(self.encoded.vectors[identity.pooling], unit=identity.normalize)
        self.search = self._searched()

    def is_answered(self, count: int, *, all_of_them: bool) -> bool:
        """Return whether the search may stop.

        Args:
            count: how many changes the passes so far make.
            all_of_them: whether all passes with so many changes were made.
        """
        explanations = self.search.explanations
        if not explanations or all_of_them:
            return bool(explanations)
        best = explanations[0].best
        return best.count <= max(count, 1) and self.search.chance(best.count) < WEAK

    def make(self, way: Pass) -> bool:
        """Make a pass; return whether the budget allowed it."""
        varied = encoder_of(self.encoder, way)
        by_template = varied.identity.template is not None
        only_sentences = varied is self.encoder or (way.template is None and way.precision is None)
        poolings = poolings_of_pass(self.encoder, varied, way, self.encoded.vectors, all_layers=way == Pass())
        if only_sentences and way != Pass():
            poolings = [name for name in poolings if name in self.encoded.vectors]
        kept = variations(self.encoder, varied, way, poolings)
        if not kept:
            return True
        scores: dict[str, dict[str, Scores]] = {pooling: {} for pooling in kept}
        changed_anywhere = False
        for task in self.tasks:
            texts = sentences_of_pass(task.pairs.data, way, by_template=by_template)
            changed = np.ones(len(texts), dtype=bool)
            if only_sentences and way != Pass():
                changed = self._changed(task, varied, texts)
            changed_anywhere |= bool(changed.any())
            needed = [texts[place] for place in np.flatnonzero(changed).tolist()]
            if not self.spent.allows(len(set(needed))):
                return False
            vectors, rows = self._vectors(varied, needed, list(kept), changed, task)
            for pooling in kept:
                similarities = compare(vectors[pooling], rows.reshape(2, -1), self._comparisons)
                scores[pooling][task.name] = task.scorer(similarities)[..., 0]
            if not self._can_fit(task.name, scores):
                break
        if changed_anywhere:
            self._found += [(kept[pooling], of_tasks) for pooling, of_tasks in scores.items()]
            self.search = self._searched()
        return True

    def _changed(self, task: _Task, varied: Encoder, texts: Sequence[str]) -> np.ndarray:
        """Return which sentences the model reads otherwise than in the person's own setting."""
        if task.name not in self._read:
            own = sentences_of_pass(task.pairs.data, Pass(), by_template=True)
            self._read[task.name] = list(self.encoder.tokenize(own).sequences)
        pairs = zip(self._read[task.name], varied.tokenize(texts).sequences, strict=True)
        return np.array([before != after for before, after in pairs], dtype=bool)

    def _vectors(
        self, varied: Encoder, needed: Sequence[str], poolings: Sequence[str], changed: np.ndarray, task: _Task
    ) -> tuple[Mapping[str, FloatMatrix], np.ndarray]:
        """Return for each pooling the vectors that a task needs, and the row of each of its sentences."""
        begun = time.perf_counter()
        part = None
        if needed:
            asked = list(poolings) if isinstance(varied, TransformerEncoder) else None
            part = embed(varied, needed, poolings=asked, normalize=False, use_cache=self.use_cache)
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

    def _can_fit(self, task: str, scores: Mapping[str, Mapping[str, Scores]]) -> bool:
        """Return whether any setting of a pass gives a claimed number of a task, if one is claimed."""
        claimed = next((value for value in self.base.claim.values if value.task == task), None)
        if claimed is None:
            return True
        values = np.concatenate([of_tasks[task].ravel() for of_tasks in scores.values()])
        return bool((np.abs(values - claimed.score) <= claimed.tolerance).any())

    def _searched(self) -> Search:
        names = [task.name for task in self.tasks]
        of_claim = [name for name in self.base.grid.scores if name in names]
        axes = (
            Axis(VARIATION, (Variation(), *(variation for variation, _ in self._found))),
            Axis.of(AGGREGATION, AGGREGATIONS, self.protocol.aggregation),
            Axis.of(METRIC, METRICS, self.protocol.metric),
            Axis.of(COMPARISON, list(self._comparisons), Comparing(self.protocol.similarity)),  # type: ignore[arg-type]
            axis_of_means(of_claim, with_sample=False),
        )
        default = tuple(axis.default for axis in axes[1:4])
        grids: dict[str, Scores] = {}
        for task in self.tasks:
            aggregations = len(AGGREGATIONS) if task.scorer.has_subsets else 1
            shape = (1 + len(self._found), aggregations, len(METRICS), len(self._comparisons), 1)
            values = np.full(shape, np.nan)
            own = (default[0] if aggregations > 1 else 0, *default[1:], 0)
            # All else that the person's own vectors give stands in today's grid.
            values[(0, *own)] = self.base.grid.value(task.name, self.base.grid.default)
            for number, (_, of_tasks) in enumerate(self._found, 1):
                if task.name in of_tasks:
                    values[number, ..., 0] = of_tasks[task.name].transpose(2, 1, 0)
            grids[task.name] = values
        return Search(Grid(axes, grids), self.base.claim)
