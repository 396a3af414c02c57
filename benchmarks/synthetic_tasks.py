"""Made-up scores on the real graphs of the STS tasks, with a known truth: what `interval_coverage.py` draws.

A pair has a latent truth u, and a model sees r u + sqrt(1 - r^2) e, moved by how similar its subset's pairs are.
Gold is what annotators see of u, cut into the scores of the pair's subset in the released proportions, so that
ties are as frequent as they are. All are normal with variance 1, for each pair taken alone; truth and errors of
two pairs are correlated if the pairs share a sentence, by effects of their own:

- `none`: not at all;
- `both`: each sentence has an effect, a pair the sum of both;
- `hub`: of a pair's two sentences the one that stands in more pairs has one;
- `topic`: each connected component has one.

A strength s is the share of the variance that effects make up. Pairs of the same two sentences have the same truth
and the same error. Two models share half of the variance of their errors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from stsbench.data.benchmarks import load_sts
from stsbench.data.tables import folded_ids, sentence_ids
from stsbench.statistics.correlations import Aggregation
from stsbench.statistics.dependence import Sharing

Floats = NDArray[np.float64]
Effects = Literal["none", "both", "hub", "topic"]

TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")

ANNOTATION = 0.1
"""Share of the variance of what annotators see that is not the truth."""

SHARED_ERROR = 0.5
"""Correlation of the errors of two models."""

LOWEST, HIGHEST = 0.55, 0.85
"""Correlations of a model with the truth in the first and last subset; their mean in a task of one subset."""

_GRID, _NODES = 8000, 32
"""Points of the quadrature, of gold and of the similarity given gold."""


@dataclass(frozen=True, eq=False)
class Task:
    """The pairs of a task without their sentences.

    Attributes:
        name: of the task.
        codes: (n,) subset of each pair, 0..k-1.
        scores: k times the distinct gold scores of a subset, rising.
        edges: k times the (m - 1,) normal quantiles between them.
        shifts: (k,) how much more similar than the average the pairs of a subset are, in standard deviations.
    """

    name: str
    codes: NDArray[np.intp]
    scores: tuple[Floats, ...]
    edges: tuple[Floats, ...]
    shifts: Floats

    @classmethod
    def of(cls, name: str, gold: Floats, codes: NDArray[np.intp]) -> "Task":
        """Return the task of real gold scores."""
        scores, edges, shifts = [], [], []
        for subset in range(codes.max() + 1):
            values, counts = np.unique(gold[codes == subset], return_counts=True)
            scores.append(values)
            edges.append(ndtri(np.cumsum(counts)[:-1] / counts.sum()))
            shifts.append((gold[codes == subset].mean() - gold.mean()) / gold.std())
        return cls(name, codes, tuple(scores), tuple(edges), np.array(shifts))

    @property
    def pairs(self) -> int:
        return len(self.codes)

    @cached_property
    def shares(self) -> Floats:
        """(k,) shares of the pairs that the subsets have."""
        return np.bincount(self.codes) / self.pairs

    def correlations(self, gain: float) -> Floats:
        """Return (k,) correlations of a model with the truth."""
        subsets = len(self.scores)
        middle = np.full(1, (LOWEST + HIGHEST) / 2)
        return (np.linspace(LOWEST, HIGHEST, subsets) if subsets > 1 else middle) + gain

    def gold(self, latent: Floats) -> Floats:
        """Return (n,) gold scores of what annotators see."""
        gold = np.empty(self.pairs)
        for subset, (scores, edges) in enumerate(zip(self.scores, self.edges, strict=True)):
            members = self.codes == subset
            gold[members] = scores[np.searchsorted(edges, latent[members])]
        return gold

    def similarity(self, truth: Floats, error: Floats, gain: float) -> Floats:
        """Return (n,) similarities of a model."""
        r = self.correlations(gain)[self.codes]
        return self.shifts[self.codes] + r * truth + np.sqrt(1 - r * r) * error

    def true_score(self, gain: float, metric: str = "spearman", aggregation: Aggregation = "all") -> float:
        """Return the score in the population, by quadrature: that of infinitely many pairs of these subsets."""
        levels = (np.arange(_GRID) + 0.5) / _GRID
        seen = ndtri(levels)
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        weights = weights / weights.sum()
        gold_mid, gold_value, place, similarity = [], [], [], []
        rhos = self.correlations(gain) * np.sqrt(1 - ANNOTATION)
        for scores, edges, shift, rho in zip(self.scores, self.edges, self.shifts, rhos, strict=True):
            values = scores[np.searchsorted(edges, seen)]
            x = shift + rho * seen[:, np.newaxis] + np.sqrt(1 - rho * rho) * nodes
            own = aggregation != "all"
            gold_mid.append(_mid_distribution(scores, edges, values) if own else self._mid_distribution(values))
            place.append(ndtr(x - shift) if own else self._place(x))
            gold_value.append(values)
            similarity.append(x)
        sides = (gold_mid, place) if metric == "spearman" else (gold_value, similarity)
        if aggregation == "all":
            return _weighted_correlation(np.stack(sides[0]), np.stack(sides[1]), weights, self.shares)
        of_subsets = [
            _weighted_correlation(a[np.newaxis], b[np.newaxis], weights, np.ones(1))
            for a, b in zip(*sides, strict=True)
        ]
        return float(np.average(of_subsets, weights=self.shares if aggregation == "wmean" else None))

    def _mid_distribution(self, values: Floats) -> Floats:
        each = [_mid_distribution(*subset, values) for subset in zip(self.scores, self.edges, strict=True)]
        places: Floats = np.average(each, axis=0, weights=self.shares)
        return places

    def _place(self, x: Floats) -> Floats:
        places: Floats = np.average([ndtr(x - shift) for shift in self.shifts], axis=0, weights=self.shares)
        return places


def _mid_distribution(scores: Floats, edges: Floats, values: Floats) -> Floats:
    """Return P(gold < value) + P(gold = value) / 2 in a subset."""
    upto = np.concatenate([[0.0], ndtr(edges), [1.0]])
    below, through = (upto[np.searchsorted(scores, values, side)] for side in ("left", "right"))
    middle: Floats = (below + through) / 2
    return middle


def _weighted_correlation(gold: Floats, other: Floats, nodes: Floats, subsets: Floats) -> float:
    """Return the correlation of (k, grid) gold with (k, grid, nodes) of the other side."""

    def mean(values: Floats) -> float:
        return float(np.einsum("kgn,n,k->", values, nodes, subsets) / values.shape[1])

    gold = np.broadcast_to(gold[:, :, np.newaxis], other.shape)
    a, b = gold - mean(gold), other - mean(other)
    return mean(a * b) / float(np.sqrt(mean(a * a) * mean(b * b)))


@dataclass(frozen=True, eq=False)
class Effect:
    """Who has an effect on which pair: (n,) codes of the first and second one, and the weights of the two."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    first_weight: Floats
    second_weight: Floats

    @classmethod
    def of(cls, sharing: Sharing, effects: Effects) -> "Effect":
        """Return the effects of a graph; of `none`, none."""
        ones, zeros = np.ones(sharing.pairs), np.zeros(sharing.pairs)
        loops = sharing.first == sharing.second
        if effects == "topic":
            return cls(sharing.components, sharing.components, ones, zeros)
        if effects == "both":
            half = np.sqrt(0.5)
            return cls(sharing.first, sharing.second, np.where(loops, 1.0, half), np.where(loops, 0.0, half))
        degrees = np.bincount(sharing.first, minlength=sharing.sentences) + np.bincount(
            sharing.second[~loops], minlength=sharing.sentences
        )
        hubs = np.where(degrees[sharing.first] >= degrees[sharing.second], sharing.first, sharing.second)
        return cls(hubs, hubs, ones, zeros)


