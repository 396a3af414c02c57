"""The statistics: each turns items into a value and into each item's term, from which every interval is made.

A term is an item's first-order influence on the value, divided by the number of items; terms sum to 0 (see
`stsbench.statistics.influence`). The interval is of new pairs from the same subsets, with new sentences and the
same pattern of sharing; the subsets are fixed. It rests on the terms and on which items share a sentence
(`statistics.dependence`): of one task sentences as released, of several by their letters and digits, as two
releases tokenise one sentence differently.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.data.shared import FOLDED, SENTENCES
from stsbench.records.parts import Interval, Number
from stsbench.records.signature import Signature
from stsbench.scoring.settings import GIVEN_SIMILARITY, INTERVALS, Intervals
from stsbench.statistics.correlations import CORRELATIONS, Aggregation, Metric, correlate_task
from stsbench.statistics.dependence import Dependence, Sharing, Variance, variance
from stsbench.statistics.influence import mean_terms, ratio_terms, task_terms
from stsbench.statistics.intervals import Limits, correlation_interval, plain_interval, share_interval
from stsbench.statistics.precision import average_precision, average_precision_terms, best_threshold
from stsbench.statistics.significance import mcnemar, steiger, williams

Floats = NDArray[np.float64]


class EffectSize(NamedTuple):
    """The scale on which two values differ by an effect size, and its slope (Cohen 1988, chapters 4 and 6)."""

    name: str
    of: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]


COHENS_Q = EffectSize("q", np.arctanh, lambda correlations: 1 / (1 - correlations**2))
"""Of two correlations: the difference by Fisher's z."""

COHENS_H = EffectSize(
    "h", lambda shares: 2 * np.arcsin(np.sqrt(shares)), lambda shares: 1 / np.sqrt(shares * (1 - shares))
)
"""Of two shares: the difference of twice the arcsine of the root."""


class IndependentTest(NamedTuple):
    """What a test of two models found that takes items for independent; `name` is empty where none is known."""

    name: str = ""
    p: float = math.nan
    details: Mapping[str, float] = {}


class Statistic(Protocol):
    """What turns items into a number.

    Attributes:
        effect: how large a difference of two values is; None where there is no usual measure of it.
        is_stratified: whether terms are centred in each subset: intervals take the subsets for given.
    """

    effect: ClassVar[EffectSize | None] = None
    is_stratified: ClassVar[bool] = False

    @property
    def over_subsets(self) -> Aggregation:
        """How the subsets make the number; `all` where all items do at once."""
        return "all"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the items that hold what the model says of them."""

    @property
    def of_subset(self) -> "Statistic":
        """The statistic of one subset alone."""
        return self

    def independent_test(self, values: Floats, a: pd.DataFrame, b: pd.DataFrame) -> IndependentTest:
        """Test two models, taking items for independent.

        Args:
            values: (2,) of the two.
            a: the items as the one has them.
            b: the same items in the same order, as the other has them.
        """
        return IndependentTest()

    def value(self, items: pd.DataFrame) -> float:
        """Return the number; NaN where it is undefined."""

    def terms(self, items: pd.DataFrame) -> Floats:
        """Return (n,) terms, one an item; NaN where the number is undefined."""

    def influences(self, items: pd.DataFrame) -> Floats:
        """Return (n,) how much higher the number is, to first order, for each item's being there."""
        return self.terms(items)

    def limits(self, value: float, spread: Variance, items: int, level: float) -> Limits:
        """Return the interval of the number, from its variance and the number of items."""


