"""What models are analysed on: tasks, the sentences of one task, the vectors of sentences."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.datasets import DataNotFoundError, StsData, data_set, data_sets, load_sts
from stsbench.encoders import Encoder, embed, normalize, truncate, whiten
from stsbench.evaluation.tasks import SAMPLE, STS_TASKS
from stsbench.foundation.errors import UserError
from stsbench.foundation.progress import Progress, silent
from stsbench.records import RunRecord
from stsbench.workflows.recorded import RecordedModel

if TYPE_CHECKING:
    import pandas as pd

STS_B = "STS-B"
"""The task whose sentences the papers look at."""

SAMPLE_USED = "No benchmark data was found, so this is about the SAMPLE that comes with stsbench."


def canonical(task: str) -> str:
    """Return a task's name as the catalogue spells it; a name of a person's own stays as it is."""
    try:
        return data_set(task).task
    except UserError:
        return task


def tasks_here(data_dirs: Sequence[str | Path] = ()) -> list[StsData]:
    """Return the seven STS tasks or, where nobody named a place for them and they are not here, the sample.

    Raises:
        UserError: if they are broken, or not in the place that was named.
    """
    folders = [Path(folder) for folder in data_dirs]
    try:
        return [load_sts(task, data_dirs=folders) for task in STS_TASKS]
    except DataNotFoundError:
        if named_a_place(data_dirs):
            raise
        return [load_sts(SAMPLE, text=SAMPLE)]


def default_tasks(data_dirs: Sequence[str | Path] = ()) -> str:
    """Return what a command measures when it is told no tasks: `sts`, or `sample` where their data is not here.

    Args:
        data_dirs: folders to look for data in, before `STSBENCH_DATA` and the cache.

    Raises:
        UserError: if the data is broken, or not in the place that was named.
    """
    return SAMPLE if tasks_here(data_dirs)[0].task == SAMPLE else "sts"


def named_a_place(data_dirs: Sequence[str | Path] = ()) -> bool:
    """Return whether the person said where data is: then the sample is no substitute for it."""
    return bool(data_dirs or os.environ.get("STSBENCH_DATA"))


def read_pairs_of(
    task: str | None, split: str | None, text: str = "senteval", data_dirs: Sequence[str | Path] = ()
) -> StsData:
    """Read the pairs whose sentences are looked at.

    Args:
        task: by default STS-B or, where nobody named a place for it and it is not here, the sample.
        split: by default all that the task has.
        text: the text variant; the sample has its own alone.
        data_dirs: folders to look for data in.

    Raises:
        UserError: if there is no such task, split or text, or its files are missing or broken.
    """
    folders = [Path(folder) for folder in data_dirs]
    if task is None:
        try:
            return read_pairs_of(STS_B, split, text, data_dirs)
        except DataNotFoundError:
            if named_a_place(data_dirs):
                raise
            return load_sts(SAMPLE, text=SAMPLE)
    entry = data_set(task)
    text = SAMPLE if entry.task == SAMPLE else text
    if split is None and text in entry.texts:
        splits = {part.split for part in entry.texts[text].parts}
        split = "all" if len(splits) > 1 else next(iter(splits))
    return load_sts(entry.task, split or "test", text, folders)


def gold_ranges(pairs: "pd.DataFrame") -> dict[str, tuple[float, float]]:
    """Return the lowest and highest possible gold score of each task of a pair table.

    A catalogued task's annotators had a scale. Of a person's own file only what occurs is known.
    """
    entries = data_sets()
    ranges = {}
    for (task, text), part in pairs.groupby(["task", "text"], sort=False):
        entry = entries.get(str(task))
        known = entry.gold_range if entry and text in entry.texts else None
        ranges[str(task)] = known or (float(part["gold"].min()), float(part["gold"].max()))
    return ranges


class SentenceVectors(NamedTuple):
    """The vectors of some texts: one row per distinct token sequence, and for each text its row."""

    vectors: NDArray[np.floating[Any]]
    rows: NDArray[np.int64]

    def each(self) -> NDArray[np.floating[Any]]:
        """Return one row for each text."""
        return self.vectors[self.rows]


def vectors_of(subject: RunRecord | Encoder, texts: Sequence[str], progress: Progress = silent) -> SentenceVectors:
    """Return the vectors of some texts, from the cache where they are there.

    What a run did to its vectors is done to these: dimensions left out; whitening, on these texts.

    Raises:
        UserError: if a text was never encoded and the model is not here.
    """
    if not isinstance(subject, RunRecord):
        embeddings = embed(subject, texts, progress=progress)
        (vectors,) = embeddings.vectors.values()
        return SentenceVectors(vectors, embeddings.rows)
    model = subject.model
    embeddings = embed(RecordedModel(model), texts, normalize=False, progress=progress)
    (vectors,) = embeddings.vectors.values()
    if model.dimensions is not None:
        vectors = truncate(vectors, model.dimensions)
    if model.normalize:
        vectors = normalize(vectors)
    kept = model.postprocessing.removeprefix("whiten")
    if kept != model.postprocessing:
        return SentenceVectors(whiten(vectors, vectors[embeddings.rows], int(kept or 0) or None), embeddings.rows)
    return SentenceVectors(vectors, embeddings.rows)
