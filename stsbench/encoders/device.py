"""Devices, back ends and attention kernels: which exist, and which can be combined."""

import ctypes
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.base.extras import MODELS, missing, require
from stsbench.base.words import suggestion
from stsbench.encoders.poolers import AUTO
from stsbench.encoders.use import ATTENTIONS, FLASH, FP32, MASKS, PRECISIONS, TORCH, Use, option_of

DEVICES = ("auto", "cpu", "cuda", "mps")

DEVICE_OF_JOBS = "STSBENCH_DEVICE"
"""The environment variable by which a sweep passes its `--device` to the processes of its jobs."""

BACKENDS = {TORCH: tuple(PRECISIONS), "openvino": ("fp32", "bf16", "int8")}
"""The precisions of each program. In those that are missing, a vector would depend on its batch."""


def require_backend(use: Use) -> None:
    """Refuses a back end or precision that does not exist or is not installed, and another device than its CPU."""
    backend, precision = use.backend, use.precision
    if backend not in BACKENDS:
        raise UserError(f"unknown back end {backend!r}: {suggestion(backend, BACKENDS)}")
    if precision not in BACKENDS[backend]:
        raise UserError(f"{backend} has no precision {precision!r}. Use {', '.join(BACKENDS[backend])}.")
    if backend != TORCH:
        if use.device not in {"auto", "cpu"}:
            raise UserError(f"--backend {backend} computes on the CPU. Leave out --device {use.device}.")
        require(backend, f"--backend {backend}")


def require_attention(use: Use) -> None:
    """Refuses an unknown attention kernel or mask, and either with a back end, which compiles its own."""
    for name, known in (("attention", ATTENTIONS), ("attention_mask", MASKS)):
        value = getattr(use, name)
        if value not in {AUTO, *known}:
            raise UserError(f"unknown {option_of(name)} {value!r}: {suggestion(value, [AUTO, *known])}")
        if value != AUTO and use.backend != TORCH:
            raise UserError(f"{option_of(name)} needs torch: leave it out, or leave out --backend {use.backend}.")
    if use.attention == FLASH and (
        find_spec("flash_attn") is None or use.precision == FP32 or use.device in {"cpu", "mps"}
    ):
        raise UserError(
            f"--attention {FLASH} needs the package flash-attn, --device cuda and --precision bf16 or fp16. "
            "Otherwise use sdpa."
        )


def resolve_device(device: str) -> str:
    """Returns `cpu`, `cuda` or `mps`; `auto` becomes the fastest device available, in a sweep's job the sweep's.

    Without an accelerator's driver the answer is `cpu` without importing torch, which a cached run does not need.
    """
    if device == "auto":
        device = os.environ.get(DEVICE_OF_JOBS, device)
    if device not in DEVICES:
        raise UserError(f"unknown device {device!r}: {suggestion(device, DEVICES)}")
    if device == "cpu" or (device == "auto" and (not _may_have_accelerator() or missing(MODELS))):
        return "cpu"
    require(MODELS, f"device {device}")
    import torch

    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if device == "auto":
        return next((name for name in available if available[name]), "cpu")
    if not available[device]:
        raise UserError(f"device {device} is not available to torch {torch.__version__}. Use --device cpu.")
    return device


def _may_have_accelerator() -> bool:
    if "torch" in sys.modules or sys.platform != "linux":
        return True
    try:
        ctypes.CDLL("libcuda.so.1")  # NVIDIA's driver
    except OSError:
        return Path("/dev/kfd").exists()  # AMD's
    return True
