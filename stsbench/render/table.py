"""A table for readers: what it shows, how it prints itself, and what it is in any of the formats."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import isnan
from typing import TYPE_CHECKING, Any, Literal, get_args

from stsbench.base.errors import UserError
from stsbench.render.cells import Key, Rows, columns_of, headings, one_line
from stsbench.render.formats import to_csv, to_json, to_latex, to_markdown, to_terminal

if TYPE_CHECKING:
    import pandas as pd

Style = Literal["terminal", "markdown", "latex", "csv", "json"]

Hints = Mapping[tuple[int, Any], str]
"""What is shown when a reader points at a cell, by the row's place and the column's key."""


def render(frame: "pd.DataFrame | Rows", style: Style, decimals: int = 2, caption: str | None = None) -> str:
    """Return a table as text without a final line break, its own text escaped as the style needs.

    Args:
        frame: the table; its index is not shown.
        style: `terminal`, `markdown` and `latex` are for readers, `csv` and `json` for programs.
        decimals: digits after the point, for readers; programs get full precision.
        caption: what the table shows, for readers; `csv` and `json` have no place for it.

    >>> import pandas as pd
    >>> print(render(pd.DataFrame({"Task": ["STS16"], "Spearman": [78.9912]}), "csv"))
    Task,Spearman
    STS16,78.9912
    """
    match style:
        case "terminal":
            return to_terminal(frame, decimals=decimals, caption=caption)
        case "markdown":
            return to_markdown(frame, decimals=decimals, caption=caption)
        case "latex":
            return to_latex(frame, decimals=decimals, caption=caption)
        case "csv":
            return to_csv(frame.frame if isinstance(frame, Rows) else frame)
        case "json":
            return to_json(frame.frame if isinstance(frame, Rows) else frame)
        case _:
            raise UserError(f"no table style {style!r}: choose one of {', '.join(get_args(Style))}.")


@dataclass(frozen=True)
class Picture:
    """A small drawing beside a row of a table: its file's name, what it tells, and the drawing as SVG."""

    name: str
    alt: str
    svg: str


@dataclass(frozen=True)
class Table:
    """A table for readers. It prints itself, and shows itself in a notebook.

    Attributes:
        content: its rows; the index of a DataFrame is not shown. Plain `Rows` print without pandas; `frame` is a
            DataFrame in any case. A column whose key is `Named` gets its heading here, as do `headline` and
            `hints` that speak of it.
        caption: what it shows; taken as hostile, as are all texts here.
        decimals: digits after the point for readers; CSV and JSON have them all.
        headline: the column that matters most; empty for none.
        name: its anchor and the name of its files in a report: letters, digits and hyphens; empty outside of one.
        hints: what is shown when a reader points at a cell: intervals, differences.
        own: the places of rows that were measured here, where others were published.
        verdicts: the column whose text is a verdict; empty for none.
        notes: what a reader should know, below the table.
        pictures: of rows, by their places: pages have a column for them.

    >>> import pandas as pd
    >>> print(Table(pd.DataFrame({"Task": ["STS16"], "Spearman": [78.9912]}), "Scores"))
    Scores
    Task   Spearman
    ───────────────
    STS16     78.99
    """

    content: "pd.DataFrame | Rows"
    caption: str = ""
    decimals: int = 2
    headline: Key = ""
    name: str = ""
    hints: Hints = field(default_factory=dict)
    own: frozenset[int] = frozenset()
    verdicts: str = ""
    notes: tuple[str, ...] = ()
    pictures: Mapping[int, Picture] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Give each column a heading of its own."""
        content = self.content
        keys = content.keys if isinstance(content, Rows) else list(content)
        names = headings(keys)
        if names == keys:
            return
        called = dict(zip(keys, names, strict=True))
        vars(self).update(
            content=content.headed(names)
            if isinstance(content, Rows)
            else content.set_axis(names, axis="columns"),
            headline=called.get(self.headline, self.headline),
            hints={(row, called.get(key, key)): text for (row, key), text in self.hints.items()},
        )

    @cached_property
    def frame(self) -> "pd.DataFrame":
        """Its rows as a DataFrame."""
        return self.content.frame if isinstance(self.content, Rows) else self.content

    def to(self, style: Style) -> str:
        """Return it as text in one of the formats, as `render` does.

        Raises:
            UserError: if there is no such format.
        """
        return render(self.content, style, self.decimals, self.caption or None)

    def __str__(self) -> str:
        """Return it as a terminal shows it, its notes below."""
        return "\n".join([self.to("terminal"), *map(one_line, self.notes)])

    def _repr_html_(self) -> str:
        from html import escape

        columns = columns_of(self.content, self.decimals)
        aligned = ["right" if column.is_numeric else "left" for column in columns]
        heads = "".join(
            f'<th style="text-align: {side}">{escape(column.name)}</th>'
            for column, side in zip(columns, aligned, strict=True)
        )
        rows = "".join(
            "<tr>"
            + "".join(
                f'<td style="text-align: {side}">{escape(cell)}</td>'
                for cell, side in zip(cells, aligned, strict=True)
            )
            + "</tr>"
            for cells in zip(*(column.cells for column in columns), strict=True)
        )
        caption = f"<caption>{escape(one_line(self.caption))}</caption>" if self.caption else ""
        notes = "".join(f"<p>{escape(one_line(note))}</p>" for note in self.notes)
        return f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>{notes}"


class Tables(tuple[Table, ...]):
    """What a result shows to readers: one table, or a few below one another.

    >>> import pandas as pd
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
        """Return the tables in their order."""
        return super().__new__(cls, tables)

    def to(self, style: Style) -> str:
        """Return all of them in one of the formats, with an empty line between.

        Raises:
            UserError: if there is no such format.
        """
        return "\n\n".join(table.to(style) for table in self)

    def __str__(self) -> str:
        """Return them as a terminal shows them."""
        return "\n\n".join(map(str, self))

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self)


def interval(low: float, high: float, decimals: int = 2) -> str:
    """Return the limits of an interval as text, empty where there are none.

    >>> interval(-0.123, 4.5), interval(float("nan"), float("nan"))
    ('[-0.12, 4.50]', '')
    """
    return "" if isnan(low) or isnan(high) else f"[{low:z.{decimals}f}, {high:z.{decimals}f}]"


def place(frame: "pd.DataFrame") -> str:
    """Return what a table was measured on, for its caption: task, split and text where it has them.

    >>> import pandas as pd
    >>> place(pd.DataFrame({"task": ["STS-B"], "split": ["all"]})), place(pd.DataFrame({"model": ["a"]}))
    (' on STS-B, split all', '')
    """
    if "task" not in frame or frame.empty:
        return ""
    parts = [f"{name} {frame[name].iloc[0]}" for name in ("split", "text") if name in frame]
    return " on " + ", ".join([str(frame["task"].iloc[0]), *parts])
