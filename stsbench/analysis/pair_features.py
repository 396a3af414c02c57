"""The kinds of pairs that errors are looked for in: gold score, ratings, length, shared words, negation, numbers.

A pair table says how long sentences are. Their words are needed for the rest, and stand in no record: they are
looked up in the data, by the sentences' numbers. The lists of words are English, as the tasks are.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.data.shared import SENTENCES, sentence_ids
from stsbench.data.views import split_and_view
from stsbench.scoring.kinds.sts import COUNT, VARIANCE
from stsbench.scoring.tasks import TaskSpec, read_task

GOLD, RATINGS, LENGTH = "gold score", "ratings", "length"
OVERLAP, NEGATION, NUMBERS = "word overlap", "negation", "numbers"
"""What kinds of pairs are told apart by."""

FIFTHS = ("lowest", "second", "middle", "fourth", "highest")

LONG_DIFFERENCE, SHORT, LONG = 3, 8, 20
"""Words: a pair's lengths differ by more than the first (as in ESimCSE's groups), both sentences have at most the
second, or both at least the third."""

LOW_OVERLAP, HIGH_OVERLAP = 0.25, 0.75
"""Below, and from which on, the share of common words (Jaccard) makes a kind of its own."""

_APART = 0.75
"""Pairs whose ratings spread more than at that quantile are a kind: their mean may hide two opinions."""

_NEGATIONS = frozenset(
    ("no", "not", "cannot", "never", "none", "nobody", "nothing", "nowhere", "neither", "nor", "without")
)
_SHORT_NOT = ("n't", "n\u2019t")

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NAMES = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_SPELLED = {name: str(value) for value, name in enumerate(_NAMES, 2)}
"""Without `one`, which is a pronoun as often."""

_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")


class PairKind(NamedTuple):
    """Some pairs of a table: what they are told apart by, what they are called, and which they are, (n,).

    The name goes on after `pairs with`.
    """

    feature: str
    name: str
    inside: NDArray[np.bool_]


class SentenceFeatures(NamedTuple):
    """What is looked at in a sentence: its words, whether one of them negates, its numbers."""

    words: frozenset[str]
    negates: bool
    numbers: frozenset[str]

    @classmethod
    def of(cls, text: str) -> "SentenceFeatures":
        """Read a sentence.

        >>> SentenceFeatures.of("Two dogs don't run 1,500 m").numbers == {"2", "1,500"}
        True
        """
        folded = text.casefold()
        words = frozenset(_WORD.findall(folded))
        numbers = {*_NUMBER.findall(folded), *(_SPELLED[word] for word in words & _SPELLED.keys())}
        negates = not words.isdisjoint(_NEGATIONS) or any(short in folded for short in _SHORT_NOT)
        return cls(words, negates, frozenset(numbers))


def kinds_by_numbers(table: pd.DataFrame, gold_range: tuple[float, float]) -> list[PairKind]:
    """Return the kinds of a task's pairs by what its table holds: gold score, raters and length where known."""
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
    """Return the kinds of a task's pairs by their sentences, which are given by their numbers."""
    sides = zip(*(table[side].tolist() for side in SENTENCES), strict=True)
    pairs = [(sentences[first], sentences[second]) for first, second in sides]
    shared = np.array([_jaccard(first.words, second.words) for first, second in pairs])
    negated = np.array([first.negates != second.negates for first, second in pairs], dtype=bool)
    numbers = np.array([first.numbers != second.numbers for first, second in pairs], dtype=bool)
    return [
        PairKind(OVERLAP, f"less than {100 * LOW_OVERLAP:g} % of their words shared", shared < LOW_OVERLAP),
        PairKind(OVERLAP, f"at least {100 * HIGH_OVERLAP:g} % of their words shared", shared >= HIGH_OVERLAP),
        PairKind(NEGATION, "a negation in one sentence alone", negated),
        PairKind(NUMBERS, "different numbers in both", numbers),
    ]


def _jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    either = len(first | second)
    return len(first & second) / either if either else 1.0


def sentences_here(
    table: pd.DataFrame, data_dirs: Sequence[str | Path]
) -> tuple[dict[int, SentenceFeatures], str]:
    """Return what stands in the sentences of a task's pairs, by their numbers; or nothing, and why not.

    Args:
        table: the pairs of one task, split and text.
        data_dirs: folders to look for its data in.
    """
    task, split, text = (str(table[name].iloc[0]) for name in ("task", "split", "text"))
    if text == "user":
        return {}, f"{task} is a file of one's own, whose sentences no record holds"
    try:
        texts = read_task(TaskSpec(task, split_and_view(split)[0], text), list(map(Path, data_dirs))).sentences()
    except UserError as error:
        return {}, str(error).rstrip(".")
    wanted = {number for side in SENTENCES for number in table[side].tolist()}
    numbers = sentence_ids(texts).tolist()
    known = {number: content for number, content in zip(numbers, texts, strict=True) if number in wanted}
    if lacking := len(wanted) - len(known):
        return {}, f"{lacking:,} of its {len(wanted):,} sentences are not in the data that is here"
    return {number: SentenceFeatures.of(content) for number, content in known.items()}, ""
