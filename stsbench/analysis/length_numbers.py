"""The numbers of length bias: correlations, errors and slopes by length difference."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.analysis.base import Row, mean, total
from stsbench.analysis.estimates import Estimates, Floats, spearman_of_task
from stsbench.analysis.lengths import Bins, sides
from stsbench.records.kinds import ALL_TASKS, AVERAGE
from stsbench.scoring.settings import Intervals
from stsbench.scoring.subjects import ScoredTask
from stsbench.statistics.correlations import partial_spearman, spearman
from stsbench.statistics.influence import Linear, spearman_terms

GAP, ALL = "gap", "all"
SPEARMAN, SIGNED, ABSOLUTE = "spearman", "signed difference", "absolute difference"
PARTIAL, SLOPE, ERROR, RELATIVE = "partial spearman", "slope", "error", "relative error"
CONTRAST, MARGIN = "design contrast", "design margin"
MEANINGS = ("same-meaning", "related", "different-meaning")
AGAINST, WITH = "length against meaning", "length with meaning"


def group_names(threshold: int) -> tuple[str, str]:
    """Returns the names of the groups of short and of long differences."""
    return f"<= {threshold}", f"> {threshold}"


def length_bias_rows(
    scored: Sequence[ScoredTask], unit: str, threshold: int, bins: Bins, intervals: Intervals
) -> Iterator[Row]:
    """Yields the measures of the scored tasks of a model; `threshold` is the largest short difference."""
    pairs, estimates = [_prepared(task, unit) for task in scored], Estimates(intervals)
    tasks = [
        _measured(task.task, table, threshold, bins, estimates) for task, table in zip(scored, pairs, strict=True)
    ]
    yield from _task_rows(tasks, estimates)
    yield from _pooled_rows(tasks, bins, estimates)
    for table in pairs:
        if "design" in table and (designed := table["design"].notna()).any():
            yield from _design_rows(table[designed], estimates)


class _Task(NamedTuple):
    """The measures of one task.

    Attributes:
        name: its label.
        pairs: the number of pairs, by group or bin.
        estimates: by measure and group.
        sums: over pairs: `x`, `y`, `xx`, `xy` (length difference and error), and by bin `n`, `x` and `y`.
    """

    name: str
    pairs: dict[str, int]
    estimates: dict[tuple[str, str], Linear]
    sums: dict[str, Linear]


def _prepared(task: ScoredTask, unit: str) -> pd.DataFrame:
    """Returns a task's pairs with `scaled` gold (0 to 1), `similarity`, length `difference` and `error`."""
    low, high = task.gold_range
    a, b = sides(task.pairs, unit)
    scaled = (task.pairs["gold"].to_numpy() - low) / (high - low)
    error = 100 * (task.similarity - scaled)
    return task.pairs.assign(scaled=scaled, similarity=task.similarity, difference=abs(a - b), error=error)


def _measured(name: str, pairs: pd.DataFrame, threshold: int, edges: Bins, estimates: Estimates) -> _Task:
    gold, similarity, x, y = (
        pairs[column].to_numpy() for column in ("scaled", "similarity", "difference", "error")
    )
    short, (near, far) = x <= threshold, group_names(threshold)
    of_pairs = dict(zip((near, far, ALL), (short, ~short, np.ones_like(short)), strict=True))
    bins = {bin_: (first <= x) & (x <= last) for bin_, (first, last) in edges.items()}
    block = f"length\n{name}"
    estimates.block(block, pairs)

    terms: dict[str, NDArray[Any]] = {"x": x, "y": y, "xx": x * x, "xy": x * y}
    for group, inside in (of_pairs | bins).items():
        terms |= {f"n {group}": inside * 1.0, f"x {group}": inside * x, f"y {group}": inside * y}
    terms |= {f"|y| {group}": inside * np.abs(y) for group, inside in of_pairs.items()}
    sums = _sums(block, terms)

    of_groups: dict[tuple[str, str], Linear] = {}
    for group, inside in of_pairs.items():
        of_groups[SPEARMAN, group] = _spearman(block, gold, similarity, inside)
        of_groups[SIGNED, group] = sums[f"y {group}"] / sums[f"n {group}"]
        of_groups[ABSOLUTE, group] = sums[f"|y| {group}"] / sums[f"n {group}"]
    of_groups[SPEARMAN, ALL] = spearman_of_task(block, pairs, similarity)
    for measure in (SPEARMAN, SIGNED, ABSOLUTE):
        of_groups[measure, GAP] = of_groups[measure, near] - of_groups[measure, far]
    of_groups[PARTIAL, ALL] = _partial(block, gold, similarity, x)
    of_groups[SLOPE, ALL] = _slope([sums])
    counts = {group: int(inside.sum()) for group, inside in (of_pairs | bins).items()} | {GAP: len(pairs)}
    return _Task(name, counts, of_groups, sums)


def _task_rows(tasks: Sequence[_Task], estimates: Estimates) -> Iterator[Row]:
    """Yields each task's estimates, and the means over several tasks."""
    for task in tasks:
        for (measure, group), estimate in task.estimates.items():
            is_correlation = measure in {SPEARMAN, PARTIAL} and group != GAP
            limits = estimates.limits(estimate, task.pairs[group], correlation=is_correlation)
            yield _row(task.name, measure, group, task.pairs[group], limits)
    for measure, group in tasks[0].estimates if len(tasks) > 1 else ():
        if measure != SLOPE:
            pairs = sum(task.pairs[group] for task in tasks)
            average = mean([task.estimates[measure, group] for task in tasks])
            yield _row(AVERAGE, measure, group, pairs, estimates.limits(average, pairs))


