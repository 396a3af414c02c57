"""STS: the similarity of the vectors of sentence pairs, correlated with gold scores."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.data.sentences import sentences_in
from stsbench.data.tables import StsData
from stsbench.records.kinds import PAIR_CLASSIFICATION, STS
from stsbench.records.parts import RaterPart
from stsbench.records.signature import Signature
from stsbench.scoring.settings import AGGREGATIONS, GIVEN_SIMILARITY, Intervals, Settings
from stsbench.scoring.statistic import AveragePrecision, Correlation, ItemsEstimate, ThresholdAccuracy, sharing_of
from stsbench.scoring.task import Items, Meaning, Numbers, Rows, Scoring, Task, Vectors, item_columns
from stsbench.statistics.correlations import CORRELATIONS, Aggregation, Metric, ceiling, reliability
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.neighbours import SIMILARITIES, pair_similarities, zero_rows

_METRICS: tuple[Metric, ...] = ("spearman", "pearson")
"""Metrics that every record contains, in addition to the protocol's."""


@dataclass(frozen=True)
class ComparedPairs:
    """A task of pairs whose vectors are compared."""

    data: StsData

    kind: ClassVar[str]
    is_trained: ClassVar[bool] = False
    streams: ClassVar[bool] = False
    sides: ClassVar[int] = 2

    @property
    def pairs(self) -> StsData:
        return self.data

    def sentences(self) -> list[str]:
        return sentences_in(self.data)

    def items(self, vectors: Vectors, settings: Settings) -> Items:
        return Items(compared(self, vectors))


@dataclass(frozen=True)
class StsPairs(ComparedPairs):
    """Sentence pairs with gold scores."""

    kind: ClassVar[str] = STS

    def demand_scorable(self) -> None:
        demand_spread(self.data)

    def meaning(self, settings: Settings) -> Meaning:
        protocol = settings.protocol
        if protocol.metric not in CORRELATIONS:
            raise UserError(
                f"--metric {protocol.metric} needs queries, but {self.data.task} has pairs: leave it out."
            )
        return Meaning(self.data.split, protocol.aggregation, protocol.metric, protocol.similarity)

    @staticmethod
    def statistic(signature: Signature) -> Correlation:
        return Correlation.of(signature)

    @staticmethod
    def numbers(rows: Rows, how: Scoring) -> Numbers:
        """Returns all correlations, with intervals for the headline's metric."""
        pairs, headline = rows.scored, Correlation.of(how.signature)
        sharing = sharing_of(pairs)
        parts: list[tuple[pd.DataFrame, Aggregation | None, str, Sharing]]
        parts = [(pairs, by, "", sharing) for by in dict.fromkeys((headline.aggregation, *AGGREGATIONS))]
        # Subsets in the order of the data, as tables list them.
        parts += [
            (of_subset, None, str(name), sharing.take(of_subset.index))
            for name, of_subset in pairs.groupby("subset", sort=False)
        ]
        estimates, numbers = [], []
        for items, by, subset, shared in parts:
            for metric in dict.fromkeys((headline.metric, *_METRICS)):
                statistic = replace(headline, metric=metric, aggregation=by or "all")
                intervals = how.intervals if metric == headline.metric else Intervals(None)
                estimates.append(ItemsEstimate.of(statistic, items, intervals, shared))
                numbers.append(estimates[-1].number(metric, by or "", subset))
        return Numbers(tuple(numbers), estimates[0])


def demand_spread(data: StsData) -> None:
    """Raises unless there are pairs with different gold scores."""
    gold = data.pairs["gold"]
    where = f"{data.task}, split {data.split}, text {data.text},"
    if len(gold) < 2:
        raise UserError(
            f"{where} has {len(gold)} scored pairs: a correlation needs at least two; check the files."
        )
    if gold.min() == gold.max():
        raise UserError(
            f"{where} has the score {gold.iloc[0]:g} for every pair: a correlation needs different scores; "
            "check the files."
        )


def compared(task: ComparedPairs, vectors: Vectors) -> pd.DataFrame:
    """Returns the items table of a task of pairs, n rows in the order of the data.

    In addition to the common columns (see `item_columns`) there are `gold`; every similarity (float64); words,
    characters and sub-words of both sides (`words_a`, `words_b`, ...; sub-words are -1 if unknown); `identical`
    (both sides have the same tokens) and `zero` (a side has a zero vector).
    """
    pairs = _without_similarities(task.kind, task.data)
    left, right = vectors.rows[: len(pairs)], vectors.rows[len(pairs) :]
    zero = zero_rows(vectors.matrix)
    similarities = pair_similarities(vectors.matrix, left, right, tuple(SIMILARITIES))
    columns: dict[str, NDArray[Any]] = {str(kind): values for kind, values in similarities.items()}
    columns |= {"subwords_a": vectors.lengths[: len(pairs)], "subwords_b": vectors.lengths[len(pairs) :]}
    columns |= {"identical": left == right, "zero": zero[left] | zero[right]}
    return pairs.assign(**columns)


