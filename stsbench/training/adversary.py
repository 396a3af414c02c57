"""FGSM on the word embeddings: a step along the sign of the loss's gradient (Goodfellow et al. 2015; MoCoSE)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from stsbench.training.model import Chunk
from stsbench.training.noise import Adversarial


@dataclass
class Adversary:
    """Steps on the word embeddings of a batch.

    The gradient of a row is that of its sentence, position by position, summed over the sides that have one; both
    sides get the same step.

    Attributes:
        part: the size of the step, and of which gradient.
        gradient: (rows, width, d), what the next step follows; None before the first.
    """

    part: Adversarial
    gradient: Tensor | None = None
    _rows: int = 0
    _watched: list[tuple[Chunk, Tensor]] = field(default_factory=list)

    @property
    def needs_clean_pass(self) -> bool:
        """Whether the gradient is that of the same sentences, from a pass without a step."""
        return self.part.gradient == "own"

    @contextmanager
    def watching(self, rows: int) -> Iterator[None]:
        """Watch the embeddings of a batch of so many rows, each of which stands there once for each side."""
        self._rows, self._watched = rows, []
        try:
            yield
        finally:
            self._watched = []

    def altered(self, embedded: Tensor, chunk: Chunk) -> Tensor:
        """Return the embeddings of a chunk, (rows, width, d), with the step where there is a gradient."""
        if embedded.requires_grad:
            embedded.retain_grad()
            self._watched.append((chunk, embedded))
        if self.gradient is None:
            return embedded
        return embedded + self.part.step * self._of(chunk).sign().to(embedded.dtype)

    def learn(self, loss: Tensor) -> None:
        """Take the gradient of the loss of a clean pass, which leaves none in the weights."""
        tensors = [embedded for _, embedded in self._watched]
        gradients = torch.autograd.grad(loss, tensors, allow_unused=True)
        self._take([(chunk, part) for (chunk, _), part in zip(self._watched, gradients, strict=True)])

    def remember(self) -> None:
        """After the backward pass: keep its gradient for the next step, or forget that of this one."""
        if self.needs_clean_pass:
            self.gradient = None
        else:
            self._take([(chunk, embedded.grad) for chunk, embedded in self._watched])

    def state_dict(self) -> dict[str, Any]:
        """Return all that changes."""
        return {"gradient": self.gradient}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` returned."""
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
        """Return the gradient at the rows of a chunk, (rows, width, d): zero where there is none."""
        assert self.gradient is not None
        rows, width = chunk.ids.shape
        of_rows = self.gradient.new_zeros((rows, width, self.gradient.shape[2]))
        places = self._row_of(chunk).to(self.gradient.device)
        there = torch.nonzero(places < len(self.gradient)).flatten()
        shared = min(width, self.gradient.shape[1])
        of_rows[there, :shared] = self.gradient[places[there], :shared]
        return of_rows

    def _row_of(self, chunk: Chunk) -> Tensor:
        # The sides of a branch follow one another, each with all rows.
        return torch.tensor(chunk.places) % self._rows
