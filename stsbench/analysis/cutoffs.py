"""Cutoffs of a similarity: one with a guarantee, another model's, their rates, and the probability of a match."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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
from stsbench.statistics.influence import Floats, Linear, ratio_terms
from stsbench.statistics.intervals import design_effect
from stsbench.statistics.seeds import generator

Mask = NDArray[np.bool_]

CONFIDENCE = 0.9  # The probability that a cutoff meets its target on new pairs

FALSE, PRECISION, RECALL = TARGETS = "false matches", "precision", "recall"
RATES = (*TARGETS, "matched", "balanced accuracy")

_FIRST = 3.9  # At the target, non-matches above the first cutoff that is tested for a precision
_FOLDS, _DRAWS = 5, 200  # Of the rates; of the band of a probability


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """The n pairs of a task: their similarities of a kind, whether they match, and the sentences they share."""

    name: str
    similarity: Floats
    matches: Mask
    sharing: Sharing
    kind: str = "cosine"

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
        sharing = sharing_of(task.pairs, folded=True)
        return cls(task.task, task.similarity, matches, sharing, task.statistic.similarity)

    @classmethod
    def join(cls, name: str, parts: Sequence["LabelledPairs"]) -> "LabelledPairs":
        """Concatenates the pairs of several tasks."""
        similarity, matches = (
            np.concatenate([vars(of)[key] for of in parts]) for key in ("similarity", "matches")
        )
        return cls(name, similarity, matches, Sharing.join([of.sharing for of in parts]), parts[0].kind)

    def take(self, chosen: Mask) -> "LabelledPairs":
        sharing = self.sharing.take(chosen)
        return replace(self, similarity=self.similarity[chosen], matches=self.matches[chosen], sharing=sharing)

    def has_pairs_of(self, other: "LabelledPairs") -> bool:
        """Returns whether both are the same pairs with the same labels, compared by the same similarity."""
        sides = ((of.matches, of.sharing.first, of.sharing.second, of.sharing.nodes) for of in (self, other))
        return self.kind == other.kind and all(map(np.array_equal, *sides))


def _last_of_ties(falling: Floats) -> NDArray[np.intp]:
    return np.flatnonzero(np.append(falling[1:] < falling[:-1], True))


def cutoff_of(pairs: LabelledPairs, target: str, rate: float, dependence: Dependence) -> float:
    """Returns the last cutoff that meets a target on new pairs with 90 % confidence; NaN if there is none.

    At the x-th highest of n independent non-matches the rate of false matches has the distribution
    Beta(x, n + 1 - x). The same holds for missed matches from below, and nearly for the x non-matches among n
    pairs above a cutoff, by Beta(x + 1/2, n + 1/2 - x). Between two pairs the cutoff is interpolated (fractional
    order statistics: Hutson 1999). With shared sentences n and x are divided by the design effect.

    A precision can fall and rise again, and the last of many cutoffs would often pass by chance. So some cutoffs
    are tested from the highest down, each above twice as many pairs as the one before, with Clopper and Pearson's
    bound, until one fails (fixed-sequence testing: Angelopoulos et al. 2021). The first has just so many pairs
    above it that it passes with one non-match among them.
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
    falling, counts, ranks = scores[order], np.cumsum(counted[order]), np.arange(1, len(order) + 1)
    sizes = ranks if of_matched else np.full_like(ranks, len(order))
    # Dependence shows better in the neighbourhood of the cutoff than at the few pairs above it.
    within = max(int(np.count_nonzero(counts <= share * sizes)), 1)
    places = np.clip(np.ceil(within * np.array([1, 1.5, 2, 3])).astype(int), 1, len(order)) - 1
    heads = [scores >= falling[place] for place in places]
    shares = [(counted, head) if of_matched else (head, counted) for head in heads]
    effect = design_effect(shares, sharing, dependence, CONFIDENCE)
    half = 0.5 if of_matched else 0
    distinct = _last_of_ties(falling)
    x, n = counts[distinct] / effect, sizes[distinct] / effect
    confidence = betainc(x + half, n - x + 1 - half, share)
    if of_matched:
        tested = np.searchsorted(n, _FIRST / max(share, 1e-9) * 2.0 ** np.arange(np.log2(len(order)) + 1))
        tested = tested[tested < len(n)]
        passes = betainc(x + 1, np.maximum(n - x, 1e-9), share)[tested] >= CONFIDENCE
        passed = int(np.argmin(np.append(passes, False)))
        if not passed:
            return nan
        confidence[np.append(tested, len(n))[passed] :] = 0
    meets = np.flatnonzero(confidence >= CONFIDENCE)
    if not len(meets):
        return nan
    ends = [min(meets[-1] + 1, len(n) - 1), meets[-1]]
    return sign * float(np.interp(CONFIDENCE, confidence[ends], falling[distinct[ends]]))


