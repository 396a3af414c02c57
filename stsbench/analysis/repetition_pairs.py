"""The pairs of the repetition probe: a query, a candidate that shares some tokens, and it with these repeated."""

from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.base.words import suggestion

Units = Callable[[str], Sequence[Hashable]]
"""What a word consists of when overlap is counted: itself, or its sub-words."""

SHARE_OF = ("candidate", "query")


class Triple(NamedTuple):
    """A query q, a candidate s1, and s2: the candidate with the words that it shares with the query repeated."""

    query: str
    candidate: str
    repeated: str


def whole_word(word: str) -> tuple[str, ...]:
    """Return a word as one unit, whatever its case.

    >>> whole_word("This")
    ('this',)
    """
    return (word.casefold(),)


class RepetitionProbe:
    """A corpus, each sentence once, made ready to draw the probe's pairs from; its options are those of the verb.

    ESimCSE (COLING 2022), section 5.5: "We use the query to randomly recall a candidate sentence with 13%-17%
    overlap tokens". It leaves open what the percentage is of.
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
        if share_of not in SHARE_OF:
            raise UserError(f"a share of the {share_of!r}: {suggestion(share_of, SHARE_OF)}")
        if not 0 < low <= high <= 1:
            raise UserError(f"an overlap from {low:g} to {high:g}: give shares above 0 and up to 1, such as 0.13.")
        self.corpus, self.low, self.high = corpus, low, high
        self._of_candidate = share_of == "candidate"
        self._split = units
        self._units: dict[str, Sequence[Hashable]] = {}
        self._index = OverlapIndex(map(self._tokens_of, corpus))

    def candidates(self, query: int) -> NDArray[np.int64]:
        """Return the numbers of the sentences whose overlap with a sentence of the corpus is in the range."""
        tokens = self._tokens_of(self.corpus[query])
        if self._of_candidate:
            # A sentence without tokens shares none of them.
            shares = self._index.shared(tokens) / np.maximum(self._index.lengths, 1)
        else:
            shares = self._index.covered(tokens) / max(len(tokens), 1)
        inside = (shares >= self.low) & (shares <= self.high)
        inside[query] = False
        return np.flatnonzero(inside)

    def draw(self, queries: int, rng: np.random.Generator, progress: Progress = silent) -> list[Triple]:
        """Draw so many distinct queries with a candidate each.

        Queries come in random order; one without any candidate is passed over.
        """
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
                f"of the {len(self.corpus)} sentences of the corpus {len(triples)} have a candidate with "
                f"{100 * self.low:g} to {100 * self.high:g} % overlap, and {queries} queries were asked for: "
                "give a larger corpus, fewer --queries or a wider --overlap."
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
    """For each token the sentences it occurs in, once for each occurrence, in one flat array.

    Asking takes a pass over the lists of the query's tokens; no other sentence is looked at.

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
        counts = np.zeros(len(self.lengths), dtype=np.int64)
        for token, times in Counter(query).items():
            counts[self._list(token)] += times  # an owner that is there twice is added to once
        return counts

    def _list(self, token: Hashable) -> NDArray[np.int32]:
        number = self._numbers.get(token)
        return (
            self._owners[:0] if number is None else self._owners[self._starts[number] : self._starts[number + 1]]
        )
