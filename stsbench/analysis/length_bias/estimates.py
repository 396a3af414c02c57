"""The two ways to an interval of what length bias is measured by: each pair's terms, and the bootstrap over pairs.

Both give estimates that add, subtract, multiply and divide, so that `numbers` says once what a gap or a slope is:
the one a `Linear`, the other an array with the value first and its replicates after it.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stsbench.analysis.length_bias.measures import PARTIAL
from stsbench.scoring.intervals import correlation_limits, method_of, sharing_of
from stsbench.scoring.settings import Bootstrap
from stsbench.statistics import estimates as resampled
from stsbench.statistics.bootstrap import (
    bootstrap_correlation,
    bootstrap_partial_spearman,
    bootstrap_task,
    generator,
    partial_spearman,
)
from stsbench.statistics.correlations import spearman
from stsbench.statistics.dependence import Dependence, Sharing, variance
from stsbench.statistics.estimates import Resampling, sums_of, with_interval
from stsbench.statistics.influence import spearman_terms, task_terms
from stsbench.statistics.intervals import plain_interval
from stsbench.statistics.linear import Linear

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Estimate = Any
"""A `Linear` or an array; the estimates of one `Estimates` are all of one kind."""

_FEWEST = 4
"""Pairs that a value with an interval is of at least."""


class Estimates(Protocol):
    """How estimates are made from the pairs of tasks, and intervals from estimates."""

    @abstractmethod
    def block(self, name: str, pairs: "pd.DataFrame") -> None:
        """Take note of a task's pairs before anything is estimated from them."""

    @abstractmethod
    def sums(self, block: str, terms: Mapping[str, Floats], inside: NDArray[np.bool_] | None = None) -> Any:
        """Return the sums of several terms over the pairs of a block, or over those inside, by their names."""

    @abstractmethod
    def ratio(self, above: Estimate, below: Estimate) -> Estimate:
        """Return a quotient, undefined where the lower one is 0."""

    @abstractmethod
    def spearman(
        self, block: str, group: str, sides: tuple[Floats, Floats], inside: NDArray[np.bool_]
    ) -> Estimate:
        """Return the correlation x 100 of some pairs of a block."""

    @abstractmethod
    def spearman_of_task(self, block: str, pairs: "pd.DataFrame") -> Estimate:
        """Return that of a whole task: the number of `stsbench run`, with its interval."""

    @abstractmethod
    def partial(self, block: str, sides: tuple[Floats, Floats], fixed: Floats) -> Estimate:
        """Return the partial correlation x 100 of a block's pairs."""

    @abstractmethod
    def told(self, estimate: Estimate, pairs: int, *, correlation: bool = False) -> dict[str, float]:
        """Return an estimate's `value`, `low` and `high`, NaN where there is none.

        Args:
            estimate: the estimate.
            pairs: how many it is of.
            correlation: whether it is one, x 100.
        """


def estimates_for(bootstrap: Bootstrap, table: "pd.DataFrame") -> Estimates:
    """Return the way that was asked for; the bootstrap where a table does not say which pairs share sentences."""
    method = method_of(bootstrap, table)
    if method == "bootstrap" or not bootstrap.resamples:
        return ByResampling(Resampling(bootstrap.resamples, bootstrap.level, bootstrap.seed))
    return ByTerms(bootstrap, method)


@dataclass(frozen=True)
class ByResampling:
    """Estimates with replicates: over pairs, drawn inside each task, as if they were independent."""

    resampling: Resampling

    def block(self, name: str, pairs: "pd.DataFrame") -> None:
        """Nothing is to be known of the pairs."""

    def sums(self, block: str, terms: Mapping[str, Floats], inside: NDArray[np.bool_] | None = None) -> Any:
        """Return (1 + resamples,) arrays by name."""
        rows = np.array(list(terms.values()))
        names = block.split("\n")
        return dict(
            zip(
                terms,
                sums_of(rows if inside is None else rows[:, inside], self.resampling, *names),
                strict=True,
            )
        )

    def ratio(self, above: Floats, below: Floats) -> Floats:
        """Return the quotient element by element."""
        return resampled.ratio(above, below)

    def spearman(self, block: str, group: str, sides: tuple[Floats, Floats], inside: NDArray[np.bool_]) -> Floats:
        """Return value and replicates."""
        x, y = (side[inside] for side in sides)
        if not len(x):
            return np.full(1 + self.resampling.resamples, np.nan)
        draws = generator(self.resampling.seed, *block.split("\n"), group)
        return _percent(
            spearman(x, y), bootstrap_correlation(x, y, rng=draws, resamples=self.resampling.resamples)
        )

    def spearman_of_task(self, block: str, pairs: "pd.DataFrame") -> Floats:
        """Return value and replicates, from the draws of `stsbench run`."""
        names = list(dict.fromkeys(pairs["subset"]))
        gold, similarity = pairs["gold"].to_numpy(float), pairs["similarity"].to_numpy(float)
        replicates = bootstrap_task(
            gold,
            similarity,
            pairs["subset"].map(names.index).to_numpy(),
            task=f"{pairs['task'].iloc[0]}:{pairs['split'].iloc[0]}",
            names=names,
            resamples=self.resampling.resamples,
            seed=self.resampling.seed,
        )
        return _percent(spearman(gold, similarity), replicates.aggregates["all"])

    def partial(self, block: str, sides: tuple[Floats, Floats], fixed: Floats) -> Floats:
        """Return value and replicates."""
        draws = generator(self.resampling.seed, *block.split("\n"), PARTIAL)
        drawn = bootstrap_partial_spearman(*sides, fixed, rng=draws, resamples=self.resampling.resamples)
        return _percent(partial_spearman(*sides, fixed), drawn)

    def told(self, estimate: Floats, pairs: int, *, correlation: bool = False) -> dict[str, float]:
        """Return the value and its percentile interval."""
        return with_interval(estimate, self.resampling)


