"""Similarities that someone computed elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.data.tables import StsData
from stsbench.encoders.hashed import HashedFiles
from stsbench.encoders.protocol import Identity
from stsbench.encoders.use import own_use
from stsbench.scoring.protocols import GIVEN_SIMILARITY


@dataclass(frozen=True)
class SavedSimilarities:
    """One similarity for each scored pair, tasks one after the other, in the order of their pairs.

    Attributes:
        path: a .npy vector, or a text file with one number a line.
    """

    path: Path
    _hashed: HashedFiles = field(default_factory=HashedFiles, compare=False, repr=False)

    @cached_property
    def identity(self) -> Identity:
        """The file's name and hash.

        Raises:
            UserError: if there is no such file.
        """
        self._demand_file()
        sha256 = self._hashed.sha256(self.path)
        return Identity(self.path.stem, "similarities", own_use(GIVEN_SIMILARITY), weights_sha256=sha256)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The similarities, shape (pairs,).

        Raises:
            UserError: if the file holds anything but finite numbers.
        """
        self._demand_file()
        self._hashed.sha256(self.path)
        values = self._from_npy() if self.path.suffix == ".npy" else self._from_text()
        self._hashed.require_unchanged()
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise UserError(
                f"{self.path}: number {bad[0] + 1} of {len(values)} is {values[bad[0]]}: "
                "give a finite number for each pair."
            )
        return values

    def columns(self, tasks: Sequence[StsData]) -> list[Mapping[str, NDArray[np.float64]]]:
        """Return the similarities of each task, in the one column that they are.

        Raises:
            UserError: if there is not one finite number for each pair.
        """
        values, sizes = self.values, [len(task.table) for task in tasks]
        if len(values) != sum(sizes):
            raise UserError(
                f"{self.path} holds {len(values)} similarities for {sum(sizes)} pairs "
                f"({', '.join(task.task for task in tasks)}): give one for each, in the order of the pairs."
            )
        return [{GIVEN_SIMILARITY: part} for part in np.split(values, np.cumsum(sizes)[:-1])]

    def notes(self, tasks: Sequence[StsData]) -> list[str]:
        """Return what should be known of scores that were made so: nothing."""
        return []

    def _from_npy(self) -> NDArray[np.float64]:
        try:
            values = np.load(self.path, allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise UserError(f"{self.path} is not a .npy file of numbers: save it with numpy.save.") from error
        if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype.kind not in "fiu":
            found = f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else "an archive"
            raise UserError(f"{self.path} holds {found}: save one number per pair.")
        return np.asarray(values, dtype=np.float64)

    def _from_text(self) -> NDArray[np.float64]:
        try:
            lines = self.path.read_text(encoding="utf-8").rstrip().split("\n")
        except UnicodeDecodeError as error:
            raise UserError(f"{self.path} is not UTF-8 text: write one number a line.") from error
        return np.array([self._number(line, text) for line, text in enumerate(lines, 1)])

    def _number(self, line: int, text: str) -> float:
        try:
            return float(text)
        except ValueError as error:
            raise UserError(f"{self.path}, line {line}: {text[:40]!r} is no number: write one a line.") from error

    def _demand_file(self) -> None:
        if not self.path.is_file():
            raise UserError(f"no such file: {self.path}.")
