"""What sentences share: numbers that stand for them, and everything that is counted on these numbers.

Two sentences are the same as they are released, or by letters and digits alone, case folded, since two releases
tokenise one sentence differently. Two pairs are the same if both sentences are by letters and digits, whichever is
named first. So a table can say which pairs share a sentence without holding any text. `overlap` makes tables of
what data sets share; `views` leave shared pairs out of a score.

Sentences are nearly the same by the runs of three letters that both have. The measure is Jaccard's of the sets of
three letters in a row: those of both over those of either, of the letters and digits alone, case folded, so that
neither tokenisation nor punctuation counts. MinHash estimates that measure; for some ten thousand sentences it can
be had exactly. Two sets that reach a threshold t share one of the first n - ceil(t n) + 1 of their n elements,
whichever order all sets are put in (the prefix filter of Chaudhuri, Ganti and Kaushik 2006, and Bayardo, Ma and
Srikant 2007): in the order of their rarity few others share one.
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from stsbench.data.tables import StsData

SENTENCES = ("sentence_a", "sentence_b")
"""The columns that hold `sentence_ids`, which say which pairs of one task share a sentence."""

FOLDED = ("folded_a", "folded_b")
"""The columns that hold `folded_ids`, which say so of pairs of several tasks, however a release is tokenised."""

_NOT_LETTERS = re.compile(r"[\W_]+")
_NOT_LETTERS_OF_ASCII = bytes(code for code in range(128) if not chr(code).isalnum())


def same_case(text: str) -> str:
    r"""Return what two texts share that differ in case and in how Unicode writes an accent alone.

    >>> same_case("Caf\u00e9") == same_case("CAFE\u0301")
    True
    """
    if text.isascii():
        return text.lower()
    # Again at the end, as case folding takes some letters apart.
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def same_letters(text: str) -> str:
    """Return what two texts share that differ as in `same_case`, and in white space, punctuation and tokenisation.

    >>> same_letters("It's a dog.") == same_letters("it 's a dog .")
    True
    """
    folded = same_case(text)
    if text.isascii():  # as nearly all are: the same in a sixth of the time
        return folded.encode().translate(None, _NOT_LETTERS_OF_ASCII).decode()
    return _NOT_LETTERS.sub("", folded)


def sentence_ids(texts: Iterable[str]) -> NDArray[np.uint64]:
    """Return (n,) numbers of n sentences as they were read: the first eight bytes of the SHA-256 of each.

    Equal sentences have equal numbers, on another machine too. Of a hundred thousand sentences two have the same
    by accident with a chance of 3 in ten thousand million.

    >>> sentence_ids(["a dog .", "a cat .", "a dog ."]).tolist()
    [8607547623772946423, 15204855711231983037, 8607547623772946423]
    """
    sha256 = hashlib.sha256
    digests = b"".join([sha256(text.encode(errors="surrogatepass")).digest() for text in texts])
    return np.frombuffer(digests, dtype="<u8")[:: sha256().digest_size // 8].astype(np.uint64)


def folded_ids(texts: Iterable[str]) -> NDArray[np.uint64]:
    """Return (n,) numbers of n sentences by their letters and digits alone, case folded.

    A sentence without any (of punctuation alone) stands for itself.

    >>> first, second, punctuation = folded_ids(["It's a dog.", "it 's a dog .", "..."]).tolist()
    >>> first == second, first == punctuation
    (True, False)
    """
    return sentence_ids(same_letters(text) or text for text in texts)


RELEASED, LETTERS = "as released", "letters and digits"
"""How two sentences are found to be the same: as they are; by letters and digits alone, case folded."""

NUMBERS = {RELEASED: sentence_ids, LETTERS: folded_ids}
"""For each way what gives equal sentences equal numbers."""


def id_columns(first: Iterable[str], second: Iterable[str | None]) -> dict[str, NDArray[np.uint64]]:
    """Return the four columns of an items table.

    Args:
        first: n sentences.
        second: the other of each pair; None where an item has one sentence, whose second numbers are the first.
    """
    ones = list(first)
    others = [one if other is None else other for one, other in zip(ones, second, strict=True)]
    # Each sentence once: many stand in several pairs.
    rows, distinct = pd.factorize(np.array([*ones, *others], dtype=object))
    columns = dict[str, NDArray[np.uint64]]()
    for names, numbers in ((SENTENCES, sentence_ids), (FOLDED, folded_ids)):
        ids = numbers(distinct)[rows]
        columns |= {names[0]: ids[: len(ones)], names[1]: ids[len(ones) :]}
    return columns


def unordered_pairs(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> list[tuple[int, int]]:
    """Return the numbers of each pair's two sentences in one order, whichever is named first.

    >>> ids = sentence_ids(["a dog .", "a cat ."])
    >>> unordered_pairs(ids, ids[::-1])[0] == unordered_pairs(ids, ids[::-1])[1]
    True
    """
    low, high = np.minimum(first, second).tolist(), np.maximum(first, second).tolist()
    return list(zip(low, high, strict=True))


def pair_numbers(first: Iterable[str], second: Iterable[str]) -> list[tuple[int, int]]:
    """Return two numbers for each pair of sentences, by letters and digits, whichever is named first.

    >>> pair_numbers(["It's a dog."], ["A cat."]) == pair_numbers(["a cat"], ["it 's a dog ."])
    True
    """
    return unordered_pairs(folded_ids(first), folded_ids(second))


def pairs_in(data: StsData) -> list[tuple[int, int]]:
    """Return the two numbers of each pair of a task, in its order."""
    return pair_numbers(data.pairs["sentence1"], data.pairs["sentence2"])


def keys_met(
    texts: Iterable[str], *keys_by_way: tuple[Callable[[str], str], Iterable[str]]
) -> tuple[set[str], ...]:
    """Return which keys a stream of texts meets, a set for each way; it is read once, no text is kept.

    Args:
        texts: as often as they stand there; not read further than until all keys are met.
        keys_by_way: what makes a text's key, such as `same_letters`, and the keys that are looked for.

    >>> keys_met(["It 's a dog .", "rain"], (same_letters, ["itsadog", "acat"]), (str.strip, ["rain"]))
    ({'itsadog'}, {'rain'})
    """
    wanted = [(key, set(keys)) for key, keys in keys_by_way]
    missing = [(key, set(keys)) for key, keys in wanted]
    for text in texts:
        for key, keys in missing:
            keys.discard(key(text))
        if not any(keys for _, keys in missing):
            break
    return tuple(keys - left for (_, keys), (_, left) in zip(wanted, missing, strict=True))


class Met(NamedTuple):
    """Of the distinct sentences of a set, how many a corpus holds.

    Attributes:
        letters: by letters and digits, case folded.
        distinct: how many the set has, by letters and digits.
        released: as released, but for white space at the ends.
    """

    letters: int
    distinct: int
    released: int


def sentences_met(texts: Iterable[str], sets: Mapping[str, Iterable[str]]) -> dict[str, Met]:
    """Count the sentences of some sets that a stream of texts holds.

    Args:
        texts: of the corpus, as often as they stand there.
        sets: the sentences of each set; those without letter and digit are left out.

    >>> sentences_met(["It 's a dog .", "rain"], {"test": ["It's a dog.", "A cat."]})
    {'test': Met(letters=1, distinct=2, released=0)}
    """
    released = {name: {text.strip() for text in members} for name, members in sets.items()}
    letters = {name: set(filter(None, map(same_letters, members))) for name, members in released.items()}
    ways = (str.strip, set[str]().union(*released.values())), (same_letters, set[str]().union(*letters.values()))
    as_released, by_letters = keys_met(texts, *ways)
    return {
        name: Met(len(members & by_letters), len(members), len(released[name] & as_released))
        for name, members in letters.items()
    }


NEAR = 0.8
"""The usual share of common letter triples from which on two sentences are nearly the same."""

_RUN = 3
_CELLS_AT_ONCE = 4_000_000
_PAIRS_AT_ONCE = 200_000


def triples(text: str) -> set[str]:
    """Return each three letters in a row of a text; what is shorter stands for itself.

    >>> sorted(triples("kettle"))
    ['ett', 'ket', 'tle', 'ttl']
    """
    return {text[place : place + _RUN] for place in range(len(text) - _RUN + 1)} or {text}


def near_matches(
    left: Sequence[str], right: Sequence[str], threshold: float = NEAR
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which texts of either side, (n,) and (m,), have one on the other side that is nearly the same.

    Args:
        left: n distinct texts, of letters and digits alone (`same_letters`).
        right: m of them.
        threshold: the least measure, above 0 and up to 1.

    >>> [side.tolist() for side in near_matches(["thekettlesings", "anowlnaps"], ["thekettlessing"], 0.6)]
    [[True, False], [True]]
    """
    matched = np.zeros(len(left), dtype=bool), np.zeros(len(right), dtype=bool)
    if not left or not right:
        return matched
    sets = _incidence([*left, *right])
    sizes = np.diff(sets.indptr)
    prefixes = _prefixes(sets, sizes, threshold)
    of_left, of_right = sets[: len(left)], sets[len(left) :]
    by_triple = prefixes[len(left) :].T.tocsr()
    step = max(1, _CELLS_AT_ONCE // len(right))
    for start in range(0, len(left), step):
        candidates = (prefixes[start : min(start + step, len(left))] @ by_triple).tocoo()
        rows, columns = candidates.row + start, candidates.col
        # Of sets whose sizes differ more than the threshold allows, one can at most be part of the other.
        sides = sizes[rows], sizes[len(left) + columns]
        fitting = np.minimum(*sides) >= threshold * np.maximum(*sides)
        rows, columns = rows[fitting], columns[fitting]
        common = _common(of_left, of_right, rows, columns)
        either = sizes[rows] + sizes[len(left) + columns] - common
        # As whole numbers, so that exactly the threshold is reached.
        near = common >= np.ceil(threshold * either - 1e-9)
        matched[0][rows[near]] = True
        matched[1][columns[near]] = True
    return matched


def _incidence(texts: Sequence[str]) -> Any:
    """Return which text has which triple, (texts, triples), the rarest triple first; a sparse matrix of ones."""
    places: dict[str, int] = {}
    columns: list[int] = []
    ends = [0]
    for text in texts:
        columns += [places.setdefault(triple, len(places)) for triple in triples(text)]
        ends.append(len(columns))
    flat = np.asarray(columns, dtype=np.int64)
    rank = np.empty(len(places), dtype=np.int64)
    rank[np.argsort(np.bincount(flat, minlength=len(places)), kind="stable")] = np.arange(len(places))
    ones = np.ones(len(flat), dtype=np.int32)
    matrix = csr_matrix((ones, rank[flat], np.asarray(ends)), shape=(len(texts), len(places)))
    matrix.sort_indices()
    return matrix


def _prefixes(sets: Any, sizes: NDArray[np.int64], threshold: float) -> Any:
    """Return the same with the rarest n - ceil(t n) + 1 of each text's n triples alone."""
    # At least one triple is in common, however small the threshold.
    least = np.maximum(np.ceil(threshold * sizes - 1e-9), 1)
    kept = sizes - least.astype(np.int64) + 1
    within = np.arange(sets.nnz) - np.repeat(sets.indptr[:-1], sizes)
    chosen = within < np.repeat(kept, sizes)
    ends = np.concatenate([[0], np.cumsum(kept)])
    return csr_matrix((sets.data[chosen], sets.indices[chosen], ends), shape=sets.shape)


def _common(left: Any, right: Any, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many triples each candidate pair has in common, a part of the pairs at a time."""
    parts = [np.zeros(0, dtype=np.int64)]
    for start in range(0, len(rows), _PAIRS_AT_ONCE):
        pairs = slice(start, start + _PAIRS_AT_ONCE)
        both = left[rows[pairs]].multiply(right[columns[pairs]])
        parts.append(np.asarray(both.sum(axis=1)).ravel().astype(np.int64))
    return np.concatenate(parts)
