"""The pair table: one row per scored pair, from which every score and every analysis is computed."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stsbench.datasets import StsData
from stsbench.statistics import SIMILARITIES, pair_similarities, zero_rows

if TYPE_CHECKING:
    import pandas as pd

GIVEN = "given"
"""The similarity column of a run whose similarities were computed elsewhere."""

_COLUMNS = ["task", "split", "text", "subset", "pair_id", "gold"]


def pair_table(
    data: StsData, vectors: NDArray[np.floating], rows: NDArray[np.int64], lengths: NDArray[np.int64]
) -> "pd.DataFrame":
    """Return the pair table of one task.

    Args:
        data: the task, n pairs.
        vectors: one row per token sequence, post-processing done; shape (sequences, dimensions).
        rows: the row in `vectors` of each first sentence and then of each second one; shape (2n,).
        lengths: the length in sub-words of the same; shape (2n,).

    Returns:
        n rows with the columns task, split, text, subset, pair_id, gold; every similarity (float64); words,
        characters and subwords of either side (`words_a`, `words_b`, ...; sub-words -1 where unknown);
        `identical` (one token sequence on both sides) and `zero` (a zero vector on a side).
    """
    table = _without_similarities(data)
    left, right = rows[: len(table)], rows[len(table) :]
    for kind, values in pair_similarities(vectors, left, right, tuple(SIMILARITIES)).items():
        table[kind] = values
    table["subwords_a"], table["subwords_b"] = lengths[: len(table)], lengths[len(table) :]
    zero = zero_rows(vectors)
    return table.assign(identical=left == right, zero=zero[left] | zero[right])


def pair_table_of_similarities(data: StsData, similarities: NDArray[np.float64]) -> "pd.DataFrame":
    """Return the pair table of one task whose similarities were computed elsewhere, one for each pair in order."""
    table = _without_similarities(data).assign(subwords_a=-1, subwords_b=-1, identical=False, zero=False)
    table[GIVEN] = similarities
    return table


def _without_similarities(data: StsData) -> "pd.DataFrame":
    # A pair of split `all` counts as that split's; its id tells where it came from.
    table = data.pairs.assign(task=data.task, text=data.text, split=data.split)
    for side, column in (("a", "sentence1"), ("b", "sentence2")):
        table[f"words_{side}"] = [len(text.split()) for text in table[column]]
        table[f"characters_{side}"] = table[column].str.len()
    table = table.drop(columns=["sentence1", "sentence2"])
    return table[[*_COLUMNS, *(column for column in table.columns if column not in _COLUMNS)]]
