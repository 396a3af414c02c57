"""Length bias: does a model rate sentences as more similar because their lengths are similar?"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.analysis.base import OfTasks, Row, by_task, headline, published_cells, similarity_notes
from stsbench.analysis.inputs import (
    BINS,
    INTERVALS,
    LENGTH,
    Answer,
    Bins,
    Estimates,
    averaged,
    bins_from,
    mean,
    parameter,
    sides,
    spearman_of_task,
    total,
    with_overall,
)
from stsbench.base.errors import UserError
from stsbench.cli.options import LARGEST
from stsbench.records.kinds import ALL_TASKS, AVERAGE
from stsbench.render.table import Table, Tables, intervals_of
from stsbench.scoring.subjects import ScoredTask
from stsbench.statistics.correlations import partial_spearman, spearman
from stsbench.statistics.influence import Floats, Linear, spearman_terms

GAP, ALL = "gap", "all"
SPEARMAN, SIGNED, ABSOLUTE = "spearman", "signed difference", "absolute difference"
PARTIAL, SLOPE, ERROR, RELATIVE = "partial spearman", "slope", "error", "relative error"
CONTRAST, MARGIN = "design contrast", "design margin"
MEANINGS = ("same-meaning", "related", "different-meaning")

THRESHOLDS = {"words": 3, "subwords": 3, "characters": 15}
"""The largest short difference by default, by unit; in the papers 3."""

EDGES = {
    "words": (0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20),
    "subwords": (0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20),
    "characters": (0, 5, 10, 15, 20, 30, 40, 60, 80, 120),
}
"""The lower ends of the default bins of length differences, by unit."""

UNSIGNED = "difference"
"""The measure of a published difference; the paper does not say whether it is signed."""

_PUBLISHED = {"esimcse-arxiv-v1-1": SPEARMAN, "esimcse-coling2022-7": UNSIGNED}
"""The measures of the papers' tables."""

_FEWEST = 10  # The figure leaves out points with fewer pairs.


