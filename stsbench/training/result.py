"""The result of `train`: the checkpoint's folder and record, the log, and the dev curve."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from stsbench.published.measured import logged_dev_scores, logged_systems
from stsbench.records.record import RunRecord
from stsbench.render.charts import curves, line
from stsbench.render.figures import colours, new_figure, style
from stsbench.render.table import Result, Table, Tables
from stsbench.training.folder import RunFolder
from stsbench.training.log import log_frame, read_log
from stsbench.training.recipe import Recipe
from stsbench.training.recipe_files import read_recipe
from stsbench.training.selection import Best

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PANEL, _MARGIN = 1.9, 0.5
"""Inches: of each panel with its legend, and of the axis below them all."""


@dataclass(frozen=True)
class Training(Result):
    """A finished training.

    Attributes:
        folder: holds the checkpoint, `run.json`, `log.jsonl`, `recipe.yaml` and the dev curve.
        recipe: in full.
        best: the step that was selected and its dev score.
        steps: taken.
        record: of the checkpoint on the dev set.
        log: its lines, as in `log.jsonl`.
        leads: whether this is the first of several processes, which reports the result.
    """

    folder: Path
    recipe: Recipe
    best: Best
    steps: int
    record: RunRecord
    log: Sequence[dict[str, Any]] = field(default=(), repr=False)
    leads: bool = True

    @property
    def frame(self) -> pd.DataFrame:
        """The losses and dev scores, a row for each line of the log; see `log_frame`."""
        return log_frame(self.log)

    def table(self) -> Tables:
        """Return a row with the dev score before and of the best checkpoint, and the last loss."""
        losses = [line["loss"] for line in self.log if "loss" in line]
        before = next((line["dev"] for line in self.log if "dev" in line), None)
        kept = self.record.scores[0].value
        row: dict[str, Any] = {
            "Recipe": self.recipe.name,
            "Selected on": self.recipe.selection.task,
            "Dev before × 100": None if before is None else 100 * before,
            "Best dev × 100": None if kept is None else 100 * kept,
            "At step": self.best.step,
            "Steps": self.steps,
            "Last loss": f"{losses[-1]:.4g}" if losses else None,
        }
        for head in self.record.heads:
            row[f"{head.task} {head.measure} × 100"] = None if head.score is None else 100 * head.score
        remarks = tuple(str(line["remark"]) for line in self.log if "remark" in line)
        caption = f"Training {self.folder.resolve().name}"
        return Tables([Table(pd.DataFrame([row]), caption, name="training", notes=remarks)])

    def plot(self, *others: "Training | str | Path") -> "Figure":
        """Draw the dev curve next to a published one, or with those of other trainings.

        Args:
            others: results of `train`, or folders of trainings.

        Raises:
            UserError: if a folder has no training.
        """
        if not others:
            return draw_dev_curve(self.frame, self.recipe, self.steps)
        points, tasks = {}, []
        for training in (self, *others):
            folder = RunFolder(training.folder if isinstance(training, Training) else Path(training).expanduser())
            dev = log_frame(read_log(folder.log)).dropna(subset=["dev"])
            points[folder.path.resolve().name] = dev.assign(value=100 * dev["dev"])
            tasks.append(read_recipe(folder.recipe).selection.task)
        return curves(points, f"Spearman × 100, {' and '.join(dict.fromkeys(tasks))}")

    def to_dict(self) -> Any:
        """Return the record as plain data, with the training under `training`."""
        best = {"step": self.best.step, "dev": self.record.scores[0].value}
        training = {
            "folder": str(self.folder),
            "steps": self.steps,
            "best": best,
            "heads": {head.task: {head.measure: head.score} for head in self.record.heads},
            "recipe": self.recipe.model_dump(mode="json"),
            "log": list(self.log),
        }
        return {**json.loads(self.record.model_dump_json()), "training": training}


def draw_dev_curve(log: pd.DataFrame, recipe: Recipe, steps: int) -> "Figure":
    """Draw the dev curve over the share of steps, that of the same published system, and the measures of tasks."""
    curve, system = log.dropna(subset=["dev"]), recipe.name.removesuffix("-released")
    rows = 1 + bool(recipe.tasks)
    with style():
        figure = new_figure(_MARGIN + _PANEL * rows)
        axes, *more = figure.subplots(rows, 1, squeeze=False, sharex=True)[:, 0]
        ours, authors = colours(["ours", "authors"]).values()
        share, score = (100 * curve["step"] / steps).to_numpy(), (100 * curve["dev"]).to_numpy()
        line(axes, f"{recipe.name}, {steps} steps", share, score, ours, marker=".", markersize=3)
        if len(score) > 1:  # the first is the base's, before any step
            best = 1 + int(score[1:].argmax())
            mark = {"color": ours, "marker": "o", "fillstyle": "none", "linestyle": "none"}
            axes.plot(share[best], score[best], **mark, label=f"best, {score[best]:.2f}")
        if recipe.selection.task == "STS-B:dev" and system in logged_systems():
            scores = logged_dev_scores(system)
            label = f"{system}, the authors' log, best {100 * scores['STS-B'].max():.2f}"
            its_share = 100 * scores["step"] / scores["step"].max()
            line(axes, label, its_share, 100 * scores["STS-B"], authors, linewidth=0.8)
        axes.set_ylabel(f"Spearman × 100, {recipe.selection.task}")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1))
        for below in more:
            for name, colour in colours(list(recipe.tasks)).items():
                column = f"{name} {recipe.tasks[name].measure}"
                if column in curve:
                    line(below, column, share, 100 * curve[column], colour, marker=".", markersize=3)
            below.set_ylabel("heads on their dev sets × 100")
            below.legend(loc="lower left", bbox_to_anchor=(0, 1))
        figure.axes[-1].set_xlabel("share of the training (%)")
    return figure
