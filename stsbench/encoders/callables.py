"""Any callable `list[str] -> array` as an encoder: a user's function, or a library's model."""

import pkgutil
import sys
import sysconfig
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.encoders.protocol import (
    DeviceOutOfMemory,
    FloatMatrix,
    Identity,
    OwnPooling,
    TokenSequence,
    as_float32,
)
from stsbench.encoders.use import USUAL, Use, own_use

EncodeFunction = Callable[[list[str]], Any]


@dataclass
class CallableEncoder(OwnPooling):
    """Passes sentences to a callable and checks what it returns.

    Attributes:
        encode: takes a list of sentences, returns an array or tensor of shape (sentences, dimensions).
        identity: its name and kind. Without a weight hash its vectors are not cached.
        load: prepares `encode`; called before the first sentence, possibly more than once.
        token_budget: characters per call: enough for the callable to batch as it likes.
    """

    encode: EncodeFunction
    identity: Identity
    notes: tuple[str, ...] = ()
    load: Callable[[], object] | None = None
    token_budget: int = 65_536

    def prepare(self, *, weights: bool) -> None:
        if weights and self.load is not None:
            self.load()

    def vectors(self, sequences: Sequence[TokenSequence]) -> FloatMatrix:
        name, texts = self.identity.name, [str(sequence) for sequence in sequences]
        try:
            returned = self.encode(list(texts))
        except UserError:
            raise
        except Exception as error:
            if type(error).__name__ == "OutOfMemoryError":  # torch's; torch may not be installed
                raise DeviceOutOfMemory(str(error)) from error
            raise UserError(
                f"{name} raised {_described(error)} for {len(texts)} sentences. Fix it there."
            ) from error
        expected = f"Return an array of real numbers of shape ({len(texts)}, dimensions)."
        try:
            values = _as_array(returned)
        except (TypeError, ValueError, OverflowError, RuntimeError) as error:
            raise UserError(
                f"{name} returned {type(returned).__name__}, not a matrix of numbers. {expected}"
            ) from error
        if values.dtype.kind not in "fiub" or values.ndim != 2 or len(values) != len(texts) or not values.shape[1]:
            raise UserError(
                f"{name} returned {values.dtype} of shape {values.shape} for {len(texts)} sentences. {expected}"
            )
        # A copy, because a callable may reuse its array.
        return as_float32(values, name)


def is_callable(value: object) -> bool:
    """Returns whether a value can be wrapped: a callable, or an object with a method `encode`."""
    return callable(value) or (not isinstance(value, str) and callable(getattr(value, "encode", None)))


def from_function(encode: Any, use: Use = USUAL, *, name: str | None = None) -> CallableEncoder:
    """Wraps a callable `list[str] -> array`, or an object with such a method `encode`.

    >>> encoder = from_function(lambda sentences: [[len(s), 1.0] for s in sentences], name="length")
    >>> encoder.forward(["ab", "abc"], ["own"])["own"].tolist()
    [[2.0, 1.0], [3.0, 1.0]]
    """
    # First the method: a sentence-transformers model is callable too, but on tensors.
    method = getattr(encode, "encode", encode)
    definition = encode if hasattr(encode, "__qualname__") else type(encode)
    name = name or f"{definition.__module__}:{definition.__qualname__}"
    note = f"{name} is a callable without a weight file to hash, so its vectors are not cached."
    return CallableEncoder(method, Identity(name, "function", own_use("own", use)), (note,))


def import_function(target: str, use: Use = USUAL) -> CallableEncoder:
    """Imports `module:function`, also from the current folder, and wraps it."""
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute:
        raise UserError(f"{target!r} does not name a callable. Write module:function.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        member = pkgutil.resolve_name(target)
    except Exception as error:
        raise UserError(f"cannot import {target}: {_described(error)}. Run from its folder, or fix it.") from error
    if not is_callable(member):
        raise UserError(f"{target} is a {type(member).__name__}, not a callable list[str] -> array.")
    return from_function(member, use, name=target)


def _as_array(returned: Any) -> NDArray[Any]:
    """Converts a callable's result to an array without rounding it."""
    if hasattr(returned, "detach"):
        # NumPy has no bfloat16.
        returned = (returned if returned.is_complex() else returned.double()).numpy(force=True)
    if np.ma.is_masked(returned):
        raise ValueError("some numbers are masked")
    array = np.asarray(returned)
    # A list of tensors, or of Python's large integers.
    return np.array(returned, dtype=np.float64) if array.dtype == object and array.ndim == 2 else array


def _described(error: Exception) -> str:
    """Formats an exception with the line that raised it."""
    message = f"{type(error).__name__}: {error}".strip().partition("\n")[0]
    not_shown = "<frozen", sysconfig.get_path("stdlib"), str(Path(__file__))
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(not_shown)
    ]
    if not frames or isinstance(error, SyntaxError):  # a syntax error's message names its place
        return message
    return f"{message} ({frames[-1].filename}, line {frames[-1].lineno})"
