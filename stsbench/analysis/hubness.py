"""Hubness: do a few sentences dominate the nearest-neighbour lists? (Radovanović et al. 2010)"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stsbench.analysis.base import Key, OfVectors, Row, TaskEstimates, draw_panels, with_intervals
from stsbench.analysis.estimates import Estimates
from stsbench.analysis.inputs import ScoredVectors
from stsbench.analysis.parameters import LARGEST, parameter
from stsbench.base.errors import UserError
from stsbench.records.kinds import AVERAGE
from stsbench.render.table import Table, Tables
from stsbench.statistics import neighbours
from stsbench.statistics.influence import Linear

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SKEWNESS, ANTIHUBS = "skewness", "anti-hubs"

_SAME_COSINE = 1e-9


class Hubness(OfVectors):
    """Measure hubness: do a few sentences dominate the nearest-neighbour lists?

    The skewness of how often a sentence is among another's k nearest neighbours, and the share that never is.

    Returns:
        One row per model, task and measure, with `value`, `low` and `high`: `skewness` of the k-occurrence N_k
        (how many other sentences have a sentence among their k nearest by cosine) and `anti-hubs`, the share of
        sentences with N_k = 0. `Avg.` is the mean over tasks. Other columns: distinct `sentences`, `k`, the
        `largest` N_k, the share of sentences whose k-th neighbour is `tied` with the next, and the number of
        `zero` vectors, which are left out.

    Raises:
        UserError: if a run lacks a task, there are too few sentences, or all vectors have one direction.

    >>> hubs = hubness(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], tasks=["sample"])
    >>> hubs.frame["measure"].tolist()
    ['skewness', 'anti-hubs']
    """

    name = "hubness"
    title = "Hubness"
    question = "are some sentences neighbours of very many others, and some of none?"
    look_for = "a skewness far above 0 and many anti-hubs: neighbours reflect the space more than the meaning"
    examples = (
        "stsbench hubness runs/a runs/b --figure hubs.svg",
        "stsbench hubness --model minilm --tasks sample -k 5 --json",
    )
    columns = ("model", "task", "measure", "k", "value", "low", "high", "sentences", "largest", "tied", "zero")

    # Radovanović et al. (2010) print the skewness of N_10.
    k: int = parameter(10, "Neighbours per sentence.", flags=("--top", "-k"), limits=(1, LARGEST))

    def measure_task(self, model: str, task: ScoredVectors, estimates: Estimates) -> TaskEstimates:
        """Returns skewness and share of anti-hubs among the sentences of a task."""
        usable = task.usable
        units, _ = neighbours.directions(task.vectors[usable])
        if len(units) < self.k + 2:
            raise UserError(
                f"{self.k} neighbours: {task.task} has {len(units)} distinct sentences with a vector of {model} "
                "that "
                f"is not zero, {self.k + 2} are needed; give a smaller -k."
            )
        nearest = neighbours.nearest_others(units, self.k + 1, self.progress)
        occurrence = neighbours.hubness(nearest.rows[:, : self.k])
        estimates.block(task.task, task.dependent(usable))
        about = {
            "k": self.k,
            "sentences": len(units),
            "largest": int(occurrence.counts.max()),
            "tied": float(np.mean(nearest.cosines[:, self.k - 1] - nearest.cosines[:, self.k] < _SAME_COSINE)),
            "zero": int((~usable).sum()),
        }
        measured = {
            (SKEWNESS, ""): Linear(occurrence.skewness, {task.task: occurrence.skewness_terms}),
            (ANTIHUBS, ""): Linear(occurrence.antihubs, {task.task: occurrence.antihub_terms}),
        }
        return TaskEstimates(measured, about)

    def about_average(self, tasks: Sequence[ScoredVectors], measured: Sequence[TaskEstimates]) -> Row:
        """Returns the other columns of an average."""
        return {"k": self.k, "tied": 0.0, "zero": 0, "of": sum(len(task.vectors) for task in tasks)}

    def rows(self, task: str, of_task: Mapping[Key, Linear], about: Row, estimates: Estimates) -> Iterator[Row]:
        """Yields both measures with their intervals."""
        count = about.get("sentences") or about["of"]
        for (measure, _), estimate in of_task.items():
            share = measure == ANTIHUBS and task != AVERAGE
            limits = estimates.limits(estimate, count, share=share, normal=True)
            yield {"task": task, "measure": measure} | about | limits

    def compute(self, inputs: Mapping[str, Sequence[ScoredVectors]]) -> "Hubness":
        """Measures all models; averages have no number of sentences."""
        super().compute(inputs)
        self._frame = self._frame.astype({"sentences": "Int64", "largest": "Int64"})
        return self

    def table(self) -> Tables:
        """Returns a row for each model and task."""
        keys = ["model", "task", "sentences", "largest"]
        table = with_intervals(self.frame, keys, scale={ANTIHUBS: 100})
        table = table.astype({"sentences": "Int64", "largest": "Int64"})
        table = table.rename(columns={"largest": "largest hub", ANTIHUBS: f"{ANTIHUBS} %"})
        table["largest hub"] = table.pop("largest hub")
        caption = f"Hubness: how often a sentence is among the {self._k} nearest of another by cosine"
        return Tables([Table(table, caption, notes=self.notes)])

    @property
    def _k(self) -> int:
        return int(self.frame["k"].iloc[0])

    @property
    def notes(self) -> tuple[str, ...]:
        """What limits the comparison, and unusual vectors."""
        notes = ["Both numbers grow with the number of sentences: compare models on the same task."]
        for row in self.frame[self.frame["measure"] == SKEWNESS].to_dict("records"):
            label = f"{row['model']}, {row['task']}"
            if row["tied"] > 0:
                notes.append(
                    f"{label}: {100 * row['tied']:.1f} % of the sentences have tied {self._k}-th neighbours."
                )
            if row["task"] != AVERAGE and row["largest"] == row["sentences"] - 1:
                notes.append(
                    f"{label}: one sentence is a neighbour of all others and causes most of the skewness."
                )
            if row["zero"] > 0:
                notes.append(f"{label}: {row['zero']:,} zero vectors are left out.")
        return tuple(notes)

    def numbers(self) -> dict[str, float]:
        """Returns skewness and share of anti-hubs, by task if there are several."""
        several = self.frame["task"].nunique() > 1
        return {
            ", ".join([*([row["task"]] if several else []), row["measure"]]): float(row["value"])
            for row in self.frame.to_dict("records")
        }

    def plot(self) -> "Figure":
        """Draws both numbers by task, the models side by side."""
        rows = self.frame.assign(place=self.frame["task"])
        rows.loc[rows["measure"] == ANTIHUBS, ["value", "low", "high"]] *= 100
        panels = {
            label: rows[rows["measure"] == measure]
            for label, measure in (("skewness", SKEWNESS), ("anti-hubs, %", ANTIHUBS))
        }
        return draw_panels(self.frame, panels, height=3.4, shared=True)


hubness = Hubness.verb