def compared_elsewhere(task: Task, similarities: Mapping[str, NDArray[np.float64]]) -> pd.DataFrame:
    """Returns the items table of a task of n pairs with similarities from another program.

    The (n,) similarities are `GIVEN_SIMILARITY`, or some of `SIMILARITIES`; the others are NaN then.
    """
    assert task.pairs is not None, "only pairs have similarities"
    pairs = _without_similarities(task.kind, task.pairs)
    size = len(pairs)
    columns: dict[str, NDArray[Any]] = dict.fromkeys(("subwords_a", "subwords_b"), np.full(size, -1))
    columns |= dict.fromkeys(("identical", "zero"), np.zeros(size, dtype=bool))
    if GIVEN_SIMILARITY not in similarities:
        columns |= dict.fromkeys(SIMILARITIES, np.full(size, math.nan))
    return pairs.assign(**{**columns, **similarities})


def _without_similarities(kind: str, data: StsData) -> pd.DataFrame:
    pairs = with_spread(data.pairs)
    sides = {"a": pairs["sentence1"], "b": pairs["sentence2"]}
    # Pairs of split `all` have that split; their ids name the original one.
    columns = item_columns(kind, data, data.split, pairs["subset"], pairs["pair_id"], sides=list(sides.values()))
    others = [name for name in pairs.columns if name not in {*columns, "pair_id", "sentence1", "sentence2"}]
    columns |= {name: pairs[name].to_numpy() for name in others}
    for side, texts in sides.items():
        columns[f"words_{side}"] = [len(text.split()) for text in texts]
        columns[f"characters_{side}"] = [len(text) for text in texts]
    return pd.DataFrame(columns)


RATINGS = "ratings"
"""The column of `StsData.pairs` with the ratings of each pair, for data sets that publish them."""

COUNT, VARIANCE = "raters", "rater_variance"
"""Columns of the items table: the number of ratings, and their variance (NaN for a single rating)."""


def with_spread(pairs: pd.DataFrame) -> pd.DataFrame:
    """Replaces the column of ratings, if there is one, by their number and variance."""
    if RATINGS not in pairs.columns:
        return pairs
    ratings = pairs[RATINGS]
    spread = {COUNT: ratings.map(len).astype(np.float64), VARIANCE: ratings.map(_variance).astype(np.float64)}
    return pairs.drop(columns=RATINGS).assign(**spread)


def rater_part(pairs: pd.DataFrame) -> RaterPart | None:
    """Returns the raters' reliability and the ceiling of the score; None without published ratings."""
    if not {COUNT, VARIANCE} <= set(pairs.columns):
        return None
    counts, variances = (pairs[column].to_numpy(np.float64) for column in (COUNT, VARIANCE))
    rated = np.isfinite(variances) & (counts >= 2)
    if not rated.any():
        return None
    reliable = reliability(pairs["gold"].to_numpy(), counts, variances)
    highest = ceiling(reliable)
    return RaterPart(
        pairs=int(rated.sum()),
        ratings=float(counts[rated].mean()),
        reliability=None if math.isnan(reliable) else reliable,
        ceiling=None if math.isnan(highest) else highest,
    )


def _variance(ratings: tuple[float, ...]) -> float:
    return float(np.var(ratings, ddof=1)) if len(ratings) > 1 else math.nan


@dataclass(frozen=True)
class PairClassification(ComparedPairs):
    """Sentence pairs with the labels 1 (positive) and 0."""

    kind: ClassVar[str] = PAIR_CLASSIFICATION

    def demand_scorable(self) -> None:
        labels = sorted(set(self.data.pairs["gold"].tolist()))
        where = f"{self.data.task}, split {self.data.split}, text {self.data.text},"
        for label in labels:
            if label not in {0, 1}:
                raise UserError(
                    f"{where} has the score {label:g}, but average precision needs the labels 0 and 1: leave out "
                    "--metric ap, or give labels."
                )
        if len(labels) < 2:
            raise UserError(f"{where} has only one label: average precision needs both 0 and 1.")

    def meaning(self, settings: Settings) -> Meaning:
        return Meaning(self.data.split, "all", "ap", settings.protocol.similarity)

    @staticmethod
    def statistic(signature: Signature) -> AveragePrecision:
        return AveragePrecision(signature.similarity)

    @staticmethod
    def numbers(rows: Rows, how: Scoring) -> Numbers:
        """Returns average precision, and the accuracy at the best threshold."""
        similarity = how.signature.similarity
        precision = ItemsEstimate.of(AveragePrecision(similarity), rows.scored, how.intervals)
        accuracy = ItemsEstimate.of(ThresholdAccuracy(similarity), rows.scored, how.intervals)
        return Numbers((precision.number("ap"), accuracy.number("accuracy")), precision)
