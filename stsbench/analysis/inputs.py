"""How analyses get their input: vectors of sentences, from the cache or from the model."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.data.sentences import sentences_in
from stsbench.data.shared import FOLDED, SENTENCES, sentence_ids
from stsbench.data.tables import PlainTable, StsData
from stsbench.data.views import split_and_view
from stsbench.encoders.use import Use
from stsbench.records.labels import distinct_labels
from stsbench.records.record import RunRecord
from stsbench.scoring.subjects import (
    SentenceVectors,
    Subject,
    Wanted,
    named_subjects,
    pair_tables,
    vectors_of,
)
from stsbench.scoring.tasks import read_pairs_of
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.neighbours import directions
from stsbench.statistics.similarity import zero_rows

if TYPE_CHECKING:
    import pandas as pd

_SAME = 1e-9
"""Directions that differ by no more are one."""


class TaskVectors(NamedTuple):
    """The n pairs of a task, and by model the vectors of their sentences: n first sides, then n second sides."""

    data: StsData
    models: dict[str, SentenceVectors]


def analysable(
    runs: Wanted | Sequence[Wanted] | None, use: Use, checkpoints: Sequence[Path] = ()
) -> dict[str, Subject]:
    """Return what is to be analysed, by the names that tables and figures give it; refuse imported records.

    The checkpoints are more models, which come after `runs`; by default the packaged model is analysed.
    """
    if checkpoints:
        named: list[Any] = list(runs) if isinstance(runs, list | tuple) else [] if runs is None else [runs]
        runs = [*named, *checkpoints]
    subjects = named_subjects(runs, use)
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
        pairs: their rows of the pair table.
        vectors: (m, d), a row for each distinct sentence; in an order that no order of the pairs changes.
        left: (n,) the row of each pair's first sentence.
        right: (n,) that of the second.
        ids: (m,) numbers of the sentences (`data.shared.sentence_ids`), rising.
        chains: (m,) which chain of shared sentences each stands in, over all tasks of the model.
    """

    task: str
    pairs: "pd.DataFrame"
    vectors: NDArray[np.floating[Any]]
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    ids: NDArray[np.uint64]
    chains: NDArray[np.intp]

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

    def dependent(self, inside: NDArray[np.bool_]) -> PlainTable:
        """Return which sentences inside depend on each other, as `Estimates.block` takes it: those of a chain."""
        return PlainTable(dict.fromkeys((*SENTENCES, *FOLDED), self.chains[inside]))


def scored_vectors(
    subjects: Mapping[str, Subject],
    tasks: Sequence[str] = (),
    *,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress,
) -> dict[str, list[ScoredVectors]]:
    """Return by model the vectors of the sentences of the tasks that it was scored on, which are `pair_tables`'.

    Raises:
        UserError: if a run lacks a task, or its sentences are not here.
    """
    key = ("scored", *map(id, subjects.values()), tuple(tasks), tuple(map(str, data_dirs)))
    known = _known()
    if key not in known:
        known[key] = _all_scored(subjects, tasks, data_dirs, progress)
    scored: dict[str, list[ScoredVectors]] = known[key]
    return scored


def _all_scored(
    subjects: Mapping[str, Subject], tasks: Sequence[str], data_dirs: Sequence[str | Path], progress: Progress
) -> dict[str, list[ScoredVectors]]:
    models = {}
    for name, table in pair_tables(subjects, tasks, data_dirs=data_dirs, progress=progress).items():
        chains = Sharing.of(*(table[column].to_numpy() for column in FOLDED)).components
        keys = list(zip(table["task"], table["split"], table["text"], strict=True))
        labels = np.array(distinct_labels(keys))
        models[name] = [
            _scored(
                {name: subjects[name]}, label, table[labels == label], chains[labels == label], data_dirs=data_dirs
            )
            for label in dict.fromkeys(labels.tolist())
        ]
    return models


def _scored(
    subject: Mapping[str, Subject],
    label: str,
    pairs: "pd.DataFrame",
    chains: NDArray[np.intp],
    *,
    data_dirs: Sequence[str | Path],
) -> ScoredVectors:
    """Return one task of one model, whose pairs stand in some chains."""
    (name,) = subject
    first = pairs.iloc[0]
    if first["text"] == "user":
        raise UserError(
            f"{label} is a file of {name}'s own pairs, of which a record holds numbers in place of sentences: "
            "choose tasks of the catalogue with --tasks, or name the model with --model."
        )
    task = task_vectors(
        subject,
        first["task"],
        split_and_view(first["split"])[0],
        first["text"],
        data_dirs=data_dirs,
        progress=silent,
    )
    vectors, rows = task.models[name]
    # A text counts once, however often it occurs; two texts that a model reads alike are two.
    known, places = np.unique(sentence_ids(sentences_in(task.data)), return_index=True)
    ids, where = np.unique(np.concatenate([pairs[side] for side in SENTENCES]), return_inverse=True)
    if not np.isin(ids, known).all():
        raise UserError(f"the sentences of {label} that {name} was measured on are not those that are here.")
    left, right = np.split(where, 2)
    of_sentences = np.empty(len(ids), dtype=np.intp)
    of_sentences[left] = of_sentences[right] = chains
    of_ids = vectors[rows[places[np.searchsorted(known, ids)]]]
    return ScoredVectors(label, pairs, of_ids, left, right, ids, of_sentences)


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
