"""Links of the pages: to files in the repository, to pages in the site.

A page is read in both. It links files of the repository and names commands as they are typed; in the site these
become links to pages.
"""

import re
from pathlib import PurePosixPath
from typing import Any

from sphinx.application import Sphinx

from stsbench.analysis import analyses

PLACES = {
    "reports/examples/README.md": "examples/index.md",
    "notebooks/README.md": "notebooks/index.md",
    "notebooks/6-the-field-read-again.ipynb": "notebooks/6-the-field-read-again.ipynb",
}
"""Files of the repository outside `docs`, and their places in the site."""

_COMMAND = re.compile(r"`(stsbench (?:([a-z-]+) )?--help(?:-all)?)`")


def in_site(text: str, page: str) -> str:
    """Return a page's text with the links of the site.

    Args:
        text: Markdown.
        page: which page, below `docs`, without its suffix.

    >>> in_site("See `stsbench run --help-all`, [examples](../../reports/examples/README.md)", "how-to/measure")
    'See [`stsbench run --help-all`](../reference/commands/run.md), [examples](../examples/index.md)'
    """
    up = "../" * (len(PurePosixPath(page).parts) - 1)
    for name in analyses():
        text = text.replace(f"\n| `{name}` | ", f"\n| [`{name}`]({up}reference/commands/{name}.md) | ")
    for here, there in PLACES.items():
        text = text.replace(f"]({up}../{here})", f"]({up}{there})")
    return _COMMAND.sub(lambda found: f"[`{found[1]}`]({up}reference/commands/{found[2] or 'index'}.md)", text)


def rewrite(_app: Sphinx, page: str, source: list[str]) -> None:
    """Rewrite a page that was written by hand."""
    if not page.startswith(("reference/commands/", "reference/api/", "examples/", "notebooks/")):
        source[0] = in_site(source[0], page)


def setup(app: Sphinx) -> dict[str, Any]:
    """Rewrite each page as it is read."""
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
