"""Results that answer in several shapes, each computed when one of its keys is read."""

import logging
from collections.abc import (
    Callable,
    ItemsView,
    Iterator,
    KeysView,
    MutableMapping,
    Sequence,
    ValuesView,
)
from typing import Any

Shape = tuple[Sequence[str], Callable[[], dict[str, Any]]]
"""The keys of a shape, and what computes their values."""

ARRAY = "yhat"
"""The one key whose value is an array, which JSON does not take: it answers, and is never among the keys."""


class Results(dict[str, Any]):
    """One task's results by the keys of several shapes.

    A shape is computed, once, when one of its keys is read; which keys there are is known before. Whatever needs
    all values (printing, comparing, copying, pickle, JSON) computes the shapes that are listed, and takes of the
    others what was read of them; a copy or a pickle is a plain dictionary.

    Args:
        *listed: the keys of each shape, and what returns their values.
        on_request: a shape that is computed where one of its keys is read, and by nothing else.

    >>> result = Results((["test"], lambda: {"test": 0.5}), on_request=(["mse"], lambda: {"mse": 2.0}))
    >>> list(result), "mse" in result, result["mse"], list(result)
    (['test'], True, 2.0, ['test', 'mse'])
    """

    def __init__(self, *listed: Shape, on_request: Shape | None = None) -> None:
        shapes = [*listed, *([on_request] if on_request else [])]
        # The keys stand in the dictionary from the start: JSON's encoder asks it whether it is empty.
        super().__init__({key: None for keys, _ in shapes for key in keys})
        self._waiting = {key: shape for shape in shapes for key in shape[0]}
        self._hidden = set(on_request[0]) if on_request else set()

    def __getitem__(self, key: str) -> Any:
        """Return a value, computed with the others of its shape where it is the first of them."""
        if key in self._waiting:
            keys, compute = self._waiting[key]
            values = compute()
            logging.debug("%s", {name: value for name, value in values.items() if name != ARRAY})
            for name in keys:
                if self._waiting.pop(name, None):
                    super().__setitem__(name, values[name])
            self._hidden -= set(keys)
        elif key not in self:
            raise KeyError(f"{key!r}: there are {', '.join(super().keys())}")
        return super().__getitem__(key)

    def __setitem__(self, key: str, value: Any) -> None:
        """Set a value; it is not computed any more."""
        self._forget(key)
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        """Delete a key; its value is not computed any more."""
        super().__delitem__(key)
        self._forget(key)

    def _forget(self, key: str) -> None:
        self._waiting.pop(key, None)
        self._hidden.discard(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value, or the default where there is no such key."""
        return self[key] if key in self else default  # noqa: SIM401

    def pop(self, key: str, *default: Any) -> Any:
        """Return a value and delete its key, or return the default where there is no such key."""
        if key not in self and default:
            return default[0]
        value = self[key]
        del self[key]
        return value

    # A dictionary's own `update` would be undone when the value is computed.
    update = MutableMapping.update

    def copy(self) -> dict[str, Any]:
        """Return all values in a plain dictionary."""
        return {key: self[key] for key in self}

    def keys(self) -> KeysView[str]:  # type: ignore[override]  # (not the C type, which nobody can make)
        """Return the keys: those of the shapes that are listed, and of one that was asked for."""
        return dict.fromkeys(self).keys()

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        """Return all keys and values."""
        return self.copy().items()

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        """Return all values."""
        return self.copy().values()

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys; `dict(...)` reads no value behind the back of a class that says how."""
        return (key for key in list(super().__iter__()) if key != ARRAY and key not in self._hidden)

    def __len__(self) -> int:
        """Return how many keys there are."""
        return len(list(iter(self)))

    def __eq__(self, other: object) -> bool:
        """Return whether all values are those of another dictionary."""
        return self.copy() == other

    def __ne__(self, other: object) -> bool:
        """Return whether any value is not that of another dictionary: `dict` has a comparison of its own."""
        return not self == other

    __hash__ = None

    def __repr__(self) -> str:
        """Return all values, written as a dictionary."""
        return repr(self.copy())

    def __reduce__(self) -> tuple[Any, ...]:
        """Be a plain dictionary in a pickle, which takes the array too, if there is one by now."""
        known = {ARRAY: self[ARRAY]} if ARRAY in self and ARRAY not in self._waiting else {}
        return dict, (self.copy() | known,)
