"""Handing sentences to the person's `prepare` and `batcher`, and taking what comes back."""

from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.compat.senteval.seen import SEEN
from stsbench.compat.senteval.utils import dotdict

if TYPE_CHECKING:
    import pandas as pd

Tokens = Sequence[str] | Sequence[bytes]
Batcher = Callable[[dotdict, list[Tokens]], Any]
Prepare = Callable[[dotdict, list[Tokens]], Any]


SIDES = ("sentence1", "sentence2")


class Prepared:
    """The person's functions, `prepare` called for the sentences of one task.

    Args:
        sentences: all of the task's, as `prepare` is handed them.
        params: the person's, and so are the functions.
        batcher: called batch by batch.
        prepare: called once at the start, and once more where another task was prepared before more is encoded.
    """

    _latest: "ClassVar[Prepared | None]" = None

    def __init__(self, sentences: Sequence[str], params: dotdict, batcher: Batcher, prepare: Prepare) -> None:
        self._sentences, self._params, self._batcher, self._prepare = sentences, params, batcher, prepare
        self._make_ready()

    def _make_ready(self) -> None:
        self._prepare(self._params, tokens_of(self._sentences, self._params))
        Prepared._latest = self

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector for each sentence, batch by batch in the order given; see `encode`."""
        return encode(sentences, self._params, self._batcher)

    def resumed(self, sentences: Sequence[str], before: NDArray[np.float32], what: str) -> None:
        """Make ready to encode more, after whatever else the script did, and see that the model is what it was.

        Args:
            sentences: that were encoded before; the first batch of them is encoded again.
            before: their vectors.
            what: is about to be encoded, for the message.
        """
        if Prepared._latest is not self:
            self._make_ready()
        if self._params.cache:
            # Whoever keeps vectors says that they depend on the sentence alone.
            return
        again = _encode(sentences[: self._params.batch_size], self._params, self._batcher)
        first = before[: len(again)]
        # Two runs of one model differ by rounding, and vectors this close give the same score. What all vectors
        # share, one large dimension, say, tells no sentence from another: it is not what they are held against.
        apart = np.nan_to_num(np.abs(first - first.mean(axis=0))).max() or np.nan_to_num(np.abs(first)).max()
        if again.shape != first.shape or not np.allclose(again, first, rtol=0, atol=1e-3 * apart, equal_nan=True):
            raise UserError(
                f"{what} is encoded where it is first read, and by now the batcher returns other vectors than "
                "when `eval` ran: read it before the model changes, or have it encoded by `eval`, with "
                "--splits train,dev,test (params['splits'])."
            )

    def kept(self) -> "Prepared":
        """Return the same for later, with the parameters as they are now: `eval` of another task changes them."""
        later = copy(self)
        later._params = dotdict(self._params)
        if Prepared._latest is self:
            Prepared._latest = later
        return later


def encode_sides(
    table: "pd.DataFrame",
    sides: Sequence[str],
    order: NDArray[np.int64],
    params: dotdict,
    *,
    batcher: Batcher,
    prepare: Prepare,
) -> list[NDArray[np.float32]]:
    """Return the vectors of each side of a task, one row for each of the table's.

    Args:
        table: the columns split and `sides`.
        sides: the columns of sentences.
        order: the places of the rows in the order that they are handed to the batcher.
        params: the person's, and so are the functions.
        batcher: called batch by batch.
        prepare: called once, with all sentences split by split.
    """
    splits = [table[table["split"] == split] for split in dict.fromkeys(table["split"])]
    whole = [text for rows in splits for side in sides for text in rows[side]]
    prepared = Prepared(whole, params, batcher, prepare)
    vectors = []
    for side in sides:
        in_order = prepared.encode(table[side].iloc[order].tolist())
        placed = np.empty_like(in_order)
        placed[order] = in_order
        vectors.append(placed)
    return vectors


def tokens_of(sentences: Sequence[str], params: dotdict) -> list[Tokens]:
    """Return each sentence's tokens; as bytes if `params.tokens` says so."""
    if params.tokens == "bytes":
        return [[token.encode() for token in sentence.split()] for sentence in sentences]
    return [sentence.split() for sentence in sentences]


def encode(sentences: Sequence[str], params: dotdict, batcher: Batcher) -> NDArray[np.float32]:
    """Return one vector for each sentence, batch by batch in the order given.

    With `params.cache`, the batcher is handed those that it has not seen, each once.
    """
    if params.cache:
        return SEEN.vectors(sentences, params, batcher, lambda new: _encode(new, params, batcher))
    return _encode(sentences, params, batcher)


def _encode(sentences: Sequence[str], params: dotdict, batcher: Batcher) -> NDArray[np.float32]:
    blocks: list[NDArray[np.float32]] = []
    for start in range(0, len(sentences), params.batch_size):
        batch = tokens_of(sentences[start : start + params.batch_size], params)
        block = _to_array(batcher(params, batch))
        if block.ndim != 2 or len(block) != len(batch) or (blocks and block.shape[1] != blocks[0].shape[1]):
            raise UserError(
                f"batcher returned an array of shape {block.shape} for {len(batch)} sentences: "
                "return one row for each, always of one length."
            )
        blocks.append(block)
    return np.concatenate(blocks)


def _to_array(returned: Any) -> NDArray[np.float32]:
    if hasattr(returned, "detach"):
        # A torch tensor: on any device, in any precision, with or without gradient.
        returned = returned.detach().float().cpu().numpy()
    elif isinstance(returned, list | tuple):
        returned = [_to_array(row) if hasattr(row, "detach") else row for row in returned]
    try:
        return np.asarray(returned, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise UserError(f"batcher returned what is no array of numbers: {error}.") from error
