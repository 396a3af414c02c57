"""What data sets share: sentences and pairs of tasks, of one task's splits, and of a training corpus with any."""

import html
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.data.near_duplicates import NEAR, near_matches, within
from stsbench.data.sentence_ids import same_letters, unordered_pairs
from stsbench.data.text_sets import TextSet, read_corpus_set, read_sets
from stsbench.render.cells import file_labels
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables

if TYPE_CHECKING:
    import pandas as pd

RELEASED, LETTERS, NEARLY = "as released", "letters and digits", "nearly"
"""How two sentences are found to be the same: as they are; by letters and digits alone, case folded; by
`near_duplicates`. Of pairs both sentences are, whichever is named first."""

SENTENCES, PAIRS = "sentences", "pairs"


@dataclass(frozen=True)
class DataOverlap(Result):
    """What sets of sentences and pairs share.

    Attributes:
        rows: a row for two sets, what is counted, and how two are found to be the same: a, b, unit ("sentences" or
            "pairs"), same ("as released", "letters and digits" or "nearly"), distinct a, distinct b (how many
            each has), shared a (of those of a, how many b has too), shared b, rows a, rows b (how many rows of
            each are concerned: a pair may stand there twice, a sentence in several pairs). Where a and b are one
            set, shared are those that stand in several rows.
        threshold: of "nearly"; None where nobody asked.
    """

    rows: "pd.DataFrame"
    threshold: float | None

    @property
    def frame(self) -> "pd.DataFrame":
        """All of it; see `rows`."""
        return self.rows

    def count(self, a: str, b: str, unit: str = PAIRS, same: str = LETTERS) -> int:
        """Return how many distinct sentences or pairs of `a` the set `b` has, too.

        Raises:
            KeyError: if that was not looked at.
        """
        for (one, other), side in (((a, b), "a"), ((b, a), "b")):
            rows = self.rows[(self.rows[["a", "b", "unit", "same"]] == [one, other, unit, same]).all(axis=1)]
            if len(rows):
                return int(rows[f"shared {side}"].iloc[0])
        raise KeyError(f"{a}, {b}, {unit}, {same}")

    def table(self) -> Tables:
        """Return a row for two sets that share something, and one for each set that repeats some of its own."""
        between = self.rows[self.rows["a"] != self.rows["b"]]
        inside = self.rows[self.rows["a"] == self.rows["b"]]
        tables = [
            Table(self._shown(between), "Shared by two sets: distinct sentences and pairs", decimals=1),
            Table(
                self._shown(inside),
                "Repeated within a set: distinct sentences or pairs of several rows",
                decimals=1,
            ),
        ]
        tables = [table for table in tables if len(table.frame)]
        if not tables:
            return Tables([])
        return Tables([*tables[:-1], Table(tables[-1].frame, tables[-1].caption, decimals=1, notes=self.notes)])

    @property
    def notes(self) -> tuple[str, ...]:
        """What the columns count, a sentence each."""
        said = [
            "letters: the same by letters and digits alone, case folded; the column before it: as released. Of "
            "pairs both sentences are the same, whichever is named first.",
            "%: of the distinct ones of either set, pairs where both sets have pairs, by letters and digits.",
        ]
        if self.threshold is not None:
            said.append(
                f"nearly: distinct sentences of a for which b has one with at least {self.threshold:g} of the "
                "letter triples that either has (Jaccard's measure); all are found, none is estimated."
            )
        return tuple(said)

    def _shown(self, rows: "pd.DataFrame") -> "pd.DataFrame":
        import pandas as pd

        shown = []
        for (a, b), group in rows.groupby(["a", "b"], sort=False):
            counts = {(row["unit"], row["same"]): row for row in group.to_dict("records")}
            if not any(row["shared a"] for row in counts.values()):
                continue
            main = counts.get((PAIRS, LETTERS)) or counts[SENTENCES, LETTERS]
            row: dict[str, object] = {"a": a, "b": b} if a != b else {"set": a}
            for unit in (SENTENCES, PAIRS):
                row[unit] = counts.get((unit, RELEASED), _NOTHING)["shared a"]
                row[f"{unit}, letters"] = counts.get((unit, LETTERS), _NOTHING)["shared a"]
            row[NEARLY] = counts.get((SENTENCES, NEARLY), _NOTHING)["shared a"]
            row["% of a" if a != b else "%"] = 100 * main["shared a"] / main["distinct a"]
            row |= {"% of b": 100 * main["shared b"] / main["distinct b"]} if a != b else {"rows": main["rows a"]}
            shown.append(row)
        frame = pd.DataFrame(shown).dropna(axis="columns", how="all")
        counted = [name for name in frame if not str(name).startswith(("%", "a", "b", "set"))]
        return frame.astype(dict.fromkeys(counted, "Int64"))

    def _repr_html_(self) -> str:
        if self.table():
            return self.table()._repr_html_()
        return f"<p>{html.escape('These sets share nothing.')}</p>"


_NOTHING = {"shared a": None}
"""What was not counted."""


