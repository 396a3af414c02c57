"""Vectors in files: word vectors (GloVe and word2vec), which are averaged, and saved sentence vectors."""

import gzip
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import require_file
from stsbench.data.rows import text_lines
from stsbench.encoders.checkpoint import HashedFiles
from stsbench.encoders.protocol import FloatMatrix, Identity, OwnPooling, Tokenized, TokenSequence, as_float32
from stsbench.encoders.use import USUAL, Use, own_use

WORD_VECTOR_SUFFIXES = (".txt", ".vec", ".bin", ".gz")

_LONGEST_LINE = 1_000_000
_Row = tuple[str, NDArray[np.float32]]


class _Layout(NamedTuple):
    """The dimensions of a file of word vectors; of a word2vec file also its rows, and whether they are binary."""

    dimensions: int
    rows: int | None
    is_binary: bool


@dataclass
class StaticEncoder(OwnPooling):
    """The mean of a sentence's word vectors: lower-cased whitespace tokens, unknown words skipped.

    A sentence without known words has the zero vector. The file is scanned for the words of the texts.
    """

    path: Path
    name: str
    asked: Use = USUAL
    notes: tuple[str, ...] = ()
    token_budget: int = 65_536  # words
    _vectors: dict[str, NDArray[np.float32] | None] = field(default_factory=dict, repr=False)
    _hashed: HashedFiles = field(default_factory=HashedFiles, repr=False)

    @cached_property
    def identity(self) -> Identity:  # type: ignore[override]
        digest = self._hashed.sha256(self.path)
        use = own_use("avg", self.asked)
        return Identity(self.name, "static", use, weights_sha256=digest, modules=("lower_case",))

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        words = [text.lower().split() for text in texts]
        if new := {word for row in words for word in row} - self._vectors.keys():
            self._read(new)
        known = [tuple(word for word in row if self._vectors.get(word) is not None) for row in words]
        return Tokenized(list(known), [len(sentence) for sentence in words], [False] * len(texts))

    def vectors(self, sequences: Sequence[TokenSequence]) -> FloatMatrix:
        """Returns the mean vectors, shape (len(sequences), dimensions); zeros for no words."""
        means = np.zeros((len(sequences), self._dimensions), dtype=np.float32)
        for row, sequence in enumerate(sequences):
            if sequence:
                # Summed in float64, so that the mean does not depend on the order of the words.
                known = [vector for word in sequence if (vector := self._vectors[str(word)]) is not None]
                means[row] = np.mean(known, axis=0, dtype=np.float64)
        return means

    @cached_property
    def _dimensions(self) -> int:
        with self._opened() as stream:
            return _read_layout(stream, self.path).dimensions

    def _read(self, words: set[str]) -> None:
        """Scans the file for the vectors of some words; missing words are stored as unknown."""
        known: dict[str, NDArray[np.float32] | None] = {}
        with self._opened() as stream:
            layout = _read_layout(stream, self.path)
            rows = _binary_rows if layout.is_binary else _text_rows
            for word, vector in rows(stream, words, layout, self.path):
                known.setdefault(word, vector)
        self._vectors |= dict.fromkeys(words) | known

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        """Opens the file and makes sure that it is the one that was hashed."""
        self._hashed.sha256(self.path)
        try:
            with gzip.open(self.path) if self.path.suffix == ".gz" else self.path.open("rb") as stream:
                yield cast("BinaryIO", stream)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise UserError(f"{self.path} is not a complete gzip file: download it again.") from error
        self._hashed.require_unchanged()


def _read_layout(stream: BinaryIO, path: Path) -> _Layout:
    """Reads word2vec's header, or the first row of a GloVe file, and leaves the stream at the first row."""
    first = stream.readline(_LONGEST_LINE).split()
    start, rows, is_binary = 0, None, False
    if len(first) == 2 and all(part.isdigit() for part in first):
        rows, dimensions = map(int, first)
        start = stream.tell()
        # Binary numbers have many bytes below a tab, text has none.
        is_binary = min(stream.read(4096), default=9) < 9
    else:
        try:
            dimensions = len([float(value) for value in first[1:]])
        except ValueError:
            dimensions = 0
    if dimensions == 0:
        raise UserError(f"{path}, line 1: expected a word and numbers. Use a GloVe or word2vec file.")
    stream.seek(start)
    return _Layout(dimensions, rows, is_binary)