@dataclass(frozen=True)
class Correlation(Statistic):
    """The correlation of gold scores and a similarity, by the subsets' aggregation."""

    metric: Metric
    aggregation: Aggregation
    similarity: str

    effect: ClassVar[EffectSize | None] = COHENS_Q
    is_stratified: ClassVar[bool] = True

    @property
    def over_subsets(self) -> Aggregation:
        return self.aggregation

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.similarity,)

    @property
    def of_subset(self) -> Statistic:
        """The correlation itself, of which nothing is aggregated."""
        return replace(self, aggregation="all")

    def independent_test(self, values: Floats, a: pd.DataFrame, b: pd.DataFrame) -> IndependentTest:
        """Return Williams' and Steiger's tests of two dependent correlations.

        There is none of a mean over subsets, which is no correlation, and none is known for Kendall's.
        """
        if self.metric == "kendall" or (self.aggregation != "all" and a["subset"].nunique() > 1):
            return IndependentTest()
        between = CORRELATIONS[self.metric](a[self.similarity].to_numpy(), b[self.similarity].to_numpy())
        first, second = values.tolist()
        by_williams, by_steiger = (
            test(second, first, between, len(a), ranks=self.metric == "spearman") for test in (williams, steiger)
        )
        details = {
            "correlation_between": between,
            "williams_t": by_williams.statistic,
            "steiger_z": by_steiger.statistic,
            "steiger_p": by_steiger.p_value,
        }
        return IndependentTest("williams", by_williams.p_value, details)

    def value(self, items: pd.DataFrame) -> float:
        gold, similarity, codes = self._columns_of(items)
        if self.aggregation == "all":
            return CORRELATIONS[self.metric](gold, similarity)
        return correlate_task(gold, similarity, codes, self.metric).aggregates[self.aggregation]

    def terms(self, items: pd.DataFrame) -> Floats:
        return task_terms(*self._columns_of(items), self.metric, self.aggregation)

    def influences(self, items: pd.DataFrame) -> Floats:
        """Return the terms, not centred in each subset: where a subset lies moves the score, too."""
        return task_terms(*self._columns_of(items), self.metric, self.aggregation, by_subset=False)

    def _columns_of(self, items: pd.DataFrame) -> tuple[Floats, Floats, NDArray[np.intp]]:
        """Return gold scores, similarities and the code of each pair's subset."""
        return items["gold"].to_numpy(), items[self.similarity].to_numpy(), pd.factorize(items["subset"])[0]

    def limits(self, value: float, spread: Variance, items: int, level: float) -> Limits:
        """Return the interval on Fisher's scale."""
        return correlation_interval(value, spread, items, level, self.metric)


class Share(Statistic, Protocol):
    """A number between 0 and 1, or the like of one, whose interval is Wilson's."""

    def limits(self, value: float, spread: Variance, items: int, level: float) -> Limits:
        """Return Wilson's interval."""
        return share_interval(value, spread, items, level)


@dataclass(frozen=True)
class Accuracy(Share):
    """The share of items that are right."""

    effect: ClassVar[EffectSize | None] = COHENS_H
    columns = ("correct",)

    def independent_test(self, values: Floats, a: pd.DataFrame, b: pd.DataFrame) -> IndependentTest:
        """Return McNemar's test."""
        result = mcnemar(*((side["correct"] > 0).to_numpy() for side in (a, b)))
        counts = {"only_a": float(result.only_first), "only_b": float(result.only_second)}
        return IndependentTest("mcnemar", result.p_value, counts)

    def value(self, items: pd.DataFrame) -> float:
        return float(items["correct"].to_numpy().mean())

    def terms(self, items: pd.DataFrame) -> Floats:
        return mean_terms(items["correct"].to_numpy())


@dataclass(frozen=True)
class F1(Share):
    """The harmonic mean of precision and recall of one class; 0 where nothing is positive."""

    positive: str

    columns = ("prediction",)

    def _sums(self, items: pd.DataFrame) -> tuple[Floats, Floats]:
        """Return what each item adds to the upper and to the lower sum of F1."""
        said, is_ = (np.asarray(items[name] == self.positive, dtype=bool) for name in ("prediction", "label"))
        return 2.0 * (said & is_), said.astype(np.float64) + is_

    def value(self, items: pd.DataFrame) -> float:
        above, below = self._sums(items)
        return float(above.sum() / max(below.sum(), 1.0))

    def terms(self, items: pd.DataFrame) -> Floats:
        return ratio_terms(*self._sums(items))


@dataclass(frozen=True)
class AveragePrecision(Share):
    """The mean precision at the pairs that belong together, by falling similarity."""

    similarity: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.similarity,)

    def value(self, items: pd.DataFrame) -> float:
        return average_precision(items["gold"].to_numpy(), items[self.similarity].to_numpy())

    def terms(self, items: pd.DataFrame) -> Floats:
        return average_precision_terms(items["gold"].to_numpy(), items[self.similarity].to_numpy())


@dataclass(frozen=True)
class ThresholdAccuracy(Share):
    """The share of pairs that the best threshold of a similarity puts right.

    The threshold is chosen on the same pairs: it moves the share by nothing of first order.
    """

    similarity: str

    effect: ClassVar[EffectSize | None] = COHENS_H

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.similarity,)

    def value(self, items: pd.DataFrame) -> float:
        return best_threshold(items["gold"].to_numpy(), items[self.similarity].to_numpy()).accuracy

    def terms(self, items: pd.DataFrame) -> Floats:
        gold, similarity = items["gold"].to_numpy(), items[self.similarity].to_numpy()
        right = (similarity >= best_threshold(gold, similarity).threshold) == (gold > 0)
        return mean_terms(right.astype(np.float64))


@dataclass(frozen=True)
class Mean(Statistic):
    """The mean of what another tool gave each item."""

    columns = ("score",)

    def value(self, items: pd.DataFrame) -> float:
        return float(items["score"].to_numpy().mean())

    def terms(self, items: pd.DataFrame) -> Floats:
        return mean_terms(items["score"].to_numpy())

    def limits(self, value: float, spread: Variance, items: int, level: float) -> Limits:
        return plain_interval(value, spread, level)