@dataclass(frozen=True, eq=False)
class World:
    """A graph of pairs of one or several tasks with effects of one kind and strength, to draw from."""

    tasks: tuple[Task, ...]
    sharing: Sharing
    effects: Effects
    strength: float

    @cached_property
    def _effect(self) -> Effect:
        return Effect.of(self.sharing, self.effects)

    @cached_property
    def _same(self) -> NDArray[np.intp]:
        """(n,) code of the pair's two sentences, in either order."""
        low = np.minimum(self.sharing.first, self.sharing.second)
        high = np.maximum(self.sharing.first, self.sharing.second)
        return np.unique(low * self.sharing.sentences + high, return_inverse=True)[1]

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where the pairs of each task are."""
        ends = np.cumsum([task.pairs for task in self.tasks])
        return tuple(slice(end - task.pairs, end) for end, task in zip(ends.tolist(), self.tasks, strict=True))

    def field(self, rng: np.random.Generator) -> Floats:
        """Draw (n,) normal numbers with variance 1, correlated by the effects."""
        noise = rng.standard_normal(int(self._same.max()) + 1)[self._same]
        if self.effects == "none" or self.strength == 0:
            return noise
        values = rng.standard_normal(self.sharing.sentences)
        effect = self._effect.first_weight * values[self._effect.first]
        if self.effects == "both":
            effect += self._effect.second_weight * values[self._effect.second]
        field: Floats = np.sqrt(self.strength) * effect + np.sqrt(1 - self.strength) * noise
        return field

    def draw(self, gains: Sequence[float], rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw (n,) gold scores and (m, n) similarities of models with these gains."""
        truth, common = self.field(rng), self.field(rng)
        seen = np.sqrt(1 - ANNOTATION) * truth + np.sqrt(ANNOTATION) * rng.standard_normal(len(truth))
        gold = np.concatenate([task.gold(seen[part]) for task, part in zip(self.tasks, self.slices, strict=True)])
        similarity = np.empty((len(gains), len(truth)))
        for row, gain in enumerate(gains):
            error = np.sqrt(SHARED_ERROR) * common + np.sqrt(1 - SHARED_ERROR) * self.field(rng)
            for task, part in zip(self.tasks, self.slices, strict=True):
                similarity[row, part] = task.similarity(truth[part], error[part], gain)
        return gold, similarity


@lru_cache(maxsize=2)
def read_tasks(data: Path) -> dict[str, tuple[Task, Sharing, Sharing]]:
    """Read the graphs of the seven tasks: each with its sentences as released, and by letters and digits."""
    graphs = {}
    for name in TASKS:
        pairs = load_sts(name, data_dirs=[data]).pairs
        task = Task.of(name, pairs["gold"].to_numpy(), pd.factorize(pairs["subset"])[0])
        sides = [pairs[side].tolist() for side in ("sentence1", "sentence2")]
        released = Sharing.of(*map(sentence_ids, sides))
        graphs[name] = (task, released, Sharing.of(*map(folded_ids, sides)))
    return graphs
