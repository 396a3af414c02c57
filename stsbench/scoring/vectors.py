"""The model of a run record, as an encoder: its vectors from the cache, itself only where they are not there."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.base.words import told_apart
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed
from stsbench.encoders.postprocess import normalize, truncate, whiten
from stsbench.encoders.protocol import Encoder, FloatMatrix, Identity, Tokenized, TokenSequence
from stsbench.encoders.template_files import NO_TEMPLATE
from stsbench.records.parts import ModelPart
from stsbench.records.record import RunRecord

_WITHOUT_MODEL = {
    "vectors": "saved vectors",
    "similarities": "saved similarities",
    "predictions": "MTEB's predictions",
}
"""The kinds of models that nobody can ask for another sentence, and what they are."""


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
        if model.kind in _WITHOUT_MODEL or nameless:
            what = _WITHOUT_MODEL.get(model.kind, "a callable")
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
                prompt=model.prompt if chosen and model.template is None else None,
                template=(model.template or NO_TEMPLATE) if chosen else None,
                precision=model.precision if chosen else "fp32",
                device=model.device if chosen else "auto",
                revision=model.revision if chosen else None,
            )
            identity = encoder.identity
        except UserError as error:
            raise UserError(
                f"some of these sentences have no vector of {model.name} in the cache, and it cannot be loaded: "
                f"{str(error).rstrip('.')}; where it is, `{command}` measures it again."
            ) from error
        # What it encodes goes into the cache as the run's own vectors: all that they depend on has to agree.
        now, then = identity.key(), self.identity.key()
        for field in now:
            if now[field] != then[field]:
                here, recorded = told_apart(str(now[field]), str(then[field]))
                raise UserError(
                    f"{model.name} is not as it was when the run was made: its {field} is {here}, "
                    f"the record's {recorded}; measure it again with `{command}`."
                )
        return encoder


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
    if model.whiten is not None:
        whitened = whiten(vectors, vectors[embeddings.rows], model.whiten or None)
        return SentenceVectors(whitened, embeddings.rows)
    return SentenceVectors(vectors, embeddings.rows)
