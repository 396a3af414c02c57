"""Vectors that someone saved: a matrix and the sentences its rows belong to."""

from codecs import BOM_UTF8
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from stsbench.base.errors import UserError
from stsbench.encoders.hashed import HashedFiles
from stsbench.encoders.protocol import (
    FloatMatrix,
    Identity,
    Tokenized,
    TokenSequence,
    as_float32,
    require_own_pooling,
)
from stsbench.encoders.use import own_use


@dataclass
class SavedVectors:
    """Looks sentences up in a saved matrix instead of encoding them.

    Attributes:
        path: a .npy file of shape (sentences, dimensions).
        sentences: a UTF-8 text file, one sentence a line, in the order of the rows.
    """

    path: Path
    sentences: Path
    notes: tuple[str, ...] = ()
    _hashed: HashedFiles = field(default_factory=HashedFiles, repr=False)

    @cached_property
    def identity(self) -> Identity:
        """The hashes of the matrix and of the sentences, which say which of its rows a text has.

        Raises:
            UserError: if there is no such file.
        """
        _require_file(self.path)
        _require_file(self.sentences)
        return Identity(
            self.path.stem,
            "vectors",
            own_use("own"),
            weights_sha256=self._hashed.sha256(self.path),
            tokenizer_sha256=self._hashed.sha256(self.sentences),
        )

    @property
    def token_budget(self) -> int:
        """Characters looked up at a time."""
        return 1_000_000

    def prepare(self, *, weights: bool) -> None:
        """Read the sentences and map the matrix."""
        _ = self._rows

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        """Return the texts themselves.

        Raises:
            UserError: if a text has no vector.
        """
        missing = [text for text in texts if text.strip() not in self._rows]
        if missing:
            raise UserError(
                f"{self.sentences} lacks {len(missing)} of the {len(texts)} sentences to score, "
                f"such as {missing[0][:80]!r}: save a vector for every one."
            )
        return Tokenized(list(texts), [-1] * len(texts), [False] * len(texts))

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        """Return the saved rows, shape (len(sequences), dimensions), float32."""
        require_own_pooling(self.identity, poolings)
        rows = [self._rows[str(sequence).strip()] for sequence in sequences]
        vectors = as_float32(self._matrix[rows], str(self.path))
        self._hashed.require_unchanged()
        return dict.fromkeys(poolings, vectors)

    @cached_property
    def _matrix(self) -> FloatMatrix:
        _require_file(self.path)
        try:
            matrix: FloatMatrix = np.lib.format.open_memmap(self.path, mode="r")
        except (ValueError, EOFError, OSError) as error:
            raise UserError(
                f"{self.path} is not a NumPy .npy file of numbers: save it with numpy.save."
            ) from error
        if matrix.ndim != 2 or matrix.shape[1] == 0 or matrix.dtype.kind not in "fiu":
            raise UserError(
                f"{self.path} holds {matrix.dtype} of shape {matrix.shape}: "
                "save numbers of shape (sentences, dimensions)."
            )
        return matrix

    @cached_property
    def _rows(self) -> dict[str, int]:
        _require_file(self.sentences)
        lines = self.sentences.read_bytes().removeprefix(BOM_UTF8).split(b"\n")
        if lines and lines[-1] == b"":
            lines.pop()
        if len(lines) != len(self._matrix):
            raise UserError(
                f"{self.sentences} has {len(lines)} lines but {self.path} has {len(self._matrix)} rows: "
                "write one sentence a line, in the order of the rows."
            )
        rows: dict[str, int] = {}
        for number, line in enumerate(lines):
            try:
                first = rows.setdefault(line.decode("utf-8").strip(), number)
            except UnicodeDecodeError as error:
                raise UserError(
                    f"{self.sentences}, line {number + 1} is not UTF-8: save the file as UTF-8."
                ) from error
            if first != number and not np.array_equal(self._matrix[first], self._matrix[number], equal_nan=True):
                raise UserError(
                    f"{self.sentences}, lines {first + 1} and {number + 1} are one sentence, and rows {first} and "
                    f"{number} of {self.path} (the first is 0) are two vectors: keep the one that is right."
                )
        return rows


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise UserError(f"no such file: {path}.")
