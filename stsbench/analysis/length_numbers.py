"""Length bias in numbers: from scored pairs to correlations, errors and slopes by length difference.

Estimates are `Linear`: each has its pairs' terms, so that intervals see which pairs share sentences, and they add,
subtract, multiply and divide, so that what a gap or a slope is stands here once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.analysis import length_measures as measures
from stsbench.analysis.length_measures import ALL, GAP, Lengths
from stsbench.records.kinds import ALL_TASKS, AVERAGE
from stsbench.scoring.settings import Intervals
from stsbench.scoring.statistic import sharing_of
from stsbench.scoring.subjects import ScoredTask
from stsbench.statistics.correlations import partial_spearman, spearman
from stsbench.statistics.dependence import Sharing, variance
from stsbench.statistics.influence import Linear, spearman_terms, task_terms
from stsbench.statistics.intervals import correlation_interval, plain_interval, share_interval

Floats = NDArray[np.float64]

_FEWEST = 4
"""Pairs that a value with an interval is of at least."""

MEANINGS = ("same-meaning", "related", "different-meaning")
AGAINST, WITH = "length against meaning", "length with meaning"
COLUMNS = (
    *("model", "task", "measure", "group", "length_difference", "unit", "pairs"),
    *("value", "low", "high", "similarity"),
)


def length_bias_frame(
    models: Mapping[str, Sequence[ScoredTask]],
    lengths: Lengths | None = None,
    intervals: Intervals | None = None,
) -> pd.DataFrame:
    """Measure the length bias of several models from their scored pairs; see `length_bias`."""
    lengths, intervals = lengths or Lengths(), intervals or Intervals()
    rows = []
    for model, scored in models.items():
        pairs, estimates = [_prepared(task, lengths) for task in scored], Estimates(intervals)
        tasks = [
            _measured(task.task, of_task, lengths, estimates) for task, of_task in zip(scored, pairs, strict=True)
        ]
        about = {"model": model, "unit": lengths.unit, "similarity": scored[0].statistic.similarity}
        rows += [about | row for row in _task_rows(tasks, estimates)]
        rows += [about | row for row in _pooled_rows(tasks, lengths, estimates)]
        for of_task in pairs:
            if "design" in of_task and (designed := of_task["design"].notna()).any():
                rows += [about | row for row in _design_rows(of_task[designed], estimates)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


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

    def block(self, name: str, pairs: pd.DataFrame) -> None:
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

    def spearman_of_task(self, block: str, pairs: pd.DataFrame, similarity: Floats) -> Linear:
        """Return that of a whole task as `stsbench run` has it: the subsets fixed."""
        gold, codes = np.asarray(pairs["gold"], dtype=float), pd.factorize(pairs["subset"])[0]
        terms = task_terms(gold, similarity, codes)
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

    def limits(
        self, estimate: Linear, pairs: int, *, correlation: bool = False, share: bool = False, normal: bool = False
    ) -> dict[str, float]:
        """Return an estimate's `value`, `low` and `high`, NaN where there is none.

        Those of one task are by sentences as released, those of several by letters and digits. A correlation is x
        100; a share stays between 0 and 1. `normal` takes that distribution in place of Student's t, whose degrees
        of freedom are next to none where few items are other than the rest.
        """
        value, how, level = estimate.value, self.intervals.interval, self.intervals.level
        if np.isnan(value) or pairs < _FEWEST or how is None:
            return {"value": value, "low": np.nan, "high": np.nan}
        terms = np.concatenate(list(estimate.terms.values()))
        sharing = self._sharing(tuple(estimate.terms))
        if not correlation:
            spread = variance(terms, sharing, how)
            spread = replace(spread, df=np.inf) if normal else spread
            low, high, _ = (
                share_interval(value, spread, pairs, level) if share else plain_interval(value, spread, level)
            )
            return {"value": value, "low": low, "high": high}
        low, high, _ = correlation_interval(value / 100, variance(terms / 100, sharing, how), pairs, level)
        return {"value": value, "low": 100 * low, "high": 100 * high}

    def _sharing(self, blocks: tuple[str, ...]) -> Sharing:
        if len(blocks) == 1:
            return self.released[blocks[0]]
        if blocks not in self.joined:
            self.joined[blocks] = Sharing.join([self.folded[block] for block in blocks])
        return self.joined[blocks]


@dataclass(frozen=True)
class _Task:
    """What was measured on one task.

    Attributes:
        pairs: their number, by group or bin.
        estimates: by measure and group.
        sums: over pairs: `x`, `y`, `xx`, `xy` (length difference and error), and by bin `n`, `x` and `y`.
    """

    name: str
    pairs: dict[str, int]
    estimates: dict[tuple[str, str], Linear]
    sums: dict[str, Linear]


def _prepared(task: ScoredTask, lengths: Lengths) -> pd.DataFrame:
    """Return a task's pairs with `scaled` gold (0 to 1), `similarity`, length `difference` and `error`."""
    low, high = task.gold_range
    scaled = (task.pairs["gold"].to_numpy() - low) / (high - low)
    return task.pairs.assign(
        scaled=scaled,
        similarity=task.similarity,
        difference=lengths.differences(task.pairs),
        error=100 * (task.similarity - scaled),
    )


