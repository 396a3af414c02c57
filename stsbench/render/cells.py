"""What a table says before any format dresses it: each cell as one line of harmless text."""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

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
class Named:
    """What a column is named after by people or data: a task, a subset, a model, an axis, a measure.

    Two columns are one where these are equal, whatever they are called: a column of the table's own has text for
    its key, and a task that is called like it is another one. `headings` says what readers see.

    Attributes:
        kind: what it is: `task`, say.
        name: what it is called.
        of: what it is a part of: the task of a subset.
    """

    kind: str
    name: str
    of: str = ""

    def __str__(self) -> str:
        """Return its heading, where no other reads alike."""
        return self.name

    @property
    def in_words(self) -> str:
        """Its heading beside another that reads alike."""
        return f"{self.of}: {self.name}" if self.of else f"{self.name} ({self.kind})"


Key = str | Named
"""What identifies a column: its heading, if it is the table's own; else what it is named after."""


@dataclass(frozen=True)
class Rows:
    """A table as plain rows of text and floats: importing pandas takes longer than printing a small one.

    Attributes:
        rows: each by the keys of its columns; a key that a row lacks is a missing value there.
    """

    rows: Sequence[Mapping[Any, Any]]

    @property
    def keys(self) -> list[Any]:
        """The keys of the columns, in the order in which they first occur."""
        return list(dict.fromkeys(key for row in self.rows for key in row))

    def items(self) -> Iterator[tuple[Any, list[Any]]]:
        """Yield the columns with their keys."""
        for key in self.keys:
            yield key, [row.get(key, float("nan")) for row in self.rows]

    def headed(self, names: Sequence[str]) -> "Rows":
        """Return the table with other keys: of each column the one in its place."""
        renamed = dict(zip(self.keys, names, strict=True))
        return Rows([{renamed[key]: value for key, value in row.items()} for row in self.rows])

    @property
    def frame(self) -> "pd.DataFrame":
        """The table as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(list(self.rows))


def headings(keys: Sequence[Any]) -> list[str]:
    """Return what the columns of a table are called, no two of them alike.

    A column of the table's own keeps its name. What is named by people or data is told apart from it, and from
    others of that name, in words: first what is a part of something; a number where words do not do.

    >>> headings(["model", Named("task", "STS16"), Named("task", "model"), Named("subset", "STS16", of="STS16")])
    ['model', 'STS16', 'model (task)', 'STS16: STS16']
    """
    named = list(map(str, keys))
    for are_parts in (True, False):
        times = Counter(map(as_read, named))
        for place, key in enumerate(keys):
            if isinstance(key, Named) and bool(key.of) is are_parts and times[as_read(key.name)] > 1:
                named[place] = key.in_words
    # The table's own have their names before what is named comes to its turn.
    order = sorted(range(len(keys)), key=lambda place: isinstance(keys[place], Named))
    distinct = dict(zip(order, told_apart([named[place] for place in order]), strict=True))
    return [distinct[place] for place in range(len(keys))]


def told_apart(names: Sequence[str], taken: Iterable[str] = ()) -> list[str]:
    """Return names of which no two read alike: where several do, all but the first get a number.

    Args:
        names: in their order.
        taken: what none of them may read like.

    >>> told_apart(["a", "b", "a", "a [2]"]), told_apart(["Avg."], taken=["Avg."])
    (['a', 'b', 'a [3]', 'a [2]'], ['Avg. [2]'])
    """
    seen = set(map(as_read, taken))
    # One that has its name to itself keeps it, whatever number another would take.
    wanted = {as_read(name) for name in names}
    chosen = []
    for name in names:
        free, number = name, 1
        while as_read(free) in seen or (number > 1 and as_read(free) in wanted):
            number += 1
            free = f"{name} [{number}]"
        seen.add(as_read(free))
        chosen.append(free)
    return chosen


def beside(names: Iterable[str], taken: Iterable[str]) -> dict[str, str]:
    """Return what to call names that stand beside others: each as it is, unless one of those reads like it.

    >>> beside(["GloVe (published)"], taken=["GloVe", "GloVe (published)"])
    {'GloVe (published)': 'GloVe (published) [2]'}
    """
    distinct = list(dict.fromkeys(names))
    return dict(zip(distinct, told_apart(distinct, taken), strict=True))


def file_labels(paths: Sequence[Path]) -> list[str]:
    """Return what to call files: each by its name, or by its path where several have that name.

    >>> file_labels([Path("a/wiki.txt"), Path("b/wiki.txt"), Path("b/news.txt")])
    ['a/wiki.txt', 'b/wiki.txt', 'news.txt']
    """
    times = Counter(path.name for path in paths)
    return told_apart([str(path) if times[path.name] > 1 else path.name for path in paths])


def as_read(name: str) -> str:
    r"""Return what two names share that a reader could not tell apart.

    >>> as_read(" two\nwords") == as_read("two words"), as_read("e\u0301") == as_read("\u00e9")
    (True, True)
    """
    return normalize("NFC", " ".join(one_line(name).split()))


def columns_of(frame: "pd.DataFrame | Rows", decimals: int) -> list[Column]:
    """Return the columns of a table as text; the index of a DataFrame is not shown.

    Args:
        frame: the table; text in it is taken as hostile.
        decimals: digits after the point of every number that is not whole by type.

    Raises:
        ValueError: if `decimals` is negative.

    >>> import pandas as pd
    >>> columns_of(pd.DataFrame({"Avg.": [78.9049, None]}), decimals=2)
    [Column(name='Avg.', cells=('78.90', '–'), is_numeric=True)]
    """
    if decimals < 0:
        raise ValueError(f"decimals must not be negative, got {decimals}")
    return [_column(str(name), series, decimals) for name, series in frame.items()]


def one_line(text: str) -> str:
    r"""Return text on one line, with the characters that could drive a terminal written out.

    >>> one_line("two\nlines")
    'two lines'
    >>> print(one_line("\x1b[2J"))
    \x1b[2J
    """
    return harmless(_LINE_BREAKS.sub(" ", text))


def harmless(line: str) -> str:
    r"""Return a line with the characters that could drive a terminal written out.

    >>> print(harmless("a\tb\x9b31m"))
    a\tb\x9b31m
    """
    return _HARMFUL.sub(lambda match: ascii(match[0])[1:-1], line)


def is_missing(value: Any) -> bool:
    """Return whether a cell holds no value: `None`, NaN, or pandas' NA and NaT.

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
