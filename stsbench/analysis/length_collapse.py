"""Length collapse: do longer sentences look more alike regardless of their meaning? (Zhou et al. 2025, ACL)"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.analysis.base import OfVectors, Row
from stsbench.analysis.inputs import BINS, LENGTH, Answer, Bins, ScoredVectors, bins_from, sides, with_overall
from stsbench.base.errors import UserError
from stsbench.records.kinds import ALL_TASKS
from stsbench.render.table import Table, Tables, intervals_of, note_of, with_intervals
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.influence import Floats, Linear
from stsbench.statistics.neighbours import zero_rows

EDGES = {
    "words": (0, 6, 9, 12, 16, 21, 31),
    "subwords": (0, 8, 11, 14, 19, 25, 37),
    "characters": (0, 30, 45, 60, 80, 105, 155),
}
"""The lower ends of the default bins of sentence lengths, by unit."""

COSINE, NORM, RISE = "cosine", "norm", "rise"

_FEWEST = 10  # The least number of sentences in the first and the last bin of the rise.


class LengthCollapse(OfVectors):
    """Measure length collapse: do longer sentences look more alike regardless of their meaning?

    The mean cosine of unrelated sentences of similar length, and the norm of the vectors, by sentence length.

    Returns:
        One row per model, task, measure and group (a bin of lengths), with `sentences`, `value`, `low` and `high`:
        `cosine`, the mean over all pairs of distinct sentences of the bin that no chain of scored pairs links; the
        mean `norm` of the vectors; and `rise`, the cosine of the last bin minus that of the first, among bins with
        at least 10 sentences. `all tasks` are the sentences of all tasks together. `zero` vectors are left out.

    >>> from stsbench import length_collapse
    >>> collapse = length_collapse(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], tasks=["sample"])
    >>> collapse.frame.loc[collapse.frame["measure"] == "cosine", "group"].tolist()[:3]
    ['0-5', '6-8', '9-11']
    """

    answer = Answer("How much closer are long texts?", rows={"measure": RISE})
    length = LENGTH
    bins = BINS

    def measure(self, model: str, given: Sequence[ScoredVectors]) -> Iterator[Row]:
        bins = bins_from(self.bins or EDGES[self.length])
        tasks = {task.task: [task.ids, task.vectors, _lengths(task, self.length), task.chains] for task in given}
        for name, columns in with_overall(tasks, _together, ALL_TASKS).items():
            rows = list(self._measured(columns, bins))
            if all(pd.isna(row["value"]) for row in rows if row["measure"] == COSINE):
                raise UserError(
                    f"{name} has no two unrelated sentences of similar length with nonzero vectors of {model}: "
                    "choose larger tasks with --tasks, or wider bins with --bins."
                )
            yield from ({"task": name, "unit": self.length} | row for row in rows)

    def _measured(self, columns: Sequence[NDArray[Any]], bins: Bins) -> Iterator[Row]:
        """Yields the bins' cosines and norms, and the rise, of sentences: ids, vectors, lengths and chains."""
        is_zero = zero_rows(columns[1])
        _, vectors, lengths, chains = (column[~is_zero] for column in columns)
        zero = columns[2][is_zero]
        self.estimates.block("", Sharing.of(chains))
        cosines: dict[str, Linear] = {}
        for name, (first, last) in bins.items():
            inside = (first <= lengths) & (lengths <= last)
            count, in_bin = int(inside.sum()), vectors[inside].astype(np.float64)
            norms = np.linalg.norm(in_bin, axis=1)
            norm = float(norms.mean()) if count else np.nan
            about = {"group": name, "sentences": count, "zero": int(((first <= zero) & (zero <= last)).sum())}
            measured = {
                COSINE: unrelated_cosine(in_bin / norms[:, np.newaxis], chains[inside]),
                NORM: (norm, (norms - norm) / max(count, 1)),
            }
            for measure, (value, terms_inside) in measured.items():
                terms = np.zeros(len(inside))
                terms[inside] = terms_inside
                estimate = Linear(value, {"": terms})
                yield about | {"measure": measure} | self.estimates.limits(estimate, count)
                if measure == COSINE and count >= _FEWEST and not np.isnan(value):
                    cosines[name] = estimate
        if len(cosines) > 1:
            shortest, *_, longest = cosines
            about = {"group": f"{longest} less {shortest}", "sentences": len(vectors), "zero": 0}
            yield about | {"measure": RISE} | self.estimates.limits(cosines[longest] - cosines[shortest])

    def table(self) -> Tables:
        rows, rises = self.headline, self.frame[self.frame["measure"] == RISE]
        bins = with_intervals(rows[rows["measure"] != RISE], ["model", "group", "sentences"], digits=3)
        bins = bins.rename(columns={"group": self.length}).astype({"sentences": "Int64"})
        rise = rises[["model", "task", "group", "value"]].assign(interval=intervals_of(rises, 3))
        rise = rise.rename(columns={"group": "bins", "value": "rise"})
        caption = f"Mean cosine of unrelated sentences, and norm of the vectors, by length in {self.length}"
        rising = "The rise of the cosine from the shortest sentences to the longest"
        return Tables([Table(bins, caption, 3, notes=self.notes), Table(rise, rising, 3)])

    @property
    def place_label(self) -> str:  # type: ignore[override]
        return f"length of both ({self.length})"

    @property
    def notes(self) -> tuple[str, ...]:
        subjects = "Longer sentences may also be about fewer subjects: compare models on the same sentences."
        zero = self.headline[self.headline["measure"] == NORM].groupby("model", sort=False)["zero"].sum()
        return (subjects, *note_of("Zero vectors left out", zero[zero > 0]))

    def panels(self) -> Mapping[str, pd.DataFrame]:
        rows = self.headline[self.headline["measure"] == COSINE].rename(columns={"group": "place"})
        return {"mean cosine of unrelated": rows}


def _lengths(task: ScoredVectors, unit: str) -> Floats:
    lengths = np.empty(len(task.vectors))
    lengths[task.left], lengths[task.right] = sides(task.pairs, unit)
    return lengths


def _together(tasks: Sequence[Sequence[NDArray[Any]]]) -> list[NDArray[Any]]:
    """Returns the columns of the distinct sentences of several tasks, of which the first are ids."""
    columns = [np.concatenate(parts) for parts in zip(*tasks, strict=True)]
    _, first = np.unique(columns[0], return_index=True)
    return [column[first] for column in columns]


def unrelated_cosine(units: NDArray[np.float64], groups: NDArray[np.intp]) -> tuple[float, NDArray[np.float64]]:
    """Returns the mean cosine of all pairs of vectors in different groups, and the terms of the vectors.

    The products of all ordered pairs sum to the squared length of the sum of the vectors, those in a group to that
    of the group's sum. `units` have the length 1. For one group alone the mean is NaN; the terms sum to 0.

    >>> round(unrelated_cosine(np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]]), np.array([0, 0, 1]))[0], 12)
    0.4
    """
    if not len(units):
        return float("nan"), np.empty(0)
    _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    of_groups = np.add.reduceat(units[np.argsort(codes, kind="stable")], starts, axis=0)
    products = units @ of_groups.sum(axis=0) - np.einsum("ij,ij->i", units, of_groups[codes])
    others = len(units) - sizes[codes]
    if not others.any():
        return float("nan"), np.full(len(units), np.nan)
    mean = float(products.sum() / others.sum())
    return mean, 2 * (products - mean * others) / others.sum()
