"""From vectors to the grid: the pairs of every task compared, correlated and aggregated in every way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.progress import Progress
from stsbench.data.sentences import sentences_in
from stsbench.data.tables import StsData
from stsbench.diagnosis.choices import (
    AGGREGATION,
    COMPARISON,
    MAX_LENGTH,
    METRIC,
    METRICS,
    POOLING,
    REGRESSED,
    REGRESSOR,
    SECOND_TEST,
    TEXT,
    Choice,
    Comparing,
    split_of,
)
from stsbench.diagnosis.encoding import Cut, Encoded
from stsbench.diagnosis.grid import Axis, Grid, Scores, axis_of_means
from stsbench.encoders.postprocess import normalize
from stsbench.encoders.protocol import FloatMatrix, Identity
from stsbench.scoring.kinds.relatedness import regress, scores_on_test
from stsbench.scoring.settings import AGGREGATIONS, TEXTS, Protocol
from stsbench.scoring.tasks import SAMPLE
from stsbench.statistics.correlations import aggregate, correlate_rows
from stsbench.statistics.similarity import SIMILARITIES, pair_similarities
from stsbench.statistics.threads import in_threads


@dataclass(frozen=True)
class TaskPairs:
    """One task in one text, with all its splits; the text is None where it has one that serves all."""

    data: StsData
    text: str | None
    splits: tuple[str, ...]
    default_split: str

    @cached_property
    def scorer(self) -> "Scorer":
        """The task's gold scores, made ready."""
        return Scorer.of(self.data.pairs, self.splits)


@dataclass(frozen=True)
class DiagnosisData:
    """What to score: each task in each of its texts, which tasks count for an average, and what is missing."""

    sets: tuple[TaskPairs, ...]
    tasks: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def sentences(self) -> list[str]:
        """All sentences: of each task all first sides, then all second sides."""
        return [sentence for pairs in self.sets for sentence in sentences_in(pairs.data)]


def build_grid(
    data: DiagnosisData,
    encoded: Encoded,
    *,
    identity: Identity,
    protocol: Protocol,
    supervised: bool,
    progress: Progress,
) -> Grid:
    """Score every task by every choice, and by SentEval's regressors on the default vectors if asked."""
    comparisons = comparisons_of(encoded.vectors[identity.use.pooling], unit=identity.normalize)
    axes = _axes(
        data, encoded, [*comparisons, *([REGRESSOR] if supervised else [])], identity.use.pooling, protocol
    )
    values = {axis.choice: axis.values for axis in axes}
    scores: dict[str, Scores] = {}
    views: list[tuple[TaskPairs, slice, Scores]] = []
    end = 0
    for pairs in data.sets:
        shape = (
            len(values[TEXT]) if pairs.text else 1,
            *(len(values[choice]) for choice in (POOLING, MAX_LENGTH, COMPARISON, METRIC)),
            len(values[AGGREGATION]) if pairs.scorer.has_subsets else 1,
            len(pairs.splits),
        )
        of_task = scores.setdefault(pairs.data.task, np.full(shape, np.nan))
        start, end = end, end + 2 * len(pairs.data.pairs)
        views.append((pairs, slice(start, end), of_task[values[TEXT].index(pairs.text) if pairs.text else 0]))
    rows, columns = _distinct_pairs(encoded.cuts, [place for _, place, _ in views])
    poolings = list(encoded.vectors)

    def fill(number: int) -> None:
        similarities = compare(encoded.vectors[poolings[number]], rows, comparisons)
        for (pairs, _, view), of_cuts in zip(views, columns, strict=True):
            _fill(view[number, :, : len(comparisons)], pairs.scorer, similarities, of_cuts)

    for done, _ in enumerate(in_threads(fill, range(len(poolings))), 1):
        progress("scoring", done, len(poolings))
    if supervised:
        number, vectors = poolings.index(identity.use.pooling), encoded.vectors[identity.use.pooling]
        for pairs, place, view in views:
            if pairs.text in {None, protocol.text}:
                own = encoded.cuts[0].rows[place]
                _fill_supervised(view[number, 0], pairs, vectors[own], device=identity.use.device)
    dimensions = (TEXT, POOLING, MAX_LENGTH, COMPARISON, METRIC, AGGREGATION)
    return Grid(axes, {task: along(axes, (*dimensions, split_of(task)), its) for task, its in scores.items()})


