"""Negatives beyond the batch: a queue of a momentum encoder's vectors (He et al. 2020; ESimCSE, section 3.2)."""

import copy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from stsbench.training.batches import Batch
from stsbench.training.distributed import World
from stsbench.training.model import Forward, SentenceModel
from stsbench.training.recipe import Queue


@dataclass
class InBatch:
    """No negatives but the other sentences of the batch."""

    def columns(self) -> Tensor | None:
        """Return further columns of the cosine matrix."""
        return None

    def start_epoch(self) -> None:
        """Do what is due when an epoch starts."""

    def before_loss(self) -> None:
        """Do what is due before each loss."""

    def push(self, batch: Batch) -> None:
        """Take in the batch whose loss was computed."""

    def after_step(self) -> None:
        """Do what is due after each optimiser step."""

    def state_dict(self) -> dict[str, Any]:
        """Return all that changes."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` returned."""


@dataclass
class MomentumQueue(InBatch):
    """Vectors of the last sentences by an encoder that follows the trained one slowly.

    Attributes:
        online: the model in training.
        forward: how sequences become vectors.
        part: size, decay and the order of events.
        world: the processes; each encodes its share, and all have the same queue.
        start: the weights that the momentum encoder starts with; None for the online ones.
        vectors: (rows, d); fewer than `part.size` rows while it fills.
        momentum: the other encoder. It has no dropout.
    """

    online: SentenceModel
    forward: Forward
    part: Queue
    world: World = field(default_factory=World)
    start: nn.Module | None = None

    def __post_init__(self) -> None:
        """Make the momentum encoder: a copy of the online one, or with the weights of `start`."""
        self.momentum = copy.deepcopy(self.online).eval().requires_grad_(False)
        if self.start is not None:
            self.momentum.transformer.load_state_dict(self.start.state_dict())
            self.start = None
        self.vectors = self._empty()

    def columns(self) -> Tensor:
        """Return the queue: (rows, d), without gradient."""
        return self.vectors

    def start_epoch(self) -> None:
        """Empty the queue, if each epoch is to start with an empty one."""
        if self.part.emptied == "each_epoch":
            self.vectors = self._empty()

    def before_loss(self) -> None:
        """Move the momentum encoder, if it moves before the loss."""
        if self.part.update == "before_loss":
            self._follow()

    def after_step(self) -> None:
        """Move the momentum encoder, if it moves after the optimiser."""
        if self.part.update == "after_step":
            self._follow()

    @torch.no_grad()
    def push(self, batch: Batch) -> None:
        """Take in the vectors of a batch's queries (the side that is not repeated), and drop the oldest."""
        share = batch.share(self.world.share(len(batch.query)))
        head = self.momentum.head if self.part.head == "momentum" else self.online.head
        vectors = self.forward(self.momentum, head, self.forward.chunks(share.query), None)
        newest = self.world.gather(vectors, len(batch.query))
        # Cut at its oldest end: the newest batch first leaves the oldest its first rows, the newest last its last.
        if self.part.keeps == "first_rows":
            self.vectors = torch.cat([newest, self.vectors])[: self.part.size]
        else:
            self.vectors = torch.cat([self.vectors, newest])[-self.part.size :]

    def state_dict(self) -> dict[str, Any]:
        """Return the queue and the momentum encoder's weights."""
        return {"vectors": self.vectors, "momentum": self.momentum.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` returned."""
        self.vectors = state["vectors"].to(self.vectors.device)
        self.momentum.load_state_dict(state["momentum"])

    @torch.no_grad()
    def _follow(self) -> None:
        """Move each weight towards the online one: m <- decay m + (1 - decay) f (equation 5)."""
        slow: list[Tensor] = list(self.momentum.parameters())
        fast: list[Tensor] = list(self.online.parameters())
        torch._foreach_lerp_(slow, fast, 1 - self.part.decay)

    def _empty(self) -> Tensor:
        return torch.zeros((0, self.online.width), device=self.forward.device)