def _pooled_rows(tasks: Sequence[_Task], bins: Bins, estimates: Estimates) -> Iterator[Row]:
    """Yields the curve of each task and of all pairs together, and their slope."""
    for name, pooled in [(task.name, [task]) for task in tasks] + [(ALL_TASKS, list(tasks))]:
        for bin_ in bins:
            pairs = sum(task.pairs[bin_] for task in pooled)
            n, x, errors = (total([task.sums[f"{term} {bin_}"] for task in pooled]) for term in ("n", "x", "y"))
            place = estimates.limits(x / n, pairs)["value"]
            expected = total([task.sums[f"n {bin_}"] * task.estimates[SIGNED, ALL] for task in pooled])
            for measure, errors_in_bin in ((ERROR, errors), (RELATIVE, errors - expected)):
                limits = estimates.limits(errors_in_bin / n, pairs)
                yield _row(name, measure, bin_, pairs, limits) | {"length_difference": place}
    pairs = sum(task.pairs[ALL] for task in tasks)
    slope = _slope([task.sums for task in tasks])
    yield _row(ALL_TASKS, SLOPE, ALL, pairs, estimates.limits(slope, pairs))


def _row(task: str, measure: str, group: str, pairs: int, limits: Mapping[str, float]) -> Row:
    return {"task": task, "measure": measure, "group": group, "pairs": pairs, **limits}


def _slope(tasks: Sequence[Mapping[str, Linear]]) -> Linear:
    """Returns the least-squares slope of the error on the length difference, with an intercept for each task."""
    above = [sums["xy"] - sums["x"] * sums["y"] / sums[f"n {ALL}"] for sums in tasks]
    below = [sums["xx"] - sums["x"] * sums["x"] / sums[f"n {ALL}"] for sums in tasks]
    return total(above) / total(below)


def _design_rows(pairs: pd.DataFrame, estimates: Estimates) -> Iterator[Row]:
    """Yields the effects of length and meaning on the sample's designed pairs."""
    columns = {"n": np.ones(len(pairs)), "error": pairs["error"], "similarity": 100 * pairs["similarity"]}
    sizes, errors, similarities = {}, {}, {}
    for design in sorted(set(pairs["design"])):
        inside, block = (pairs["design"] == design).to_numpy(), f"design\n{design}"
        estimates.block(block, pairs)
        sums = _sums(block, {name: np.asarray(values) for name, values in columns.items()}, inside)
        sizes[design] = int(inside.sum())
        errors[design], similarities[design] = sums["error"] / sums["n"], sums["similarity"] / sums["n"]

    def row(measure: str, group: str, cells: Iterable[str], estimate: Linear) -> Row:
        count = sum(sizes[cell] for cell in cells)
        return _row(str(pairs["task"].iloc[0]), measure, group, count, estimates.limits(estimate, count))

    contrasts = []
    for meaning in MEANINGS:
        same, different = f"{meaning}-same-length", f"{meaning}-different-length"
        contrasts.append(errors[same] - errors[different])
        yield row(CONTRAST, meaning, (same, different), contrasts[-1])
    yield row(CONTRAST, "mean", sizes, mean(contrasts))
    for group, same, different in (
        (AGAINST, "same-meaning-different-length", "different-meaning-same-length"),
        (WITH, "same-meaning-same-length", "different-meaning-different-length"),
    ):
        yield row(MARGIN, group, (same, different), similarities[same] - similarities[different])


def _sums(block: str, terms: Mapping[str, Floats], inside: NDArray[np.bool_] | None = None) -> dict[str, Linear]:
    """Returns the sums of terms over the pairs of a block, or over those inside, by name."""
    rows = np.array(list(terms.values()))
    sums = (rows if inside is None else rows[:, inside]).sum(axis=1).tolist()
    kept = rows if inside is None else rows * inside
    return {name: Linear(value, {block: row}) for name, value, row in zip(terms, sums, kept, strict=True)}


def _spearman(block: str, gold: Floats, similarity: Floats, inside: NDArray[np.bool_]) -> Linear:
    """Returns the correlation x 100 of the pairs inside."""
    x, y, terms = gold[inside], similarity[inside], np.zeros(len(inside))
    if not len(x):
        return Linear.undefined()
    terms[inside] = 100 * spearman_terms(x, y)
    return Linear(100 * spearman(x, y), {block: terms})


def _partial(block: str, gold: Floats, similarity: Floats, fixed: Floats) -> Linear:
    """Returns the partial correlation x 100 of a block's pairs, a function of three correlations."""
    both, of_x, of_y = (
        Linear(spearman(a, b), {block: spearman_terms(a, b)})
        for a, b in ((gold, similarity), (gold, fixed), (similarity, fixed))
    )
    value = 100 * partial_spearman(gold, similarity, fixed)
    if (fixed == fixed[0]).all():
        return (100 * both).mapped(value, 100.0)
    left = (1 - of_x.value**2) * (1 - of_y.value**2)
    if not left > 0:
        return Linear.undefined()
    below = left**0.5
    slopes = [
        (1 / below) * ((both.value - of_x.value * of_y.value) * side.value / (1 - side.value**2) - other.value)
        for side, other in ((of_x, of_y), (of_y, of_x))
    ]
    terms = both.terms[block] / below + slopes[0] * of_x.terms[block] + slopes[1] * of_y.terms[block]
    return Linear(value, {block: 100 * terms})
