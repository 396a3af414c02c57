"""What was typed otherwise in the version before: it works for this version, and a line says what to type now."""

from collections.abc import Sequence

_PLAN, _BEST_OF = "--plan", "--best-of"


def current(arguments: Sequence[str]) -> list[str]:
    """Return a command line as this version has it; one that is not old as it is.

    >>> current(["compare", "a", "b", "--plan", "--difference", "1"])
    ['plan', 'a', 'b', '--difference', '1']
    >>> current(["compare", "--a", "x", "y", "--best-of=76.25"])
    ['best-of', 'x', 'y', '--number', '76.25']
    >>> current(["compare", "--best-of", "esimcse-bert-base", "--json"])
    ['best-of', 'esimcse-bert-base', '--json']
    """
    rest = [part for argument in arguments for part in _apart(argument)]
    if rest[:1] != ["compare"] or not {_PLAN, _BEST_OF} & set(rest):
        return list(arguments)
    del rest[0]
    if _PLAN in rest:
        return ["plan", *(argument for argument in rest if argument != _PLAN)]
    has_runs = "--a" in rest
    rest = [argument for argument in rest if argument != "--a"]
    place = rest.index(_BEST_OF)
    rest[place : place + 1] = ["--number"] if has_runs else []
    return ["best-of", *rest]


def _apart(argument: str) -> list[str]:
    """Return `--best-of=SCORE` as two arguments."""
    option, equals, value = argument.partition("=")
    return [option, value] if equals and option == _BEST_OF else [argument]