def _measured(name: str, pairs: pd.DataFrame, lengths: Lengths, estimates: Estimates) -> _Task:
    gold, similarity, x, y = (
        pairs[column].to_numpy() for column in ("scaled", "similarity", "difference", "error")
    )
    short = x <= lengths.longest_short
    groups = dict(zip((*lengths.groups, ALL), (short, ~short, np.ones_like(short)), strict=True))
    bins = {bin_: (first <= x) & (x <= last) for bin_, (first, last) in lengths.bins.items()}
    block = f"length\n{name}"
    estimates.block(block, pairs)

    terms: dict[str, NDArray[Any]] = {"x": x, "y": y, "xx": x * x, "xy": x * y}
    for group, inside in (groups | bins).items():
        terms |= {f"n {group}": inside * 1.0, f"x {group}": inside * x, f"y {group}": inside * y}
    terms |= {f"|y| {group}": inside * np.abs(y) for group, inside in groups.items()}
    sums = estimates.sums(block, terms)

    of_groups: dict[tuple[str, str], Linear] = {}
    for group, inside in groups.items():
        of_groups[measures.SPEARMAN, group] = (
            estimates.spearman_of_task(block, pairs, similarity)
            if group == ALL
            else estimates.spearman(block, (gold, similarity), inside)
        )
        of_groups[measures.SIGNED, group] = sums[f"y {group}"] / sums[f"n {group}"]
        of_groups[measures.ABSOLUTE, group] = sums[f"|y| {group}"] / sums[f"n {group}"]
    near, far = lengths.groups
    for measure in (measures.SPEARMAN, measures.SIGNED, measures.ABSOLUTE):
        of_groups[measure, GAP] = of_groups[measure, near] - of_groups[measure, far]
    of_groups[measures.PARTIAL, ALL] = estimates.partial(block, (gold, similarity), x)
    of_groups[measures.SLOPE, ALL] = _slope([sums])
    counts = {group: int(inside.sum()) for group, inside in (groups | bins).items()} | {GAP: len(pairs)}
    return _Task(name, counts, of_groups, sums)


def _mean(several: Sequence[Linear]) -> Linear:
    return _total(several) / len(several)


def _total(several: Sequence[Linear]) -> Linear:
    return reduce(add, several)


def _task_rows(tasks: Sequence[_Task], estimates: Estimates) -> Iterator[dict[str, Any]]:
    """Yield each task's estimates, and where there are several tasks their means."""
    for task in tasks:
        for (measure, group), estimate in task.estimates.items():
            is_one = measure in {measures.SPEARMAN, measures.PARTIAL} and group != GAP
            limits = estimates.limits(estimate, task.pairs[group], correlation=is_one)
            yield _row((task.name, measure, group), task.pairs[group], limits)
    if len(tasks) > 1:
        for measure, group in tasks[0].estimates:
            if measure != measures.SLOPE:
                pairs = sum(task.pairs[group] for task in tasks)
                mean = _mean([task.estimates[measure, group] for task in tasks])
                yield _row((AVERAGE, measure, group), pairs, estimates.limits(mean, pairs))