def comparisons_of(vectors: FloatMatrix, *, unit: bool) -> dict[Comparing, bool]:
    """Return for every way of comparing the vectors whether they are scaled to unit length first.

    First as the model gives them, then what differs if scaled otherwise.
    """
    comparisons = {Comparing(similarity): unit for similarity in SIMILARITIES}
    norms = np.linalg.norm(vectors, axis=1)
    if unit or not np.allclose(norms[norms > 0], 1, atol=1e-3):
        # Scaling leaves the cosine as it is, and the dot product of scaled vectors is the cosine.
        alike = {"cosine"} if unit else {"cosine", "dot"}
        comparisons |= {Comparing(name, not unit): not unit for name in SIMILARITIES if name not in alike}
    return comparisons


def _axes(
    data: DiagnosisData, encoded: Encoded, comparisons: Sequence[Comparing], pooling: str, protocol: Protocol
) -> tuple[Axis, ...]:
    """Return the choices, those that people get wrong most first."""
    texts = {pairs.text for pairs in data.sets} - {protocol.text}
    splits = {pairs.data.task: pairs for pairs in data.sets if len(pairs.splits) > 1}
    lengths = [cut.max_length for cut in encoded.cuts]
    with_sample = SAMPLE not in data.tasks and any(pairs.data.task == SAMPLE for pairs in data.sets)
    return (
        Axis.of(POOLING, list(encoded.vectors), pooling),
        Axis.of(AGGREGATION, AGGREGATIONS, protocol.aggregation),
        *(Axis.of(split_of(task), pairs.splits, pairs.default_split) for task, pairs in splits.items()),
        Axis.of(METRIC, METRICS, protocol.metric),
        Axis(TEXT, (protocol.text, *(text for text in TEXTS if text in texts))),
        Axis(MAX_LENGTH, tuple(lengths), notes=encoded.limits),
        Axis.of(COMPARISON, comparisons, Comparing(protocol.similarity)),  # type: ignore[arg-type]
        axis_of_means(data.tasks, with_sample=with_sample),
    )


def along(axes: Sequence[Axis], dimensions: Sequence[Choice], values: Scores) -> Scores:
    """Return scores with one dimension per axis, of length 1 where `dimensions` has none of its choice."""
    order = [dimensions.index(axis.choice) for axis in axes if axis.choice in dimensions]
    rest = [number for number in range(len(dimensions)) if number not in order]
    ordered = values.transpose([*order, *rest])
    sizes = iter(ordered.shape)
    return ordered.reshape([next(sizes) if axis.choice in dimensions else 1 for axis in axes])


def _distinct_pairs(
    cuts: Sequence[Cut], places: Sequence[slice]
) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
    """Return each pair of sentences once, however many texts, splits and cuts it stands in.

    Args:
        cuts: the sentences at each maximum length.
        places: where each task's sentences stand among all: of its pairs all first sides, then all second sides.

    Returns:
        The (2, p) rows of p pairs; and for each task the (cuts, n) places of its n pairs among them.
    """
    of_tasks = []
    for place in places:
        whole = cuts[0].rows[place].reshape(2, -1)
        changed = [cut.changed[place].reshape(2, -1).any(axis=0) for cut in cuts]
        cut_rows = [cut.rows[place].reshape(2, -1) for cut in cuts]
        of_tasks.append(np.stack([np.where(*way, whole) for way in zip(changed, cut_rows, strict=True)], axis=1))
    left, right = np.concatenate([rows.reshape(2, -1) for rows in of_tasks], axis=1)
    size = int(right.max(initial=0)) + 1
    codes, numbers = np.unique(left * size + right, return_inverse=True)
    ends = np.cumsum([rows[0].size for rows in of_tasks])[:-1]
    columns = zip(np.split(numbers, ends), of_tasks, strict=True)
    return np.array(np.divmod(codes, size)), [part.reshape(rows[0].shape) for part, rows in columns]


def _fill(scores: Scores, scorer: "Scorer", similarities: Scores, columns: NDArray[np.int64]) -> None:
    """Fill in the (lengths, comparisons, metrics, aggregations, splits) scores of one task by one pooler.

    Args:
        scores: to be filled.
        scorer: the task's gold scores.
        similarities: (comparisons, p) of all pairs.
        columns: (lengths, n) the task's pairs among them, at each maximum length.
    """
    scores[0] = scorer(similarities[:, columns[0]])
    for number, of_cut in enumerate(columns[1:], 1):
        same = np.array_equal(of_cut, columns[0])
        scores[number] = scores[0] if same else scorer(similarities[:, of_cut])


