"""Statistics: each turns items into a value and into one influence term per item; intervals follow from the terms.

A term is an item's first-order influence on the value, divided by the number of items; terms sum to 0 (see
`stsbench.statistics.influence`). Intervals also depend on which items share a sentence (`statistics.dependence`).
Within a task, sentences are compared as released; across tasks only by letters and digits, because two
releases may tokenise the same sentence differently.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.data.tables import FOLDED, SENTENCES
from stsbench.records.parts import Interval, Number
from stsbench.records.signature import Signature
from stsbench.scoring.settings import Intervals
from stsbench.statistics.correlations import (
    CORRELATIONS,
    Aggregation,
    Metric,
    average_precision,
    best_threshold,
    correlate_task,
)
from stsbench.statistics.dependence import Sharing, Variance, variance
from stsbench.statistics.estimate import mcnemar, steiger, williams
from stsbench.statistics.influence import mean_terms, ratio_terms, task_terms
from stsbench.statistics.intervals import Limits, correlation_interval, plain_interval, share_interval

Floats = NDArray[np.float64]


class EffectSize(NamedTuple):
    """An effect size: the scale on which values are subtracted, and its slope (Cohen 1988, chapters 4 and 6)."""

    name: str
    of: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]


COHENS_Q = EffectSize("q", np.arctanh, lambda correlations: 1 / (1 - correlations**2))
"""For two correlations: the difference of Fisher's z."""

COHENS_H = EffectSize(
    "h", lambda shares: 2 * np.arcsin(np.sqrt(shares)), lambda shares: 1 / np.sqrt(shares * (1 - shares))
)
"""For two shares: the difference of 2 arcsin(sqrt(share))."""


class IndependentTest(NamedTuple):
    """The result of a test of two models that treats items as independent; `name` is empty if there is no test."""

    name: str = ""
    p: float = math.nan
    details: Mapping[str, float] = {}


class Statistic(Protocol):
    """Turns items into a number and into influence terms.

    Attributes:
        effect: the effect size of a difference of two values; None if there is no common one.
        is_stratified: whether terms are centred within each subset, because intervals treat subsets as fixed.
    """

    effect: ClassVar[EffectSize | None] = None
    is_stratified: ClassVar[bool] = False

    @property
    def over_subsets(self) -> Aggregation:
        """How subsets are aggregated; `all` if items are pooled."""
        return "all"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the items table with the model's output."""

    @property
    def of_subset(self) -> "Statistic":
        """The statistic for a single subset."""
        return self

    def independent_test(self, values: Floats, a: pd.DataFrame, b: pd.DataFrame) -> IndependentTest:
        """Tests the difference of two models, treating items as independent.

        Args:
            values: (2,) the values of both models.
            a: the items of the first model.
            b: the same items of the second model, in the same order.
        """
        return IndependentTest()

    def value(self, items: pd.DataFrame) -> float:
        """Returns the value; NaN if it is undefined."""

    def terms(self, items: pd.DataFrame) -> Floats:
        """Returns (n,) influence terms; NaN if the value is undefined."""

    def influences(self, items: pd.DataFrame) -> Floats:
        """Returns (n,) first-order changes of the value from including each item."""
        return self.terms(items)

    def limits(self, value: float, spread: Variance, items: int, level: float) -> Limits:
        """Returns the confidence interval of the value, from its variance and the number of items."""


