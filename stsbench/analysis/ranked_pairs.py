"""The kinds of a task's pairs, and how wrongly a model ranks the pairs of a kind.

A kind is the pairs with a feature: a range of gold scores, of lengths or of shared words, a negation, numbers.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.analysis.inputs import total
from stsbench.data.tables import SENTENCES
from stsbench.scoring.kinds.sts import COUNT, VARIANCE
from stsbench.scoring.subjects import ScoredTask
from stsbench.statistics.correlations import average_ranks
from stsbench.statistics.influence import Floats, Linear

Kinds = dict[tuple[str, str], NDArray[np.bool_]]
"""(n,) masks of the pairs of each kind, by its feature and its name, which completes `pairs with ...`."""

SHIFT, COST = "shift", "cost"
"""The measures: rank above pairs of similar gold score, and share of the error over share of the pairs."""

EXPECTED = {SHIFT: 0.0, COST: 1.0}
"""The value of a measure if a kind is like the other pairs."""

_STRATA = 10  # Pairs in the same tenth of a task's scale have similar gold scores

GOLD, RATINGS, LENGTH = "gold score", "ratings", "length"
OVERLAP, NEGATION, NUMBERS = "word overlap", "negation", "numbers"
"""The features that define kinds of pairs. The lists of words below are English, like the tasks."""

LONG_DIFFERENCE, SHORT, LONG = 3, 8, 20
"""Words of the largest difference that is not long (as in ESimCSE), and of short and of long sentences."""

LOW_OVERLAP, HIGH_OVERLAP = 0.25, 0.75
"""The limits of low and high word overlap (Jaccard)."""

_APART = 0.75  # The quantile of the ratings' variance above which raters disagree: the mean may hide two opinions

_NEGATIONS = frozenset(
    ["no", "not", "cannot", "never", "none", "nobody", "nothing", "nowhere", "neither", "nor", "without"]
)
_SHORT_NOT = ("n't", "n\u2019t")
_NUMBER, _WORD = re.compile(r"\d+(?:[.,:]\d+)*"), re.compile(r"\w+(?:['\u2019]\w+)*")
# `one` is often a pronoun.
_NAMES = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_SPELLED = {name: str(value) for value, name in enumerate(_NAMES, 2)}


def kinds_by_numbers(pairs: pd.DataFrame, gold_range: tuple[float, float]) -> Kinds:
    """Returns the kinds of a task's pairs by gold score, ratings and length, as far as they are known."""
    low, high = gold_range
    fifth = np.clip(((pairs["gold"].to_numpy(float) - low) / (high - low) * 5).astype(int), 0, 4)
    names = ("lowest", "second", "middle", "fourth", "highest")
    kinds = {(GOLD, f"a gold score in the {name} fifth"): fifth == place for place, name in enumerate(names)}
    if VARIANCE in pairs:
        spread = pairs[VARIANCE].where(pairs[COUNT] >= 2).to_numpy(float)
        if np.isfinite(spread).any():
            apart = spread > np.quantile(spread[np.isfinite(spread)], _APART)
            kinds[RATINGS, "ratings further apart than on three of four"] = apart
    if "words_a" in pairs:
        a, b = (pairs[f"words_{side}"].to_numpy(int) for side in "ab")
        kinds[LENGTH, f"lengths more than {LONG_DIFFERENCE} words apart"] = np.abs(a - b) > LONG_DIFFERENCE
        kinds[LENGTH, f"at most {SHORT} words in both"] = np.maximum(a, b) <= SHORT
        kinds[LENGTH, f"at least {LONG} words in both"] = np.minimum(a, b) >= LONG
    return kinds


def features_of(text: str) -> tuple[set[str], bool, set[str]]:
    """Returns the words of a sentence, whether it has a negation, and its numbers."""
    folded = text.casefold()
    words = set(_WORD.findall(folded))
    numbers = {*_NUMBER.findall(folded), *(_SPELLED[word] for word in words & _SPELLED.keys())}
    return words, not words.isdisjoint(_NEGATIONS) or any(short in folded for short in _SHORT_NOT), numbers


def kinds_by_words(pairs: pd.DataFrame, texts: Mapping[int, str]) -> Kinds:
    """Returns the kinds of a task's pairs by the words of their sentences, which are given by id."""
    features = {number: features_of(text) for number, text in texts.items()}
    sides = [[features[number] for number in ids] for ids in pairs[[*SENTENCES]].to_numpy().tolist()]
    # Two sentences without words share all of them.
    shared = np.array([len(a[0] & b[0]) / len(a[0] | b[0]) if a[0] | b[0] else 1.0 for a, b in sides])
    return {
        (OVERLAP, f"less than {100 * LOW_OVERLAP:g} % of their words shared"): shared < LOW_OVERLAP,
        (OVERLAP, f"at least {100 * HIGH_OVERLAP:g} % of their words shared"): shared >= HIGH_OVERLAP,
        (NEGATION, "a negation in one sentence alone"): np.array([a[1] != b[1] for a, b in sides]),
        (NUMBERS, "different numbers in both"): np.array([a[2] != b[2] for a, b in sides]),
    }


