"""Vectors and similarities as other programs make them: in batches whose padding they mistake, in half precision.

No way of using an encoder that anybody would choose, so no field of `Use`: such a vector depends on its neighbours
in the batch, and such a similarity has the digits of its precision. `diagnose` makes them to recognise them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.diagnosis.choices import Comparing
from stsbench.diagnosis.grid import Scores
from stsbench.diagnosis.misread import LEFT, LEFT_AS_RIGHT, Misread
from stsbench.encoders.protocol import DeviceOutOfMemory, FloatMatrix
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.encoders.use import PRECISIONS

if TYPE_CHECKING:
    from torch import Tensor

_OF_SENTENCE_TRANSFORMERS = 32
_OF_SENTEVAL = 128
"""How many sentences are in a batch by default."""


def misread_vectors(
    encoder: TransformerEncoder, table: pd.DataFrame, texts: Sequence[str], misread: Misread
) -> FloatMatrix:
    """Return a vector for each text, by the encoder's pooling, from batches whose padding is mistaken.

    Args:
        encoder: what encodes.
        table: the pairs.
        texts: their sentences, all first sides and then all second.
        misread: the mistake.

    Raises:
        UserError: if a batch does not fit in the device's memory.
    """
    sequences = encoder.tokenize(texts).sequences
    batches = _by_sentence_transformers if misread in {LEFT, LEFT_AS_RIGHT} else _by_senteval
    vectors: FloatMatrix | None = None
    for rows in batches(table, texts):
        try:
            made = encoder.misread([sequences[row] for row in rows], misread.padding, misread.spans)
        except DeviceOutOfMemory as error:  # a smaller batch would be another
            raise UserError(f"a batch of {len(rows)} sentences does not fit in the device's memory.") from error
        vectors = np.empty((len(texts), made.shape[1]), dtype=np.float32) if vectors is None else vectors
        vectors[rows] = made
    assert vectors is not None, "a task has pairs"
    return vectors


def _by_sentence_transformers(_table: pd.DataFrame, texts: Sequence[str]) -> Iterator[NDArray[np.intp]]:
    """Yield the places of the texts of each batch: each side alone, the texts with the most characters first."""
    for side in np.split(np.arange(len(texts)), 2):
        # Not a stable sort, as there: which of equally long ones comes first is NumPy's business in both.
        order = side[np.argsort([-len(texts[place]) for place in side])]
        for start in range(0, len(order), _OF_SENTENCE_TRANSFORMERS):
            yield order[start : start + _OF_SENTENCE_TRANSFORMERS]


def _by_senteval(table: pd.DataFrame, texts: Sequence[str]) -> Iterator[NDArray[np.intp]]:
    """Yield the places of each batch: of a sub-set's pairs, those with the fewest words first, each side alone."""
    count = len(texts) // 2
    words = [len(text.split()) for text in texts]
    gold, subset = np.asarray(table["gold"]), np.asarray(table["subset"])
    for name in dict.fromkeys(subset):
        pairs = np.flatnonzero(subset == name).tolist()
        pairs.sort(key=lambda pair: (words[pair], words[count + pair], gold[pair]))
        for start in range(0, len(pairs), _OF_SENTEVAL):
            chosen = np.array(pairs[start : start + _OF_SENTEVAL])
            yield chosen
            yield count + chosen


def compare_in(
    precision: str, vectors: FloatMatrix, rows: NDArray[np.int64], comparisons: Mapping[Comparing, bool]
) -> Scores:
    """Return the (comparisons, pairs) similarities of vectors that are rounded and compared in a precision.

    As `sentence_transformers.util` does with tensors: scaling, products and differences in the precision itself.

    Args:
        precision: `bf16` or `fp16`.
        vectors: (sequences, dimensions).
        rows: (2, pairs) of each pair's sentences.
        comparisons: each with whether the vectors are scaled to unit length first.
    """
    import torch

    rounded = torch.from_numpy(vectors).to(getattr(torch, PRECISIONS[precision]))
    scaled = torch.nn.functional.normalize(rounded, dim=1)
    left, right = torch.from_numpy(rows)
    similarities = [
        _similarity(
            comparing.similarity, scaled if scale or comparing.similarity == "cosine" else rounded, left, right
        )
        for comparing, scale in comparisons.items()
    ]
    return torch.stack(similarities).double().numpy()


def _similarity(kind: str, vectors: "Tensor", left: "Tensor", right: "Tensor") -> "Tensor":
    import torch

    one, other = vectors[left], vectors[right]
    if kind == "euclidean":
        return -torch.sqrt(torch.sum((one - other) ** 2, dim=-1))
    return -torch.sum(torch.abs(one - other), dim=-1) if kind == "manhattan" else (one * other).sum(dim=-1)