def compare(vectors: FloatMatrix, rows: NDArray[np.int64], comparisons: Mapping[Comparing, bool]) -> Scores:
    """Return the (comparisons, pairs) similarities of vectors, by the (2, pairs) rows of each pair's sentences."""
    used, places = np.unique(rows, return_inverse=True)
    left, right = places.reshape(rows.shape)
    held = vectors if len(used) == len(vectors) else vectors[used]
    similarities: dict[Comparing, Scores] = {}
    for scale in set(comparisons.values()):
        ways = {way.similarity: way for way in comparisons if comparisons[way] == scale}
        kinds = [kind for kind in SIMILARITIES if kind in ways]
        values = pair_similarities(normalize(held) if scale else held, left, right, kinds)
        similarities |= {ways[kind]: values[kind] for kind in kinds}
    return np.array([similarities[way] for way in comparisons])


def _fill_supervised(scores: Scores, pairs: TaskPairs, vectors: FloatMatrix, *, device: str) -> None:
    """Fill in the last of the (comparisons, metrics, aggregations, splits) scores of one task: the regressor's."""
    if pairs.data.task not in REGRESSED:
        scores[-1] = scores[0]  # the cosine
        return
    # Trained as `stsbench run` does, which gives this number then: stopped by Pearson's correlation.
    result = regress(pairs.data, *np.split(vectors, 2), device="cuda" if device == "cuda" else "cpu")
    on_test = scores_on_test(result.predicted, pairs.data.pairs["gold"].to_numpy()[result.tested])
    scores[-1, :, 0, pairs.splits.index("test")] = [100 * on_test[metric] for metric in METRICS]


class _Together(NamedTuple):
    """Pairs that are correlated together."""

    pairs: NDArray[np.intp]
    gold: NDArray[np.float64]


@dataclass(frozen=True)
class Scorer:
    """A task whose gold scores are made ready: for each split its subsets, and then the whole."""

    splits: tuple[str, ...]
    subsets: tuple[tuple[_Together, ...], ...]

    @classmethod
    def of(cls, pairs: pd.DataFrame, splits: Sequence[str]) -> "Scorer":
        """Make a task ready; the column `SECOND_TEST` says which pairs are in that split, if it is asked for."""
        gold, subset, split = (np.asarray(pairs[name]) for name in ("gold", "subset", "split"))
        by_split = []
        for name in splits:
            chosen = np.flatnonzero((split == name) | (name == "all") | (len(splits) == 1))
            if name == SECOND_TEST and len(splits) > 1:
                chosen = np.flatnonzero(pairs[SECOND_TEST])
            subsets = list(dict.fromkeys(subset[chosen]))
            groups = [chosen[subset[chosen] == name] for name in subsets] if len(subsets) > 1 else []
            by_split.append(tuple(_Together(rows, gold[rows]) for rows in (*groups, chosen)))
        return cls(tuple(splits), tuple(by_split))

    @property
    def has_subsets(self) -> bool:
        """Whether aggregation makes a difference."""
        return any(len(groups) > 1 for groups in self.subsets)

    def __call__(self, similarities: Scores) -> Scores:
        """Return the task's scores.

        Args:
            similarities: (k, n) of the n pairs, compared in k ways.

        Returns:
            (k, 2, a, s) x 100: by Spearman and Pearson, aggregated by `all`, `mean` and `wmean` (a is 1 where
            there are no subsets), on each split.
        """
        scores: Scores = 100 * np.stack([self._of_split(groups, similarities) for groups in self.subsets], axis=-1)
        return scores

    def _of_split(self, groups: tuple[_Together, ...], similarities: Scores) -> Scores:
        # (groups, 2, k)
        values: Scores = np.array([correlate_rows(group.gold, similarities[:, group.pairs]) for group in groups])
        whole: Scores = values[-1].T
        if not self.has_subsets:
            return whole[:, :, np.newaxis]
        subsets = values[:-1] if len(groups) > 1 else values
        sizes = [len(group.pairs) for group in groups[: len(subsets)]]
        aggregates = aggregate(np.moveaxis(subsets, 0, -1), values[-1], sizes)
        return np.stack([aggregates[name].T for name in AGGREGATIONS], axis=-1)
