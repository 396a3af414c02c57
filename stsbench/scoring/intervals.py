"""One interval for one number: what `run` records, and every analysis and comparison shows again.

The interval is of new pairs from the same subsets, with new sentences and the same pattern of sharing; the subsets
are fixed. It rests on what each pair contributes to a score (`statistics.influence`) and on which pairs share a
sentence (`statistics.dependence`): of one task sentences as released, of several by their letters and digits, as
two releases tokenise one sentence differently. What has no such terms (Kendall's tau), and tables of versions that
kept no numbers for the sentences, have the bootstrap over pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from stsbench.data.sentence_ids import FOLDED, SENTENCES, has_ids
from stsbench.records.parts import Interval
from stsbench.scoring.settings import Bootstrap
from stsbench.statistics.bootstrap import bootstrap_ratio, generator
from stsbench.statistics.dependence import Dependence, Sharing, Variance, variance
from stsbench.statistics.influence import TERMS, mean_terms, ratio_terms
from stsbench.statistics.intervals import (
    IntervalMethod,
    Limits,
    correlation_interval,
    no_limits,
    plain_interval,
    share_interval,
)

if TYPE_CHECKING:
    import pandas as pd

    from stsbench.data.plain_table import PlainTable
    from stsbench.statistics.correlations import Metric

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Support:
    """What the interval of one score rests on, kept for an average or a difference.

    Attributes:
        value: the score.
        terms: (n,) each row's term of it; None where the interval is the bootstrap's.
        sharing: which rows share a sentence as released.
        folded: which do by letters and digits, comparable across tasks.
        replicates: (resamples,) of the bootstrap, where the interval is that.
    """

    value: float
    terms: Floats | None = None
    sharing: Sharing | None = None
    folded: Sharing | None = None
    replicates: Floats | None = None


def method_of(bootstrap: Bootstrap, table: "PlainTable | pd.DataFrame", metric: str = "") -> IntervalMethod:
    """Return how the intervals of a table's scores are computed: as asked, or by the bootstrap if that cannot be.

    Args:
        bootstrap: what was asked.
        table: pairs or items.
        metric: of the correlation; empty for an accuracy.
    """
    if metric and metric not in TERMS:
        return "bootstrap"
    # Independent pairs need no numbers that say what they share.
    return bootstrap.interval if has_ids(table) or bootstrap.interval == "independent" else "bootstrap"


def sharing_of(table: "PlainTable | pd.DataFrame", *, folded: bool = False) -> Sharing:
    """Return which rows of a pair or item table share sentences; none do where the table does not say.

    Args:
        table: n pairs or items.
        folded: whether by letters and digits alone, as between tasks.
    """
    if not has_ids(table):
        return Sharing.independent(len(table))
    first, second = FOLDED if folded else SENTENCES
    return Sharing.of(np.asarray(table[first]), np.asarray(table[second]))


def correlation_limits(
    value: float, found: Variance, pairs: int, metric: "Metric", bootstrap: Bootstrap
) -> Limits:
    """Return the interval of a correlation of so many pairs, or of a mean of such over subsets."""
    name: Literal["spearman", "pearson"] = "pearson" if metric == "pearson" else "spearman"
    return correlation_interval(value, found, pairs, bootstrap.level, name)


def guarded(limits: Interval | None, value: float, pairs: int) -> Limits:
    """Return a bootstrap interval of a correlation; none, with the reason, where resampling cannot know it.

    Every resample of pairs in perfect order is in perfect order: the bootstrap would be sure of it.
    """
    if np.isnan(value):
        return no_limits("undefined")
    if pairs < 4:
        return no_limits("few pairs")
    if abs(value) >= 1:
        return no_limits("perfect")
    return no_limits("undefined") if limits is None else Limits(*limits)


def share_limits(
    above: NDArray[np.generic],
    below: Floats | None,
    table: "pd.DataFrame",
    names: tuple[str, str],
    bootstrap: Bootstrap,
) -> tuple[Interval | None, Support]:
    """Return the interval of an accuracy or of F1, from 0 to 1, and what it rests on.

    Args:
        above: (n,) whether each item is right; of F1 the shares of its upper sum.
        below: (n,) the shares of the lower sum; None for the mean of `above`.
        table: the n items.
        names: task and score, which the bootstrap's draws depend on.
        bootstrap: how intervals are computed.
    """
    upper = np.asarray(above, dtype=np.float64)
    lower = np.ones(len(upper)) if below is None else below
    value = float(upper.sum() / lower.sum()) if lower.sum() else float("nan")
    if not bootstrap.resamples:
        return None, Support(value)
    method = method_of(bootstrap, table)
    if method == "bootstrap":
        rng = generator(bootstrap.seed, *names)
        drawn = bootstrap_ratio(above, 1.0 if below is None else below, rng=rng, resamples=bootstrap.resamples)
        return bootstrap.percentile(drawn), Support(value, replicates=drawn)
    terms = mean_terms(upper) if below is None else ratio_terms(upper, lower)
    sharing, folded = sharing_of(table), sharing_of(table, folded=True)
    limits = share_interval(value, variance(terms, sharing, method), len(upper), bootstrap.level)
    return kept(limits), Support(value, terms, sharing, folded)


def mean_support(scores: Sequence[Support]) -> Support:
    """Return what the interval of the plain mean of several tasks' scores rests on.

    Pairs of two tasks that share a sentence depend on each other as those of one task do. The bootstrap draws
    tasks independently: the k-th replicates of all average to one of the mean.
    """
    value = float(np.mean([score.value for score in scores]))
    terms = [score.terms for score in scores if score.terms is not None]
    folded = [score.folded for score in scores if score.folded is not None]
    if len(terms) == len(folded) == len(scores):
        joined = Sharing.join(folded)
        return Support(value, np.concatenate(terms) / len(scores), joined, joined)
    replicates = [score.replicates for score in scores if score.replicates is not None]
    if len(replicates) == len(scores):
        return Support(value, replicates=np.mean(replicates, axis=0))
    return Support(value)


def mean_limits(
    scores: Sequence[Support], bootstrap: Bootstrap, bounds: tuple[float, float] = (-1.0, 1.0)
) -> Interval | None:
    """Return the interval of the plain mean of several tasks' scores, None where one has no support.

    Args:
        scores: what each task's rests on.
        bootstrap: how intervals are computed.
        bounds: what a mean can be at all.
    """
    whole = mean_support(scores)
    if whole.replicates is not None:
        return bootstrap.percentile(whole.replicates)
    if whole.terms is None or whole.sharing is None or bootstrap.interval == "bootstrap":
        return None
    found = variance(whole.terms, whole.sharing, bootstrap.interval)
    limits = kept(plain_interval(whole.value, found, bootstrap.level))
    return limits and (max(limits[0], bounds[0]), min(limits[1], bounds[1]))


def kept(limits: Limits) -> Interval | None:
    """Return an interval as a record keeps it: None where there is none."""
    return (limits.low, limits.high) if limits.exists else None


def as_variances(terms: Floats, sharing: Sharing) -> dict[Dependence, Variance]:
    """Return the variance of one statistic by each way to see pairs that share sentences."""
    methods: tuple[Dependence, ...] = ("dyadic", "components", "independent")
    return {method: variance(terms, sharing, method) for method in methods}
