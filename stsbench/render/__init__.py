"""A DataFrame as a table: for the terminal, in Markdown, LaTeX, CSV or JSON."""

from stsbench.render.latex import to_latex
from stsbench.render.machine import to_csv, to_json
from stsbench.render.markdown import to_markdown
from stsbench.render.table import Style, render
from stsbench.render.terminal import print_table, to_terminal

__all__ = [
    "Style",
    "print_table",
    "render",
    "to_csv",
    "to_json",
    "to_latex",
    "to_markdown",
    "to_terminal",
]
