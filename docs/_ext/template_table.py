"""The tables of the templates that come with the package, from their files."""

from typing import Any

from sphinx.application import Sphinx

from stsbench.encoders.template import Template, read_template, template_names

PLACES = {
    "{templates}": lambda template: [f"`{template.name}`", *_recipe(template)],
    "{templates-read}": lambda template: [f"`{template.name}`", template.note, _sources(template)],
}
"""Placeholders of a table's rows, with the cells of a template's row: its recipe, or its sources."""


def rows(place: str) -> str:
    """Return a row of Markdown for each template.

    >>> "`query: {sentence}`" in rows("{templates}")
    True
    """
    cells = map(PLACES[place], map(read_template, template_names()))
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def _recipe(template: Template) -> list[str]:
    first = template.texts[0].replace("\n", "\\n")
    # The longest instructions are in their files.
    shown = first if len(first) < 120 else f"... {first[-70:]}"
    text = f"`{shown}`" + (f" and {len(template.texts) - 1} more" if len(template.texts) > 1 else "")
    rules = ", ".join(f"`{rule}`" for rule in template.rules)
    less = "" if template.subtract == "no" else f", less the {template.subtract.replace('_', ' ')}"
    place = f"`{template.reading}`{less}"
    return [text, rules, place]


def _sources(template: Template) -> str:
    return "; ".join(f"{source.repository} {source.commit[:8]}, {source.file}" for source in template.sources)


def fill(_app: Sphinx, _page: str, source: list[str]) -> None:
    """Put the rows into a page."""
    for place in filter(source[0].__contains__, PLACES):
        source[0] = source[0].replace(place, rows(place))


def setup(app: Sphinx) -> dict[str, Any]:
    """Fill each page as it is read."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
