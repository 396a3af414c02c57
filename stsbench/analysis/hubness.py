"""Hubness: are some sentences neighbours of very many, and others of nobody? (Radovanović et al. 2010)"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
import typer

from stsbench.analysis.result import AnalysisResult, CommandWithIntervals
from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.cli.options import LARGEST, DataDirs, OwnTexts, Tasks
from stsbench.records.kinds import AVERAGE
from stsbench.render.charts import draw_by_model
from stsbench.render.figures import colours, legend_above, new_figure, style
from stsbench.render.table import Table, Tables, interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stsbench.analysis.inputs import ScoredVectors
    from stsbench.scoring.settings import Intervals
    from stsbench.scoring.subjects import Wanted

NEIGHBOURS = 10
"""The k of N_k: Radovanović et al. (2010) print the skewness of N_10 of their data sets."""

SKEWNESS, ANTIHUBS = "skewness", "anti-hubs"

_SAME_COSINE = 1e-9


class Hubs(AnalysisResult):
    """How unevenly the sentences of tasks are each other's neighbours."""

    name = "hubness"
    title = "Hubness"
    question = "are some sentences near to very many, and others to nobody?"
    look_for = "a skewness far above 0, many anti-hubs: neighbours that say more of the space than of meaning"

    def table(self) -> Tables:
        """Return a row for each model and task."""
        rows = []
        for (model, task), part in self.frame.groupby(["model", "task"], sort=False):
            measured = part.set_index("measure")
            row = {"model": model, "task": task, "sentences": measured["sentences"].iloc[0]}
            for measure, scale in ((SKEWNESS, 1), (ANTIHUBS, 100)):
                value, low, high = (
                    scale * float(measured[name].to_dict()[measure]) for name in ("value", "low", "high")
                )
                name = measure if scale == 1 else f"{measure} %"
                row |= {name: value, f"{measure}: interval": interval(low, high)}
            rows.append(row | {"largest hub": measured["largest"].iloc[0]})
        k = self.frame["k"].iloc[0]
        table = pd.DataFrame(rows).astype({"sentences": "Int64", "largest hub": "Int64"})
        return Tables(
            [
                Table(
                    table,
                    f"Hubness: how often a sentence is among the {k} nearest of another",
                    2,
                    notes=self.notes,
                )
            ]
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What the numbers are of, and what keeps them from being as they should."""
        k = self.frame["k"].iloc[0]
        notes = [
            f"By cosine among the distinct sentences of a task: one is among the {k} nearest of {k} others on "
            "average, an anti-hub of none. Both grow with the number of sentences: compare models on one task. "
            "Intervals are of as many new sentences; those of a chain of pairs depend on each other."
        ]
        for row in self.frame[self.frame["measure"] == SKEWNESS].to_dict("records"):
            if row["tied"] > 0:
                notes.append(
                    f"{row['model']}, {row['task']}: {100 * row['tied']:.1f} % of the sentences have several "
                    f"{k}-nearest ones, of which the first by number is taken."
                )
            if row["task"] != AVERAGE and row["largest"] == row["sentences"] - 1:
                notes.append(
                    f"{row['model']}, {row['task']}: one sentence is a neighbour of all others, and makes most of "
                    "the skewness by itself."
                )
            if row["zero"] > 0:
                notes.append(f"{row['model']}, {row['task']}: {row['zero']:,} zero vectors are left out.")
        return tuple(notes)

    def numbers(self) -> dict[str, float]:
        """Return skewness and share of anti-hubs, by task where there are several."""
        several = self.frame["task"].nunique() > 1
        return {
            ", ".join([*([row["task"]] if several else []), row["measure"]]): float(row["value"])
            for row in self.frame.to_dict("records")
        }

    def plot(self) -> "Figure":
        """Draw skewness and share of anti-hubs by task, model beside model, with intervals."""
        frame = self.frame.assign(place=self.frame["task"])
        frame.loc[frame["measure"] == ANTIHUBS, ["value", "low", "high"]] *= 100
        palette = colours(list(frame["model"]))
        with style():
            figure = new_figure(height=3.4)
            above, below = figure.subplots(2, 1, sharex=True)
            for axes, measure, label in ((above, SKEWNESS, "skewness"), (below, ANTIHUBS, "anti-hubs, %")):
                draw_by_model(axes, frame[frame["measure"] == measure], palette)
                axes.set_ylabel(label)
                axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
            legend_above(figure, above)
        return figure


def hubness(
    runs: "Wanted | Sequence[Wanted] | None" = None,
    *,
    tasks: Sequence[str] = (),
    k: int = NEIGHBOURS,
    data: Sequence[str | Path] = (),
    intervals: "Intervals | None" = None,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> Hubs:
    """Measure how unevenly sentences are each other's nearest neighbours by cosine.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of, which are measured first.
        tasks: the tasks to look at, with commas; by default all that a run has, for models the seven STS tasks, or
            the sample.
        k: how many neighbours of each sentence are looked at.
        data: files with the sentences of runs on pairs of your own; repeatable. Records hold no sentences.
        intervals: how intervals are computed; sentences depend on each other that a chain of pairs joins.
        data_dirs: folders to look for data in.
        progress: told how far it is.

    Returns:
        One row per model, task and measure, with `value`, `low` and `high`: `skewness` of the k-occurrence N_k
        (how many other sentences have a sentence among their k nearest) and `anti-hubs`, the share of those with
        N_k = 0. `Avg.` is the mean over tasks. Of the task: `sentences` (distinct ones), `k`, `largest` (the
        largest N_k), `tied` (the share of sentences whose k-th neighbour is no nearer than the next) and `zero`
        (vectors without direction, which are left out).

    Raises:
        UserError: if a run lacks a task, there are too few sentences, or all have one direction.

    >>> hubs = hubness(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], tasks=["sample"])
    >>> hubs.frame["measure"].tolist()
    ['skewness', 'anti-hubs']
    """
    from stsbench.analysis.inputs import analysable, scored_vectors

    subjects = analysable(runs)
    models = scored_vectors(subjects, tasks, data=data, data_dirs=data_dirs, progress=progress)
    return Hubs(hubness_frame(models, k, intervals, progress))


def hubness_frame(
    models: "Mapping[str, Sequence[ScoredVectors]]",
    k: int = NEIGHBOURS,
    intervals: "Intervals | None" = None,
    progress: Progress = silent,
) -> pd.DataFrame:
    """Measure the hubness of several models' vectors of the tasks' sentences; see `hubness`."""
    from stsbench.analysis.length_numbers import Estimates
    from stsbench.scoring.settings import Intervals
    from stsbench.statistics import neighbours
    from stsbench.statistics.influence import Linear

    rows: list[dict[str, Any]] = []
    for model, tasks in models.items():
        estimates, by_task = Estimates(intervals or Intervals()), []
        for task in tasks:
            usable = task.usable
            units, _ = neighbours.directions(task.vectors[usable])
            if len(units) < k + 2:
                raise UserError(
                    f"{k} neighbours: {task.task} has {len(units)} distinct sentences that {model} gives a vector "
                    f"that is not zero, and {k + 2} are needed; give a smaller -k."
                )
            task.require_directions(model)
            nearest = neighbours.nearest_others(units, k + 1, progress)
            found = neighbours.hubness(nearest.rows[:, :k])
            estimates.block(task.task, task.dependent(usable))
            measured = {
                SKEWNESS: Linear(found.skewness, {task.task: found.skewness_terms}),
                ANTIHUBS: Linear(found.antihubs, {task.task: found.antihub_terms}),
            }
            by_task.append(measured)
            about = {
                "model": model,
                "task": task.task,
                "k": k,
                "sentences": len(units),
                "largest": int(found.counts.max()),
                "tied": float(np.mean(nearest.cosines[:, k - 1] - nearest.cosines[:, k] < _SAME_COSINE)),
                "zero": int((~usable).sum()),
            }
            rows += [
                about
                | {"measure": measure}
                | estimates.limits(estimate, len(units), share=measure == ANTIHUBS, normal=True)
                for measure, estimate in measured.items()
            ]
        if len(tasks) > 1:
            sentences = sum(len(task.vectors) for task in tasks)
            for measure in (SKEWNESS, ANTIHUBS):
                mean = sum((of[measure] for of in by_task[1:]), by_task[0][measure]) / len(tasks)
                about = {"model": model, "task": AVERAGE, "k": k, "measure": measure, "tied": 0.0, "zero": 0}
                rows.append(about | estimates.limits(mean, sentences, normal=True))
    columns = ["model", "task", "measure", "k", "value", "low", "high", "sentences", "largest", "tied", "zero"]
    return pd.DataFrame(rows, columns=columns).astype({"sentences": "Int64", "largest": "Int64"})


@dataclass(frozen=True)
class HubnessCommand(CommandWithIntervals):
    """Measure hubness: do a few sentences dominate the nearest-neighbour lists?

    The skewness of how often a sentence is among another's k nearest neighbours, and the share that never is.

    Examples:
    * `stsbench hubness runs/a runs/b --figure hubs.svg`
    * `stsbench hubness --model minilm --tasks sample -k 5 --json`
    """

    verb = staticmethod(hubness)
    result = Hubs
    of_pairs = True

    tasks: Tasks = None
    k: Annotated[int, typer.Option("--top", "-k", min=1, max=LARGEST, help="Neighbours per sentence.")] = (
        NEIGHBOURS
    )
    data: OwnTexts = None
    data_dirs: DataDirs = None
