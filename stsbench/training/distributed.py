"""Several processes in one training, started by `torchrun` or `accelerate launch`.

Every process reads the whole batch and encodes its share. Each computes the loss of all gathered vectors, with
gradient through its share, and the gradients add up to those of a single process.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch import distributed as dist

from stsbench.base.errors import UserError


@dataclass(frozen=True)
class World:
    """The processes that train together."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process is the one that evaluates, saves and prints."""
        return self.rank == 0

    def share(self, rows: int) -> slice:
        """Return this process's share of `rows` rows: contiguous, and of nearly equal size."""
        return self._shares(rows)[self.rank]

    def gather(self, own: Tensor, rows: int) -> Tensor:
        """Return the rows of all processes, (rows, d), with gradient to this one's share, (n, d)."""
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
        """Return the sum of a tensor over all processes, without gradient."""
        value = value.detach().clone()
        if self.size > 1:
            dist.all_reduce(value)
        return value

    def add_up_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Give each parameter the sum of its gradients over all processes."""
        if self.size == 1:
            return
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        # A process without rows in a short last batch has no gradients.
        used = self.add_up(torch.tensor([float(p.grad is not None) for p in trained], device=trained[0].device))
        trained = [parameter for parameter, count in zip(trained, used.tolist(), strict=True) if count]
        for parameter in trained:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        flat = torch.cat([parameter.grad.flatten() for parameter in trained if parameter.grad is not None])
        dist.all_reduce(flat)
        start = 0
        for parameter in trained:
            size = parameter.numel()
            parameter.grad = flat[start : start + size].view_as(parameter)
            start += size

    def wait(self) -> None:
        """Wait for the other processes."""
        if self.size > 1:
            dist.barrier()

    def leave(self) -> None:
        """Leave the group of processes."""
        if self.size > 1:
            dist.destroy_process_group()

    def _shares(self, rows: int) -> list[slice]:
        ends = [(rows * (rank + 1) + self.size - 1) // self.size for rank in range(self.size)]
        return [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def join_world(device: str) -> tuple[World, str]:
    """Join the group of processes; return it and this one's device."""
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
