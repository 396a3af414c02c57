"""Length bias in numbers: from pair tables to correlations, errors and slopes by length difference."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stsbench.analysis.length_bias.estimates import Estimates
from stsbench.analysis.length_bias.measures import (
    ABSOLUTE,
    ALL,
    CONTRAST,
    ERROR,
    GAP,
    MARGIN,
    PARTIAL,
    RELATIVE,
    SIGNED,
    SLOPE,
    SPEARMAN,
    Lengths,
)
from stsbench.records.kinds import AVERAGE
from stsbench.records.labels import ALL_TASKS, distinct_labels
from stsbench.scoring.settings import Intervals
from stsbench.statistics.influence import Linear

if TYPE_CHECKING:
    import pandas as pd

MEANINGS = ("same-meaning", "related", "different-meaning")
AGAINST, WITH = "length against meaning", "length with meaning"
COLUMNS = ("model", "task", "measure", "group", "length_difference", "unit", "pairs", "value", "low", "high")


def length_bias_frame(
    tables: "Mapping[str, pd.DataFrame]",
    gold_ranges: Mapping[str, tuple[float, float]],
    lengths: Lengths | None = None,
    intervals: Intervals | None = None,
) -> "pd.DataFrame":
    """Measure the length bias of several models.

    Args:
        tables: pair table by model.
        gold_ranges: lowest and highest possible gold score by task; gold is scaled from there to 0..1.
        lengths: unit, threshold and bins.
        intervals: how intervals are computed.

    Returns:
        One row per model, task, measure and group, with `pairs`, `value`, `low` and `high`; `unit` is the length
        unit. Measures, all x 100:

        - `spearman`, `signed difference`, `absolute difference` (similarity less scaled gold) in the groups, over
          `all`, and their `gap`: short less long, as in COLING's table 1;
        - `partial spearman` of similarity and gold, length difference held fixed;
        - `error`: the signed difference by bin (`length_difference` is the bin's mean), and `relative error`: the
          same less the task's mean;
        - `slope`: points of signed difference per unit of length difference;
        - on the sample, `design contrast` and `design margin` (see `_design_rows`).

        The task `Avg.` is the mean over tasks. `all tasks` are all pairs together; their slope has an intercept
        for each task.

    Raises:
        UserError: if lengths are unknown.
    """
    import pandas as pd

    lengths, intervals = lengths or Lengths(), intervals or Intervals()
    rows = []
    for model, table in tables.items():
        pairs, estimates = _prepared(table, gold_ranges, lengths), Estimates(intervals)
        parts = pairs.groupby("label", sort=False)
        tasks = [_measured(str(name), part, lengths, estimates) for name, part in parts]
        about = {"model": model, "unit": lengths.unit}
        rows += [about | row for row in _task_rows(tasks, estimates)]
        rows += [about | row for row in _pooled_rows(tasks, lengths, estimates)]
        if "design" in pairs:
            rows += [about | row for row in _design_rows(pairs[pairs["design"].notna()], estimates)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


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


def _prepared(
    table: "pd.DataFrame", gold_ranges: Mapping[str, tuple[float, float]], lengths: Lengths
) -> "pd.DataFrame":
    """Return a pair table with `label` (of the task), `scaled` gold, `similarity`, `difference` and `error`."""
    low = table["task"].map({task: limits[0] for task, limits in gold_ranges.items()})
    high = table["task"].map({task: limits[1] for task, limits in gold_ranges.items()})
    scaled = (table["gold"] - low) / (high - low)
    similarity = table["cosine"] if "cosine" in table else table["given"]
    return table.assign(
        label=distinct_labels(list(zip(table["task"], table["split"], table["text"], strict=True))),
        scaled=scaled,
        similarity=similarity,
        difference=lengths.differences(table),
        error=100 * (similarity - scaled),
    )


def _measured(name: str, pairs: "pd.DataFrame", lengths: Lengths, estimates: Estimates) -> _Task:
    gold, similarity, x, y = (
        pairs[column].to_numpy(np.float64) for column in ("scaled", "similarity", "difference", "error")
    )
    short = x <= lengths.longest_short
    groups = dict(zip((*lengths.groups, ALL), (short, ~short, np.ones_like(short)), strict=True))
    bins = {bin_: (first <= x) & (x <= last) for bin_, (first, last) in lengths.bins.items()}
    block = _block("length", name)
    estimates.block(block, pairs)

    terms: dict[str, NDArray[Any]] = {"x": x, "y": y, "xx": x * x, "xy": x * y}
    for group, inside in (groups | bins).items():
        terms |= {f"n {group}": inside * 1.0, f"x {group}": inside * x, f"y {group}": inside * y}
    terms |= {f"|y| {group}": inside * np.abs(y) for group, inside in groups.items()}
    sums = estimates.sums(block, terms)

    of_groups: dict[tuple[str, str], Linear] = {}
    for group, inside in groups.items():
        of_groups[SPEARMAN, group] = (
            estimates.spearman_of_task(block, pairs)
            if group == ALL
            else estimates.spearman(block, (gold, similarity), inside)
        )
        of_groups[SIGNED, group] = sums[f"y {group}"] / sums[f"n {group}"]
        of_groups[ABSOLUTE, group] = sums[f"|y| {group}"] / sums[f"n {group}"]
    near, far = lengths.groups
    for measure in (SPEARMAN, SIGNED, ABSOLUTE):
        of_groups[measure, GAP] = of_groups[measure, near] - of_groups[measure, far]
    of_groups[PARTIAL, ALL] = estimates.partial(block, (gold, similarity), x)
    of_groups[SLOPE, ALL] = _slope([sums])
    counts = {group: int(inside.sum()) for group, inside in (groups | bins).items()} | {GAP: len(pairs)}
    return _Task(name, counts, of_groups, sums)


def _block(*names: str) -> str:
    """Return what a block of pairs is called."""
    return "\n".join(names)


def _mean(several: Sequence[Linear]) -> Linear:
    """Return a mean over tasks or cells."""
    return _total(several) / len(several)


def _total(several: Sequence[Linear]) -> Linear:
    return reduce(add, several)


def _task_rows(tasks: Sequence[_Task], estimates: Estimates) -> Iterator[dict[str, Any]]:
    """Yield each task's estimates, and where there are several tasks their means."""
    for task in tasks:
        for (measure, group), estimate in task.estimates.items():
            is_one = measure in {SPEARMAN, PARTIAL} and group != GAP
            told = estimates.limits(estimate, task.pairs[group], correlation=is_one)
            yield _row((task.name, measure, group), task.pairs[group], told)
    if len(tasks) > 1:
        for measure, group in tasks[0].estimates:
            if measure != SLOPE:
                pairs = sum(task.pairs[group] for task in tasks)
                mean = _mean([task.estimates[measure, group] for task in tasks])
                yield _row((AVERAGE, measure, group), pairs, estimates.limits(mean, pairs))


def _pooled_rows(tasks: Sequence[_Task], lengths: Lengths, estimates: Estimates) -> Iterator[dict[str, Any]]:
    """Yield the curve of each task and of all pairs together, and the slope of these."""
    for name, those in [(task.name, [task]) for task in tasks] + [(ALL_TASKS, list(tasks))]:
        for bin_ in lengths.bins:
            pairs = sum(task.pairs[bin_] for task in those)
            n, x, errors = (_total([task.sums[f"{term} {bin_}"] for task in those]) for term in ("n", "x", "y"))
            place = estimates.limits(x / n, pairs)["value"]
            expected = _total([task.sums[f"n {bin_}"] * task.estimates[SIGNED, ALL] for task in those])
            for measure, total in ((ERROR, errors), (RELATIVE, errors - expected)):
                told = estimates.limits(total / n, pairs)
                yield _row((name, measure, bin_), pairs, told, place)
    pairs = sum(task.pairs[ALL] for task in tasks)
    slope = _slope([task.sums for task in tasks])
    yield _row((ALL_TASKS, SLOPE, ALL), pairs, estimates.limits(slope, pairs))


def _row(
    of: tuple[str, str, str], pairs: int, told: Mapping[str, float], length_difference: float = float("nan")
) -> dict[str, Any]:
    about = dict(zip(("task", "measure", "group"), of, strict=True))
    return {**about, "length_difference": length_difference, "pairs": pairs, **told}


def _slope(tasks: Sequence[Mapping[str, Linear]]) -> Linear:
    """Return the least-squares slope of the error on the length difference, each task with its own intercept."""
    above = [sums["xy"] - sums["x"] * sums["y"] / sums[f"n {ALL}"] for sums in tasks]
    below = [sums["xx"] - sums["x"] * sums["x"] / sums[f"n {ALL}"] for sums in tasks]
    return _total(above) / _total(below)


def _design_rows(pairs: "pd.DataFrame", estimates: Estimates) -> Iterator[dict[str, Any]]:
    """Yield how similarity answers to length at one meaning, and to meaning where length is against it.

    `design contrast`: mean error (similarity less scaled gold, x 100) of the pairs of same length less that of the
    pairs of different length, for each meaning and as their mean. An unbiased model has 0, one that finds
    sentences more alike for being of like length is above. `design margin`: mean similarity x 100 of pairs of the
    same meaning less that of pairs of different meaning; `length against meaning` takes the former with different,
    the latter with same length, `length with meaning` the reverse. Below 0 length has got the better of meaning.

    Args:
        pairs: rows of the sample with `task`, `design`, `error` (x 100) and `similarity`.
        estimates: how intervals are computed.
    """
    task = str(pairs["task"].iloc[0])
    cells: dict[str, tuple[int, Linear, Linear]] = {}
    error, similarity = pairs["error"].to_numpy(), 100 * pairs["similarity"].to_numpy()
    terms = {"n": np.ones(len(pairs)), "error": error, "similarity": similarity}
    for design in sorted(pairs["design"].unique()):
        inside = (pairs["design"] == design).to_numpy()
        block = _block("design", str(design))
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
        yield row(CONTRAST, meaning, (same, different), contrasts[-1])
    yield row(CONTRAST, "mean", tuple(cells), _mean(contrasts))
    for group, of in (
        (AGAINST, ("same-meaning-different-length", "different-meaning-same-length")),
        (WITH, ("same-meaning-same-length", "different-meaning-different-length")),
    ):
        yield row(MARGIN, group, of, cells[of[0]][2] - cells[of[1]][2])