def overlap(
    tasks: Sequence[str] = (),
    *,
    corpora: Sequence[str | Path] = (),
    columns: Sequence[str] | None = None,
    near: float | None = None,
    data_dirs: Sequence[Path] = (),
    progress: Progress = silent,
) -> DataOverlap:
    """Count the sentences and pairs that data sets share.

    Args:
        tasks: `TASK[:split][@text]`, by default all splits of the STS tasks, one set each; `transfer` for the
            labelled tasks, `all` for both; several joined by `+` are one set (`STS12+STS13`).
        corpora: training files to hold against each of them instead of them against each other.
        columns: of the corpora, those that hold sentences; by default all cells but numbers.
        near: also count sentences that are nearly the same, from this share of common letter triples on
            (`near_duplicates`; 0.8, say).
        data_dirs: folders to look in first (default: the places of `stsbench.data.locate`).
        progress: told how far it is.

    Raises:
        UserError: if a task or its data is not here, a corpus cannot be read, or the threshold is none.

    >>> found = overlap(["sample"], corpora=["sample"])
    >>> found.frame[["a", "b", "unit", "same", "shared a"]].values.tolist()
    [['sample', 'corpus sample', 'sentences', 'as released', 1],
     ['sample', 'corpus sample', 'sentences', 'letters and digits', 1]]
    """
    import pandas as pd

    if near is not None and not within(near):
        raise UserError(f"a threshold of {near:g}: give a share above 0 and up to 1, such as {NEAR}.")
    sets = [_Counted(found) for found in read_sets(tasks or ["sts"], data_dirs)]
    read = [read_corpus_set(corpus, columns) for corpus in corpora]
    called = file_labels([Path(found.origin or found.name) for found in read])
    others = [_Counted(replace(of, name=name), is_corpus=True) for of, name in zip(read, called, strict=True)]
    if others:
        matched = [(one, other) for one in sets for other in others]
    else:
        matched = [(one, other) for place, one in enumerate(sets) for other in sets[place:]]
    rows: list[dict[str, object]] = []
    for number, (one, other) in enumerate(matched):
        progress("comparing", number, len(matched))
        rows += _rows(one, other, near)
    progress("comparing", len(matched), len(matched))
    return DataOverlap(pd.DataFrame(rows), near)


def overlap_of(one: TextSet, other: TextSet) -> "pd.DataFrame":
    """Return what two sets share, as rows of `DataOverlap`."""
    import pandas as pd

    return pd.DataFrame(_rows(_Counted(one), _Counted(other), None))


class _Counted:
    """A set with what stands in each of its rows, by each way of being the same, made when it is wanted."""

    def __init__(self, texts: TextSet, *, is_corpus: bool = False) -> None:
        self.texts = texts
        # A corpus may be called as a task is.
        self.name = f"corpus {texts.name}" if is_corpus else texts.name
        self._rows: dict[tuple[str, str], list[Collection[object]]] = {}

    @property
    def units(self) -> tuple[str, ...]:
        """What can be counted of it."""
        return (SENTENCES, PAIRS) if self.texts.has_pairs else (SENTENCES,)

    def rows(self, unit: str, same: str) -> list[Collection[object]]:
        """Return what stands in each row: its pair, or its one or two sentences, as numbers."""
        key = unit, same
        if key not in self._rows:
            sides = self.texts.ids(folded=same == LETTERS)
            pairs = unordered_pairs(*sides)
            self._rows[key] = [(pair,) if unit == PAIRS else set(pair) for pair in pairs]
        return self._rows[key]

    @cached_property
    def letters(self) -> list[str]:
        """The distinct sentences by their letters and digits; those without any are left out."""
        return list(dict.fromkeys(filter(None, map(same_letters, self.texts.sentences))))


def _rows(one: _Counted, other: _Counted, near: float | None) -> list[dict[str, object]]:
    units = [unit for unit in one.units if unit in other.units]
    if one is other:
        # Sentences of pairs repeat by construction: `data sharing` tells of them.
        units = units[-1:]
    rows = [_row(one, other, unit, same) for unit in units for same in (RELEASED, LETTERS)]
    if near is not None and one is not other:
        left, right = near_matches(one.letters, other.letters, near)
        rows.append(
            {"a": one.name, "b": other.name, "unit": SENTENCES, "same": NEARLY}
            | {"distinct a": len(left), "distinct b": len(right)}
            | {"shared a": int(left.sum()), "shared b": int(right.sum()), "rows a": None, "rows b": None}
        )
    return rows


def _row(one: _Counted, other: _Counted, unit: str, same: str) -> dict[str, object]:
    sides = one.rows(unit, same), other.rows(unit, same)
    counts = [Counter(key for row in rows for key in row) for rows in sides]
    if one is other:
        shared = {key for key, times in counts[0].items() if times > 1}
    else:
        shared = set(counts[0]) & set(counts[1])
    concerned = [sum(any(key in shared for key in row) for row in rows) for rows in sides]
    return {
        "a": one.name,
        "b": other.name,
        "unit": unit,
        "same": same,
        "distinct a": len(counts[0]),
        "distinct b": len(counts[1]),
        "shared a": len(shared),
        "shared b": len(shared),
        "rows a": concerned[0],
        "rows b": concerned[1],
    }


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
    """Count the sentences of some sets that a stream of texts holds; it is read once.

    What a training can say of its corpus for the price of two hashes a text: no text is kept.

    Args:
        texts: of the corpus, as often as they stand there.
        sets: the sentences of each set; those without letter and digit are left out.

    >>> sentences_met(["It 's a dog .", "rain"], {"test": ["It's a dog.", "A cat."]})
    {'test': Met(letters=1, distinct=2, released=0)}
    """
    released = {name: {text.strip() for text in members} for name, members in sets.items()}
    folded = {name: set(filter(None, map(same_letters, members))) for name, members in released.items()}
    left, left_as_released = set[str]().union(*folded.values()), set[str]().union(*released.values())
    for text in texts:
        left_as_released.discard(text.strip())
        left.discard(same_letters(text))
        if not (left or left_as_released):
            break
    return {
        name: Met(len(members - left), len(members), len(released[name] - left_as_released))
        for name, members in folded.items()
    }
