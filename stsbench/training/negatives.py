"""Negatives beyond the batch: a queue of the target's vectors (He et al. 2020; ESimCSE, section 3.2; MoCoSE)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from stsbench.training.batches import Batch
from stsbench.training.recipe_parts import Queue


@dataclass
class InBatch:
    """No negatives but the other sentences of the batch."""

    def columns(self) -> Tensor | None:
        """Return further columns of the matrix of similarities."""
        return None

    def start_epoch(self) -> None:
        """Do what is due when an epoch starts."""

    def push(self, batch: Batch, keys: Tensor) -> None:
        """Take in the batch whose loss was computed, and the vectors of its keys without gradient."""

    def state_dict(self) -> dict[str, Any]:
        """Return all that changes."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` returned."""


@dataclass
class VectorQueue(InBatch):
    """Vectors of the last sentences by the target.

    Attributes:
        part: size, start and order.
        width: of a vector.
        seed: of the random vectors that it starts with.
        device: where they are.
        encode: batch to (N, d) vectors that enter it; None where the batch's keys do.
        vectors: (rows, d); fewer than `part.size` rows while it fills.
    """

    part: Queue
    width: int
    seed: int
    device: str
    encode: Callable[[Batch], Tensor] | None
    vectors: Tensor = field(init=False)

    def __post_init__(self) -> None:
        """Fill it as it starts."""
        self.vectors = self._initial()

    def columns(self) -> Tensor:
        """Return the vectors that are negatives: (rows, d), without gradient."""
        # Before it is full a slice may hold nothing, and a loss without negatives is 0.
        if self.part.uses is None or len(self.vectors) < self.part.size:
            return self.vectors
        newest_first = self.vectors if self.part.keeps == "first_rows" else self.vectors.flip(0)
        return torch.cat([newest_first[first:last] for first, last in self.part.uses])

    def start_epoch(self) -> None:
        if self.part.emptied == "each_epoch":
            self.vectors = self._initial()

    @torch.no_grad()
    def push(self, batch: Batch, keys: Tensor) -> None:
        newest = keys if self.encode is None else self.encode(batch)
        # Cut at its oldest end: the newest batch first leaves the oldest its first rows, the newest last its last.
        if self.part.keeps == "first_rows":
            self.vectors = torch.cat([newest, self.vectors])[: self.part.size]
        else:
            self.vectors = torch.cat([self.vectors, newest])[-self.part.size :]

    def state_dict(self) -> dict[str, Any]:
        return {"vectors": self.vectors}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.vectors = state["vectors"].to(self.vectors.device)

    def _initial(self) -> Tensor:
        """Return random unit vectors: directions of a normal distribution, all alike (MoCoSE, section 5.6)."""
        rng = torch.Generator().manual_seed(self.seed)
        drawn = torch.randn((self.part.initial, self.width), generator=rng)
        return functional.normalize(drawn, dim=-1).to(self.device)
