"""Which sentences share how many tokens with a query: an inverted index."""

from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


class OverlapIndex:
    """For each token the sentences it occurs in, once for each occurrence, in one flat array.

    Asking takes a pass over the lists of the query's tokens; no other sentence is looked at.

    Args:
        sentences: the tokens of each sentence.

    >>> index = OverlapIndex([["a", "b", "b"], ["c"], ["b", "c", "d"]])
    >>> index.shared(["b", "c", "c"]).tolist(), index.covered(["b", "c", "c"]).tolist()
    ([2, 1, 2], [1, 2, 3])
    """

    def __init__(self, sentences: Iterable[Sequence[Hashable]]) -> None:
        numbers: dict[Hashable, int] = {}
        flat, lengths = array("i"), array("i")
        for tokens in sentences:
            flat.extend(numbers.setdefault(token, len(numbers)) for token in tokens)
            lengths.append(len(tokens))
        tokens_of = np.frombuffer(flat, dtype=np.int32) if flat else np.empty(0, dtype=np.int32)
        self.lengths: NDArray[np.int64] = np.array(lengths, dtype=np.int64)
        owners = np.repeat(np.arange(len(lengths), dtype=np.int32), self.lengths)
        # Sorted by token, each token's sentences lie side by side, in their order.
        self._owners = owners[np.argsort(tokens_of, kind="stable")]
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(tokens_of, minlength=len(numbers)))])
        self._numbers = numbers

    def shared(self, query: Sequence[Hashable]) -> NDArray[np.int64]:
        """Return for each sentence how many of its tokens occur in the query; shape (sentences,)."""
        lists = [self._list(token) for token in dict.fromkeys(query)]
        return np.bincount(np.concatenate([*lists, self._owners[:0]]), minlength=len(self.lengths))

    def covered(self, query: Sequence[Hashable]) -> NDArray[np.int64]:
        """Return for each sentence how many of the query's tokens occur in it; shape (sentences,)."""
        found = np.zeros(len(self.lengths), dtype=np.int64)
        for token, times in Counter(query).items():
            found[self._list(token)] += times  # an owner that is there twice is added to once
        return found

    def _list(self, token: Hashable) -> NDArray[np.int32]:
        number = self._numbers.get(token)
        return (
            self._owners[:0] if number is None else self._owners[self._starts[number] : self._starts[number + 1]]
        )
