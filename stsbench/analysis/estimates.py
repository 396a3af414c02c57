"""Values with intervals from estimates with terms, for the items of one task or of several."""

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

_FEWEST = 4
"""Pairs below which a value has no interval."""


@dataclass(frozen=True)
class Estimates:
    """Intervals of estimates whose terms belong to blocks of items.

    Attributes:
        intervals: how they are computed.
        released: by block, which items share a sentence as released.
        folded: by block, which items share a sentence by letters and digits.
        joined: by blocks, `folded` of several together.
    """

    intervals: Intervals
    released: dict[str, Sharing] = field(default_factory=dict)
    folded: dict[str, Sharing] = field(default_factory=dict)
    joined: dict[tuple[str, ...], Sharing] = field(default_factory=dict)

    def block(self, name: str, pairs: pd.DataFrame) -> None:
        """Registers which items of a block share sentences; needed before `limits`."""
        self.released[name], self.folded[name] = sharing_of(pairs), sharing_of(pairs, folded=True)

    def limits(
        self, estimate: Linear, pairs: int, *, correlation: bool = False, share: bool = False, normal: bool = False
    ) -> dict[str, float]:
        """Returns an estimate's `value`, `low` and `high`, NaN for undefined ones.

        Items of one block depend on each other by sentences as released, those of several by letters and digits.

        Args:
            estimate: the estimate.
            pairs: the number of its items.
            correlation: whether it is a correlation x 100.
            share: whether it is a share, whose limits are between 0 and 1.
            normal: whether the interval is normal instead of Student's t, whose degrees of freedom are too few if
                few items differ from the rest.
        """
        value, level = estimate.value, self.intervals.level
        if np.isnan(value) or pairs < _FEWEST or self.intervals.interval is None:
            return {"value": value, "low": np.nan, "high": np.nan}
        if correlation:
            low, high, _ = correlation_interval(value / 100, self.spread(estimate, 100), pairs, level)
            return {"value": value, "low": 100 * low, "high": 100 * high}
        spread = self.spread(estimate)
        spread = replace(spread, df=np.inf) if normal else spread
        low, high, _ = (
            share_interval(value, spread, pairs, level) if share else plain_interval(value, spread, level)
        )
        return {"value": value, "low": low, "high": high}

    def spread(self, estimate: Linear, scale: float = 1) -> Variance:
        """Returns the variance of an estimate divided by `scale`."""
        terms = np.concatenate(list(estimate.terms.values()))
        return variance(terms / scale, self._sharing(tuple(estimate.terms)), self.intervals.interval or "dyadic")

    def _sharing(self, blocks: tuple[str, ...]) -> Sharing:
        if len(blocks) == 1:
            return self.released[blocks[0]]
        if blocks not in self.joined:
            self.joined[blocks] = Sharing.join([self.folded[block] for block in blocks])
        return self.joined[blocks]


def spearman_of_task(block: str, pairs: pd.DataFrame, similarity: Floats) -> Linear:
    """Returns the correlation x 100 of a whole task as `stsbench run` computes it, with fixed subsets."""
    gold, codes = np.asarray(pairs["gold"], dtype=float), pd.factorize(pairs["subset"])[0]
    terms = task_terms(gold, similarity, codes)
    return Linear(100 * spearman(gold, similarity), {block: 100 * terms})
