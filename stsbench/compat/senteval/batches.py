"""Encode sentences with a script's `prepare` and `batcher`, and return results computed when they are read."""

import hashlib
import logging
from collections.abc import Callable, Iterator, KeysView, MutableMapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.compat.senteval.utils import dotdict

Tokens = Sequence[str] | Sequence[bytes]
Batcher = Callable[[dotdict, list[Tokens]], Any]
Prepare = Callable[[dotdict, list[Tokens]], Any]

SIDES = ("sentence1", "sentence2")

Shape = tuple[Sequence[str], Callable[[], dict[str, Any]]]
"""The keys of one kind of results, and the function that computes their values."""

ARRAY = "yhat"
"""The one key whose value is an array, which JSON cannot store: it can be read but is not listed."""


@dataclass(frozen=True)
class Script:
    """The arguments of a script for SentEval.

    Attributes:
        params: SentEval's parameters, with entries of the script for its own functions.
        batcher: called batch by batch.
        prepare: called with all sentences of a task, before the first of them is encoded.
    """

    params: dotdict
    batcher: Batcher
    prepare: Prepare

    def tokens_of(self, sentences: Sequence[str]) -> list[Tokens]:
        """Return each sentence's tokens; as bytes if `params.tokens` is "bytes"."""
        if self.params.tokens == "bytes":
            return [[token.encode() for token in sentence.split()] for sentence in sentences]
        return [sentence.split() for sentence in sentences]

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector for each sentence, batch by batch in the order given.

        With `params.cache`, the batcher gets only new sentences, each once.
        """
        return SEEN.vectors(sentences, self) if self.params.cache else self.encode_anew(sentences)

    def encode_anew(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector for each sentence, without the cache."""
        blocks: list[NDArray[np.float32]] = []
        for start in range(0, len(sentences), self.params.batch_size):
            batch = self.tokens_of(sentences[start : start + self.params.batch_size])
            block = _to_array(self.batcher(self.params, batch))
            if block.ndim != 2 or len(block) != len(batch) or (blocks and block.shape[1] != blocks[0].shape[1]):
                raise UserError(
                    f"batcher returned an array of shape {block.shape} for {len(batch)} sentences: "
                    "return one row for each, always of one length."
                )
            blocks.append(block)
        return np.concatenate(blocks)


