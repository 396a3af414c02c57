"""Any callable `list[str] -> array` as an encoder: a function of the person's, or a library's model."""

import importlib
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.encoders.protocol import (
    DeviceOutOfMemory,
    FloatMatrix,
    Identity,
    Tokenized,
    TokenSequence,
    as_float32,
    require_own_pooling,
)
from stsbench.encoders.use import USUAL, Use, own_use

EncodeFunction = Callable[[list[str]], Any]

# Longest sentence first, a callable is handed this many "tokens" (here: characters) at a time, which leaves it
# room to batch as it likes and the person a moving progress bar.
_CHARACTERS = 65_536


@dataclass
class CallableEncoder:
    """Hands sentences to a callable and checks what comes back.

    Attributes:
        encode: takes a list of sentences, returns an array or tensor of shape (sentences, dimensions).
        identity: its name and kind. Without a weight hash its vectors are not cached.
        load: gets what `encode` needs ready; called before the first sentence, perhaps more than once.
        token_budget: characters in one call.
    """

    encode: EncodeFunction
    identity: Identity
    notes: tuple[str, ...] = ()
    load: Callable[[], None] | None = None
    token_budget: int = _CHARACTERS

    def prepare(self, *, weights: bool) -> None:
        """Load the model behind the callable, if there is one to load."""
        if weights and self.load is not None:
            self.load()

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        """Return the texts themselves: how a callable splits them is not known."""
        return Tokenized(list(texts), [-1] * len(texts), [False] * len(texts))

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        """Return an array of shape (len(sequences), dimensions), float32, under the one pooling there is."""
        require_own_pooling(self.identity, poolings)
        texts = [str(sequence) for sequence in sequences]
        handed = list(texts)
        try:
            returned = self.encode(handed)
        except UserError:
            raise
        except Exception as error:
            if type(error).__name__ == "OutOfMemoryError":  # torch's, which may not be here to import
                raise DeviceOutOfMemory(str(error)) from error
            raise UserError(
                f"{self.identity.name} raised {_described(error, getattr(self.encode, '__code__', None))} "
                f"when given {len(texts)} sentences: mend it there."
            ) from error
        if handed != texts:
            # Sorted in place, say: whose vectors came back in which order cannot be known.
            raise UserError(
                f"{self.identity.name} changes the list of sentences that it is given, so which vector belongs to "
                "which cannot be known: let it work on a copy."
            )
        return dict.fromkeys(poolings, self._as_matrix(returned, len(texts)))

    def _as_matrix(self, returned: Any, rows: int) -> FloatMatrix:
        try:
            values = _as_array(returned)
        except (TypeError, ValueError, OverflowError, RuntimeError) as error:
            raise self._no_matrix(returned) from error
        if values.dtype.kind == "c":
            raise UserError(
                f"{self.identity.name} returned complex numbers, whose imaginary parts no similarity here reads: "
                "return real ones."
            )
        if values.dtype.kind not in "fiub":
            raise self._no_matrix(returned)
        if values.ndim != 2 or len(values) != rows or values.shape[1] == 0:
            raise UserError(
                f"{self.identity.name} returned shape {values.shape} for {rows} sentences: "
                f"return an array of shape ({rows}, dimensions)."
            )
        # A copy: a callable may fill the same array again at its next call.
        return as_float32(values, self.identity.name)

    def _no_matrix(self, returned: Any) -> UserError:
        return UserError(
            f"{self.identity.name} returned {type(returned).__name__} that is no matrix of numbers: "
            "return an array of shape (sentences, dimensions)."
        )


def is_callable(value: object) -> bool:
    """Return whether something can be wrapped: a callable, or an object with a method `encode`."""
    return callable(value) or (not isinstance(value, str) and callable(getattr(value, "encode", None)))


def from_function(encode: Any, use: Use = USUAL, *, name: str | None = None) -> CallableEncoder:
    """Wrap a callable `list[str] -> array`, or an object with such a method `encode`.

    >>> encoder = from_function(lambda sentences: [[len(s), 1.0] for s in sentences], name="length")
    >>> encoder.forward(["ab", "abc"], ["own"])["own"].tolist()
    [[2.0, 1.0], [3.0, 1.0]]
    """
    # A sentence-transformers model is callable as well, but as a torch module, on tensors.
    method = getattr(encode, "encode", encode)
    definition = encode if hasattr(encode, "__qualname__") else type(encode)
    name = name or f"{definition.__module__}:{definition.__qualname__}"
    note = f"{name} is a callable: it has no weight file to hash, so its vectors are not cached."
    return CallableEncoder(method, Identity(name, "function", own_use("own", use)), (note,))


def import_function(target: str, use: Use = USUAL) -> CallableEncoder:
    """Import `module:function`, looking in the current folder too, and wrap it."""
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute:
        raise UserError(f"{target!r} does not name a callable: write module:function.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        member: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise UserError(
            f"no module named {error.name!r} (for {target}): run from its folder or install it."
        ) from error
    except Exception as error:
        raise UserError(f"importing {module_name} raised {_described(error, None)}: mend it there.") from error
    for part in attribute.split("."):
        if not hasattr(member, part):
            raise UserError(f"module {module_name} has no {attribute!r}: name a function that is in it.")
        member = getattr(member, part)
    if not is_callable(member):
        raise UserError(f"{target} is a {type(member).__name__}, not a callable list[str] -> array.")
    return from_function(member, use, name=target)


def _as_array(returned: Any) -> NDArray[Any]:
    """Return what a callable returned as an array, nothing rounded and nothing left out.

    Raises:
        TypeError, ValueError, OverflowError or RuntimeError: if it is none.
    """
    if hasattr(returned, "detach"):
        returned = returned.detach().cpu()
        # NumPy has no bfloat16.
        returned = (returned if returned.is_complex() else returned.double()).resolve_conj().numpy()
    if np.ma.isMaskedArray(returned) and np.ma.is_masked(returned):
        raise ValueError("some of its numbers are masked")
    array = np.asarray(returned)
    # A list of tensors, or of Python's own large integers.
    return np.array(returned, dtype=np.float64) if array.dtype == object and array.ndim == 2 else array


def _described(error: Exception, code: CodeType | None) -> str:
    """Return an exception's type, message and place, so that the person finds it in their own code.

    The place is the deepest line in the callable's own file, or where there is none, the deepest at all.
    """
    message = f"{type(error).__name__}: {error}".strip().partition("\n")[0]
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is ours
    in_callable = [frame for frame in frames if code is not None and frame.filename == code.co_filename]
    if not frames or isinstance(error, SyntaxError):  # which names its own place
        return message
    place = (in_callable or frames)[-1]
    return f"{message} ({place.filename}, line {place.lineno})"
