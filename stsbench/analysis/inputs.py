"""How analyses get their input: vectors of sentences, from the cache or from the model."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress
from stsbench.data.sentences import sentences_in
from stsbench.data.tables import StsData
from stsbench.encoders.use import Use
from stsbench.records.record import RunRecord
from stsbench.scoring.subjects import SentenceVectors, Subject, Wanted, named_subjects, vectors_of
from stsbench.scoring.tasks import read_pairs_of


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
    shared = _shared.get()
    known = {} if shared is None else shared
    if key not in known:
        data = read_pairs_of(task, split, text, data_dirs)
        sentences = sentences_in(data)
        vectors = {
            name: vectors_of(subject, sentences, progress, data_dirs=data_dirs)
            for name, subject in subjects.items()
        }
        known[key] = TaskVectors(data, vectors)
    return known[key]


_shared: ContextVar[dict[Hashable, TaskVectors] | None] = ContextVar("_shared", default=None)


@contextmanager
def sharing() -> Iterator[None]:
    """Read a task, and the vectors of its sentences, once for all analyses inside of the same subjects."""
    token = _shared.set({})
    try:
        yield
    finally:
        _shared.reset(token)
