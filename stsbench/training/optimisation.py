"""AdamW with linear warm-up and decay, clipping, and the scaler of half precision."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from stsbench.training.recipe import Optimiser

# What Transformers takes by default, and so do the papers' scripts.
_BETAS, _EPSILON = (0.9, 0.999), 1e-8


def learning_rate(part: Optimiser, step: int, steps: int) -> float:
    """Return the rate of a step: rising over the first `warmup` of all steps, then falling to zero.

    Args:
        part: the highest rate and the warm-up.
        step: counted from 0.
        steps: in all.

    >>> part = Optimiser(learning_rate=1.0, warmup=0.5)
    >>> [learning_rate(part, step, 4) for step in range(4)]
    [0.0, 0.5, 1.0, 0.5]
    """
    warm = math.ceil(part.warmup * steps)
    share = step / warm if step < warm else (steps - step) / max(1, steps - warm)
    return part.learning_rate * share


@dataclass
class Descent:
    """The optimiser with all that belongs to a step of it.

    Attributes:
        parameters: what is trained.
        part: the recipe's.
        steps: in all.
        scaler: of the loss in fp16; does nothing otherwise.
    """

    parameters: Sequence[nn.Parameter]
    part: Optimiser
    steps: int
    scaler: torch.amp.GradScaler
    adam: torch.optim.AdamW

    @classmethod
    def of(
        cls, named: Iterable[tuple[str, nn.Parameter]], part: Optimiser, steps: int, device: str, precision: str
    ) -> "Descent":
        """Make the optimiser of some named parameters. Biases and normalisations do not decay."""
        trained = [(name, parameter) for name, parameter in named if parameter.requires_grad]
        decaying = [parameter for _, parameter in trained if parameter.ndim > 1]
        others = [parameter for _, parameter in trained if parameter.ndim <= 1]
        groups = [{"params": decaying, "weight_decay": part.weight_decay}, {"params": others, "weight_decay": 0.0}]
        adam = torch.optim.AdamW(groups, lr=part.learning_rate, betas=_BETAS, eps=_EPSILON, fused=True)
        scaler = torch.amp.GradScaler(device.partition(":")[0], enabled=precision == "fp16")
        return cls([*decaying, *others], part, steps, scaler, adam)

    def scale(self, losses: int) -> Callable[[Tensor], Tensor]:
        """Return what multiplies each of `losses` losses that make a step."""
        return lambda loss: self.scaler.scale(loss / losses)

    def step(self, step: int) -> float:
        """Take step number `step`, counted from 0, with the gradients that are there; return its rate."""
        rate = learning_rate(self.part, step, self.steps)
        for group in self.adam.param_groups:
            group["lr"] = rate
        if self.part.clip is not None:
            self.scaler.unscale_(self.adam)
            nn.utils.clip_grad_norm_(self.parameters, self.part.clip, foreach=True)
        self.scaler.step(self.adam)
        self.scaler.update()
        self.adam.zero_grad(set_to_none=True)
        return rate

    def state_dict(self) -> dict[str, Any]:
        """Return all that changes."""
        return {"adam": self.adam.state_dict(), "scaler": self.scaler.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` returned."""
        self.adam.load_state_dict(state["adam"])
        self.scaler.load_state_dict(state["scaler"])
