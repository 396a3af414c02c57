"""The embedding cache: one SQLite file per way of computing vectors, so that nothing is encoded twice.

A file is named after the hash of everything that a vector depends on besides the text (`Identity`), so a changed
weight file gets a new cache file. Texts point to token sequences and token sequences to vectors: a second run
needs neither the tokenizer nor the weights. SQLite handles concurrent and killed writers; every row has a
checksum, and a damaged row is dropped and encoded again.

The cache stays below `STSBENCH_CACHE_SIZE` (bytes, or "5GB", "500 MB"; default 10 GiB): the least recently used
files are deleted first.
"""

import hashlib
import json
import logging
import os
import re
import sqlite3
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import cache_dir, files_in
from stsbench.encoders.protocol import Identity

DEFAULT_MAX_BYTES = 10 * 1024**3

KEY_BYTES = 16

# Increase this when the layout, or the meaning of a vector, changes.
_FORMAT = 7
# A page holds several vectors. Losing a file in a power cut is acceptable.
_SCHEMA = """
PRAGMA page_size = 16384;
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS about (description TEXT);
CREATE TABLE IF NOT EXISTS texts (key BLOB PRIMARY KEY, content BLOB, checksum INTEGER);
CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, content BLOB, checksum INTEGER);
"""
_TEXT = struct.Struct(f"<{KEY_BYTES}sq?")
_OURS = "*.vectors"
_KEYS_PER_QUERY = 10_000
_WAIT_SECONDS = 10.0
_UNUSABLE = {
    getattr(sqlite3, f"SQLITE_{name}")
    for name in ("BUSY", "LOCKED", "FULL", "IOERR", "CANTOPEN", "READONLY", "PERM", "NOMEM")
}
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}

_log = logging.getLogger(__name__)

# Folders about which this process has warned.
_warned: set[Path] = set()


class CachedText(NamedTuple):
    """The key of a text's token sequence, its length in sub-words, and whether it was truncated."""

    sequence: bytes
    length: int
    truncated: bool


@dataclass(frozen=True)
class CacheFile:
    """A summary of one cache file, for display."""

    path: Path
    identity: dict[str, Any]
    vectors: int
    size: int
    last_used: float


Vectors = dict[bytes, NDArray[np.float32]]  # by the key of their token sequence


class VectorStore:
    """The token sequences and vectors of some texts: cached ones, if the cache is used, and new ones.

    Attributes:
        texts: the token sequence of each text, by its key.
        vectors: for each pooling the vectors of token sequences.
    """

    def __init__(self, identity: Identity, poolings: Sequence[str], *, use_cache: bool) -> None:
        self.texts: dict[str, CachedText] = {}
        self.vectors: dict[str, Vectors] = {pooling: {} for pooling in poolings}
        self._max_bytes = max_cache_bytes()  # a mistake in it is found before any work
        self._caches = {pooling: EmbeddingCache(identity, pooling) for pooling in poolings if use_cache}
        self._new_texts: dict[str, CachedText] = {}
        self._unsaved: list[bytes] = []

    def recall(self, texts: Sequence[str]) -> list[str]:
        """Reads texts and their vectors from the cache; returns the texts that it lacks, or lacks vectors of."""
        for cache in self._caches.values():
            self.texts |= cache.texts([text for text in texts if text not in self.texts])
        self._recall_vectors(self.texts)
        return [text for text in texts if text not in self.texts or not self.has(self.texts[text].sequence)]

    def has(self, sequence: bytes) -> bool:
        """Returns whether there are vectors of a token sequence, for every pooling."""
        return all(sequence in vectors for vectors in self.vectors.values())

    def add_texts(self, texts: Mapping[str, CachedText]) -> None:
        """Adds texts; their sequences may be cached, under other texts or by a run that was killed."""
        self.texts |= texts
        self._new_texts |= texts
        self._recall_vectors(texts)

    def add_vectors(self, sequences: Sequence[bytes], matrices: Mapping[str, NDArray[np.float32]]) -> None:
        """Adds the vectors of token sequences, one row each, for every pooling."""
        for pooling, matrix in matrices.items():
            self.vectors[pooling].update(zip(sequences, matrix, strict=True))
        self._unsaved += sequences

    def save(self) -> None:
        """Writes new vectors to the cache."""
        for pooling, cache in self._caches.items():
            cache.add_vectors({key: self.vectors[pooling][key] for key in self._unsaved})
        self._unsaved = []

    def close(self) -> None:
        """Writes new texts to the cache, and deletes its oldest files if it is too large."""
        for cache in self._caches.values():
            cache.add_texts(self._new_texts)
            touch_and_trim(cache.path, self._max_bytes)

    def _recall_vectors(self, texts: Iterable[str]) -> None:
        keys = {self.texts[text].sequence for text in texts}
        for pooling, cache in self._caches.items():
            vectors = self.vectors[pooling]
            vectors |= cache.vectors([key for key in keys if key not in vectors])


