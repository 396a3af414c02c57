"""Whether sentences and pairs are the same: the ids and keys that overlaps, views and intervals are counted by.

Two sentences are the same *as released*, or by *letters and digits* only, case-folded, because two releases
tokenise one sentence differently. Two pairs are the same if both sentences are, in either order. Ids let a table
say which pairs share a sentence without containing any text.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

SENTENCES = ("sentence_a", "sentence_b")
"""The columns with `sentence_ids`, which show the pairs of one task that share a sentence."""

FOLDED = ("folded_a", "folded_b")
"""The columns with `folded_ids`, which do so across tasks and tokenisations."""

_NOT_LETTERS = re.compile(r"[\W_]+")


def same_letters(text: str) -> str:
    """Returns the letters and digits of a text, case-folded and NFC-normalised.

    >>> same_letters("It's a dog.") == same_letters("it 's a dog .")
    True
    """
    folded = unicodedata.normalize("NFC", text).casefold()
    # Normalised again, because case folding decomposes some letters.
    return _NOT_LETTERS.sub("", unicodedata.normalize("NFC", folded))


def sentence_ids(texts: Iterable[str]) -> NDArray[np.uint64]:
    """Returns the ids of n sentences as released, (n,): the first eight bytes of each SHA-256.

    Ids are the same on every machine. Two of a hundred thousand sentences collide with probability 3e-10.

    >>> sentence_ids(["a dog .", "a cat .", "a dog ."]).tolist()
    [8607547623772946423, 15204855711231983037, 8607547623772946423]
    """
    digests = b"".join([hashlib.sha256(text.encode(errors="surrogatepass")).digest()[:8] for text in texts])
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def folded_ids(texts: Iterable[str]) -> NDArray[np.uint64]:
    """Returns the ids of n sentences by letters and digits, (n,).

    A sentence without any (punctuation only) is only equal to itself.

    >>> first, second, punctuation = folded_ids(["It's a dog.", "it 's a dog .", "..."]).tolist()
    >>> first == second, first == punctuation
    (True, False)
    """
    return sentence_ids(same_letters(text) or text for text in texts)


RELEASED, LETTERS = "as released", "letters and digits"

IDS = {RELEASED: sentence_ids, LETTERS: folded_ids}
"""The ids for each way in which sentences can be the same."""


def id_columns(first: Iterable[str], second: Iterable[str | None]) -> dict[str, NDArray[np.uint64]]:
    """Returns the four id columns of an items table.

    Args:
        first: the first sentences of n items.
        second: the second ones; None for an item with one sentence, whose second id is its first.
    """
    left = list(first)
    right = [one if other is None else other for one, other in zip(left, second, strict=True)]
    # Many sentences are in several pairs: each is hashed once.
    rows, distinct = pd.factorize(np.array([*left, *right], dtype=object))
    columns = dict[str, NDArray[np.uint64]]()
    for names, ids_of in ((SENTENCES, sentence_ids), (FOLDED, folded_ids)):
        ids = ids_of(distinct)[rows]
        columns |= {names[0]: ids[: len(left)], names[1]: ids[len(left) :]}
    return columns


def unordered_pairs(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> list[tuple[int, int]]:
    """Returns the two ids of each pair, the lower one first.

    >>> ids = sentence_ids(["a dog .", "a cat ."])
    >>> unordered_pairs(ids, ids[::-1])[0] == unordered_pairs(ids, ids[::-1])[1]
    True
    """
    low, high = np.minimum(first, second).tolist(), np.maximum(first, second).tolist()
    return list(zip(low, high, strict=True))


def pair_numbers(first: Iterable[str], second: Iterable[str]) -> list[tuple[int, int]]:
    """Returns the two folded ids of each pair of sentences, the lower one first.

    >>> pair_numbers(["It's a dog."], ["A cat."]) == pair_numbers(["a cat"], ["it 's a dog ."])
    True
    """
    return unordered_pairs(folded_ids(first), folded_ids(second))


class Met(NamedTuple):
    """How many distinct sentences of a set are in a corpus.

    Attributes:
        letters: by letters and digits.
        distinct: the number of distinct sentences, by letters and digits.
        released: as released, except for whitespace at the ends.
    """

    letters: int
    distinct: int
    released: int


def sentences_met(texts: Iterable[str], sets: Mapping[str, Iterable[str]]) -> dict[str, Met]:
    """Counts the sentences of some sets in a corpus.

    Args:
        texts: the sentences of the corpus.
        sets: the sentences of each set; those without letters and digits are ignored.

    >>> sentences_met(["It 's a dog .", "rain"], {"test": ["It's a dog.", "A cat."]})
    {'test': Met(letters=1, distinct=2, released=0)}
    """
    released = {name: {text.strip() for text in members} for name, members in sets.items()}
    letters = {name: set(filter(None, map(same_letters, members))) for name, members in released.items()}
    wanted_released, wanted_letters = (set[str]().union(*keys.values()) for keys in (released, letters))
    as_released, by_letters = set[str](), set[str]()
    for text in texts:
        as_released |= {text.strip()} & wanted_released
        by_letters |= {same_letters(text)} & wanted_letters
    return {
        name: Met(len(members & by_letters), len(members), len(released[name] & as_released))
        for name, members in letters.items()
    }
