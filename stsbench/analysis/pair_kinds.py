"""Pair kinds: which kinds of pairs does a model rank wrongly, and in which direction?"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.analysis.base import OfTexts, Row, similarity_notes, with_intervals
from stsbench.analysis.inputs import Answer, Estimates, total
from stsbench.base.errors import UserError
from stsbench.data.tables import SENTENCES
from stsbench.records.kinds import ALL_TASKS
from stsbench.render.charts import forest
from stsbench.render.figures import Figure
from stsbench.render.table import Table, Tables
from stsbench.scoring.kinds.sts import COUNT, VARIANCE
from stsbench.scoring.statistic import sharing_of
from stsbench.scoring.subjects import ScoredTask
from stsbench.statistics.correlations import average_ranks
from stsbench.statistics.influence import Floats, Linear
from stsbench.statistics.intervals import two_sided_p

SHIFT, COST = "shift", "cost"
"""The measures: rank above pairs of similar gold score, and share of the error over share of the pairs."""

NONE_EXPECTED = {SHIFT: 0.0, COST: 1.0}
"""The value of a measure if a kind is like the other pairs."""

FEWEST = 30
"""Pairs that a kind needs, inside and outside; with fewer its interval is too wide."""

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

_TOO_FEW = f"no kind of pairs has {FEWEST} pairs and leaves {FEWEST} outside, or no rank is wrong"

_CAPTION = (
    "Mean rank error in percentile points compared with pairs of similar gold score; share of the rank error over "
    "share of the pairs"
)


class PairKind(NamedTuple):
    """A kind of pairs: its feature, its name, which completes `pairs with ...`, and the (n,) mask of its pairs."""

    feature: str
    name: str
    inside: NDArray[np.bool_]


class PairKinds(OfTexts):
    """Find the kinds of pairs that a model ranks wrongly, and in which direction.

    Kinds by gold score, length, shared words, negation and numbers; for each its share of the rank error and its
    mean rank error. The sentences come from the tasks' data. A kind has at least 30 pairs, and leaves out 30.

    Returns:
        One row per model, task (and `all tasks`), kind and measure, with `pairs` and their `share`, `value`,
        `low`, `high`, the p-value `p` of no difference, and `weight`, the share of all rank error that the
        value explains. Measures: `shift`, the mean percentile rank of the similarity compared with other pairs
        in the same tenth of gold scores (not for kinds by gold score); `cost`, the sum of squared rank errors
        over that of average pairs.

    >>> from stsbench import pair_kinds
    >>> kinds = pair_kinds(lambda sentences: [[len(s), s.count("e")] for s in sentences], tasks=["sample"])
    >>> sorted(set(kinds.frame["measure"])), set(kinds.frame["task"])
    (['cost', 'shift'], {'sample'})
    """

    answer = Answer(
        "How far off is the worst kind?", ".1f", "points", {"measure": SHIFT}, take=lambda of: abs(of).max()
    )
    title = "Kinds of pairs"
    missing: Mapping[str, str] = {}
    """Why the words of a task are unknown, by task."""
    without: Sequence[str] = ()
    """Models with too few pairs for any kind."""

    def compute(self, inputs: Mapping[str, Sequence[ScoredTask]]) -> Self:
        self.missing = {}
        super().compute(inputs)
        if not len(self._frame):
            raise UserError(f"{_TOO_FEW}: choose tasks with more pairs.")
        self.without = [model for model in inputs if model not in set(self._frame["model"])]
        return self

    def measure(self, model: str, given: Sequence[ScoredTask]) -> Iterator[Row]:
        estimates, tasks = Estimates(self._how), [RankedPairs.of(task, self._kinds_of(task)) for task in given]
        for task in given:
            estimates.block(task.task, sharing_of(task.pairs, folded=True))
        together = [(ALL_TASKS, tasks)] if len(tasks) > 1 else []
        for name, pooled in [*((task.name, [task]) for task in tasks), *together]:
            pairs = sum(map(len, pooled))
            for kind, feature in {kind: of.feature for task in pooled for kind, of in task.kinds.items()}.items():
                inside = [task.inside(kind) for task in pooled]
                count = int(sum(map(sum, inside)))
                if not FEWEST <= count <= pairs - FEWEST:
                    continue
                about = {"task": name, "feature": feature, "kind": kind, "pairs": count, "share": count / pairs}
                about["similarity"] = given[0].statistic.similarity
                for measure, (estimate, weight) in _measured(pooled, inside, feature).items():
                    row = estimates.limits(estimate, pairs) | {"measure": measure, "weight": weight, "p": nan}
                    if self._how.interval is not None:
                        difference = estimate.value - NONE_EXPECTED[measure]
                        row["p"] = two_sided_p(difference, estimates.spread(estimate))
                    yield about | row

    def _kinds_of(self, task: ScoredTask) -> list[PairKind]:
        low, high = task.gold_range
        kinds = list(kinds_by_numbers(task.pairs, task.gold_range)) if low < high else []
        try:
            return kinds + kinds_by_words(task.pairs, self.texts(task))
        except UserError as error:
            self.missing = {**self.missing, task.task: str(error).rstrip(".")}
            return kinds

    def table(self) -> Tables:
        rows = self.headline.assign(**{"%": 100 * self.headline["share"]})
        columns = [SHIFT, f"{SHIFT}: interval", COST, f"{COST}: interval"]
        keys = ["kind", "model", "pairs", "%"]
        table = with_intervals(rows, keys).reindex(columns=[*keys, *columns])
        heads = {SHIFT: "mean rank error", COST: "error share / pair share"}
        return Tables([Table(table.rename(columns=heads), _CAPTION, notes=self.notes)])

    @property
    def notes(self) -> tuple[str, ...]:
        notes = [f"without words: {reason}" for reason in dict.fromkeys(self.missing.values())]
        notes += [f"{model}: {_TOO_FEW}." for model in self.without]
        return (*notes, *similarity_notes(self.frame))

    def plot(self) -> Figure:
        """Draws the cost of each kind."""
        rows = self.headline[self.headline["measure"] == COST].rename(columns={"kind": "label", "model": "series"})
        return forest(rows.assign(filled=True, summary=False), "error share / pair share", reference=1)


def kinds_by_numbers(pairs: pd.DataFrame, gold_range: tuple[float, float]) -> Iterator[PairKind]:
    """Yields the kinds of a task's pairs by gold score, ratings and length, as far as they are known."""
    low, high = gold_range
    fifth = np.clip(((pairs["gold"].to_numpy(float) - low) / (high - low) * 5).astype(int), 0, 4)
    for place, name in enumerate(("lowest", "second", "middle", "fourth", "highest")):
        yield PairKind(GOLD, f"a gold score in the {name} fifth", fifth == place)
    if VARIANCE in pairs:
        spread = pairs[VARIANCE].where(pairs[COUNT] >= 2).to_numpy(float)
        if np.isfinite(spread).any():
            apart = spread > np.quantile(spread[np.isfinite(spread)], _APART)
            yield PairKind(RATINGS, "ratings further apart than on three of four", apart)
    if "words_a" in pairs:
        first, second = (pairs[f"words_{side}"].to_numpy(int) for side in "ab")
        unlike = np.abs(first - second) > LONG_DIFFERENCE
        yield PairKind(LENGTH, f"lengths more than {LONG_DIFFERENCE} words apart", unlike)
        yield PairKind(LENGTH, f"at most {SHORT} words in both", np.maximum(first, second) <= SHORT)
        yield PairKind(LENGTH, f"at least {LONG} words in both", np.minimum(first, second) >= LONG)


