"""What an encoder is: token sequences in, one matrix per pooling out."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Not typing's: before Python 3.12 an `isinstance` with it evaluates the properties, and `identity` hashes weights.
from typing_extensions import Protocol, runtime_checkable

from stsbench.base.errors import UserError
from stsbench.encoders.use import Use

FloatMatrix = NDArray[np.float32]

LARGEST, SMALLEST = float(np.finfo(np.float32).max), float(np.finfo(np.float32).tiny)

_APART = {"name", "use", "normalizes"}
"""The fields of an identity that make no other vectors: `Use` knows its own, and the planner normalises behind
the cache."""

WITH_POOLINGS = frozenset({"transformer", "sentence-transformers", "static-embedding", "model2vec"})
"""The kinds of models of which a pooling can be asked."""

TokenSequence = tuple[int, ...] | tuple[str, ...] | str
"""What the forward pass reads of one text: token ids, known words, or the text itself (for a callable)."""


@dataclass(frozen=True)
class Identity:
    """Everything that a sentence vector depends on, apart from the sentence.

    Attributes:
        name: the model as the person named it.
        kind: `transformer`, `sentence-transformers`, `sentence-transformers-library`, `static-embedding`,
            `model2vec`, `static` (word vectors), `function`, `vectors`, `mteb` or `fitted`.
        use: how it is used, with what choices that were left open became: the `revision` is the Hub's commit (None
            where the files did not come from the Hub), `trust_remote_code` says whether there was code to run. How
            vectors are processed afterwards stays as it was asked.
        weights_sha256: hash of the weight file (of several: of their paths and hashes, in the order of the
            modules; of a model that mteb loads: of its name and revision, or its files, and the versions); None
            where nothing can be hashed that the vectors depend on, as for a callable.
        tokenizer_sha256: hash over the tokenizer's files.
        config_sha256: hash over the configuration files that shape the network.
        modules: what else is done inside, in order (`lower_case`, `dense:Tanh`, a `normalize` before a layer).
        normalizes: whether the model itself scales vectors to unit length at the very end. The planner does that,
            so that they can be had without.
        fitted: the post-processing that was fitted and is part of the encoder, with its dimensions and what it was
            fitted on; empty for none.
    """

    name: str
    kind: str
    use: Use
    weights_sha256: str | None = None
    tokenizer_sha256: str | None = None
    config_sha256: str | None = None
    modules: tuple[str, ...] = ()
    normalizes: bool = False
    fitted: str = ""

    @property
    def normalize(self) -> bool:
        """Whether vectors are scaled to unit length, as the person says, or else as the model does."""
        return self.normalizes if self.use.normalize is None else self.use.normalize

    def key(self) -> dict[str, Any]:
        """Return what tells vectors apart, before the closing normalisation: equal keys, equal vectors.

        A name and a commit are names of what is hashed, and a template is what is in it.
        """
        said = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _APART}
        return said | self.use.key()

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        return vars(self) | {"use": self.use.as_dict()}


@dataclass(frozen=True)
class Tokenized:
    """The token sequences of some texts, each with its length.

    Attributes:
        sequences: one per text; equal texts, and texts that tokenise alike, have equal sequences.
        lengths: sub-words of each whole text, special tokens and prompt not counted (-1 where unknown).
        truncated: whether the text was longer than the model reads.
    """

    sequences: list[TokenSequence]
    lengths: list[int]
    truncated: list[bool]


@runtime_checkable
class Encoder(Protocol):
    """Text to vectors. Anything with these members can be measured."""

    @property
    def identity(self) -> Identity:
        """What its vectors depend on."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that the person should read, on choices made for them and mismatches seen."""

    @property
    def token_budget(self) -> int:
        """Padded tokens that one forward pass should hold at most."""

    def prepare(self, *, weights: bool) -> None:
        """Load what tokenising needs, and with `weights` what the forward pass needs.

        Loading happens here and not at the first sentence, so that it is not counted as encoding.
        """

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        """Return what the forward pass will read of each text."""

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        """Return for each pooling an array of shape (len(sequences), dimensions), float32, rows in order.

        The closing normalisation of `identity.normalize` is not part of it.
        """


@runtime_checkable
class Tailed(Encoder, Protocol):
    """An encoder with a tail, a map of each vector of the encoder without it: nothing cached is encoded again."""

    @property
    def base(self) -> Encoder:
        """The encoder without the tail."""

    def tail(self, vectors: FloatMatrix) -> FloatMatrix:
        """Return the vectors behind the tail, shape (rows, dimensions), float32.

        Args:
            vectors: the base's, before its closing normalisation, shape (rows, d).
        """


class Place(Protocol):
    """Where batches are computed, one at a time."""

    def forward(
        self, encoder: Any, sequences: Sequence[TokenSequence], poolings: Sequence[str]
    ) -> dict[str, FloatMatrix]:
        """Return what the encoder's own `forward` does, for the encoder whose place it is."""


@runtime_checkable
class Placed(Encoder, Protocol):
    """An encoder whose batches may be computed in several places; in none of their own where there are none."""

    @property
    def places(self) -> Sequence[Place]:
        """Where batches are computed."""


def notes_on(encoder: Encoder, task: str, sentences: Sequence[str]) -> tuple[str, ...]:
    """Return what an encoder says of a task; one that has seen sentences has such a method itself."""
    notes: tuple[str, ...] = encoder.notes_on(task, sentences) if hasattr(encoder, "notes_on") else ()
    return notes


def reader_of(encoder: Encoder, task: str, side: int | None) -> Encoder:
    """Return the encoder that reads the sentences of a task; one that reads by task or side has such a method.

    Args:
        encoder: of a model.
        task: the task's name here.
        side: 0 or 1, of pairs; None where the items are single sentences.
    """
    reader: Encoder = encoder.reader(task, side) if hasattr(encoder, "reader") else encoder
    return reader


class DeviceOutOfMemory(Exception):
    """One batch did not fit on the device: the planner halves its token budget and goes on."""


def as_float32(vectors: NDArray[Any], name: str) -> FloatMatrix:
    """Return a copy of real vectors in float32; refuse those with a largest number that it cannot hold."""
    largest = np.abs(vectors).max(axis=1).astype(np.float64)
    too_large, too_small = largest > LARGEST, (largest < SMALLEST) & (largest > 0)
    beyond = np.isfinite(largest) & (too_large | too_small)
    if beyond.any():
        raise UserError(
            f"{name} returned numbers that float32 cannot hold in {beyond.sum()} of {len(vectors)} vectors "
            f"(such as {largest[beyond][0]:.3g}): scale them."
        )
    return vectors.astype(np.float32)


def require_own_pooling(identity: Identity, poolings: Sequence[str]) -> None:
    """Refuse poolings other than the one that an encoder has."""
    for pooling in poolings:
        if pooling != identity.use.pooling:
            raise UserError(f"{identity.name} has no pooling {pooling!r}: its own is {identity.use.pooling!r}.")
