"""AdamW with linear warm-up and decay, clipping, and the scaler of half precision."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from stsbench.training.parts import Optimiser

# What Transformers takes by default, and so do the papers' scripts.
_BETAS, _EPSILON = (0.9, 0.999), 1e-8


def learning_rate(part: Optimiser, step: int, steps: int) -> float:
    """Return the rate of a step: rising over the first `warmup` of all steps, then falling to zero.

    >>> part = Optimiser(learning_rate=1.0, warmup=0.5)
    >>> [learning_rate(part, step, 4) for step in range(4)]
    [0.0, 0.5, 1.0, 0.5]
    """
    warm = math.ceil(part.warmup * steps)
    share = step / warm if step < warm else (steps - step) / max(1, steps - warm)
    return part.learning_rate * share


class Descent:
    """The optimiser with all that belongs to a step of it. Biases and normalisations do not decay."""

    def __init__(
        self, parameters: Iterable[nn.Parameter], part: Optimiser, steps: int, device: str, precision: str
    ) -> None:
        """Make the optimiser of some parameters, for a training of so many steps."""
        self._part, self._steps = part, steps
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        decaying = [parameter for parameter in trained if parameter.ndim > 1]
        plain = [parameter for parameter in trained if parameter.ndim <= 1]
        self.parameters = [*decaying, *plain]
        groups = [{"params": decaying, "weight_decay": part.weight_decay}, {"params": plain, "weight_decay": 0.0}]
        self._adam: torch.optim.Optimizer
        if part.adam_epsilon == "before_correction":
            self._adam = _AdamWOfTransformers(groups, {"lr": part.learning_rate})
        else:
            self._adam = torch.optim.AdamW(groups, lr=part.learning_rate, betas=_BETAS, eps=_EPSILON, fused=True)
        # Of the loss in fp16; it does nothing otherwise.
        self._scaler = torch.amp.GradScaler(device.partition(":")[0], enabled=precision == "fp16")

    def scale(self, losses: int) -> Callable[[Tensor], Tensor]:
        """Return what multiplies each of `losses` losses that make a step."""
        return lambda loss: self._scaler.scale(loss / losses)

    def step(self, step: int) -> float:
        """Take step number `step`, counted from 0, with the gradients that are there; return its rate."""
        rate = learning_rate(self._part, step, self._steps)
        for group in self._adam.param_groups:
            group["lr"] = rate
        if self._part.clip is not None:
            self._scaler.unscale_(self._adam)
            nn.utils.clip_grad_norm_(self.parameters, self._part.clip, foreach=True)
        self._scaler.step(self._adam)
        self._scaler.update()
        self._adam.zero_grad(set_to_none=True)
        return rate

    def state_dict(self) -> dict[str, Any]:
        """Return all that changes."""
        return {"adam": self._adam.state_dict(), "scaler": self._scaler.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` returned."""
        self._adam.load_state_dict(state["adam"])
        self._scaler.load_state_dict(state["scaler"])


class _AdamWOfTransformers(torch.optim.Optimizer):
    """AdamW as Transformers 4 has it: epsilon joins the root before its bias is corrected; decay comes last."""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Take a step with the gradients that are there."""
        for group in self.param_groups:
            trained: list[Tensor] = [parameter for parameter in group["params"] if parameter.grad is not None]
            if trained:
                self._step(trained, group["lr"], group["weight_decay"])

    def _step(self, parameters: list[Tensor], rate: float, decay: float) -> None:
        for parameter in parameters:
            state = self.state[parameter]
            if not state:
                state |= {"step": 0, "mean": torch.zeros_like(parameter), "square": torch.zeros_like(parameter)}
            state["step"] += 1
        states = [self.state[parameter] for parameter in parameters]
        means, squares = [state["mean"] for state in states], [state["square"] for state in states]
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        torch._foreach_mul_(means, _BETAS[0])
        torch._foreach_add_(means, gradients, alpha=1 - _BETAS[0])
        torch._foreach_mul_(squares, _BETAS[1])
        torch._foreach_addcmul_(squares, gradients, gradients, value=1 - _BETAS[1])
        roots = torch._foreach_sqrt(squares)
        torch._foreach_add_(roots, _EPSILON)
        corrections = [math.sqrt(1 - _BETAS[1] ** s["step"]) / (1 - _BETAS[0] ** s["step"]) for s in states]
        torch._foreach_addcdiv_(parameters, means, roots, [-rate * correction for correction in corrections])
        if decay:
            torch._foreach_mul_(parameters, 1 - rate * decay)