@dataclass(frozen=True)
class ByTerms:
    """Estimates with each pair's terms: pairs that share a sentence depend on each other.

    Attributes:
        bootstrap: what was asked for.
        method: which pairs depend on each other.
        released: by block, which pairs share a sentence as released; `folded`: by letters and digits.
    """

    bootstrap: Bootstrap
    method: Dependence
    released: dict[str, Sharing] = field(default_factory=dict)
    folded: dict[str, Sharing] = field(default_factory=dict)
    joined: dict[tuple[str, ...], Sharing] = field(default_factory=dict)

    def block(self, name: str, pairs: "pd.DataFrame") -> None:
        """Take note of which pairs share sentences."""
        self.released[name], self.folded[name] = sharing_of(pairs), sharing_of(pairs, folded=True)

    def sums(self, block: str, terms: Mapping[str, Floats], inside: NDArray[np.bool_] | None = None) -> Any:
        """Return statistics by name."""
        # Summed as the bootstrap's are, to the last bit.
        rows = np.array(list(terms.values()))
        sums = (rows if inside is None else rows[:, inside]).sum(axis=1).tolist()
        kept = rows if inside is None else rows * inside
        return {name: Linear(value, {block: row}) for name, value, row in zip(terms, sums, kept, strict=True)}

    def ratio(self, above: Linear, below: Linear) -> Linear:
        """Return the quotient."""
        return above / below

    def spearman(self, block: str, group: str, sides: tuple[Floats, Floats], inside: NDArray[np.bool_]) -> Linear:
        """Return the correlation; pairs outside contribute nothing."""
        x, y = (side[inside] for side in sides)
        if not len(x):
            return Linear.undefined()
        terms = np.zeros(len(inside))
        terms[inside] = 100 * spearman_terms(x, y)
        return Linear(100 * spearman(x, y), {block: terms})

    def spearman_of_task(self, block: str, pairs: "pd.DataFrame") -> Linear:
        """Return the correlation as `stsbench run` has it: the subsets fixed."""
        names = list(dict.fromkeys(pairs["subset"]))
        gold, similarity = pairs["gold"].to_numpy(float), pairs["similarity"].to_numpy(float)
        terms = task_terms(gold, similarity, pairs["subset"].map(names.index).to_numpy())
        return Linear(100 * spearman(gold, similarity), {block: 100 * terms})

    def partial(self, block: str, sides: tuple[Floats, Floats], fixed: Floats) -> Linear:
        """Return the partial correlation, a function of three."""
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

    def told(self, estimate: Linear, pairs: int, *, correlation: bool = False) -> dict[str, float]:
        """Return the value and its interval: of one task by sentences as released, of several by letters."""
        value, nothing = estimate.value, {"value": estimate.value, "low": np.nan, "high": np.nan}
        if np.isnan(value) or pairs < _FEWEST:
            return nothing
        blocks = tuple(estimate.terms)
        sharing = self.released[blocks[0]] if len(blocks) == 1 else self._joined(blocks)
        found = variance(np.concatenate(list(estimate.terms.values())), sharing, self.method)
        if not correlation:
            limits = plain_interval(value, found, self.bootstrap.level)
            return {"value": value, "low": limits.low, "high": limits.high}
        scaled = variance(np.concatenate(list(estimate.terms.values())) / 100, sharing, self.method)
        low, high, _ = correlation_limits(value / 100, scaled, pairs, "spearman", self.bootstrap)
        return {"value": value, "low": 100 * low, "high": 100 * high}

    def _joined(self, blocks: Sequence[str]) -> Sharing:
        key = tuple(blocks)
        if key not in self.joined:
            self.joined[key] = Sharing.join([self.folded[block] for block in blocks])
        return self.joined[key]


def _percent(value: float, replicates: Floats) -> Floats:
    return 100 * np.concatenate([[value], replicates])
