"""Progress callbacks of long work."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called as `progress(stage, done, total)`; `total` is 0 if unknown."""


def silent(_stage: str, _done: int, _total: int) -> None:
    """Ignores progress."""
