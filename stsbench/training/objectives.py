"""The objective: InfoNCE as a function of vectors, the masked-language loss, and the terms that a step adds up.

Symbols as in the papers: N sentences, temperature t, cosine similarity s.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd import backward
from torch.nn import functional

from stsbench.statistics.bootstrap import generator
from stsbench.training.batches import Batch, Sequences
from stsbench.training.distributed import World
from stsbench.training.model import Chunk, Forward, SentenceModel, at_least_single
from stsbench.training.negatives import InBatch
from stsbench.training.recipe import MaskedLanguage, Recipe

IGNORED = -100
"""The label of a token that is not guessed."""


def info_nce(
    query: Tensor,
    key: Tensor,
    *,
    temperature: float,
    hard: Tensor | None = None,
    hard_weight: float = 1.0,
    queue: Tensor | None = None,
) -> Tensor:
    """Return the mean over i of -log(exp(s(q_i, k_i)/t) / sum of exp(s(q_i, c)/t) over all columns c).

    The columns are all keys (SimCSE, equation 1), all hard negatives, the own one weighted (equation 5 and
    appendix: its term is multiplied by alpha), and all queue vectors (ESimCSE, equation 6).

    Args:
        query: (N, d).
        key: (N, d); row i is the positive of query i.
        temperature: t.
        hard: (N, d) hard negatives, or None.
        hard_weight: alpha of the own hard negative.
        queue: (M, d) further negatives, which get no gradient; None or no rows for none.

    Returns:
        A scalar, in float32 or what the vectors are.

    >>> vectors = torch.eye(3, dtype=torch.float64)
    >>> round(info_nce(vectors, vectors, temperature=1.0).item(), 6) == round(math.log(1 + 2 / math.e), 6)
    True
    """
    query = functional.normalize(query, dim=-1)
    columns = [key] if hard is None else [key, hard]
    if queue is not None and len(queue):
        columns.append(queue.detach())
    logits = query @ functional.normalize(torch.cat(columns), dim=-1).T / temperature
    rows = torch.arange(len(query), device=query.device)
    if hard is not None and hard_weight != 1:
        own = torch.zeros_like(logits)
        own[rows, len(key) + rows] = math.log(hard_weight)
        logits = logits + own
    return functional.cross_entropy(logits, rows)


class Term(Protocol):
    """A term of the objective."""

    def __call__(self, batch: Batch, scale: Callable[[Tensor], Tensor]) -> Tensor:
        """Add the gradient of scale(loss) to the parameters and return the loss, weighted and without gradient.

        Args:
            batch: of all processes; a term encodes this process's share.
            scale: what the loss is multiplied by before the backward pass.
        """


@dataclass(frozen=True)
class Contrastive:
    """InfoNCE over the batch, hard negatives and the queue.

    Attributes:
        model: in training.
        forward: how sequences become vectors.
        negatives: gives further columns.
        recipe: temperature, hard negatives' weight, gradient caching, seed.
        world: the processes.
    """

    model: SentenceModel
    forward: Forward
    negatives: InBatch
    recipe: Recipe
    world: World

    def __call__(self, batch: Batch, scale: Callable[[Tensor], Tensor]) -> Tensor:
        """Run it; see `Term`."""
        own = batch.share(self.world.share(len(batch.query)))
        chunks = self.forward.chunks(own.sequences)
        sizes = [len(own.query), len(own.key), len(own.hard)]
        if self.recipe.optimiser.gradient_cache:
            return self._cached(batch, chunks, sizes, scale)
        vectors = self._encode(chunks, batch)
        loss = self._loss(vectors, sizes, len(batch.query))
        _backward(scale(loss))
        return loss.detach()

    def _cached(
        self, batch: Batch, chunks: list[Chunk], sizes: list[int], scale: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Run it holding the graph of one chunk at a time (Gao et al. 2021, gradient caching).

        First all vectors without a graph; then the loss and its gradient at the vectors; then each chunk again,
        with the same dropout, to take that gradient on to the weights.
        """
        with torch.no_grad():
            vectors = self._encode(chunks, batch)
        vectors.requires_grad_()
        loss = self._loss(vectors, sizes, len(batch.query))
        _backward(scale(loss))
        gradient = vectors.grad
        for chunk in chunks if gradient is not None else ():
            assert gradient is not None
            # Of this chunk alone, `Forward` returns the vectors by their places in the batch.
            again = self._encode([chunk], batch)
            backward(again, gradient[self.forward.move(torch.tensor(sorted(chunk.places)))])
        return loss.detach()

    def _loss(self, vectors: Tensor, sizes: list[int], rows: int) -> Tensor:
        query, key, hard = (self.world.gather(side, rows) for side in torch.split(vectors, sizes))
        weight = self.recipe.negatives.hard.weight if self.recipe.negatives.hard else 1.0
        return info_nce(
            query,
            key,
            temperature=self.recipe.objective.temperature,
            hard=hard if len(hard) else None,
            hard_weight=weight,
            queue=self.negatives.columns(),
        )

    def _encode(self, chunks: list[Chunk], batch: Batch) -> Tensor:
        seed = dropout_seed(self.recipe.seed, batch, self.world, "contrastive")
        return self.forward(self.model, self.model.head, chunks, seed)


