"""Threshold: which cutoff separates matches from other pairs at a rate that you choose?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.special import betainc

from stsbench.analysis.base import OfTasks, Row, with_intervals
from stsbench.analysis.inputs import INTERVALS, Answer, Estimates, analysable, parameter
from stsbench.base.errors import UserError
from stsbench.cli.options import DATA, LARGEST
from stsbench.data.benchmarks import labelled_pairs
from stsbench.data.catalogue import data_sets
from stsbench.data.tables import load_pairs
from stsbench.records.kinds import ALL_TASKS
from stsbench.records.record import RunRecord
from stsbench.render.table import Table, Tables, note_of
from stsbench.scoring.measure import evaluate
from stsbench.scoring.settings import AVERAGE_PRECISION, Intervals
from stsbench.scoring.statistic import sharing_of
from stsbench.scoring.subjects import RecordedModel, ScoredTask, Subject, scored_tasks
from stsbench.scoring.tasks import canonical
from stsbench.statistics import Dependence
from stsbench.statistics.correlations import CORRELATIONS
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.influence import Floats, Linear
from stsbench.statistics.intervals import design_effect
from stsbench.statistics.seeds import generator

Mask = NDArray[np.bool_]

CONFIDENCE = 0.9  # the probability that a cutoff meets its target on new pairs

FALSE, PRECISION, RECALL = TARGETS = "false matches", "precision", "recall"
MEASURES = (*TARGETS, "matched", "balanced accuracy")
CUTOFF, PROBABILITY = "cutoff", "probability"
FITTED, CARRIED, KEPT = "fitted", "carried", "kept"

_FOLDS, _DRAWS, _STEPS = 5, 200, 20
_RATE: dict[str, Any] = {"kind": float, "limits": (0, 1)}
_NUMBER: dict[str, Any] = {"kind": float, "limits": (-LARGEST, LARGEST)}


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """The n pairs of a task with their similarities, whether they match, and the sentences that they share."""

    name: str
    similarity: Floats
    matches: Mask
    sharing: Sharing

    @classmethod
    def of(cls, name: str, tasks: Sequence[ScoredTask], positive: float | None) -> "LabelledPairs":
        """Joins tasks; gold scores from `positive` match, by default from four fifths of their scale."""
        matches = []
        for task in tasks:
            low, high = task.gold_range
            lowest = low + 0.8 * (high - low) if positive is None else positive
            matches.append(task.pairs["gold"].to_numpy(float) >= lowest)
            if len(set(matches[-1].tolist())) < 2:
                raise UserError(
                    f"{'all' if matches[-1].all() else 'no'} pairs of {task.task} have a gold score of {lowest:g} "
                    "and above: set --positive."
                )
        similarity = np.concatenate([task.similarity for task in tasks])
        sharing = Sharing.join([sharing_of(task.pairs, folded=True) for task in tasks])
        return cls(name, similarity, np.concatenate(matches), sharing)

    def take(self, chosen: Mask) -> "LabelledPairs":
        return LabelledPairs(self.name, self.similarity[chosen], self.matches[chosen], self.sharing.take(chosen))


class Threshold(OfTasks):
    """Find the cutoff of the similarity that meets a target on new pairs with 90 % confidence.

    A pair matches if its gold score is in the top fifth of the scale (`--positive`). Precision, recall and the
    share matched are measured on pairs that did not choose the cutoff. The figure shows how likely a match is at
    each similarity.

    Returns:
        One row per model, task (and `all tasks`), measure and group, with `value`, `low` and `high`. Group
        `fitted`: the `cutoff` (NaN if none meets the `target`), and on pairs that did not choose it the rate of
        `false matches` among non-matches, `precision`, `recall`, the share `matched` and `balanced accuracy`.
        With `carry` the same for the cutoff that makes as many false matches as that of `origin` (`carried`), and
        for the old number (`kept`). `probability`: of a match, by isotonic regression; groups are similarities.

    >>> from stsbench import threshold
    >>> cut = threshold(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], tasks=["sample"])
    >>> cut.frame.loc[cut.frame["measure"] == "cutoff", "value"].round(3).tolist()
    [1.0]
    """

    answer = Answer("Which similarity means a match?", rows={"measure": CUTOFF, "group": FITTED})
    place_label = "similarity"
    examples = ("stsbench explain threshold runs/new --carry 0.70 --from runs/old --max-false-match 0.01",)

    data: Sequence[str | Path] = parameter(
        (), "Your own pairs, with labels or gold scores. Repeatable.", flags=("--data",), kind=Path, panel=DATA
    )
    max_false_match: float | None = parameter(None, "The largest rate of false matches; by default 0.05.", **_RATE)
    min_precision: float | None = parameter(None, "The smallest share of matches above the cutoff.", **_RATE)
    min_recall: float | None = parameter(None, "The smallest share of the matches that are found.", **_RATE)
    positive: float | None = parameter(None, "The smallest gold score of a match.", **_NUMBER)
    carry: float | None = parameter(None, "A cutoff of the run in --from, to carry over.", **_NUMBER)
    origin: str | Path | None = parameter(None, "The run that has the cutoff.", flags=("--from",), kind=Path)
    intervals: Intervals | None = INTERVALS

    @property
    def goal(self) -> tuple[str, float]:
        """The target and its rate; a UserError if several are given."""
        rates = zip(TARGETS, (self.max_false_match, self.min_precision, self.min_recall), strict=True)
        chosen = [(target, rate) for target, rate in rates if rate is not None] or [(FALSE, 0.05)]
        if len(chosen) > 1:
            raise UserError("give one of --max-false-match, --min-precision and --min-recall.")
        return chosen[0]

    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, Sequence[LabelledPairs]]:
        if (self.carry is None) != (self.origin is None):
            raise UserError("give --carry and --from together: a cutoff and its run.")
        target, rate = self.goal
        self.constants = {"target": f"{target} {'<=' if target == FALSE else '>='} {rate:g}"}
        origin = {} if self.origin is None else analysable([self.origin])
        pairs = [of for name, subject in origin.items() for of in self._pairs(name, subject)]
        self._origin = {of.name: of for of in pairs}
        return {name: self._pairs(name, subject) for name, subject in subjects.items()}

    def _pairs(self, name: str, subject: Subject) -> list[LabelledPairs]:
        """Returns the pairs of each task and of all together."""
        _, tasks = self.scored(name, subject)
        parts = [(task.task, [task]) for task in tasks] + ([(ALL_TASKS, tasks)] if len(tasks) > 1 else [])
        return [LabelledPairs.of(part, of_part, self.positive) for part, of_part in parts]

    def scored(self, name: str, subject: Subject) -> tuple[RunRecord, list[ScoredTask]]:
        """Returns scored tasks; a run's model measures labelled pairs and pairs that the run lacks."""
        known = {score.data.sha256 for score in subject.scores} if isinstance(subject, RunRecord) else set()
        sets: list[Any] = [data for data in map(load_pairs, self.data) if data.sha256 not in known]
        kinds = {task: getattr(data_sets().get(canonical(task)), "kind", "") for task in self.tasks}
        labelled = [task for task, kind in kinds.items() if kind == "labelled"]
        options: dict[str, Any] = {"data_dirs": self.data_dirs, "progress": self.progress}
        if not (sets or labelled):
            if not isinstance(subject, RunRecord):
                return super().scored(name, subject)
            options["statistics"] = (*CORRELATIONS, AVERAGE_PRECISION)
            return scored_tasks(name, subject, self.tasks, **options)
        sets += [labelled_pairs(task, [Path(folder) for folder in self.data_dirs]) for task in labelled]
        sets += [task for task in self.tasks if task not in labelled]
        encoder = RecordedModel(subject.model) if isinstance(subject, RunRecord) else subject
        return scored_tasks(name, evaluate(encoder, sets, intervals=Intervals(None), **options))

    def measure(self, model: str, given: Sequence[LabelledPairs]) -> Iterator[Row]:
        estimates = Estimates(self._how)
        for pairs in given:
            estimates.block(pairs.name, pairs.sharing)
            about = {"task": pairs.name, "pairs": len(pairs.matches), "matches": int(pairs.matches.sum())}
            cutoffs = {FITTED: {"value": self._cutoff(pairs)}}
            if self.carry is not None:
                cutoffs |= {CARRIED: self._carried(pairs, self.carry, estimates), KEPT: {"value": self.carry}}
            for group, cutoff in cutoffs.items():
                yield about | {"group": group, "measure": CUTOFF, "value": nan, "low": nan, "high": nan} | cutoff
                rates = dict.fromkeys(MEASURES, Linear.undefined())
                if not np.isnan(cutoff["value"]):
                    matched = pairs.similarity >= cutoff["value"]
                    rates = self._cross_fitted(pairs) if group == FITTED else decisions(pairs, matched)
                for measure, estimate in rates.items():
                    limits = estimates.limits(estimate, len(pairs.matches), share=True)
                    yield about | {"group": group, "measure": measure} | limits
            for row in self._probabilities(pairs):
                yield about | {"measure": PROBABILITY} | row

    def _cutoff(self, pairs: LabelledPairs) -> float:
        return cutoff_of(pairs, *self.goal, self._how.interval or "dyadic")

    def _cross_fitted(self, pairs: LabelledPairs) -> dict[str, Linear]:
        """Returns the rates by cutoffs of pairs without shared sentences; undefined if all pairs are linked."""
        folds, matched = pairs.sharing.components % _FOLDS, np.zeros(len(pairs.matches), dtype=bool)
        for fold in range(folds.max() + 1):
            matched |= (folds == fold) & (pairs.similarity >= self._cutoff(pairs.take(folds != fold)))
        return decisions(pairs, matched) if folds.any() else dict.fromkeys(MEASURES, Linear.undefined())

    def _carried(self, pairs: LabelledPairs, old: float, estimates: Estimates) -> dict[str, float]:
        """Returns the cutoff that makes as many false matches as the old one of the other model."""
        origin = self._origin.get(pairs.name)
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

    def _probabilities(self, pairs: LabelledPairs) -> Iterator[Row]:
        """Yields the probability of a match by isotonic regression, with a band from reweighted components."""
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
        tails = (1 - self._how.level) / 2, (1 + self._how.level) / 2
        low, high = np.quantile(curves, tails, axis=0) if self._how.interval else np.full((2, len(grid)), nan)
        for place, *row in zip(grid, curves[0], low, high, strict=True):
            yield {"group": f"{place:g}"} | dict(zip(("value", "low", "high"), map(float, row), strict=True))

    def table(self) -> Tables:
        rows = self.frame[self.frame["measure"] != PROBABILITY]
        table = with_intervals(rows, ["model", "task", "group"], digits=3)
        if self.carry is None:
            table = table.drop(columns=["group", f"{CUTOFF}: interval"])
        table = table.drop(columns=[f"{name}: interval" for name in MEASURES[3:]])
        caption = f"The cutoff for {self.constants['target']}, and its rates on other pairs"
        return Tables([Table(table, caption, 3, notes=self.notes)])

    @property
    def notes(self) -> tuple[str, ...]:
        rows = self.frame[(self.frame["measure"] == CUTOFF) & self.frame["value"].isna()]
        tasks = rows.groupby("model", sort=False)["task"].agg(", ".join)
        none = note_of("No cutoff separates the pairs at this rate", tasks)
        return ("A cutoff meets its target on new pairs with 90 % confidence.", *none)

    def panels(self) -> Mapping[str, pd.DataFrame]:
        rows = self.headline[self.headline["measure"] == PROBABILITY].sort_values("group", key=pd.to_numeric)
        return {"probability of a match": rows.assign(place=rows["group"])}


def decisions(pairs: LabelledPairs, matched: Mask) -> dict[str, Linear]:
    """Returns the rates of a decision (`MEASURES`)."""

    def count(of: Mask) -> Linear:
        return Linear(float(of.sum()), {pairs.name: of.astype(np.float64)})

    def rate(counted: Mask, among: Mask) -> Linear:
        return count(counted & among) / count(among)

    false, recall = rate(matched, ~pairs.matches), rate(matched, pairs.matches)
    precision, share = rate(pairs.matches, matched), rate(matched, np.ones_like(matched))
    balanced = (recall - false).mapped((1 + recall.value - false.value) / 2, 0.5)
    return dict(zip(MEASURES, (false, precision, recall, share, balanced), strict=True))


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
