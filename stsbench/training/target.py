"""The target: a second encoder that follows the trained one slowly (He et al. 2020; ESimCSE, equation 5; MoCoSE).

It makes the vectors of a queue, or the keys of the pairs too. Which modules are copies, how slowly they follow and
when, is the recipe's `target`.
"""

import copy
import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from stsbench.training.model import SentenceModel
from stsbench.training.recipe_parts import CosineDecay, Target


def decay_at(decay: float | CosineDecay, step: int, steps: int) -> float:
    """Return the share that the target keeps of itself at a step.

    >>> [round(decay_at(CosineDecay(kind="cosine", start=0.75, end=0.95), step, 4), 4) for step in range(5)]
    [0.75, 0.7793, 0.85, 0.9207, 0.95]
    """
    if not isinstance(decay, CosineDecay):
        return decay
    turn = step / (decay.steps or steps)
    if decay.after == "stays":
        turn = min(turn, 1.0)
    return decay.end - (decay.end - decay.start) * (math.cos(math.pi * turn) + 1) / 2


@dataclass
class TargetModel:
    """A slow copy of the model in training.

    Attributes:
        online: the model in training.
        part: which modules are copied, decay, timing.
        steps: of the training, for a schedule without an end of its own.
        start: the weights that its Transformer starts with; None for the online ones.
        model: the copy. What the recipe does not copy in it is the online module itself.
    """

    online: SentenceModel
    part: Target
    steps: int
    start: nn.Module | None = None
    model: SentenceModel = field(init=False)

    def __post_init__(self) -> None:
        """Copy the online model, and put its own modules where they are shared."""
        self.model = copy.deepcopy(self.online).requires_grad_(False).train(self.part.dropout)
        if self.start is not None:
            self.model.transformer.load_state_dict(self.start.state_dict())
            self.start = None
        for name in ("head", "projector"):
            if name not in self.part.modules:
                setattr(self.model, name, getattr(self.online, name))
        # Only queries pass the predictor: the target has none.
        self.model.predictor = nn.Identity()
        for name in self.part.trained:
            getattr(self.model, name).requires_grad_(True)
        if self.part.embeddings == "shared":
            self.model.transformer.embeddings = self.online.transformer.embeddings
        self._pairs = self._followed()

    def trained(self) -> list[nn.Parameter]:
        """Return the weights of its own that the optimiser trains too."""
        return [weight for name in self.part.trained for weight in getattr(self.model, name).parameters()]

    def dropout(self, rate: float | None) -> float | None:
        """Return the rate of a forward pass through it that is to have `rate`: none at all, if it has no dropout.

        It may share modules with the online model, which are set for that one.
        """
        return rate if self.part.dropout else 0.0

    def before_loss(self, step: int) -> None:
        """Move, if it moves before each loss; `step` is counted from 0."""
        if self.part.update == "before_loss":
            self._follow(step)

    def after_step(self, step: int) -> None:
        """Move, if it moves after each step of the optimiser; `step` is counted from 0."""
        if self.part.update == "after_step":
            self._follow(step)

    def state_dict(self) -> dict[str, Any]:
        """Return its weights, those that are shared too."""
        return self.model.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` returned."""
        self.model.load_state_dict(state)

    def _followed(self) -> list[tuple[Tensor, Tensor]]:
        """Return each weight of its own with the online weight that it follows."""
        fast = dict(self.online.named_parameters())
        return [(slow, fast[name]) for name, slow in self.model.named_parameters() if slow is not fast[name]]

    @torch.no_grad()
    def _follow(self, step: int) -> None:
        """Move each weight towards the online one: m <- decay m + (1 - decay) f (ESimCSE, equation 5)."""
        if self._pairs:
            slow, fast = zip(*self._pairs, strict=True)
            torch._foreach_lerp_(list(slow), list(fast), 1 - decay_at(self.part.decay, step, self.steps))
