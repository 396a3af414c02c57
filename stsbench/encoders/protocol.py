"""The interface of encoders: token sequences in, one matrix per pooling out. And two base classes of encoders."""

from abc import ABC, abstractmethod
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

_NOT_IN_KEY = {"name", "use", "normalizes"}
"""Fields of an identity that do not distinguish cached vectors: `Use` has its own key, and the cache holds vectors
before the closing normalisation."""

WITH_POOLINGS = frozenset({"transformer", "sentence-transformers", "static"})
"""The kinds of models whose pooling is known by name."""

ENDPOINT = "endpoint"
"""The kind of a model behind a server."""

TokenSequence = tuple[int, ...] | tuple[str, ...] | str
"""The forward pass's input for one text: token ids, known words, or the text itself."""


@dataclass(frozen=True)
class Identity:
    """Everything that a sentence vector depends on, apart from the sentence.

    Attributes:
        name: the model as the user named it.
        kind: `transformer`, `sentence-transformers`, `sentence-transformers-library`, `model2vec-library`,
            `static` (word vectors), `function`, `vectors`, `endpoint`, `mteb` or `fitted`.
        use: how it is used, with every open choice made; `revision` is the Hub's commit (None for local files),
            and `trust_remote_code` is true only if there was code to run.
        weights_sha256: hash of the weight file, or over several in the order of their use; None if the vectors
            depend on something that cannot be hashed, such as a callable. Of an endpoint with `--revision`: of
            address, name and label.
        tokenizer_sha256: hash over the tokenizer's files.
        config_sha256: hash over the configuration files of the network.
        modules: further steps inside, in order (`lower_case`, `dense:Tanh`, a `normalize` before a layer).
        normalizes: whether the model ends in a scaling to unit length. The planner does it, after the cache.
        fitted: the fitted post-processing, with its dimensions and sentences; "" for none.
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
        """Whether vectors are scaled to unit length, by your choice or else by the model's."""
        return self.normalizes if self.use.normalize is None else self.use.normalize

    @property
    def is_cached(self) -> bool:
        """Whether the embedding cache keeps the vectors."""
        return self.kind == ENDPOINT or (self.weights_sha256 is not None and self.kind != "vectors")

    def key(self) -> dict[str, Any]:
        """Returns a key of the vectors before the closing normalisation: equal keys mean equal vectors."""
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _NOT_IN_KEY}
        return own | self.use.key()

    def as_dict(self) -> dict[str, Any]:
        """Returns the fields as plain data."""
        return vars(self) | {"use": self.use.as_dict()}


@dataclass(frozen=True)
class Tokenized:
    """The token sequences of some texts.

    Attributes:
        sequences: one per text; texts that tokenise alike have equal sequences.
        lengths: number of sub-words of each whole text without special tokens and prompt; -1 if unknown.
        truncated: whether the text is longer than the model reads.
    """

    sequences: list[TokenSequence]
    lengths: list[int]
    truncated: list[bool]


@runtime_checkable
class Encoder(Protocol):
    """Text to vectors. Any object with these members can be measured."""

    @property
    def identity(self) -> Identity:
        """Everything that the vectors depend on."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Choices made for the user, and mismatches, one sentence each."""

    @property
    def token_budget(self) -> int:
        """Maximum number of padded tokens in a batch."""

    def prepare(self, *, weights: bool) -> None:
        """Loads the tokenizer, and with `weights` the network, so that loading is not timed as encoding."""

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        """Returns the forward pass's input for each text."""

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        """Returns for each pooling an array of shape (len(sequences), dimensions), before `identity.normalize`."""


class OwnPooling(ABC):
    """Base class of encoders with a single pooling, such as a callable, a library's model or word vectors.

    A subclass defines `identity` and `vectors`.
    """

    identity: Identity
    notes: tuple[str, ...] = ()
    token_budget: int = 65_536

    def prepare(self, *, weights: bool) -> None:  # noqa: B027 - few encoders need loading
        pass

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        return Tokenized(list(texts), [-1] * len(texts), [False] * len(texts))

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        require_own_pooling(self.identity, poolings)
        return dict.fromkeys(poolings, self.vectors(sequences))

    @abstractmethod
    def vectors(self, sequences: Sequence[TokenSequence]) -> FloatMatrix:
        """Returns an array of shape (len(sequences), dimensions)."""


class Wrapper:
    """Base class of encoders around another one: members that a subclass does not define are those of `base`."""

    base: Encoder

    @property
    def identity(self) -> Identity:
        return self.base.identity

    @property
    def token_budget(self) -> int:
        return self.base.token_budget

    def prepare(self, *, weights: bool) -> None:
        self.base.prepare(weights=weights)

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        return self.base.tokenize(texts)

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        return self.base.forward(sequences, poolings)


def notes_on(encoder: Encoder, task: str, sentences: Sequence[str]) -> tuple[str, ...]:
    """Returns an encoder's notes on a task, if it has a method `notes_on`."""
    notes: tuple[str, ...] = encoder.notes_on(task, sentences) if hasattr(encoder, "notes_on") else ()
    return notes


def reader_of(encoder: Encoder, task: str, side: int | None) -> Encoder:
    """Returns the encoder of a task's sentences: `encoder.reader(task, side)` if it has such a method, or itself.

    The side is 0 or 1 for the sentences of pairs, None for single sentences.
    """
    reader: Encoder = encoder.reader(task, side) if hasattr(encoder, "reader") else encoder
    return reader


class DeviceOutOfMemory(Exception):
    """A batch does not fit on the device; the planner halves it."""


def as_float32(vectors: NDArray[Any], name: str) -> FloatMatrix:
    """Returns a float32 copy; raises a UserError for vectors whose largest number float32 cannot represent."""
    largest = np.abs(vectors).max(axis=1).astype(np.float64)
    too_large, too_small = largest > LARGEST, (largest < SMALLEST) & (largest > 0)
    beyond = np.isfinite(largest) & (too_large | too_small)
    if beyond.any():
        raise UserError(
            f"{name} returned numbers outside the range of float32 in {beyond.sum()} of {len(vectors)} vectors "
            f"(such as {largest[beyond][0]:.3g}). Scale them."
        )
    return vectors.astype(np.float32)


def require_unchanged(
    name: str, before: NDArray[Any], now: NDArray[Any], rows: Sequence[str], *, tolerance: float, advice: str
) -> None:
    """Raises a UserError if a model without a hash has changed since some of its numbers were recorded.

    Args:
        name: of the model.
        before: the recorded numbers, shape (n,) or (n, d).
        now: the same rows now.
        rows: what each row is, for the message.
        tolerance: the largest distance of a row, relative to the largest recorded one.
        advice: what to do, for the message.
    """
    before, now = before.reshape(len(rows), -1), now.reshape(len(rows), -1)
    distance = np.linalg.norm(now - before, axis=1) if now.shape == before.shape else np.full(len(rows), np.inf)
    if not (distance <= tolerance * np.linalg.norm(before, axis=1).max()).all():
        worst = int(np.argmax(distance))
        raise UserError(
            f"{name} has changed: {rows[worst]} is {distance[worst]:.3g} off the recorded one. {advice}"
        )


def require_own_pooling(identity: Identity, poolings: Sequence[str]) -> None:
    """Raises a UserError for a pooling other than the encoder's only one."""
    for pooling in poolings:
        if pooling != identity.use.pooling:
            raise UserError(
                f"{identity.name} has no pooling {pooling!r}. Its only pooling is {identity.use.pooling!r}."
            )
