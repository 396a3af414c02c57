"""From a pair table to the scores of the STS tasks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stsbench.evaluation.protocols import Protocol
from stsbench.foundation.errors import UserError
from stsbench.records.parts import AveragePart, DataPart, Interval, MetricValues, SubsetPart, TaskPart
from stsbench.records.signature import Signature
from stsbench.statistics import LEVEL, RESAMPLES, SEED, bootstrap_task, correlate_task, percentile_interval
from stsbench.statistics.aggregation import Aggregation, TaskScores
from stsbench.statistics.correlations import Metric

if TYPE_CHECKING:
    import pandas as pd

_METRICS: tuple[Metric, ...] = ("spearman", "pearson")


@dataclass(frozen=True)
class Bootstrap:
    """How intervals are computed.

    Attributes:
        resamples: 0 for no intervals.
        level: the share of replicates inside.
        seed: of the draws.
    """

    resamples: int = RESAMPLES
    level: float = LEVEL
    seed: int = SEED

    def __post_init__(self) -> None:
        """Check what a person may have set.

        Raises:
            UserError: if a value makes no sense.
        """
        if self.resamples < 0:
            raise UserError(f"{self.resamples} resamples: give 0 for no intervals, or a positive number.")
        if not 0 < self.level < 1:
            raise UserError(f"an interval of level {self.level}: give a share between 0 and 1, such as 0.95.")


@dataclass(frozen=True)
class TaskResult:
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
) -> TaskResult:
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
        intervals = {name: _interval(drawn.aggregates[name], bootstrap) for name in drawn.aggregates}
        subset_intervals = [_interval(drawn.subsets[:, code], bootstrap) for code in range(len(names))]
    sizes = pairs["subset"].value_counts()
    part = TaskPart(
        task=signature.task,
        split=signature.split,
        text=signature.text,
        pairs=len(pairs),
        score=_defined(scores[protocol.metric].aggregates[protocol.aggregation]),
        interval=intervals.get(protocol.aggregation),
        scores={
            name: {metric: _defined(found.aggregates[name]) for metric, found in scores.items()}
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
    return TaskResult(part, replicates)


def average(results: Sequence[TaskResult], bootstrap: Bootstrap) -> AveragePart | None:
    """Return the plain mean of the tasks' scores with its interval; None for a single task.

    Tasks are resampled independently, so the k-th replicates of all tasks average to one of the mean.
    """
    if len(results) < 2:
        return None
    scores = [result.part.score for result in results]
    defined = [score for score in scores if score is not None]
    complete = len(defined) == len(scores)
    replicates = [result.replicates for result in results if result.replicates is not None]
    interval = _interval(np.mean(replicates, axis=0), bootstrap) if len(replicates) == len(results) else None
    return AveragePart(
        tasks=tuple(result.part.task for result in results),
        score=float(np.mean(defined)) if complete else None,
        of_rounded=float(np.mean([round(100 * score, 2) for score in defined])) if complete else None,
        interval=interval if complete else None,
    )


def _subset_scores(scores: Mapping[Metric, TaskScores], code: int) -> MetricValues:
    return {metric: _defined(float(found.subsets[code])) for metric, found in scores.items()}


def _interval(replicates: NDArray[np.float64], bootstrap: Bootstrap) -> Interval | None:
    low, high = percentile_interval(replicates, bootstrap.level)
    return None if math.isnan(low) else (low, high)


def _defined(value: float) -> float | None:
    # JSON has no NaN: an undefined correlation is null.
    return None if math.isnan(value) else float(value)
