"""From the vectors of pairs to a pair table, and from a pair table to the scores of the STS tasks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stsbench.data.plain_table import Column, PlainTable, coded
from stsbench.data.sentence_ids import id_columns
from stsbench.data.tables import StsData
from stsbench.records.parts import AveragePart, DataPart, MetricValues, NoInterval, SubsetPart, TaskPart
from stsbench.records.signature import Signature
from stsbench.scoring.intervals import (
    Support,
    kept,
    mean_limits,
    sharing_of,
)
from stsbench.scoring.protocols import Protocol
from stsbench.scoring.raters import rater_part, with_spread
from stsbench.scoring.settings import Intervals
from stsbench.statistics.aggregation import Aggregation, TaskScores, correlate_task, members_of
from stsbench.statistics.correlations import Metric
from stsbench.statistics.dependence import Sharing, variance
from stsbench.statistics.influence import TERMS, task_terms
from stsbench.statistics.intervals import Limits, correlation_interval
from stsbench.statistics.similarity import SIMILARITIES, pair_similarities, zero_rows

GIVEN = "given"
"""The similarity column of a run whose similarities were computed elsewhere."""

_METRICS: tuple[Metric, ...] = ("spearman", "pearson")
"""What every score is also taken by, whatever the protocol's metric."""


def pair_table(
    data: StsData, vectors: NDArray[np.floating], rows: NDArray[np.int64], lengths: NDArray[np.int64]
) -> PlainTable:
    """Return the pair table of one task.

    Args:
        data: the task, n pairs.
        vectors: one row per token sequence, post-processing done; shape (sequences, dimensions).
        rows: the row in `vectors` of each first sentence and then of each second one; shape (2n,).
        lengths: the length in sub-words of the same; shape (2n,).

    Returns:
        n rows with the columns task, split, text, subset, pair_id, gold; every similarity (float64); words,
        characters and subwords of either side (`words_a`, `words_b`, ...; sub-words -1 where unknown); numbers
        that stand for the sentences (`sentence_a`, `folded_a`, ...: see `id_columns`);
        `identical` (one token sequence on both sides) and `zero` (a zero vector on a side).
    """
    size = len(data.table)
    left, right = rows[:size], rows[size:]
    zero = zero_rows(vectors)
    similarities = pair_similarities(vectors, left, right, tuple(SIMILARITIES))
    columns: dict[str, Column] = {str(kind): values for kind, values in similarities.items()}
    columns |= {"subwords_a": lengths[:size], "subwords_b": lengths[size:]}
    columns |= {"identical": left == right, "zero": zero[left] | zero[right]}
    return _without_similarities(data).with_columns(columns)


def pair_table_of_similarities(data: StsData, similarities: Mapping[str, NDArray[np.float64]]) -> PlainTable:
    """Return the pair table of one task whose similarities were computed elsewhere, one for each pair in order.

    Args:
        data: the task, n pairs.
        similarities: (n,) by column: `GIVEN`, or some of `SIMILARITIES`; the others of those are NaN then.
    """
    size = len(data.table)
    columns: dict[str, Column] = dict.fromkeys(("subwords_a", "subwords_b"), np.full(size, -1))
    columns |= dict.fromkeys(("identical", "zero"), np.zeros(size, dtype=bool))
    if GIVEN not in similarities:
        columns |= dict.fromkeys(SIMILARITIES, np.full(size, math.nan))
    return _without_similarities(data).with_columns({**columns, **similarities})


def _without_similarities(data: StsData) -> PlainTable:
    pairs = with_spread(data.table)
    size, sides = len(pairs), {"a": pairs["sentence1"], "b": pairs["sentence2"]}
    # A pair of split `all` counts as that split's; its id tells where it came from.
    columns: dict[str, Any] = {name: [getattr(data, name)] * size for name in ("task", "split", "text")}
    columns |= {name: pairs[name] for name in ("subset", "pair_id", "gold")}
    columns |= {name: pairs[name] for name in pairs.columns if name not in {*columns, "sentence1", "sentence2"}}
    for side, texts in sides.items():
        columns[f"words_{side}"] = np.fromiter((len(text.split()) for text in texts), np.int64, size)
        columns[f"characters_{side}"] = np.fromiter(map(len, texts), np.int64, size)
    return PlainTable({**columns, **id_columns(*sides.values())})


@dataclass(frozen=True)
class StsResult:
    """A task's part of the record, and what its headline's interval rests on, for the average's."""

    part: TaskPart
    support: Support


@dataclass(frozen=True)
class TaskLimits:
    """The intervals of one task, of its headline metric.

    Attributes:
        aggregates: of the task's score by every aggregation; empty where none were asked for.
        subsets: of each subset's, in the order of their codes; likewise.
        support: what the interval of the headline rests on.
    """

    aggregates: Mapping[Aggregation, Limits]
    subsets: Sequence[Limits]
    support: Support


