"""The inputs of analyses: vectors of sentences, from the cache or from the model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.data.shared import SENTENCES
from stsbench.records.record import RunRecord
from stsbench.scoring.subjects import ScoredTask, SentenceVectors, Subject, Wanted, named_subjects
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.neighbours import directions
from stsbench.statistics.similarity import zero_rows

_SAME = 1e-9
"""Directions that differ by no more are equal."""


def analysable(runs: Wanted | Sequence[Wanted] | None) -> dict[str, Subject]:
    """Returns records and models by their names in tables; a UserError if a record was imported."""
    subjects = named_subjects(runs)
    for name, subject in subjects.items():
        if isinstance(subject, RunRecord) and subject.is_imported:
            raise UserError(
                f"{name} was imported and has scores only, but analyses need pairs or vectors; measure the model "
                "with `stsbench run`."
            )
    return subjects


class PairVectors(NamedTuple):
    """The n pairs of a task with the vectors of their sentences.

    Attributes:
        vectors: (m, d), one row per distinct token sequence.
        rows: (2n,) the row of each sentence: first sides, then second sides.
        gold: (n,) gold scores.
        texts: (2n,) equal numbers for equal texts, in the order in which texts first occur.
    """

    vectors: NDArray[np.floating[Any]]
    rows: NDArray[np.integer[Any]]
    gold: NDArray[np.float64]
    texts: NDArray[np.integer[Any]]

    @property
    def left(self) -> NDArray[np.integer[Any]]:
        return self.rows[: len(self.gold)]

    @property
    def right(self) -> NDArray[np.integer[Any]]:
        return self.rows[len(self.gold) :]


@dataclass(frozen=True, eq=False)
class ScoredVectors:
    """The n scored pairs of a task, and the vectors of their m distinct sentences.

    Attributes:
        task: its label.
        pairs: their rows of the items table.
        vectors: (m, d), one row per distinct sentence.
        left: (n,) the row of each pair's first sentence.
        right: (n,) the row of each pair's second sentence.
        ids: (m,) rising ids of the sentences (`data.shared.sentence_ids`).
        chains: (m,) the chain of shared sentences that each belongs to, over all tasks of the model.
    """

    task: str
    pairs: pd.DataFrame
    vectors: NDArray[np.floating[Any]]
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    ids: NDArray[np.uint64]
    chains: NDArray[np.intp]

    @property
    def usable(self) -> NDArray[np.bool_]:
        """(m,) whether a sentence has a nonzero vector."""
        return ~zero_rows(self.vectors)

    @classmethod
    def of(cls, task: ScoredTask, embedded: SentenceVectors, chains: NDArray[np.intp]) -> "ScoredVectors":
        """Joins a task, the vectors of its first and second sentences, and the chains of its pairs."""
        ids = np.concatenate([task.pairs[side] for side in SENTENCES])
        distinct, first, places = np.unique(ids, return_index=True, return_inverse=True)
        left, right = np.split(places, 2)
        of_sentences = np.empty(len(distinct), dtype=np.intp)
        of_sentences[left] = of_sentences[right] = chains
        vectors = embedded.vectors[embedded.rows[first]]
        return cls(task.task, task.pairs, vectors, left, right, distinct, of_sentences)

    def require_directions(self, model: str) -> None:
        """Raises a UserError if all vectors have the same direction."""
        vectors = self.vectors[self.usable]
        if not len(vectors):
            raise UserError(f"{model} gives every sentence of {self.task} a zero vector.")
        units = directions(vectors).units
        if (np.abs(units - units[0]) < _SAME).all():
            raise UserError(f"{model} gives all {len(units)} sentences of {self.task} one direction.")

    def sharing(self, inside: NDArray[np.bool_]) -> Sharing:
        """Returns the dependence of some sentences: those of a chain depend on each other."""
        return Sharing.of(self.chains[inside])