class _DamagedError(Exception):
    """The file is not a database with our tables."""


def text_key(text: str) -> bytes:
    """Returns a 16-byte key of a text."""
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).digest()[:KEY_BYTES]


class EmbeddingCache:
    """The cached vectors of one identity (whose `is_cached` is true) with one pooling.

    If your cache cannot be used (full disk, no permission, locked by another process), one warning is logged and
    the run continues without it.
    """

    def __init__(self, identity: Identity, pooling: str) -> None:
        chosen = {"pooling": pooling, "format": _FORMAT}
        key, use = identity.key() | chosen, identity.use
        description = identity.as_dict() | {"precision": use.computed_in, "device": use.device} | chosen
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        self.path = embeddings_dir() / f"{digest[:32]}.vectors"
        self._description = json.dumps(description, sort_keys=True)
        # Checksums begin with the file's name and the key, so a misplaced row fails verification.
        self._seed = crc32(digest[:32].encode())

    def texts(self, texts: Sequence[str]) -> dict[str, CachedText]:
        """Returns the cached sequences and lengths of texts, without those that are not cached."""
        by_key = {text_key(text): text for text in texts}
        rows = self._find("texts", list(by_key))
        return {by_key[key]: CachedText(*_TEXT.unpack(content)) for key, content in rows.items()}

    def vectors(self, sequences: Sequence[bytes]) -> Vectors:
        """Returns the vectors of those token sequences that are cached, by key."""
        rows = self._find("vectors", sequences)
        return {key: np.frombuffer(content, "<f4") for key, content in rows.items()}

    def add_texts(self, texts: Mapping[str, CachedText]) -> None:
        """Stores the sequences and lengths of texts."""
        self._add("texts", {text_key(text): _TEXT.pack(*known) for text, known in texts.items()})

    def add_vectors(self, vectors: Vectors) -> None:
        """Stores the vectors of some token sequences: all of them or, if the process is killed, none."""
        self._add("vectors", {key: vector.astype("<f4").tobytes() for key, vector in vectors.items()})

    def _find(self, table: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Returns the contents of those keys that are cached; damaged rows are deleted."""
        found = dict[bytes, bytes]()

        def find(connection: sqlite3.Connection) -> None:
            damaged: list[tuple[int]] = []
            for start in range(0, len(keys), _KEYS_PER_QUERY):
                batch = keys[start : start + _KEYS_PER_QUERY]
                marks = ",".join("?" * len(batch))
                rows = connection.execute(
                    f"SELECT rowid, key, content, checksum FROM {table} WHERE key IN ({marks})", batch
                )
                for row, key, content, checksum in rows:
                    if isinstance(content, bytes) and checksum == self._checksum(key, content):
                        found[key] = content
                    else:
                        damaged.append((row,))
            if damaged:
                connection.executemany(f"DELETE FROM {table} WHERE rowid = ?", damaged)
                _log.warning(
                    "%d damaged entries of the embedding cache %s were dropped; they are encoded again if needed.",
                    len(damaged),
                    self.path,
                )

        if self.path.exists():
            self._use(find)
        return found

    def _add(self, table: str, rows: Mapping[bytes, bytes]) -> None:
        """Inserts the rows whose keys are new, in one transaction."""
        checked = [(key, content, self._checksum(key, content)) for key, content in rows.items()]

        def add(connection: sqlite3.Connection) -> None:
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute("SELECT COUNT(*) FROM about").fetchone() == (0,):
                connection.execute("INSERT INTO about VALUES (?)", (self._description,))
            connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES (?, ?, ?)", checked)
            connection.execute("COMMIT")

        if rows:
            self._use(add)

    def _use(self, action: Callable[[sqlite3.Connection], None]) -> None:
        """Runs an action on the file; does nothing if the file is unusable or is deleted meanwhile."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with _opened(self.path) as connection:
                action(connection)
        except _DamagedError:
            _log.warning(
                "the embedding cache %s was damaged and was deleted; its entries are encoded again if needed.",
                self.path,
            )
            remove(self.path)
        except FileNotFoundError:  # deleted by another process
            return
        except OSError as error:
            _warn_once(
                self.path.parent,
                f"cannot use the embedding cache {self.path} ({error.strerror or error}): "
                "free some space, set STSBENCH_CACHE to another folder, or use --no-cache.",
            )

    def _checksum(self, key: bytes, content: bytes) -> int:
        return crc32(content, crc32(key, self._seed))


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Opens a cache file, which is created if needed.

    Raises:
        _DamagedError: if the file is not a database with our tables.
        OSError: if it cannot be read or written, is locked for too long, or was deleted (FileNotFoundError).
    """
    if path.is_fifo() or path.is_dir():
        raise OSError("not a file")
    try:
        with closing(sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)) as connection:
            connection.executescript(_SCHEMA)
            yield connection
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
        if code == sqlite3.SQLITE_READONLY_DBMOVED:
            raise FileNotFoundError(str(path)) from error
        if code & 0xFF in _UNUSABLE:
            raise OSError(str(error)) from error
        raise _DamagedError from error


def _warn_once(folder: Path, problem: str) -> None:
    if folder not in _warned:
        _warned.add(folder)
        _log.warning("continuing without the cache: %s", problem)


def embeddings_dir() -> Path:
    """Returns the folder of the embedding cache."""
    return cache_dir() / "embeddings"


def cache_files() -> list[CacheFile]:
    """Returns the readable files of the cache, most recently used first."""
    files = []
    for path in embeddings_dir().glob(_OURS):
        with suppress(OSError, _DamagedError, ValueError, TypeError), _opened(path) as connection:
            (description,) = connection.execute("SELECT description FROM about").fetchone()
            (count,) = connection.execute("SELECT COUNT(key) FROM vectors").fetchone()
            state = path.stat()
            files.append(CacheFile(path, json.loads(description), count, state.st_size, state.st_mtime))
    return sorted(files, key=lambda file: -file.last_used)


def clear_cache() -> int:
    """Deletes the cache and returns the number of bytes freed."""
    return sum(map(remove, files_in(embeddings_dir(), _OURS)))


def max_cache_bytes() -> float:
    """Returns the size limit of the cache: `STSBENCH_CACHE_SIZE`, or 10 GiB."""
    wanted = os.environ.get("STSBENCH_CACHE_SIZE", "").strip()
    if not wanted:
        return DEFAULT_MAX_BYTES
    size = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", wanted, re.IGNORECASE)
    if size is None:
        raise UserError(f"STSBENCH_CACHE_SIZE is {wanted!r}, not a size: use bytes, or 5GB, or 500MB.")
    return float(size[1]) * _UNITS[size[2].upper()]


def touch_and_trim(used: Path, max_bytes: float = DEFAULT_MAX_BYTES) -> None:
    """Marks a cache file as used and deletes the least recently used files above the size limit.

    The file in use is kept even if it exceeds the limit alone.
    """
    folder = used.parent
    try:
        with suppress(FileNotFoundError):
            os.utime(used)
        files = list(folder.glob(_OURS))
        total = 0
        for path in sorted(files, key=lambda path: path.stat().st_mtime, reverse=True):
            total += path.stat().st_size
            if total > max_bytes and path != used:
                remove(path)
    except FileNotFoundError:  # deleted by another process: the next run trims
        return
    except OSError as error:
        _warn_once(folder, f"cannot trim the embedding cache {folder} ({error}): use --no-cache.")


def remove(path: Path) -> int:
    """Deletes a file of the cache if it still exists, and returns the number of bytes freed."""
    try:
        size = path.stat().st_size
        # SQLite would apply an interrupted transaction's journal to a new file of the same name.
        path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
        path.unlink()
    except FileNotFoundError:
        return 0
    return size
