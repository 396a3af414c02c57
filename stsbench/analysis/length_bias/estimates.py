"""What length bias is measured by, with each pair's terms, so that intervals see which pairs share sentences.

Estimates are `Linear`: they add, subtract, multiply and divide, so that `numbers` says once what a gap or a slope
is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stsbench.scoring.settings import Intervals
from stsbench.scoring.statistic import sharing_of
from stsbench.statistics.correlations import partial_spearman, spearman
from stsbench.statistics.dependence import Sharing, variance
from stsbench.statistics.influence import spearman_terms, task_terms
from stsbench.statistics.intervals import correlation_interval, plain_interval
from stsbench.statistics.linear import Linear

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

_FEWEST = 4
"""Pairs that a value with an interval is of at least."""


@dataclass(frozen=True)
class Estimates:
    """How estimates are made from the pairs of tasks, and intervals from estimates.

    Attributes:
        intervals: how they are computed.
        released: by block, which pairs share a sentence as released; `folded`: by letters and digits.
    """

    intervals: Intervals
    released: dict[str, Sharing] = field(default_factory=dict)
    folded: dict[str, Sharing] = field(default_factory=dict)
    joined: dict[tuple[str, ...], Sharing] = field(default_factory=dict)

    def block(self, name: str, pairs: "pd.DataFrame") -> None:
        """Take note of which of a task's pairs share sentences, before anything is estimated from them."""
        self.released[name], self.folded[name] = sharing_of(pairs), sharing_of(pairs, folded=True)

    def sums(
        self, block: str, terms: Mapping[str, Floats], inside: NDArray[np.bool_] | None = None
    ) -> dict[str, Linear]:
        """Return the sums of several terms over the pairs of a block, or over those inside, by their names."""
        rows = np.array(list(terms.values()))
        sums = (rows if inside is None else rows[:, inside]).sum(axis=1).tolist()
        kept = rows if inside is None else rows * inside
        return {name: Linear(value, {block: row}) for name, value, row in zip(terms, sums, kept, strict=True)}

    def spearman(self, block: str, sides: tuple[Floats, Floats], inside: NDArray[np.bool_]) -> Linear:
        """Return the correlation x 100 of some pairs of a block; pairs outside contribute nothing."""
        x, y = (side[inside] for side in sides)
        if not len(x):
            return Linear.undefined()
        terms = np.zeros(len(inside))
        terms[inside] = 100 * spearman_terms(x, y)
        return Linear(100 * spearman(x, y), {block: terms})

    def spearman_of_task(self, block: str, pairs: "pd.DataFrame") -> Linear:
        """Return that of a whole task as `stsbench run` has it: the subsets fixed."""
        names = list(dict.fromkeys(pairs["subset"]))
        gold, similarity = pairs["gold"].to_numpy(float), pairs["similarity"].to_numpy(float)
        terms = task_terms(gold, similarity, pairs["subset"].map(names.index).to_numpy())
        return Linear(100 * spearman(gold, similarity), {block: 100 * terms})

    def partial(self, block: str, sides: tuple[Floats, Floats], fixed: Floats) -> Linear:
        """Return the partial correlation x 100 of a block's pairs, a function of three."""
        value = 100 * partial_spearman(*sides, fixed)
        both, of_x, of_y = (
            Linear(spearman(a, b), {block: spearman_terms(a, b)})
            for a, b in (sides, (sides[0], fixed), (sides[1], fixed))
        )
        if (fixed == fixed[0]).all():
            return (100 * both).mapped(value, 100.0)
        left = (1 - of_x.value**2) * (1 - of_y.value**2)
        if not left > 0:
            return Linear.undefined()
        below = left**0.5
        slopes = [
            (1 / below) * ((both.value - of_x.value * of_y.value) * one.value / (1 - one.value**2) - other.value)
            for one, other in ((of_x, of_y), (of_y, of_x))
        ]
        terms = both.terms[block] / below + slopes[0] * of_x.terms[block] + slopes[1] * of_y.terms[block]
        return Linear(value, {block: 100 * terms})

    def limits(self, estimate: Linear, pairs: int, *, correlation: bool = False) -> dict[str, float]:
        """Return an estimate's `value`, `low` and `high`, NaN where there is none.

        Those of one task are by sentences as released, those of several by letters and digits.

        Args:
            estimate: the estimate.
            pairs: how many it is of.
            correlation: whether it is one, x 100.
        """
        value, how, level = estimate.value, self.intervals.interval, self.intervals.level
        if np.isnan(value) or pairs < _FEWEST or how is None:
            return {"value": value, "low": np.nan, "high": np.nan}
        blocks = tuple(estimate.terms)
        sharing = self.released[blocks[0]] if len(blocks) == 1 else self._joined(blocks)
        terms = np.concatenate(list(estimate.terms.values()))
        if not correlation:
            low, high, _ = plain_interval(value, variance(terms, sharing, how), level)
            return {"value": value, "low": low, "high": high}
        low, high, _ = correlation_interval(value / 100, variance(terms / 100, sharing, how), pairs, level)
        return {"value": value, "low": 100 * low, "high": 100 * high}

    def _joined(self, blocks: Sequence[str]) -> Sharing:
        key = tuple(blocks)
        if key not in self.joined:
            self.joined[key] = Sharing.join([self.folded[block] for block in blocks])
        return self.joined[key]