@dataclass(frozen=True)
class MeanShare(Mean):
    """The mean of numbers from 0 to 1 that another tool's measure gave each item: nDCG of a query, say.

    Its interval is Wilson's, as of a share: the plain one would go beyond 1 near the top.
    """

    def limits(self, value: float, spread: Variance, items: int, level: float) -> Limits:
        return share_interval(value, spread, items, level)


def statistic_of(signature: Signature) -> Statistic:
    """Return the statistic of a headline.

    >>> text = "STS16:test:all|spearman|cosine|text:senteval|data:3f2a91||avg|len256|fp32|stsbench:0.9.0"
    >>> statistic_of(Signature.parse(text))
    Correlation(metric='spearman', aggregation='all', similarity='cosine')
    """
    metric, similarity = signature.metric, signature.similarity
    if metric in CORRELATIONS:
        return Correlation(metric, signature.aggregation, similarity)  # type: ignore[arg-type]
    others: dict[str, Statistic] = {"acc": Accuracy(), "ap": AveragePrecision(similarity), "mean": Mean()}
    # Of given items that were measured the measure has the headline's name (`ndcg_at_10`, say).
    return MeanShare() if similarity == GIVEN_SIMILARITY and metric not in others else others[metric]


@dataclass(frozen=True, eq=False)
class Support:
    """What the interval of one score rests on, kept for an average.

    Attributes:
        value: the score.
        terms: (n,) each row's term of it; None where no intervals were asked for, and so is the next.
        folded: which rows share a sentence by letters and digits, comparable across tasks.
    """

    value: float
    terms: Floats | None = None
    folded: Sharing | None = None


def sharing_of(table: pd.DataFrame, *, folded: bool = False) -> Sharing:
    """Return which rows of a table share sentences: as released, or by letters and digits alone."""
    first, second = (np.asarray(table[side], dtype=np.uint64) for side in (FOLDED if folded else SENTENCES))
    return _sharing(first.tobytes(), second.tobytes())


@lru_cache(maxsize=64)
def _sharing(first: bytes, second: bytes) -> Sharing:
    """Return the sharing of sentences by their numbers: many records are of the same pairs."""
    return Sharing.of(np.frombuffer(first, dtype=np.uint64), np.frombuffer(second, dtype=np.uint64))


def interval_of(
    statistic: Statistic, items: pd.DataFrame, intervals: Intervals
) -> tuple[Interval | None, Support]:
    """Return the interval of a statistic of some items, and what it rests on."""
    value = statistic.value(items)
    if intervals.interval is None:
        return None, Support(value)
    terms = statistic.terms(items)
    spread = variance(terms, sharing_of(items), intervals.interval)
    limits = kept(statistic.limits(value, spread, len(items), intervals.level))
    return limits, Support(value, terms, sharing_of(items, folded=True))


def number_of(
    name: str, statistic: Statistic, items: pd.DataFrame, intervals: Intervals
) -> tuple[Number, Support]:
    """Return a statistic of some items as a record holds it, and what its interval rests on."""
    interval, support = interval_of(statistic, items, intervals)
    # JSON has no NaN: an undefined number is null.
    value = None if math.isnan(support.value) else support.value
    return Number(statistic=name, value=value, items=len(items), interval=interval), support


def mean_limits(
    scores: Sequence[Support], intervals: Intervals, bounds: tuple[float, float] = (-1.0, 1.0)
) -> Interval | None:
    """Return the interval of the plain mean of several tasks' scores, within what a mean can be at all.

    Pairs of two tasks that share a sentence depend on each other as those of one task do. There is no interval
    where a score has no support.
    """
    terms = [score.terms for score in scores if score.terms is not None]
    folded = [score.folded for score in scores if score.folded is not None]
    if intervals.interval is None or not len(terms) == len(folded) == len(scores):
        return None
    value = float(np.mean([score.value for score in scores]))
    spread = variance(np.concatenate(terms) / len(scores), Sharing.join(folded), intervals.interval)
    limits = kept(plain_interval(value, spread, intervals.level))
    return limits and (max(limits[0], bounds[0]), min(limits[1], bounds[1]))


def kept(limits: Limits) -> Interval | None:
    """Return an interval as a record keeps it: None where there is none."""
    return (limits.low, limits.high) if limits.exists else None


def as_variances(terms: Floats, sharing: Sharing) -> dict[Dependence, Variance]:
    """Return the variance of one statistic by each way to see pairs that share sentences."""
    return {method: variance(terms, sharing, method) for method in INTERVALS}
