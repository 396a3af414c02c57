"""Vectors in files: of words (GloVe and word2vec, text and binary), averaged; of sentences, looked up."""

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
from stsbench.encoders.protocol import (
    FloatMatrix,
    Identity,
    Tokenized,
    TokenSequence,
    as_float32,
    require_own_pooling,
)
from stsbench.encoders.use import USUAL, Use, own_use

WORD_VECTOR_SUFFIXES = (".txt", ".vec", ".bin", ".gz")


_READS = 2
"""How often a file is scanned for some of its words."""


class _Every(frozenset[str]):
    """Holds every word."""

    def __contains__(self, word: object) -> bool:
        return True


@dataclass
class StaticEncoder:
    """The mean of a sentence's word vectors: lower-cased whitespace tokens, unknown words skipped.

    A sentence of unknown words only has the zero vector; its pairs score 0 and are counted. Of the file only
    the words that are asked for are kept, or all where they fit in memory: it may be of any size, and gzipped.
    """

    path: Path
    name: str
    asked: Use = USUAL
    notes: tuple[str, ...] = ()
    token_budget: int = 65_536  # words
    _vectors: dict[str, NDArray[np.float32] | None] = field(default_factory=dict, repr=False)
    _reads: int = field(default=0, repr=False)
    _is_whole: bool = field(default=False, repr=False)
    _hashed: HashedFiles = field(default_factory=HashedFiles, repr=False)

    @cached_property
    def identity(self) -> Identity:
        """The file's hash, and averaging."""
        digest = self._hashed.sha256(self.path)
        use = own_use("avg", self.asked)
        return Identity(self.name, "static", use, weights_sha256=digest, modules=("lower_case",))

    def prepare(self, *, weights: bool) -> None:
        """Do nothing: which words to read is known only from the texts."""

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        """Return the known words of each text, and how many words it has."""
        words = [text.lower().split() for text in texts]
        if not self._is_whole and (new := {word for row in words for word in row} - self._vectors.keys()):
            self._read(new)
        known = [tuple(word for word in row if self._vectors.get(word) is not None) for row in words]
        return Tokenized(list(known), [len(sentence) for sentence in words], [False] * len(texts))

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        """Return the mean vectors, shape (len(sequences), dimensions); no word gives the zero vector."""
        require_own_pooling(self.identity, poolings)
        means = np.zeros((len(sequences), self._dimensions), dtype=np.float32)
        for row, sequence in enumerate(sequences):
            if sequence:
                # Summed in float64: the mean must not depend on the order of the words.
                known = [vector for word in sequence if (vector := self._vectors[str(word)]) is not None]
                means[row] = np.mean(known, axis=0, dtype=np.float64)
        return dict.fromkeys(poolings, means)

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
            raise UserError(f"{self.path}, line 1: not a word and its numbers: give a GloVe or word2vec file.")
        return dimensions

    def _read(self, words: Collection[str]) -> None:
        """Scan the file once for the vectors of some words; the others are noted as unknown.

        Who asks for the third time goes on asking: then all words are read, and no other is noted, unless memory
        is short of that. A word takes half of its line of text, and a quarter more than in a binary or gzipped
        file.
        """
        self._reads += 1
        free = available_bytes()
        self._is_whole = self._reads > _READS and (free is None or 2 * self.path.stat().st_size < free)
        if self._is_whole:
            words = _Every()
        dimensions = self._dimensions
        with self._opened() as stream:
            header, binary = _header(stream, self.path)
            if header and binary:
                rows = _binary_rows(stream, words, *header, self.path)
            else:
                rows = _text_rows(stream, words, dimensions, self.path, first_line=2 if header else 1)
            vectors: dict[str, NDArray[np.float32] | None] = {}
            for word, vector in rows:
                vectors.setdefault(word, vector)
        self._vectors = vectors if self._is_whole else self._vectors | dict.fromkeys(words) | vectors

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        """Open the file to read what was hashed."""
        self._hashed.sha256(self.path)
        try:
            with gzip.open(self.path) if self.path.suffix == ".gz" else self.path.open("rb") as stream:
                yield cast("BinaryIO", stream)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise UserError(f"{self.path} is not a whole gzip file: fetch it again.") from error
        self._hashed.require_unchanged()


def _header(stream: BinaryIO, path: Path) -> tuple[tuple[int, int] | None, bool]:
    """Return (words, dimensions) if the first line is word2vec's header, and whether binary rows follow.

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
            raise UserError(f"{path}, line 1: its header promises vectors of 0 numbers: fetch it again.")
        return (count, dimensions), not _is_text(sample)
    if not parts:
        raise UserError(f"{path} is empty: give a GloVe or word2vec file.")
    stream.seek(0)
    return None, False


def _text_rows(
    stream: BinaryIO, words: Collection[str], dimensions: int, path: Path, *, first_line: int
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield those rows of a text file whose word is asked for."""
    for number, line in enumerate(stream, first_line):
        # Most lines are of words that nobody asked for: their numbers are not parsed. An empty line is of none.
        first = line.partition(b" ")[0].rstrip().decode("utf-8", errors="replace")
        if not first or first not in words:
            continue
        # From the right, as GloVe 840B has entries with blanks in the word.
        word, *values = line.decode("utf-8", errors="replace").rstrip().rsplit(" ", dimensions)
        try:
            vector = np.array(values, dtype=np.float32)
        except ValueError:
            vector = np.empty(0, dtype=np.float32)
        if len(vector) != dimensions:
            raise UserError(f"{path}, line {number}: not a word and {dimensions} numbers: fetch the file again.")
        if word in words:
            yield word, vector


def _binary_rows(
    stream: BinaryIO, words: Collection[str], count: int, dimensions: int, path: Path
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield those rows of a binary file whose word is asked for."""
    for row in range(count):
        letters = bytearray()
        while (letter := stream.read(1)) not in {b" ", b""}:
            letters += letter
        content = stream.read(4 * dimensions)
        if len(content) < 4 * dimensions:
            raise UserError(
                f"{path} ends in row {row + 1} of the {count} that its header promises: fetch it again."
            )
        # Some writers end a row with a newline, which then stands before the next word.
        word = letters.decode("utf-8", errors="replace").lstrip("\n")
        if word in words:
            yield word, np.frombuffer(content, dtype="<f4")


def _is_text(sample: bytes) -> bool:
    try:
        # Incremental, as the sample may end inside a character.
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return False
    return min(sample, default=9) >= 9  # a tab; floats are full of smaller bytes


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
    token_budget: int = field(default=1_000_000, init=False, repr=False)  # characters
    _hashed: HashedFiles = field(default_factory=HashedFiles, repr=False)

    @cached_property
    def identity(self) -> Identity:
        """The hashes of the matrix and of the sentences, which say which of its rows a text has."""
        _require_file(self.path)
        _require_file(self.sentences)
        return Identity(
            self.path.stem,
            "vectors",
            own_use("own"),
            weights_sha256=self._hashed.sha256(self.path),
            tokenizer_sha256=self._hashed.sha256(self.sentences),
        )

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
