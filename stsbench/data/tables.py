"""What reading a data set gives: a table, and the account of which files it was read from.

A table is plain columns, as pandas would take longer to import than its work to do; `.frame` makes a DataFrame.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.statistics.correlations import members_of

if TYPE_CHECKING:
    import pandas as pd

    from stsbench.data.catalogue import Label

Column = NDArray[Any]
"""(n,) numbers, truth values, or objects: text as plain `str`."""

_MISSING = {"f": np.nan, "O": None, "i": -1, "u": 0, "b": False}
"""What stands for a missing value, by the kind of a column's type."""


class PlainTable:
    """Columns of one length, by name and in order. It never changes: its methods return other tables.

    Args:
        columns: (n,) values by name; what is no array becomes one of objects.

    Raises:
        ValueError: if they are not of one length.

    >>> table = PlainTable({"subset": ["news", "forum"], "gold": np.array([4.5, 1.0])})
    >>> len(table), table.columns, table["gold"].tolist()
    (2, ('subset', 'gold'), [4.5, 1.0])
    """

    def __init__(self, columns: Mapping[str, Column | Sequence[Any]]) -> None:
        self._columns = {name: as_column(values) for name, values in columns.items()}
        lengths = {len(values) for values in self._columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"expected columns of one length, got {sorted(lengths)}")
        self._length = lengths.pop() if lengths else 0
        self._parts: dict[tuple[str, ...], dict[tuple[Any, ...], PlainTable]] = {}

    @classmethod
    def of(cls, table: PlainTable | pd.DataFrame) -> PlainTable:
        """Return a table as plain columns, without its index; a plain one as it is."""
        if isinstance(table, PlainTable):
            return table
        return cls({str(name): column.to_numpy() for name, column in table.items()})

    def read_only(self) -> PlainTable:
        """Return the table, whose columns nobody can write into any more."""
        for column in self._columns.values():
            column.setflags(write=False)
        return self

    @classmethod
    def join(cls, tables: Sequence[PlainTable]) -> PlainTable:
        """Return the rows of several tables, one after the other, with the columns of any of them.

        What a table lacks is missing in its rows: NaN, None in columns of objects, -1 in columns of whole
        numbers, False in columns of truth values.

        >>> rated, unrated = PlainTable({"raters": np.ones(1)}), PlainTable({"gold": np.zeros(1)})
        >>> PlainTable.join([rated, unrated])["raters"].tolist()
        [1.0, nan]
        """
        names = dict.fromkeys(name for table in tables for name in table.columns)
        parts = {name: [_or_missing(table, name, tables) for table in tables] for name in names}
        return cls({name: np.concatenate(columns) for name, columns in parts.items()})

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._length

    def __getitem__(self, name: str) -> Column:
        """Return a column."""
        return self._columns[name]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(self._columns)

    @property
    def frame(self) -> pd.DataFrame:
        """A copy as a DataFrame, in which text is plain `str` in every pandas."""
        import pandas as pd

        # Of objects pandas 3 would make its own strings.
        series = {name: pd.Series(values, dtype=values.dtype) for name, values in self._columns.items()}
        return pd.DataFrame(series)

    def select(self, names: Iterable[str]) -> PlainTable:
        """Return some columns, in the order of `names`."""
        return PlainTable({name: self._columns[name] for name in names})

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> PlainTable:
        """Return some rows: (k,) positions, or (n,) truth values. Those that stand together are not copied."""
        together = rows.dtype != bool and len(rows) > 0 and rows[0] >= 0 and bool((np.diff(rows) == 1).all())
        chosen = slice(int(rows[0]), int(rows[-1]) + 1) if together else rows
        return PlainTable({name: values[chosen] for name, values in self._columns.items()})

    def by(self, names: Sequence[str]) -> Mapping[tuple[Any, ...], PlainTable]:
        """Return the rows that agree in some columns by what they have there, in the order of the first of each.

        >>> table = PlainTable({"subset": ["news", "forum", "news"], "gold": np.array([4.5, 1.0, 2.0])})
        >>> table.by(["subset"])["news",]["gold"].tolist()
        [4.5, 2.0]
        """
        if tuple(names) not in self._parts:  # The scores of a record are asked for theirs one after the other.
            keys, codes = coded_rows([self[name] for name in names])
            places = members_of(codes, len(self)) if keys else []
            self._parts[tuple(names)] = dict(zip(keys, map(self.take, places), strict=True))
        return self._parts[tuple(names)]

    def with_columns(self, columns: Mapping[str, Column | Sequence[Any]]) -> PlainTable:
        """Return the table with some columns replaced, new ones last."""
        return PlainTable({**self._columns, **columns})


