"""Estimates with terms, their sums, means and intervals, for the items of one task or of several."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.scoring.settings import Intervals
from stsbench.scoring.statistic import sharing_of
from stsbench.statistics.correlations import spearman
from stsbench.statistics.dependence import Sharing, Variance, variance
from stsbench.statistics.influence import Linear, task_terms
from stsbench.statistics.intervals import correlation_interval, plain_interval, share_interval

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimates:
    """Intervals of estimates whose terms belong to blocks of items; a value of fewer than `fewest` has none.

    By block, `released` and `folded` know which items share a sentence as released, or by letters and digits;
    `joined` is `folded` of several blocks together.
    """

    intervals: Intervals
    fewest: int = 4
    released: dict[str, Sharing] = field(default_factory=dict)
    folded: dict[str, Sharing] = field(default_factory=dict)
    joined: dict[tuple[str, ...], Sharing] = field(default_factory=dict)

    def block(self, name: str, items: pd.DataFrame | Sharing) -> None:
        """Registers the rows of an items table, or what shares sentences, as a block; needed before `limits`."""
        if isinstance(items, Sharing):
            self.released[name] = self.folded[name] = items
        else:
            self.released[name], self.folded[name] = sharing_of(items), sharing_of(items, folded=True)

    def limits(
        self,
        estimate: Linear,
        items: int,
        *,
        correlation: bool = False,
        share: bool = False,
        normal: bool = False,
        scale: float = 1,
    ) -> dict[str, float]:
        """Returns an estimate's `value`, `low` and `high` times `scale`, NaN for undefined ones.

        Items of one block depend on each other by sentences as released, those of several by letters and digits.
        A `correlation` is given x 100; a `share` has limits from 0 to 1. A `normal` interval replaces Student's t,
        whose degrees of freedom are too few if few items differ from the rest.
        """
        value, level = estimate.value, self.intervals.level
        if np.isnan(value) or items < self.fewest or self.intervals.interval is None:
            low = high = np.nan
        elif correlation:
            low, high, _ = correlation_interval(value / 100, self.spread(estimate, 100), items, level)
            low, high = 100 * low, 100 * high
        else:
            spread = self.spread(estimate)
            spread = replace(spread, df=np.inf) if normal else spread
            low, high, _ = (
                share_interval(value, spread, items, level) if share else plain_interval(value, spread, level)
            )
        return {"value": scale * value, "low": scale * low, "high": scale * high}

    def spread(self, estimate: Linear, scale: float = 1) -> Variance:
        """Returns the variance of an estimate divided by `scale`."""
        terms, blocks = np.concatenate(list(estimate.terms.values())), tuple(estimate.terms)
        if len(blocks) > 1 and blocks not in self.joined:
            self.joined[blocks] = Sharing.join([self.folded[block] for block in blocks])
        sharing = self.joined[blocks] if len(blocks) > 1 else self.released[blocks[0]]
        return variance(terms / scale, sharing, self.intervals.interval or "dyadic")


def total(estimates: Sequence[Linear]) -> Linear:
    """Returns the sum of estimates with its terms."""
    first, *others = estimates
    return sum(others, first)


def mean(estimates: Sequence[Linear]) -> Linear:
    """Returns the mean of estimates with its terms."""
    return total(estimates) / len(estimates)


def spearman_of_task(block: str, pairs: pd.DataFrame, similarity: Floats) -> Linear:
    """Returns the correlation x 100 of a whole task as `stsbench run` computes it, with fixed subsets."""
    gold, codes = np.asarray(pairs["gold"], dtype=float), pd.factorize(pairs["subset"])[0]
    terms = task_terms(gold, similarity, codes)
    return Linear(100 * spearman(gold, similarity), {block: 100 * terms})
