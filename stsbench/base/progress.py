"""How long work tells how far it is, without knowing who listens."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called as `progress(stage, done, total)`; `total` is 0 where it is not known."""


def silent(_stage: str, _done: int, _total: int) -> None:
    """Tell nobody."""
