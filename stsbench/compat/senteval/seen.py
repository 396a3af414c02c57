"""Vectors of sentences that a batcher has been handed before: what `--cache` keeps, in memory."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.compat.senteval.utils import dotdict

Encode = Callable[[Sequence[str]], NDArray[np.float32]]


class SeenSentences:
    """One vector for each sentence, as long as the batcher and its parameters stay what they were.

    Only one batcher's vectors are kept. They are forgotten when another comes, or when anything in the parameters
    is another than before (`prepare` left something of the new task there, say); `current_task` alone may change.
    That the model behind a batcher was replaced cannot be seen from here.

    Attributes:
        handed: how many sentences were asked for.
        encoded: how many of them a batcher was handed.
    """

    def __init__(self) -> None:
        self.handed = self.encoded = 0
        self._owner: tuple[Any, dict[str, Any]] | None = None
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def vectors(
        self, sentences: Sequence[str], params: dotdict, batcher: Any, encode: Encode
    ) -> NDArray[np.float32]:
        """Return one vector for each sentence, (n, d); `encode` is asked for those that are new, each once.

        Sentences are one if their tokens are.
        """
        parameters = {name: value for name, value in params.items() if name != "current_task"}
        if self._owner is None or self._owner[0] != batcher or not _alike(self._owner[1], parameters):
            self._owner, self._vectors = (batcher, parameters), {}
        keys = [" ".join(sentence.split()) for sentence in sentences]
        new = [key for key in dict.fromkeys(keys) if key not in self._vectors]
        if new:
            vectors = encode(new)
            before = next(iter(self._vectors.values()), vectors[0])
            if before.shape != vectors[0].shape:
                raise UserError(
                    f"batcher returned vectors of {len(before)} numbers and now of {len(vectors[0])}: leave out "
                    "--cache, which is for batchers whose vectors depend on the sentence alone."
                )
            self._vectors |= dict(zip(new, vectors, strict=True))
        self.handed += len(keys)
        self.encoded += len(new)
        return np.stack([self._vectors[key] for key in keys])

    def sentence(self) -> str:
        """Return what was saved, in words."""
        return (
            f"--cache: of {self.handed:,} sentences {self.handed - self.encoded:,} had been encoded before "
            "and were not encoded again."
        )


SEEN = SeenSentences()
"""What the process keeps: scripts make a new `SE` for each task."""


def _alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether parameters are the same objects, or equal settings."""
    return one.keys() == other.keys() and all(
        value is other[name]
        or (isinstance(value, str | int | float | dict | tuple) and _equal(value, other[name]))
        for name, value in one.items()
    )


def _equal(value: object, other: object) -> bool:
    try:
        return bool(value == other)
    except (TypeError, ValueError):
        # Dictionaries and tuples of arrays do not say whether they are equal.
        return False
