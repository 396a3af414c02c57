"""The model of a run record, as an encoder: its vectors from the cache, itself only where they are not there."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.data.benchmarks import load_sts
from stsbench.data.catalogue import data_set, data_sets
from stsbench.data.locate import DataNotFoundError
from stsbench.data.tables import StsData
from stsbench.encoders.load import load_checkpoint as load
from stsbench.encoders.plan import embed
from stsbench.encoders.postprocess import normalize, truncate, whiten
from stsbench.encoders.protocol import Encoder, FloatMatrix, Identity, Tokenized, TokenSequence
from stsbench.records.parts import ModelPart
from stsbench.records.record import RunRecord
from stsbench.scoring.tasks import SAMPLE, STS_TASKS

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class RecordedModel:
    """Stands for the model that a run was made with.

    A record names everything that a vector depends on, so the cache is asked without the model. Only for a
    sentence that was never encoded is the model loaded by its name, and held against the record's hash of its
    weights.

    Attributes:
        model: what the record says of it.
    """

    model: ModelPart
    notes: tuple[str, ...] = ()
    _loaded: Encoder | None = None

    @cached_property
    def identity(self) -> Identity:
        """What its vectors depend on."""
        return Identity(**{field.name: getattr(self.model, field.name) for field in fields(Identity)})

    @property
    def token_budget(self) -> int:
        """Padded tokens of one forward pass, as the model itself has it."""
        return 1 if self._loaded is None else self._loaded.token_budget

    def prepare(self, *, weights: bool) -> None:
        """Load the model.

        Raises:
            UserError: if it is not there, or is not as it was when it was measured.
        """
        self._itself.prepare(weights=weights)

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        """Return what the model reads of each text."""
        return self._itself.tokenize(texts)

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        """Return the model's vectors."""
        return self._itself.forward(sequences, poolings)

    @property
    def _itself(self) -> Encoder:
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded

    def _load(self) -> Encoder:
        model, command = self.model, f"stsbench run --model {self.model.name}"
        # A function can be imported again if it has a place of its own: `<lambda>` and `<locals>` have none.
        nameless = model.kind == "function" and (":" not in model.name or "<" in model.name)
        if model.kind in {"vectors", "similarities"} or nameless:
            what = {"vectors": "saved vectors", "similarities": "saved similarities"}.get(model.kind, "a callable")
            raise UserError(
                f"some of these sentences have no vector of {model.name} in the cache, and the record of {what} "
                "cannot make any: measure a checkpoint with `stsbench run --model`, or pass the encoder in Python."
            )
        # What is a choice only for a checkpoint is not said to a file of word vectors or to a function.
        chosen = model.kind not in {"static", "function"}
        try:
            encoder = load(
                model.name,
                pooling=model.pooling if model.kind in {"transformer", "sentence-transformers"} else "auto",
                max_length=model.max_length if chosen else None,
                prompt=model.prompt if chosen else None,
                precision=model.precision if chosen else "fp32",
                device=model.device if chosen else "auto",
                revision=model.revision if chosen else None,
            )
            found = encoder.identity
        except UserError as error:
            raise UserError(
                f"some of these sentences have no vector of {model.name} in the cache, and it cannot be loaded: "
                f"{str(error).rstrip('.')}; where it is, `{command}` measures it again."
            ) from error
        # What it encodes goes into the cache as the run's own vectors: all that they depend on has to agree.
        for field in fields(Identity):
            here, recorded = (str(getattr(identity, field.name))[:12] for identity in (found, self.identity))
            if field.name not in {"name", "revision", "normalize"} and here != recorded:
                raise UserError(
                    f"{model.name} is not as it was when the run was made: its {field.name} is {here}, "
                    f"the record's {recorded}; measure it again with `{command}`."
                )
        return encoder


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
