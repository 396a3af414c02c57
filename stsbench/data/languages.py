"""In which scripts texts are written, which is counted, and in which language they may be, which is a guess.

The guess is that of py3langid (BSD-3-Clause, a kept fork of langid.py by Lui and Baldwin, 2012; its model is
4.6 MB of numbers, loaded without running code), an extra: `pip install 'stsbench[language]'`. A short sentence
alone is often guessed wrong ("a man" as Malagasy), so some sentences together are guessed, and the share of such
groups is told.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence

TOGETHER = 20
"""Sentences that are guessed as one text."""

MOST_GROUPS = 200
"""Groups that are guessed at most, evenly spread over the texts."""

_LETTER = "L"
_NAMES = {"CJK": "Han", "CANADIAN": "Canadian Aboriginal", "HALFWIDTH": "Katakana", "FULLWIDTH": "Latin"}
"""Of scripts whose letters' names begin otherwise than the script is called."""


def scripts(texts: Sequence[str]) -> dict[str, float]:
    """Return the share of the letters that are of each script, the commonest first; empty without letters.

    The script is the first word of a letter's name in Unicode.

    >>> scripts(["an owl", "сова"])
    {'Latin': 0.5555555555555556, 'Cyrillic': 0.4444444444444444}
    """
    times: Counter[str] = Counter()
    for character, count in Counter("".join(texts)).items():
        if unicodedata.category(character).startswith(_LETTER):
            word = unicodedata.name(character, "UNNAMED").split()[0].split("-")[0]
            times[_NAMES.get(word, word.capitalize())] += count
    letters = times.total()
    return {script: count / letters for script, count in times.most_common()}


def languages(texts: Sequence[str]) -> dict[str, float] | None:
    """Return the share of the groups of texts that are guessed to be of each language, the commonest first.

    Args:
        texts: sentences, as they come; twenty are guessed as one text, of at most 200 such groups.

    Returns:
        By ISO 639-1 code; None where py3langid is not installed.
    """
    try:
        import py3langid
    except ImportError:
        return None
    groups = [" ".join(texts[start : start + TOGETHER]) for start in range(0, len(texts), TOGETHER)]
    step = -(-len(groups) // MOST_GROUPS) or 1
    guesses = Counter(str(py3langid.classify(group)[0]) for group in groups[::step])
    return {language: count / guesses.total() for language, count in guesses.most_common()}
