"""What a training asks of a GPU: passes recorded as CUDA graphs, and kernels that give the same bits each time.

A pass through the network is recorded for its shape, and played again in every later step. A step is a thousand
small kernels, which a processor starts several times more slowly than a GPU computes them. Played from a recording
they start by themselves, the same kernels with the same draws: the numbers are those of the plain pass.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils import deterministic as torch_deterministic

from stsbench.base.errors import UserError
from stsbench.base.machine import is_of_memory
from stsbench.training.recipe import Recipe

WIDTH = 8
"""Sequences are padded to a multiple of it, so that a training has few shapes."""

_RECORDED_FROM = 3
"""The use of a shape from which it is recorded: the last batch of an epoch is of its own shape, and comes once."""

_MOST = 12


def has_graphs(recipe: Recipe) -> bool:
    """Return whether passes of a recipe are recorded on a GPU; gradient caching runs each pass twice in a step."""
    return recipe.cuda_graphs and not recipe.optimiser.gradient_cache


@dataclass
class Graphs:
    """The recordings of a training. Each pass of a step has its own, where its gradients wait for the others'."""

    _uses: Counter[Any] = field(default_factory=Counter)
    _turns: Counter[Any] = field(default_factory=Counter)
    _recorded: dict[Any, Callable[[Tensor, Tensor], Tensor]] = field(default_factory=dict)

    def start_step(self) -> None:
        """Say that an optimiser step begins."""
        self._turns.clear()

    def __call__(
        self, model: Any, embedded: Tensor, mask: Tensor, dropout: float | None, seed: int | None
    ) -> Tensor:
        """Return the pooled vectors of a padded chunk, recorded or not: the same numbers."""
        shape = (id(model), *embedded.shape, dropout, torch.is_grad_enabled())
        key = (*shape, self._turns[shape])
        self._turns[shape] += 1
        self._uses[key] += 1
        if key not in self._recorded and self._uses[key] >= _RECORDED_FROM and len(self._recorded) < _MOST:
            self._recorded[key] = _record(_Pass(model), embedded, mask)
        if seed is not None:  # recording draws, too
            torch.manual_seed(seed)
        play: Callable[[Tensor, Tensor], Tensor] = self._recorded.get(key) or model.padded
        return play(embedded, mask)


class _Pass(nn.Module):
    """A pass of a padded chunk, as a module of its own: recording one changes it."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model: Any = model

    def forward(self, embedded: Tensor, mask: Tensor) -> Tensor:
        pooled: Tensor = self.model.padded(embedded, mask)
        return pooled


def _record(module: _Pass, embedded: Tensor, mask: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    # The gradients of a recording come from its own stream, which torch would remark on.
    torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    sample = embedded.detach().clone().requires_grad_(embedded.requires_grad)
    try:
        # What is cast to half precision is cast in the recording: the weights change between steps.
        with torch.autocast("cuda", torch.get_autocast_dtype("cuda"), torch.is_autocast_enabled("cuda"), False):
            recorded: Any = torch.cuda.make_graphed_callables(
                module, (sample, mask.clone()), allow_unused_input=True
            )
    except RuntimeError as error:
        name = type(module.model.transformer).__name__
        why = "there is not enough memory" if is_of_memory(error) else str(error).partition("\n")[0]
        raise UserError(
            f"the passes of {name} cannot be recorded as CUDA graphs ({why}): use --set cuda_graphs=false."
        ) from error
    return cast(Callable[[Tensor, Tensor], Tensor], recorded)


@contextmanager
def deterministic(device: str, wanted: bool) -> Iterator[None]:
    """Let torch take the kernels that repeat, while training computes on a GPU; on a CPU there are no others.

    Several of the other kernels add up in an order of their own.
    """
    if not wanted or not device.startswith("cuda"):
        yield
        return
    # By NVIDIA's documentation cuBLAS repeats products only with workspaces of a fixed size.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    settings: Any = torch_deterministic
    before = torch.are_deterministic_algorithms_enabled(), settings.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    # Memory that is not written yet need not be filled: nothing reads it.
    settings.fill_uninitialized_memory = False
    try:
        yield
    except RuntimeError as error:
        if "deterministic" not in str(error):
            raise
        why = str(error).partition(",")[0]
        raise UserError(f"{why}: --set deterministic=false trains without the same bits each time.") from error
    finally:
        torch.use_deterministic_algorithms(before[0])
        settings.fill_uninitialized_memory = before[1]
