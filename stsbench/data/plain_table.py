"""Tables as plain columns, for the paths on which pandas would take longer to import than its work to do."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

Column = NDArray[Any]
"""(n,) numbers, truth values, or objects: text as plain `str`."""


class PlainTable:
    """Columns of one length, by name and in order. It is not changed: what is asked of it is another table.

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

    @classmethod
    def of(cls, table: PlainTable | pd.DataFrame) -> PlainTable:
        """Return a table as plain columns, without its index; a plain one as it is."""
        if isinstance(table, PlainTable):
            return table
        return cls({str(name): column.to_numpy() for name, column in table.items()})

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
        """Return some rows: (k,) positions, or (n,) truth values."""
        return PlainTable({name: values[rows] for name, values in self._columns.items()})

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
    distinct = list(dict.fromkeys(values))
    place = {value: number for number, value in enumerate(distinct)}
    return distinct, np.fromiter(map(place.__getitem__, values), dtype=np.intp, count=len(values))


def _or_missing(table: PlainTable, name: str, tables: Sequence[PlainTable]) -> Column:
    if name in table.columns:
        return table[name]
    dtype = next(other[name].dtype for other in tables if name in other.columns)
    return np.full(len(table), _MISSING[dtype.kind], dtype=dtype)


_MISSING = {"f": np.nan, "O": None, "i": -1, "u": 0, "b": False}
"""What stands for a missing value, by the kind of a column's type."""
