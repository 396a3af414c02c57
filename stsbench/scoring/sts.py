"""From the vectors of pairs to a pair table, and from a pair table to the scores of the STS tasks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stsbench.data.sentence_ids import id_columns
from stsbench.data.tables import StsData
from stsbench.records.parts import AveragePart, DataPart, Interval, MetricValues, SubsetPart, TaskPart
from stsbench.records.signature import Signature
from stsbench.scoring.protocols import Protocol
from stsbench.scoring.settings import Bootstrap
from stsbench.statistics.aggregation import Aggregation, TaskScores, correlate_task
from stsbench.statistics.bootstrap import bootstrap_task
from stsbench.statistics.correlations import Metric
from stsbench.statistics.similarity import SIMILARITIES, pair_similarities, zero_rows

if TYPE_CHECKING:
    import pandas as pd

GIVEN = "given"
"""The similarity column of a run whose similarities were computed elsewhere."""

_COLUMNS = ["task", "split", "text", "subset", "pair_id", "gold"]

_METRICS: tuple[Metric, ...] = ("spearman", "pearson")
"""What every score is also taken by, whatever the protocol's metric."""


def pair_table(
    data: StsData, vectors: NDArray[np.floating], rows: NDArray[np.int64], lengths: NDArray[np.int64]
) -> "pd.DataFrame":
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
    table = _without_similarities(data)
    left, right = rows[: len(table)], rows[len(table) :]
    for kind, values in pair_similarities(vectors, left, right, tuple(SIMILARITIES)).items():
        table[kind] = values
    table["subwords_a"], table["subwords_b"] = lengths[: len(table)], lengths[len(table) :]
    zero = zero_rows(vectors)
    return table.assign(identical=left == right, zero=zero[left] | zero[right])


def pair_table_of_similarities(data: StsData, similarities: NDArray[np.float64]) -> "pd.DataFrame":
    """Return the pair table of one task whose similarities were computed elsewhere, one for each pair in order."""
    table = _without_similarities(data).assign(subwords_a=-1, subwords_b=-1, identical=False, zero=False)
    table[GIVEN] = similarities
    return table


def _without_similarities(data: StsData) -> "pd.DataFrame":
    # A pair of split `all` counts as that split's; its id tells where it came from.
    table = data.pairs.assign(task=data.task, text=data.text, split=data.split)
    for side, column in (("a", "sentence1"), ("b", "sentence2")):
        table[f"words_{side}"] = [len(text.split()) for text in table[column]]
        table[f"characters_{side}"] = table[column].str.len()
    table = table.assign(**id_columns(table["sentence1"], table["sentence2"]))
    table = table.drop(columns=["sentence1", "sentence2"])
    return table[[*_COLUMNS, *(column for column in table.columns if column not in _COLUMNS)]]


@dataclass(frozen=True)
class StsResult:
    """A task's part of the record, and the replicates of its headline for the average's interval."""

    part: TaskPart
    replicates: NDArray[np.float64] | None


def score_task(
    pairs: "pd.DataFrame",
    *,
    protocol: Protocol,
    similarity: str,
    signature: Signature,
    data: DataPart,
    bootstrap: Bootstrap,
    truncated_sentences: int = 0,
) -> StsResult:
    """Score one task from its rows of the pair table.

    Args:
        pairs: the rows of one task, split and text.
        protocol: which aggregation and metric are the headline.
        similarity: the column to correlate with gold.
        signature: of the headline.
        data: what the task was read from.
        bootstrap: how intervals are computed.
        truncated_sentences: counted by the caller, who has the sentences.
    """
    # Subsets in the order of the data, not of the alphabet: tables list them so.
    names = list(dict.fromkeys(pairs["subset"]))
    code_of = {name: code for code, name in enumerate(names)}
    codes = pairs["subset"].map(code_of).to_numpy()
    gold, values = pairs["gold"].to_numpy(), pairs[similarity].to_numpy()

    metrics = dict.fromkeys((*_METRICS, protocol.metric))
    scores = {metric: correlate_task(gold, values, codes, metric) for metric in metrics}
    replicates = None
    intervals: dict[Aggregation, Interval | None] = {}
    subset_intervals: Sequence[Interval | None] = [None] * len(names)
    if bootstrap.resamples:
        drawn = bootstrap_task(
            gold,
            values,
            codes,
            protocol.metric,
            task=f"{signature.task}:{signature.split}",
            names=names,
            resamples=bootstrap.resamples,
            seed=bootstrap.seed,
        )
        replicates = drawn.aggregates[protocol.aggregation]
        intervals = {name: bootstrap.interval(drawn.aggregates[name]) for name in drawn.aggregates}
        subset_intervals = [bootstrap.interval(drawn.subsets[:, code]) for code in range(len(names))]
    sizes = pairs["subset"].value_counts()
    part = TaskPart(
        task=signature.task,
        split=signature.split,
        text=signature.text,
        pairs=len(pairs),
        score=_defined(scores[protocol.metric].aggregates[protocol.aggregation]),
        interval=intervals.get(protocol.aggregation),
        scores={
            name: {metric: _defined(values.aggregates[name]) for metric, values in scores.items()}
            for name in scores[protocol.metric].aggregates
        },
        intervals={**intervals},
        subsets=tuple(
            SubsetPart(
                name=name,
                pairs=int(sizes[name]),
                scores=_subset_scores(scores, code),
                interval=subset_intervals[code],
            )
            for code, name in enumerate(names)
        ),
        signature=str(signature),
        data=data,
        identical_pairs=int(pairs["identical"].sum()),
        zero_pairs=int(pairs["zero"].sum()),
        truncated_sentences=truncated_sentences,
    )
    return StsResult(part, replicates)


def average(results: Sequence[StsResult], bootstrap: Bootstrap) -> AveragePart | None:
    """Return the plain mean of the tasks' scores with its interval; None for a single task.

    Tasks are resampled independently, so the k-th replicates of all tasks average to one of the mean.
    """
    replicates = [result.replicates for result in results if result.replicates is not None]
    complete = replicates and len(replicates) == len(results)
    return AveragePart.of(
        [result.part.task for result in results],
        [result.part.score for result in results],
        bootstrap.interval(np.mean(replicates, axis=0)) if complete else None,
    )


def _subset_scores(scores: Mapping[Metric, TaskScores], code: int) -> MetricValues:
    return {metric: _defined(float(values.subsets[code])) for metric, values in scores.items()}


def _defined(value: float) -> float | None:
    # JSON has no NaN: an undefined correlation is null.
    return None if math.isnan(value) else float(value)
