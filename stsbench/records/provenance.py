"""Where a record was made: versions, threads, command line. Nothing that names a person or a machine."""

import getpass
import platform
import re
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from stsbench.base.machine import cores

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
_END_OF_NAME = r"(?![\w-]|\.\w)"
_HOMES = re.compile(r"(/home/|/Users/|[A-Za-z]:[\\/]Users[\\/])[^/\\:'\",;\s]+")


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
    return cores()


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def command_line(arguments: Sequence[str]) -> str:
    """Return a command line as it could be typed again, home folder and user name redacted."""
    return redact(shlex.join([Path(arguments[0]).name, *arguments[1:]])) if arguments else ""


def redact(text: str) -> str:
    """Return text that names nobody: the home folder as `~`, user names in other folders as `...`.

    Characters that UTF-8 cannot hold (of file names in another encoding) are written out, so that the text can
    be stored.

    >>> redact("/home/somebody/models/a")
    '/home/.../models/a'
    """
    text = text.encode("utf-8", errors="backslashreplace").decode("utf-8")
    home = str(Path.home())
    if len(home) > 1:
        text = re.sub(re.escape(home) + _END_OF_NAME, "~", text)
    text = _HOMES.sub(r"\g<1>...", text)
    user = _user()
    # Scratch and project folders bear the name too. A model of that owner on the Hub keeps it: no slash before.
    return re.sub(rf"(?<=[/\\]){re.escape(user)}{_END_OF_NAME}", "...", text) if user else text


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
