"""The objective: InfoNCE and NT-Xent as functions of vectors, and the terms of a step's loss.

Symbols are the papers': N sentences, temperature t, cosine similarity s.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import backward
from torch.nn import functional

from stsbench.encoders.tokenizer import Tokenizer
from stsbench.statistics.seeds import generator
from stsbench.training.base import VectorQueue, dropout_seed
from stsbench.training.batches import Batch, Sequences
from stsbench.training.distributed import World
from stsbench.training.guesses import IGNORED, mask_tokens
from stsbench.training.model import Chunk, Forward, SentenceModel, at_least_single, autocast
from stsbench.training.noise import Adversarial, NoisePart
from stsbench.training.parts import MaskedLanguage
from stsbench.training.recipe import Recipe

Term = Callable[[Batch, Callable[[Tensor], Tensor]], Tensor]
"""Adds the gradient of scale(loss) to the parameters; returns the weighted loss of all processes' batch."""


def info_nce(
    query: Tensor,
    key: Tensor,
    *,
    temperature: float,
    hard: Tensor | None = None,
    hard_weight: float = 1.0,
    queue: Tensor | None = None,
    in_batch: bool = True,
    similarity: str = "cosine",
) -> Tensor:
    """Returns the mean over i of -log(exp(s(q_i, k_i)/t) / sum of exp(s(q_i, c)/t) over all columns c).

    The columns are all keys (SimCSE, equation 1), all hard negatives (equation 5 and appendix: alpha multiplies
    the term of the row's own), and all queue vectors (ESimCSE, equation 6). Without `in_batch` the only key is the
    row's own (MoCoSE, equation 3).

    Args:
        query: (N, d).
        key: (N, d); row i is the positive of query i.
        temperature: t.
        hard: (N, d) hard negatives, or None.
        hard_weight: alpha of the row's own hard negative.
        queue: (M, d) further negatives without gradient; None or no rows for none.
        in_batch: whether the keys of the other rows are negatives.
        similarity: s: `cosine`, or `dot` for the product of unscaled vectors.

    Returns:
        A scalar, in the type of the vectors.

    >>> vectors = torch.eye(3, dtype=torch.float64)
    >>> round(info_nce(vectors, vectors, temperature=1.0).item(), 6) == round(math.log(1 + 2 / math.e), 6)
    True
    """
    scaled = (lambda side: functional.normalize(side, dim=-1)) if similarity == "cosine" else (lambda side: side)
    query = scaled(query)
    columns = [key] if in_batch else []
    columns += [] if hard is None else [hard]
    columns += [queue.detach()] if queue is not None and len(queue) else []
    rows = torch.arange(len(query), device=query.device)
    if not in_batch:
        own_key = (query * scaled(key)).sum(-1, keepdim=True) / temperature
        negatives = [query @ scaled(torch.cat(columns)).T / temperature] if columns else []
        return functional.cross_entropy(torch.cat([own_key, *negatives], dim=1), torch.zeros_like(rows))
    logits = query @ scaled(torch.cat(columns)).T / temperature
    if hard is not None and hard_weight != 1:
        weights = torch.zeros_like(logits)
        weights[rows, len(key) + rows] = math.log(hard_weight)
        logits = logits + weights
    return functional.cross_entropy(logits, rows)


def nt_xent(query: Tensor, key: Tensor, *, temperature: float) -> Tensor:
    """Returns the mean over both sides of the cross-entropy of finding a vector's partner.

    The negatives are all other vectors of both sides (SimCLR, Chen et al. 2020, algorithm 1; ConSERT, section 3).

    Args:
        query: (N, d).
        key: (N, d); row i is the partner of query i.
        temperature: of the softmax over cosines.

    >>> vectors = torch.eye(3, dtype=torch.float64)
    >>> round(nt_xent(vectors, vectors, temperature=1.0).item(), 6) == round(math.log(1 + 4 / math.e), 6)
    True
    """
    both = functional.normalize(torch.cat([query, key]), dim=-1)
    logits = both @ both.T / temperature
    itself = torch.eye(len(both), dtype=torch.bool, device=both.device)
    positives = torch.arange(len(both), device=both.device).roll(len(query))
    return functional.cross_entropy(logits.masked_fill(itself, -torch.inf), positives)


@dataclass(frozen=True)
class Branch:
    """Sides of a batch that are encoded together, and how.

    Attributes:
        draws: the name of their dropout and noise.
        dropout: whether they have dropout.
        trained: whether they have a gradient.
    """

    sides: tuple[str, ...]
    model: SentenceModel
    head: nn.Module
    draws: str
    noise: tuple[NoisePart, ...] = ()
    dropout: bool = True
    trained: bool = True

    def sequences(self, batch: Batch) -> Sequences:
        return [sequence for side in self.sides for sequence in getattr(batch, side)]


