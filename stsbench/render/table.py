"""Results and their tables, which a terminal and a notebook display, in several formats."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import isnan
from typing import Any, Literal, get_args

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.render import one_line
from stsbench.render.formats import columns_of, to_csv, to_json, to_latex, to_markdown, to_terminal

Style = Literal["terminal", "markdown", "latex", "csv", "json"]

Hints = Mapping[tuple[int, str], str]
"""Tooltips of cells, by row position and column."""


@dataclass(frozen=True)
class Table:
    """A table for readers, which prints itself and shows itself in a notebook.

    Attributes:
        frame: its rows, with unique columns; the index is not shown.
        caption: what it shows.
        decimals: digits after the point for readers; CSV and JSON have full precision.
        headline: the most important column; empty for none.
        name: its anchor and file name in a report: letters, digits and hyphens; empty outside of reports.
        hints: tooltips of cells, such as intervals.
        own: positions of rows that were measured here, as opposed to published.
        verdicts: the column of verdicts; empty for none.
        notes: lines below the table.

    >>> print(Table(pd.DataFrame({"Task": ["STS16"], "Spearman": [78.9912]}), "Scores"))
    Scores
    Task   Spearman
    ───────────────
    STS16     78.99
    """

    frame: pd.DataFrame
    caption: str = ""
    decimals: int = 2
    headline: str = ""
    name: str = ""
    hints: Hints = field(default_factory=dict)
    own: frozenset[int] = frozenset()
    verdicts: str = ""
    notes: tuple[str, ...] = ()

    def to(self, style: Style) -> str:
        """Returns the table as text without a final line break; raises a `UserError` for an unknown style.

        `terminal`, `markdown` and `latex` are for readers; `csv` and `json` are for programs and have no caption.
        """
        if style in {"csv", "json"}:
            return to_csv(self.frame) if style == "csv" else to_json(self.frame)
        formats = {"terminal": to_terminal, "markdown": to_markdown, "latex": to_latex}
        if style not in formats:
            raise UserError(f"no table style {style!r}: choose one of {', '.join(get_args(Style))}.")
        return formats[style](self.frame, decimals=self.decimals, caption=self.caption or None)

    def __str__(self) -> str:
        """Returns the table and its notes as a terminal shows them."""
        return "\n".join([self.to("terminal"), *map(one_line, self.notes)])

    def _repr_html_(self) -> str:
        columns = columns_of(self.frame, self.decimals)

        def row(tag: str, cells: Iterable[str]) -> str:
            texts = (
                f'<{tag} style="text-align: {"right" if column.is_numeric else "left"}">{escape(cell)}</{tag}>'
                for column, cell in zip(columns, cells, strict=True)
            )
            return f"<tr>{''.join(texts)}</tr>"

        rows = "".join(row("td", cells) for cells in zip(*(column.cells for column in columns), strict=True))
        caption = f"<caption>{escape(one_line(self.caption))}</caption>" if self.caption else ""
        head = row("th", (column.name for column in columns))
        notes = "".join(f"<p>{escape(one_line(note))}</p>" for note in self.notes)
        return f"<table>{caption}<thead>{head}</thead><tbody>{rows}</tbody></table>{notes}"


class Tables(tuple[Table, ...]):
    """The tables of a result, shown below one another.

    >>> table = Table(pd.DataFrame({"Task": ["STS16"]}))
    >>> print(Tables([table, table]).to("csv"))
    Task
    STS16
    <BLANKLINE>
    Task
    STS16
    """

    __slots__ = ()

    def __new__(cls, tables: Iterable[Table]) -> "Tables":
        """Collects the tables in order."""
        return super().__new__(cls, tables)

    def to(self, style: Style) -> str:
        """Returns all tables in one format, with empty lines between them."""
        return "\n\n".join(table.to(style) for table in self)

    def __str__(self) -> str:
        """Returns the tables as a terminal shows them."""
        return "\n\n".join(map(str, self))

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self)


def interval(low: float, high: float, decimals: int = 2) -> str:
    """Formats the limits of an interval; empty if they are NaN.

    >>> interval(-0.123, 4.5), interval(float("nan"), float("nan"))
    ('[-0.12, 4.50]', '')
    """
    return "" if isnan(low) or isnan(high) else f"[{low:z.{decimals}f}, {high:z.{decimals}f}]"


def place(frame: pd.DataFrame) -> str:
    """Returns the task, split and text of a table, as the end of its caption.

    >>> place(pd.DataFrame({"task": ["STS-B"], "split": ["all"]})), place(pd.DataFrame({"model": ["a"]}))
    (' on STS-B, split all', '')
    """
    if "task" not in frame or frame.empty:
        return ""
    parts = [f"{name} {frame[name].iloc[0]}" for name in ("split", "text") if name in frame]
    return " on " + ", ".join([str(frame["task"].iloc[0]), *parts])


def intervals_of(rows: pd.DataFrame, digits: int = 2) -> list[str]:
    """Returns the intervals of rows with `low` and `high` as text."""
    return [interval(low, high, digits) for low, high in zip(rows["low"], rows["high"], strict=True)]


def scaled(rows: pd.DataFrame, factor: float = 100) -> pd.DataFrame:
    """Multiplies `value`, `low` and `high`."""
    return rows.assign(**{name: factor * rows[name] for name in ("value", "low", "high")})


def with_intervals(
    rows: pd.DataFrame, keys: Sequence[str], *, scale: Mapping[str, float] | None = None, digits: int = 2
) -> pd.DataFrame:
    """Returns a row for each combination of the keys, with the value and interval of each `measure` of the rows.

    Values are multiplied by the `scale` of their measure; `digits` are the decimals of the intervals.
    """
    table: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows.to_dict("records"):
        name, factor = row["measure"], (scale or {}).get(row["measure"], 1)
        value, low, high = (factor * row[column] for column in ("value", "low", "high"))
        cells = table.setdefault(tuple(row[key] for key in keys), {key: row[key] for key in keys})
        cells |= {name: value, f"{name}: interval": interval(low, high, digits)}
    return pd.DataFrame(list(table.values()))


def in_columns(rows: pd.DataFrame, keys: list[str], columns: str, values: str) -> pd.DataFrame:
    """Pivots to wide format, keeping the order in which keys and columns first occur."""
    wide = rows.pivot_table(index=keys, columns=columns, values=values, sort=False, aggfunc="first", dropna=False)
    wide = wide.dropna(how="all").reset_index().rename_axis(columns=None)
    return rows[keys].drop_duplicates().merge(wide, on=keys)


def note_of(lead: str, values: "pd.Series[Any]") -> tuple[str, ...]:
    """Returns a note with a value of each model, or none if there are no models.

    >>> note_of("Zero vectors left out", pd.Series({"a": 1200, "b": 3}))
    ('Zero vectors left out: 1,200 (a), 3 (b).',)
    """
    texts = [f"{value if isinstance(value, str) else f'{value:,}'} ({model})" for model, value in values.items()]
    return (f"{lead}: {', '.join(texts)}.",) if texts else ()


class Result(ABC):
    """A result: tables for readers, a tidy DataFrame for programs, plain data for JSON.

    Some results also have `.plot()`, which returns a matplotlib figure.
    """

    @property
    @abstractmethod
    def frame(self) -> pd.DataFrame:
        """The result as a tidy DataFrame, one number per row."""

    @abstractmethod
    def table(self) -> Tables:
        """Returns the tables for readers, which print themselves; `.to("latex")` is one of their formats."""

    def to_dict(self) -> Any:
        """Returns the result as plain data for JSON, by default the rows of `frame`."""
        return json.loads(to_json(self.frame))

    def to(self, style: Style) -> str:
        """Returns the result as text: the tables for readers, or all of it as `csv` or `json`."""
        if style == "json":
            return json.dumps(self.to_dict(), indent=2, allow_nan=False, ensure_ascii=False)
        if style == "csv":
            return to_csv(self.frame)
        return self.table().to(style)

    def __str__(self) -> str:
        """Returns what a terminal shows."""
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()
