"""Ways in which somebody else would have typed a sentence, which leave its meaning alone: pure functions of text.

How a sentence is changed depends on the sentence and the seed alone, not on what else is changed.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.data.rows import open_rows
from stsbench.statistics.seeds import generator

Change = Callable[[str], str]
"""Returns a sentence changed; the sentence itself where there is nothing to change."""

PARAPHRASES = "paraphrases"
"""The name of the change that takes a file."""

_SHORTEST = 3
"""Words of fewer letters have no typo: one is often another word."""

_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
"""The rows of an English keyboard: a slip hits the key beside the one that was meant."""

_FINAL = re.compile(r"(\s*[.!?]+)\s*$")


def changes(seed: int = 0) -> dict[str, Change]:
    """Return the changes that need no file, by name.

    >>> {name: change("A cat sleeps.") for name, change in changes().items() if "typos" not in name}
    {'lower case': 'a cat sleeps.', 'upper case': 'A CAT SLEEPS.', 'final punctuation': 'A cat sleeps', \
'white space': ' A  cat  sleeps. '}
    """
    return {
        "lower case": str.lower,
        "upper case": str.upper,
        "final punctuation": other_ending,
        "white space": wider,
        "typos 5 %": partial(misspelt, share=0.05, seed=seed),
        "typos 10 %": partial(misspelt, share=0.10, seed=seed),
    }


def other_ending(text: str) -> str:
    """Return a sentence without its final `.`, `!` or `?`, or with a full stop where it has none of them.

    >>> other_ending("A cat sleeps ."), other_ending("a cat sleeps"), other_ending("?!"), other_ending(" ")
    ('A cat sleeps', 'a cat sleeps.', '?!', ' ')
    """
    if not text.strip() or _FINAL.fullmatch(text):
        return text
    without = _FINAL.sub("", text)
    return without if without != text else f"{text.rstrip()}."


def wider(text: str) -> str:
    """Return a sentence with a space around it, and each run of white space inside as two spaces.

    >>> wider("a cat sleeps")
    ' a  cat  sleeps '
    """
    return f" {'  '.join(text.split())} " if text.strip() else text


def misspelt(text: str, *, share: float, seed: int = 0) -> str:
    """Return a sentence in which words have a typo, each with the probability `share`.

    Words of fewer than 3 letters, and what is no word of letters, have none; a typo leaves out a letter, doubles
    it, swaps it with the one before, or takes the key beside it, and never touches the first letter. The typos of
    a smaller share are among those of a larger one.

    >>> misspelt("the children are playing in the garden", share=1.0)
    'thr chikdren ate plyaing in tje gsrden'
    """
    draws = generator(seed, "typos", text)

    def typed(match: re.Match[str]) -> str:
        # Drawn for every word, so that a larger share only adds typos.
        chance, kind, place = draws.random(3)
        word = match.group()
        return _slip(word, kind, place) if chance < share and len(word) >= _SHORTEST else word

    return re.sub(r"[^\W\d_]+", typed, text)


def _slip(word: str, kind: float, place: float) -> str:
    """Return a word with a typo, by two numbers from 0 to 1."""
    at = 1 + int(place * (len(word) - 1))
    letter, before, behind = word[at], word[:at], word[at + 1 :]
    if kind < 1 / 4:
        return before + behind
    if kind < 2 / 4:
        return before + letter + letter + behind
    if kind < 3 / 4 and (swapped := word[: at - 1] + letter + word[at - 1] + behind) != word and at > 1:
        return swapped
    beside = _beside(letter)
    return before + beside + behind if beside else before + behind


def _beside(letter: str) -> str:
    """Return the key to the right of a letter's, or to the left at the end of its row; empty off the keyboard.

    >>> _beside("a"), _beside("P"), _beside("ü")
    ('s', 'O', '')
    """
    for row in _KEYS:
        if (at := row.find(letter.lower())) >= 0:
            key = row[at + 1] if at + 1 < len(row) else row[at - 1]
            return key.upper() if letter.isupper() else key
    return ""


def read_paraphrases(path: str | Path) -> Mapping[str, str]:
    """Return for each sentence of a file its paraphrase: two columns, a sentence and what says the same.

    Raises:
        UserError: naming the line of a row that is no pair, or that gives a sentence another paraphrase.
    """
    path = Path(path).expanduser()
    known: dict[str, str] = {}
    for line, cells in open_rows(path, is_header=lambda cells: "paraphrase" in map(str.casefold, cells)).rows:
        texts = [cell.strip() if isinstance(cell, str) else "" for cell in cells]
        if len(texts) != 2 or not all(texts):
            raise UserError(f"{path}, line {line}: give a sentence and its paraphrase, in two columns.")
        sentence, paraphrase = texts
        if known.setdefault(sentence, paraphrase) != paraphrase:
            raise UserError(
                f"{path}, line {line}: {sentence!r} has another paraphrase in a line before: leave one of them."
            )
    if not known:
        raise UserError(f"{path} holds no paraphrase: give a sentence and its paraphrase a line.")
    return known
