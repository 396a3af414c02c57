"""`ties`: how much of a score is a matter of how pairs of one similarity are put in order?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from stsbench.analysis.result import AnalysisCommand, AnalysisResult, headline, similarity_notes
from stsbench.base.progress import Progress, silent
from stsbench.base.words import listed
from stsbench.cli.options import DataDirs, Tasks
from stsbench.records.kinds import AVERAGE
from stsbench.render.figures import colours, legend_above, new_figure, style
from stsbench.render.table import Table, Tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stsbench.scoring.subjects import ScoredTask, Wanted

RECORDED = "as recorded"

SIGNIFICANT_BITS = {RECORDED: 53, "fp16": 11, "bf16": 8, "fp8": 4}
"""Formats in which similarities may have been computed, and the significant bits of each (fp8 is E4M3)."""

_NUMBERS = ["tied", "score", "expected", "lowest", "highest"]


class TieRanges(AnalysisResult):
    """What ties leave open of models' scores, with the similarities as recorded and in lower precisions."""

    name = "ties"
    title = "Ties"
    question = "how much of a score is how ties are broken?"
    look_for = "a range as wide as the differences that you read; many tied pairs where nothing was compressed"

    def table(self) -> Tables:
        """Return the average of each model, and each of its tasks with the similarities as recorded."""
        heads = {"tied": "tied pairs %", "score": "Spearman"}
        tables = []
        over_tasks = self.headline
        tasks = listed(list(dict.fromkeys(over_tasks["task"])))
        caption = f"Spearman x 100, {tasks}, and over all ways of breaking ties"
        rows = over_tasks[["model", "precision", *_NUMBERS]].rename(columns=heads)
        tables.append(Table(rows, caption, notes=similarity_notes(self.frame)))
        if self.frame["task"].nunique() > 1:
            by_task = self.frame[(self.frame["precision"] == RECORDED) & (self.frame["task"] != AVERAGE)]
            columns = ["model", "task", "pairs", "distinct", *_NUMBERS]
            caption = "The same of each task, with the similarities as recorded"
            tables.append(Table(by_task[columns].astype({"pairs": int}).rename(columns=heads), caption))
        return Tables(tables)

    @property
    def headline(self) -> pd.DataFrame:
        """The rows of each model's average over its tasks, or of its only task."""
        return headline(self.frame)

    def numbers(self) -> dict[str, float]:
        """Return the share of tied pairs, and how wide the range is, by precision."""
        rows = self.headline.to_dict("records")
        shares = {f"tied pairs %, {row['precision']}": float(row["tied"]) for row in rows}
        return shares | {f"range, {row['precision']}": float(row["highest"] - row["lowest"]) for row in rows}

    def plot(self) -> "Figure":
        """Draw by precision from the lowest to the highest score that a way of breaking ties gives."""
        rows = self.headline
        palette = colours(list(rows["model"]))
        precisions = list(dict.fromkeys(rows["precision"]))
        step = 0.7 / len(palette)
        with style():
            figure = new_figure(height=0.9 + (0.2 + 0.12 * len(palette)) * len(precisions))
            axes = figure.subplots()
            for number, (model, part) in enumerate(rows.groupby("model", sort=False)):
                places = [
                    precisions.index(name) + (number - (len(palette) - 1) / 2) * step for name in part["precision"]
                ]
                colour = palette[str(model)]
                axes.hlines(places, part["lowest"], part["highest"], color=colour, linewidth=3, alpha=0.5)
                axes.plot(part["score"], places, color=colour, marker="|", markersize=7, lw=0, label=model)
            axes.set_yticks(range(len(precisions)), precisions)
            axes.set_ylim(len(precisions) - 0.5, -0.5)
            axes.set_xlabel("Spearman × 100 (mark: ties share their rank)")
            legend_above(figure, axes)
        return figure


def ties(
    runs: "Wanted | Sequence[Wanted] | None" = None,
    *,
    tasks: Sequence[str] = (),
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> TieRanges:
    """Tell how many pairs have one similarity, and what Spearman is over all ways of putting those in order.

    It needs no vectors: a record's similarities are there, and are rounded to the significant bits of lower
    precisions to see what those would tie.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of, which are measured first.
        tasks: the tasks to look at, with commas; by default all that a run has, for models the seven STS tasks, or
            the sample.
        data_dirs: folders to look for data in.
        progress: told how far encoding is.

    Returns:
        One row per model, task (`Avg.` is their mean) and `precision` (`as recorded`, `fp16`, `bf16`, `fp8`): of
        how many `pairs` how many `distinct` similarities there are, and in percent how many pairs are `tied`; x
        100 Spearman's `score` (ties share their average rank), its mean over all ways of breaking the ties
        (`expected`), and the `lowest` and `highest`. `similarity` says which.

    Raises:
        UserError: if a run's pair table is missing or another one, or lacks a task.

    >>> open_ = ties(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], tasks=["sample"])
    >>> open_.frame["tied"].round(1).tolist()
    [0.8, 97.6, 99.6, 100.0]
    """
    from stsbench.analysis.inputs import analysable
    from stsbench.scoring.subjects import tasks_by_model

    models = tasks_by_model(analysable(runs), tasks, data_dirs=data_dirs, progress=progress)
    return TieRanges(ties_frame(models))


def ties_frame(models: "Mapping[str, Sequence[ScoredTask]]") -> pd.DataFrame:
    """Return the ranges of several models, each of its tasks as it was scored on them; see `ties`."""
    return pd.DataFrame([row for name, scored in models.items() for row in _rows(name, scored)])


def _rows(name: str, tasks: "Sequence[ScoredTask]") -> Iterator[Mapping[str, Any]]:
    from stsbench.statistics.ties import rounded, ties_of

    similarity = tasks[0].statistic.similarity
    codes = [pd.factorize(task.pairs["subset"])[0] for task in tasks]
    for precision, bits in SIGNIFICANT_BITS.items():
        of_tasks: list[dict[str, Any]] = []
        for task, of_task in zip(tasks, codes, strict=True):
            values = task.similarity
            open_ = ties_of(task.pairs["gold"], rounded(values, bits), of_task, task.statistic.aggregation)
            counts = {"task": task.task, "pairs": len(values), "distinct": open_.distinct}
            of_tasks.append({**counts, **{number: 100 * getattr(open_, number) for number in _NUMBERS}})
        if len(of_tasks) > 1:
            means = {number: float(np.mean([row[number] for row in of_tasks])) for number in _NUMBERS}
            sums = {count: sum(row[count] for row in of_tasks) for count in ("pairs", "distinct")}
            of_tasks.append({"task": AVERAGE, **sums, **means})
        for row in of_tasks:
            yield {"model": name, "precision": precision, "similarity": similarity, **row}


@dataclass(frozen=True)
class TiesCommand(AnalysisCommand):
    """Show how much a score depends on tied similarities.

    The share of pairs with tied similarities, and the lowest and highest Spearman over all ways to break the ties:
    with similarities as recorded, and rounded to fp16, bf16 and fp8.

    Examples:
    * `stsbench ties runs/minilm-avg-sts`
    * `stsbench ties runs/a runs/b --tasks STS-B --figure ties.svg`
    """

    verb = staticmethod(ties)
    result = TieRanges
    of_pairs = True

    tasks: Tasks = None
    data_dirs: DataDirs = None
