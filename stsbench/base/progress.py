"""Progress callbacks of long work."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

Progress = Callable[[str, int, int], None]
"""Called as `progress(stage, done, total)`; `total` is 0 if unknown."""


@runtime_checkable
class Describer(Protocol):
    """A progress callback that also shows a text about a stage."""

    def describe(self, stage: str, about: str) -> None:
        """Show a text about a stage that has begun."""


def describe(progress: object, stage: str, about: str) -> None:
    """Show a text about a stage, if the progress callback supports it."""
    if isinstance(progress, Describer):
        progress.describe(stage, about)


def silent(_stage: str, _done: int, _total: int) -> None:
    """Ignore progress."""
