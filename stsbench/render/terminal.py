"""A table for the terminal."""

from io import StringIO
from typing import TYPE_CHECKING

from stsbench.render.cells import Column, columns_of, one_line

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

_NARROWEST_TEXT = 12
"""Characters that a column of text keeps at least; below, it would be a column of syllables."""

_GAP = 2
"""Spaces between columns."""


def to_terminal(frame: "pd.DataFrame", *, decimals: int = 2, caption: str | None = None) -> str:
    """Return a table as plain text, as wide as it needs to be.

    Args:
        frame: the table; its index is not shown.
        decimals: digits after the point.
        caption: a line above the table.

    Example:
        >>> import pandas as pd
        >>> print(to_terminal(pd.DataFrame({"Model": ["MiniLM", "GloVe"], "Avg.": [78.904, float("nan")]})))
        Model    Avg.
        ─────────────
        MiniLM  78.90
        GloVe       –
    """
    from rich.console import Console

    stream = StringIO()
    # A console without bounds: rich makes the table no wider than its content.
    print_table(frame, Console(file=stream, width=10**6, color_system=None), decimals=decimals, caption=caption)
    return "\n".join(line.rstrip() for line in stream.getvalue().rstrip().split("\n"))


def print_table(
    frame: "pd.DataFrame",
    console: "Console",
    *,
    decimals: int = 2,
    caption: str | None = None,
    headline: str | None = None,
) -> None:
    """Print a table on a rich console, the headline column in bold.

    On a narrow console, text is folded first. Numbers are never folded nor cut: where even they do not fit
    the lines run over the console's width and the terminal breaks them.

    Args:
        frame: the table; its index is not shown.
        console: where to print.
        decimals: digits after the point.
        caption: a line above the table.
        headline: name of the column that matters most.

    Example:
        >>> import pandas as pd
        >>> from rich.console import Console
        >>> print_table(pd.DataFrame({"Task": ["STS16"], "Spearman": [78.99]}), Console(width=40))
        Task   Spearman
        ───────────────
        STS16     78.99
    """
    from rich.text import Text

    table = _table(columns_of(frame, decimals), headline)
    narrowest = sum(_GAP + (column.min_width or 0) for column in table.columns) - _GAP
    if narrowest > console.width:
        table.width = narrowest
    if caption is not None:
        console.print(Text(one_line(caption)))
    console.print(table, crop=False)


def _table(columns: list[Column], headline: str | None) -> "Table":
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    # Text objects, because in a plain string rich would read [red] as markup and :x: as an emoji.
    table = Table(
        box=box.SIMPLE,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
    )
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
