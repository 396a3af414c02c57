"""Simple encoders, without a network: a callable `list[str] -> array`, word vectors, saved sentence vectors."""

import gzip
import pkgutil
import sys
import sysconfig
import traceback
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import require_file, sha256_of
from stsbench.data.rows import text_lines
from stsbench.encoders.protocol import (
    DeviceOutOfMemory,
    FloatMatrix,
    Identity,
    OwnPooling,
    Tokenized,
    TokenSequence,
    as_float32,
)
from stsbench.encoders.use import USUAL, Use, own_use

EncodeFunction = Callable[[list[str]], Any]


@dataclass
class CallableEncoder(OwnPooling):
    """Passes sentences to a callable and checks what it returns.

    Attributes:
        encode: takes a list of sentences, returns an array or tensor of shape (sentences, dimensions).
        identity: its name and kind. Without a weight hash its vectors are not cached.
        load: prepares `encode`; called before the first sentence, possibly more than once.
        token_budget: characters per call, large enough for the callable to choose its own batches.
    """

    encode: EncodeFunction
    identity: Identity
    notes: tuple[str, ...] = ()
    load: Callable[[], object] | None = None
    token_budget: int = 65_536

    def prepare(self, *, weights: bool) -> None:
        if weights and self.load is not None:
            self.load()

    def vectors(self, sequences: Sequence[TokenSequence]) -> FloatMatrix:
        name, texts = self.identity.name, [str(sequence) for sequence in sequences]
        try:
            returned = self.encode(list(texts))
        except UserError:
            raise
        except Exception as error:
            if type(error).__name__ == "OutOfMemoryError":  # torch's; torch may not be installed
                raise DeviceOutOfMemory(str(error)) from error
            raise UserError(
                f"{name} raised {_described(error)} for {len(texts)} sentences. Fix it there."
            ) from error
        try:
            values = _as_array(returned)
            kind = f"{values.dtype} of shape {values.shape}"
        except (TypeError, ValueError, OverflowError, RuntimeError):
            values, kind = np.empty(0), f"{type(returned).__name__}, which is not a matrix of numbers,"
        if values.dtype.kind not in "fiub" or values.ndim != 2 or len(values) != len(texts) or not values.shape[1]:
            raise UserError(
                f"{name} returned {kind} for {len(texts)} sentences. "
                f"Return an array of real numbers of shape ({len(texts)}, dimensions)."
            )
        # A copy, because a callable may reuse its array.
        return as_float32(values, name)


def is_callable(value: object) -> bool:
    """Returns whether a value can be wrapped: a callable, or an object with a method `encode`."""
    return callable(value) or (not isinstance(value, str) and callable(getattr(value, "encode", None)))


def from_function(encode: Any, use: Use = USUAL, *, name: str | None = None) -> CallableEncoder:
    """Wraps a callable `list[str] -> array`, or an object with such a method `encode`.

    >>> encoder = from_function(lambda sentences: [[len(s), 1.0] for s in sentences], name="length")
    >>> encoder.forward(["ab", "abc"], ["own"])["own"].tolist()
    [[2.0, 1.0], [3.0, 1.0]]
    """
    # The method comes first: a sentence-transformers model is also callable, but on tensors.
    method = getattr(encode, "encode", encode)
    definition = encode if hasattr(encode, "__qualname__") else type(encode)
    name = name or f"{definition.__module__}:{definition.__qualname__}"
    note = f"{name} is a callable without a weight file to hash, so its vectors are not cached."
    return CallableEncoder(method, Identity(name, "function", own_use("own", use)), (note,))


