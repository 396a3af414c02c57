"""`length_bias`: does a model find sentences more alike because they are of like length?"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
import typer

from stsbench.analysis import length_measures as measures
from stsbench.analysis.length_measures import ALL, GAP, Lengths
from stsbench.analysis.result import AnalysisResult, CommandWithIntervals, headline, similarity_notes
from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.cli.options import LARGEST, Bins, DataDirs, Length, Tasks, numbers
from stsbench.records.kinds import ALL_TASKS, AVERAGE
from stsbench.render.cells import Key, Named, labels_beside
from stsbench.render.charts import line
from stsbench.render.figures import colours, legend_above, new_figure, style
from stsbench.render.table import Table, Tables, interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stsbench.scoring.settings import Intervals
    from stsbench.scoring.subjects import Wanted

UNSIGNED = "difference"
"""The measure of a published difference, of which the paper does not say whether it is signed."""

_PUBLISHED = {"esimcse-arxiv-v1-1": measures.SPEARMAN, "esimcse-coling2022-7": UNSIGNED}
"""The papers' tables, and what they hold."""

_FEWEST = 10
"""Pairs that a point of the drawn curve stands for at least; the table has them all."""


_FEW_BINS = 5
"""Bins whose names stand upright side by side."""


class LengthBias(AnalysisResult):
    """The length bias of models, the papers' rows beside them where asked."""

    name = "length-bias"
    title = "Length bias"
    question = "are sentences of like length found more alike?"
    look_for = "a gap or slope whose interval leaves out 0; on the sample a design contrast above 0"

    @property
    def unit(self) -> str:
        """What length is counted in."""
        return str(self.frame["unit"].iloc[0])

    def table(self) -> Tables:
        """Return the papers' tables, the bias in one number, the curve, and what the sample's design says."""
        frame, unit = self.frame, self.unit
        bins = frame[(frame["measure"] == measures.RELATIVE) & (frame["task"] == ALL_TASKS) & (frame["pairs"] > 0)]
        curve = bins.pivot_table(index="model", columns="group", values="value", sort=False).reset_index()
        tables = [
            Table(_sizes(frame), f"Pairs by length difference in {unit}", notes=similarity_notes(frame)),
            Table(
                _wide(frame, measures.SPEARMAN),
                f"Spearman x 100 by length difference in {unit} (ESimCSE v1, table 1)",
            ),
            Table(
                _wide(frame, measures.SIGNED, UNSIGNED),
                "Mean difference of similarity and scaled gold x 100, signed (ESimCSE COLING, tables 1 and 7)",
            ),
            Table(_wide(frame, measures.ABSOLUTE, UNSIGNED), "The same, absolute"),
            Table(_summary(frame, unit), "The bias in one number, with confidence intervals"),
            Table(curve, f"Error less the task's mean x 100, by length difference in {unit}, all tasks"),
        ]
        design = frame[frame["measure"].isin([measures.CONTRAST, measures.MARGIN])]
        if len(design):
            tables.append(Table(_design(design), "The sample's designed pairs x 100 (unbiased: contrast 0)"))
        return Tables(tables)

    def numbers(self) -> dict[str, float]:
        """Return all but the curve: each measure by its group of pairs, with its task where there are several."""
        rows = self.frame[
            ~self.frame["measure"].isin([measures.ERROR, measures.RELATIVE]) & (self.frame["pairs"] > 0)
        ]
        several = rows["task"].nunique() > 1
        return {
            ", ".join([*([row["task"]] if several else []), row["measure"], row["group"]]): float(row["value"])
            for row in rows.to_dict("records")
        }

    def plot(self) -> "Figure":
        """Draw the error by bins of the length difference, each model's with its confidence band.

        The bins stand side by side, however wide they are; a line is broken where a bin has few pairs.
        """
        frame = self.frame
        curve = frame[
            (frame["measure"] == measures.RELATIVE) & (frame["task"] == ALL_TASKS) & frame["pairs"].notna()
        ]
        enough = curve["pairs"] >= _FEWEST
        shown = curve["group"].isin(curve.loc[enough, "group"])
        curve = curve.assign(**{name: curve[name].where(enough) for name in ("value", "low", "high")})[shown]
        bins = list(dict.fromkeys(curve["group"]))
        palette = colours(list(frame["model"]))
        with style():
            figure = new_figure()
            axes = figure.subplots()
            axes.axhline(0, color="0.4", linewidth=0.8)
            for model, part in curve.groupby("model", sort=False):
                x = [bins.index(group) for group in part["group"]]
                limits: dict[str, Any] = {
                    "low": part["low"],
                    "high": part["high"],
                    "shade": 0.2 if len(palette) < 3 else 0.1,
                }
                colour, words = palette[str(model)], [f"{group} {self.unit}" for group in part["group"]]
                line(
                    axes, str(model), x, part["value"], colour, **limits, places=words, marker="o", markersize=2.5
                )
            axes.set_xticks(range(len(bins)), bins, rotation=45 if len(bins) > _FEW_BINS else 0)
            axes.set_xlabel(f"length difference ({self.unit})")
            axes.set_ylabel("error less task mean (× 100)")
            legend_above(figure, axes)
        return figure


