"""Encoders that read a sentence by where it stands: a prompt for each side of a pair.

A task says on which side each of its sentences is, and `reader_of` which encoder reads that side. A sentence that
is on both sides has a vector for each, so nothing here has a vector for a sentence without a side.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NoReturn, Unpack

import numpy as np

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.encoders.plan import Embeddings, EncodingCost, embed, refuse_without_side
from stsbench.encoders.protocol import Encoder, Identity, TokenSequence
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.encoders.use import UseOptions


@dataclass
class SidedEncoder:
    """A model with a prompt for each side of a pair: two encoders with one prompt each, and one network.

    Attributes:
        sides: what reads the first sentences of pairs, and what the second ones.
        notes: what the person should know.
    """

    sides: tuple[Encoder, Encoder]
    notes: tuple[str, ...] = ()

    @cached_property
    def identity(self) -> Identity:
        """What the vectors depend on: of either side all that it is for one prompt."""
        first, second = (side.identity for side in self.sides)
        prompts = (first.use.prompt or "", second.use.prompt or "")
        return replace(first, use=replace(first.use, prompt="", prompts=prompts))

    @property
    def token_budget(self) -> int:
        """Padded tokens in one batch."""
        return self.sides[0].token_budget

    def reader(self, task: str, side: int | None) -> Encoder:
        """Return the encoder of a side; see `reader_of`."""
        if side is None:
            raise UserError(
                f"{self.identity.name} has a prompt for each side of a pair, and the items of {task} are single "
                "sentences: give --prompt or --prompt-name in place of --prompts, or leave the task out."
            )
        return self.sides[side]

    def with_use(self, **changes: Unpack[UseOptions]) -> "SidedEncoder":
        """Return the encoder used otherwise, of a checkpoint that is read natively, with one network again."""
        first, second = self.sides
        assert isinstance(first, TransformerEncoder), "no other can be used otherwise once it is loaded"
        changed = first.with_use(**changes)
        return replace(self, sides=(changed, changed.with_use(prompt=second.identity.use.prompt)))

    def prepare(self, *, weights: bool) -> None:
        """Prepare both sides."""
        for side in self.sides:
            side.prepare(weights=weights)

    def tokenize(self, texts: Sequence[str]) -> NoReturn:
        """Refuse: a text is read by its side."""
        refuse_without_side(self.identity)

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> NoReturn:
        """Refuse: a text is read by its side."""
        refuse_without_side(self.identity)


def embed_each(
    parts: Sequence[tuple[Encoder, Sequence[str]]], *, use_cache: bool = True, progress: Progress = silent
) -> Embeddings:
    """Encode texts with one encoder or several, each distinct text once by each: see `embed`.

    Args:
        parts: encoders of one model, each with texts; an encoder may stand there several times.
        use_cache: whether to read and write the embedding cache.
        progress: told of the real tokens done.

    Returns:
        The vectors of all texts, part after part, without a closing normalisation.
    """
    encoders = {id(encoder): encoder for encoder, _ in parts}
    of_text = np.concatenate([np.full(len(texts), id(encoder)) for encoder, texts in parts])
    texts = [text for _, of_part in parts for text in of_part]
    if len(encoders) == 1:
        (encoder,) = encoders.values()
        return embed(encoder, texts, normalize=False, use_cache=use_cache, progress=progress)
    rows, lengths = np.zeros(len(texts), dtype=np.int64), np.zeros(len(texts), dtype=np.int64)
    truncated, start, made = np.zeros(len(texts), dtype=bool), 0, []
    for number, encoder in encoders.items():
        places = np.flatnonzero(of_text == number)
        own = [texts[place] for place in places.tolist()]
        made.append(embed(encoder, own, normalize=False, use_cache=use_cache, progress=progress))
        rows[places] = start + made[-1].rows
        lengths[places], truncated[places] = made[-1].lengths, made[-1].truncated
        start += made[-1].cost.sequences
    costs = [part.cost for part in made]
    return Embeddings(
        rows=rows,
        vectors={pooling: np.concatenate([part.vectors[pooling] for part in made]) for pooling in made[0].vectors},
        lengths=lengths,
        truncated=truncated,
        cost=EncodingCost(
            texts=sum(cost.texts for cost in costs),
            sequences=sum(cost.sequences for cost in costs),
            encoded=sum(cost.encoded for cost in costs),
            tokens=sum(cost.tokens for cost in costs),
            padded_tokens=sum(cost.padded_tokens for cost in costs),
            seconds={stage: sum(cost.seconds.get(stage, 0) for cost in costs) for stage in costs[0].seconds},
        ),
    )
