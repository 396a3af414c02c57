"""Words for sentences that the project makes."""

from collections.abc import Sequence


def listed(names: Sequence[str]) -> str:
    """Return names as a list inside a sentence; empty for none.

    >>> listed(["a", "b", "c"]), listed(["a"])
    ('a, b and c', 'a')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
