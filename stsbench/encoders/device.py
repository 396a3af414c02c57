"""Which device to compute on, found without loading torch where the answer is plain."""

import ctypes
import platform
import sys
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion

DEVICES = ("auto", "cpu", "cuda", "mps")
PRECISIONS = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
"""What a person calls each precision, and what torch does."""


def resolve_device(device: str) -> str:
    """Return `cpu`, `cuda` or `mps` for a wanted device; `auto` takes the fastest there is.

    Loading torch takes seconds, which a run served from the cache does not otherwise need. So where the
    machine has no accelerator's driver, the answer is `cpu` without asking torch.

    Raises:
        UserError: if the device is unknown or not there.
    """
    if device not in DEVICES:
        raise UserError(f"unknown device {device!r}: {suggestion(device, DEVICES)}")
    if device == "cpu" or (device == "auto" and not _may_have_accelerator()):
        return "cpu"
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
    # NVIDIA's driver brings the library that torch itself opens; AMD's shows as a device node.
    return _opens("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1") or Path("/dev/kfd").exists()


def _opens(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
