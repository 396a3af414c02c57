"""Averaged word vectors: GloVe and word2vec files, text and binary."""

import codecs
import gzip
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.encoders.hashed import HashedFiles
from stsbench.encoders.protocol import FloatMatrix, Identity, Tokenized, TokenSequence, require_own_pooling
from stsbench.encoders.use import USUAL, Use, own_use

SUFFIXES = (".txt", ".vec", ".bin", ".gz")


@dataclass
class StaticEncoder:
    """The mean of a sentence's word vectors: lower-cased whitespace tokens, unknown words skipped.

    A sentence of unknown words only has the zero vector; its pairs score 0 and are counted. Of the file only
    the words that are asked for are kept, so that a file of any size fits in memory.

    Attributes:
        path: a GloVe text file, or a word2vec text or binary file; may be gzipped.
        name: as the person named it.
        asked: how it is to be used.
    """

    path: Path
    name: str
    asked: Use = USUAL
    notes: tuple[str, ...] = ()
    _vectors: dict[str, NDArray[np.float32] | None] = field(default_factory=dict, repr=False)
    _hashed: HashedFiles = field(default_factory=HashedFiles, repr=False)

    @cached_property
    def identity(self) -> Identity:
        """The file's hash, and averaging."""
        digest = self._hashed.sha256(self.path)
        use = own_use("avg", self.asked)
        return Identity(self.name, "static", use, weights_sha256=digest, modules=("lower_case",))

    @property
    def token_budget(self) -> int:
        """Words in one batch."""
        return 65_536

    def prepare(self, *, weights: bool) -> None:
        """Do nothing: which words to read is known only from the texts."""

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        """Return the known words of each text, and how many words it has."""
        words = [text.lower().split() for text in texts]
        if new := {word for sentence in words for word in sentence} - self._vectors.keys():
            self._read(new)
        known = [tuple(word for word in sentence if self._vectors[word] is not None) for sentence in words]
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
        if not values or not all(_is_number(value) for value in values):
            raise UserError(f"{self.path}, line 1: not a word and its numbers: give a GloVe or word2vec file.")
        return len(values)

    def _read(self, words: Collection[str]) -> None:
        """Scan the file once for the vectors of some words; the others are noted as unknown."""
        dimensions = self._dimensions
        with self._opened() as stream:
            header, binary = _header(stream, self.path)
            if header and binary:
                rows = _binary_rows(stream, words, *header, self.path)
            else:
                rows = _text_rows(stream, words, dimensions, self.path, first_line=2 if header else 1)
            vectors: dict[str, NDArray[np.float32]] = {}
            for word, vector in rows:
                vectors.setdefault(word, vector)
        self._vectors.update(dict.fromkeys(words) | vectors)

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        """Open the file to read what was hashed.

        Raises:
            UserError: if it changed since.
        """
        self._hashed.sha256(self.path)
        with _opened(self.path) as stream:
            yield stream
        self._hashed.require_unchanged()


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            yield cast("BinaryIO", stream)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path} is not a whole gzip file: fetch it again.") from error


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
        # Most lines are of words that nobody asked for: their numbers are not parsed.
        if line.partition(b" ")[0].rstrip().decode("utf-8", errors="replace") not in words:
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


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
