"""Mistakes about the padding of a batch in other programs, which `diagnose` imitates to recognise them.

In stsbench a vector never depends on its batch. In other programs it does if the tokenizer pads on another side
than the pooling code assumes, or if the mean includes the padding.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.encoders.protocol import DeviceOutOfMemory, FloatMatrix
from stsbench.encoders.transformer import TransformerEncoder

if TYPE_CHECKING:
    from torch import Tensor

_SENTENCES, _PAIRS = 32, 128
"""The default batches of sentence-transformers and SentEval."""


@dataclass(frozen=True)
class Misread:
    """A mistake about the padding.

    Attributes:
        name: in tables and JSON.
        padding: the padded side of shorter rows.
        places: the places of poolings that it changes; see `poolers.PLACES`.
        meaning: a sentence on it.
        shifts_positions: whether positions count the padding, which changes all poolings of a network with
            position embeddings.
        by_senteval: whether the batches are SentEval's, and not those of sentence-transformers.
    """

    name: str
    padding: str
    places: tuple[str, ...]
    meaning: str
    shifts_positions: bool = False
    by_senteval: bool = False

    def spans(self, place: str, spans: "Tensor", mask: "Tensor") -> "Tensor":
        """Returns first and end column of what is read in each row, shape (rows, 2).

        Args:
            place: the pooling's.
            spans: the correct columns.
            mask: 1 for real tokens, shape (rows, width).
        """
        import torch

        if place not in self.places:
            return spans
        width, lengths = torch.full_like(spans[:, 0], mask.shape[1]), mask.sum(1)
        if place == "last":
            stop = lengths if self.padding == "left" else width
            return torch.stack([stop - 1, stop], dim=1)
        return torch.stack([width * 0, width * 0 + 1 if place == "cls_before_pooler" else width], dim=1)


LEFT = Misread(
    "left",
    "left",
    ("cls_before_pooler",),
    "Positions count the padding, and the first column is not [CLS] (sentence-transformers 3208).",
    shifts_positions=True,
)
LEFT_AS_RIGHT = Misread(
    "left, read as right", "left", ("last",), "The column at the number of tokens is not the last token."
)
RIGHT_AS_LEFT = Misread(
    "right, read as left",
    "right",
    ("last",),
    "The last column is padding in all rows except the longest.",
    by_senteval=True,
)
WITH_PADDING = Misread(
    "right, read with the padding",
    "right",
    ("avg", "cls_avg", "max", "weighted_avg"),
    "`outputs.mean(1)` includes the padding, as in `angle_emb` up to 0.1 (AnglE 68).",
    by_senteval=True,
)
MISREADINGS = (LEFT, LEFT_AS_RIGHT, RIGHT_AS_LEFT, WITH_PADDING)


def misread_vectors(
    encoder: TransformerEncoder, table: pd.DataFrame, texts: Sequence[str], misread: Misread
) -> FloatMatrix:
    """Returns a vector for each text, by the encoder's pooling, from batches whose padding is mistaken.

    Args:
        encoder: the model.
        table: the pairs.
        texts: their sentences, all first sides and then all second.
        misread: the mistake.

    Raises:
        UserError: if a batch does not fit in the device's memory.
    """
    sequences = encoder.tokenize(texts).sequences
    vectors: FloatMatrix | None = None
    for rows in _by_senteval(table, texts) if misread.by_senteval else _by_sentence_transformers(texts):
        try:
            made = encoder.misread([sequences[row] for row in rows], misread.padding, misread.spans)
        except DeviceOutOfMemory as error:  # a smaller batch would have other padding
            raise UserError(f"a batch of {len(rows)} sentences does not fit in the device's memory.") from error
        vectors = np.empty((len(texts), made.shape[1]), dtype=np.float32) if vectors is None else vectors
        vectors[rows] = made
    assert vectors is not None, "a task has pairs"
    return vectors


def _by_sentence_transformers(texts: Sequence[str]) -> Iterator[NDArray[np.intp]]:
    """Yields the places of each batch: each side alone, the texts with the most characters first."""
    for side in np.split(np.arange(len(texts)), 2):
        # As in sentence-transformers, the sort is not stable.
        order = side[np.argsort([-len(texts[place]) for place in side])]
        for start in range(0, len(order), _SENTENCES):
            yield order[start : start + _SENTENCES]


def _by_senteval(table: pd.DataFrame, texts: Sequence[str]) -> Iterator[NDArray[np.intp]]:
    """Yields the places of each batch: of a subset's pairs, those with the fewest words first, each side alone."""
    count = len(texts) // 2
    words = [len(text.split()) for text in texts]
    gold, subset = np.asarray(table["gold"]), np.asarray(table["subset"])
    for name in dict.fromkeys(subset):
        pairs = np.flatnonzero(subset == name).tolist()
        pairs.sort(key=lambda pair: (words[pair], words[count + pair], gold[pair]))
        for start in range(0, len(pairs), _PAIRS):
            chosen = np.array(pairs[start : start + _PAIRS])
            yield chosen
            yield count + chosen
