"""The network in training, and forward passes in chunks with little padding."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from stsbench.base.errors import UserError
from stsbench.training.batches import Sequences
from stsbench.training.cpu import drawing_by, draws, dropout_at, passes_at_once
from stsbench.training.distributed import WIDTH, Graphs
from stsbench.training.noise import Cutoff, NoisePart
from stsbench.training.recipe import Pooling

_HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}


def autocast(device: str, precision: str) -> AbstractContextManager[Any]:
    return nullcontext() if precision == "fp32" else torch.autocast(device.partition(":")[0], _HALF[precision])


def pooled(pooling: Pooling, states: Tensor, mask: Tensor) -> Tensor:
    """Returns the vectors of `poolers.read_vectors` for a last layer padded on the right, with the fewest kernels.

    Args:
        pooling: of the recipe.
        states: shape (rows, width, dimensions).
        mask: 1 for real tokens, shape (rows, width).
    """
    match pooling:
        case "cls_before_pooler":
            return at_least_single(states[:, 0])
        case "last":
            return at_least_single(states[torch.arange(len(mask), device=mask.device), mask.sum(1) - 1])
        case "max":
            return at_least_single(states).masked_fill(~mask.bool().unsqueeze(-1), float("-inf")).amax(1)
        case "avg":
            values = at_least_single(states)
            weights = mask.unsqueeze(-1).to(values.dtype)
            return (values * weights).sum(1) / weights.sum(1)


class SentenceModel(nn.Module):
    """Token embeddings to sentence vectors."""

    def __init__(
        self,
        transformer: nn.Module,
        pooling: Pooling,
        head: nn.Module,
        projector: nn.Module | None = None,
        predictor: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.transformer = transformer
        self.head = head
        self.projector = projector or nn.Identity()
        self.predictor = predictor or nn.Identity()
        self._pooling = pooling

    @property
    def key_head(self) -> nn.Module:
        """From the pooled vector to the vector in the loss, for keys and hard negatives."""
        return nn.Sequential(self.head, self.projector)

    @property
    def query_head(self) -> nn.Module:
        """From the pooled vector to the vector in the loss, for queries."""
        return nn.Sequential(self.head, self.projector, self.predictor)

    @property
    def word_embeddings(self) -> nn.Module:
        table: nn.Module = self.transformer.get_input_embeddings()  # type: ignore[operator]
        return table

    @property
    def width(self) -> int:
        return int(self.transformer.config.hidden_size)  # type: ignore[union-attr, arg-type]

    def positions(self, mask: Tensor) -> Tensor:
        """Returns the position ids of the model: (rows, width)."""
        # RoBERTa and similar models count from the padding id on.
        embeddings = getattr(self.transformer, "embeddings", None)
        counts_on = getattr(embeddings, "create_position_ids_from_inputs_embeds", None) is not None
        start = int(embeddings.padding_idx) + 1 if counts_on else 0  # type: ignore[union-attr]
        return torch.arange(start, start + mask.shape[1], device=mask.device).expand_as(mask)

    def forward(
        self, embedded: Tensor, mask: Tensor, attended: Tensor | None, positions: Tensor | None = None
    ) -> Tensor:
        """Returns the pooled vectors, before any head.

        Args:
            embedded: (rows, width, d) token embeddings.
            mask: (rows, width), 1 for real tokens.
            attended: the mask of the attention; None without padding, which is faster.
            positions: (rows, width) position ids; None for the model's own.
        """
        states: Any = self.transformer(
            inputs_embeds=embedded,
            attention_mask=attended,
            return_dict=True,
            **({} if positions is None else {"position_ids": positions}),
        )
        return pooled(self._pooling, states.last_hidden_state, mask)

    def padded(self, embedded: Tensor, mask: Tensor) -> Tensor:
        """Returns the pooled vectors of a chunk, treated as padded: checking the mask would make a GPU wait."""
        rows, width = mask.shape
        vectors: Tensor = self(embedded, mask, mask.bool()[:, None, None, :].expand(rows, 1, width, width))
        return vectors


@dataclass(frozen=True)
class Chunk:
    """Some sequences of a batch, padded to the longest.

    Attributes:
        places: of the sequences in the batch.
        ids: (rows, width) token ids.
        lengths: (rows,) real tokens.
    """

    places: list[int]
    ids: Tensor
    lengths: Tensor

    @property
    def mask(self) -> Tensor:
        return (torch.arange(self.ids.shape[1]) < self.lengths.unsqueeze(1)).long()

    @property
    def padded(self) -> bool:
        return bool((self.lengths < self.ids.shape[1]).any())


def chunks_of(
    sequences: Sequences, rows: int | None, pad_id: int, *, multiple: int = 1, tokens: int | None = None
) -> list[Chunk]:
    """Returns the sequences in chunks of similar length, the longest first, padded to a multiple of `multiple`.

    A chunk has `rows` sequences (None: all), or else about `tokens` tokens.
    """
    order = sorted(range(len(sequences)), key=lambda place: -len(sequences[place]))
    if tokens is None:
        size = rows or max(1, len(order))
        ends = list(range(size, len(order) + size, size))
    else:
        ends = ends_by_tokens([len(sequences[place]) for place in order], tokens)
    return [_padded(sequences, order[start:end], pad_id, multiple) for start, end in pairwise([0, *ends])]


def ends_by_tokens(lengths: Sequence[int], most: int) -> list[int]:
    """Returns where chunks with about equally many tokens end; on average they have at most `most`.

    The number of chunks is even, so that two threads share the work. It does not depend on the machine's cores,
    because each chunk has its own draws, which the seed must determine.

    >>> ends_by_tokens([32, 32, 30, 9, 8, 8], 80)
    [2, 6]
    """
    if not lengths:
        return []
    read = np.cumsum(lengths)
    count = 2 * math.ceil(int(read[-1]) / (2 * most))
    ends = np.searchsorted(read, read[-1] * np.arange(1, count) / count) + 1
    return [*np.unique(ends[ends < len(lengths)]).tolist(), len(lengths)]


def _padded(sequences: Sequences, places: list[int], pad_id: int, multiple: int) -> Chunk:
    lengths = [len(sequences[place]) for place in places]
    width = -(-max(lengths) // multiple) * multiple
    ids = np.full((len(places), width), pad_id, dtype=np.int64)
    for row, place in enumerate(places):
        ids[row, : lengths[row]] = sequences[place]
    return Chunk(places, torch.from_numpy(ids), torch.tensor(lengths))


@dataclass(frozen=True)
class Forward:
    """Computes the vectors of sequences in training.

    Attributes:
        chunk: sequences per forward pass; None for all at once.
        graphs: the recorded passes of a GPU; None without any.
        tokens: tokens per forward pass on a CPU, instead of `chunk`; None to count sequences.
        at_once: concurrent passes on a CPU. Passes in which torch draws run one after the other, because threads
            share its generator.
        apart: whether torch draws nothing in a pass with dropout, because NumPy draws its masks.
    """

    pad_id: int
    chunk: int | None
    device: str
    precision: str = "fp32"
    graphs: Graphs | None = None
    tokens: int | None = None
    at_once: int = 1
    apart: bool = False

    def chunks(self, sequences: Sequences) -> list[Chunk]:
        return chunks_of(
            sequences,
            self.chunk,
            self.pad_id,
            multiple=1 if self.graphs is None else WIDTH,
            tokens=self.tokens,
        )

    def move(self, tensor: Tensor) -> Tensor:
        """Returns a tensor on the model's device, without waiting for the copy."""
        pinned = tensor.pin_memory() if self.device.startswith("cuda") else tensor
        return pinned.to(self.device, non_blocking=True)

    def __call__(
        self,
        model: SentenceModel,
        head: nn.Module,
        chunks: Sequence[Chunk],
        seed: Callable[[int], int] | None,
        *,
        noise: Sequence[NoisePart] = (),
        dropout: bool = True,
        altered: Callable[[Tensor, Chunk], Tensor] | None = None,
    ) -> Tensor:
        """Returns (sequences, d) float32 vectors of the chunks' sequences, in the order of the batch.

        Args:
            model: the encoder and its pooling.
            head: from the pooled vectors to the result.
            chunks: all sequences of the batch, or some.
            seed: the seed of a chunk's dropout and noise by its first place; None for neither.
            noise: in the model.
            dropout: whether the modules' dropout is on in this pass.
            altered: changes the embeddings of a chunk, (rows, width, d), before any noise, without draws.
        """
        if not chunks:  # a last batch shorter than the number of processes leaves some without rows
            return torch.zeros((0, model.width), device=self.device)
        # A head with draws is applied to each chunk, so that gradient caching repeats them.
        by_chunk = seed is not None and dropout and draws(head)
        without_dropout = nullcontext() if dropout else dropout_at(0.0, model, head)
        with autocast(self.device, self.precision), without_dropout:
            # One look-up for all chunks: the gradient of the table is as large as the vocabulary.
            flat = torch.cat([chunk.ids.flatten() for chunk in chunks])
            embedded = model.word_embeddings(self.move(flat))
            sizes = [chunk.ids.numel() for chunk in chunks]
            parts = [
                part.view(*chunk.ids.shape, -1) for chunk, part in zip(chunks, embedded.split(sizes), strict=True)
            ]
            apart = seed is None or self.apart
            if self.at_once > 1 and apart and not (by_chunk or noise or altered):
                together = self._at_once(model, parts, chunks, seed)
            else:
                vectors = []
                for chunk, inputs in zip(chunks, parts, strict=True):
                    drawn_by = None if seed is None else seed(chunk.places[0])
                    changed = inputs if altered is None else altered(inputs, chunk)
                    pooled = self._pooled(model, changed, chunk, noise, dropout=dropout, seed=drawn_by)
                    vectors.append(head(pooled) if by_chunk else pooled)
                together = torch.cat(vectors)
            in_chunks = at_least_single(together if by_chunk else head(together))
        order = torch.tensor([place for chunk in chunks for place in chunk.places])
        return in_chunks[self.move(torch.argsort(order))]

    def _at_once(
        self,
        model: SentenceModel,
        parts: Sequence[Tensor],
        chunks: Sequence[Chunk],
        seed: Callable[[int], int] | None,
    ) -> Tensor:
        def pooled(number: int, part: Tensor) -> Tensor:
            chunk = chunks[number]
            drawn_by = None if seed is None else seed(chunk.places[0])
            with autocast(self.device, self.precision), drawing_by(drawn_by):
                return cast(Tensor, model(part, chunk.mask, chunk.mask if chunk.padded else None))

        return passes_at_once(pooled, parts, list(model.transformer.parameters()), self.at_once)

    def _pooled(
        self,
        model: SentenceModel,
        inputs: Tensor,
        chunk: Chunk,
        noise: Sequence[NoisePart],
        *,
        dropout: bool,
        seed: int | None,
    ) -> Tensor:
        mask = self.move(chunk.mask)
        if self.graphs is not None and not noise:
            return self.graphs(model, inputs, mask, dropout, seed)
        if seed is not None:
            torch.manual_seed(seed)
        attended = mask if chunk.padded else None
        if not noise:
            return cast(Tensor, model(inputs, mask, attended))
        positions = natural = model.positions(mask)
        for part in noise:
            inputs, positions = part.embeddings(inputs, mask), part.positions(positions, mask)
        cutoffs = [part for part in noise if isinstance(part, Cutoff) and part.place == "layer"]
        with _embedding_layer(model, cutoffs, mask):
            pooled = model(inputs, mask, attended, None if positions is natural else positions)
        for part in noise:
            pooled = part.vectors(pooled)
        return cast(Tensor, pooled)


@contextmanager
def _embedding_layer(model: SentenceModel, cutoffs: Sequence[Cutoff], mask: Tensor) -> Iterator[None]:
    if not cutoffs:
        yield
        return
    layer = getattr(model.transformer, "embeddings", None)
    if not isinstance(layer, nn.Module):
        raise UserError(
            f"noise with place: layer: {type(model.transformer).__name__} has no embedding layer; use words."
        )

    def changed(_module: nn.Module, _inputs: Any, states: Tensor) -> Tensor:
        for cutoff in cutoffs:
            states = states * cutoff.kept(states, mask)
        return states

    hook = layer.register_forward_hook(changed)
    try:
        yield
    finally:
        hook.remove()


def at_least_single(values: Tensor) -> Tensor:
    """Returns values in half precision as float32, for losses."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
