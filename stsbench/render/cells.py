"""The text of table cells: one line, harmless to a terminal, and unique column headings."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import pandas as pd

from stsbench.render.text import one_line

MISSING = "–"
"""The text of a missing value."""


@dataclass(frozen=True)
class Column:
    """A column as text: its name, its cells, and whether they are numbers."""

    name: str
    cells: tuple[str, ...]
    is_numeric: bool


def unique_labels(names: Sequence[str], taken: Iterable[str] = ()) -> list[str]:
    """Makes labels unique by appending " [2]", " [3]", ... to repeated ones.

    Args:
        names: the labels, in order.
        taken: labels that none of them may equal.

    >>> unique_labels(["a", "b", "a", "a [2]"]), unique_labels(["Avg."], taken=["Avg."])
    (['a', 'b', 'a [3]', 'a [2]'], ['Avg. [2]'])
    """
    used, wanted = set(taken), set(names)
    chosen = []
    for name in names:
        label, number = name, 1
        while label in used or (number > 1 and label in wanted):
            number += 1
            label = f"{name} [{number}]"
        used.add(label)
        chosen.append(label)
    return chosen


def labels_beside(names: Iterable[str], taken: Iterable[str]) -> dict[str, str]:
    """Maps each distinct name to a label that is not taken.

    >>> labels_beside(["GloVe (published)"], taken=["GloVe", "GloVe (published)"])
    {'GloVe (published)': 'GloVe (published) [2]'}
    """
    distinct = list(dict.fromkeys(names))
    return dict(zip(distinct, unique_labels(distinct, taken), strict=True))


def columns_of(frame: pd.DataFrame, decimals: int) -> list[Column]:
    """Returns the columns of a table as text, without its index.

    Args:
        frame: the table; its text may contain anything.
        decimals: digits after the point of numbers that are not integers by type.

    >>> columns_of(pd.DataFrame({"Avg.": [78.9049, None]}), decimals=2)
    [Column(name='Avg.', cells=('78.90', '–'), is_numeric=True)]
    """
    if decimals < 0:
        raise ValueError(f"decimals must not be negative, got {decimals}")
    return [_column(str(name), series, decimals) for name, series in frame.items()]


def is_missing(value: Any) -> bool:
    """Returns whether a cell has no value: `None`, NaN, or NA and NaT of pandas.

    >>> is_missing(float("nan")), is_missing(0.0), is_missing([None])
    (True, False, False)
    """
    # For a list pandas returns an array.
    return pd.isna(value) is True


def _column(name: str, series: "pd.Series[Any]", decimals: int) -> Column:
    present = [value for value in series if not is_missing(value)]
    # Without values, the type of the column or of its NaN decides.
    is_numeric = all(map(_is_number, present)) if present else any(isinstance(value, float) for value in series)
    cells = tuple(MISSING if is_missing(value) else _cell(value, decimals) for value in series)
    return Column(one_line(name), cells, is_numeric or (not present and series.dtype.kind in "iuf"))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _cell(value: Any, decimals: int) -> str:
    if _is_number(value) and not isinstance(value, Integral):
        # The z avoids -0.00 for small negative numbers.
        return format(float(value), f"z.{decimals}f")
    return one_line(str(value))