class Prepared:
    """A script whose `prepare` was called with the sentences of one task.

    It is called once at the start, and again before encoding more if another task was prepared since.
    """

    _latest: "ClassVar[Prepared | None]" = None

    def __init__(self, script: Script, sentences: Sequence[str]) -> None:
        self._script, self._sentences = script, sentences
        self._make_ready()

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector for each sentence, batch by batch in the order given."""
        return self._script.encode(sentences)

    def _make_ready(self) -> None:
        self._script.prepare(self._script.params, self._script.tokens_of(self._sentences))
        Prepared._latest = self

    def resumed(self, sentences: Sequence[str], before: NDArray[np.float32], what: str) -> None:
        """Prepare again if another task was prepared since, and check that the model has not changed.

        Args:
            sentences: sentences encoded before; their first batch is encoded again.
            before: their vectors.
            what: the data to encode next, for the message.
        """
        if Prepared._latest is not self:
            self._make_ready()
        if self._script.params.cache:
            # With --cache, vectors must depend only on the sentence.
            return
        again = self._script.encode_anew(sentences[: self._script.params.batch_size])
        first = before[: len(again)]
        # Two runs of one model differ by rounding; vectors this close give the same score. The scale is that
        # of the differences between sentences: a large dimension that all vectors share must not hide a change.
        apart = np.nan_to_num(np.abs(first - first.mean(axis=0))).max() or np.nan_to_num(np.abs(first)).max()
        if again.shape != first.shape or not np.allclose(again, first, rtol=0, atol=1e-3 * apart, equal_nan=True):
            raise UserError(
                f"{what} is encoded when it is first read, and the batcher now returns other vectors than "
                "when `eval` ran: read it before the model changes, or let `eval` encode it, with "
                "--splits train,dev,test (params['splits'])."
            )

    def kept(self) -> "Prepared":
        """Return a copy for later use, with the current parameters: `eval` of another task changes them."""
        later = copy(self)
        later._script = replace(self._script, params=dotdict(self._script.params))
        if Prepared._latest is self:
            Prepared._latest = later
        return later


def encode_sides(
    table: pd.DataFrame, sides: Sequence[str], order: NDArray[np.int64], script: Script
) -> list[NDArray[np.float32]]:
    """Return the vectors of each side of a task, one row for each of the table's.

    Args:
        table: the columns split and `sides`. `prepare` is called with all of its sentences, split by split.
        sides: the columns of sentences.
        order: the positions of the rows in the order of the batches.
        script: what encodes them.
    """
    splits = [table[table["split"] == split] for split in dict.fromkeys(table["split"])]
    prepared = Prepared(script, [text for rows in splits for side in sides for text in rows[side]])
    vectors = []
    for side in sides:
        in_order = prepared.encode(table[side].iloc[order].tolist())
        placed = np.empty_like(in_order)
        placed[order] = in_order
        vectors.append(placed)
    return vectors


class SeenSentences:
    """One vector for each sentence, while the batcher and its parameters do not change.

    Only one batcher's vectors are kept. They are dropped for another batcher, or if any parameter other than
    `current_task` changes (for example because `prepare` stored something of the new task). Dictionaries, lists,
    sets and NumPy arrays are compared by content, everything else by identity: a change inside a model or a tensor
    is not noticed.

    Attributes:
        handed: the number of sentences requested.
        encoded: how many of them a batcher encoded.
    """

    def __init__(self) -> None:
        self.handed = self.encoded = 0
        self._owner: tuple[Any, dict[str, Any]] | None = None
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def vectors(self, sentences: Sequence[str], script: Script) -> NDArray[np.float32]:
        """Return one vector for each sentence, (n, d); the batcher gets only new sentences, each once.

        Sentences with the same tokens are the same.
        """
        parameters = _snapshot({name: value for name, value in script.params.items() if name != "current_task"})
        if self._owner is None or self._owner[0] != script.batcher or not _alike(self._owner[1], parameters):
            self._owner, self._vectors = (script.batcher, parameters), {}
        keys = [" ".join(sentence.split()) for sentence in sentences]
        new = [key for key in dict.fromkeys(keys) if key not in self._vectors]
        if new:
            vectors = script.encode_anew(new)
            before = next(iter(self._vectors.values()), vectors[0])
            if before.shape != vectors[0].shape:
                raise UserError(
                    f"batcher returned vectors of {len(before)} numbers and now of {len(vectors[0])}: leave out "
                    "--cache, which is for batchers whose vectors depend only on the sentence."
                )
            self._vectors |= dict(zip(new, vectors, strict=True))
        self.handed += len(keys)
        self.encoded += len(new)
        return np.stack([self._vectors[key] for key in keys])

    def sentence(self) -> str:
        """Return a sentence on the encoding that was saved."""
        return (
            f"--cache: {self.handed - self.encoded:,} of {self.handed:,} sentences had been encoded before "
            "and were reused."
        )


SEEN = SeenSentences()
"""The state of the process, kept because scripts make a new `SE` for each task."""


def _snapshot(value: Any) -> Any:
    """Return a deep copy of the containers that `prepare` may change in place, with a hash for an array."""
    if isinstance(value, dict):
        return {name: _snapshot(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_snapshot(item) for item in value]
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"{value.dtype}{value.shape} {hashlib.sha1(value.tobytes()).hexdigest()}"
    return set(value) if isinstance(value, set) else value


def _alike(before: Any, now: Any) -> bool:
    """Return whether snapshots hold the same objects, or equal settings."""
    if isinstance(before, dict) and isinstance(now, dict):
        return before.keys() == now.keys() and all(_alike(value, now[name]) for name, value in before.items())
    if isinstance(before, list) and isinstance(now, list):
        return len(before) == len(now) and all(map(_alike, before, now))
    return before is now or (isinstance(before, str | int | float | set) and before == now)


def _to_array(returned: Any) -> NDArray[np.float32]:
    if hasattr(returned, "detach"):
        # A torch tensor: on any device, in any precision, with or without gradient.
        returned = returned.detach().float().cpu().numpy()
    elif isinstance(returned, list | tuple):
        returned = [_to_array(row) if hasattr(row, "detach") else row for row in returned]
    try:
        return np.asarray(returned, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise UserError(f"batcher did not return an array of numbers: {error}.") from error


class Results(dict[str, Any]):
    """One task's results, with several kinds of keys.

    Each kind is computed once, when one of its keys is read; the keys are known before. Printing, comparing,
    copying, pickle and JSON need all values: they compute the listed kinds, and include values of other kinds that
    were read. A copy or a pickle is a plain dictionary.

    Args:
        *listed: the keys of each kind, and the function that returns their values.
        on_request: a kind that is computed only when one of its keys is read.

    >>> result = Results((["test"], lambda: {"test": 0.5}), on_request=(["mse"], lambda: {"mse": 2.0}))
    >>> list(result), "mse" in result, result["mse"], list(result)
    (['test'], True, 2.0, ['test', 'mse'])
    """

    def __init__(self, *listed: Shape, on_request: Shape | None = None) -> None:
        shapes = [*listed, *([on_request] if on_request else [])]
        # The dictionary holds the keys from the start: JSON's encoder asks it whether it is empty.
        super().__init__({key: None for keys, _ in shapes for key in keys})
        self._waiting = {key: shape for shape in shapes for key in shape[0]}
        self._hidden = set(on_request[0]) if on_request else set()

    def __getitem__(self, key: str) -> Any:
        """Return a value; the first one computes all values of its kind."""
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
        """Set a value, which is then not computed."""
        self._forget(key)
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        """Delete a key, whose value is then not computed."""
        super().__delitem__(key)
        self._forget(key)

    def _forget(self, key: str) -> None:
        self._waiting.pop(key, None)
        self._hidden.discard(key)

    # A dictionary's own methods would read and change values without computing them.
    get, pop, update = MutableMapping.get, MutableMapping.pop, MutableMapping.update  # type: ignore[assignment]
    setdefault, popitem = MutableMapping.setdefault, MutableMapping.popitem
    items, values = MutableMapping.items, MutableMapping.values  # type: ignore[assignment]

    def copy(self) -> dict[str, Any]:
        """Return all values in a plain dictionary."""
        return {key: self[key] for key in self}

    def keys(self) -> KeysView[str]:  # type: ignore[override]  # `dict_keys` has no constructor
        """Return the keys: those of the listed kinds, and others that were read."""
        return dict.fromkeys(self).keys()

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys; defining it makes `dict(...)` call `keys` and `__getitem__`."""
        return (key for key in list(super().__iter__()) if key != ARRAY and key not in self._hidden)

    def __len__(self) -> int:
        """Return how many keys there are."""
        return len(list(iter(self)))

    def __eq__(self, other: object) -> bool:
        """Return whether all values equal those of another dictionary."""
        return self.copy() == other

    def __ne__(self, other: object) -> bool:
        """Return whether any value differs from that of another dictionary: `dict` has a comparison of its own."""
        return not self == other

    __hash__ = None

    def __repr__(self) -> str:
        """Return all values, written as a dictionary."""
        return repr(self.copy())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a plain dictionary, with the array if it was computed."""
        known = {ARRAY: self[ARRAY]} if ARRAY in self and ARRAY not in self._waiting else {}
        return dict, (self.copy() | known,)
