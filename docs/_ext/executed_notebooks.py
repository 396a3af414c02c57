"""The notebooks, executed, as pages.

`notebooks/execute.py` returns the copy that the tests executed, or executes a notebook that has none yet.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


def write(app: Sphinx) -> None:
    """Write an executed copy of each notebook and a page that lists them; remove copies of deleted notebooks."""
    folder = Path(app.srcdir) / "notebooks"
    folder.mkdir(exist_ok=True)
    wanted = dict(_pages())
    for path in folder.iterdir():
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _pages() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each page."""
    if not (NOTEBOOKS / "execute.py").is_file():
        yield "index.md", "# Notebooks\n\nThis checkout has none.\n"
        return
    import nbformat

    sys.path.insert(0, str(NOTEBOOKS))
    try:
        import execute
    finally:
        sys.path.remove(str(NOTEBOOKS))
    names = [path.stem for path in execute.NOTEBOOKS]
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *names, "```"])
    yield "index.md", f"{_moved((NOTEBOOKS / 'README.md').read_text(encoding='utf-8'))}\n{toctree}\n"
    for path in execute.NOTEBOOKS:
        notebook = execute.executed(path).node
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = _moved(cell.source)
        yield path.name, nbformat.writes(notebook)


def _moved(text: str) -> str:
    """Rewrite relative links for `docs/notebooks`."""
    return text.replace("](../", "](../../").replace("](../../docs/", "](../")


def setup(app: Sphinx) -> dict[str, Any]:
    """Copy before the sources are searched."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
