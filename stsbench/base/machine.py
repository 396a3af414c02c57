"""The cores and the memory that this process may use."""

import os
import platform
import sys
from contextlib import suppress
from pathlib import Path

from stsbench.base.errors import UserError

_CGROUP = Path("/sys/fs/cgroup")
_CPUINFO = Path("/proc/cpuinfo")

_THREADS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "RAYON_NUM_THREADS",
)
"""The variables that numerical libraries read when they are loaded."""


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    """Return the processor's name and instruction sets, as far as the system reports them."""
    fields = [line.partition(":") for line in _lines(_CPUINFO)]
    lines = [value.strip() for name, _, value in fields if name.strip() in {"model name", "flags", "Features"}]
    return " ".join(dict.fromkeys(lines)) or platform.processor()


def threads_told(count: int) -> dict[str, str]:
    """Return the environment variables that limit a new process to a number of threads.

    Processes that share the cores without such a limit take three times as long.
    """
    return dict.fromkeys(_THREADS, str(count))


def available_bytes() -> int | None:
    """Return the free memory in bytes; None where the system does not report it.

    It is the minimum of what the machine, the container and `ulimit -v` leave.
    """
    limits = [_of_machine(), _of_container(), _of_process()]
    known = [limit for limit in limits if limit is not None]
    return max(0, min(known)) if known else None


def require_memory(needed: int, what: str, advice: str) -> None:
    """Check that data fits into the free memory, where the system reports it.

    Args:
        needed: the size in bytes.
        what: the data, as the beginning of a sentence in the plural.
        advice: what to do instead.

    Raises:
        UserError: if it does not fit.
    """
    available = available_bytes()
    if available is not None and needed > available:
        raise UserError(
            f"{what} take {needed / 1e9:,.1f} GB of memory, of which {available / 1e9:,.1f} GB are free: {advice}."
        )


def is_of_memory(error: Exception) -> bool:
    """Return whether an error means that memory ran out.

    torch raises a RuntimeError for it on a CPU.

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


def _of_process() -> int | None:
    if sys.platform == "win32":
        return None
    import resource

    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY:
        return None
    pages = _lines(Path("/proc/self/statm"))
    return most - resource.getpagesize() * int(pages[0].split()[0]) if pages else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
