"""The embedding cache: one SQLite file for each way of making vectors, so that nothing is encoded twice.

A file is named by the hash of everything a vector depends on besides the text (`Identity`): a changed weight
file is another cache file. Inside, texts point to token sequences and token sequences to vectors, so that a
second run needs neither tokeniser nor weights. SQLite keeps a file whole when a process is killed or the plug is
pulled; of what changes a file behind its back (a failing disk, a bad copy) it sees little. So every row carries a
digest over its key, its content and the file it belongs to. A row that does not agree with it is dropped, told and
encoded again; a file that SQLite cannot read is begun again. The digest is a CRC-32: of damaged rows one in four
thousand million passes, and none whose damage is within 32 bits. It guards against accidents, not against a person
who writes rows on purpose.

The cache keeps to `STSBENCH_CACHE_SIZE` (bytes, or "5GB", "500 MB"; 10 GiB by default): above it, the files
that were not used for longest are deleted. Processes take turns by one lock; a run that does not get it in a
minute goes on without the cache and says so.

It is ours and not a general cache's (joblib's, diskcache's): those key whole calls or single objects, where here
thousands of sentences are asked for in one query, and two keys lead to a vector.
"""

import hashlib
import json
import logging
import os
import re
import sqlite3
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import cache_dir
from stsbench.base.parsing import parse_json
from stsbench.encoders.protocol import FloatMatrix, Identity

DEFAULT_MAX_BYTES = 10 * 1024**3

# Raised when the layout below, or the meaning of a vector, changes.
_FORMAT = 5
_SCHEMA = """
CREATE TABLE IF NOT EXISTS about (identity TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS texts (
    text BLOB PRIMARY KEY, sequence BLOB NOT NULL, length INTEGER NOT NULL, truncated INTEGER NOT NULL,
    digest INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS vectors (
    sequence BLOB PRIMARY KEY, vector BLOB NOT NULL, digest INTEGER NOT NULL
);
"""
_TEXTS = "SELECT text, sequence, length, truncated, digest FROM texts"
_VECTORS = "SELECT sequence, vector, digest FROM vectors"
_AT_ONCE = 500
"""Rows that are taken at a time: as many as one statement of SQLite takes parameters."""
_WORTH_A_SCAN = 0.25
"""The share of a table's rows from which on reading them all is quicker than finding each."""
_KEY_BYTES = 16
_TEXT_ROW = struct.Struct(f"<{_KEY_BYTES}s{_KEY_BYTES}sqq")

# What SQLite says when the disk, a permission or another process is in the way. All else is about the content.
_SURROUNDINGS = {
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_AUTH,
}
_SHOWN = {"name", "pooling", "precision", "device", "weights_sha256"}
"""What of an identity is shown of a cache file; one that lacks any of it is damaged."""
_WAIT_SECONDS = 60.0
_WAIT_AGAIN_SECONDS = 1.0
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}

_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)

# Folders whose lock this process waited for in vain: it asks again, but does not wait so long a second time.
_busy: set[Path] = set()


class CachedText(NamedTuple):
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


class KnownVectors(Mapping[bytes, NDArray[np.float32]]):
    """Vectors by the key of their token sequence, in the blocks in which they were read: a matrix each.

    They are many, and are held once: who moves them elsewhere takes block after block.
    """

    def __init__(self) -> None:
        self._blocks: list[tuple[list[bytes], FloatMatrix]] = []
        self._block_of: dict[bytes, int] = {}

    def add(self, keys: list[bytes], matrix: FloatMatrix) -> None:
        """Add the vectors of some keys, shape (len(keys), dimensions)."""
        self._block_of |= dict.fromkeys(keys, len(self._blocks))
        self._blocks.append((keys, matrix))

    def join(self, other: "KnownVectors") -> None:
        """Add those of other keys."""
        for keys, matrix in other._blocks:
            self.add(keys, matrix)

    def take_blocks(self) -> Iterator[tuple[list[bytes], FloatMatrix]]:
        """Yield the keys and the matrix of each block, which is no more here then."""
        self._block_of.clear()
        while self._blocks:
            yield self._blocks.pop()

    def __getitem__(self, key: bytes) -> NDArray[np.float32]:
        keys, matrix = self._blocks[self._block_of[key]]
        vector: NDArray[np.float32] = matrix[keys.index(key)]
        return vector

    def __contains__(self, key: object) -> bool:
        return key in self._block_of

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._block_of)

    def __len__(self) -> int:
        return len(self._block_of)