@dataclass(frozen=True)
class Correlation(Statistic):
    """The correlation of gold scores with a similarity, aggregated over subsets."""

    metric: Metric
    aggregation: Aggregation
    similarity: str

    effect: ClassVar[EffectSize | None] = COHENS_Q
    is_stratified: ClassVar[bool] = True

    @classmethod
    def of(cls, signature: Signature) -> "Correlation":
        """Returns the correlation that a signature names."""
        return cls(signature.metric, signature.aggregation, signature.similarity)  # type: ignore[arg-type]

    @property
    def over_subsets(self) -> Aggregation:
        return self.aggregation

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.similarity,)

    @property
    def of_subset(self) -> Statistic:
        """The correlation without aggregation."""
        return replace(self, aggregation="all")

    def independent_test(self, values: Floats, a: pd.DataFrame, b: pd.DataFrame) -> IndependentTest:
        """Williams' and Steiger's tests of two dependent correlations.

        A mean over subsets is not a correlation, and there is no such test for Kendall's tau.
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
        return correlate_task(gold, similarity, codes, self.metric)[self.aggregation]

    def terms(self, items: pd.DataFrame) -> Floats:
        return task_terms(*self._columns_of(items), self.metric, self.aggregation)

    def influences(self, items: pd.DataFrame) -> Floats:
        """Returns terms without centring by subset, because the position of a subset changes the score, too."""
        return task_terms(*self._columns_of(items), self.metric, self.aggregation, by_subset=False)

    def _columns_of(self, items: pd.DataFrame) -> tuple[Floats, Floats, NDArray[np.intp]]:
        """Returns gold scores, similarities and subset codes."""
        return items["gold"].to_numpy(), items[self.similarity].to_numpy(), pd.factorize(items["subset"])[0]

    def limits(self, value: float, spread: Variance, items: int, level: float) -> Limits:
        """Returns the interval on Fisher's scale."""
        return correlation_interval(value, spread, items, level, self.metric)


class Share(Statistic, Protocol):
    """A number between 0 and 1 with Wilson's interval."""

    def limits(self, value: float, spread: Variance, items: int, level: float) -> Limits:
        return share_interval(value, spread, items, level)


@dataclass(frozen=True)
class SimilarityShare(Share):
    """A share that depends on labels and a similarity."""

    similarity: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.similarity,)

    def _columns_of(self, items: pd.DataFrame) -> tuple[Floats, Floats]:
        """Returns labels and similarities."""
        return items["gold"].to_numpy(), items[self.similarity].to_numpy()


@dataclass(frozen=True)
class Accuracy(Share):
    """The share of correct items."""

    effect: ClassVar[EffectSize | None] = COHENS_H
    columns = ("correct",)

    def independent_test(self, values: Floats, a: pd.DataFrame, b: pd.DataFrame) -> IndependentTest:
        """McNemar's test."""
        result = mcnemar(*((side["correct"] > 0).to_numpy() for side in (a, b)))
        counts = {"only_a": float(result.only_first), "only_b": float(result.only_second)}
        return IndependentTest("mcnemar", result.p_value, counts)

    def value(self, items: pd.DataFrame) -> float:
        return float(items["correct"].to_numpy().mean())

    def terms(self, items: pd.DataFrame) -> Floats:
        return mean_terms(items["correct"].to_numpy())


@dataclass(frozen=True)
class F1(Share):
    """The harmonic mean of precision and recall for one class; 0 if nothing is positive."""

    positive: str

    columns = ("prediction",)

    def _sums(self, items: pd.DataFrame) -> tuple[Floats, Floats]:
        """Returns each item's contribution to the numerator and the denominator of F1."""
        predicted, actual = (
            np.asarray(items[name] == self.positive, dtype=bool) for name in ("prediction", "label")
        )
        return 2.0 * (predicted & actual), predicted.astype(np.float64) + actual

    def value(self, items: pd.DataFrame) -> float:
        numerator, denominator = self._sums(items)
        return float(numerator.sum() / max(denominator.sum(), 1.0))

    def terms(self, items: pd.DataFrame) -> Floats:
        return ratio_terms(*self._sums(items))


class AveragePrecision(SimilarityShare):
    """The mean precision at the positive pairs, ranked by decreasing similarity."""

    def value(self, items: pd.DataFrame) -> float:
        return average_precision(*self._columns_of(items))[0]

    def terms(self, items: pd.DataFrame) -> Floats:
        return average_precision(*self._columns_of(items))[1]


