"""A table in each format: for the terminal, in Markdown and LaTeX for readers, as CSV and JSON for programs.

`stsbench.render.table.render` says what `decimals` and `caption` are. The index of a DataFrame is never shown.
"""

import json
import math
import re
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any

from stsbench.render.cells import Column, Rows, columns_of, is_missing, one_line

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

_NARROWEST_TEXT = 12
"""Characters that a column of text keeps at least; below, it would be a column of syllables."""

_GAP = 2
"""Spaces between columns."""


def to_terminal(frame: "pd.DataFrame | Rows", *, decimals: int = 2, caption: str | None = None) -> str:
    """Return a table as plain text, as wide as it needs to be, below its caption.

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
    frame: "pd.DataFrame | Rows",
    console: "Console",
    *,
    decimals: int = 2,
    caption: str | None = None,
    headline: str | None = None,
) -> None:
    """Print a table on a rich console, the headline column in bold.

    On a narrow console, text is folded first. Numbers are never folded nor cut: where even they do not fit
    the lines run over the console's width and the terminal breaks them.

    >>> import pandas as pd
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

    # Text objects, because in a plain string rich would read [red] as markup and :x: as an emoji.
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


LINE = 100
"""Characters of a line that `fitted` fills."""

_SHORTEST_PROSE = 12
"""Characters that prose keeps, however wide the other columns are."""


def fitted(frame: "pd.DataFrame", prose: str, width: int = LINE) -> "pd.DataFrame":
    """Return a table that is printed no wider than a line, one column of prose cut to what the others leave.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"name": ["a-long-name"], "shows": ["a sentence that nobody can read at once"]})
    >>> fitted(table, "shows", 30).loc[0, "shows"]
    'a sentence that…'
    """
    others = columns_of(frame.drop(columns=prose), 2)
    taken = sum(_GAP + max(map(len, (column.name, *column.cells))) for column in others)
    room = max(width - taken, _SHORTEST_PROSE)
    texts = [one_line(str(text)) for text in frame[prose]]
    cut = [text if len(text) <= room else f"{text[: room - 1].rstrip()}…" for text in texts]
    return frame.assign(**{prose: cut})


# An underscore inside a word, as in cls_before_pooler, is an underscore in Markdown: it stays readable.
_SPECIAL_IN_MARKDOWN = re.compile(r"[\\`*\[\]~$|&<>]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def to_markdown(frame: "pd.DataFrame | Rows", *, decimals: int = 2, caption: str | None = None) -> str:
    r"""Return a table in GitHub's Markdown, whose text reads as it stands in the data, below its caption in bold.

    >>> import pandas as pd
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
    r"""Return one line of text with all that Markdown, HTML or GitHub's mathematics would act on escaped.

    >>> print(escape_markdown("<b> $x$ cls_before_pooler"))
    &lt;b&gt; \$x\$ cls_before_pooler
    """
    return _SPECIAL_IN_MARKDOWN.sub(lambda match: _ENTITIES.get(match[0], f"\\{match[0]}"), text)


def fenced(lines: Sequence[str], language: str = "") -> list[str]:
    """Return lines as a block of code, whatever is in them.

    >>> fenced(["```"])
    ['````', '```', '````']
    """
    plain = [one_line(line) for line in lines]
    # A fence ends at one as long: longer than any run of backticks inside it cannot end early.
    longest = max((len(run) for line in plain for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", *plain, fence]


_REPLACEMENTS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    # After the \\ of the row before, a bare [ would open its argument and a bare * would be its star.
    "[": "{[}",
    "*": "{*}",
    # Two hyphens in a row would become a dash.
    "-": "-{}",
    "–": "--",
    "−": "$-$",
}
_SPECIAL_IN_LATEX = re.compile(r"[\\{}$&#%_^~<>|\"\[*–−]|-(?=-)")


def to_latex(frame: "pd.DataFrame | Rows", *, decimals: int = 2, caption: str | None = None) -> str:
    r"""Return a table as a LaTeX `tabular` with booktabs rules, for `\usepackage{booktabs}`.

    With a caption the tabular stands in a `table` environment, the caption above.

    >>> import pandas as pd
    >>> print(to_latex(pd.DataFrame({"Model": ["a_b"], "Avg.": [78.904]})))
    \begin{tabular}{lr}
    \toprule
    Model & Avg. \\
    \midrule
    a\_b & 78.90 \\
    \bottomrule
    \end{tabular}
    """
    columns = columns_of(frame, decimals)
    lines = [
        rf"\begin{{tabular}}{{{''.join('r' if column.is_numeric else 'l' for column in columns)}}}",
        r"\toprule",
        _latex_row([escape_latex(column.name) for column in columns]),
        r"\midrule",
        *(_latex_row(row) for row in zip(*(_latex_cells(column) for column in columns), strict=True)),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    if caption is not None:
        title = rf"\caption{{{escape_latex(one_line(caption))}}}"
        lines = [r"\begin{table}", r"\centering", title, *lines, r"\end{table}"]
    return "\n".join(lines)


def escape_latex(text: str) -> str:
    r"""Return one line of text with LaTeX's special characters escaped.

    >>> print(escape_latex("50% of a_b"))
    50\% of a\_b
    """
    return _SPECIAL_IN_LATEX.sub(lambda match: _REPLACEMENTS[match[0]], text)


def _latex_cells(column: Column) -> list[str]:
    # A hyphen before a number is a minus sign.
    return [escape_latex(cell.replace("-", "−") if column.is_numeric else cell) for cell in column.cells]


def _latex_row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def to_csv(frame: "pd.DataFrame") -> str:
    r"""Return a table as CSV (RFC 4180) with a header; a missing value is an empty field.

    Every number has the digits that read back as the same float64.

    >>> import pandas as pd
    >>> to_csv(pd.DataFrame({"Model": ["a,b", "c"], "Avg.": [0.1, float("nan")]}))
    'Model,Avg.\r\n"a,b",0.1\r\nc,'
    """
    return frame.to_csv(index=False, lineterminator="\r\n").removesuffix("\r\n")


def to_json(frame: "pd.DataFrame") -> str:
    """Return a table as a JSON list of records; missing values and infinities are null.

    Every number has the digits that read back as the same float64.

    >>> import pandas as pd
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
