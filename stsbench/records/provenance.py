"""Where a record was made: versions, threads, command line. Nothing that names a person or a machine."""

import os
import platform
import re
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = (
    "numpy",
    "pandas",
    "pyarrow",
    "safetensors",
    "scipy",
    "sentence-transformers",
    "tokenizers",
    "torch",
    "transformers",
)
_HOMES = re.compile(r"(/home/|/Users/|[A-Za-z]:[\\/]Users[\\/])[^/\\:'\"\s]+")


def environment() -> dict[str, Any]:
    """Return Python, platform, package versions and threads."""
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
        "threads": threads(),
    }


def threads() -> int:
    """Return how many threads torch computes with, or would."""
    if "torch" in sys.modules:
        count: int = sys.modules["torch"].get_num_threads()
        return count
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def command_line(arguments: Sequence[str]) -> str:
    """Return a command line as it could be typed again, home folder redacted."""
    return redact(shlex.join([Path(arguments[0]).name, *arguments[1:]])) if arguments else ""


def redact(text: str) -> str:
    """Return text with the home folder as `~` and other people's homes without their names.

    >>> redact("/home/somebody/models/a")
    '/home/.../models/a'
    """
    home = str(Path.home())
    if len(home) > 1:
        text = re.sub(re.escape(home) + r"(?=[/\\\s'\"]|$)", "~", text)
    return _HOMES.sub(r"\g<1>...", text)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