def as_column(values: Column | Sequence[Any]) -> Column:
    """Return values as a column: an array as it is, anything else as objects, tuples among them.

    >>> as_column([(1, 2), (3, 4)]).shape
    (2,)
    """
    return values if isinstance(values, np.ndarray) else np.fromiter(values, dtype=object, count=len(values))


def coded(values: Collection[Hashable]) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the distinct values in the order in which they first occur, and the place there of each value.

    >>> names, codes = coded(["news", "forum", "news"])
    >>> names, codes.tolist()
    (['news', 'forum'], [0, 1, 0])
    """
    if isinstance(values, np.ndarray):
        names, codes = coded_rows([values])
        return [name for (name,) in names], codes
    distinct = list(dict.fromkeys(values))
    place = {value: number for number, value in enumerate(distinct)}
    return distinct, np.fromiter(map(place.__getitem__, values), dtype=np.intp, count=len(values))


def coded_rows(columns: Sequence[Column]) -> tuple[list[tuple[Any, ...]], NDArray[np.intp]]:
    """Return the distinct rows of (n,) columns in the order in which they first occur, and each row's place there.

    Rows of a table mostly stand together: only the first of each run of equal ones is looked at.

    >>> coded_rows([np.array(["a", "a", "b", "a"]), np.array([1, 1, 1, 1])])[1].tolist()
    [0, 0, 1, 0]
    """
    changes = np.zeros(len(columns[0]), dtype=bool)
    changes[:1] = True
    for column in columns:
        changes[1:] |= (column[1:] != column[:-1]).astype(bool)
    starts = np.flatnonzero(changes)
    names, codes = coded(list(zip(*(column[starts].tolist() for column in columns), strict=True)))
    return names, np.repeat(codes, np.diff(starts, append=len(changes)))


def _or_missing(table: PlainTable, name: str, tables: Sequence[PlainTable]) -> Column:
    if name in table.columns:
        return table[name]
    dtype = next(having[name].dtype for having in tables if name in having.columns)
    return np.full(len(table), _MISSING[dtype.kind], dtype=dtype)


Status = Literal["verified", "unverified", "modified", "user"]
"""`verified`: every file is the catalogued one; `unverified`: the counts are the catalogue's, and nobody vouched
for a file's hash; `modified`: at least one file or count differs; `user`: not catalogued."""


@dataclass(frozen=True)
class FileRead:
    """A file as it was read.

    `name` is its path relative to where the data lay, with forward slashes; `sha256` is of its bytes;
    `expected` is the catalogue's hash, None for a person's own file and where nobody knows it.
    """

    name: str
    sha256: str
    expected: str | None


class Pair(NamedTuple):
    """A row of `StsData.pairs`; `design` is the sample's alone, `ratings` are of sets that publish them."""

    subset: str
    split: str
    pair_id: str
    gold: float
    sentence1: str
    sentence2: str
    design: str | None = None
    ratings: tuple[float, ...] = ()


class _Pairs:
    """The attribute `pairs`: when it is first read a DataFrame is made, which replaces the plain table."""

    def __get__(self, data: StsData | None, owner: Any = None) -> pd.DataFrame:
        if data is None:
            raise AttributeError("pairs")  # so dataclasses see that it has no default
        held = vars(data)
        if isinstance(held["pairs"], PlainTable):
            held["pairs"] = held["pairs"].frame
        pairs: pd.DataFrame = held["pairs"]
        return pairs

    def __set__(self, data: StsData, pairs: PlainTable | pd.DataFrame) -> None:
        vars(data)["pairs"] = pairs