def cross_fitted(pairs: LabelledPairs, target: str, rate: float, dependence: Dependence) -> Mask | None:
    """Returns which pairs match by the cutoffs of pairs without their sentences; None if a fold leaves none."""
    components = pairs.sharing.components
    folds = generator(0, "folds").permutation(components.max() + 1)[components] % _FOLDS
    cutoffs = [
        cutoff_of(pairs.take(folds != fold), target, rate, dependence) for fold in range(int(folds.max()) + 1)
    ]
    return None if np.isnan(cutoffs).any() else pairs.similarity >= np.array(cutoffs)[folds]


def carried_cutoff(
    pairs: LabelledPairs, origin: LabelledPairs | None, old: float, estimates: Estimates
) -> dict[str, float]:
    """Returns the cutoff with as many false matches as the `old` one of another model, with its interval.

    Among tied pairs it is the cutoff with the nearest number. Without false matches it is just above the highest
    non-match, and has no interval.
    """
    if origin is None or not pairs.has_pairs_of(origin):
        raise UserError(f"--from has other pairs of {pairs.name} or another similarity: measure both runs alike.")
    falling = np.sort(pairs.similarity[~pairs.matches])[::-1]
    before = ~pairs.matches & (origin.similarity >= old)
    rank, size = int(before.sum()), len(falling)
    ends = _last_of_ties(falling)
    nearest = int(np.argmin(np.abs(np.append(ends + 1, 0) - rank)))
    if nearest == len(ends):
        return {"value": float(np.nextafter(falling[0], np.inf)), "low": nan, "high": nan}
    cutoff = float(falling[ends[nearest]])
    # The difference of the two rates on new pairs is uncertain (Woodruff 1952).
    after = ~pairs.matches & (pairs.similarity >= cutoff)
    terms = ratio_terms(before, ~pairs.matches) - ratio_terms(after, ~pairs.matches)
    limits = estimates.limits(Linear(0.0, {pairs.name: terms}), size)
    ranks = [rank + size * limits[end] for end in ("high", "low")]
    low, high = np.interp(np.maximum(ranks, 1), np.arange(1, size + 1), falling)
    return {"value": cutoff, "low": min(low, cutoff), "high": max(high, cutoff)}


def rates_of(pairs: LabelledPairs, matched: Mask | None) -> dict[str, tuple[Linear, int]]:
    """Returns the `RATES` of an (n,) mask of matched pairs, and among how many pairs; undefined for None."""
    if matched is None:
        return dict.fromkeys(RATES, (Linear.undefined(), 0))
    others, every = ~pairs.matches, np.ones_like(matched)
    parts = (matched, others), (pairs.matches, matched), (matched, pairs.matches), (matched, every)
    rates = []
    for counted, among in parts:
        value = float(counted[among].mean()) if among.any() else nan
        rates.append((Linear(value, {pairs.name: ratio_terms(counted & among, among)}), int(among.sum())))
    (false, of_others), _, (recall, of_matches), _ = rates
    balanced = (recall - false).mapped((1 + recall.value - false.value) / 2, 0.5)
    return dict(zip(RATES, [*rates, (balanced, min(of_others, of_matches))], strict=True))


def match_probability(pairs: LabelledPairs, level: float | None) -> Iterator[dict[str, Any]]:
    """Yields the probability of a match by isotonic regression, with a band from reweighted components.

    There is a row with `value`, `low` and `high` (NaN without a level, or if all pairs are linked) for each
    similarity in steps of 0.05, or 25 steps on another scale, its `group`.
    """
    # Among ties matches come first, so that they are pooled.
    order = np.lexsort((~pairs.matches, pairs.similarity))
    rising, matches = pairs.similarity[order], pairs.matches[order].astype(np.float64)
    span = rising[-1] - rising[0]
    steps = 20 if pairs.kind == "cosine" or not span else 25 / span
    grid = np.arange(np.floor(rising[0] * steps), np.ceil(rising[-1] * steps) + 1) / steps
    curve = np.interp(grid, rising, isotonic_regression(matches).x)
    low, high = np.full((2, len(grid)), nan)
    linked = pairs.sharing.components[order]
    if level is not None and linked.any():
        # The Bayesian bootstrap (Rubin 1981). A match below all pairs and a non-match above are added, because
        # without them the ends are 0 and 1 in nearly every draw, however few pairs are there.
        codes = np.concatenate([[linked.max() + 1], linked, [linked.max() + 2]])
        padded, places = np.concatenate([[1], matches, [0]]), np.concatenate([rising[:1], rising, rising[-1:]])
        weights = generator(0, "threshold").exponential(size=(_DRAWS, codes.max() + 1))
        fits = (isotonic_regression(padded, weights=of[codes]).x for of in weights)
        curves = [np.interp(grid, places, fit) for fit in fits]
        low, high = np.quantile(curves, [(1 - level) / 2, (1 + level) / 2], axis=0)
        low, high = np.minimum(low, curve), np.maximum(high, curve)
    for place, *row in zip(grid, curve, low, high, strict=True):
        yield {"group": f"{place:g}"} | dict(zip(("value", "low", "high"), map(float, row), strict=True))
