"""Handing sentences to the person's `prepare` and `batcher`, and taking what comes back."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

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
    prepare(params, tokens_of([text for rows in splits for side in sides for text in rows[side]], params))
    vectors = []
    for side in sides:
        in_order = encode(table[side].iloc[order].tolist(), params, batcher)
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

    Raises:
        UserError: if the batcher returns anything but one vector for each sentence, all of one length.
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