@dataclass(frozen=True)
class StsData:
    """Scored sentence pairs.

    Attributes:
        task: "STS12" ... "STS16", "STS-B", "SICK-R", "sample", ..., or the stem of the person's file.
        split: "train", "dev", "test", a language, or "all".
        text: "senteval", "raw", "sample", ..., or "user".
        pairs: one row per scored pair: subset, split, pair_id (str), gold (float64), sentence1, sentence2
            (str); the sample has `design` too, and `ratings` (a tuple of float) the sets that publish them. A task
            without subsets has one, called as the task. It may be given as a plain table, and is a DataFrame
            whenever it is read; `table` is the same without pandas.
        gold_range: the lowest and highest score that is possible (of a person's file: that occurs).
        status: see `Status`.
        sha256: 64 hexadecimal digits over the names and hashes of `files`, in order.
        files: the files read, in order.
        problems: a sentence for each file that is not the catalogued one.
        notes: a sentence for each reason that pairs were left out for (`views`, texts without repeated pairs).
    """

    task: str
    split: str
    text: str
    pairs: _Pairs = _Pairs()
    # mypy takes the descriptor for a default, after which no field may stand without one.
    gold_range: tuple[float, float]  # type: ignore[misc]
    status: Status  # type: ignore[misc]
    sha256: str  # type: ignore[misc]
    files: tuple[FileRead, ...]  # type: ignore[misc]
    problems: tuple[str, ...]  # type: ignore[misc]
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> PlainTable:
        """The pairs without pandas."""
        return PlainTable.of(vars(self)["pairs"])


@dataclass(frozen=True)
class LabelledData:
    """Labelled sentences or sentence pairs.

    Attributes:
        task: "MR", "TREC", "MRPC", ...
        text: "senteval" or "sample".
        items: one row per item: split ("all" where the task has none), item_id (str), label (int or str, as
            the files have it), sentence1 (str), sentence2 (str, or None where the task has one sentence).
        classes: the labels in SentEval's order: a label's index is SentEval's number for it.
        status: as in `StsData`, and so are the others.
        sha256: over `files`.
        files: the files read.
        problems: a sentence for each file that is not the catalogued one.
    """

    task: str
    text: str
    items: pd.DataFrame
    classes: tuple[Label, ...]
    status: Status
    sha256: str
    files: tuple[FileRead, ...]
    problems: tuple[str, ...]


def pair_table(pairs: Iterable[Pair]) -> PlainTable:
    """Return pairs as a table, without the columns `design` and `ratings` where no pair has one.

    Pairs are taken one after the other, and a sentence that stands in several is held once.
    """
    columns: dict[str, list[Any]] = {name: [] for name in Pair._fields}
    subsets, splits, ids, _, firsts, seconds, designs, ratings = columns.values()
    golds = array("d")
    kept: dict[str | None, str | None] = {}
    once = kept.setdefault
    for subset, split, pair_id, gold, first, second, design, rated in pairs:
        subsets.append(once(subset, subset))
        splits.append(once(split, split))
        ids.append(pair_id)
        golds.append(gold)
        firsts.append(once(first, first))
        seconds.append(once(second, second))
        designs.append(once(design, design))
        ratings.append(rated)
    if all(design is None for design in designs):
        del columns["design"]
    if not any(ratings):
        del columns["ratings"]
    return PlainTable({**columns, "gold": np.array(golds)})


def combined_sha256(files: Iterable[FileRead]) -> str:
    """Return one hash over the names and hashes of several files, in their order.

    >>> combined_sha256([FileRead("a.txt", "00", None)])[:8]
    '29b514fc'
    """
    listing = "".join(f"{file.sha256}  {file.name}\n" for file in files)
    return hashlib.sha256(listing.encode()).hexdigest()
