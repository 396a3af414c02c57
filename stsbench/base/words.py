"""Building blocks of messages: lists, suggestions, durations, shortened texts."""

import re
from collections.abc import Iterable, Sequence
from math import ceil, floor, log10

_FEW = 8
"""At most this many choices are listed next to a suggestion."""

_BEFORE, _BEHIND = 8, 16
"""Characters shown before and after the first difference of two texts."""

_LONGEST_WORD, _LONGEST_TEXT = 300, 4000
_LONG_WORD = re.compile(rf"\S{{{_LONGEST_WORD + 1},}}")


def listed(names: Sequence[str]) -> str:
    """Join names with commas and "and".

    >>> listed(["a", "b", "c"]), listed(["a"])
    ('a, b and c', 'a')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def shown_difference(first: str, second: str) -> tuple[str, str]:
    """Shorten two texts to the surroundings of their first difference.

    >>> shown_difference("0123456789" * 9 + "a" * 90, "0123456789" * 9 + "b" * 90)
    ('…23456789aaaaaaaaaaaaaaaa…', '…23456789bbbbbbbbbbbbbbbb…')
    """
    unlike = (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    start = max(0, next(unlike, min(len(first), len(second))) - _BEFORE)
    end = start + _BEFORE + _BEHIND

    def excerpt(text: str) -> str:
        return f"{'…' if start else ''}{text[start:end]}{'…' if len(text) > end else ''}"

    return excerpt(first), excerpt(second)


def closest(name: object, choices: Iterable[str], *, most: int = 1, cutoff: float = 0.7) -> list[str]:
    """Return the choices most similar to a misspelt name, the best first.

    Case, hyphens, underscores and spaces are ignored.

    Args:
        name: the misspelt name.
        choices: the valid names.
        most: how many to return at most.
        cutoff: the least similarity, from 0 to 1 (`difflib.get_close_matches`).

    >>> closest("sts b", ["STS12", "STS-B", "SICK-R"])
    ['STS-B']
    """
    import difflib

    # Comparing a very long name would take minutes.
    wanted = plain_name(str(name)[:200])
    plain = {plain_name(choice): choice for choice in choices}
    return [plain[key] for key in difflib.get_close_matches(wanted, plain, n=most, cutoff=cutoff)]


def suggestion(
    name: object, choices: Iterable[str], *, otherwise: str = "", most: int = 1, cutoff: float = 0.7
) -> str:
    """Return the end of a message about an unknown name: what to use instead.

    Args:
        name: the unknown name.
        choices: the valid names.
        otherwise: what to print if no choice is similar; by default all choices.
        most: see `closest`.
        cutoff: see `closest`.

    >>> suggestion("simsce", ["simcse", "senteval", "mteb"])
    'did you mean simcse? (choose one of simcse, senteval, mteb)'
    >>> suggestion("bleu", ["simcse", "senteval", "mteb"])
    'choose one of simcse, senteval, mteb.'
    >>> suggestion("STS99", [f"STS{year}" for year in range(12, 30)])
    'did you mean STS29?'
    """
    names = list(choices)
    close = closest(name, names, most=most, cutoff=cutoff)
    if not close:
        return otherwise or f"choose one of {', '.join(names)}."
    meant = f"did you mean {' or '.join(close)}?"
    return meant if otherwise or len(names) > _FEW else f"{meant} (choose one of {', '.join(names)})"


def duration(seconds: float) -> str:
    """Return an approximate duration in words.

    >>> duration(7.4), duration(130), duration(9000)
    ('about 8 s', 'about 3 min', 'about 2.5 h')
    """
    if seconds < 100:
        return f"about {ceil(seconds)} s"
    return f"about {ceil(seconds / 60)} min" if seconds < 6000 else f"about {seconds / 3600:.1f} h"


def rounded_up(number: float) -> int:
    """Round an estimate up to two significant digits.

    >>> rounded_up(1234.5), rounded_up(7.2)
    (1300, 8)
    """
    step: int = 10 ** max(0, floor(log10(max(number, 1))) - 1)
    return ceil(number / step) * step


def plain_name(name: str) -> str:
    """Return a name without case, hyphens, underscores and spaces, to compare spellings.

    >>> plain_name("STS-B")
    'stsb'
    """
    return name.casefold().replace("-", "").replace("_", "").replace(" ", "")


def shortened(text: str) -> str:
    """Cut the middle out of very long words and texts.

    >>> shortened("a" * 1000 + " b")  # doctest: +ELLIPSIS
    'aaa...aaa[...840 characters...]aaa...aaa b'
    """

    def cut(text: str, longest: int) -> str:
        start, end = longest * 2 // 5, longest * 2 // 15
        return f"{text[:start]}[...{len(text) - start - end} characters...]{text[-end:]}"

    words = _LONG_WORD.sub(lambda match: cut(match[0], _LONGEST_WORD), text)
    return words if len(words) <= _LONGEST_TEXT else cut(words, _LONGEST_TEXT)


def storable(name: str) -> str:
    r"""Return a file name as text that can be written as UTF-8.

    Python reads file names in another encoding with lone surrogates, which cannot be encoded.

    >>> storable("caf\udce9"), storable("café")
    ('caf\\udce9', 'café')
    """
    return name.encode("utf-8", errors="backslashreplace").decode("utf-8")
