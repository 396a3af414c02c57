"""Execute notebooks as a newcomer would, on the bundled sample and without network, and keep the executed copies.

    python notebooks/execute.py                          # all of them, into build/notebooks
    python notebooks/execute.py notebooks/2-*.ipynb      # some

The tests and the documentation use the functions.
"""

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

HERE = Path(__file__).resolve().parent
NOTEBOOKS = tuple(sorted(HERE.glob("*.ipynb")))
COPIES = HERE.parent / "build" / "notebooks"
SECONDS = 600
"""What a cell may take: on a busy machine, with real data."""


def executed(notebook: Path) -> nbformat.NotebookNode:
    """Return the executed copy of a notebook; execute it if there is none of the same cells."""
    copy = COPIES / notebook.name
    if copy.is_file():
        found = nbformat.read(copy, as_version=4)
        if _sources(found) == _sources(nbformat.read(notebook, as_version=4)):
            return found
    return execute(notebook)


def execute(
    notebook: Path, folder: Path | None = None, *, data: Path | None = None, copies: Path = COPIES
) -> nbformat.NotebookNode:
    """Execute a notebook in a kernel of its own and write the executed copy.

    Args:
        notebook: the file; it stays as it is.
        folder: where it runs, and leaves its records and its cache; by default one that is deleted afterwards.
        data: benchmark data (`STSBENCH_DATA`); None for the bundled sample.
        copies: where the executed copy goes.

    Raises:
        nbclient.exceptions.CellExecutionError: if a cell fails.
    """
    if folder is None:
        with tempfile.TemporaryDirectory() as made:
            return execute(notebook, Path(made), data=data, copies=copies)
    node = nbformat.read(notebook, as_version=4)
    client = NotebookClient(
        node,
        timeout=SECONDS,
        resources={"metadata": {"path": str(folder)}},
        # The kernel listens at a port of this machine, which others may use too.
        config=Config(KernelManager={"transport_encryption": "auto"}),
    )
    client.execute(env=_environment(folder, data))
    for cell in node.cells:
        _describe_figures(cell)
    copies.mkdir(parents=True, exist_ok=True)
    nbformat.write(node, copies / notebook.name)
    return node


def _environment(folder: Path, data: Path | None) -> dict[str, str]:
    """Return the surroundings of a newcomer: nothing in the caches, no settings, no network asked for."""
    # Set but empty, it leaves the data of a checkout out, too.
    own = os.environ | {"STSBENCH_DATA": "" if data is None else str(data)}
    own |= {"STSBENCH_CACHE": str(folder / "cache"), "IPYTHONDIR": str(folder / "ipython"), "HF_HUB_OFFLINE": "1"}
    own["TMPDIR"] = str(folder)  # what a notebook makes in passing is deleted with the folder, or looked at
    return own


def _describe_figures(cell: nbformat.NotebookNode) -> None:
    """Say what a cell's figure shows where MyST-NB looks for it, too: in the cell's own metadata."""
    for output in cell.get("outputs", ()):
        alt = output.get("metadata", {}).get("image/png", {}).get("alt")
        if alt:
            cell.metadata["mystnb"] = {"image": {"alt": alt}}


def _sources(node: nbformat.NotebookNode) -> list[tuple[str, str]]:
    return [(cell.cell_type, cell.source) for cell in node.cells]


if __name__ == "__main__":
    for path in [Path(name) for name in sys.argv[1:]] or NOTEBOOKS:
        execute(path)
        print(COPIES / path.name)