def score_task(
    pairs: PlainTable,
    *,
    protocol: Protocol,
    similarity: str,
    signature: Signature,
    data: DataPart,
    intervals: Intervals,
    truncated_sentences: int = 0,
) -> StsResult:
    """Score one task from its rows of the pair table.

    Args:
        pairs: the rows of one task, split and text.
        protocol: which aggregation and metric are the headline.
        similarity: the column to correlate with gold.
        signature: of the headline.
        data: what the task was read from.
        intervals: how intervals are computed.
        truncated_sentences: counted by the caller, who has the sentences.
    """
    # Subsets in the order of the data, not of the alphabet: tables list them so.
    names, codes = coded(pairs["subset"])
    gold, values = pairs["gold"], pairs[similarity]

    metrics = dict.fromkeys((*_METRICS, protocol.metric))
    scores = {metric: correlate_task(gold, values, codes, metric) for metric in metrics}
    found = task_limits(
        pairs,
        similarity,
        scores[protocol.metric],
        metric=protocol.metric,
        aggregation=protocol.aggregation,
        codes=codes,
        intervals=intervals,
    )
    headline = found.aggregates.get(protocol.aggregation)
    of_subsets: Sequence[Limits | None] = found.subsets or [None] * len(names)
    sizes = np.bincount(codes).tolist()
    part = TaskPart(
        task=signature.task,
        split=signature.split,
        text=signature.text,
        pairs=len(pairs),
        score=_defined(scores[protocol.metric].aggregates[protocol.aggregation]),
        interval=headline and kept(headline),
        no_interval=_reason(headline),
        scores={
            name: {metric: _defined(values.aggregates[name]) for metric, values in scores.items()}
            for name in scores[protocol.metric].aggregates
        },
        intervals={name: kept(limits) for name, limits in found.aggregates.items()},
        subsets=tuple(
            SubsetPart(
                name=name,
                pairs=sizes[code],
                scores=_subset_scores(scores, code),
                interval=limits and kept(limits),
                no_interval=_reason(limits),
            )
            for code, (name, limits) in enumerate(zip(names, of_subsets, strict=True))
        ),
        signature=str(signature),
        data=data,
        identical_pairs=int(pairs["identical"].sum()),
        zero_pairs=int(pairs["zero"].sum()),
        truncated_sentences=truncated_sentences,
        raters=rater_part(pairs),
    )
    return StsResult(part, found.support)


def task_limits(
    pairs: PlainTable,
    similarity: str,
    scores: TaskScores,
    *,
    metric: Metric,
    aggregation: Aggregation,
    codes: NDArray[np.intp],
    intervals: Intervals,
) -> TaskLimits:
    """Return the intervals of one task from its rows of the pair table.

    Args:
        pairs: the n rows of one task, split and text.
        similarity: the column that is correlated with gold.
        scores: by `metric`.
        metric: the correlation.
        aggregation: the headline's.
        codes: (n,) the place of each pair's subset.
        intervals: how intervals are computed.
    """
    whole = scores.aggregates[aggregation]
    how = intervals.interval
    if how is None:
        return TaskLimits({}, (), Support(whole))
    gold, values, sharing = pairs["gold"], pairs[similarity], sharing_of(pairs)

    def limits(value: float, terms: NDArray[np.float64], sharing: Sharing) -> Limits:
        spread = variance(terms, sharing, how)
        return correlation_interval(value, spread, len(terms), intervals.level, metric)

    terms = {name: task_terms(gold, values, codes, metric, name) for name in scores.aggregates}
    return TaskLimits(
        {name: limits(value, terms[name], sharing) for name, value in scores.aggregates.items()},
        [
            limits(value, TERMS[metric](gold[inside], values[inside]), sharing.take(inside))
            for value, inside in zip(scores.subsets.tolist(), members_of(codes, len(pairs)), strict=True)
        ],
        Support(whole, terms[aggregation], sharing, sharing_of(pairs, folded=True)),
    )


def average(results: Sequence[StsResult], intervals: Intervals) -> AveragePart | None:
    """Return the plain mean of the tasks' scores with its interval; None for a single task.

    There is none where a task's own score has none.
    """
    complete = len(results) > 1 and all(result.part.interval is not None for result in results)
    return AveragePart.of(
        [result.part.task for result in results],
        [result.part.score for result in results],
        mean_limits([result.support for result in results], intervals) if complete else None,
    )


def _reason(limits: Limits | None) -> NoInterval:
    return (limits and limits.reason) or ""


def _subset_scores(scores: Mapping[Metric, TaskScores], code: int) -> MetricValues:
    return {metric: _defined(float(values.subsets[code])) for metric, values in scores.items()}


def _defined(value: float) -> float | None:
    # JSON has no NaN: an undefined correlation is null.
    return None if math.isnan(value) else float(value)
