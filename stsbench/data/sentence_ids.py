"""Numbers that stand for sentences, so that a table can say which pairs share one without holding any text."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from stsbench.data.plain_table import coded

SENTENCES = ("sentence_a", "sentence_b")
"""The columns of what `sentence_ids` gives: which pairs of one task share a sentence."""

FOLDED = ("folded_a", "folded_b")
"""The columns of what `folded_ids` gives: which pairs of several tasks do, whatever the release's tokenisation."""

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
    """Return a number for each sentence as it was read: the first eight bytes of its SHA-256.

    Of a hundred thousand sentences two have the same by accident with a chance of 3 in ten thousand million.

    Args:
        texts: n sentences.

    Returns:
        (n,) numbers, equal for equal sentences, today and on another machine.

    >>> sentence_ids(["a dog .", "a cat .", "a dog ."]).tolist()
    [8607547623772946423, 15204855711231983037, 8607547623772946423]
    """
    sha256 = hashlib.sha256
    digests = b"".join([sha256(text.encode(errors="surrogatepass")).digest() for text in texts])
    return np.frombuffer(digests, dtype="<u8")[:: sha256().digest_size // 8].astype(np.uint64)


def folded_ids(texts: Iterable[str]) -> NDArray[np.uint64]:
    """Return a number for each sentence by its letters and digits alone, case folded.

    A sentence without any (of punctuation alone) stands for itself.

    Args:
        texts: n sentences.

    Returns:
        (n,) numbers.

    >>> first, second, other = folded_ids(["It's a dog.", "it 's a dog .", "..."]).tolist()
    >>> first == second, first == other
    (True, False)
    """
    return sentence_ids(same_letters(text) or text for text in texts)


def unordered_pairs(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> list[tuple[int, int]]:
    """Return each pair's two sentences in one order, whichever is named first.

    Args:
        first: (n,) numbers of sentences, of `sentence_ids` or `folded_ids`.
        second: (n,) numbers of the others.

    >>> ids = sentence_ids(["a dog .", "a cat ."])
    >>> unordered_pairs(ids, ids[::-1])[0] == unordered_pairs(ids, ids[::-1])[1]
    True
    """
    low, high = np.minimum(first, second).tolist(), np.maximum(first, second).tolist()
    return list(zip(low, high, strict=True))


def id_columns(first: Iterable[str], second: Iterable[str | None]) -> dict[str, NDArray[np.uint64]]:
    """Return the four columns of an items table.

    Args:
        first: n sentences.
        second: the other of each pair; None where an item has one sentence, whose second numbers are the first.
    """
    ones = list(first)
    others = [one if other is None else other for one, other in zip(ones, second, strict=True)]
    # Each sentence once: many stand in several pairs.
    distinct, rows = coded([*ones, *others])
    exact, folded = sentence_ids(distinct)[rows], folded_ids(distinct)[rows]
    return {
        SENTENCES[0]: exact[: len(ones)],
        SENTENCES[1]: exact[len(ones) :],
        FOLDED[0]: folded[: len(ones)],
        FOLDED[1]: folded[len(ones) :],
    }
