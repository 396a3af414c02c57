"""`diagnose`: from a claim and pairs to the scores of all settings, and the settings that give the claim."""

import time
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.data.sentences import sentences_in
from stsbench.data.tables import StsData
from stsbench.diagnosis.axes import (
    AGGREGATION,
    MAX_LENGTH,
    METRIC,
    NORMALIZE,
    POOLING,
    SIMILARITY,
    TEXT,
    Axis,
    Way,
    average_axis,
    read_claim,
    split_axis,
)
from stsbench.diagnosis.data import (
    DiagnosisData,
    Encoded,
    TaskPairs,
    choose_tasks,
    encode_all,
    meanings_of_lengths,
    read_pairs,
)
from stsbench.diagnosis.result import Diagnosis, facts
from stsbench.diagnosis.search import WEAK, Further, Grid, Scores, Search, along
from stsbench.diagnosis.variations import differences, other_ways, used_as, with_poolings
from stsbench.encoders.fitted import normalize
from stsbench.encoders.load import Model, load
from stsbench.encoders.plan import embed
from stsbench.encoders.protocol import Encoder, FloatMatrix
from stsbench.encoders.template import RULES
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.encoders.use import option_of
from stsbench.scoring.settings import TEXTS, Protocol, Stages
from stsbench.statistics.correlations import aggregate, correlate_rows
from stsbench.statistics.neighbours import SIMILARITIES, in_threads, pair_similarities

