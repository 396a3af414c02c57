"""How long work tells how far it is, without knowing who listens."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

Progress = Callable[[str, int, int], None]
"""Called as `progress(stage, done, total)`; `total` is 0 where it is not known."""


@runtime_checkable
class Describer(Protocol):
    """A progress that also takes words about a stage, such as what is running just now."""

    def describe(self, stage: str, about: str) -> None:
        """Say something about a stage that has begun."""


def describe(progress: object, stage: str, about: str) -> None:
    """Say something about a stage that has begun, where the progress takes words."""
    if isinstance(progress, Describer):
        progress.describe(stage, about)


def silent(_stage: str, _done: int, _total: int) -> None:
    """Tell nobody."""
