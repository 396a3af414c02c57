"""How analyses get their input: vectors of sentences, from the cache or from the model."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress
from stsbench.data.sentences import sentences_in
from stsbench.data.shared import FOLDED, SENTENCES
from stsbench.data.tables import StsData
from stsbench.records.record import RunRecord
from stsbench.scoring.subjects import (
    ScoredTask,
    SentenceVectors,
    Subject,
    Wanted,
    named_subjects,
    scored_tasks,
    vectors_of,
)
from stsbench.scoring.tasks import read_pairs_of
from stsbench.scoring.texts import texts_of
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.neighbours import directions
from stsbench.statistics.similarity import zero_rows

_SAME = 1e-9
"""Directions that differ by no more are one."""


class TaskVectors(NamedTuple):
    """The n pairs of a task, and by model the vectors of their sentences: n first sides, then n second sides."""

    data: StsData
    models: dict[str, SentenceVectors]


def analysable(runs: Wanted | Sequence[Wanted] | None, further: Sequence[Wanted] = ()) -> dict[str, Subject]:
    """Returns what to analyse by its name in tables and figures; refuses imported records.

    Args:
        runs: records and models; default without `further`: the packaged model.
        further: models that follow them.
    """
    if further:
        named: list[Any] = list(runs) if isinstance(runs, list | tuple) else [] if runs is None else [runs]
        runs = [*named, *further]
    subjects = named_subjects(runs)
    for name, subject in subjects.items():
        if isinstance(subject, RunRecord) and subject.is_imported:
            raise UserError(
                f"{name} was imported, with scores alone: there are no pairs and no vectors to analyse; measure "
                "the model with `stsbench run`."
            )
    return subjects


def task_vectors(
    subjects: Mapping[str, Subject],
    task: str | None,
    split: str | None,
    text: str,
    *,
    data_dirs: Sequence[str | Path],
    progress: Progress,
) -> TaskVectors:
    """Return the vectors of a task's sentences; `task` and what follows are as in `geometry`."""
    # Whoever shares holds the subjects: none is gone whose number another could have.
    key = (tuple(map(id, subjects.values())), task, split, text, tuple(map(str, data_dirs)))
    known = _known()
    if key not in known:
        data = read_pairs_of(task, split, text, data_dirs)
        sentences = sentences_in(data)
        vectors = {
            name: vectors_of(subject, sentences, progress, data_dirs=data_dirs)
            for name, subject in subjects.items()
        }
        known[key] = TaskVectors(data, vectors)
    found: TaskVectors = known[key]
    return found


@dataclass(frozen=True, eq=False)
class ScoredVectors:
    """The n pairs of a task as a model was scored on them, and the vectors of their m distinct sentences.

    Attributes:
        task: its name, with split and text only where those tell two apart.
        pairs: their rows of the items table.
        vectors: (m, d), a row for each distinct sentence; in an order that no order of the pairs changes.
        left: (n,) the row of each pair's first sentence.
        right: (n,) that of the second.
        ids: (m,) numbers of the sentences (`data.shared.sentence_ids`), rising.
        chains: (m,) which chain of shared sentences each stands in, over all tasks of the model.
    """

    task: str
    pairs: pd.DataFrame
    vectors: NDArray[np.floating[Any]]
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    ids: NDArray[np.uint64]
    chains: NDArray[np.intp]

    @classmethod
    def of(cls, task: ScoredTask, vectors: NDArray[np.floating[Any]], chains: NDArray[np.intp]) -> "ScoredVectors":
        """Return a task with the vectors of its sentences, by their rising numbers, and its pairs' chains."""
        ids, where = np.unique(np.concatenate([task.pairs[side] for side in SENTENCES]), return_inverse=True)
        left, right = np.split(where, 2)
        of_sentences = np.empty(len(ids), dtype=np.intp)
        of_sentences[left] = of_sentences[right] = chains
        return cls(task.task, task.pairs, vectors, left, right, ids, of_sentences)

    @property
    def usable(self) -> NDArray[np.bool_]:
        """(m,) whether a sentence has a vector that is not zero."""
        return ~zero_rows(self.vectors)

    def require_directions(self, model: str) -> None:
        """Refuse vectors that tell no two sentences apart."""
        vectors = self.vectors[self.usable]
        if not len(vectors):
            raise UserError(
                f"{model} gives every sentence of {self.task} a zero vector: nothing is known of them."
            )
        units = directions(vectors).units
        if (np.abs(units - units[0]) < _SAME).all():
            raise UserError(
                f"{model} gives all {len(units)} sentences of {self.task} one direction: none can be told apart."
            )

    def dependent(self, inside: NDArray[np.bool_]) -> pd.DataFrame:
        """Return which sentences inside depend on each other, as `Estimates.block` takes it: those of a chain."""
        return pd.DataFrame(dict.fromkeys((*SENTENCES, *FOLDED), self.chains[inside]))