def _pooled_rows(tasks: Sequence[_Task], lengths: Lengths, estimates: Estimates) -> Iterator[dict[str, Any]]:
    """Yield the curve of each task and of all pairs together, and the slope of these."""
    for name, pooled in [(task.name, [task]) for task in tasks] + [(ALL_TASKS, list(tasks))]:
        for bin_ in lengths.bins:
            pairs = sum(task.pairs[bin_] for task in pooled)
            n, x, errors = (_total([task.sums[f"{term} {bin_}"] for task in pooled]) for term in ("n", "x", "y"))
            place = estimates.limits(x / n, pairs)["value"]
            expected = _total([task.sums[f"n {bin_}"] * task.estimates[measures.SIGNED, ALL] for task in pooled])
            for measure, total in ((measures.ERROR, errors), (measures.RELATIVE, errors - expected)):
                limits = estimates.limits(total / n, pairs)
                yield _row((name, measure, bin_), pairs, limits, place)
    pairs = sum(task.pairs[ALL] for task in tasks)
    slope = _slope([task.sums for task in tasks])
    yield _row((ALL_TASKS, measures.SLOPE, ALL), pairs, estimates.limits(slope, pairs))


def _row(
    of: tuple[str, str, str], pairs: int, limits: Mapping[str, float], length_difference: float = float("nan")
) -> dict[str, Any]:
    about = dict(zip(("task", "measure", "group"), of, strict=True))
    return {**about, "length_difference": length_difference, "pairs": pairs, **limits}


def _slope(tasks: Sequence[Mapping[str, Linear]]) -> Linear:
    """Return the least-squares slope of the error on the length difference, each task with its own intercept."""
    above = [sums["xy"] - sums["x"] * sums["y"] / sums[f"n {ALL}"] for sums in tasks]
    below = [sums["xx"] - sums["x"] * sums["x"] / sums[f"n {ALL}"] for sums in tasks]
    return _total(above) / _total(below)


def _design_rows(pairs: pd.DataFrame, estimates: Estimates) -> Iterator[dict[str, Any]]:
    """Yield how similarity answers to length at one meaning, and to meaning where length is against it.

    `design contrast`: mean error (similarity less scaled gold, x 100) of the pairs of same length less that of the
    pairs of different length, for each meaning and as their mean. An unbiased model has 0, one that finds
    sentences more alike for being of like length is above. `design margin`: mean similarity x 100 of pairs of the
    same meaning less that of pairs of different meaning; `length against meaning` takes the former with different,
    the latter with same length, `length with meaning` the reverse. Below 0 length has got the better of meaning.
    """
    task = str(pairs["task"].iloc[0])
    cells: dict[str, tuple[int, Linear, Linear]] = {}
    error, similarity = pairs["error"].to_numpy(), 100 * pairs["similarity"].to_numpy()
    terms = {"n": np.ones(len(pairs)), "error": error, "similarity": similarity}
    for design in sorted(set(pairs["design"])):
        inside = (pairs["design"] == design).to_numpy()
        block = f"design\n{design}"
        estimates.block(block, pairs)
        sums = estimates.sums(block, terms, inside)
        means = sums["error"] / sums["n"], sums["similarity"] / sums["n"]
        cells[str(design)] = (int(inside.sum()), *means)

    def row(measure: str, group: str, of: tuple[str, ...], estimate: Linear) -> dict[str, Any]:
        count = sum(cells[cell][0] for cell in of)
        return _row((task, measure, group), count, estimates.limits(estimate, count))

    contrasts = []
    for meaning in MEANINGS:
        same, different = f"{meaning}-same-length", f"{meaning}-different-length"
        contrasts.append(cells[same][1] - cells[different][1])
        yield row(measures.CONTRAST, meaning, (same, different), contrasts[-1])
    yield row(measures.CONTRAST, "mean", tuple(cells), _mean(contrasts))
    for group, of in (
        (AGAINST, ("same-meaning-different-length", "different-meaning-same-length")),
        (WITH, ("same-meaning-same-length", "different-meaning-different-length")),
    ):
        yield row(measures.MARGIN, group, of, cells[of[0]][2] - cells[of[1]][2])
