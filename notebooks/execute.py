"""Execute notebooks as a newcomer would, on the bundled sample and without network, and keep the executed copies.

    python notebooks/execute.py                          # all of them, into build/notebooks
    python notebooks/execute.py notebooks/2-*.ipynb      # some

The tests and the documentation use the functions: what the one executed, the other takes.
"""

import os
import shutil
import sys
from hashlib import sha256
from importlib.metadata import distributions
from pathlib import Path
from typing import NamedTuple

import nbformat
from filelock import FileLock
from nbclient import NotebookClient
from traitlets.config import Config

import stsbench

HERE = Path(__file__).resolve().parent
NOTEBOOKS = tuple(sorted(HERE.glob("*.ipynb")))
COPIES = HERE.parent / "build" / "notebooks"
SECONDS = 600
"""What a cell may take: on a busy machine, with real data."""


class Executed(NamedTuple):
    """An executed notebook, and the folder that it ran in, with its records and its cache."""

    node: nbformat.NotebookNode
    folder: Path


def executed(notebook: Path) -> Executed:
    """Return a notebook executed on the sample: as it was before, or anew if it or what it runs on has changed.

    Like a newcomer's, the notebooks have one cache of embeddings, which is empty at first.
    """
    copy, folder = COPIES / notebook.name, COPIES / notebook.stem
    COPIES.mkdir(parents=True, exist_ok=True)
    # Another process that is executing it is waited for.
    with FileLock(COPIES / f"{notebook.stem}.lock"):
        around, kept = _surroundings(), COPIES / f"{notebook.stem}.sha256"
        state = sha256(f"{around} {notebook.name}".encode() + notebook.read_bytes()).hexdigest()
        if not (kept.is_file() and kept.read_text(encoding="utf-8") == state):
            kept.unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            cache = COPIES / f"cache-{around[:12]}"
            cache.mkdir(exist_ok=True)
            (folder / "cache").symlink_to(cache)
            execute(notebook, folder)
            kept.write_text(state, encoding="utf-8")
        return Executed(nbformat.read(copy, as_version=4), folder)


def _surroundings() -> str:
    """Return a digest of all that an executed notebook depends on beside its cells: this file, the packages."""
    state = sha256(repr(sorted(f"{each.name} {each.version}" for each in distributions())).encode())
    package = Path(stsbench.__file__).parent
    for path in (HERE / "execute.py", *sorted(package.rglob("*"))):
        if path.is_file() and "__pycache__" not in path.parts:
            state.update(f"{path}\n".encode() + path.read_bytes())
    return state.hexdigest()


def execute(
    notebook: Path, folder: Path, *, data: Path | None = None, copies: Path = COPIES
) -> nbformat.NotebookNode:
    """Execute a notebook in a kernel of its own and write the executed copy.

    Args:
        notebook: the file; it stays as it is.
        folder: where it runs, and leaves its records and its cache.
        data: benchmark data (`STSBENCH_DATA`); None for the bundled sample.
        copies: where the executed copy goes.

    Raises:
        nbclient.exceptions.CellExecutionError: if a cell fails.
    """
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


if __name__ == "__main__":
    for path in [Path(name) for name in sys.argv[1:]] or NOTEBOOKS:
        executed(path)
        print(COPIES / path.name)
