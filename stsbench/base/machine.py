"""Cores, memory and Ray clusters that this process may use, and the date in `SOURCE_DATE_EPOCH`."""

import math
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stsbench.base.errors import UserError, require

_MEMORY = Path("/proc/meminfo")


def cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_bytes() -> int | None:
    """Returns the free memory in bytes; None where the system does not report it."""
    if not _MEMORY.exists():
        return None
    lines = _MEMORY.read_text().splitlines()
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)


def require_memory(needed: int, what: str, advice: str) -> None:
    """Raises a UserError, with a remedy, if the data `what` (a plural) needs more bytes than are free.

    Does nothing if the system does not report the free memory.
    """
    available = available_bytes()
    if available is not None and needed > available:
        raise UserError(
            f"{what} take {needed / 1e9:,.1f} GB of memory, of which {available / 1e9:,.1f} GB are free: {advice}."
        )


def is_of_memory(error: Exception) -> bool:
    """Returns whether an error means that memory ran out; on a CPU torch raises a RuntimeError."""
    signs = ("out of memory", "not enough memory", "allocate memory")
    return isinstance(error, MemoryError) or any(sign in str(error) for sign in signs)


def ray_cluster() -> Any:
    """Connects to the Ray cluster in `RAY_ADDRESS`, or to a new local one, and returns the `ray` module.

    Raises a UserError if Ray is not installed, or no cluster answers.
    """
    require("ray", "--on ray")
    import ray

    try:
        if not ray.is_initialized():
            ray.init(configure_logging=False, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        place, reason = os.environ.get("RAY_ADDRESS", "on this machine"), str(error).splitlines()[0]
        raise UserError(f"no Ray cluster answers {place} ({reason}): start one with `ray start`.") from error
    return ray


def source_date() -> datetime | None:
    """Returns the date in `SOURCE_DATE_EPOCH`, or None without one; raises a UserError if it is not a date.

    An empty variable is removed, because libraries that read it fail on it.
    """
    value = os.environ.get("SOURCE_DATE_EPOCH")
    if not value:
        os.environ.pop("SOURCE_DATE_EPOCH", None)
        return None
    try:
        return datetime.fromtimestamp(int(value) if value.isdecimal() else math.inf, UTC)
    except (ValueError, OverflowError, OSError):
        raise UserError(f"SOURCE_DATE_EPOCH is {value!r}: give seconds since 1970, or leave it out.") from None
