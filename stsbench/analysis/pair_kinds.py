"""Pair kinds: which kinds of pairs does a model rank wrongly, and in which direction?"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import nan
from typing import Self

from stsbench.analysis.base import OfTexts, Row, similarity_notes
from stsbench.analysis.inputs import Answer, with_overall
from stsbench.analysis.ranked_pairs import (
    COST,
    EXPECTED,
    GOLD,
    SHIFT,
    Kinds,
    RankedPairs,
    kinds_by_numbers,
    kinds_by_words,
    measures,
)
from stsbench.base.errors import UserError
from stsbench.records.kinds import ALL_TASKS
from stsbench.render.charts import forest
from stsbench.render.figures import Figure
from stsbench.render.table import Table, Tables, with_intervals
from stsbench.scoring.statistic import sharing_of
from stsbench.scoring.subjects import ScoredTask
from stsbench.statistics.intervals import two_sided_p

FEWEST = 30
"""The least number of pairs inside and outside a kind; with fewer its interval is too wide."""

_TOO_FEW = f"no kind of pairs has {FEWEST} pairs and leaves {FEWEST} outside, or no rank is wrong"

_CAPTION = (
    "Mean rank error in percentile points compared with pairs of similar gold score; share of the rank error over "
    "share of the pairs"
)


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
    """The reason why the words of a task are unknown, by task."""
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
        tasks = {task.task: [RankedPairs.of(task, self._kinds_of(task))] for task in given}
        for task in given:
            self.estimates.block(task.task, sharing_of(task.pairs, folded=True))
        for name, pooled in with_overall(tasks, lambda parts: [*chain.from_iterable(parts)], ALL_TASKS).items():
            pairs = sum(map(len, pooled))
            for feature, kind in dict.fromkeys(key for task in pooled for key in task.kinds):
                inside = [task.inside((feature, kind)) for task in pooled]
                count = int(sum(map(sum, inside)))
                if not FEWEST <= count <= pairs - FEWEST:
                    continue
                about = {"task": name, "feature": feature, "kind": kind, "pairs": count, "share": count / pairs}
                about["similarity"] = given[0].statistic.similarity
                for measure, (estimate, weight) in measures(pooled, inside, with_shift=feature != GOLD).items():
                    row = self.estimates.limits(estimate) | {"measure": measure, "weight": weight, "p": nan}
                    if self.estimates.intervals.interval is not None:
                        difference = estimate.value - EXPECTED[measure]
                        row["p"] = two_sided_p(difference, self.estimates.spread(estimate))
                    yield about | row

    def _kinds_of(self, task: ScoredTask) -> Kinds:
        low, high = task.gold_range
        kinds = kinds_by_numbers(task.pairs, task.gold_range) if low < high else {}
        try:
            return kinds | kinds_by_words(task.pairs, self.texts(task))
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
