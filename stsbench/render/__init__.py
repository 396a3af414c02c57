"""A DataFrame as a table: for the terminal, in Markdown, LaTeX, CSV or JSON; verdicts for CI services."""

from stsbench.render.annotations import annotation
from stsbench.render.junit import Case, to_junit
from stsbench.render.latex import to_latex
from stsbench.render.machine import to_csv, to_json
from stsbench.render.markdown import to_markdown
from stsbench.render.table import Style, render
from stsbench.render.terminal import print_table, to_terminal

__all__ = [
    "Case",
    "Style",
    "annotation",
    "print_table",
    "render",
    "to_csv",
    "to_json",
    "to_junit",
    "to_latex",
    "to_markdown",
    "to_terminal",
]