@dataclass
class Adversary:
    """FGSM: a step on the word embeddings along the sign of the loss's gradient (Goodfellow et al. 2015; MoCoSE).

    The gradient of a row is summed over its sides, position by position; both sides get the same step.

    Attributes:
        gradient: (rows, width, d), for the next step; None before the first.
    """

    part: Adversarial
    gradient: Tensor | None = None
    _rows: int = 0
    _watched: list[tuple[Chunk, Tensor]] = field(default_factory=list)

    def watch(self, rows: int) -> None:
        """Collects the embeddings of the next pass of a batch with `rows` rows on each side."""
        self._rows, self._watched = rows, []

    def altered(self, embedded: Tensor, chunk: Chunk) -> Tensor:
        """Returns the embeddings of a chunk, (rows, width, d), plus the step."""
        if embedded.requires_grad:
            embedded.retain_grad()
            self._watched.append((chunk, embedded))
        if self.gradient is None:
            return embedded
        return embedded + self.part.step * self._of(chunk).sign().to(embedded.dtype)

    def learn(self, loss: Tensor) -> None:
        """Computes the gradient of a clean pass, leaving that of the weights unchanged."""
        tensors = [embedded for _, embedded in self._watched]
        gradients = torch.autograd.grad(loss, tensors, allow_unused=True)
        self._take([(chunk, part) for (chunk, _), part in zip(self._watched, gradients, strict=True)])

    def remember(self) -> None:
        """Keeps the gradient of the backward pass for the next step, or deletes that of the clean pass."""
        if self.part.gradient == "own":
            self.gradient = None
        else:
            self._take([(chunk, embedded.grad) for chunk, embedded in self._watched])
        self._watched = []

    def state_dict(self) -> dict[str, Any]:
        return {"gradient": self.gradient}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.gradient = state["gradient"]

    def _take(self, parts: list[tuple[Chunk, Tensor | None]]) -> None:
        known = [(chunk, part) for chunk, part in parts if part is not None]
        width = max((part.shape[1] for _, part in known), default=0)
        if not width:
            return
        first = known[0][1]
        self.gradient = torch.zeros((self._rows, width, first.shape[2]), device=first.device)
        for chunk, part in known:
            self.gradient[:, : part.shape[1]].index_add_(0, self._row_of(chunk).to(first.device), part.float())

    def _of(self, chunk: Chunk) -> Tensor:
        assert self.gradient is not None
        width = chunk.ids.shape[1]
        of_rows = self.gradient.new_zeros((*chunk.ids.shape, self.gradient.shape[2]))
        places = self._row_of(chunk).to(self.gradient.device)
        there = torch.nonzero(places < len(self.gradient)).flatten()
        shared = min(width, self.gradient.shape[1])
        of_rows[there, :shared] = self.gradient[places[there], :shared]
        return of_rows

    def _row_of(self, chunk: Chunk) -> Tensor:
        return torch.tensor(chunk.places) % self._rows


