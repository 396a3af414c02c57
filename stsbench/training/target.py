"""The target, a momentum encoder, and the queue of its vectors (He et al. 2020; ESimCSE, section 3.2; MoCoSE)."""

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from stsbench.training.batches import Batch
from stsbench.training.model import SentenceModel
from stsbench.training.parts import CosineDecay, Queue, Target


def decay_at(decay: float | CosineDecay, step: int, steps: int) -> float:
    """Return the decay at a step, counted from 0, of a training of `steps` steps.

    >>> [round(decay_at(CosineDecay(kind="cosine", start=0.75, end=0.95), step, 4), 4) for step in range(5)]
    [0.75, 0.7793, 0.85, 0.9207, 0.95]
    """
    if not isinstance(decay, CosineDecay):
        return decay
    turn = step / (decay.steps or steps)
    if decay.after == "stays":
        turn = min(turn, 1.0)
    return decay.end - (decay.end - decay.start) * (math.cos(math.pi * turn) + 1) / 2


class TargetModel:
    """A slow copy of the online model; modules that the recipe does not copy are shared."""

    def __init__(self, online: SentenceModel, part: Target, steps: int, start: nn.Module | None = None) -> None:
        """Copy the online model; `start` has other initial weights for the copy's Transformer."""
        self.part, self._steps = part, steps
        self.model = copy.deepcopy(online).requires_grad_(False).train(part.dropout)
        if start is not None:
            self.model.transformer.load_state_dict(start.state_dict())
        for name in {"head", "projector"} - {*part.modules}:
            setattr(self.model, name, getattr(online, name))
        self.model.predictor = nn.Identity()
        for name in part.trained:
            getattr(self.model, name).requires_grad_(True)
        if part.embeddings == "shared":
            self.model.transformer.embeddings = online.transformer.embeddings
        followed = dict(online.named_parameters())
        weights = self.model.named_parameters()
        self._pairs = [(slow, followed[name]) for name, slow in weights if slow is not followed[name]]

    def trained(self) -> list[nn.Parameter]:
        """Return the copied weights that the optimiser trains, too."""
        return [weight for name in self.part.trained for weight in getattr(self.model, name).parameters()]

    def dropout(self, rate: float | None) -> float | None:
        """Return `rate` if the recipe gives it dropout, else 0: it may share modules with the online model."""
        return rate if self.part.dropout else 0.0

    @torch.no_grad()
    def follow(self, moment: str, step: int) -> None:
        """Update m <- decay m + (1 - decay) f (ESimCSE, equation 5) if `moment` is the recipe's `update`."""
        if self._pairs and self.part.update == moment:
            slow, fast = zip(*self._pairs, strict=True)
            torch._foreach_lerp_(list(slow), list(fast), 1 - decay_at(self.part.decay, step, self._steps))


class VectorQueue:
    """The target's vectors of the last sentences, (rows, d): fewer than the recipe's size while it fills."""

    def __init__(
        self, part: Queue, width: int, seed: int, device: str, encode: Callable[[Batch], Tensor] | None
    ) -> None:
        """Fill it with random vectors; `encode` gives a batch's (N, d) vectors to push, None to push its keys."""
        self.part, self._width, self._seed, self._device, self._encode = part, width, seed, device, encode
        self.vectors = self._initial()

    def columns(self) -> Tensor:
        """Return the vectors that are negatives: (rows, d), without gradient."""
        if self.part.uses is None or len(self.vectors) < self.part.size:
            return self.vectors
        newest_first = self.vectors if self.part.keeps == "first_rows" else self.vectors.flip(0)
        return torch.cat([newest_first[first:last] for first, last in self.part.uses])

    def start_epoch(self) -> None:
        """Empty it, if the recipe does so each epoch."""
        if self.part.emptied == "each_epoch":
            self.vectors = self._initial()

    @torch.no_grad()
    def push(self, batch: Batch, keys: Tensor) -> None:
        """Push a batch with its keys' vectors."""
        newest = keys if self._encode is None else self._encode(batch)
        if self.part.keeps == "first_rows":
            self.vectors = torch.cat([newest, self.vectors])[: self.part.size]
        else:
            self.vectors = torch.cat([self.vectors, newest])[-self.part.size :]

    def state_dict(self) -> dict[str, Any]:
        """Return its state."""
        return {"vectors": self.vectors}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state from `state_dict`."""
        self.vectors = state["vectors"].to(self.vectors.device)

    def _initial(self) -> Tensor:
        """Return random unit vectors (MoCoSE, section 5.6)."""
        rng = torch.Generator().manual_seed(self._seed)
        drawn = torch.randn((self.part.initial, self._width), generator=rng)
        return functional.normalize(drawn, dim=-1).to(self._device)
