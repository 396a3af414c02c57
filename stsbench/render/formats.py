"""Formats of a table: terminal, Markdown and LaTeX for readers, CSV and JSON for programs.

`decimals` is the number of digits after the point for readers; `caption` says what the table shows. The index of
a DataFrame is not shown. `to_junit` writes verdicts for continuous integration.
"""

import json
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from stsbench.render import one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

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
        taken: labels that are already in use.

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
    # For a column without values, its type or that of its NaN decides.
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


_NARROWEST_TEXT = 12
"""Minimum width of a text column, in characters."""

_GAP = 2
"""Spaces between columns."""


def to_terminal(frame: pd.DataFrame, *, decimals: int = 2, caption: str | None = None) -> str:
    """Returns a table as plain text of any width, below its caption.

    >>> print(to_terminal(pd.DataFrame({"Model": ["MiniLM", "GloVe"], "Avg.": [78.904, float("nan")]})))
    Model    Avg.
    ─────────────
    MiniLM  78.90
    GloVe       –
    """
    from rich.console import Console

    stream = StringIO()
    print_table(frame, Console(file=stream, width=10**6, color_system=None), decimals=decimals, caption=caption)
    return "\n".join(line.rstrip() for line in stream.getvalue().rstrip().split("\n"))


def print_table(
    frame: pd.DataFrame,
    console: "Console",
    *,
    decimals: int = 2,
    caption: str | None = None,
    headline: str | None = None,
) -> None:
    """Prints a table on a rich console, with the headline column in bold.

    On a narrow console text is folded; numbers are neither folded nor cut.

    >>> from rich.console import Console
    >>> print_table(pd.DataFrame({"Task": ["STS16"], "Spearman": [78.99]}), Console(width=40))
    Task   Spearman
    ───────────────
    STS16     78.99
    """
    from rich.text import Text

    table = _rich_table(columns_of(frame, decimals), headline)
    narrowest = sum(_GAP + (column.min_width or 0) for column in table.columns) - _GAP
    if narrowest > console.width:
        table.width = narrowest
    if caption is not None:
        console.print(Text(one_line(caption)))
    console.print(table, crop=False)


def _rich_table(columns: list[Column], headline: str | None) -> "Table":
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    # In a plain string rich would read [red] as markup and :x: as an emoji.
    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False, collapse_padding=True)
    for column in columns:
        width = max(cell_len(text) for text in (column.name, *column.cells))
        table.add_column(
            Text(column.name),
            justify="right" if column.is_numeric else "left",
            style="bold" if column.name == headline else "",
            no_wrap=column.is_numeric,
            overflow="fold",
            min_width=width if column.is_numeric else min(width, _NARROWEST_TEXT),
        )
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(Text, row))
    return table


