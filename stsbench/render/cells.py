"""What a table says before any format dresses it: each cell as one line of harmless text."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

MISSING = "–"
"""What a reader sees where there is no value."""

_LINE_BREAKS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
# Control characters drive a terminal, bidirectional ones reorder what is seen, tags and annotations hide text,
# lone surrogates cannot be written as UTF-8.
_HARMFUL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff"
    r"\U000e0000-\U000e007f]"
)


@dataclass(frozen=True)
class Column:
    """One column as a reader sees it: its name, its cells, and whether they are numbers."""

    name: str
    cells: tuple[str, ...]
    is_numeric: bool


@dataclass(frozen=True)
class Rows:
    """A table as plain rows of text and floats: importing pandas takes longer than printing a small one.

    Attributes:
        rows: each by the names of its columns; a name that a row lacks is a missing value there.
    """

    rows: Sequence[Mapping[str, Any]]

    def items(self) -> Iterator[tuple[str, list[Any]]]:
        """Yield the columns, in the order in which their names first occur."""
        for name in dict.fromkeys(name for row in self.rows for name in row):
            yield name, [row.get(name, float("nan")) for row in self.rows]

    @property
    def frame(self) -> "pd.DataFrame":
        """The table as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(list(self.rows))


def columns_of(frame: "pd.DataFrame | Rows", decimals: int) -> list[Column]:
    """Return the columns of a table as text; the index of a DataFrame is not shown.

    Args:
        frame: the table; text in it is taken as hostile.
        decimals: digits after the point of every number that is not whole by type.

    Raises:
        ValueError: if `decimals` is negative.

    Example:
        >>> import pandas as pd
        >>> columns_of(pd.DataFrame({"Avg.": [78.9049, None]}), decimals=2)
        [Column(name='Avg.', cells=('78.90', '–'), is_numeric=True)]
    """
    if decimals < 0:
        raise ValueError(f"decimals must not be negative, got {decimals}")
    return [_column(str(name), series, decimals) for name, series in frame.items()]


def one_line(text: str) -> str:
    r"""Return text on one line, with the characters that could drive a terminal written out.

    Example:
        >>> one_line("two\nlines")
        'two lines'
        >>> print(one_line("\x1b[2J"))
        \x1b[2J
    """
    return harmless(_LINE_BREAKS.sub(" ", text))


def harmless(line: str) -> str:
    r"""Return a line with the characters that could drive a terminal written out.

    Example:
        >>> print(harmless("a\tb\x9b31m"))
        a\tb\x9b31m
    """
    return _HARMFUL.sub(lambda match: ascii(match[0])[1:-1], line)


def is_missing(value: Any) -> bool:
    """Return whether a cell holds no value: `None`, NaN, or pandas' NA and NaT.

    Example:
        >>> is_missing(float("nan")), is_missing(0.0), is_missing([None])
        (True, False, False)
    """
    if value is None or isinstance(value, float | str):
        return value is None or (isinstance(value, float) and isnan(value))
    if "pandas" not in sys.modules and not hasattr(value, "dtype"):  # then it is none of pandas' own
        return False
    import pandas as pd

    # For a list pandas answers with an array, which is not the one True asked for.
    return pd.isna(value) is True


def _column(name: str, series: "pd.Series[Any] | Sequence[Any]", decimals: int) -> Column:
    present = [value for value in series if not is_missing(value)]
    # Where no value is present, only the type of the column says what they would be.
    is_numeric = all(map(_is_number, present)) if present else _would_be_numeric(series)
    cells = tuple(MISSING if is_missing(value) else _cell(value, decimals) for value in series)
    return Column(one_line(name), cells, is_numeric)


def _would_be_numeric(series: "pd.Series[Any] | Sequence[Any]") -> bool:
    if isinstance(series, Sequence):
        return any(isinstance(value, float) for value in series)
    return series.dtype.kind in "iuf"


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _cell(value: Any, decimals: int) -> str:
    if _is_number(value) and not isinstance(value, Integral):
        # The z keeps a small negative number from showing as -0.00.
        return format(float(value), f"z.{decimals}f")
    return one_line(str(value))
