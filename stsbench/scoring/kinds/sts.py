"""The STS tasks: pairs whose vectors are compared, and the correlation of that with the gold scores."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.data.sentences import sentences_in
from stsbench.data.tables import StsData
from stsbench.records.kinds import STS
from stsbench.records.parts import Number, RaterPart
from stsbench.records.signature import Signature
from stsbench.scoring.settings import GIVEN_SIMILARITY, Intervals, Settings
from stsbench.scoring.statistic import Support, kept, sharing_of
from stsbench.scoring.task import Items, Meaning, Numbers, Rows, Scoring, Task, Vectors, item_columns
from stsbench.statistics.correlations import (
    Aggregation,
    Metric,
    ceiling,
    correlate_task,
    members_of,
    reliability,
)
from stsbench.statistics.dependence import Sharing, variance
from stsbench.statistics.influence import TERMS, task_terms
from stsbench.statistics.intervals import Limits, correlation_interval
from stsbench.statistics.similarity import SIMILARITIES, pair_similarities, zero_rows

_METRICS: tuple[Metric, ...] = ("spearman", "pearson")
"""What every score is also taken by, whatever the protocol's metric."""


@dataclass(frozen=True)
class ComparedPairs:
    """What every task is whose pairs of vectors are compared."""

    data: StsData

    kind: ClassVar[str]
    is_trained: ClassVar[bool] = False
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
    """Scored sentence pairs, whose cosine (or another similarity) is held against the gold scores."""

    kind: ClassVar[str] = STS

    def demand_scorable(self) -> None:
        demand_spread(self.data)

    def meaning(self, settings: Settings) -> Meaning:
        protocol = settings.protocol
        return Meaning(self.data.split, protocol.aggregation, protocol.metric, protocol.similarity)

    @staticmethod
    def numbers(rows: Rows, how: Scoring) -> Numbers:
        """Return the correlations by every aggregation and of each subset."""
        return _numbers(rows.scored, how.signature, how.intervals)


def demand_spread(data: StsData) -> None:
    """Raise unless the gold scores of some pairs differ."""
    gold = data.pairs["gold"]
    where = f"{data.task}, split {data.split}, text {data.text},"
    if len(gold) < 2:
        raise UserError(
            f"{where} has {len(gold)} scored pairs: a correlation needs at least two; check its files."
        )
    if gold.min() == gold.max():
        raise UserError(
            f"{where} has the score {gold.iloc[0]:g} for every pair: a correlation needs scores that differ; "
            "check its files."
        )


def compared(task: ComparedPairs, vectors: Vectors) -> pd.DataFrame:
    """Return the items table of a task of pairs, n rows in the order of its data.

    Beside the columns that all rows have (see `item_columns`) they are gold; every similarity (float64); words,
    characters and subwords of either side (`words_a`, `words_b`, ...; sub-words -1 where unknown); `identical`
    (one token sequence on both sides) and `zero` (a zero vector on a side).
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
    """Return the items table of a task of n pairs whose similarities were computed elsewhere.

    They are (n,) by column: `GIVEN_SIMILARITY`, or some of `SIMILARITIES`, whose others are NaN then.
    """
    assert task.pairs is not None, "pairs are compared"
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
    # A pair of split `all` counts as that split's; its id tells where it came from.
    columns = item_columns(kind, data, data.split, pairs["subset"], pairs["pair_id"], sides=list(sides.values()))
    others = [name for name in pairs.columns if name not in {*columns, "pair_id", "sentence1", "sentence2"}]
    columns |= {name: pairs[name].to_numpy() for name in others}
    for side, texts in sides.items():
        columns[f"words_{side}"] = [len(text.split()) for text in texts]
        columns[f"characters_{side}"] = [len(text) for text in texts]
    return pd.DataFrame(columns)


def _numbers(pairs: pd.DataFrame, signature: Signature, intervals: Intervals) -> Numbers:
    """Return every correlation, with intervals of those by the headline's metric alone."""
    metric, aggregation = cast(Metric, signature.metric), cast(Aggregation, signature.aggregation)
    # Subsets in the order of the data, not of the alphabet: tables list them so.
    codes, names = pd.factorize(pairs["subset"])
    gold, values = pairs["gold"].to_numpy(), pairs[signature.similarity].to_numpy()
    metrics: list[Metric] = list(dict.fromkeys((metric, *_METRICS)))
    scores = {name: correlate_task(gold, values, codes, name) for name in metrics}
    whole = scores[metric]
    limits: dict[tuple[str, str, str], Limits] = {}
    support = Support(whole.aggregates[aggregation])
    if intervals.interval is not None:
        dependence, sharing = intervals.interval, sharing_of(pairs)

        def limits_of(value: float, terms: NDArray[np.float64], sharing: Sharing) -> Limits:
            spread = variance(terms, sharing, dependence)
            return correlation_interval(value, spread, len(terms), intervals.level, metric)

        terms = {by: task_terms(gold, values, codes, metric, by) for by in whole.aggregates}
        support = Support(support.value, terms[aggregation], sharing_of(pairs, folded=True))
        for by, value in whole.aggregates.items():
            limits[metric, by, ""] = limits_of(value, terms[by], sharing)
        for subset, value, rows in zip(names, whole.subsets.tolist(), members_of(codes, len(pairs)), strict=True):
            of_subset = TERMS[metric](gold[rows], values[rows])
            limits[metric, "", subset] = limits_of(value, of_subset, sharing.take(rows))
    numbers = [
        _number((name, by, ""), scores[name].aggregates[by], len(pairs), limits.get((name, by, "")))
        for by in dict.fromkeys((aggregation, *whole.aggregates))
        for name in scores
    ]
    for code, (subset, size) in enumerate(zip(names, np.bincount(codes).tolist(), strict=True)):
        numbers += [
            _number((name, "", subset), scores[name].subsets[code], size, limits.get((name, "", subset)))
            for name in scores
        ]
    return Numbers(tuple(numbers), support)


def _number(key: tuple[str, str, str], value: float, items: int, limits: Limits | None) -> Number:
    statistic, aggregation, subset = key
    return Number(
        statistic=statistic,
        aggregation=aggregation,
        subset=subset,
        # JSON has no NaN: an undefined correlation is null.
        value=None if math.isnan(value) else float(value),
        items=items,
        interval=limits and kept(limits),
        no_interval=(limits and limits.reason) or "",
    )


RATINGS = "ratings"
"""The column of `StsData.pairs` with each pair's ratings, of sets that publish them."""

COUNT, VARIANCE = "raters", "rater_variance"
"""What a pair table keeps of them: how many there are, and their variance (NaN of a single one)."""


def with_spread(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return a table of pairs with the number and the variance of the ratings in place of the ratings.

    A table without ratings is returned as it is.
    """
    if RATINGS not in pairs.columns:
        return pairs
    ratings = pairs[RATINGS]
    spread = {COUNT: ratings.map(len).astype(np.float64), VARIANCE: ratings.map(_variance).astype(np.float64)}
    return pairs.drop(columns=RATINGS).assign(**spread)


def rater_part(pairs: pd.DataFrame) -> RaterPart | None:
    """Return what a task's raters allow, from its rows of the pair table; None where no ratings are published."""
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
