"""A prompt for each side of a pair: two encoders of one model, and texts encoded by several encoders at once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Any, NoReturn

import numpy as np

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.encoders.plan import Embeddings, embed
from stsbench.encoders.protocol import Encoder, Identity, Wrapper


@dataclass
class SidedEncoder(Wrapper):
    """A model with a prompt for each side of a pair: two encoders that share a network.

    Attributes:
        sides: the encoders of the first and of the second sentences of pairs.
        notes: what the user should know.
    """

    sides: tuple[Encoder, Encoder]
    notes: tuple[str, ...] = ()

    @property
    def base(self) -> Encoder:  # type: ignore[override]
        """The encoder of the first sentences."""
        return self.sides[0]

    @cached_property
    def identity(self) -> Identity:
        first, second = (side.identity for side in self.sides)
        prompts = (first.use.prompt or "", second.use.prompt or "")
        return replace(first, use=replace(first.use, prompt="", prompts=prompts))

    def reader(self, task: str, side: int | None) -> Encoder:
        """Returns the encoder of a side (see `reader_of`)."""
        if side is None:
            raise UserError(
                f"{self.identity.name} has a prompt for each side of a pair, but {task} has single sentences. "
                "Use --prompt or --prompt-name instead of --prompts, or leave the task out."
            )
        return self.sides[side]

    def with_use(self, **changes: Any) -> "SidedEncoder":
        """Returns the encoder with other fields of `Use`; only for checkpoints that are read natively."""
        first: Any = self.sides[0]
        changed = first.with_use(**changes)
        return replace(self, sides=(changed, changed.with_use(prompt=self.sides[1].identity.use.prompt)))

    def prepare(self, *, weights: bool) -> None:
        for side in self.sides:
            side.prepare(weights=weights)

    def tokenize(self, texts: Sequence[str]) -> NoReturn:
        refuse_without_side(self.identity)


def refuse_without_side(identity: Identity) -> NoReturn:
    """Raises a UserError: sentences have no side, but the model has a prompt for each side of a pair."""
    raise UserError(
        f"{identity.name} has a prompt for each side of a pair, but these sentences have no side. Use --prompt or "
        "--prompt-name instead of --prompts."
    )


def embed_each(
    parts: Sequence[tuple[Encoder, Sequence[str]]], *, use_cache: bool = True, progress: Progress = silent
) -> Embeddings:
    """Encodes texts with one or several encoders of a model, each distinct text once per encoder (see `embed`).

    Args:
        parts: encoders, each with its texts; an encoder may occur several times.
        use_cache: whether to read and write the embedding cache.
        progress: receives the number of encoded tokens.

    Returns:
        The vectors of all texts, part after part, without the closing normalisation.
    """
    encoders = {id(encoder): encoder for encoder, _ in parts}
    owners = np.repeat([id(encoder) for encoder, _ in parts], [len(texts) for _, texts in parts])
    texts = [text for _, texts_of_part in parts for text in texts_of_part]
    places = [np.flatnonzero(owners == number) for number in encoders]
    embedded = [
        embed(encoder, [texts[row] for row in rows], normalize=False, use_cache=use_cache, progress=progress)
        for encoder, rows in zip(encoders.values(), places, strict=True)
    ]
    if len(embedded) == 1:
        return embedded[0]
    order = np.argsort(np.concatenate(places))
    starts = np.cumsum([0, *(part.cost.sequences for part in embedded)])
    rows = [start + part.rows for start, part in zip(starts, embedded, strict=False)]
    return Embeddings(
        rows=np.concatenate(rows)[order],
        vectors={name: np.concatenate([part.vectors[name] for part in embedded]) for name in embedded[0].vectors},
        lengths=np.concatenate([part.lengths for part in embedded])[order],
        truncated=np.concatenate([part.truncated for part in embedded])[order],
        cost=reduce(add, (part.cost for part in embedded)),
    )
