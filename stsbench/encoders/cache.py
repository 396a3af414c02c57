"""The embedding cache: one SQLite file for each way of making vectors, so that nothing is encoded twice.

A file is named by the hash of everything a vector depends on besides the text (`Identity`): a changed weight
file is another cache file. Inside, texts point to token sequences and token sequences to vectors, so that a
second run needs neither tokeniser nor weights. SQLite gives what a cache needs under two processes and a pulled
plug; a damaged file is deleted, since everything in it can be made again.
"""

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stsbench.encoders.protocol import Identity
from stsbench.foundation.errors import UserError
from stsbench.foundation.paths import cache_dir

DEFAULT_MAX_BYTES = 10 * 1024**3

# Raised when the layout below, or the meaning of a vector, changes.
_FORMAT = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS about (identity TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS texts (
    text BLOB PRIMARY KEY, sequence BLOB NOT NULL, length INTEGER NOT NULL, truncated INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS vectors (sequence BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;
"""
_WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class CachedText:
    """What the cache knows of a text: its token sequence's key, its length in sub-words, and if it was cut."""

    sequence: bytes
    length: int
    truncated: bool


@dataclass(frozen=True)
class CacheFile:
    """One file of the cache, for people to look at."""

    path: Path
    identity: dict[str, object]
    vectors: int
    size: int
    last_used: float


def text_key(text: str) -> bytes:
    """Return the 16 bytes that stand for a text."""
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).digest()[:16]


class EmbeddingCache:
    """Vectors of one identity and pooling.

    Args:
        identity: what the vectors depend on. It must have a weight hash.
        pooling: how they were pooled, instead of the identity's own pooling.
        folder: where cache files live.
    """

    def __init__(self, identity: Identity, pooling: str, folder: Path | None = None) -> None:
        description = identity.as_dict() | {"pooling": pooling, "format": _FORMAT}
        # Two names for the same files are the same vectors.
        key = {name: value for name, value in description.items() if name not in {"name", "revision"}}
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        self.path = (folder or embeddings_dir()) / f"{digest[:32]}.sqlite"
        self._description = json.dumps(description, sort_keys=True)

    def texts(self, texts: Sequence[str]) -> dict[str, CachedText]:
        """Return what is known of those of the texts that are known."""
        by_key = {text_key(text): text for text in texts}
        with self._connection() as connection:
            rows = _select(connection, "SELECT * FROM texts WHERE text IN", list(by_key))
            return {by_key[key]: CachedText(sequence, length, bool(cut)) for key, sequence, length, cut in rows}

    def vectors(self, sequences: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """Return the vectors of those of the token sequences that have one."""
        with self._connection() as connection:
            rows = _select(connection, "SELECT * FROM vectors WHERE sequence IN", list(sequences))
            return {key: np.frombuffer(vector, dtype="<f4") for key, vector in rows}

    def add_texts(self, texts: dict[str, CachedText]) -> None:
        """Remember what was found out of some texts."""
        rows = [(text_key(text), row.sequence, row.length, row.truncated) for text, row in texts.items()]
        with self._connection() as connection, connection:
            connection.executemany("INSERT OR REPLACE INTO texts VALUES (?, ?, ?, ?)", rows)

    def add_vectors(self, vectors: dict[bytes, NDArray[np.float32]]) -> None:
        """Remember the vectors of some token sequences, all of them or, if the process dies, none."""
        rows = ((key, vector.astype("<f4").tobytes()) for key, vector in vectors.items())
        with self._connection() as connection, connection:
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._open()) as connection:
                yield connection
        except (sqlite3.OperationalError, OSError) as error:
            raise UserError(
                f"cannot use the embedding cache {self.path}: {error}: "
                "free space, set STSBENCH_CACHE to another folder, or use --no-cache."
            ) from error
        except sqlite3.DatabaseError as error:
            # It holds nothing that cannot be made again.
            _remove(self.path)
            raise UserError(
                f"the embedding cache {self.path} was damaged ({error}) and has been removed: "
                "run the command again."
            ) from error

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=_WAIT_SECONDS)
        connection.execute("PRAGMA journal_mode=WAL")
        # A cache may lose its last writes in a power cut, but never its consistency.
        connection.execute("PRAGMA synchronous=NORMAL")
        with connection:
            connection.executescript(_SCHEMA)
            if connection.execute("SELECT COUNT(*) FROM about").fetchone() == (0,):
                connection.execute("INSERT INTO about VALUES (?)", (self._description,))
        return connection


def embeddings_dir() -> Path:
    """Return the folder of the embedding cache."""
    return cache_dir() / "embeddings"


def cache_files(folder: Path | None = None) -> list[CacheFile]:
    """Return the files of the cache, the most recently used first."""
    files = []
    for path in (folder or embeddings_dir()).glob("*.sqlite"):
        with suppress(sqlite3.Error, OSError), closing(sqlite3.connect(path)) as connection:
            identity = json.loads(connection.execute("SELECT identity FROM about").fetchone()[0])
            count = connection.execute("SELECT COUNT(*) FROM vectors").fetchone()[0]
            files.append(CacheFile(path, identity, count, _size(path), path.stat().st_mtime))
    return sorted(files, key=lambda file: -file.last_used)


def clear_cache(folder: Path | None = None) -> int:
    """Delete the cache; return how many bytes that freed."""
    return sum(_remove(path) for path in (folder or embeddings_dir()).glob("*.sqlite"))


def touch_and_trim(used: Path, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
    """Note that a cache file was used, and delete the least recently used ones above the size limit.

    The file in use stays, even if it is alone above the limit.
    """
    with suppress(OSError):
        os.utime(used)
    files = sorted(used.parent.glob("*.sqlite"), key=lambda path: path.stat().st_mtime, reverse=True)
    total = 0
    for path in files:
        total += _size(path)
        if total > max_bytes and path != used:
            _remove(path)


def _select(connection: sqlite3.Connection, query: str, keys: Sequence[bytes]) -> Iterator[Any]:
    # SQLite limits the parameters of one statement.
    for start in range(0, len(keys), 500):
        block = keys[start : start + 500]
        yield from connection.execute(f"{query} ({','.join('?' * len(block))})", block)


def _companions(path: Path) -> list[Path]:
    return [path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")]


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in _companions(path) if file.exists())


def _remove(path: Path) -> int:
    size = _size(path)
    with suppress(OSError):  # another process may hold or have removed it
        for file in _companions(path):
            file.unlink(missing_ok=True)
    return size
