"""Training on a GPU: passes recorded as CUDA graphs, and kernels that give the same bits each time.

A step has a thousand small kernels, which take longer to launch than to compute. A pass is recorded for its shape
and replayed in later steps: the same kernels with the same draws.
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
"""Sequences are padded to a multiple of this width, so that there are few shapes."""

_RECORDED_FROM = 3
"""The use of a shape at which it is recorded: that of an epoch's last batch is rare."""

_MOST = 12


def has_graphs(recipe: Recipe) -> bool:
    """Return whether passes of a recipe are recorded on a GPU; gradient caching runs each pass twice in a step."""
    return recipe.cuda_graphs and not recipe.optimiser.gradient_cache


@dataclass
class Graphs:
    """The recordings of a training; each pass of a step has its own, with its own gradients."""

    _uses: Counter[Any] = field(default_factory=Counter)
    _turns: Counter[Any] = field(default_factory=Counter)
    _recorded: dict[Any, Callable[[Tensor, Tensor], Tensor]] = field(default_factory=dict)

    def start_step(self) -> None:
        """Begin an optimiser step."""
        self._turns.clear()

    def __call__(
        self, model: Any, embedded: Tensor, mask: Tensor, dropout: float | None, seed: int | None
    ) -> Tensor:
        """Return the pooled vectors of a padded chunk, from a recording or not."""
        shape = (id(model), *embedded.shape, dropout, torch.is_grad_enabled())
        key = (*shape, self._turns[shape])
        self._turns[shape] += 1
        self._uses[key] += 1
        if key not in self._recorded and self._uses[key] >= _RECORDED_FROM and len(self._recorded) < _MOST:
            self._recorded[key] = _record(_Pass(model), embedded, mask)
        if seed is not None:  # after recording, which draws
            torch.manual_seed(seed)
        play: Callable[[Tensor, Tensor], Tensor] = self._recorded.get(key) or model.padded
        return play(embedded, mask)


class _Pass(nn.Module):
    """A pass of a padded chunk as a separate module, which recording changes."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model: Any = model

    def forward(self, embedded: Tensor, mask: Tensor) -> Tensor:
        pooled: Tensor = self.model.padded(embedded, mask)
        return pooled


def _record(module: _Pass, embedded: Tensor, mask: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    # The gradients of a recording come from its own stream, about which torch would warn.
    torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    sample = embedded.detach().clone().requires_grad_(embedded.requires_grad)
    try:
        # Without the cache of casts: weights change between steps.
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
    """Let torch use deterministic kernels only, on a GPU; a CPU has no others."""
    if not wanted or not device.startswith("cuda"):
        yield
        return
    # cuBLAS is deterministic only with workspaces of a fixed size (NVIDIA's documentation).
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    settings: Any = torch_deterministic
    before = torch.are_deterministic_algorithms_enabled(), settings.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
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
