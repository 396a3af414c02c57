"""The pairs of the repetition probe: a query, a candidate that shares some tokens, and it with these repeated."""

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.analysis.overlap_index import OverlapIndex
from stsbench.foundation.errors import UserError
from stsbench.foundation.progress import Progress, silent

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
    """A corpus made ready to draw the probe's pairs from.

    ESimCSE (COLING 2022), section 5.5: "We use the query to randomly recall a candidate sentence with 13%-17%
    overlap tokens". It leaves open what the percentage is of.

    Args:
        corpus: sentences, each once.
        units: what overlap is counted in; whole words by default.
        share_of: `candidate`: the share of the candidate's tokens that occur in the query, or `query`: the share
            of the query's tokens that occur in the candidate.
        low: smallest share.
        high: largest share.

    Raises:
        UserError: if an option makes no sense.
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
            raise UserError(f"a share of the {share_of!r}: choose one of {', '.join(SHARE_OF)}.")
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
        """Draw distinct queries with a candidate each.

        Queries come in random order; one without any candidate is passed over.

        Args:
            queries: how many.
            rng: where the draws come from.
            progress: told of the queries done.

        Raises:
            UserError: saying how many were found, if they are fewer.
        """
        found: list[Triple] = []
        for query in rng.permutation(len(self.corpus)):
            if len(found) == queries:
                break
            candidates = self.candidates(int(query))
            if len(candidates):
                found.append(self._triple(int(query), int(rng.choice(candidates))))
                progress("candidates", len(found), queries)
        if len(found) < queries:
            raise UserError(
                f"of the {len(self.corpus)} sentences of the corpus {len(found)} have a candidate with "
                f"{100 * self.low:g} to {100 * self.high:g} % overlap, and {queries} queries were asked for: "
                "give a larger corpus, fewer --queries or a wider --overlap."
            )
        return found

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