def import_function(target: str, use: Use = USUAL) -> CallableEncoder:
    """Imports `module:function`, also from the current folder, and wraps it."""
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute:
        raise UserError(f"{target!r} does not name a callable. Write module:function.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        member = pkgutil.resolve_name(target)
    except Exception as error:
        raise UserError(f"cannot import {target}: {_described(error)}. Run from its folder, or fix it.") from error
    if not is_callable(member):
        raise UserError(f"{target} is a {type(member).__name__}, not a callable list[str] -> array.")
    return from_function(member, use, name=target)


def _as_array(returned: Any) -> NDArray[Any]:
    """Converts a callable's result to an array without rounding it."""
    if hasattr(returned, "detach"):
        # NumPy has no bfloat16.
        returned = (returned if returned.is_complex() else returned.double()).numpy(force=True)
    if np.ma.is_masked(returned):
        raise ValueError("some numbers are masked")
    array = np.asarray(returned)
    # A list of tensors, or of Python's large integers.
    return np.array(returned, dtype=np.float64) if array.dtype == object and array.ndim == 2 else array


def _described(error: Exception) -> str:
    """Formats an exception with the line that raised it."""
    message = f"{type(error).__name__}: {error}".strip().partition("\n")[0]
    not_shown = "<frozen", sysconfig.get_path("stdlib"), str(Path(__file__))
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(not_shown)
    ]
    if not frames or isinstance(error, SyntaxError):  # a syntax error's message names its place
        return message
    return f"{message} ({frames[-1].filename}, line {frames[-1].lineno})"


WORD_VECTOR_SUFFIXES = (".txt", ".vec", ".bin", ".gz")

_LONGEST_LINE = 1_000_000
_Row = tuple[str, NDArray[np.float32]]


@dataclass
class StaticEncoder(OwnPooling):
    """The mean of a sentence's word vectors: lower-cased whitespace tokens, unknown words skipped.

    A sentence without known words has the zero vector. The file is scanned for the words of the texts.
    """

    path: Path
    name: str
    chosen: Use = USUAL
    notes: tuple[str, ...] = ()
    token_budget: int = 65_536  # words
    _vectors: dict[str, NDArray[np.float32] | None] = field(default_factory=dict, repr=False)

    @cached_property
    def identity(self) -> Identity:  # type: ignore[override]
        use = own_use("avg", self.chosen)
        return Identity(self.name, "static", use, sha256_of(self.path), modules=("lower_case",))

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
            return _read_layout(stream, self.path)[0]

    def _read(self, words: set[str]) -> None:
        """Scans the file for the vectors of some words; missing words are stored as unknown."""
        known: dict[str, NDArray[np.float32] | None] = {}
        with self._opened() as stream:
            dimensions, rows, is_binary = _read_layout(stream, self.path)
            read = _binary_rows if is_binary else _text_rows
            for word, vector in read(stream, words, dimensions, rows, self.path):
                known.setdefault(word, vector)
        self._vectors |= dict.fromkeys(words) | known

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        try:
            with gzip.open(self.path) if self.path.suffix == ".gz" else self.path.open("rb") as stream:
                yield cast("BinaryIO", stream)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise UserError(f"{self.path} is not a complete gzip file: download it again.") from error


def _read_layout(stream: BinaryIO, path: Path) -> tuple[int, int | None, bool]:
    """Returns a file's dimensions, a word2vec file's number of rows, and whether it is binary.

    Leaves the stream at the first row.
    """
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
    return dimensions, rows, is_binary


def _text_rows(
    stream: BinaryIO, words: Collection[str], dimensions: int, rows: int | None, path: Path
) -> Iterator[_Row]:
    for number, line in enumerate(stream, 1 if rows is None else 2):
        # Most lines are skipped by their first word, without parsing the numbers.
        if line.partition(b" ")[0].rstrip().decode("utf-8", errors="replace") not in words:
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
    stream: BinaryIO, words: Collection[str], dimensions: int, rows: int | None, path: Path
) -> Iterator[_Row]:
    for row in range(rows or 0):
        letters = bytearray()
        while (letter := stream.read(1)) not in {b" ", b""}:
            letters += letter
        content = stream.read(4 * dimensions)
        if len(content) < 4 * dimensions:
            raise UserError(
                f"{path} ends in row {row + 1}, but its header states {rows} rows. Download the file again."
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
        chosen: the processing of the vectors: `load(SavedVectors(...), dimensions=128)`.
    """

    path: Path
    sentences: Path
    chosen: Use = USUAL
    notes: tuple[str, ...] = ()
    token_budget: int = field(default=1_000_000, init=False, repr=False)  # characters

    @cached_property
    def identity(self) -> Identity:  # type: ignore[override]
        require_file(self.path)
        require_file(self.sentences)
        return Identity(
            self.path.stem,
            "vectors",
            own_use("own", self.chosen),
            weights_sha256=sha256_of(self.path),
            tokenizer_sha256=sha256_of(self.sentences),
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
        return as_float32(self._matrix[rows], str(self.path))

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