class ScoredSentences(NamedTuple):
    """The tasks that a model was scored on, and the texts of their distinct sentences by their numbers."""

    record: RunRecord
    tasks: list[ScoredTask]
    texts: dict[int, str]


def scored_sentences(
    name: str,
    subject: Subject,
    tasks: Sequence[str] = (),
    *,
    data: Sequence[str | Path] = (),
    data_dirs: Sequence[str | Path] = (),
    progress: Progress,
) -> ScoredSentences:
    """Return the tasks that a model was scored on with their sentences, which a record holds as numbers alone.

    Args:
        name: the model's, for messages.
        subject: the record or model.
        tasks: their names; by default all of a record, the seven STS tasks or the sample of a model.
        data: files with the sentences of a person's own pairs, which are in no catalogue.
        data_dirs: folders to look for the tasks' data in.
        progress: told how far encoding is.

    Raises:
        UserError: if a run lacks a task, or its sentences are not here.
    """
    known = _known()
    key = ("sentences", id(subject), *(tuple(map(str, each)) for each in (tasks, data, data_dirs)))
    if key not in known:
        record, scored = scored_tasks(name, subject, tasks, data_dirs=data_dirs, progress=progress)
        numbers = np.unique(np.concatenate([task.pairs[side] for task in scored for side in SENTENCES]))
        known[key] = ScoredSentences(record, scored, texts_of([record], numbers.tolist(), data, data_dirs))
    found: ScoredSentences = known[key]
    return found


def scored_vectors(
    subjects: Mapping[str, Subject],
    tasks: Sequence[str] = (),
    *,
    data: Sequence[str | Path] = (),
    data_dirs: Sequence[str | Path] = (),
    progress: Progress,
) -> dict[str, list[ScoredVectors]]:
    """Return by model the vectors of the sentences of the tasks that it was scored on.

    Args and errors are as of `scored_sentences`.
    """
    key = ("scored", *map(id, subjects.values()), *(tuple(map(str, each)) for each in (tasks, data, data_dirs)))
    known = _known()
    if key not in known:
        known[key] = {
            name: _scored(
                subject,
                scored_sentences(name, subject, tasks, data=data, data_dirs=data_dirs, progress=progress),
                data_dirs,
                progress,
            )
            for name, subject in subjects.items()
        }
    scored: dict[str, list[ScoredVectors]] = known[key]
    return scored


def _scored(
    subject: Subject, sentences: ScoredSentences, data_dirs: Sequence[str | Path], progress: Progress
) -> list[ScoredVectors]:
    record, tasks, texts = sentences
    sides = [np.concatenate([task.pairs[side] for task in tasks]) for side in FOLDED]
    ends = np.cumsum([len(task.pairs) for task in tasks])[:-1]
    chains = np.split(Sharing.of(*sides).components, ends)
    # What is whitened is so by the sentences of one task; of the rest each is looked up once.
    whitened = record.model.use.whiten is not None
    groups = [[task] for task in tasks] if whitened else [tasks]
    vectors: list[NDArray[np.floating[Any]]] = []
    for group in groups:
        ids = [np.concatenate([task.pairs[side] for side in SENTENCES]) for task in group]
        asked = ids[0] if whitened else np.unique(np.concatenate(ids))
        found = vectors_of(subject, [texts[number] for number in asked.tolist()], progress, data_dirs=data_dirs)
        numbers, places = np.unique(asked, return_index=True)
        for of_task in ids:
            rows = found.rows[places[np.searchsorted(numbers, np.unique(of_task))]]
            vectors.append(found.vectors[rows])
    parts = zip(tasks, vectors, chains, strict=True)
    return [ScoredVectors.of(task, of_sentences, of_pairs) for task, of_sentences, of_pairs in parts]


_shared: ContextVar[dict[Hashable, Any] | None] = ContextVar("_shared", default=None)


def _known() -> dict[Hashable, Any]:
    """Return what was read inside `sharing`; outside it nothing, which nobody keeps."""
    shared = _shared.get()
    return {} if shared is None else shared


@contextmanager
def sharing() -> Iterator[None]:
    """Read tasks, and the vectors of their sentences, once for all analyses inside of the same subjects."""
    token = _shared.set({})
    try:
        yield
    finally:
        _shared.reset(token)
