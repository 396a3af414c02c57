"""How a record was made: versions, threads, command line; without names of users and machines."""

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
    *("numpy", "pandas", "pyarrow", "safetensors", "scipy"),
    *("sentence-transformers", "tokenizers", "torch", "transformers"),
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
    """Return the number of threads that torch uses, or would use."""
    if "torch" in sys.modules:
        count: int = sys.modules["torch"].get_num_threads()
        return count
    return cores()


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def command_line(arguments: Sequence[str]) -> str:
    """Return a command line that can be typed again, home folder and user name redacted."""
    return redact(shlex.join([Path(arguments[0]).name, *arguments[1:]])) if arguments else ""


def redact(text: str) -> str:
    """Return text without user names: the home folder becomes `~`, user names in other folders `...`.

    >>> redact("/home/ada/models/a")
    '/home/.../models/a'
    """
    # Python reads file names in another encoding with lone surrogates, which cannot be stored.
    text = text.encode(errors="backslashreplace").decode()
    home = str(Path.home())
    if len(home) > 1:
        text = re.sub(re.escape(home) + _END_OF_NAME, "~", text)
    text = _HOMES.sub(r"\g<1>...", text)
    user = _user()
    # Scratch folders contain user names, too. In a Hub model's name, `user/name`, no slash comes before.
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