class ThresholdAccuracy(SimilarityShare):
    """The accuracy at the best threshold of a similarity.

    The threshold is chosen on the same pairs; to first order this does not change the terms.
    """

    effect: ClassVar[EffectSize | None] = COHENS_H

    def value(self, items: pd.DataFrame) -> float:
        return best_threshold(*self._columns_of(items)).accuracy

    def terms(self, items: pd.DataFrame) -> Floats:
        gold, similarity = self._columns_of(items)
        correct = (similarity >= best_threshold(gold, similarity).threshold) == (gold > 0)
        return mean_terms(correct.astype(np.float64))


@dataclass(frozen=True)
class Mean(Statistic):
    """The mean of a column of scores."""

    column: str = "score"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def value(self, items: pd.DataFrame) -> float:
        return float(items[self.column].to_numpy().mean())

    def terms(self, items: pd.DataFrame) -> Floats:
        return mean_terms(items[self.column].to_numpy())

    def limits(self, value: float, spread: Variance, items: int, level: float) -> Limits:
        return plain_interval(value, spread, level)


@dataclass(frozen=True)
class MeanShare(Mean):
    """The mean of scores between 0 and 1, such as nDCG per query, with Wilson's interval.

    The plain interval would exceed 1 near the top.
    """

    def limits(self, value: float, spread: Variance, items: int, level: float) -> Limits:
        return share_interval(value, spread, items, level)


def sharing_of(table: pd.DataFrame, *, folded: bool = False) -> Sharing:
    """Returns which rows share sentences, compared as released or only by letters and digits (`folded`)."""
    first, second = (np.asarray(table[side], dtype=np.uint64) for side in (FOLDED if folded else SENTENCES))
    return Sharing.of(first, second)


@dataclass(frozen=True, eq=False)
class ItemsEstimate:
    """The value of a statistic on some items, with its interval.

    Attributes:
        value: the value; NaN if it is undefined.
        items: the items.
        terms: (n,) influence terms; None without intervals.
        limits: the confidence interval; None without intervals.
    """

    value: float
    items: pd.DataFrame
    terms: Floats | None = None
    limits: Limits | None = None

    @classmethod
    def of(
        cls, statistic: Statistic, items: pd.DataFrame, intervals: Intervals, sharing: Sharing | None = None
    ) -> "ItemsEstimate":
        """Computes a statistic; `sharing` is by default that of the items."""
        value = float(statistic.value(items))
        if intervals.interval is None:
            return cls(value, items)
        terms = statistic.terms(items)
        spread = variance(terms, sharing or sharing_of(items), intervals.interval)
        return cls(value, items, terms, statistic.limits(value, spread, len(items), intervals.level))

    @property
    def interval(self) -> Interval | None:
        """The interval as a record stores it; None if there is none."""
        return _interval(self.limits) if self.limits else None

    def number(self, statistic: str, aggregation: str = "", subset: str = "") -> Number:
        """Returns the number as a record stores it."""
        return Number(
            statistic=statistic,
            aggregation=aggregation,
            subset=subset,
            # JSON has no NaN; an undefined value is null.
            value=None if math.isnan(self.value) else self.value,
            items=len(self.items),
            interval=self.interval,
            no_interval=(self.limits and self.limits.reason) or "",
        )


def mean_interval(
    estimates: Sequence[ItemsEstimate], intervals: Intervals, bounds: tuple[float, float] = (-1.0, 1.0)
) -> Interval | None:
    """Returns the interval of a mean over tasks, clipped to `bounds`; None without intervals.

    Pairs that share a sentence are dependent across tasks, too.
    """
    terms = [estimate.terms for estimate in estimates if estimate.terms is not None]
    if intervals.interval is None or len(terms) < len(estimates):
        return None
    value = float(np.mean([estimate.value for estimate in estimates]))
    sharing = Sharing.join([sharing_of(estimate.items, folded=True) for estimate in estimates])
    spread = variance(np.concatenate(terms) / len(estimates), sharing, intervals.interval)
    limits = _interval(plain_interval(value, spread, intervals.level))
    return limits and (max(limits[0], bounds[0]), min(limits[1], bounds[1]))


def _interval(limits: Limits) -> Interval | None:
    return (limits.low, limits.high) if limits.exists else None
