"""Similarities from another program: one number per pair, in a .npy vector or a text file."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import require_file
from stsbench.data.rows import PACKED


def are_similarities(path: Path) -> bool:
    """Returns whether a file is a .npy vector, or has one word in its first line."""
    if path.suffix == ".npy":
        return True
    if not path.is_file() or path.suffix in PACKED:
        return False
    with path.open("rb") as stream:
        return len(stream.readline(1000).split()) <= 1


def read_similarities(path: Path) -> NDArray[np.float64]:
    """Reads (n,) similarities.

    Raises:
        UserError: if the file holds something else, or a number is not finite.
    """
    require_file(path, absent="name a file of similarities")
    values = _from_npy(path) if path.suffix == ".npy" else _from_text(path)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise UserError(
            f"{path}: number {bad[0] + 1} of {len(values)} is {values[bad[0]]}: "
            "give a finite number for each pair."
        )
    return values


def _from_npy(path: Path) -> NDArray[np.float64]:
    try:
        values = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise UserError(f"{path} is not a .npy file of numbers: save it with numpy.save.") from error
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype.kind not in "fiu":
        kind = f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else "an archive"
        raise UserError(f"{path} holds {kind}: save one number per pair.")
    return np.asarray(values, dtype=np.float64)


def _from_text(path: Path) -> NDArray[np.float64]:
    try:
        lines = path.read_text(encoding="utf-8").rstrip().split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text: write one number per line.") from error
    numbers = []
    for line, text in enumerate(lines, 1):
        try:
            numbers.append(float(text))
        except ValueError:
            raise UserError(f"{path}, line {line}: {text[:40]!r} is not a number: write one per line.") from None
    return np.array(numbers)
