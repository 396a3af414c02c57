"""Cutoffs of a similarity: one with a guarantee, another model's, their rates, and the probability of a match."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.special import betainc

from stsbench.analysis.inputs import Estimates
from stsbench.base.errors import UserError
from stsbench.scoring.statistic import sharing_of
from stsbench.scoring.subjects import ScoredTask
from stsbench.statistics import Dependence
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.influence import Floats, Linear
from stsbench.statistics.intervals import design_effect
from stsbench.statistics.seeds import generator

Mask = NDArray[np.bool_]

CONFIDENCE = 0.9  # The probability that a cutoff meets its target on new pairs

FALSE, PRECISION, RECALL = TARGETS = "false matches", "precision", "recall"
RATES = (*TARGETS, "matched", "balanced accuracy")

_FOLDS = 5
_DRAWS, _STEPS = 200, 20  # Of the band of a probability, and per unit of similarity


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """The n pairs of a task with their similarities, whether they match, and the sentences that they share."""

    name: str
    similarity: Floats
    matches: Mask
    sharing: Sharing

    @classmethod
    def of(cls, task: ScoredTask, positive: float | None) -> "LabelledPairs":
        """Labels a task: gold scores from `positive` match, by default from four fifths of their scale."""
        low, high = task.gold_range
        lowest = low + 0.8 * (high - low) if positive is None else positive
        matches = task.pairs["gold"].to_numpy(float) >= lowest
        if len(set(matches.tolist())) < 2:
            some = "all" if matches.all() else "no"
            raise UserError(
                f"{some} pairs of {task.task} have a gold score of {lowest:g} and above: set --positive."
            )
        return cls(task.task, task.similarity, matches, sharing_of(task.pairs, folded=True))

    @classmethod
    def join(cls, name: str, parts: Sequence["LabelledPairs"]) -> "LabelledPairs":
        """Concatenates the pairs of several tasks."""
        similarity, matches = (
            np.concatenate([vars(of)[key] for of in parts]) for key in ("similarity", "matches")
        )
        return cls(name, similarity, matches, Sharing.join([of.sharing for of in parts]))

    def take(self, chosen: Mask) -> "LabelledPairs":
        return LabelledPairs(self.name, self.similarity[chosen], self.matches[chosen], self.sharing.take(chosen))


def cutoff_of(pairs: LabelledPairs, target: str, rate: float, dependence: Dependence) -> float:
    """Returns the last cutoff that meets a target on new pairs with 90 % confidence; NaN if there is none.

    At the x-th highest of n independent non-matches the rate of false matches has the distribution
    Beta(x, n + 1 - x). The same holds for missed matches from below, and nearly for the x non-matches among n
    pairs above a cutoff, by Beta(x + 1/2, n + 1/2 - x). Between two pairs the cutoff is interpolated (fractional
    order statistics: Hutson 1999). With shared sentences n and x are divided by the design effect.
    """
    if pairs.matches.all() or not pairs.matches.any():
        return nan
    every, of_matched = np.ones_like(pairs.matches), target == PRECISION
    sign, share, inside = {
        FALSE: (1, rate, ~pairs.matches),
        RECALL: (-1, 1 - rate, pairs.matches),
        PRECISION: (1, 1 - rate, every),
    }[target]
    scores, sharing = sign * pairs.similarity[inside], pairs.sharing.take(inside)
    counted = ~pairs.matches if of_matched else every[inside]
    order = np.argsort(-scores, kind="stable")
    falling, x, n = scores[order], np.cumsum(counted[order]), np.arange(1, len(order) + 1)
    n = n if of_matched else np.full(len(order), len(order))
    # Dependence shows better in the neighbourhood of the cutoff than at the few pairs above it.
    within = max(int(np.count_nonzero(x <= share * n)), 1)
    places = np.clip(np.ceil(within * np.array([1, 1.5, 2, 3])).astype(int), 1, len(order)) - 1
    heads = [scores >= falling[place] for place in places]
    shares = [(counted, head) if of_matched else (head, counted) for head in heads]
    effect = design_effect(shares, sharing, dependence, CONFIDENCE)
    half = 0.5 if of_matched else 0
    confidence = betainc(x / effect + half, (n - x) / effect + 1 - half, share)
    distinct = np.flatnonzero(np.append(falling[1:] < falling[:-1], True))
    meets = np.flatnonzero(confidence[distinct] >= CONFIDENCE)
    if not len(meets):
        return nan
    ends = distinct[[min(meets[-1] + 1, len(distinct) - 1), meets[-1]]]
    return sign * float(np.interp(CONFIDENCE, confidence[ends], falling[ends]))


def cross_fitted(pairs: LabelledPairs, target: str, rate: float, dependence: Dependence) -> Mask | None:
    """Returns which pairs match by cutoffs of pairs without their sentences; None if all pairs are linked."""
    folds, matched = pairs.sharing.components % _FOLDS, np.zeros(len(pairs.matches), dtype=bool)
    for fold in range(folds.max() + 1):
        cutoff = cutoff_of(pairs.take(folds != fold), target, rate, dependence)
        matched |= (folds == fold) & (pairs.similarity >= cutoff)
    return matched if folds.any() else None


def carried_cutoff(
    pairs: LabelledPairs, origin: LabelledPairs | None, old: float, estimates: Estimates
) -> dict[str, float]:
    """Returns the cutoff with as many false matches as the `old` one of another model, with its interval."""
    if origin is None or not np.array_equal(origin.matches, pairs.matches):
        raise UserError(f"the run of --from has other pairs of {pairs.name}: measure both on the same ones.")
    falling = np.sort(pairs.similarity[~pairs.matches])[::-1]
    before = ~pairs.matches & (origin.similarity >= old)
    rank, size = int(before.sum()), len(falling)
    cutoff = falling[rank - 1] if rank else nan
    # The rates are equal; their difference on new pairs is uncertain (Woodruff 1952).
    terms = (before * 1.0 - (~pairs.matches & (pairs.similarity >= cutoff))) / size
    limits = estimates.limits(Linear(0.0, {pairs.name: terms}), size)
    ranks = [rank + size * limits[end] for end in ("high", "low")]
    low, high = np.interp(np.maximum(ranks, 1), np.arange(1, size + 1), falling)
    return {"value": cutoff, "low": min(low, cutoff), "high": max(high, cutoff)}


def rates_of(pairs: LabelledPairs, matched: Mask | None) -> dict[str, Linear]:
    """Returns the `RATES` of a decision, the (n,) mask of the pairs that it matches; undefined for None."""
    if matched is None:
        return dict.fromkeys(RATES, Linear.undefined())

    def rate(counted: Mask, among: Mask) -> Linear:
        above, below = (
            Linear(float(of.sum()), {pairs.name: of.astype(np.float64)}) for of in (counted & among, among)
        )
        return above / below

    false, recall = rate(matched, ~pairs.matches), rate(matched, pairs.matches)
    precision, share = rate(pairs.matches, matched), rate(matched, np.ones_like(matched))
    balanced = (recall - false).mapped((1 + recall.value - false.value) / 2, 0.5)
    return dict(zip(RATES, (false, precision, recall, share, balanced), strict=True))


def match_probability(pairs: LabelledPairs, level: float | None) -> Iterator[dict[str, Any]]:
    """Yields the probability of a match by isotonic regression, with a band from reweighted components.

    There is a row with `value`, `low` and `high` (NaN without a level) for each similarity in steps of 0.05, its
    `group`.
    """
    # Among ties matches come first, so that they are pooled.
    order = np.lexsort((~pairs.matches, pairs.similarity))
    rising, matches = pairs.similarity[order], pairs.matches[order].astype(np.float64)
    components = pairs.sharing.components[order]
    grid = np.arange(np.floor(rising[0] * _STEPS), np.ceil(rising[-1] * _STEPS) + 1) / _STEPS
    # The Bayesian bootstrap (Rubin 1981); the first curve has equal weights.
    weights = generator(0, "threshold").exponential(size=(1 + _DRAWS, components.max() + 1))
    weights[0] = 1
    fits = (isotonic_regression(matches, weights=of[components]).x for of in weights)
    curves = [np.interp(grid, rising, fit) for fit in fits]
    low, high = np.full((2, len(grid)), nan)
    if level is not None:
        low, high = np.quantile(curves, [(1 - level) / 2, (1 + level) / 2], axis=0)
    for place, *row in zip(grid, curves[0], low, high, strict=True):
        yield {"group": f"{place:g}"} | dict(zip(("value", "low", "high"), map(float, row), strict=True))
