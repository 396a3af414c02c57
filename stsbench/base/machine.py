"""What the machine leaves to this process: its cores, and its memory.

What cannot be held is refused before the work, not killed in its middle.
"""

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
"""What the libraries that compute for us read when they are loaded."""


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    """Return the processor's name and instructions, as far as the system says."""
    told = [line.partition(":") for line in _lines(_CPUINFO)]
    lines = [value.strip() for name, _, value in told if name.strip() in {"model name", "flags", "Features"}]
    return " ".join(dict.fromkeys(lines)) or platform.processor()


def threads_told(count: int) -> dict[str, str]:
    """Return the environment of a process that is to compute with so many threads.

    Processes that share the cores and are not told wait for each other's threads, and take three times as long.
    """
    return dict.fromkeys(_THREADS, str(count))


def available_bytes() -> int | None:
    """Return how many bytes can still be used; None where the system does not say.

    It is the least of what the machine has free (memory that it can take back included, swap not), and what the
    container and `ulimit -v` leave.
    """
    limits = [_of_machine(), _of_container(), _of_process()]
    known = [limit for limit in limits if limit is not None]
    return max(0, min(known)) if known else None


def require_memory(needed: int, what: str, advice: str) -> None:
    """Refuse what is larger than the memory that is free; nothing where the system does not say how much that is.

    Args:
        needed: bytes.
        what: what is to be held, as the beginning of a sentence, in the plural.
        advice: what to do instead.
    """
    available = available_bytes()
    if available is not None and needed > available:
        raise UserError(
            f"{what} take {needed / 1e9:,.1f} GB of memory, of which {available / 1e9:,.1f} GB are free: {advice}."
        )


def is_of_memory(error: Exception) -> bool:
    """Return whether an error says that memory ran out: Python's own, or a library's in its words.

    torch has a class of its own for CUDA alone.

    >>> is_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory")), is_of_memory(ValueError("no"))
    (True, False)
    """
    signs = ("out of memory", "not enough memory", "allocate memory")
    return isinstance(error, MemoryError) or any(sign in str(error) for sign in signs)


def _of_machine() -> int | None:
    lines = _lines(Path("/proc/meminfo"))
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)


def _of_container() -> int | None:
    for folder, limit, used, reclaimable in (
        (_CGROUP, "memory.max", "memory.current", "inactive_file"),
        (_CGROUP / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        # "max" stands for none.
        with suppress(ValueError, IndexError):
            most, now = (int(_lines(folder / name)[0]) for name in (limit, used))
            # Pages of files count as used, though they are given back when memory is short.
            statistics = map(str.split, _lines(folder / "memory.stat"))
            cached = [int(words[1]) for words in statistics if words[:1] == [reclaimable]]
            return most - now + sum(cached)
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