class LengthBias(OfTasks):
    """Measure length bias: does a model rate sentences as more similar because their lengths are similar?

    Spearman and mean similarity error for pairs of small and large length difference, a slope, and the partial
    Spearman; on the sample also its designed contrasts. The figure shows the error by length difference.

    Returns:
        One row per model, task, measure and group, with `pairs`, `value`, `low` and `high`. Measures, all x 100
        (for dot products and distances, differences from gold mean little):

        - `spearman`, `signed difference`, `absolute difference` (similarity less scaled gold) of the groups, of
          `all` pairs, and their `gap`: short less long;
        - `partial spearman` of similarity and gold, with the length difference fixed;
        - `error`: the signed difference by bin (`length_difference` is the bin's mean); `relative error`: less the
          task's mean; `slope`: points of signed difference per unit of length difference;
        - on the sample, `design contrast` and `design margin`: the effect of length at equal meaning, and that of
          meaning when length opposes it.

        `Avg.` is the mean over tasks, `all tasks` all pairs together, with an intercept for each task.

    >>> from stsbench import length_bias
    >>> bias = length_bias(lambda sentences: [[len(s), s.count("e")] for s in sentences], tasks=["sample"])
    >>> bias.frame.loc[bias.frame["measure"] == "slope", ["task", "group", "pairs"]].to_dict("records")[0]
    {'task': 'sample', 'group': 'all', 'pairs': 252}
    """

    answer = Answer("How far do lengths bias scores?", unit="points", rows={"measure": SLOPE})
    reference = 0
    examples = ("stsbench length-bias runs/a runs/b --published --figure bias.pdf",)
    counts = ("pairs",)  # published values have none
    length = LENGTH
    threshold: int | None = parameter(
        None,
        "The largest length difference that counts as short; by default 3, or 15 characters.",
        kind=int,
        limits=(0, LARGEST),
    )
    bins = BINS
    published: bool = parameter(
        False, "Add the rows of the papers (ESimCSE: words, threshold 3).", flags=("--published",)
    )
    intervals = INTERVALS

    @property
    def _threshold(self) -> int:
        return THRESHOLDS[self.length] if self.threshold is None else self.threshold

    def measure(self, model: str, given: Sequence[ScoredTask]) -> Iterator[Row]:
        if self.published and (self.length != "words" or self._threshold != 3):
            raise UserError("the papers' rows are for words and threshold 3: leave out --published.")
        about = {"unit": self.length, "similarity": given[0].statistic.similarity}
        bins, estimates = bins_from(self.bins or EDGES[self.length]), self.estimates
        pairs = [_prepared(task, self.length) for task in given]
        tasks = [
            _measured(task.task, table, self._threshold, bins, estimates)
            for task, table in zip(given, pairs, strict=True)
        ]
        yield from (about | row for row in _task_rows(tasks, estimates))
        yield from (about | row for row in _pooled_rows(tasks, bins, estimates))
        for table in pairs:
            if "design" in table and (designed := table["design"].notna()).any():
                yield from (about | row for row in _design_rows(table[designed], estimates))

    def _published_rows(self) -> pd.DataFrame:
        """Returns the papers' numbers; the gap is the difference of the printed numbers."""
        short, long = "<= 3", "> 3"
        groups = {f"length difference {name}": name for name in (short, long)}
        frame = pd.DataFrame(
            row
            | {
                "task": AVERAGE if cell.setting.task == "Avg. STS" else cell.setting.task,
                "measure": _PUBLISHED[name],
                "group": groups[cell.setting.group],
                "unit": "words",
            }
            for name, cell, row in published_cells(*_PUBLISHED)
        )
        keys = ["model", "task", "measure", "unit"]
        wide = frame.pivot_table(index=keys, columns="group", values="value", sort=False)
        gap = (wide[short] - wide[long]).rename("value").reset_index().assign(group=GAP)
        return pd.concat([frame, gap], ignore_index=True)

    @property
    def place_label(self) -> str:  # type: ignore[override]
        return f"length difference ({self.length})"

    def table(self) -> Tables:
        """Returns the papers' tables, the bias in one number, the curve, and the sample's designed pairs."""
        frame, unit = self.frame, self.length
        sizes = frame[(frame["measure"] == SPEARMAN) & (frame["group"] != GAP) & (frame["pairs"] > 0)]
        sizes = _by_group(sizes, "pairs").rename(columns={AVERAGE: "all"})
        # Models on the same tasks have the same pairs.
        if not (same := sizes.drop(columns="model").drop_duplicates())["difference"].duplicated().any():
            sizes = same
        tables = [Table(sizes, f"Pairs by length difference in {unit}", notes=similarity_notes(frame))]
        signed = "Mean difference of similarity and scaled gold x 100, signed (ESimCSE COLING, tables 1 and 7)"
        for measures, caption in (
            ([SPEARMAN], f"Spearman x 100 by length difference in {unit} (ESimCSE v1, table 1)"),
            ([SIGNED, UNSIGNED], signed),
            ([ABSOLUTE, UNSIGNED], "The same, absolute"),
        ):
            tables.append(Table(_by_group(frame[frame["measure"].isin(measures)]), caption))
        bins = self._curve(1).pivot_table(index="model", columns="group", values="value", sort=False).reset_index()
        curve = f"Error less the task's mean x 100, by length difference in {unit}, all tasks"
        tables += [Table(self._summary(), "The bias in one number, with confidence intervals"), Table(bins, curve)]
        design = frame[frame["measure"].isin([CONTRAST, MARGIN])]
        if len(design):
            design = design.assign(interval=intervals_of(design))
            design = design[["model", "measure", "group", "pairs", "value", "interval"]]
            tables.append(Table(design, "The sample's designed pairs x 100 (unbiased: contrast 0)"))
        return Tables(tables)

    def _summary(self) -> pd.DataFrame:
        frame = self.frame[self.frame["pairs"].notna()]  # without the papers' rows
        is_pooled = frame["task"] == ALL_TASKS
        pooled, over = frame[is_pooled], headline(frame[~is_pooled])
        parts = []
        for name, part, measure, group in (
            (f"slope: points per {self.length.removesuffix('s')}", pooled, SLOPE, ALL),
            ("gap of the signed difference", over, SIGNED, GAP),
            ("gap of the absolute difference", over, ABSOLUTE, GAP),
            ("Spearman", over, SPEARMAN, ALL),
            ("partial Spearman, length difference fixed", over, PARTIAL, ALL),
        ):
            rows = part[(part["measure"] == measure) & (part["group"] == group)]
            parts.append(rows.assign(number=name, interval=intervals_of(rows)))
        return pd.concat(parts, ignore_index=True)[["number", "model", "value", "interval"]]

    def _curve(self, fewest: int) -> pd.DataFrame:
        """Returns the errors by bin of all tasks together, of bins with enough pairs."""
        rows = self.frame[(self.frame["measure"] == RELATIVE) & (self.frame["task"] == ALL_TASKS)]
        return rows[rows["pairs"] >= fewest]

    def panels(self) -> Mapping[str, pd.DataFrame]:
        curve = self._curve(_FEWEST)
        bins = {name: place for place, name in enumerate(dict.fromkeys(self.frame["group"]))}
        curve = curve.assign(place=curve["group"]).sort_values("group", key=lambda names: names.map(bins))
        return {"error less task mean (× 100)": curve}


def _by_group(rows: pd.DataFrame, values: str = "value") -> pd.DataFrame:
    rows = rows[rows["task"] != ALL_TASKS]
    # The gaps of published models follow their groups.
    rows = pd.concat([part for _, part in rows.groupby("model", sort=False)])
    return by_task(rows, ["model", "group"], values).rename(columns={"group": "difference"})


class _Task(NamedTuple):
    """The numbers of pairs of a task by group or bin, its estimates by measure and group, and sums over pairs.

    The sums are `x`, `y`, `xx`, `xy` (length difference and error), and by bin `n`, `x` and `y`.
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
    short, near, far = x <= threshold, f"<= {threshold}", f"> {threshold}"
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
    for name, of in with_overall({task.name: task for task in tasks}, _average).items():
        for (measure, group), estimate in of.estimates.items():
            is_correlation = measure in {SPEARMAN, PARTIAL} and group != GAP
            limits = estimates.limits(estimate, of.pairs[group], correlation=is_correlation)
            yield _row(name, measure, group, of.pairs[group], limits)


def _average(tasks: Sequence[_Task]) -> _Task:
    estimates = averaged([task.estimates for task in tasks])
    estimates = {key: of for key, of in estimates.items() if key[0] != SLOPE}
    return _Task(AVERAGE, averaged([task.pairs for task in tasks]), estimates, {})


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
        ("length against meaning", "same-meaning-different-length", "different-meaning-same-length"),
        ("length with meaning", "same-meaning-same-length", "different-meaning-different-length"),
    ):
        yield row(MARGIN, group, (same, different), similarities[same] - similarities[different])


def _sums(block: str, terms: Mapping[str, Floats], inside: NDArray[np.bool_] | None = None) -> dict[str, Linear]:
    """Returns sums over the pairs of a block, or over those inside, by name."""
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
        return both.mapped(value, 100.0)
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
