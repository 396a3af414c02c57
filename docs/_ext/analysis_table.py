"""The table of the analyses, from their registry: what each answers, and what to look for."""

from typing import Any

from sphinx.application import Sphinx

from stsbench.analysis.registry import analyses

PLACE = "{analyses}\n"
"""The line that the rows stand for, in a table of commands, questions and what to look for."""


def rows() -> str:
    """Return a row of Markdown for each analysis.

    >>> rows().splitlines()[-1].split(" | ")[1:]
    ['what is near a sentence?', 'neighbours that share words and not meaning |']
    """
    found = ((name, command.result) for name, command in analyses().items())
    return "".join(
        f"| [`{name}`](../reference/commands/{name}.md) | {result.question} | {result.look_for} |\n"
        for name, result in found
    )


def fill(_app: Sphinx, _page: str, source: list[str]) -> None:
    """Put the rows into a page."""
    source[0] = source[0].replace(PLACE, rows())


def setup(app: Sphinx) -> dict[str, Any]:
    """Fill each page as it is read."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