def _text_rows(stream: BinaryIO, words: Collection[str], layout: _Layout, path: Path) -> Iterator[_Row]:
    for number, line in enumerate(stream, 1 if layout.rows is None else 2):
        # Most lines are skipped by their first word, without parsing the numbers.
        if line.partition(b" ")[0].rstrip().decode("utf-8", errors="replace") not in words:
            continue
        # Split from the right: GloVe 840B has words with spaces.
        word, *values = line.decode("utf-8", errors="replace").rstrip().rsplit(" ", layout.dimensions)
        try:
            vector = np.array(values, dtype=np.float32)
        except ValueError:
            vector = np.empty(0, dtype=np.float32)
        if len(vector) != layout.dimensions:
            raise UserError(
                f"{path}, line {number}: expected a word and {layout.dimensions} numbers. Download the file again."
            )
        if word in words:
            yield word, vector


def _binary_rows(stream: BinaryIO, words: Collection[str], layout: _Layout, path: Path) -> Iterator[_Row]:
    for row in range(layout.rows or 0):
        letters = bytearray()
        while (letter := stream.read(1)) not in {b" ", b""}:
            letters += letter
        content = stream.read(4 * layout.dimensions)
        if len(content) < 4 * layout.dimensions:
            raise UserError(
                f"{path} ends in row {row + 1}, and its header states {layout.rows} rows. Download the file again."
            )
        # Some writers end a row with a newline, which then precedes the next word.
        word = letters.decode("utf-8", errors="replace").lstrip("\n")
        if word in words:
            yield word, np.frombuffer(content, dtype="<f4")


@dataclass
class SavedVectors(OwnPooling):
    """Looks sentences up in a saved matrix instead of encoding them.

    Attributes:
        path: a .npy file of shape (sentences, dimensions).
        sentences: a UTF-8 text file with one sentence per line, in the order of the rows.
        asked: the processing of the vectors: `load(SavedVectors(...), dimensions=128)`.
    """

    path: Path
    sentences: Path
    asked: Use = USUAL
    notes: tuple[str, ...] = ()
    token_budget: int = field(default=1_000_000, init=False, repr=False)  # characters
    _hashed: HashedFiles = field(default_factory=HashedFiles, repr=False)

    @cached_property
    def identity(self) -> Identity:  # type: ignore[override]
        require_file(self.path)
        require_file(self.sentences)
        return Identity(
            self.path.stem,
            "vectors",
            own_use("own", self.asked),
            weights_sha256=self._hashed.sha256(self.path),
            tokenizer_sha256=self._hashed.sha256(self.sentences),
        )

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        missing = [text for text in texts if text.strip() not in self._rows]
        if missing:
            raise UserError(
                f"{self.sentences} lacks {len(missing)} of the {len(texts)} sentences to score, "
                f"such as {missing[0][:80]!r}: save a vector for every sentence."
            )
        return super().tokenize(texts)

    def vectors(self, sequences: Sequence[TokenSequence]) -> FloatMatrix:
        rows = [self._rows[str(sequence).strip()] for sequence in sequences]
        vectors = as_float32(self._matrix[rows], str(self.path))
        self._hashed.require_unchanged()
        return vectors

    @cached_property
    def _matrix(self) -> FloatMatrix:
        try:
            matrix: FloatMatrix = np.lib.format.open_memmap(self.path, mode="r")
        except (ValueError, EOFError, OSError) as error:
            raise UserError(f"{self.path} is not a .npy file of numbers: save it with numpy.save.") from error
        if matrix.ndim != 2 or matrix.shape[1] == 0 or matrix.dtype.kind not in "fiu":
            raise UserError(
                f"{self.path} has {matrix.dtype} of shape {matrix.shape}: "
                "save numbers of shape (sentences, dimensions)."
            )
        return matrix

    @cached_property
    def _rows(self) -> dict[str, int]:
        """The row of each sentence."""
        lines = [text.strip() for _, text in text_lines(self.sentences)]
        if len(lines) != len(self._matrix):
            raise UserError(
                f"{self.sentences} has {len(lines)} lines but {self.path} has {len(self._matrix)} rows: "
                "write one sentence per line, in the order of the rows."
            )
        rows: dict[str, int] = {}
        for number, sentence in enumerate(lines):
            first = rows.setdefault(sentence, number)
            if first != number and not np.array_equal(self._matrix[first], self._matrix[number], equal_nan=True):
                raise UserError(
                    f"{self.sentences}: lines {first + 1} and {number + 1} are the same sentence, but rows "
                    f"{first} and {number} of {self.path} differ. Keep the right one."
                )
        return rows
