"""The triples of the repetition probe: a query, a candidate, and the candidate with the shared words repeated."""

from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent

Units = Callable[[str], Sequence[Hashable]]
"""Splits a word into the units of overlap: the word itself, or its sub-words."""

SHARE_OF = ("candidate", "query")


class Triple(NamedTuple):
    """A query q, a candidate s1, and s2: the candidate with the words that it shares with the query repeated."""

    query: str
    candidate: str
    repeated: str


def whole_word(word: str) -> tuple[str, ...]:
    """Returns a word as one unit, ignoring case.

    >>> whole_word("This")
    ('this',)
    """
    return (word.casefold(),)


class RepetitionProbe:
    """Draws the triples of the probe from a corpus of distinct sentences.

    ESimCSE (COLING 2022), section 5.5: "We use the query to randomly recall a candidate sentence with 13%-17%
    overlap tokens". It does not say of which sentence the percentage is.
    """

    def __init__(
        self,
        corpus: Sequence[str],
        *,
        units: Units = whole_word,
        share_of: str = "candidate",
        low: float = 0.13,
        high: float = 0.17,
    ) -> None:
        if not 0 < low <= high <= 1:
            raise UserError(f"an overlap from {low:g} to {high:g}: give shares above 0 and up to 1, such as 0.13.")
        self.corpus, self.low, self.high = corpus, low, high
        self._of_candidate = share_of == "candidate"
        self._split = units
        self._units: dict[str, Sequence[Hashable]] = {}
        self._index = OverlapIndex(map(self._tokens_of, corpus))

    def candidates(self, query: int) -> NDArray[np.int64]:
        """Returns the numbers of the sentences whose overlap with a query of the corpus is in the range."""
        tokens = self._tokens_of(self.corpus[query])
        if self._of_candidate:
            # A sentence without tokens has no overlap.
            shares = self._index.shared(tokens) / np.maximum(self._index.lengths, 1)
        else:
            shares = self._index.covered(tokens) / max(len(tokens), 1)
        inside = (shares >= self.low) & (shares <= self.high)
        inside[query] = False
        return np.flatnonzero(inside)

    def draw(self, queries: int, rng: np.random.Generator, progress: Progress = silent) -> list[Triple]:
        """Draws distinct queries in random order, each with a candidate; queries without one are skipped."""
        triples: list[Triple] = []
        for query in rng.permutation(len(self.corpus)):
            if len(triples) == queries:
                break
            candidates = self.candidates(int(query))
            if len(candidates):
                triples.append(self._triple(int(query), int(rng.choice(candidates))))
                progress("candidates", len(triples), queries)
        if len(triples) < queries:
            raise UserError(
                f"{len(triples)} of the {len(self.corpus)} sentences of the corpus have a candidate with "
                f"{100 * self.low:g} to {100 * self.high:g} % overlap, fewer than {queries} queries: give a "
                "larger corpus, fewer --queries or a wider --overlap."
            )
        return triples

    def _triple(self, query: int, candidate: int) -> Triple:
        text, known = self.corpus[candidate], set(self._tokens_of(self.corpus[query]))
        words = [
            f"{word} {word}" if units and known.issuperset(units) else word
            for word in text.split()
            for units in (self._units_of(word),)
        ]
        return Triple(self.corpus[query], text, " ".join(words))

    def _tokens_of(self, sentence: str) -> list[Hashable]:
        return [unit for word in sentence.split() for unit in self._units_of(word)]

    def _units_of(self, word: str) -> Sequence[Hashable]:
        if word not in self._units:
            self._units[word] = self._split(word)
        return self._units[word]


class OverlapIndex:
    """The sentences of each token, one entry per occurrence, in one flat array.

    A query visits only the lists of its own tokens.

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
        # Sorted by token, the sentences of a token are adjacent and in order.
        self._owners = owners[np.argsort(tokens_of, kind="stable")]
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(tokens_of, minlength=len(numbers)))])
        self._numbers = numbers

    def shared(self, query: Sequence[Hashable]) -> NDArray[np.int64]:
        """Returns the number of tokens of each sentence that occur in the query, (sentences,)."""
        lists = [self._list(token) for token in dict.fromkeys(query)]
        return np.bincount(np.concatenate([*lists, self._owners[:0]]), minlength=len(self.lengths))

    def covered(self, query: Sequence[Hashable]) -> NDArray[np.int64]:
        """Returns the number of tokens of the query that occur in each sentence, (sentences,)."""
        counts = np.zeros(len(self.lengths), dtype=np.int64)
        for token, times in Counter(query).items():
            counts[self._list(token)] += times  # a repeated owner counts once
        return counts

    def _list(self, token: Hashable) -> NDArray[np.int32]:
        number = self._numbers.get(token)
        return (
            self._owners[:0] if number is None else self._owners[self._starts[number] : self._starts[number + 1]]
        )
