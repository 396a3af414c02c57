"""Any callable `list[str] -> array` as an encoder: a function of the person's, or a library's model."""

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stsbench.encoders.protocol import FloatMatrix, Identity, Tokenized, TokenSequence
from stsbench.foundation.errors import UserError

EncodeFunction = Callable[[list[str]], Any]

# Longest side first, a callable is handed this many "tokens" (here: characters) at a time, which leaves it
# room to batch as it likes and the person a moving progress bar.
_CHARACTERS = 65_536


@dataclass
class CallableEncoder:
    """Hands sentences to a callable and checks what comes back.

    Attributes:
        encode: takes a list of sentences, returns an array or tensor of shape (sentences, dimensions).
        identity: its name and kind. Without a weight hash its vectors are not cached.
        notes: what to tell the person.
    """

    encode: EncodeFunction
    identity: Identity
    notes: tuple[str, ...] = field(default=())

    @property
    def token_budget(self) -> int:
        """Characters in one call."""
        return _CHARACTERS

    def prepare(self, *, weights: bool) -> None:
        """Do nothing: a callable is ready, or gets so by itself."""

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        """Return the texts themselves: how a callable splits them is not known."""
        return Tokenized(list(texts), [-1] * len(texts), [False] * len(texts))

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        """Return an array of shape (len(sequences), dimensions), float32, under the one pooling there is.

        Raises:
            UserError: if the callable returned something that is not one vector a sentence.
        """
        texts = [str(sequence) for sequence in sequences]
        vectors = self._as_matrix(self.encode(texts), len(texts))
        return dict.fromkeys(poolings, vectors)

    def _as_matrix(self, returned: Any, rows: int) -> FloatMatrix:

        if hasattr(returned, "detach"):
            returned = returned.detach().float().cpu()
        try:
            vectors = np.asarray(returned, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise UserError(
                f"{self.identity.name} returned {type(returned).__name__} that is no matrix of numbers: "
                "return an array of shape (sentences, dimensions)."
            ) from error
        if vectors.ndim != 2 or len(vectors) != rows or vectors.shape[1] == 0:
            raise UserError(
                f"{self.identity.name} returned shape {vectors.shape} for {rows} sentences: "
                f"return an array of shape ({rows}, dimensions)."
            )
        return vectors


def from_function(encode: EncodeFunction, *, name: str | None = None) -> CallableEncoder:
    """Wrap a callable `list[str] -> array`.

    >>> encoder = from_function(lambda sentences: [[len(s), 1.0] for s in sentences], name="length")
    >>> encoder.forward(["ab", "abc"], ["own"])["own"].tolist()
    [[2.0, 1.0], [3.0, 1.0]]
    """
    given = name or f"{encode.__module__}:{getattr(encode, '__qualname__', type(encode).__name__)}"
    note = f"{given} is a callable: it has no weight file to hash, so its vectors are not cached."
    return CallableEncoder(encode, Identity(given, "function", "own"), (note,))


def import_function(target: str) -> CallableEncoder:
    """Import `module:function`, looking in the current folder too, and wrap it.

    Raises:
        UserError: if the module or the function is not there, or it is not callable.
    """
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute:
        raise UserError(f"{target!r} does not name a callable: write module:function.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        raise UserError(
            f"no module named {error.name!r} (for {target}): run from its folder or install it."
        ) from error
    except AttributeError as error:
        raise UserError(f"module {module_name} has no {attribute!r}: name a function that is in it.") from error
    if not callable(found):
        raise UserError(f"{target} is a {type(found).__name__}, not a callable list[str] -> array.")
    return from_function(found, name=target)
