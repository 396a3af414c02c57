"""A table in LaTeX, in the booktabs style of the papers."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from stsbench.render.cells import Column, columns_of, one_line

if TYPE_CHECKING:
    import pandas as pd

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
_SPECIAL = re.compile(r"[\\{}$&#%_^~<>|\"\[*–−]|-(?=-)")


def to_latex(frame: "pd.DataFrame", *, decimals: int = 2, caption: str | None = None) -> str:
    r"""Return a table as a LaTeX `tabular` with booktabs rules, for `\usepackage{booktabs}`.

    Args:
        frame: the table; its index is not shown.
        decimals: digits after the point.
        caption: with a caption the tabular stands in a `table` environment, the caption above.

    Example:
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
        _row([escape(column.name) for column in columns]),
        r"\midrule",
        *(_row(row) for row in zip(*(_cells(column) for column in columns), strict=True)),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    if caption is not None:
        title = rf"\caption{{{escape(one_line(caption))}}}"
        lines = [r"\begin{table}", r"\centering", title, *lines, r"\end{table}"]
    return "\n".join(lines)


def escape(text: str) -> str:
    r"""Return one line of text with LaTeX's special characters escaped.

    Example:
        >>> print(escape("50% of a_b"))
        50\% of a\_b
    """
    return _SPECIAL.sub(lambda match: _REPLACEMENTS[match[0]], text)


def _cells(column: Column) -> list[str]:
    # A hyphen before a number is a minus sign.
    return [escape(cell.replace("-", "−") if column.is_numeric else cell) for cell in column.cells]


def _row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"
