"""The helpers of SentEval's `utils` that scripts use."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class dotdict(dict[str, Any]):
    """A dictionary whose entries are attributes too; an absent one is None."""

    def __getattr__(self, name: str) -> Any:
        """Returns an entry, or None."""
        return self.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets an entry."""
        self[name] = value

    def __delattr__(self, name: str) -> None:
        """Deletes an entry."""
        del self[name]


def cosine(u: NDArray[Any], v: NDArray[Any]) -> float:
    """Returns the cosine of two vectors, NaN if one is zero."""
    return float(np.dot(u, v) / (np.linalg.norm(u) * np.linalg.norm(v)))


def create_dictionary(sentences: Iterable[Sequence[str]]) -> tuple[list[str], dict[str, int]]:
    """Returns the words of token lists, `<s>`, `</s>` and `<p>` first, then by count, and each word's position.

    >>> create_dictionary([["an", "owl"], ["owl"]])[1]["owl"]
    3
    """
    counts: dict[str, float] = {}
    for sentence in sentences:
        for word in sentence:
            counts[word] = counts.get(word, 0) + 1
    counts |= {"<s>": 1e9 + 4, "</s>": 1e9 + 3, "<p>": 1e9 + 2}
    words = sorted(counts, key=lambda word: -counts[word])
    return words, {word: place for place, word in enumerate(words)}
