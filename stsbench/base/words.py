"""Building blocks of messages: lists, suggestions, rounded numbers."""

import difflib
import re
from collections.abc import Iterable, Sequence
from math import ceil, floor, log10


def listed(names: Sequence[str]) -> str:
    """Joins names with commas and "and".

    >>> listed(["a", "b", "c"]), listed(["a"])
    ('a, b and c', 'a')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def closest(name: object, choices: Iterable[str], *, cutoff: float = 0.7) -> list[str]:
    """Returns the choice most similar to a misspelt name, if there is one; see `plain_name`.

    Args:
        name: the misspelt name.
        choices: the valid names.
        cutoff: the least similarity, from 0 to 1 (`difflib.get_close_matches`).

    >>> closest("sts b", ["STS12", "STS-B", "SICK-R"])
    ['STS-B']
    """
    plain = {plain_name(choice): choice for choice in choices}
    # Comparing a very long name would take minutes.
    matches = difflib.get_close_matches(plain_name(str(name)[:200]), plain, n=1, cutoff=cutoff)
    return [plain[key] for key in matches]


def suggestion(name: object, choices: Iterable[str], *, otherwise: str = "") -> str:
    """Returns the end of a message about an unknown name: what to use instead.

    Args:
        name: the unknown name.
        choices: the valid names; more than eight are not listed next to a similar one.
        otherwise: what to print if no choice is similar; by default all choices.

    >>> suggestion("simsce", ["simcse", "senteval", "mteb"])
    'did you mean simcse? (choose one of simcse, senteval, mteb)'
    >>> suggestion("bleu", ["simcse", "senteval", "mteb"])
    'choose one of simcse, senteval, mteb.'
    """
    names = list(choices)
    similar = closest(name, names)
    if not similar:
        return otherwise or f"choose one of {', '.join(names)}."
    question = f"did you mean {similar[0]}?"
    return question if otherwise or len(names) > 8 else f"{question} (choose one of {', '.join(names)})"


def plain_name(name: str) -> str:
    """Returns a name without case, hyphens, underscores and spaces, to compare spellings.

    >>> plain_name("STS-B")
    'stsb'
    """
    return re.sub("[-_ ]", "", name.casefold())


def rounded_up(number: float) -> int:
    """Rounds an estimate up to two significant digits.

    >>> rounded_up(1234.5), rounded_up(7.2)
    (1300, 8)
    """
    step: int = 10 ** max(0, floor(log10(max(number, 1))) - 1)
    return ceil(number / step) * step
