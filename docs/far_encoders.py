"""Three encoders without a network, very unlike a trained one, for the notebook "The field, read again".

cd docs && stsbench run --encoder-module far_encoders:words --tasks sts,STS-B:dev

Each needs nothing but the sentences it is given: no corpus, no weights.
"""

import zlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float64]

_DIMENSIONS = 2048


def words(sentences: list[str]) -> Vectors:
    """Return (sentences, 2048) counts of words, hashed: the cosine is that of bags of words."""
    return _counted(sentence.lower().split() for sentence in sentences)


def long_words(sentences: list[str]) -> Vectors:
    """Return (sentences, 2048) counts of words, each weighted by its length: a stand-in for how rare it is."""
    return _counted((sentence.lower().split() for sentence in sentences), weighted=True)


def trigrams(sentences: list[str]) -> Vectors:
    """Return (sentences, 2048) roots of the counts of three letters in a row, spaces included, hashed."""
    padded = (f" {sentence.lower()} " for sentence in sentences)
    return np.sqrt(_counted([text[place : place + 3] for place in range(len(text) - 2)] for text in padded))


def _counted(bags: Iterable[list[str]], *, weighted: bool = False) -> Vectors:
    rows = []
    for bag in bags:
        row = np.zeros(_DIMENSIONS)
        for part in bag:
            row[zlib.crc32(part.encode()) % _DIMENSIONS] += len(part) if weighted else 1.0
        rows.append(row)
    return np.array(rows)
