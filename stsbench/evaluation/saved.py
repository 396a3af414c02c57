"""Similarities that someone computed elsewhere."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stsbench.encoders import Identity
from stsbench.evaluation.pairs import GIVEN
from stsbench.foundation.errors import UserError
from stsbench.foundation.files import sha256_of


@dataclass(frozen=True)
class SavedSimilarities:
    """One similarity for each scored pair, tasks one after the other, in the order of their pairs.

    Attributes:
        path: a .npy vector, or a text file with one number a line.
    """

    path: Path

    @cached_property
    def identity(self) -> Identity:
        """The file's name and hash."""
        if not self.path.is_file():
            raise UserError(f"no such file: {self.path}.")
        return Identity(self.path.stem, "similarities", GIVEN, weights_sha256=sha256_of(self.path))

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The similarities, shape (pairs,).

        Raises:
            UserError: if the file holds anything else.
        """
        if self.path.suffix != ".npy":
            return np.array([self._number(line, text) for line, text in enumerate(self._lines(), 1)])
        try:
            values = np.load(self.path, allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise UserError(f"{self.path} is not a .npy file of numbers: save it with numpy.save.") from error
        if values.ndim != 1 or values.dtype.kind not in "fiu":
            raise UserError(f"{self.path} holds {values.dtype} of shape {values.shape}: save one number per pair.")
        return np.asarray(values, dtype=np.float64)

    def _lines(self) -> list[str]:
        try:
            return self.path.read_text(encoding="utf-8").rstrip("\n").split("\n")
        except UnicodeDecodeError as error:
            raise UserError(f"{self.path} is not UTF-8 text: write one number a line.") from error

    def _number(self, line: int, text: str) -> float:
        try:
            return float(text)
        except ValueError as error:
            raise UserError(f"{self.path}, line {line}: {text[:40]!r} is no number: write one a line.") from error
