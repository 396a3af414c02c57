"""Results that answer in two shapes, each computed when one of its keys is read."""

import logging
from collections.abc import Callable, ItemsView, Iterator, Sequence, ValuesView
from typing import Any

Shape = tuple[Sequence[str], Callable[[], dict[str, Any]]]
"""The keys of a shape, and what computes their values."""


class TwoShapes(dict[str, Any]):
    """One task's results by the keys of several shapes.

    A shape is computed, once, when one of its keys is read; which keys there are is known before. Whatever needs
    all values (printing, comparing, copying, pickle, JSON) computes all shapes; a copy or a pickle is a plain
    dictionary.

    Args:
        *shapes: the keys of each shape, and what returns their values.

    >>> result = TwoShapes((["test"], lambda: {"test": 0.5}), (["mse"], lambda: {"mse": 1 / 0}))
    >>> "mse" in result, list(result), result["test"]
    (True, ['test', 'mse'], 0.5)
    """

    def __init__(self, *shapes: Shape) -> None:
        # The keys stand in the dictionary from the start: JSON's encoder asks it whether it is empty.
        super().__init__({key: None for keys, _ in shapes for key in keys})
        self._waiting = {key: shape for shape in shapes for key in shape[0]}

    def __getitem__(self, key: str) -> Any:
        """Return a value, computed with the others of its shape where it is the first of them."""
        if key in self._waiting:
            keys, compute = self._waiting[key]
            values = compute()
            logging.debug("%s", {name: value for name, value in values.items() if name != "yhat"})
            for name in keys:
                super().__setitem__(name, values[name])
                del self._waiting[name]
        elif key not in self:
            raise KeyError(f"{key!r}: there are {', '.join(self)}")
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value, or the default where there is no such key."""
        return self[key] if key in self else default  # noqa: SIM401

    def copy(self) -> dict[str, Any]:
        """Return all values in a plain dictionary."""
        return {key: self[key] for key in self}

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]  # (not the C type, which nobody can make)
        """Return all keys and values."""
        return self.copy().items()

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        """Return all values."""
        return self.copy().values()

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys; `dict(...)` reads no value behind the back of a class that says how."""
        return super().__iter__()

    def __eq__(self, other: object) -> bool:
        """Return whether all values are those of another dictionary."""
        return self.copy() == other

    __hash__ = None

    def __repr__(self) -> str:
        """Return all values, written as a dictionary."""
        return repr(self.copy())

    def __reduce__(self) -> tuple[Any, ...]:
        """Be a plain dictionary in a pickle."""
        return dict, (self.copy(),)