def _sizes(frame: pd.DataFrame) -> pd.DataFrame:
    wide = frame[(frame["measure"] == measures.SPEARMAN) & ~frame["group"].isin([GAP]) & (frame["pairs"] > 0)]
    wide = wide.pivot_table(index=["model", "group"], columns="task", values="pairs", sort=False, aggfunc="first")
    wide = wide.rename(columns=_column).reset_index()
    # The pairs are the same for all models that were measured on the same tasks: their names say nothing then.
    sizes = wide.drop(columns="model").drop_duplicates()
    wide = sizes if len(sizes) == wide["group"].nunique() else wide
    counts = wide.columns.difference(["model", "group"], sort=False)
    wide = wide.rename(columns={"group": "difference"}).astype(dict.fromkeys(counts, "Int64"))
    return wide.rename(columns={AVERAGE: "all"})


def _column(task: str) -> Key:
    """Return the column of a task, or of the mean over tasks."""
    return task if task == AVERAGE else Named("task", task)


def _wide(frame: pd.DataFrame, *wanted: str) -> pd.DataFrame:
    rows = frame[frame["measure"].isin(wanted) & (frame["task"] != ALL_TASKS)]
    wide = rows.pivot_table(index=["model", "group"], columns="task", values="value", sort=False, dropna=False)
    wide = wide.dropna(how="all").rename(columns=_column).reset_index().rename(columns={"group": "difference"})
    if AVERAGE in wide:
        wide[AVERAGE] = wide.pop(AVERAGE)
    return wide


def _summary(frame: pd.DataFrame, unit: str) -> pd.DataFrame:
    frame = frame[frame["pairs"].notna()]  # without what the papers print
    is_pooled = frame["task"] == ALL_TASKS
    pooled, over = frame[is_pooled], headline(frame[~is_pooled])
    numbers = {
        f"slope: points per {unit.removesuffix('s')}": (pooled, measures.SLOPE, ALL),
        "gap of the signed difference": (over, measures.SIGNED, GAP),
        "gap of the absolute difference": (over, measures.ABSOLUTE, GAP),
        "Spearman": (over, measures.SPEARMAN, ALL),
        "partial Spearman, length difference fixed": (over, measures.PARTIAL, ALL),
    }
    rows = []
    for name, (part, measure, group) in numbers.items():
        for row in part[(part["measure"] == measure) & (part["group"] == group)].to_dict("records"):
            limits = interval(row["low"], row["high"])
            rows.append({"number": name, "model": row["model"], "value": row["value"], "interval": limits})
    return pd.DataFrame(rows, columns=["number", "model", "value", "interval"])


def _design(frame: pd.DataFrame) -> pd.DataFrame:
    limits = [interval(low, high) for low, high in zip(frame["low"], frame["high"], strict=True)]
    return frame[["model", "measure", "group", "pairs", "value"]].assign(interval=limits)