CROSSED = (SIMILARITY, NORMALIZE, METRIC, AGGREGATION)
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
        return cls(*(axes[axes.index(axis)].values for axis in CROSSED))

    def shape(self, pairs: TaskPairs) -> tuple[int, ...]:
        """Returns the shape of the scores of pairs; without subsets there is one aggregation."""
        aggregations = len(self.aggregations) if pairs.has_subsets else 1
        return len(self.similarities), len(self.scalings), len(self.metrics), aggregations, len(pairs.splits)

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

        `compared` has the shape (similarities, scalings, pairs).
        """
        gold, subset = (np.asarray(pairs.data.pairs[name]) for name in ("gold", "subset"))
        usable = ~np.isnan(compared).all(axis=2)
        samples = compared[usable]
        aggregations = self.aggregations if pairs.has_subsets else ("all",)
        scores = np.full(self.shape(pairs), np.nan)
        for place, rows in enumerate(pairs.splits.values()):
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
    encoder: Encoder, data: DiagnosisData, encoded: Encoded, protocol: Protocol, progress: Progress
) -> Grid:
    """Scores all tasks in all ways."""
    axes = _axes(encoder, data, encoded, protocol)
    texts, poolings = (axes[axes.index(axis)].values for axis in (TEXT, POOLING))
    scorer = Scorer.of(axes)
    scores: dict[str, Scores] = {}
    views: list[tuple[TaskPairs, slice, Scores]] = []
    end = 0
    for pairs in data.sets:
        place = slice(end, end := end + 2 * len(pairs.data.pairs))
        shape = (len(texts) if pairs.text else 1, len(poolings), len(encoded.rows), *scorer.shape(pairs))
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
    dimensions = (TEXT, POOLING, MAX_LENGTH, *CROSSED)
    return Grid(
        axes, {task: along(axes, (*dimensions, split_axis(task, ())), its) for task, its in scores.items()}
    )


def _axes(encoder: Encoder, data: DiagnosisData, encoded: Encoded, protocol: Protocol) -> tuple[Axis, ...]:
    """Returns the choices, the most frequent mistakes first."""
    texts = {pairs.text for pairs in data.sets} - {None, protocol.text}
    splits = {pairs.data.task: list(pairs.splits) for pairs in data.sets if len(pairs.splits) > 1}
    length, *lengths = encoded.rows
    pooling, unit = encoder.identity.use.pooling, encoder.identity.normalize
    norms = np.linalg.norm(encoded.vectors[pooling], axis=1)
    scaling_matters = unit or not np.allclose(norms[norms > 0], 1, atol=1e-3)
    return (
        POOLING.over(encoded.vectors, pooling),
        AGGREGATION.over(AGGREGATION.values, protocol.aggregation),
        *(split_axis(task, values) for task, values in splits.items()),
        METRIC.over(METRIC.values, protocol.metric),
        TEXT.over([text for text in TEXTS if text in texts], protocol.text),
        MAX_LENGTH.over(lengths, length, meanings_of_lengths(encoder)),
        SIMILARITY.over(SIMILARITIES, protocol.similarity),
        NORMALIZE.over([not unit] if scaling_matters else [], unit),
        average_axis(data.tasks),
    )


def search_further(
    encoder: Encoder,
    search: Search,
    tasks: Sequence[TaskPairs],
    known: Container[str],
    *,
    seconds: float,
    use_cache: bool,
    progress: Progress,
) -> Further:
    """Compares the claim with other ways of using the encoder, whose own vectors have the `known` poolings.

    No forward pass starts after `seconds`.
    """
    passes: dict[Any, list[Way]] = defaultdict(list)
    for way in other_ways(encoder, search.default.distance):
        # One forward pass gives all poolings and layers.
        fields = differences(way, encoder.identity.use) | {"pooling": ""}
        passes[frozenset(fields.items())].append(way)
    begun, scores = time.perf_counter(), dict[Way, dict[str, Scores]]()
    further = Further(replace(search, grid=search.grid.beyond(scores)))
    for number, group in enumerate(passes.values(), 1):
        name = group[0][0].label + (f" and {len(group) - 1} more" if len(group) > 1 else "")
        pooled = [each for way in group for each in with_poolings(encoder, way, known)]
        end = begun + seconds
        try:
            scores |= _score_ways(encoder, search, pooled, tasks, further, end=end, use_cache=use_cache)
        except TimeoutError:
            further.untried.append(name)
        except UserError as error:
            further.untried.append(f"{name} ({str(error).rstrip('.')})")
        else:
            further.tried.append(name)
            further.search = replace(search, grid=search.grid.beyond(scores))
        progress("looking further", number, len(passes))
        best = further.search.explanations
        if best and best[0].count <= 1 and further.search.chance(1) < WEAK:
            break
    further.seconds = time.perf_counter() - begun
    return further


def _score_ways(
    own: Encoder,
    search: Search,
    ways: Sequence[Way],
    tasks: Sequence[TaskPairs],
    further: Further,
    *,
    end: float,
    use_cache: bool,
) -> dict[Way, dict[str, Scores]]:
    """Returns the scores of ways with the same forward pass; raises `TimeoutError` at the end of the time."""
    encoder, axes = used_as(own, ways[0]), search.grid.axes
    scorer, poolings = Scorer.of(axes), [way.fields.get("pooling", own.identity.use.pooling) for way in ways]
    names = poolings if isinstance(encoder, TransformerEncoder) else None
    scores: list[dict[str, Scores]] = [{} for _ in ways]
    for pairs in tasks:
        if time.perf_counter() > end:
            raise TimeoutError
        texts, task = sentences_in(pairs.data), pairs.data.task
        for rule in ways[0].fields.get("rules", ()):
            texts = list(map(RULES[rule], texts))
        made = embed(encoder, texts, poolings=names, normalize=False, use_cache=use_cache)
        further.sentences += made.cost.encoded
        for pooling, of_way in zip(poolings, scores, strict=True):
            compared = scorer.compare(made.vectors[pooling], made.rows.reshape(2, -1))
            of_way[task] = along(axes, CROSSED, scorer.score(pairs, compared)[..., 0])
        # If no setting gives the claimed number of a task, the others need no scores.
        values = np.concatenate([of_way[task].ravel() for of_way in scores])
        claimed = [value for value in search.claim.values if value.task == task]
        if not all((np.abs(values - value.score) <= value.tolerance).any() for value in claimed):
            break
    return dict(zip(ways, scores, strict=True))


def diagnose(
    encoder: Model,
    claim: str | float,
    *,
    tasks: str = "sts",
    data: str | Path | StsData | None = None,
    data_dirs: Sequence[str | Path] = (),
    protocol: Protocol | None = None,
    tolerance: float | None = None,
    lengths: Sequence[int] | None = None,
    budget: float = 60.0,
    use_cache: bool = True,
    progress: Progress = silent,
) -> Diagnosis:
    """Finds the setting that gives a number measured elsewhere.

    Everything is encoded once, with all poolings from one forward pass. The settings that give the claim are
    ranked by the number of changed choices, then by distance. If none does, other ways of using the model are
    tried, if they can matter to it: prompts, templates, rules for the sentence, layers, precisions, attention.

    Args:
        encoder: what `load` accepts; its pooling and maximum length are your setting.
        claim: the number to explain: `76.25` (of `tasks`), numbers by task such as `STS16=81.21,SICK-R=77.58`, or
            `row:NAME` of `stsbench published`.
        tasks: what a bare number was measured on: `sts` (the average of the seven tasks), `sample`, one task, or
            several with commas.
        data: your own pairs, on which a bare number was measured, instead of `tasks`.
        data_dirs: folders to search for data before `STSBENCH_DATA` and the cache.
        protocol: your other choices; `simcse` by default (see `stsbench.protocol`).
        tolerance: how many points a score may differ from the claim; by default half a unit of the claim's last
            digit plus 0.005, because the last bits of vectors differ between machines.
        lengths: maximum lengths to try; by default 32, 64, 128, 256, 512 and those that the checkpoint states.
        budget: seconds for the search beyond the grid; 0 for none. No forward pass starts later.
        use_cache: whether to read and write the embedding cache.
        progress: receives the progress of each stage.

    Returns:
        A diagnosis. Its `.verdict` is the answer in words, `.table()` lists the settings that matter, `.frame` has
        all scores.

    Raises:
        UserError: if the claim cannot be read, data are missing, or an option is invalid.

    >>> diagnosis = diagnose(lambda sentences: [[len(s), s.count("e")] for s in sentences], 99.99, tasks="sample")
    >>> diagnosis.explained
    False
    """
    stages, protocol = Stages(progress), protocol or Protocol()
    if not (isfinite(budget) and budget >= 0):
        raise UserError(f"a budget of {budget:g} seconds: give 0 or more.")
    if protocol.metric not in METRIC.values:
        raise UserError(
            f"diagnose compares by {' and '.join(METRIC.values)}: choose one of them, not {protocol.metric}."
        )
    asked = read_claim(claim, tolerance)
    chosen = choose_tasks(asked, tasks, data)
    encoder = load(encoder)
    for name in encoder.identity.use.changed("afterwards"):
        if name not in {axis.name for axis in CROSSED}:
            raise UserError(f"diagnose does not try {option_of(name)}: leave it out.")
    pairs = read_pairs(chosen, protocol, [Path(folder) for folder in data_dirs])
    stages.done("data")
    asked, identity = asked.about(pairs.tasks), encoder.identity
    stages.done("hash")
    encoded = encode_all(encoder, pairs.sentences, lengths=lengths, use_cache=use_cache, progress=progress)
    stages.done("encode")
    grid = build_grid(encoder, pairs, encoded, protocol, progress)
    search, further = Search(grid, asked), None
    _require_scores(search)
    stages.done("scores")
    if budget and not search.default.fits and not _is_convincing(search):
        shortest = sorted(pairs.own(protocol.text), key=lambda task: len(task.data.pairs))
        further = search_further(
            encoder, search, shortest, encoded.vectors, seconds=budget, use_cache=use_cache, progress=progress
        )
        stages.done("further")
    notes = [*encoder.notes, *pairs.notes, *encoded.notes, *([further.note] if further else [])]
    cost = dict(vars(encoded.cost))
    return Diagnosis(
        model=identity.name,
        search=search,
        facts=tuple(facts(asked, identity)),
        notes=tuple(notes),
        seconds=stages.seconds | {stage: round(taken, 3) for stage, taken in cost.pop("seconds").items()},
        encoding=cost,
        further=further,
    )


def _is_convincing(search: Search) -> bool:
    """Returns whether a single choice gives the claim, or several choices that would explain few other numbers."""
    best = search.explanations
    return bool(best) and (best[0].count <= 1 or search.chance(best[0].count) < WEAK)


def _require_scores(search: Search) -> None:
    undefined = [
        task for task, score in zip(search.claim.tasks, search.default.scores, strict=True) if not isfinite(score)
    ]
    if undefined:
        raise UserError(
            f"{', '.join(undefined)}: this encoder has no score in your own setting, because all pairs have the "
            "same similarity. Check its prompt and maximum length, or whether all its vectors are equal."
        )