@dataclass(frozen=True, eq=False)
class RankedPairs:
    """The n pairs of a task by the ranks of their gold scores and similarities: percentages of lower pairs.

    Half of the ties count as lower. `strata` are codes of groups of pairs with similar gold scores.
    """

    name: str
    similarity: Floats
    gold: Floats
    strata: NDArray[np.intp]
    kinds: Kinds

    @classmethod
    def of(cls, task: ScoredTask, kinds: Kinds) -> "RankedPairs":
        low, high = task.gold_range
        gold = np.asarray(task.pairs["gold"], dtype=float)
        scaled = (gold - low) / (high - low) if high > low else np.zeros(len(gold))
        strata = np.clip((_STRATA * scaled).astype(np.intp), 0, _STRATA - 1)
        similarity, gold = (100 * (average_ranks(side) - 0.5) / len(gold) for side in (task.similarity, gold))
        return cls(task.task, similarity, gold, strata, kinds)

    def __len__(self) -> int:
        return len(self.gold)

    def inside(self, kind: tuple[str, str]) -> Floats:
        """Returns 1 for the pairs of a kind, else 0."""
        return self.kinds.get(kind, np.zeros(len(self))).astype(np.float64)

    def error(self, inside: Floats) -> Linear:
        """Returns the sum of the squared rank errors of the pairs inside."""
        weights = 2 * inside * (self.similarity - self.gold)
        errors = (self.similarity - self.gold) ** 2
        through = through_ranks(self.similarity, weights)
        return Linear(
            float(inside @ errors), {self.name: inside * errors + through - through_ranks(self.gold, weights)}
        )

    def centred(self, values: Floats) -> Floats:
        """Centres values in each stratum."""
        sizes = np.bincount(self.strata)
        means = np.bincount(self.strata, weights=values) / np.maximum(sizes, 1)
        return values - means[self.strata]


def through_ranks(ranks: Floats, weights: Floats) -> Floats:
    """Returns the effect of each pair on a weighted sum of ranks, by its effect on the ranks of others.

    With r_i = 100 / n * (pairs below i, ties half), one more pair j moves sum_i w_i r_i by
    (100 * (the weights above j, ties half) - sum_i w_i r_i) / n.
    """
    codes = np.unique(ranks, return_inverse=True)[1]
    sums = np.bincount(codes, weights=weights)
    above = np.cumsum(sums[::-1])[::-1] - sums / 2
    return np.asarray((100 * above[codes] - weights @ ranks) / len(ranks))


def measures(
    tasks: Sequence[RankedPairs], inside: Sequence[Floats], *, with_shift: bool
) -> dict[str, tuple[Linear, float]]:
    """Returns the measures of a kind, and the share of the rank error that each explains."""
    whole = sum(((task.similarity - task.gold) ** 2).sum() for task in tasks)
    if not whole:
        return {}
    value, expected = cost(tasks, inside)
    measured = {COST: (value, abs(value.value - 1) * expected / whole)}
    if with_shift and (shifted := shift(tasks, inside)) is not None:
        value, spread = shifted
        measured = {SHIFT: (value, value.value**2 * spread / whole)} | measured
    return measured


def shift(tasks: Sequence[RankedPairs], inside: Sequence[Floats]) -> tuple[Linear, float] | None:
    """Returns how much higher the pairs inside are ranked than others of similar gold score, and their spread.

    It is the least-squares coefficient of `inside` for the similarity's rank, with an intercept for each stratum
    (Frisch and Waugh 1933): sum(k r) / sum(k^2), k being `inside` less its mean in the stratum, whose sum of
    squares is the spread. The terms are White's (1980) with HC1 (MacKinnon and White 1985), and what a pair does
    to the ranks of others. None if every stratum is completely inside or outside.
    """
    centred = [task.centred(of_task) for task, of_task in zip(tasks, inside, strict=True)]
    spread = float(sum(k @ k for k in centred))
    if spread < 1e-9:
        return None
    value = float(sum(k @ task.similarity for task, k in zip(tasks, centred, strict=True))) / spread
    pairs, strata = sum(map(len, tasks)), sum(len(set(task.strata.tolist())) for task in tasks)
    scale = (pairs / max(pairs - strata - 1, 1)) ** 0.5
    terms = {
        task.name: scale
        * (k * (task.centred(task.similarity) - value * k) / spread + through_ranks(task.similarity, k / spread))
        for task, k in zip(tasks, centred, strict=True)
    }
    return Linear(value, terms), spread


def cost(tasks: Sequence[RankedPairs], inside: Sequence[Floats]) -> tuple[Linear, float]:
    """Returns the rank error of the pairs inside over the expected one, and the expected one.

    Expected is the mean error of each task times the number of its pairs inside.
    """
    errors, expected = [], []
    for task, of_task in zip(tasks, inside, strict=True):
        every = np.ones(len(task))
        number, count = (Linear(float(of.sum()), {task.name: of}) for of in (of_task, every))
        errors.append(task.error(of_task))
        expected.append(number * (task.error(every) / count))
    below = total(expected)
    return total(errors) / below, below.value
