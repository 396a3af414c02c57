"""Kinds of pairs: by gold score, ratings, length, shared words, negation and numbers.

The items table has the lengths of sentences; their words come from the data, by the ids of the sentences. The
lists of words are English, like the tasks.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.data.shared import SENTENCES
from stsbench.data.views import split_and_view
from stsbench.scoring.kinds.sts import COUNT, VARIANCE
from stsbench.scoring.tasks import TaskSpec
from stsbench.scoring.texts import texts_of

GOLD, RATINGS, LENGTH = "gold score", "ratings", "length"
OVERLAP, NEGATION, NUMBERS = "word overlap", "negation", "numbers"
"""The features that define kinds of pairs."""

FIFTHS = ("lowest", "second", "middle", "fourth", "highest")

LONG_DIFFERENCE, SHORT, LONG = 3, 8, 20
"""Numbers of words: a long difference is larger than the first (as in ESimCSE); short sentences have at most the
second, long ones at least the third."""

LOW_OVERLAP, HIGH_OVERLAP = 0.25, 0.75
"""The limits of low and high word overlap (Jaccard)."""

_APART = 0.75
"""The quantile of the ratings' variance above which raters disagree: the mean may hide two opinions."""

_NEGATIONS = frozenset(
    ("no", "not", "cannot", "never", "none", "nobody", "nothing", "nowhere", "neither", "nor", "without")
)
_SHORT_NOT = ("n't", "n\u2019t")

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NAMES = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_SPELLED = {name: str(value) for value, name in enumerate(_NAMES, 2)}
"""Without `one`, which is often a pronoun."""

_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")


class PairKind(NamedTuple):
    """A kind of pairs: its feature, its name, which completes `pairs with ...`, and the (n,) mask of its pairs."""

    feature: str
    name: str
    inside: NDArray[np.bool_]


class SentenceFeatures(NamedTuple):
    """The words of a sentence, whether it has a negation, and its numbers."""

    words: frozenset[str]
    negates: bool
    numbers: frozenset[str]

    @classmethod
    def of(cls, text: str) -> "SentenceFeatures":
        """Extracts the features of a sentence.

        >>> SentenceFeatures.of("Two dogs don't run 1,500 m").numbers == {"2", "1,500"}
        True
        """
        folded = text.casefold()
        words = frozenset(_WORD.findall(folded))
        numbers = {*_NUMBER.findall(folded), *(_SPELLED[word] for word in words & _SPELLED.keys())}
        negates = not words.isdisjoint(_NEGATIONS) or any(short in folded for short in _SHORT_NOT)
        return cls(words, negates, frozenset(numbers))

    def overlap(self, other: "SentenceFeatures") -> float:
        """Returns the share of common words (Jaccard)."""
        either = len(self.words | other.words)
        return len(self.words & other.words) / either if either else 1.0


def kinds_by_numbers(table: pd.DataFrame, gold_range: tuple[float, float]) -> list[PairKind]:
    """Returns the kinds of a task's pairs by gold score, ratings and length, as far as they are known."""
    low, high = gold_range
    fifth = np.clip(((table["gold"].to_numpy(float) - low) / (high - low) * 5).astype(int), 0, 4)
    kinds = [
        PairKind(GOLD, f"a gold score in the {name} fifth", fifth == place) for place, name in enumerate(FIFTHS)
    ]
    if VARIANCE in table.columns:
        spread = table[VARIANCE].to_numpy(float)
        rated = np.isfinite(spread) & (table[COUNT].to_numpy(float) >= 2)
        if rated.any():
            apart = rated & (spread > np.quantile(spread[rated], _APART))
            kinds.append(PairKind(RATINGS, "ratings further apart than on three of four", apart))
    if "words_a" not in table.columns:
        return kinds
    first, second = (table[f"words_{side}"].to_numpy(int) for side in "ab")
    unlike = np.abs(first - second) > LONG_DIFFERENCE
    return [
        *kinds,
        PairKind(LENGTH, f"lengths more than {LONG_DIFFERENCE} words apart", unlike),
        PairKind(LENGTH, f"at most {SHORT} words in both", np.maximum(first, second) <= SHORT),
        PairKind(LENGTH, f"at least {LONG} words in both", np.minimum(first, second) >= LONG),
    ]


def kinds_by_words(table: pd.DataFrame, sentences: Mapping[int, SentenceFeatures]) -> list[PairKind]:
    """Returns the kinds of a task's pairs by the features of their sentences, which are given by id."""
    sides = zip(*(table[side].tolist() for side in SENTENCES), strict=True)
    pairs = [(sentences[first], sentences[second]) for first, second in sides]
    shared = np.array([first.overlap(second) for first, second in pairs])
    negated = np.array([first.negates != second.negates for first, second in pairs], dtype=bool)
    numbers = np.array([first.numbers != second.numbers for first, second in pairs], dtype=bool)
    return [
        PairKind(OVERLAP, f"less than {100 * LOW_OVERLAP:g} % of their words shared", shared < LOW_OVERLAP),
        PairKind(OVERLAP, f"at least {100 * HIGH_OVERLAP:g} % of their words shared", shared >= HIGH_OVERLAP),
        PairKind(NEGATION, "a negation in one sentence alone", negated),
        PairKind(NUMBERS, "different numbers in both", numbers),
    ]


def features_in(
    pairs: pd.DataFrame, data: Sequence[str | Path], data_dirs: Sequence[str | Path]
) -> dict[int, SentenceFeatures]:
    """Returns the features of the sentences of one task, split and text by id; a UserError if one is missing."""
    task, split, text = (str(pairs[name].iloc[0]) for name in ("task", "split", "text"))
    ids = {number for side in SENTENCES for number in pairs[side].tolist()}
    texts = texts_of([TaskSpec(task, split_and_view(split)[0], text)], ids, data, data_dirs)
    return {number: SentenceFeatures.of(sentence) for number, sentence in texts.items()}
