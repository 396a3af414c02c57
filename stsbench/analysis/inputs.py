"""The inputs of analyses: vectors of sentences, from the cache or from the model."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress
from stsbench.data.sentences import sentences_in
from stsbench.data.shared import FOLDED, SENTENCES
from stsbench.data.tables import StsData
from stsbench.records.record import RunRecord
from stsbench.scoring.subjects import ScoredTask, Subject, Wanted, named_subjects, scored_tasks, vectors_of
from stsbench.scoring.tasks import read_pairs_of
from stsbench.scoring.texts import texts_of
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.neighbours import directions
from stsbench.statistics.similarity import zero_rows

Paths = Sequence[str | Path]
Read = TypeVar("Read")

_SAME = 1e-9
"""Directions that differ by no more are equal."""

_shared: ContextVar[dict[str, Any] | None] = ContextVar("_shared", default=None)


@contextmanager
def sharing() -> Iterator[None]:
    """Reads tasks and vectors once for all analyses of the same subjects inside."""
    token = _shared.set({})
    try:
        yield
    finally:
        _shared.reset(token)


def _read_once(read: Callable[[], Read], *key: Any) -> Read:
    """Returns what was read under a key inside `sharing`, or reads it."""
    known = _shared.get()
    if known is None:
        return read()
    if repr(key) not in known:
        known[repr(key)] = read()
    result: Read = known[repr(key)]
    return result


def analysable(runs: Wanted | Sequence[Wanted] | None) -> dict[str, Subject]:
    """Returns records and models by their names in tables and figures; None stands for the packaged model.

    Raises:
        UserError: if a record was imported.
    """
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


def task_vectors(
    subjects: Mapping[str, Subject],
    task: str | None,
    split: str | None,
    text: str,
    *,
    data_dirs: Paths,
    progress: Progress,
) -> tuple[StsData, dict[str, PairVectors]]:
    """Returns the pairs of a task, and the vectors of their sentences by model."""

    def read() -> tuple[StsData, dict[str, PairVectors]]:
        data = read_pairs_of(task, split, text, data_dirs)
        sentences, gold = sentences_in(data), data.pairs["gold"].to_numpy(float)
        texts, _ = pd.factorize(np.array(sentences, dtype=object))
        return data, {
            name: PairVectors(*vectors_of(subject, sentences, progress), gold, texts)
            for name, subject in subjects.items()
        }

    # Callers keep the subjects alive, so ids are unique.
    return _read_once(read, "pairs", *map(id, subjects.values()), task, split, text, list(data_dirs))


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

    def require_directions(self, model: str) -> None:
        """Raises a UserError if all vectors have the same direction."""
        vectors = self.vectors[self.usable]
        if not len(vectors):
            raise UserError(f"{model} gives every sentence of {self.task} a zero vector.")
        units = directions(vectors).units
        if (np.abs(units - units[0]) < _SAME).all():
            raise UserError(f"{model} gives all {len(units)} sentences of {self.task} one direction.")

    def dependent(self, inside: NDArray[np.bool_]) -> pd.DataFrame:
        """Returns some sentences for `Estimates.block`: those of a chain depend on each other."""
        return pd.DataFrame(dict.fromkeys((*SENTENCES, *FOLDED), self.chains[inside]))


def scored_sentences(
    name: str,
    subject: Subject,
    tasks: Sequence[str] = (),
    *,
    data: Paths = (),
    data_dirs: Paths = (),
    progress: Progress,
) -> tuple[RunRecord, list[ScoredTask], dict[int, str]]:
    """Returns the record of a model, its scored tasks, and the texts of their distinct sentences by id.

    Args:
        name: the model's name, for messages.
        subject: the record or model.
        tasks: their names; by default all of a record, and the seven STS tasks or the sample for a model.
        data: files with the sentences of your own pairs, as records hold only ids of sentences.
        data_dirs: folders to look for the tasks' data in.
        progress: called with the progress.
    """

    def read() -> tuple[RunRecord, list[ScoredTask], dict[int, str]]:
        record, scored = scored_tasks(name, subject, tasks, data_dirs=data_dirs, progress=progress)
        ids = np.unique(np.concatenate([task.pairs[side] for task in scored for side in SENTENCES]))
        return record, scored, texts_of([record], ids.tolist(), data, data_dirs)

    return _read_once(read, "sentences", id(subject), list(tasks), list(data), list(data_dirs))


def scored_vectors(
    subjects: Mapping[str, Subject],
    tasks: Sequence[str] = (),
    *,
    data: Paths = (),
    data_dirs: Paths = (),
    progress: Progress,
) -> dict[str, list[ScoredVectors]]:
    """Returns the vectors of the sentences of each model's scored tasks; see `scored_sentences`."""

    def read() -> dict[str, list[ScoredVectors]]:
        models: dict[str, list[ScoredVectors]] = {}
        for name, subject in subjects.items():
            _, scored, texts = scored_sentences(
                name, subject, tasks, data=data, data_dirs=data_dirs, progress=progress
            )
            sides = [np.concatenate([task.pairs[side] for task in scored]) for side in FOLDED]
            ends = np.cumsum([len(task.pairs) for task in scored])[:-1]
            models[name] = []
            for task, chains in zip(scored, np.split(Sharing.of(*sides).components, ends), strict=True):
                ids = np.concatenate([task.pairs[side] for side in SENTENCES])
                # Whitening is fitted on the sentences of one task, as often as they occur.
                sentences = [texts[number] for number in ids.tolist()]
                vectors, rows = vectors_of(subject, sentences, progress)
                distinct, first, places = np.unique(ids, return_index=True, return_inverse=True)
                left, right = np.split(places, 2)
                of_sentences = np.empty(len(distinct), dtype=np.intp)
                of_sentences[left] = of_sentences[right] = chains
                of_task = ScoredVectors(
                    task.task, task.pairs, vectors[rows[first]], left, right, distinct, of_sentences
                )
                models[name].append(of_task)
        return models

    return _read_once(read, "vectors", *map(id, subjects.values()), list(tasks), list(data), list(data_dirs))
