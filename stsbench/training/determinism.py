"""The same bits each time on a GPU, where several kernels add up in an order of their own unless they are told."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import deterministic as torch_deterministic

from stsbench.base.errors import UserError

_WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
"""How large the workspaces of cuBLAS are: by NVIDIA's documentation, products repeat only with fixed ones."""


@contextmanager
def deterministic(device: str, wanted: bool) -> Iterator[None]:
    """Let torch take the kernels that repeat, while training computes on a GPU; on a CPU there are no others."""
    if not wanted or not device.startswith("cuda"):
        yield
        return
    os.environ.setdefault(_WORKSPACE, ":4096:8")
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