def features_of(text: str) -> tuple[set[str], bool, set[str]]:
    """Returns the words of a sentence, whether it has a negation, and its numbers."""
    folded = text.casefold()
    words = set(_WORD.findall(folded))
    numbers = {*_NUMBER.findall(folded), *(_SPELLED[word] for word in words & _SPELLED.keys())}
    return words, not words.isdisjoint(_NEGATIONS) or any(short in folded for short in _SHORT_NOT), numbers


def kinds_by_words(table: pd.DataFrame, texts: Mapping[int, str]) -> list[PairKind]:
    """Returns the kinds of a task's pairs by the words of their sentences, which are given by id."""
    features = {number: features_of(text) for number, text in texts.items()}
    pairs = [[features[number] for number in ids] for ids in table[[*SENTENCES]].to_numpy().tolist()]
    # Two sentences without words share all of them.
    shared = np.array([len(a[0] & b[0]) / len(a[0] | b[0]) if a[0] | b[0] else 1.0 for a, b in pairs])
    negated, numbers = (np.array([a[place] != b[place] for a, b in pairs]) for place in (1, 2))
    return [
        PairKind(OVERLAP, f"less than {100 * LOW_OVERLAP:g} % of their words shared", shared < LOW_OVERLAP),
        PairKind(OVERLAP, f"at least {100 * HIGH_OVERLAP:g} % of their words shared", shared >= HIGH_OVERLAP),
        PairKind(NEGATION, "a negation in one sentence alone", negated),
        PairKind(NUMBERS, "different numbers in both", numbers),
    ]


