"""Length bias in numbers: from pair tables to correlations, errors and slopes by length difference."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stsbench.analysis.length_bias.measures import (
    ABSOLUTE,
    ALL,
    AVERAGE,
    CONTRAST,
    ERROR,
    GAP,
    MARGIN,
    PARTIAL,
    POOLED,
    RELATIVE,
    SIGNED,
    SLOPE,
    SPEARMAN,
    Lengths,
)
from stsbench.records.labels import distinct_labels
from stsbench.statistics.bootstrap import (
    bootstrap_correlation,
    bootstrap_partial_spearman,
    bootstrap_task,
    generator,
    partial_spearman,
)
from stsbench.statistics.correlations import spearman
from stsbench.statistics.estimates import Floats, Resampling, ratio, sums_of, with_interval

if TYPE_CHECKING:
    import pandas as pd

MEANINGS = ("same-meaning", "related", "different-meaning")
AGAINST, WITH = "length against meaning", "length with meaning"
COLUMNS = ("model", "task", "measure", "group", "length_difference", "unit", "pairs", "value", "low", "high")


def length_bias_frame(
    tables: "Mapping[str, pd.DataFrame]",
    gold_ranges: Mapping[str, tuple[float, float]],
    lengths: Lengths | None = None,
    resampling: Resampling | None = None,
) -> "pd.DataFrame":
    """Measure the length bias of several models.

    Args:
        tables: pair table by model.
        gold_ranges: lowest and highest possible gold score by task; gold is scaled from there to 0..1.
        lengths: unit, threshold and bins.
        resampling: how intervals are computed: over pairs, drawn inside each task.

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

    lengths, resampling = lengths or Lengths(), resampling or Resampling()
    rows = []
    for model, table in tables.items():
        pairs = _prepared(table, gold_ranges, lengths)
        parts = pairs.groupby("label", sort=False)
        tasks = [_measured(str(name), part, lengths, resampling) for name, part in parts]
        about = {"model": model, "unit": lengths.unit}
        rows += [about | row for row in _task_rows(tasks, resampling)]
        rows += [about | row for row in _pooled_rows(tasks, lengths, resampling)]
        if "design" in pairs:
            rows += [about | row for row in _design_rows(pairs[pairs["design"].notna()], resampling)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


@dataclass(frozen=True)
class _Task:
    """What was measured on one task.

    Attributes:
        pairs: their number, by group or bin.
        estimates: value and replicates, by measure and group.
        sums: value and replicates of sums over pairs: `x`, `y`, `xx`, `xy` (length difference and error), and by
            bin `n`, `x` and `y`.
    """

    name: str
    pairs: dict[str, int]
    estimates: dict[tuple[str, str], Floats]
    sums: dict[str, Floats]


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


def _measured(name: str, pairs: "pd.DataFrame", lengths: Lengths, resampling: Resampling) -> _Task:
    gold, similarity, x, y = (
        pairs[column].to_numpy(np.float64) for column in ("scaled", "similarity", "difference", "error")
    )
    short = x <= lengths.longest_short
    groups = dict(zip((*lengths.groups, ALL), (short, ~short, np.ones_like(short)), strict=True))
    bins = {bin_: (first <= x) & (x <= last) for bin_, (first, last) in lengths.bins.items()}

    terms: dict[str, NDArray[Any]] = {"x": x, "y": y, "xx": x * x, "xy": x * y}
    for group, inside in (groups | bins).items():
        terms |= {f"n {group}": inside * 1.0, f"x {group}": inside * x, f"y {group}": inside * y}
    terms |= {f"|y| {group}": inside * np.abs(y) for group, inside in groups.items()}
    sums = dict(zip(terms, sums_of(np.array(list(terms.values())), resampling, "length", name), strict=True))

    estimates: dict[tuple[str, str], Floats] = {}
    for group, inside in groups.items():
        draws = generator(resampling.seed, "length", name, group)
        estimates[SPEARMAN, group] = (
            _spearman_of_task(pairs, resampling)
            if group == ALL
            else _spearman(gold[inside], similarity[inside], resampling, draws)
        )
        estimates[SIGNED, group] = ratio(sums[f"y {group}"], sums[f"n {group}"])
        estimates[ABSOLUTE, group] = ratio(sums[f"|y| {group}"], sums[f"n {group}"])
    near, far = lengths.groups
    for measure in (SPEARMAN, SIGNED, ABSOLUTE):
        estimates[measure, GAP] = estimates[measure, near] - estimates[measure, far]
    estimates[PARTIAL, ALL] = _partial(gold, similarity, x, resampling, name)
    estimates[SLOPE, ALL] = _slope([sums])
    counts = {group: int(inside.sum()) for group, inside in (groups | bins).items()} | {GAP: len(pairs)}
    return _Task(name, counts, estimates, sums)


def _task_rows(tasks: Sequence[_Task], resampling: Resampling) -> Iterator[dict[str, Any]]:
    """Yield each task's estimates, and where there are several tasks their means."""
    for task in tasks:
        for (measure, group), estimate in task.estimates.items():
            yield _row((task.name, measure, group), task.pairs[group], estimate, resampling)
    if len(tasks) > 1:
        for measure, group in tasks[0].estimates:
            if measure != SLOPE:
                # Tasks are drawn independently, so the k-th replicates of all average to one of the mean.
                mean = np.mean([task.estimates[measure, group] for task in tasks], axis=0)
                pairs = sum(task.pairs[group] for task in tasks)
                yield _row((AVERAGE, measure, group), pairs, mean, resampling)


def _pooled_rows(tasks: Sequence[_Task], lengths: Lengths, resampling: Resampling) -> Iterator[dict[str, Any]]:
    """Yield the curve of each task and of all pairs together, and the slope of these."""
    for name, those in [(task.name, [task]) for task in tasks] + [(POOLED, list(tasks))]:
        for bin_ in lengths.bins:
            pairs = sum(task.pairs[bin_] for task in those)
            n = _total(those, f"n {bin_}")
            place = float(ratio(_total(those, f"x {bin_}"), n)[0])
            expected = np.sum([task.sums[f"n {bin_}"] * task.estimates[SIGNED, ALL] for task in those], axis=0)
            errors = _total(those, f"y {bin_}")
            for measure, total in ((ERROR, errors), (RELATIVE, errors - expected)):
                yield _row((name, measure, bin_), pairs, ratio(total, n), resampling, place)
    pairs = sum(task.pairs[ALL] for task in tasks)
    yield _row((POOLED, SLOPE, ALL), pairs, _slope([task.sums for task in tasks]), resampling)


def _row(
    of: tuple[str, str, str],
    pairs: int,
    estimate: Floats,
    resampling: Resampling,
    length_difference: float = float("nan"),
) -> dict[str, Any]:
    about = dict(zip(("task", "measure", "group"), of, strict=True))
    place = {"length_difference": length_difference, "pairs": pairs}
    return about | place | with_interval(estimate, resampling)


def _total(tasks: Sequence[_Task], term: str) -> Floats:
    total: Floats = np.sum([task.sums[term] for task in tasks], axis=0)
    return total


def _slope(tasks: Sequence[Mapping[str, Floats]]) -> Floats:
    """Return the least-squares slope of the error on the length difference, each task with its own intercept."""
    above = [sums["xy"] - sums["x"] * sums["y"] / sums[f"n {ALL}"] for sums in tasks]
    below = [sums["xx"] - sums["x"] ** 2 / sums[f"n {ALL}"] for sums in tasks]
    return ratio(np.sum(above, axis=0), np.sum(below, axis=0))


def _spearman(x: Floats, y: Floats, resampling: Resampling, draws: np.random.Generator) -> Floats:
    if not len(x):
        return np.full(1 + resampling.resamples, np.nan)
    replicates = bootstrap_correlation(x, y, rng=draws, resamples=resampling.resamples)
    return _percent(spearman(x, y), replicates)


def _spearman_of_task(pairs: "pd.DataFrame", resampling: Resampling) -> Floats:
    """Return the correlation of all pairs, from the draws of `stsbench run`: one number, one interval."""
    names = list(dict.fromkeys(pairs["subset"]))
    gold, similarity = pairs["gold"].to_numpy(float), pairs["similarity"].to_numpy(float)
    replicates = bootstrap_task(
        gold,
        similarity,
        pairs["subset"].map(names.index).to_numpy(),
        task=f"{pairs['task'].iloc[0]}:{pairs['split'].iloc[0]}",
        names=names,
        resamples=resampling.resamples,
        seed=resampling.seed,
    )
    return _percent(spearman(gold, similarity), replicates.aggregates["all"])


def _partial(gold: Floats, similarity: Floats, fixed: Floats, resampling: Resampling, name: str) -> Floats:
    draws = generator(resampling.seed, "length", name, PARTIAL)
    replicates = bootstrap_partial_spearman(gold, similarity, fixed, rng=draws, resamples=resampling.resamples)
    return _percent(partial_spearman(gold, similarity, fixed), replicates)


def _percent(value: float, replicates: NDArray[np.float64]) -> Floats:
    return 100 * np.concatenate([[value], replicates])


def _design_rows(pairs: "pd.DataFrame", resampling: Resampling) -> Iterator[dict[str, Any]]:
    """Yield how similarity answers to length at one meaning, and to meaning where length is against it.

    `design contrast`: mean error (similarity less scaled gold, x 100) of the pairs of same length less that of the
    pairs of different length, for each meaning and as their mean. An unbiased model has 0, one that finds
    sentences more alike for being of like length is above. `design margin`: mean similarity x 100 of pairs of the
    same meaning less that of pairs of different meaning; `length against meaning` takes the former with different,
    the latter with same length, `length with meaning` the reverse. Below 0 length has got the better of meaning.

    Args:
        pairs: rows of the sample with `task`, `design`, `error` (x 100) and `similarity`.
        resampling: how intervals are computed: over pairs, drawn inside each cell.
    """
    task = str(pairs["task"].iloc[0])
    cells: dict[str, tuple[int, Floats, Floats]] = {}
    for design, part in pairs.groupby("design"):
        terms = np.stack([np.ones(len(part)), part["error"], 100 * part["similarity"]])
        n, error, similarity = sums_of(terms, resampling, "design", str(design))
        cells[str(design)] = len(part), ratio(error, n), ratio(similarity, n)

    def row(measure: str, group: str, of: tuple[str, ...], estimate: Floats) -> dict[str, Any]:
        about = {"task": task, "measure": measure, "group": group, "length_difference": float("nan")}
        return about | {"pairs": sum(cells[cell][0] for cell in of)} | with_interval(estimate, resampling)

    contrasts = []
    for meaning in MEANINGS:
        same, different = f"{meaning}-same-length", f"{meaning}-different-length"
        contrasts.append(cells[same][1] - cells[different][1])
        yield row(CONTRAST, meaning, (same, different), contrasts[-1])
    yield row(CONTRAST, "mean", tuple(cells), np.mean(contrasts, axis=0))
    for group, of in (
        (AGAINST, ("same-meaning-different-length", "different-meaning-same-length")),
        (WITH, ("same-meaning-same-length", "different-meaning-different-length")),
    ):
        yield row(MARGIN, group, of, cells[of[0]][2] - cells[of[1]][2])
