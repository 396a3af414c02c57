"""Progress callbacks of long work."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called as `progress(stage, done, total)`; `total` is 0 if unknown."""


def describe(progress: Progress, stage: str, about: str) -> None:
    """Shows a text about a stage that has begun, if the progress callback has a method for it."""
    if hasattr(progress, "describe"):
        progress.describe(stage, about)


def silent(_stage: str, _done: int, _total: int) -> None:
    """Ignores progress."""
