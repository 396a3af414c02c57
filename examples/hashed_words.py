"""An encoder of one's own: words and pairs of words, hashed into 512 numbers.

    cd examples && stsbench run --encoder-module hashed_words:encode --tasks all

Any function from a list of sentences to an array with one row each will do. stsbench calls it with distinct
sentences, in batches.
"""

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import HashingVectorizer

_hashed = HashingVectorizer(n_features=512, ngram_range=(1, 2), norm=None)


def encode(sentences: list[str]) -> NDArray[np.float64]:
    """Return an array of shape (sentences, 512)."""
    vectors: NDArray[np.float64] = _hashed.transform(sentences).toarray()
    return vectors
