"""Where training runs: CUDA graphs and deterministic kernels on a GPU, and several processes in one training.

Every process reads the whole batch and encodes its share. Each computes the loss of all gathered vectors, with
gradient through its share, and the gradients add up to those of a single process.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.utils import deterministic as torch_deterministic

from stsbench.base.errors import UserError
from stsbench.base.machine import is_of_memory

WIDTH = 8
"""Sequences are padded to a multiple of this width, so that there are few shapes."""

_RECORDED_FROM = 3
"""A shape is recorded at this use, because that of an epoch's last batch is rare."""

_MOST_GRAPHS = 12


@dataclass(frozen=True)
class World:
    """The processes that train together."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def share(self, rows: int) -> slice:
        """Returns this process's share of `rows` rows: contiguous, and of nearly equal size."""
        return self._shares(rows)[self.rank]

    def gather(self, own: Tensor, rows: int) -> Tensor:
        """Returns the rows of all processes, (rows, d), with gradient to this one's share, (n, d)."""
        if self.size == 1:
            return own
        shares = self._shares(rows)
        # Collectives need equal shapes: shares are padded to the largest, and cut again.
        longest = shares[0].stop
        padded = own.new_zeros((longest, own.shape[1]))
        padded[: len(own)] = own.detach()
        gathered = [torch.empty_like(padded) for _ in shares]
        dist.all_gather(gathered, padded)
        parts = [part[: place.stop - place.start] for part, place in zip(gathered, shares, strict=True)]
        parts[self.rank] = own
        return torch.cat(parts)

    def add_up(self, value: Tensor) -> Tensor:
        """Returns the sum of a tensor over all processes, without gradient."""
        value = value.detach().clone()
        if self.size > 1:
            dist.all_reduce(value)
        return value

    def add_up_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        if self.size == 1:
            return
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        # A process without rows in a short last batch has no gradients.
        used = self.add_up(torch.tensor([float(p.grad is not None) for p in trained], device=trained[0].device))
        trained = [parameter for parameter, count in zip(trained, used.tolist(), strict=True) if count]
        for parameter in trained:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)

    def wait(self) -> None:
        if self.size > 1:
            dist.barrier()

    def leave(self) -> None:
        if self.size > 1:
            dist.destroy_process_group()

    def _shares(self, rows: int) -> list[slice]:
        ends = [(rows * (rank + 1) + self.size - 1) // self.size for rank in range(self.size)]
        return [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def join_world(device: str) -> tuple[World, str]:
    """Joins the group of processes; returns it and this one's device."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return World(), device
    local = int(os.environ.get("LOCAL_RANK", os.environ.get("RANK", "0")))
    if device == "mps":
        raise UserError("several processes need --device cpu or cuda: torch has no collectives for mps.")
    if device == "cuda":
        torch.cuda.set_device(local)
    if not dist.is_initialized():
        dist.init_process_group("nccl" if device == "cuda" else "gloo")
    return World(dist.get_rank(), dist.get_world_size()), f"cuda:{local}" if device == "cuda" else device


@dataclass
class Graphs:
    """The recordings of a training; each pass of a step has its own, with its own gradients."""

    _uses: Counter[Any] = field(default_factory=Counter)
    _turns: Counter[Any] = field(default_factory=Counter)
    _recorded: dict[Any, Callable[[Tensor, Tensor], Tensor]] = field(default_factory=dict)

    def start_step(self) -> None:
        self._turns.clear()

    def __call__(self, model: Any, embedded: Tensor, mask: Tensor, dropout: bool, seed: int | None) -> Tensor:
        """Returns the pooled vectors of a padded chunk, from a recording or not."""
        shape = (id(model), *embedded.shape, dropout, torch.is_grad_enabled())
        key = (*shape, self._turns[shape])
        self._turns[shape] += 1
        self._uses[key] += 1
        if key not in self._recorded and self._uses[key] >= _RECORDED_FROM and len(self._recorded) < _MOST_GRAPHS:
            self._recorded[key] = _record(_Pass(model), embedded, mask)
        if seed is not None:  # after recording, which draws
            torch.manual_seed(seed)
        play: Callable[[Tensor, Tensor], Tensor] = self._recorded.get(key) or model.padded
        return play(embedded, mask)


class _Pass(nn.Module):
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
    """Lets torch use deterministic kernels only, on a GPU; a CPU has no others."""
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
        raise UserError(f"{why}: --set deterministic=false trains without reproducing every bit.") from error
    finally:
        torch.use_deterministic_algorithms(before[0])
        settings.fill_uninitialized_memory = before[1]
