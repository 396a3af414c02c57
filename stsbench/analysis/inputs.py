"""The inputs of analyses: vectors of sentences, from the cache or from the model."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
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

_shared: ContextVar[dict[Hashable, Any] | None] = ContextVar("_shared", default=None)


@contextmanager
def sharing() -> Iterator[None]:
    """Reads tasks and vectors once for all analyses of the same subjects inside."""
    token = _shared.set({})
    try:
        yield
    finally:
        _shared.reset(token)


def _shared_by(key: Hashable, read: Callable[[], Read]) -> Read:
    """Returns what was read under a key inside `sharing`, or reads it."""
    known = _shared.get()
    if known is None:
        return read()
    if key not in known:
        known[key] = read()
    result: Read = known[key]
    return result


def _key(*parts: Sequence[Any]) -> Hashable:
    return tuple(tuple(map(str, part)) for part in parts)


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
                "with "
                "`stsbench run`."
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
        """(n,) the row of each first sentence."""
        return self.rows[: len(self.gold)]

    @property
    def right(self) -> NDArray[np.integer[Any]]:
        """(n,) the row of each second sentence."""
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
    return _shared_by((*map(id, subjects.values()), task, split, text, _key(data_dirs)), read)


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

    @classmethod
    def of(cls, task: ScoredTask, vectors: NDArray[np.floating[Any]], chains: NDArray[np.intp]) -> "ScoredVectors":
        """Joins a task with the vectors of its sentences by rising id, and with the chains of its pairs."""
        ids, where = np.unique(np.concatenate([task.pairs[side] for side in SENTENCES]), return_inverse=True)
        left, right = np.split(where, 2)
        of_sentences = np.empty(len(ids), dtype=np.intp)
        of_sentences[left] = of_sentences[right] = chains
        return cls(task.task, task.pairs, vectors, left, right, ids, of_sentences)

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


class ScoredSentences(NamedTuple):
    """The scored tasks of a model, and the texts of their distinct sentences by id."""

    record: RunRecord
    tasks: list[ScoredTask]
    texts: dict[int, str]


def scored_sentences(
    name: str,
    subject: Subject,
    tasks: Sequence[str] = (),
    *,
    data: Paths = (),
    data_dirs: Paths = (),
    progress: Progress,
) -> ScoredSentences:
    """Returns the scored tasks of a model with their sentences; records hold only ids of sentences.

    Args:
        name: the model's name, for messages.
        subject: the record or model.
        tasks: their names; by default all of a record, and the seven STS tasks or the sample for a model.
        data: files with the sentences of your own pairs.
        data_dirs: folders to look for the tasks' data in.
        progress: called with the progress.

    Raises:
        UserError: if a run lacks a task, or a sentence is missing.
    """

    def read() -> ScoredSentences:
        record, scored = scored_tasks(name, subject, tasks, data_dirs=data_dirs, progress=progress)
        ids = np.unique(np.concatenate([task.pairs[side] for task in scored for side in SENTENCES]))
        return ScoredSentences(record, scored, texts_of([record], ids.tolist(), data, data_dirs))

    return _shared_by(("sentences", id(subject), _key(tasks, data, data_dirs)), read)


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
        models = {}
        for name, subject in subjects.items():
            sentences = scored_sentences(name, subject, tasks, data=data, data_dirs=data_dirs, progress=progress)
            models[name] = _with_vectors(subject, sentences, progress)
        return models

    return _shared_by(("vectors", *map(id, subjects.values()), _key(tasks, data, data_dirs)), read)


def _with_vectors(subject: Subject, sentences: ScoredSentences, progress: Progress) -> list[ScoredVectors]:
    record, tasks, texts = sentences
    sides = [np.concatenate([task.pairs[side] for task in tasks]) for side in FOLDED]
    ends = np.cumsum([len(task.pairs) for task in tasks])[:-1]
    chains = np.split(Sharing.of(*sides).components, ends)
    # Whitening is fitted on the sentences of one task; otherwise each sentence is looked up once.
    is_whitened = record.model.use.whiten is not None
    groups = [[task] for task in tasks] if is_whitened else [tasks]
    vectors: list[NDArray[np.floating[Any]]] = []
    for group in groups:
        ids = [np.concatenate([task.pairs[side] for side in SENTENCES]) for task in group]
        wanted = ids[0] if is_whitened else np.unique(np.concatenate(ids))
        embedded = vectors_of(subject, [texts[number] for number in wanted.tolist()], progress)
        distinct, places = np.unique(wanted, return_index=True)
        for of_task in ids:
            rows = embedded.rows[places[np.searchsorted(distinct, np.unique(of_task))]]
            vectors.append(embedded.vectors[rows])
    parts = zip(tasks, vectors, chains, strict=True)
    return [ScoredVectors.of(task, of_sentences, of_pairs) for task, of_sentences, of_pairs in parts]