@dataclass(frozen=True)
class Contrastive:
    branches: tuple[Branch, ...]
    forward: Forward
    queue: VectorQueue | None
    recipe: Recipe
    world: World
    adversary: Adversary | None = None

    def __call__(self, batch: Batch, scale: Callable[[Tensor], Tensor]) -> Tensor:
        share = batch.share(self.world.share(len(batch.query)))
        chunks = [self.forward.chunks(branch.sequences(share)) for branch in self.branches]
        rows = len(batch.query)
        if self.adversary is not None and self.adversary.part.gradient == "own":
            self.adversary.watch(len(share.query))
            clean, _ = self._loss(self._encode_all(chunks, batch), share, rows)
            self.adversary.learn(clean)
        if self.recipe.optimiser.gradient_cache:
            loss, keys = self._cached(batch, share, chunks, scale)
        else:
            if self.adversary is not None:
                self.adversary.watch(len(share.query))
            loss, keys = self._loss(self._encode_all(chunks, batch), share, rows)
            _backward(scale(loss))
            if self.adversary is not None:
                self.adversary.remember()
        if self.queue is not None:
            self.queue.push(batch, keys.detach())
        return loss.detach()

    def _cached(
        self, batch: Batch, share: Batch, chunks: list[list[Chunk]], scale: Callable[[Tensor], Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Computes loss and gradients with the graph of one chunk at a time (Gao et al. 2021, gradient caching).

        It computes all vectors without a graph, the loss's gradient at them, and then each chunk again with the
        same dropout to propagate that gradient to the weights.
        """
        with torch.no_grad():
            vectors = self._encode_all(chunks, batch)
        for part, branch in zip(vectors, self.branches, strict=True):
            part.requires_grad_(branch.trained)
        loss, keys = self._loss(vectors, share, len(batch.query))
        _backward(scale(loss))
        for branch, parts, part in zip(self.branches, chunks, vectors, strict=True):
            for chunk in parts if part.grad is not None else ():
                assert part.grad is not None
                again = self._encode(branch, [chunk], batch)
                if again.requires_grad:  # not if a target shares no trained module
                    backward(again, part.grad[self.forward.move(torch.tensor(sorted(chunk.places)))])
        return loss, keys

    def _loss(self, vectors: list[Tensor], share: Batch, rows: int) -> tuple[Tensor, Tensor]:
        """Returns the loss and the vectors of all keys, given each branch's vectors of this process's share."""
        sides: dict[str, Tensor] = {}
        for branch, part in zip(self.branches, vectors, strict=True):
            sizes = [len(getattr(share, side)) for side in branch.sides]
            sides |= dict(zip(branch.sides, torch.split(part, sizes), strict=True))
        query, key, hard = (self.world.gather(sides[side], rows) for side in ("query", "key", "hard"))
        objective, negatives = self.recipe.objective, self.recipe.negatives
        if objective.loss == "nt-xent":
            loss = nt_xent(query, key, temperature=objective.temperature)
        else:
            loss = info_nce(
                query,
                key,
                temperature=objective.temperature,
                hard=hard if len(hard) else None,
                hard_weight=1.0 if negatives.hard is None else negatives.hard.weight,
                queue=None if self.queue is None else self.queue.columns(),
                in_batch=negatives.in_batch,
                similarity=objective.similarity,
            )
        return loss * objective.weight, key

    def _encode_all(self, chunks: list[list[Chunk]], batch: Batch) -> list[Tensor]:
        return [self._encode(branch, parts, batch) for branch, parts in zip(self.branches, chunks, strict=True)]

    def _encode(self, branch: Branch, chunks: list[Chunk], batch: Batch) -> Tensor:
        noise = [
            part.for_batch(generator(self.recipe.seed, "noise", branch.draws, str(number), *batch.name))
            for number, part in enumerate(branch.noise)
        ]
        with torch.set_grad_enabled(branch.trained and torch.is_grad_enabled()):
            return self.forward(
                branch.model,
                branch.head,
                chunks,
                dropout_seed(self.recipe, self.world, branch.draws, *batch.name),
                noise=noise,
                dropout=branch.dropout,
                altered=None if self.adversary is None else self.adversary.altered,
            )


@dataclass(frozen=True)
class MaskedLanguageTerm:
    """The mean masked-language loss on a masked copy of every sentence of all processes' batch (SimCSE's code)."""

    network: nn.Module
    forward: Forward
    part: MaskedLanguage
    tokenizer: Tokenizer
    around: tuple[int, int]
    recipe: Recipe
    world: World

    def __call__(self, batch: Batch, scale: Callable[[Tensor], Tensor]) -> Tensor:
        masked = self.masked(batch)
        count = sum(int((label != IGNORED).sum()) for _, labels in masked for label in labels)
        seen, labels = [], []
        for ids, own_labels in masked:
            place = self.world.share(len(ids))
            seen += ids[place]
            labels += own_labels[place]
        seed = dropout_seed(self.recipe, self.world, "mlm", *batch.name)
        total = torch.zeros((), device=self.forward.device)
        for chunk in self.forward.chunks(seen) if count else ():
            torch.manual_seed(seed(chunk.places[0]))
            loss = self._summed(chunk, labels) * (self.part.weight / count)
            backward(scale(loss))
            total += loss.detach()
        return self.world.add_up(total)

    def masked(self, batch: Batch) -> list[tuple[Sequences, Sequences]]:
        """Returns masked copies of queries, keys and hard negatives, with their labels."""
        return [
            mask_tokens(
                side,
                share=self.part.share,
                mask_id=self.tokenizer.mask_id or 0,
                vocabulary=self.tokenizer.vocabulary,
                around=self.around,
                rng=generator(self.recipe.seed, "mask", str(number), *batch.name),
            )
            for number, side in enumerate((batch.query, batch.key, batch.hard))
        ]

    def _summed(self, chunk: Chunk, labels: Sequences) -> Tensor:
        wanted = torch.full_like(chunk.ids, IGNORED)
        for row, place in enumerate(chunk.places):
            wanted[row, : len(labels[place])] = torch.from_numpy(labels[place])
        with autocast(self.forward.device, self.forward.precision):
            output: Any = self.network(
                input_ids=self.forward.move(chunk.ids),
                attention_mask=self.forward.move(chunk.mask) if chunk.padded else None,
                return_dict=True,
            )
        logits = at_least_single(output.logits.flatten(0, 1))
        return functional.cross_entropy(
            logits, self.forward.move(wanted.flatten()), ignore_index=IGNORED, reduction="sum"
        )


def _backward(loss: Tensor) -> None:
    # The loss of a process without a share of a short last batch has no gradient.
    if loss.requires_grad:
        backward(loss)
