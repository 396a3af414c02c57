"""Vectors in files: word vectors (GloVe and word2vec), which are averaged, and saved sentence vectors."""

import codecs
import gzip
import zlib
from codecs import BOM_UTF8
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.machine import available_bytes
from stsbench.encoders.hashed import HashedFiles
from stsbench.encoders.protocol import FloatMatrix, Identity, OwnPooling, Tokenized, TokenSequence, as_float32
from stsbench.encoders.use import USUAL, Use, own_use

WORD_VECTOR_SUFFIXES = (".txt", ".vec", ".bin", ".gz")

_Row = tuple[str, NDArray[np.float32]]

_SCANS = 2


class _AllWords(frozenset[str]):
    def __contains__(self, word: object) -> bool:
        return True


@dataclass
class StaticEncoder(OwnPooling):
    """The mean of a sentence's word vectors: lower-cased whitespace tokens, unknown words skipped.

    A sentence without known words has the zero vector. Two scans of the file keep only the words asked for; the
    third keeps all of them if they fit in memory. So the file may have any size, and be gzipped.
    """

    path: Path
    name: str
    asked: Use = USUAL
    notes: tuple[str, ...] = ()
    token_budget: int = 65_536  # words
    _vectors: dict[str, NDArray[np.float32] | None] = field(default_factory=dict, repr=False)
    _scans: int = field(default=0, repr=False)
    _is_whole: bool = field(default=False, repr=False)
    _hashed: HashedFiles = field(default_factory=HashedFiles, repr=False)

    @cached_property
    def identity(self) -> Identity:  # type: ignore[override]
        digest = self._hashed.sha256(self.path)
        use = own_use("avg", self.asked)
        return Identity(self.name, "static", use, weights_sha256=digest, modules=("lower_case",))

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        words = [text.lower().split() for text in texts]
        if not self._is_whole and (new := {word for row in words for word in row} - self._vectors.keys()):
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
            header, _ = _header(stream, self.path)
            if header is not None:
                return header[1]
            _, *values = stream.readline(1_000_000).split()
        try:
            dimensions = len([float(value) for value in values])
        except ValueError:
            dimensions = 0
        if dimensions == 0:
            raise UserError(f"{self.path}, line 1: expected a word and numbers. Use a GloVe or word2vec file.")
        return dimensions

    def _read(self, words: Collection[str]) -> None:
        """Scans the file for the vectors of some words, or of all; missing words are stored as unknown."""
        self._scans += 1
        free, dimensions = available_bytes(), self._dimensions
        self._is_whole = self._scans > _SCANS and (free is None or 2 * self.path.stat().st_size < free)
        if self._is_whole:
            words = _AllWords()
        vectors: dict[str, NDArray[np.float32] | None] = {}
        with self._opened() as stream:
            header, binary = _header(stream, self.path)
            if header and binary:
                rows = _binary_rows(stream, words, *header, self.path)
            else:
                rows = _text_rows(stream, words, dimensions, self.path, first_line=2 if header else 1)
            for word, vector in rows:
                vectors.setdefault(word, vector)
        self._vectors = vectors if self._is_whole else self._vectors | dict.fromkeys(words) | vectors

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


def _header(stream: BinaryIO, path: Path) -> tuple[tuple[int, int] | None, bool]:
    """Returns (words, dimensions) if the first line is word2vec's header, and whether binary rows follow.

    Leaves the stream at the first row.
    """
    line = stream.readline(1_000_000)
    parts = line.split()
    if len(parts) == 2 and all(part.isdigit() for part in parts):
        count, dimensions = int(parts[0]), int(parts[1])
        start = stream.tell()
        sample = stream.read(4096)
        stream.seek(start)
        if dimensions == 0:
            raise UserError(f"{path}, line 1: the header states vectors of 0 numbers. Download the file again.")
        return (count, dimensions), not _is_text(sample)
    if not parts:
        raise UserError(f"{path} is empty. Use a GloVe or word2vec file.")
    stream.seek(0)
    return None, False


def _text_rows(
    stream: BinaryIO, words: Collection[str], dimensions: int, path: Path, *, first_line: int
) -> Iterator[_Row]:
    for number, line in enumerate(stream, first_line):
        # Most lines are skipped by their first word, without parsing the numbers.
        first = line.partition(b" ")[0].rstrip().decode("utf-8", errors="replace")
        if not first or first not in words:
            continue
        # Split from the right: GloVe 840B has words with spaces.
        word, *values = line.decode("utf-8", errors="replace").rstrip().rsplit(" ", dimensions)
        try:
            vector = np.array(values, dtype=np.float32)
        except ValueError:
            vector = np.empty(0, dtype=np.float32)
        if len(vector) != dimensions:
            raise UserError(
                f"{path}, line {number}: expected a word and {dimensions} numbers. Download the file again."
            )
        if word in words:
            yield word, vector


def _binary_rows(
    stream: BinaryIO, words: Collection[str], count: int, dimensions: int, path: Path
) -> Iterator[_Row]:
    for row in range(count):
        letters = bytearray()
        while (letter := stream.read(1)) not in {b" ", b""}:
            letters += letter
        content = stream.read(4 * dimensions)
        if len(content) < 4 * dimensions:
            raise UserError(
                f"{path} ends in row {row + 1}, and its header states {count} rows. Download the file again."
            )
        # Some writers end a row with a newline, which then precedes the next word.
        word = letters.decode("utf-8", errors="replace").lstrip("\n")
        if word in words:
            yield word, np.frombuffer(content, dtype="<f4")


def _is_text(sample: bytes) -> bool:
    try:
        # Incremental, because the sample may end inside a character.
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return False
    return min(sample, default=9) >= 9  # binary numbers have many bytes below a tab


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
        _require_file(self.path)
        _require_file(self.sentences)
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
        _require_file(self.path)
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
        _require_file(self.sentences)
        lines = self.sentences.read_bytes().removeprefix(BOM_UTF8).split(b"\n")
        if lines and lines[-1] == b"":
            lines.pop()
        if len(lines) != len(self._matrix):
            raise UserError(
                f"{self.sentences} has {len(lines)} lines but {self.path} has {len(self._matrix)} rows: "
                "write one sentence per line, in the order of the rows."
            )
        rows: dict[str, int] = {}
        for number, line in enumerate(lines):
            try:
                first = rows.setdefault(line.decode("utf-8").strip(), number)
            except UnicodeDecodeError as error:
                raise UserError(f"{self.sentences}, line {number + 1} is not UTF-8: save it as UTF-8.") from error
            if first != number and not np.array_equal(self._matrix[first], self._matrix[number], equal_nan=True):
                raise UserError(
                    f"{self.sentences}: lines {first + 1} and {number + 1} are the same sentence, but rows "
                    f"{first} and {number} of {self.path} differ. Keep the right one."
                )
        return rows


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise UserError(f"no such file: {path}.")