# An underscore inside a word, as in cls_before_pooler, needs no escape.
_SPECIAL_IN_MARKDOWN = re.compile(r"[\\`*\[\]~$|&<>]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def to_markdown(frame: pd.DataFrame, *, decimals: int = 2, caption: str | None = None) -> str:
    r"""Returns a table in GitHub's Markdown with escaped text, below its caption in bold.

    >>> print(to_markdown(pd.DataFrame({"Model": ["a|b"], "Avg.": [78.904]})))
    | Model | Avg. |
    | --- | ---: |
    | a\|b | 78.90 |
    """
    columns = columns_of(frame, decimals)
    rows = [
        [escape_markdown(column.name) for column in columns],
        ["---:" if column.is_numeric else "---" for column in columns],
        *zip(*(map(escape_markdown, column.cells) for column in columns), strict=True),
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return table if caption is None else f"**{escape_markdown(one_line(caption).strip())}**\n\n{table}"


def escape_markdown(text: str) -> str:
    r"""Escapes one line of text for Markdown, HTML and GitHub's mathematics.

    >>> print(escape_markdown("<b> $x$ cls_before_pooler"))
    &lt;b&gt; \$x\$ cls_before_pooler
    """
    return _SPECIAL_IN_MARKDOWN.sub(lambda match: _ENTITIES.get(match[0], f"\\{match[0]}"), text)


def fenced(lines: Sequence[str], language: str = "") -> list[str]:
    """Returns lines as a fenced block of code.

    >>> fenced(["```"])
    ['````', '```', '````']
    """
    plain = [one_line(line) for line in lines]
    # The fence must be longer than any run of backticks inside.
    longest = max((len(run) for line in plain for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", *plain, fence]


def to_latex(frame: pd.DataFrame, *, decimals: int = 2, caption: str | None = None) -> str:
    r"""Returns a table as a LaTeX `tabular` with booktabs rules, for `\usepackage{booktabs}`.

    With a caption, the tabular is inside a `table` environment.

    >>> print(to_latex(pd.DataFrame({"Model": ["a_b"], "Avg.": [-8.904]})))
    \begin{tabular}{lr}
    \toprule
    Model & Avg. \\
    \midrule
    a\_b & $-$8.90 \\
    \bottomrule
    \end{tabular}
    """
    columns = columns_of(frame, decimals)
    cells = pd.DataFrame(dict(enumerate(column.cells for column in columns)))
    cells.columns = pd.Index([column.name for column in columns])
    alignment = "".join("r" if column.is_numeric else "l" for column in columns)
    # In a row of its own, which is removed below, the caption is escaped like all text.
    cells.loc[len(cells)] = [one_line(caption or ""), *[""] * (len(columns) - 1)]
    *body, last, rule, end = cells.to_latex(index=False, escape=True, column_format=alignment).split("\n")[:-1]
    # Minus signs; and a row may not begin with [ or *, the argument of the line break before it.
    text = "\n".join([*body, rule, end]).replace("−", "$-$").replace("–", "--")
    text = re.sub(r"(?m)^(?=[\[*])", "{}", re.sub(r"(?<![\w.-])-(?=\d)", "$-$", text))
    if caption is None:
        return text
    title = last.split(" & ")[0].removesuffix(r" \\")
    return "\n".join([r"\begin{table}", r"\centering", rf"\caption{{{title}}}", text, r"\end{table}"])


def to_csv(frame: pd.DataFrame) -> str:
    r"""Returns a table as CSV (RFC 4180) with a header, numbers in full precision and empty missing values.

    >>> to_csv(pd.DataFrame({"Model": ["a,b", "c"], "Avg.": [0.1, float("nan")]}))
    'Model,Avg.\r\n"a,b",0.1\r\nc,'
    """
    return frame.to_csv(index=False, lineterminator="\r\n").removesuffix("\r\n")


def to_json(frame: pd.DataFrame) -> str:
    """Returns a table as a JSON list of records, in full precision; missing values and infinities are null.

    >>> print(to_json(pd.DataFrame({"Model": ["MiniLM"], "Avg.": [float("nan")]})))
    [
      {
        "Model": "MiniLM",
        "Avg.": null
      }
    ]
    """

    def plain(value: Any) -> Any:
        return None if is_missing(value) or (isinstance(value, float) and math.isinf(value)) else value

    records = [
        {str(name): plain(value) for name, value in record.items()} for record in frame.to_dict(orient="records")
    ]
    return json.dumps(records, indent=2, allow_nan=False, default=str)


Status = Literal["passed", "failed", "error", "skipped"]

_ELEMENTS: dict[Status, str] = {"failed": "failure", "error": "error", "skipped": "skipped"}


@dataclass(frozen=True)
class Case:
    """A test case: its name, its status and a message.

    `failed` is a value that deviates, `error` one that cannot be compared, `skipped` one that is missing.
    """

    name: str
    status: Status
    message: str = ""


def to_junit(suite: str, cases: Sequence[Case]) -> str:
    """Returns a test suite as JUnit XML.

    >>> print(to_junit("a row", [Case("STS12", "failed", "72.37, expected 68.40 (+3.97)")]))
    <?xml version='1.0' encoding='utf-8'?>
    <testsuites>
      <testsuite name="a row" tests="1" failures="1" errors="0" skipped="0">
        <testcase classname="a row" name="STS12">
          <failure message="72.37, expected 68.40 (+3.97)" />
        </testcase>
      </testsuite>
    </testsuites>
    """
    count = {status: sum(case.status == status for case in cases) for status in _ELEMENTS}
    root = ET.Element("testsuites")
    numbers = {"failures": count["failed"], "errors": count["error"], "skipped": count["skipped"]}
    attributes = {"name": suite, "tests": len(cases), **numbers}
    parent = ET.SubElement(root, "testsuite", {name: _legal(str(value)) for name, value in attributes.items()})
    for case in cases:
        node = ET.SubElement(parent, "testcase", {"classname": _legal(suite), "name": _legal(case.name)})
        if case.status in _ELEMENTS:
            ET.SubElement(node, _ELEMENTS[case.status], {"message": _legal(case.message)})
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text.decode() + "\n"


def _legal(text: str) -> str:
    # XML cannot represent most control characters.
    return "".join(character if character.isprintable() or character in "\n\t" else "\ufffd" for character in text)
