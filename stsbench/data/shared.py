"""What sets of sentences share: one place for what every room asks, on the sentences' numbers.

Two sentences are the same as they are released, or by letters and digits alone, case folded, since two releases
tokenise one sentence differently. Two pairs are the same if both sentences are by letters and digits, whichever is
named first. Of tables see `overlap` and `sharing`, of what is left out of a score `views`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_sts
from stsbench.data.sentence_ids import folded_ids, same_letters, sentence_ids, unordered_pairs
from stsbench.data.tables import StsData

RELEASED, LETTERS = "as released", "letters and digits"
"""How two sentences are found to be the same: as they are; by letters and digits alone, case folded."""

NUMBERS = {RELEASED: sentence_ids, LETTERS: folded_ids}
"""For each way what gives equal sentences equal numbers."""


def pair_numbers(first: Iterable[str], second: Iterable[str]) -> list[tuple[int, int]]:
    """Return a number for each pair of sentences, by letters and digits, whichever is named first.

    >>> pair_numbers(["It's a dog."], ["A cat."]) == pair_numbers(["a cat"], ["it 's a dog ."])
    True
    """
    return unordered_pairs(folded_ids(first), folded_ids(second))


def pairs_in(data: StsData) -> list[tuple[int, int]]:
    """Return a number for each pair of a task, in its order."""
    return pair_numbers(data.table["sentence1"], data.table["sentence2"])


def read_splits(
    names: Iterable[str], data_dirs: Sequence[Path] = ()
) -> tuple[dict[str, StsData], dict[str, UserError]]:
    """Return splits of STS tasks by name (`STS-B:dev`), and why those that are not here, or broken, are not.

    Args:
        names: each a task and its split.
        data_dirs: folders to look for data in first (default: the places of `stsbench.data.locate`).
    """
    sets: dict[str, StsData] = {}
    absent: dict[str, UserError] = {}
    for name in names:
        task, _, split = name.partition(":")
        try:
            sets[name] = load_sts(task, split, data_dirs=data_dirs)
        except UserError as error:
            absent[name] = error
    return sets, absent


def keys_met(
    texts: Iterable[str], *keys_by_way: tuple[Callable[[str], str], Iterable[str]]
) -> tuple[set[str], ...]:
    """Return which keys a stream of texts meets; it is read once, no text is kept.

    Args:
        texts: as often as they stand there; not read further than until all keys are met.
        keys_by_way: what makes a text's key, such as `same_letters`, and the keys that are looked for.

    Returns:
        A set for each way.

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
        distinct: how many there are, likewise.
        released: that are there as they are, white space at the ends apart.
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
