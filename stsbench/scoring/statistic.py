"""The statistics: each turns items into a value and into each item's term, from which every interval is made.

A term is an item's first-order influence on the value, divided by the number of items; terms sum to 0 (see
`stsbench.statistics.influence`).
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stsbench.data.plain_table import PlainTable, coded
from stsbench.records.signature import Signature
from stsbench.statistics.aggregation import Aggregation, correlate_task
from stsbench.statistics.correlations import CORRELATIONS, Metric
from stsbench.statistics.dependence import Variance
from stsbench.statistics.influence import mean_terms, ratio_terms, task_terms
from stsbench.statistics.intervals import Limits, correlation_interval, plain_interval, share_interval
from stsbench.statistics.precision import average_precision, average_precision_terms, best_threshold

Floats = NDArray[np.float64]


class Statistic(Protocol):
    """What turns items into a number."""

    def value(self, items: PlainTable) -> float:
        """Return the number; NaN where it is undefined."""

    def terms(self, items: PlainTable) -> Floats:
        """Return (n,) terms, one an item; NaN where the number is undefined."""

    def limits(self, value: float, spread: Variance, items: int, level: float) -> Limits:
        """Return the interval of the number, from its variance and the number of items."""


@dataclass(frozen=True)
class Correlation:
    """The correlation of gold scores and a similarity, by the subsets' aggregation."""

    metric: Metric
    aggregation: Aggregation
    similarity: str

    def value(self, items: PlainTable) -> float:
        """Return the correlation."""
        codes = coded(items["subset"])[1]
        return correlate_task(items["gold"], items[self.similarity], codes, self.metric).aggregates[
            self.aggregation
        ]

    def terms(self, items: PlainTable) -> Floats:
        """Return each pair's term."""
        codes = coded(items["subset"])[1]
        return task_terms(items["gold"], items[self.similarity], codes, self.metric, self.aggregation)

    def limits(self, value: float, spread: Variance, items: int, level: float) -> Limits:
        """Return the interval on Fisher's scale."""
        return correlation_interval(value, spread, items, level, self.metric)


@dataclass(frozen=True)
class Accuracy:
    """The share of items that are right."""

    def value(self, items: PlainTable) -> float:
        """Return the share."""
        return float(items["correct"].mean())

    def terms(self, items: PlainTable) -> Floats:
        """Return each item's term."""
        return mean_terms(items["correct"])

    def limits(self, value: float, spread: Variance, items: int, level: float) -> Limits:
        """Return Wilson's interval."""
        return share_interval(value, spread, items, level)


@dataclass(frozen=True)
class F1:
    """The harmonic mean of precision and recall of one class."""

    positive: str

    def shares(self, items: PlainTable) -> tuple[Floats, Floats]:
        """Return what each item adds to the upper and to the lower sum of F1."""
        said, is_ = (np.asarray(items[name] == self.positive, dtype=bool) for name in ("prediction", "label"))
        return 2.0 * (said & is_), said.astype(np.float64) + is_

    def value(self, items: PlainTable) -> float:
        """Return F1; 0 where nothing is positive."""
        above, below = self.shares(items)
        return float(above.sum() / max(below.sum(), 1.0))

    def terms(self, items: PlainTable) -> Floats:
        """Return each item's term."""
        return ratio_terms(*self.shares(items))

    def limits(self, value: float, spread: Variance, items: int, level: float) -> Limits:
        """Return Wilson's interval."""
        return share_interval(value, spread, items, level)


@dataclass(frozen=True)
class AveragePrecision:
    """The mean precision at the pairs that belong together, by falling similarity."""

    similarity: str

    def value(self, items: PlainTable) -> float:
        """Return the average precision."""
        return average_precision(items["gold"], items[self.similarity])

    def terms(self, items: PlainTable) -> Floats:
        """Return each pair's term."""
        return average_precision_terms(items["gold"], items[self.similarity])

    def limits(self, value: float, spread: Variance, items: int, level: float) -> Limits:
        """Return Wilson's interval."""
        return share_interval(value, spread, items, level)


@dataclass(frozen=True)
class ThresholdAccuracy:
    """The share of pairs that the best threshold of a similarity puts right.

    The threshold is chosen on the same pairs: it moves the share by nothing of first order.
    """

    similarity: str

    def _correct(self, items: PlainTable) -> Floats:
        threshold = best_threshold(items["gold"], items[self.similarity]).threshold
        right: Floats = ((items[self.similarity] >= threshold) == (items["gold"] > 0)).astype(np.float64)
        return right

    def value(self, items: PlainTable) -> float:
        """Return the share."""
        return best_threshold(items["gold"], items[self.similarity]).accuracy

    def terms(self, items: PlainTable) -> Floats:
        """Return each pair's term."""
        return mean_terms(self._correct(items))

    def limits(self, value: float, spread: Variance, items: int, level: float) -> Limits:
        """Return Wilson's interval."""
        return share_interval(value, spread, items, level)


@dataclass(frozen=True)
class Mean:
    """The mean of what another tool gave each item."""

    def value(self, items: PlainTable) -> float:
        """Return the mean."""
        return float(items["score"].mean())

    def terms(self, items: PlainTable) -> Floats:
        """Return each item's term."""
        return mean_terms(items["score"])

    def limits(self, value: float, spread: Variance, items: int, level: float) -> Limits:
        """Return the interval of a mean."""
        return plain_interval(value, spread, level)


def statistic_of(signature: Signature) -> Statistic:
    """Return the statistic of a headline.

    Raises:
        ValueError: if there is none of that name.

    >>> text = "STS16:test:all|spearman|cosine|text:senteval|data:3f2a91||avg|len256|fp32|stsbench:0.9.0"
    >>> statistic_of(Signature.parse(text))
    Correlation(metric='spearman', aggregation='all', similarity='cosine')
    """
    metric, similarity = signature.metric, signature.similarity
    if metric in CORRELATIONS:
        return Correlation(metric, signature.aggregation, similarity)  # type: ignore[arg-type]
    others: dict[str, Statistic] = {
        "acc": Accuracy(),
        "ap": AveragePrecision(similarity),
        "mean": Mean(),
    }
    if metric not in others:
        raise ValueError(f"there is no statistic {metric!r}")
    return others[metric]