@dataclass(frozen=True, eq=False)
class RankedPairs:
    """The n pairs of a task by the ranks of their gold scores and similarities: percentages of lower pairs.

    Half of the ties count as lower. `strata` are codes of groups of pairs with similar gold scores.
    """

    name: str
    similarity: Floats
    gold: Floats
    strata: NDArray[np.intp]
    kinds: Mapping[str, PairKind]

    @classmethod
    def of(cls, task: ScoredTask, kinds: Iterable[PairKind]) -> "RankedPairs":
        low, high = task.gold_range
        gold = np.asarray(task.pairs["gold"], dtype=float)
        scaled = (gold - low) / (high - low) if high > low else np.zeros(len(gold))
        strata = np.clip((_STRATA * scaled).astype(np.intp), 0, _STRATA - 1)
        similarity, gold = (100 * (average_ranks(side) - 0.5) / len(gold) for side in (task.similarity, gold))
        return cls(task.task, similarity, gold, strata, {kind.name: kind for kind in kinds})

    def __len__(self) -> int:
        return len(self.gold)

    @property
    def losses(self) -> Floats:
        return (self.similarity - self.gold) ** 2

    def inside(self, kind: str) -> Floats:
        """Returns 1 for the pairs of a kind, else 0."""
        return self.kinds[kind].inside.astype(np.float64) if kind in self.kinds else np.zeros(len(self))

    def sums_of_loss(self, inside: Floats) -> Linear:
        """Returns the sum of the losses of the pairs inside."""
        weights = 2 * inside * (self.similarity - self.gold)
        losses, above = self.losses, through_ranks(self.similarity, weights)
        terms = inside * losses + above - through_ranks(self.gold, weights)
        return Linear(float(inside @ losses), {self.name: terms})

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


def _measured(
    tasks: Sequence[RankedPairs], inside: Sequence[Floats], feature: str
) -> dict[str, tuple[Linear, float]]:
    """Returns the measures of a kind, and the share of the rank error that each explains."""
    whole = sum(task.losses.sum() for task in tasks)
    if not whole:
        return {}
    value, expected = cost(tasks, inside)
    measured = {COST: (value, abs(value.value - 1) * expected / whole)}
    if feature != GOLD and (shifted := shift(tasks, inside)) is not None:
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
        errors.append(task.sums_of_loss(of_task))
        expected.append(number * (task.sums_of_loss(every) / count))
    below = total(expected)
    return total(errors) / below, below.value
