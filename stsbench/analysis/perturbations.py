"""Changes of a sentence that keep its meaning. Each depends only on the sentence and the seed."""

import re
from collections.abc import Callable
from functools import partial

from stsbench.statistics.seeds import generator

Change = Callable[[str], str]

_SHORTEST = 3
"""Shorter words get no typo, which would often be another word."""

_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
"""The rows of an English keyboard, for slips to the next key."""

_FINAL = re.compile(r"(\s*[.!?]+)\s*$")


def changes(seed: int = 0) -> dict[str, Change]:
    """Returns the changes by name.

    >>> {name: change("A cat sleeps.") for name, change in changes().items() if "typos" not in name}
    {'lower case': 'a cat sleeps.', 'upper case': 'A CAT SLEEPS.', 'final punctuation': 'A cat sleeps', \
'white space': ' A  cat  sleeps. '}
    """
    return {
        "lower case": str.lower,
        "upper case": str.upper,
        "final punctuation": toggle_punctuation,
        "white space": widen,
        "typos 5 %": partial(misspell, share=0.05, seed=seed),
        "typos 10 %": partial(misspell, share=0.10, seed=seed),
    }


def toggle_punctuation(text: str) -> str:
    """Removes a final `.`, `!` or `?`, or adds a full stop if there is none."""
    if not text.strip() or _FINAL.fullmatch(text):
        return text
    without = _FINAL.sub("", text)
    return without if without != text else f"{text.rstrip()}."


def widen(text: str) -> str:
    """Doubles white space and adds it around the text."""
    return f" {'  '.join(text.split())} " if text.strip() else text


def misspell(text: str, *, share: float, seed: int = 0) -> str:
    """Adds a typo to each word of at least 3 letters with the probability `share`.

    A typo drops a letter, doubles it, swaps it with the previous one, or hits the next key; it never changes the
    first letter. The typos of a smaller share are among those of a larger one.

    >>> misspell("the children are playing in the garden", share=1.0)
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
    """Returns a word with a typo, chosen by two numbers from 0 to 1."""
    at = 1 + int(place * (len(word) - 1))
    letter, before, after = word[at], word[:at], word[at + 1 :]
    if kind < 1 / 4:
        return before + after
    if kind < 2 / 4:
        return before + letter + letter + after
    if kind < 3 / 4 and (swapped := word[: at - 1] + letter + word[at - 1] + after) != word and at > 1:
        return swapped
    return before + _next_key(letter) + after


def _next_key(letter: str) -> str:
    """Returns the key to the right of a letter, or to the left at the end of a row; empty for other letters."""
    for row in _KEYS:
        if (at := row.find(letter.lower())) >= 0:
            key = row[at + 1] if at + 1 < len(row) else row[at - 1]
            return key.upper() if letter.isupper() else key
    return ""
