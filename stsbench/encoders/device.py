"""Devices, back ends and attention kernels: which exist, and which can be combined."""

import ctypes
import os
import platform
import sys
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Backend:
    """A program that computes a model's layers instead of torch, on the CPU.

    Attributes:
        precisions: that it supports, the default first.
        cannot: the reason for a missing precision.
    """

    precisions: tuple[str, ...]
    cannot: str = ""


BACKENDS = {
    "openvino": Backend(("fp32", "bf16", "int8")),
    "onnx": Backend(
        ("fp32",),
        "ONNX Runtime's int8 depends on the batch, so a sentence would not have a single vector",
    ),
}


def require_precision(backend: str, precision: str) -> None:
    """Refuses an unknown back end, or a precision that it does not support."""
    if backend == TORCH:
        if precision == "int8":
            raise UserError(
                "torch's int8 depends on the batch, so a sentence would not have a single vector: use --backend "
                "openvino --precision int8."
            )
        if precision not in PRECISIONS:
            raise UserError(f"unknown precision {precision!r}: {suggestion(precision, [*PRECISIONS, 'int8'])}")
        return
    if backend not in BACKENDS:
        raise UserError(f"unknown back end {backend!r}: {suggestion(backend, BACKENDS)}")
    program = BACKENDS[backend]
    if precision not in program.precisions:
        why = f" ({program.cannot})" if program.cannot else ""
        raise UserError(f"{backend} has no {precision}{why}: use {', '.join(program.precisions)}.")


def require_backend(backend: str, device: str) -> None:
    """Refuses a back end whose packages are not installed, or another device than the CPU."""
    if device not in {"auto", "cpu"}:
        raise UserError(f"--backend {backend} computes on the CPU: leave out --device {device}.")
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
    """Returns `cpu`, `cuda` or `mps`; `auto` becomes the fastest device available.

    Without an accelerator's driver the answer is `cpu` without importing torch, which a cached run does not need.
    In a job of a sweep `auto` is the sweep's `--device`.
    """
    if device == "auto":
        device = os.environ.get(DEVICE_OF_JOBS, device)
    if device not in DEVICES:
        raise UserError(f"unknown device {device!r}: {suggestion(device, DEVICES)}")
    if device == "cpu" or (device == "auto" and (not _may_have_accelerator() or missing(MODELS))):
        return "cpu"
    require(MODELS, f"device {device}")
    import torch

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if device == "auto":
        return next((name for name, available in there.items() if available), "cpu")
    if not there[device]:
        raise UserError(f"device {device} is not available to torch {torch.__version__}: use --device cpu.")
    return device


def _may_have_accelerator() -> bool:
    if "torch" in sys.modules:
        return True
    if sys.platform == "darwin":
        return platform.machine() == "arm64"
    try:
        # NVIDIA's driver has the library that torch opens; AMD's creates a device node.
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return Path("/dev/kfd").exists()
    return True