def text_key(text: str) -> bytes:
    """Return the 16 bytes that stand for a text."""
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).digest()[:_KEY_BYTES]


class EmbeddingCache:
    """The vectors of one identity, which has a weight hash, with one pooling in place of the identity's own."""

    def __init__(self, identity: Identity, pooling: str, folder: Path | None = None) -> None:
        chosen = {"pooling": pooling, "format": _FORMAT}
        key, use = identity.key() | chosen, identity.use
        description = identity.as_dict() | {"precision": use.computed_in, "device": use.device} | chosen
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        self.path = (folder or embeddings_dir()) / f"{digest[:32]}.sqlite"
        self._description = json.dumps(description, sort_keys=True)
        # Of a row of another file, copied or renamed to this one's place, nothing agrees.
        self._salt = crc32(self.path.stem.encode())
        self._dropped = 0

    def texts(self, texts: Sequence[str]) -> dict[str, CachedText]:
        """Return what is known of those of the texts that are known; damaged rows are dropped."""
        by_key = {text_key(text): text for text in texts}

        def read(file: sqlite3.Connection) -> dict[str, CachedText]:
            known: dict[str, CachedText] = {}
            damaged: list[tuple[Any]] = []
            salt = self._salt
            for block in _blocks(file, _TEXTS, "text", list(by_key)):
                whole = {
                    by_key[key]: CachedText(sequence, length, bool(cut))
                    for key, sequence, length, cut, digest in block
                    # Of a damaged index comes a row that nobody asked for.
                    if key in by_key and digest == _text_digest(salt, key, sequence, length, cut)
                }
                known |= whole
                if len(whole) < len(block):
                    damaged += [(key,) for key, *_ in block if by_key.get(key) not in whole]
            file.executemany("DELETE FROM texts WHERE text = ?", damaged)
            self._dropped += len(damaged)
            return known

        return self._ask(read) or {}

    def vectors(self, sequences: Sequence[bytes]) -> "KnownVectors":
        """Return the vectors of those of the token sequences that have one; damaged rows are dropped.

        A row is whole if its digest agrees, its numbers are finite, and it is as wide as the others.
        """

        def read(file: sqlite3.Connection) -> KnownVectors:
            known = KnownVectors()
            damaged: list[bytes] = []
            width, salt = 0, self._salt
            for block in _blocks(file, _VECTORS, "sequence", sequences):
                # The types first, as damage turns a vector into a number or nothing.
                whole = [
                    (key, vector)
                    for key, vector, digest in block
                    if type(vector) is type(key) is bytes and crc32(vector, crc32(key, salt)) == digest
                ]
                width = width or _commonest_width([vector for _, vector in whole])
                keys, matrix = _finite([row for row in whole if width and len(row[1]) == width], width // 4)
                if keys:
                    known.add(keys, matrix)
                if len(keys) < len(block):
                    damaged += [key for key, *_ in block if key not in known]
            file.executemany("DELETE FROM vectors WHERE sequence = ?", [(key,) for key in damaged])
            self._dropped += len(damaged)
            return known

        return self._ask(read) or KnownVectors()

    def add_texts(self, texts: Mapping[str, CachedText]) -> None:
        """Remember what was found out of some texts."""
        rows = [(text_key(text), *row) for text, row in texts.items()]
        with_digests = [(*row, _text_digest(self._salt, *row)) for row in rows]
        self._ask(
            lambda file: file.executemany("INSERT OR REPLACE INTO texts VALUES (?, ?, ?, ?, ?)", with_digests)
        )

    def add_vectors(self, vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        """Remember the vectors of some token sequences, all of them or, if the process dies, none."""
        rows = [(key, vector.astype("<f4").tobytes()) for key, vector in vectors.items()]
        with_digests = [(key, vector, crc32(vector, crc32(key, self._salt))) for key, vector in rows]
        self._ask(lambda file: file.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", with_digests))

    def tell_dropped(self) -> None:
        """Say how many damaged rows were dropped since it was last said, if any were."""
        if self._dropped:
            _log.warning(
                "%d damaged entries of the embedding cache %s were dropped: what they held is encoded again.",
                self._dropped,
                self.path,
            )
        self._dropped = 0

    def _ask(self, question: Callable[[sqlite3.Connection], _Result]) -> _Result | None:
        """Ask the file one question in one transaction; None if another process holds the cache for too long."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with _alone(self.path.parent):
                try:
                    return self._answer(question)
                except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                    # SQLite's message quotes the file, and what it quotes may be no text.
                    if isinstance(error, sqlite3.DatabaseError) and not self._is_damage(error):
                        raise
                    _remove(self.path)
                    _log.warning(
                        "the embedding cache %s was damaged (%s) and is begun again: nothing else is lost.",
                        self.path,
                        error if isinstance(error, sqlite3.DatabaseError) else "its tables have no names",
                    )
                    return self._answer(question)
        except Timeout:
            return None
        except (sqlite3.Error, OSError) as error:
            raise UserError(
                f"cannot use the embedding cache {self.path} ({error}): "
                "free some space, set STSBENCH_CACHE to another folder, or use --no-cache."
            ) from error

    def _is_damage(self, error: sqlite3.DatabaseError) -> bool:
        code = getattr(error, "sqlite_errorcode", None)  # none where the mistake is in our own use of SQLite
        if code is None or not self.path.is_file():
            return False
        primary = code & 0xFF  # the higher bits give details
        if primary == sqlite3.SQLITE_READONLY:  # also the answer to a version in the header that is not known
            return all(os.access(path, os.W_OK) for path in (self.path, self.path.parent))
        return primary not in _SURROUNDINGS

    def _answer(self, question: Callable[[sqlite3.Connection], _Result]) -> _Result:
        with closing(sqlite3.connect(self.path)) as file:
            # A damaged row can say of its content that it is text: that is no reason to fail on its letters.
            file.text_factory = bytes
            # A cache may lose its last writes in a power cut.
            file.execute("PRAGMA synchronous=NORMAL")
            # For a new file: vectors are kilobytes, and on the usual page of 4 KiB much of it would be empty.
            file.execute("PRAGMA page_size=32768")
            with file:
                file.executescript(_SCHEMA)
                if file.execute("SELECT COUNT(*) FROM about").fetchone() == (0,):
                    file.execute("INSERT INTO about VALUES (?)", (self._description,))
                return question(file)


def embeddings_dir() -> Path:
    """Return the folder of the embedding cache."""
    return cache_dir() / "embeddings"


def cache_files(folder: Path | None = None) -> list[CacheFile]:
    """Return the files of the cache, the most recently used first."""
    files = []
    for path in (folder or embeddings_dir()).glob("*.sqlite"):
        # A file that is damaged or has just been begun has nothing to show.
        with (
            suppress(sqlite3.Error, OSError, TypeError, ValueError, AttributeError),
            closing(sqlite3.connect(path)) as file,
        ):
            identity = parse_json(file.execute("SELECT identity FROM about").fetchone()[0])
            if not identity.keys() >= _SHOWN:
                continue
            count = file.execute("SELECT COUNT(*) FROM vectors").fetchone()[0]
            files.append(CacheFile(path, identity, count, _size(path), path.stat().st_mtime))
    return sorted(files, key=lambda file: -file.last_used)


def clear_cache(folder: Path | None = None) -> int:
    """Delete the cache; return how many bytes that freed."""
    folder = folder or embeddings_dir()
    if not folder.is_dir():
        return 0
    try:
        with _alone(folder):
            return sum(_remove(path) for path in folder.glob("*.sqlite"))
    except Timeout as error:
        raise UserError(
            f"another process holds the embedding cache {folder}: clear it when that is done."
        ) from error
    except OSError as error:
        raise UserError(
            f"cannot clear the embedding cache {folder} ({error.strerror or error}): allow writing there."
        ) from error


def max_cache_bytes() -> int:
    """Return how large the cache may grow: `STSBENCH_CACHE_SIZE`, or 10 GiB."""
    wanted = os.environ.get("STSBENCH_CACHE_SIZE", "").strip()
    if not wanted:
        return DEFAULT_MAX_BYTES
    size = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", wanted, re.IGNORECASE)
    if size is None:
        raise UserError(f"STSBENCH_CACHE_SIZE is {wanted!r}, which is no size: give bytes, or 5GB, or 500MB.")
    # No disk is larger than the largest number that SQLite and the system count in.
    return int(min(float(size[1]) * _UNITS[size[2].upper()], 2.0**62))


def touch_and_trim(used: Path, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
    """Note that a cache file was used, and delete the least recently used ones above the size limit.

    The file in use stays, even if it is alone above the limit.
    """
    try:
        with _alone(used.parent):
            with suppress(FileNotFoundError):  # another process cleared the cache meanwhile
                os.utime(used)
            files = sorted(used.parent.glob("*.sqlite"), key=lambda path: path.stat().st_mtime, reverse=True)
            total = 0
            for path in files:
                total += _size(path)
                if total > max_bytes and path != used:
                    _remove(path)
    except Timeout:  # the next run tidies
        return
    except OSError as error:
        raise UserError(f"cannot tidy the embedding cache {used.parent} ({error}): use --no-cache.") from error


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of the cache.

    SQLite's own locks do not stop one process from deleting a file that another has open, which damages it.

    Raises:
        Timeout: if another process holds it for too long; the first time, the person is told.
    """
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=_WAIT_AGAIN_SECONDS if folder in _busy else _WAIT_SECONDS)
    except Timeout:
        if folder not in _busy:
            _busy.add(folder)
            _log.warning(
                "another process has held the embedding cache %s for %g s: going on without it, so known "
                "sentences may be encoded again, and new ones may not be kept.",
                folder,
                _WAIT_SECONDS,
            )
        raise
    _busy.discard(folder)
    try:
        yield
    finally:
        lock.release()


def _text_digest(salt: int, key: Any, sequence: Any, length: Any, truncated: Any) -> int | None:
    """Return the digest of a row of `texts`; None for what can be no such row."""
    try:
        return crc32(_TEXT_ROW.pack(key, sequence, length, truncated), salt)
    except struct.error:
        return None


def _blocks(file: sqlite3.Connection, query: str, key: str, keys: Sequence[bytes]) -> Iterator[list[Any]]:
    """Yield the rows of some keys in blocks; the query gives all rows of a table, the key first."""
    if len(keys) > _AT_ONCE:
        (rows,) = file.execute(f"SELECT COUNT(*) FROM ({query})").fetchone()
        if len(keys) >= _WORTH_A_SCAN * rows:
            wanted, every = frozenset(keys), file.execute(query)
            while block := every.fetchmany(_AT_ONCE):
                if there := [row for row in block if row[0] in wanted]:
                    yield there
            return
    for start in range(0, len(keys), _AT_ONCE):
        asked = keys[start : start + _AT_ONCE]
        yield file.execute(f"{query} WHERE {key} IN ({','.join('?' * len(asked))})", asked).fetchall()


def _commonest_width(vectors: Sequence[bytes]) -> int:
    """Return how many bytes most of the vectors have; 0 without vectors, or where these are no whole numbers."""
    widths = Counter(map(len, vectors)).most_common(1)
    return widths[0][0] if widths and widths[0][0] % 4 == 0 else 0


def _finite(rows: Sequence[tuple[bytes, bytes]], dimensions: int) -> tuple[list[bytes], FloatMatrix]:
    """Return the keys and the numbers of those of some vectors of one width that hold finite ones."""
    keys = [key for key, _ in rows]
    matrix = np.frombuffer(b"".join([vector for _, vector in rows]), dtype="<f4")
    matrix = matrix.reshape(len(rows), dimensions)
    finite = np.isfinite(matrix)
    if finite.all():
        return keys, matrix
    good = np.flatnonzero(finite.all(axis=1))
    return [keys[row] for row in good], matrix[good]


def _companions(path: Path) -> list[Path]:
    return [path, path.with_name(f"{path.name}-journal")]


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in _companions(path) if file.exists())


def _remove(path: Path) -> int:
    size = _size(path)
    for file in _companions(path):
        file.unlink(missing_ok=True)
    return size
