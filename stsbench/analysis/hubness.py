"""Hubness: do a few sentences dominate the nearest-neighbour lists? (Radovanović et al. 2010)"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from stsbench.analysis.base import OfVectors, Row
from stsbench.analysis.inputs import COUNT, Answer, ScoredVectors, averaged, parameter, with_overall
from stsbench.base.errors import UserError
from stsbench.render.table import Table, Tables, note_of, scaled, with_intervals
from stsbench.statistics import neighbours
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.influence import Linear

SKEWNESS, ANTIHUBS = "skewness", "anti-hubs"

_SAME_COSINE = 1e-9


class Hubness(OfVectors):
    """Measure hubness: do a few sentences dominate the nearest-neighbour lists?

    How unevenly sentences appear in others' k nearest neighbours (skewness), and the share that never appears.

    Returns:
        One row per model, task and measure, with `value`, `low` and `high`: `skewness` of N_k (how many others
        have a sentence among their k nearest by cosine) and `anti-hubs`, the share of sentences with N_k = 0.
        `Avg.` is the mean over tasks. Also distinct `sentences`, `k`, the `largest` N_k, the share whose k-th
        neighbour is `tied` with the next, and the number of `zero` vectors, which are left out.

    >>> from stsbench import hubness
    >>> hubs = hubness(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], tasks=["sample"])
    >>> hubs.frame["measure"].tolist()
    ['skewness', 'anti-hubs']
    """

    answer = Answer("How skewed are neighbour lists?", rows={"measure": SKEWNESS})
    counts = ("sentences", "largest")
    # Radovanović et al. (2010) print the skewness of N_10.
    k: int = parameter(10, "Neighbours per sentence.", flags=("--top", "-k"), limits=COUNT)

    def measure(self, model: str, given: Sequence[ScoredVectors]) -> Iterator[Row]:
        tasks = {task.task: self._of_task(model, task) for task in given}
        for name, (measured, about) in with_overall(tasks, _average).items():
            for measure, estimate in measured.items():
                limits = self.estimates.limits(estimate, share=measure == ANTIHUBS, normal=True)
                yield {"task": name, "measure": measure, "k": self.k} | about | limits

    def _of_task(self, model: str, task: ScoredVectors) -> tuple[dict[str, Linear], Row]:
        """Returns skewness and share of anti-hubs among the sentences of a task, and counts."""
        units, _ = neighbours.directions(task.vectors[task.usable])
        if len(units) < self.k + 2:
            raise UserError(
                f"{self.k} neighbours: {task.task} has {len(units)} distinct sentences with a nonzero vector of "
                f"{model}, {self.k + 2} are needed; give a smaller --top."
            )
        nearest = neighbours.nearest_others(units, self.k + 1, self.progress)
        occurrence = neighbours.hubness(nearest.rows[:, : self.k])
        self.estimates.block(task.task, Sharing.of(task.chains[task.usable]))
        gaps = nearest.cosines[:, self.k - 1] - nearest.cosines[:, self.k]
        return {
            SKEWNESS: Linear(occurrence.skewness, {task.task: occurrence.skewness_terms}),
            ANTIHUBS: Linear(occurrence.antihubs, {task.task: occurrence.antihub_terms}),
        }, {
            "sentences": len(units),
            "largest": int(occurrence.counts.max()),
            "tied": float(np.mean(gaps < _SAME_COSINE)),
            "zero": len(task.vectors) - len(units),
        }

    def table(self) -> Tables:
        keys = ["model", "task", "sentences", "largest"]
        table = with_intervals(self.frame, keys, scale={ANTIHUBS: 100})
        table = table.astype({"sentences": "Int64", "largest": "Int64"})
        table["largest hub"] = table.pop("largest")
        table = table.rename(columns={ANTIHUBS: f"{ANTIHUBS} %"})
        caption = (
            f"Hubness: how often a sentence is among the {self.frame['k'].iloc[0]} nearest of another by cosine"
        )
        return Tables([Table(table, caption, notes=self.notes)])

    @property
    def notes(self) -> tuple[str, ...]:
        rows = self.frame[self.frame["measure"] == SKEWNESS]
        notes = ["Both numbers grow with the number of sentences: compare models on the same task."]
        if (tied := 100 * rows["tied"].max()) > 0:
            notes.append(f"Up to {tied:.1f} % of a task's sentences have a tied last neighbour.")
        zero = rows.groupby("model", sort=False)["zero"].sum()
        return (*notes, *note_of("Zero vectors left out", zero[zero > 0]))

    def panels(self) -> Mapping[str, pd.DataFrame]:
        rows = self.frame.assign(place=self.frame["task"])
        antihubs = scaled(rows[rows["measure"] == ANTIHUBS])
        return {"skewness": rows[rows["measure"] == SKEWNESS], "anti-hubs, %": antihubs}


def _average(tasks: Sequence[tuple[dict[str, Linear], Row]]) -> tuple[dict[str, Linear], Row]:
    return averaged([measured for measured, _ in tasks]), {"tied": 0.0, "zero": 0}