@dataclass(frozen=True)
class MaskedLanguageTerm:
    """The masked-language loss on a masked copy of every sentence of the batch, as SimCSE's code has it.

    The mean is over the masked sub-words of the batches of all processes.

    Attributes:
        network: a masked-language model whose encoder is the one in training.
        forward: chunks, padding, precision.
        part: weight and share.
        mask_id: the mask token.
        vocabulary: how many tokens there are.
        around: special tokens before and behind a sentence.
        seed: of masks and dropout.
        world: the processes.
    """

    network: nn.Module
    forward: Forward
    part: MaskedLanguage
    mask_id: int
    vocabulary: int
    around: tuple[int, int]
    seed: int
    world: World

    def __call__(self, batch: Batch, scale: Callable[[Tensor], Tensor]) -> Tensor:
        """Run it; see `Term`."""
        sides = (batch.query, batch.key, batch.hard)
        masked = [self._masked(side, str(number), batch) for number, side in enumerate(sides)]
        count = sum(int((label != IGNORED).sum()) for _, labels in masked for label in labels)
        seen, labels = [], []
        for ids, own_labels in masked:
            place = self.world.share(len(ids)) if ids else slice(0)
            seen += ids[place]
            labels += own_labels[place]
        seed = dropout_seed(self.seed, batch, self.world, "mlm")
        total = torch.zeros((), device=self.forward.device)
        for chunk in self.forward.chunks(seen) if count else ():
            torch.manual_seed(seed(chunk.places[0]))
            loss = self._summed(chunk, labels) * (self.part.weight / count)
            backward(scale(loss))
            total += loss.detach()
        return self.world.add_up(total)

    def _masked(self, side: Sequences, name: str, batch: Batch) -> tuple[Sequences, Sequences]:
        return mask_tokens(
            side,
            share=self.part.share,
            mask_id=self.mask_id,
            vocabulary=self.vocabulary,
            around=self.around,
            rng=generator(self.seed, "mask", name, *batch.name),
        )

    def _summed(self, chunk: Chunk, labels: Sequences) -> Tensor:
        """Return the sum of the losses of the masked sub-words of a chunk."""
        wanted = torch.full_like(chunk.ids, IGNORED)
        for row, place in enumerate(chunk.places):
            wanted[row, : len(labels[place])] = torch.from_numpy(labels[place])
        with self.forward.autocast():
            output: Any = self.network(
                input_ids=self.forward.move(chunk.ids),
                attention_mask=self.forward.move(chunk.mask) if chunk.padded else None,
                return_dict=True,
            )
        logits = at_least_single(output.logits.flatten(0, 1))
        return functional.cross_entropy(
            logits, self.forward.move(wanted.flatten()), ignore_index=IGNORED, reduction="sum"
        )


def mask_tokens(
    sequences: Sequences,
    *,
    share: float,
    mask_id: int,
    vocabulary: int,
    around: tuple[int, int],
    rng: np.random.Generator,
) -> tuple[Sequences, list[NDArray[np.int64]]]:
    """Return a masked copy of some sequences, and the labels: the token where it is to be guessed.

    Each sub-word is chosen with probability `share`. Of the chosen, 80 % are masked, 10 % are any token at random,
    10 % stay (BERT, section 3.1).

    Args:
        sequences: token ids, special tokens included.
        share: of the sub-words that are to be guessed.
        mask_id: the mask token.
        vocabulary: how many tokens there are.
        around: how many special tokens stand before and behind each sentence; they are never chosen.
        rng: where the draws come from.
    """
    before, behind = around
    seen, labels = [], []
    for sequence in sequences:
        places = np.arange(len(sequence))
        inner = (places >= before) & (places < len(sequence) - behind)
        chosen = inner & (rng.random(len(sequence)) < share)
        what = rng.random(len(sequence))
        other = rng.integers(vocabulary, size=len(sequence))
        seen.append(
            np.select(
                [chosen & (what < 0.8), chosen & (what < 0.9)], [np.full_like(sequence, mask_id), other], sequence
            )
        )
        labels.append(np.where(chosen, sequence, IGNORED))
    return seen, labels


def dropout_seed(seed: int, batch: Batch, world: World, name: str) -> Callable[[int], int]:
    """Return the seed of the dropout of each chunk: it follows from the batch, so no random state need be kept."""

    def of_chunk(place: int) -> int:
        rng = generator(seed, "dropout", name, *batch.name, str(world.rank), str(place))
        return int(rng.integers(2**63))

    return of_chunk


def _backward(loss: Tensor) -> None:
    # A process without a share in a short last batch has a loss that depends on nothing of its own.
    if loss.requires_grad:
        backward(loss)
