"""Words for sentences that the project makes."""

import re
from collections.abc import Iterable, Sequence
from math import ceil, floor, log10

_FEW = 8
"""So many choices fit into a sentence beside a suggestion."""

_BEFORE, _BEHIND = 8, 16
"""Characters that are shown of a text before and behind where it begins to differ from another."""

_LONGEST_WORD, _LONGEST_TEXT = 300, 4000
_LONG_WORD = re.compile(rf"\S{{{_LONGEST_WORD + 1},}}")


def listed(names: Sequence[str]) -> str:
    """Return names as a list inside a sentence; empty for none.

    >>> listed(["a", "b", "c"]), listed(["a"])
    ('a, b and c', 'a')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def shown_difference(first: str, second: str) -> tuple[str, str]:
    """Return two texts shortened so that the first difference between them is seen.

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
    """Return those of the choices that a misspelt name may stand for, the likeliest first.

    Case, hyphens, underscores and spaces do not count. `most` limits their number; `cutoff` is how alike they must
    be, from 0 to 1 (`difflib.get_close_matches`).

    >>> closest("sts b", ["STS12", "STS-B", "SICK-R"])
    ['STS-B']
    """
    import difflib

    # Nobody means anything by a name as long as a page; comparing it would take minutes.
    wanted = plain_name(str(name)[:200])
    plain = {plain_name(choice): choice for choice in choices}
    return [plain[key] for key in difflib.get_close_matches(wanted, plain, n=most, cutoff=cutoff)]


def suggestion(
    name: object, choices: Iterable[str], *, otherwise: str = "", most: int = 1, cutoff: float = 0.7
) -> str:
    """Return what to do about a name that is not among the choices: the end of a sentence, with its full stop.

    `otherwise` is what to say where none is like it ("`stsbench data list` lists them."); empty for all of them.
    For `most` and `cutoff` see `closest`.

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
    """Return about how long something takes, in the unit that a person would use.

    >>> duration(7.4), duration(130), duration(9000)
    ('about 8 s', 'about 3 min', 'about 2.5 h')
    """
    if seconds < 100:
        return f"about {ceil(seconds)} s"
    return f"about {ceil(seconds / 60)} min" if seconds < 6000 else f"about {seconds / 3600:.1f} h"


def rounded_up(number: float) -> int:
    """Return a number rounded up to two digits, as estimates are given.

    >>> rounded_up(1234.5), rounded_up(7.2)
    (1300, 8)
    """
    step: int = 10 ** max(0, floor(log10(max(number, 1))) - 1)
    return ceil(number / step) * step


def plain_name(name: str) -> str:
    """Return a name without what people spell differently: case, hyphens, underscores and spaces.

    >>> plain_name("STS-B")
    'stsb'
    """
    return name.casefold().replace("-", "").replace("_", "").replace(" ", "")


def shortened(text: str) -> str:
    """Return a sentence in which a word or value that would fill pages has lost its middle.

    >>> shortened("a" * 1000 + " b")  # doctest: +ELLIPSIS
    'aaa...aaa[...840 characters...]aaa...aaa b'
    """

    def cut(text: str, longest: int) -> str:
        start, end = longest * 2 // 5, longest * 2 // 15
        return f"{text[:start]}[...{len(text) - start - end} characters...]{text[-end:]}"

    words = _LONG_WORD.sub(lambda match: cut(match[0], _LONGEST_WORD), text)
    return words if len(words) <= _LONGEST_TEXT else cut(words, _LONGEST_TEXT)


def storable(name: str) -> str:
    r"""Return the name of a file as text that can be stored: in a table, say.

    A system may hold names in an encoding that is not UTF-8; Python reads the bytes that do not fit as halves of
    characters, which no file takes.

    >>> storable("caf\udce9"), storable("café")
    ('caf\\udce9', 'café')
    """
    return name.encode("utf-8", errors="backslashreplace").decode("utf-8")
