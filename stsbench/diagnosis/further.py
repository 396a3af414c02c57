"""The search beyond the grid: other ways of using the encoder, encoded only as far as the claim needs.

For a claim of several numbers, the smallest task comes first: if no setting of a way gives its number, the other
tasks are not encoded. The search stops at a way that explains the claim and few other numbers, and when its
seconds are over.
"""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress
from stsbench.data.sentences import sentences_in
from stsbench.diagnosis.data import DiagnosisData, TaskPairs
from stsbench.diagnosis.encoding import Encoded
from stsbench.diagnosis.grid import Point, Scores, along
from stsbench.diagnosis.scores import CROSSED, Scorer
from stsbench.diagnosis.search import WEAK, Search
from stsbench.diagnosis.variations import Case
from stsbench.diagnosis.ways import Reading, Way, ways_to_read, with_poolings
from stsbench.encoders.plan import embed
from stsbench.encoders.prompts import SidedEncoder
from stsbench.encoders.protocol import Encoder, FloatMatrix
from stsbench.encoders.template import RULES
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.scoring.settings import Protocol

_MOST_NAMED = 4
"""Ways that were not tried and are named in a note."""

_Vectors = tuple[Mapping[str, FloatMatrix], NDArray[np.int64]]
"""The vectors by pooling, and the row of each sentence in them."""


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

    No forward pass starts that would end after `seconds`.
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
    encoding: float = 0.0
    begun: float = field(default_factory=time.perf_counter)

    def try_pass(self, group: Sequence[Way]) -> bool:
        """Tries ways with the same forward pass; returns whether the time allowed it."""
        first, own = group[0].reading, Reading.of(self.case.use)
        encoder, scorer = first.encoder(self.case.encoder), Scorer.of(self.search.grid.axes)
        ways = [pooled for way in group for pooled in with_poolings(self.case, way, self.encoded.vectors)]
        scores: list[dict[str, Scores]] = [{} for _ in ways]
        for pairs in self.tasks:
            texts = _sentences(pairs, first)
            # If only the sentences change, the vectors of the others are cached.
            known = set(_sentences(pairs, own)) if first.use == own.use and self.use_cache else set()
            rate = self.encoding / self.sentences if self.sentences else 0.0
            if time.perf_counter() - self.begun + rate * len(set(texts) - known) > self.budget:
                return False
            vectors, rows = self._vectors(encoder, pairs, texts, ways)
            for way, of_way in zip(ways, scores, strict=True):
                of_pooling = vectors[way.reading.use.pooling]
                compared = scorer.compare(of_pooling, rows.reshape(2, -1), way.reading.similarity_in)
                scored = scorer.score(pairs, compared)[..., 0]
                of_way[pairs.data.task] = along(self.search.grid.axes, CROSSED, scored)
            if not self._can_fit(pairs.data.task, scores):
                break
        points = (Point(way.changes, its, way.options) for way, its in zip(ways, scores, strict=True))
        self.search = replace(self.search, grid=self.search.grid.with_points(points))
        return True

    def _vectors(self, encoder: Encoder, pairs: TaskPairs, texts: Sequence[str], ways: Sequence[Way]) -> _Vectors:
        """Encodes texts; with a prompt for each side, the first half of them is the first side."""
        begun, half = time.perf_counter(), len(texts) // 2
        poolings = list(dict.fromkeys(way.reading.use.pooling for way in ways))
        parts = [(encoder, texts)]
        if isinstance(encoder, SidedEncoder):
            parts = list(zip(encoder.sides, (texts[:half], texts[half:]), strict=True))
        names = poolings if isinstance(parts[0][0], TransformerEncoder) else None
        made = [embed(side, its, poolings=names, normalize=False, use_cache=self.use_cache) for side, its in parts]
        self._spend(sum(part.cost.encoded for part in made), begun)
        starts = np.cumsum([0, *(part.cost.sequences for part in made)])
        rows = np.concatenate([start + part.rows for start, part in zip(starts, made, strict=False)])
        return {name: np.concatenate([part.vectors[name] for part in made]) for name in poolings}, rows

    def _spend(self, sentences: int, begun: float) -> None:
        self.sentences += sentences
        self.encoding += time.perf_counter() - begun if sentences else 0.0

    def _can_fit(self, task: str, scores: Sequence[Mapping[str, Scores]]) -> bool:
        """Returns whether a setting gives the claimed number of a task, or none is claimed."""
        claimed = next((value for value in self.search.claim.values if value.task == task), None)
        if claimed is None:
            return True
        values = np.concatenate([of_way[task].ravel() for of_way in scores])
        return bool((np.abs(values - claimed.score) <= claimed.tolerance).any())
