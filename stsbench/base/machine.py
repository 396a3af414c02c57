"""The cores and the memory that this process may use."""

import os
import platform
from contextlib import suppress
from pathlib import Path

from stsbench.base.errors import UserError

_CGROUP = Path("/sys/fs/cgroup")
_CPUINFO = Path("/proc/cpuinfo")


def cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    """Returns the processor's name and instruction sets, as far as the system reports them."""
    fields = [line.partition(":") for line in _lines(_CPUINFO)]
    lines = [value.strip() for name, _, value in fields if name.strip() in {"model name", "flags", "Features"}]
    return " ".join(dict.fromkeys(lines)) or platform.processor()


def thread_limits(count: int) -> dict[str, str]:
    """Returns the environment variables that limit the numerical libraries of a new process to some threads.

    Processes that share the cores without such a limit take three times as long.
    """
    libraries = ("OMP_NUM", "MKL_NUM", "OPENBLAS_NUM", "NUMEXPR_NUM", "VECLIB_MAXIMUM", "RAYON_NUM")
    return {f"{library}_THREADS": str(count) for library in libraries}


def available_bytes() -> int | None:
    """Returns the memory in bytes that machine and container leave; None where the system does not report it."""
    known = [limit for limit in (_of_machine(), _of_container()) if limit is not None]
    return max(0, min(known)) if known else None


def require_memory(needed: int, what: str, advice: str) -> None:
    """Checks that data fits into the free memory, where the system reports it.

    Args:
        needed: the size in bytes.
        what: the data, as the beginning of a sentence in the plural.
        advice: the remedy, for the message.

    Raises:
        UserError: if it does not fit.
    """
    available = available_bytes()
    if available is not None and needed > available:
        raise UserError(
            f"{what} take {needed / 1e9:,.1f} GB of memory, of which {available / 1e9:,.1f} GB are free: {advice}."
        )


def is_of_memory(error: Exception) -> bool:
    """Returns whether an error means that memory ran out, for which torch raises a RuntimeError on a CPU.

    >>> is_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory")), is_of_memory(ValueError("no"))
    (True, False)
    """
    signs = ("out of memory", "not enough memory", "allocate memory")
    return isinstance(error, MemoryError) or any(sign in str(error) for sign in signs)


def _of_machine() -> int | None:
    lines = _lines(Path("/proc/meminfo"))
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)


def _of_container() -> int | None:
    with suppress(ValueError, IndexError):  # "max" means no limit
        limit, used = (int(_lines(_CGROUP / name)[0]) for name in ("memory.max", "memory.current"))
        # Cached pages of files count as used, though they are given back when memory is short.
        statistics = map(str.split, _lines(_CGROUP / "memory.stat"))
        return limit - used + sum(int(words[1]) for words in statistics if words[0] == "inactive_file")
    return None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
