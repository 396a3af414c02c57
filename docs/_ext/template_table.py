"""The table of the templates that come with the package, from their files."""

from typing import Any

from sphinx.application import Sphinx

from stsbench.encoders.template import Template
from stsbench.encoders.template_files import read_template, template_names

PLACE = "{templates}\n"
"""The line that the rows stand for, in a table of names, texts, rules, places and what to know."""


def rows() -> str:
    """Return a row of Markdown for each template.

    >>> "`query: {sentence}`" in rows()
    True
    """
    return "".join(_row(read_template(name)) for name in template_names())


def _row(template: Template) -> str:
    first = template.texts[0].replace("\n", "\\n")
    # The longest instructions are in their files.
    shown = first if len(first) < 120 else f"... {first[-70:]}"
    text = f"`{shown}`" + (f" and {len(template.texts) - 1} more" if len(template.texts) > 1 else "")
    rules = ", ".join(f"`{rule}`" for rule in template.rules)
    less = "" if template.subtract == "no" else f", less the {template.subtract.replace('_', ' ')}"
    place = f"`{template.reading}`{less}"
    sources = "; ".join(f"{source.repository} {source.commit[:8]}, {source.file}" for source in template.sources)
    return f"| `{template.name}` | {text} | {rules} | {place} | {template.note} | {sources} |\n"


def fill(_app: Sphinx, _page: str, source: list[str]) -> None:
    """Put the rows into a page."""
    source[0] = source[0].replace(PLACE, rows())


def setup(app: Sphinx) -> dict[str, Any]:
    """Fill each page as it is read."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
