"""One interval for one number: what `run` records, and every analysis and comparison shows again.

The interval is of new pairs from the same subsets, with new sentences and the same pattern of sharing; the subsets
are fixed. It rests on what each pair contributes to a score (`statistics.influence`) and on which pairs share a
sentence (`statistics.dependence`): of one task sentences as released, of several by their letters and digits, as
two releases tokenise one sentence differently.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stsbench.data.shared import FOLDED, SENTENCES
from stsbench.records.parts import Interval
from stsbench.scoring.settings import Intervals
from stsbench.statistics.dependence import Dependence, Sharing, Variance, variance
from stsbench.statistics.intervals import Limits, plain_interval

if TYPE_CHECKING:
    import pandas as pd

    from stsbench.data.tables import PlainTable
    from stsbench.scoring.statistic import Statistic

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Support:
    """What the interval of one score rests on, kept for an average or a difference.

    Attributes:
        value: the score.
        terms: (n,) each row's term of it; None where no intervals were asked for, and so are the next two.
        sharing: which rows share a sentence as released.
        folded: which do by letters and digits, comparable across tasks.
    """

    value: float
    terms: Floats | None = None
    sharing: Sharing | None = None
    folded: Sharing | None = None


def sharing_of(table: "PlainTable | pd.DataFrame", *, folded: bool = False) -> Sharing:
    """Return which rows of a pair or item table share sentences.

    Args:
        table: n pairs or items.
        folded: whether by letters and digits alone, as between tasks.
    """
    first, second = FOLDED if folded else SENTENCES
    return Sharing.of(np.asarray(table[first]), np.asarray(table[second]))


def interval_of(
    statistic: "Statistic", items: "PlainTable", intervals: Intervals
) -> tuple[Interval | None, Support]:
    """Return the interval of a statistic of some items, and what it rests on."""
    value = statistic.value(items)
    if intervals.interval is None:
        return None, Support(value)
    terms, sharing = statistic.terms(items), sharing_of(items)
    spread = variance(terms, sharing, intervals.interval)
    limits = kept(statistic.limits(value, spread, len(items), intervals.level))
    return limits, Support(value, terms, sharing, sharing_of(items, folded=True))


def mean_support(scores: Sequence[Support]) -> Support:
    """Return what the interval of the plain mean of several tasks' scores rests on.

    Pairs of two tasks that share a sentence depend on each other as those of one task do.
    """
    value = float(np.mean([score.value for score in scores]))
    terms = [score.terms for score in scores if score.terms is not None]
    folded = [score.folded for score in scores if score.folded is not None]
    if not len(terms) == len(folded) == len(scores):
        return Support(value)
    joined = Sharing.join(folded)
    return Support(value, np.concatenate(terms) / len(scores), joined, joined)


def mean_limits(
    scores: Sequence[Support], intervals: Intervals, bounds: tuple[float, float] = (-1.0, 1.0)
) -> Interval | None:
    """Return the interval of the plain mean of several tasks' scores, None where one has no support.

    Args:
        scores: what each task's rests on.
        intervals: how intervals are computed.
        bounds: what a mean can be at all.
    """
    whole = mean_support(scores)
    if whole.terms is None or whole.sharing is None or intervals.interval is None:
        return None
    spread = variance(whole.terms, whole.sharing, intervals.interval)
    limits = kept(plain_interval(whole.value, spread, intervals.level))
    return limits and (max(limits[0], bounds[0]), min(limits[1], bounds[1]))


def kept(limits: Limits) -> Interval | None:
    """Return an interval as a record keeps it: None where there is none."""
    return (limits.low, limits.high) if limits.exists else None


def as_variances(terms: Floats, sharing: Sharing) -> dict[Dependence, Variance]:
    """Return the variance of one statistic by each way to see pairs that share sentences."""
    methods: tuple[Dependence, ...] = ("dyadic", "components", "independent")
    return {method: variance(terms, sharing, method) for method in methods}
