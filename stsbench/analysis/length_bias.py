"""Length bias: does a model rate sentences as more similar because their lengths are similar?"""

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from stsbench.analysis.base import (
    OfTasks,
    Row,
    by_task,
    headline,
    intervals_of,
    published_cells,
    similarity_notes,
)
from stsbench.analysis.length_numbers import (
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
    group_names,
    length_bias_rows,
)
from stsbench.analysis.lengths import BINS, LENGTH, bins_from
from stsbench.analysis.parameters import INTERVALS, parameter
from stsbench.base.errors import UserError
from stsbench.cli.options import LARGEST
from stsbench.records.kinds import ALL_TASKS, AVERAGE
from stsbench.render.table import Table, Tables
from stsbench.scoring.settings import Intervals
from stsbench.scoring.subjects import ScoredTask

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

_FEWEST = 10
"""Pairs below which the figure leaves out a point."""


class LengthBias(OfTasks):
    """Measure length bias: does a model rate sentences as more similar because their lengths are similar?

    Spearman and mean similarity error for pairs of small and large length difference, a slope, and the partial
    Spearman; on the sample also its designed contrasts. The figure shows the error by length difference.

    Returns:
        One row per model, task, measure and group, with `pairs`, `value`, `low` and `high`; `unit` is the unit of
        length, `similarity` the run's own. Only similarities between 0 and 1 are on the scale of gold scores, so
        differences from gold mean little for dot products and distances. Measures, all x 100:

        - `spearman`, `signed difference`, `absolute difference` (similarity less scaled gold) of the groups, of
          `all` pairs, and their `gap`: short less long;
        - `partial spearman` of similarity and gold, with the length difference fixed;
        - `error`: the signed difference by bin (`length_difference` is the bin's mean), and `relative error`: the
          same less the task's mean;
        - `slope`: points of signed difference per unit of length difference;
        - on the sample, `design contrast` and `design margin`: the effect of length at equal meaning, and of
          meaning if length is against it.

        `Avg.` is the mean over tasks, `all tasks` all pairs together, with an intercept for each task.

    >>> bias = length_bias(lambda sentences: [[len(s), s.count("e")] for s in sentences], tasks=["sample"])
    >>> bias.frame.loc[bias.frame["measure"] == "slope", ["task", "group", "pairs"]].to_dict("records")[0]
    {'task': 'sample', 'group': 'all', 'pairs': 252}
    """

    name = "length-bias"
    title = "Length bias"
    examples = (
        "stsbench length-bias runs/minilm-avg-sts --published",
        "stsbench length-bias runs/a runs/b --length subwords --threshold 5 --figure bias.pdf",
    )
    columns = (
        *("model", "task", "measure", "group", "length_difference", "unit", "pairs"),
        *("value", "low", "high", "similarity"),
    )
    counts = ("pairs",)  # published values have none
    number_keys = ("measure", "group")
    reference = 0

    length = LENGTH
    threshold: int | None = parameter(
        None,
        "The largest length difference that is short; 3 by default, 15 characters.",
        kind=int,
        limits=(0, LARGEST),
    )
    bins = BINS
    published: bool = parameter(
        False, "Add the rows of the papers (ESimCSE: words, threshold 3).", flags=("--published",)
    )
    intervals: Intervals | None = INTERVALS

    @property
    def _threshold(self) -> int:
        return THRESHOLDS[self.length] if self.threshold is None else self.threshold

    def measure(self, model: str, given: Sequence[ScoredTask]) -> Iterator[Row]:
        if self.published and (self.length != "words" or self._threshold != 3):
            raise UserError("the papers' rows are for words and threshold 3: leave out --published.")
        about = {"unit": self.length, "similarity": given[0].statistic.similarity}
        bins = bins_from(self.bins or EDGES[self.length])
        rows = length_bias_rows(given, self.length, self._threshold, bins, self._how)
        return (about | row for row in rows)

    def _published_rows(self) -> pd.DataFrame:
        """Returns the papers' numbers; the gap is the difference of the printed numbers."""
        short, long = group_names(self._threshold)
        groups = {"length difference <= 3": short, "length difference > 3": long}
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
    def _unit(self) -> str:
        return str(self.frame["unit"].iloc[0])

    @property
    def place_label(self) -> str:  # type: ignore[override]
        return f"length difference ({self._unit})"

    def table(self) -> Tables:
        """Returns the papers' tables, the bias in one number, the curve, and the sample's designed pairs."""
        frame, unit = self.frame, self._unit
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
            (f"slope: points per {self._unit.removesuffix('s')}", pooled, SLOPE, ALL),
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

    @property
    def main(self) -> pd.DataFrame:
        return self.frame[~self.frame["measure"].isin([ERROR, RELATIVE]) & (self.frame["pairs"] > 0)]

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


length_bias = LengthBias.verb