def length_bias(
    runs: "Wanted | Sequence[Wanted] | None" = None,
    *,
    tasks: Sequence[str] = (),
    length: str = "words",
    threshold: int | None = None,
    bins: Sequence[int] = (),
    published: bool = False,
    intervals: "Intervals | None" = None,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> LengthBias:
    """Measure the length bias of runs or models.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of, which are measured first.
        tasks: the tasks to look at, with commas; by default all that a run has, for models the seven STS tasks, or
            the sample.
        length: how length is measured: in `words` (whitespace tokens as released), `subwords` or `characters`.
        threshold: the largest length difference that counts as short; by default 3, for characters 15.
        bins: where the bins of the curve begin, from 0 and rising, such as `0,1,2,4,8`.
        published: whether to put the papers' rows beside the results (ESimCSE: words, threshold 3).
        intervals: how intervals are computed.
        data_dirs: folders to look for data in.
        progress: told how far encoding is.

    Returns:
        One row per model, task, measure and group, with `pairs`, `value`, `low` and `high`; `unit` is the length
        unit, `similarity` the run's own. Only a similarity between 0 and 1 is on the scale of gold, so differences
        to gold say little of dot products and distances. Measures, all x 100:

        - `spearman`, `signed difference`, `absolute difference` (similarity less scaled gold) in the groups, over
          `all`, and their `gap`: short less long, as in COLING's table 1;
        - `partial spearman` of similarity and gold, length difference held fixed;
        - `error`: the signed difference by bin (`length_difference` is the bin's mean), and `relative error`: the
          same less the task's mean;
        - `slope`: points of signed difference per unit of length difference;
        - on the sample, `design contrast` and `design margin`: how similarity answers to length at one meaning,
          and to meaning where length is against it.

        The task `Avg.` is the mean over tasks. `all tasks` are all pairs together; their slope has an intercept
        for each task.

    Raises:
        UserError: if a run's pair table is missing or another one, lacks a task, or knows no lengths in the unit.

    >>> bias = length_bias(lambda sentences: [[len(s), s.count("e")] for s in sentences], tasks=["sample"])
    >>> bias.frame.loc[bias.frame["measure"] == "slope", ["task", "group", "pairs"]].to_dict("records")[0]
    {'task': 'sample', 'group': 'all', 'pairs': 252}
    """
    from stsbench.analysis.inputs import analysable
    from stsbench.analysis.length_numbers import length_bias_frame
    from stsbench.scoring.subjects import tasks_by_model

    lengths = Lengths(length, threshold, tuple(bins))
    if published and (lengths.unit != "words" or lengths.longest_short != 3):
        raise UserError("the papers' rows are of differences in words up to 3 and above: leave --published out.")
    models = tasks_by_model(analysable(runs), tasks, data_dirs=data_dirs, progress=progress)
    frame = length_bias_frame(models, lengths, intervals)
    # Whole numbers although the papers do not print how many pairs a value is of.
    if published:
        rows = _published_rows(lengths)
        rows["model"] = rows["model"].map(labels_beside(rows["model"], models))
        frame = pd.concat([frame, rows], ignore_index=True)
    return LengthBias(frame.astype({"pairs": "Int64"}))


def _published_rows(lengths: Lengths) -> pd.DataFrame:
    """Return what the papers print, in the same columns; the gap is the difference of what is printed."""
    from stsbench.published.catalogue import rows_of, systems, table

    short, long = lengths.groups
    groups = {"length difference <= 3": short, "length difference > 3": long}
    rows = [
        {
            "model": f"{systems()[cell.system].title} (published)",
            "task": "Avg." if cell.setting.task == "Avg. STS" else cell.setting.task,
            "measure": measure,
            "group": groups[cell.setting.group],
            "unit": lengths.unit,
            "value": cell.score,
        }
        for name, measure in _PUBLISHED.items()
        for row in rows_of(table(name))
        for cell in row.cells
    ]
    frame = pd.DataFrame(rows)
    keys = ["model", "task", "measure", "unit"]
    wide = frame.pivot_table(index=keys, columns="group", values="value", sort=False)
    gap = (wide[short] - wide[long]).rename("value").reset_index().assign(group=GAP)
    return pd.concat([frame, gap], ignore_index=True)


@dataclass(frozen=True)
class LengthBiasCommand(CommandWithIntervals):
    """Measure length bias: does a model rate sentences as more similar because their lengths are similar?

    Spearman and mean similarity error for pairs of small and large length difference, a slope, and the partial
    Spearman; on the sample also its designed contrasts. The figure shows the error by length difference.

    Examples:
    * `stsbench length-bias runs/minilm-avg-sts --published`
    * `stsbench length-bias runs/a runs/b --length subwords --threshold 5 --figure bias.pdf`
    * `stsbench length-bias --model minilm --tasks sample --json`
    """

    verb = staticmethod(length_bias)
    result = LengthBias
    of_pairs = True

    tasks: Tasks = None
    length: Length = "words"
    threshold: Annotated[
        int | None,
        typer.Option(
            min=0, max=LARGEST, help="The largest length difference that is short; 3 by default, 15 characters."
        ),
    ] = None
    bins: Bins = None
    published: Annotated[
        bool, typer.Option("--published", help="Add the rows of the papers (ESimCSE: words, threshold 3).")
    ] = False
    data_dirs: DataDirs = None

    def keywords(self) -> dict[str, Any]:
        """Return the options as `length_bias` takes them."""
        return super().keywords() | {"bins": numbers(self.bins, "--bins", "0,1,2,4,8")}
