"""Where stsbench keeps what it can make again."""

import os
from pathlib import Path

from platformdirs import user_cache_dir


def cache_dir() -> Path:
    """Return the cache folder: `STSBENCH_CACHE` if set, else the platform's own (`~/.cache/stsbench`)."""
    chosen = os.environ.get("STSBENCH_CACHE")
    return Path(chosen).expanduser() if chosen else Path(user_cache_dir("stsbench"))
