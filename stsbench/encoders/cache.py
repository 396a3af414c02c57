"""The embedding cache: one file for each way of making vectors, so that nothing is encoded twice.

A file is named by the hash of everything a vector depends on besides the text (`Identity`): a changed weight
file is another cache file. Inside, texts point to token sequences and token sequences to vectors, so that a
second run needs neither tokeniser nor weights. It is made of blocks, each with a digest (`blocks`): a block that
does not agree with it is dropped and told, and what is needed of it is encoded again.

The cache keeps to `STSBENCH_CACHE_SIZE` (bytes, or "5GB", "500 MB"; 10 GiB by default): above it, the files
that were not used for longest are deleted; what the board keeps counts, too.
Processes take turns by one lock; a run that does not get it in a minute goes on without the cache and says so.

It is ours and not a general cache's (joblib's, diskcache's): those key whole calls or single objects, where here
thousands of sentences are asked for at once, and two keys lead to a vector.
"""

import hashlib
import json
import logging
import os
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import cache_dir
from stsbench.base.parsing import parse_json
from stsbench.encoders.blocks import KEY_BYTES, BlockFile, Contents, blocks_in, content_of, opened, salt_of
from stsbench.encoders.protocol import FloatMatrix, Identity

DEFAULT_MAX_BYTES = 10 * 1024**3

# Raised when the layout, or the meaning of a vector, changes.
_FORMAT = 6
_ABOUT, _TEXTS, _VECTORS = b"about", b"texts", b"vectors"
"""The kinds of blocks: the identity, in the first block alone; what is known of texts; vectors."""
_TEXT_ROW = struct.Struct(f"<{KEY_BYTES}sq?")
_OURS = "*.vectors"

_SHOWN = {"name", "use", "pooling", "precision", "device", "weights_sha256"}
"""What of an identity is shown of a cache file; one that lacks any of it is damaged."""
_WAIT_SECONDS = 60.0
_WAIT_AGAIN_SECONDS = 1.0
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}

_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)

# Folders whose lock this process waited for in vain: it asks again, but does not wait so long a second time.
_busy: set[Path] = set()

# Folders that this process could not write to: one warning is enough.
_unwritable: set[Path] = set()


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

    @property
    def use(self) -> dict[str, object]:
        """How its model was used: prompt, longest text, ..."""
        use = self.identity["use"]
        return use if isinstance(use, dict) else {}


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
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).digest()[:KEY_BYTES]


class EmbeddingCache:
    """The vectors of one identity, which has a weight hash, with one pooling in place of the identity's own.

    If your cache cannot be written, it warns once and keeps nothing. A `folder` is where the caller will look for
    the vectors: there, the same is an error.
    """

    def __init__(self, identity: Identity, pooling: str, folder: Path | None = None) -> None:
        chosen = {"pooling": pooling, "format": _FORMAT}
        key, use = identity.key() | chosen, identity.use
        description = identity.as_dict() | {"precision": use.computed_in, "device": use.device} | chosen
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        self.path = (folder or embeddings_dir()) / f"{digest[:32]}.vectors"
        self._description = json.dumps(description, sort_keys=True).encode()
        self._dropped = 0
        self._is_required = folder is not None

    def texts(self, texts: Sequence[str]) -> dict[str, CachedText]:
        """Return what is known of those of the texts that are known; damaged blocks are dropped."""
        by_key = {text_key(text): text for text in texts}
        found = self._ask(lambda file: file.find(_TEXTS, by_key, _holds_texts)) or []
        return {
            by_key[key]: CachedText._make(row)
            for keys, contents in found
            for key, row in zip(keys, _TEXT_ROW.iter_unpack(contents.tobytes()), strict=True)
        }

    def vectors(self, sequences: Sequence[bytes]) -> KnownVectors:
        """Return the vectors of those of the token sequences that have one; damaged blocks are dropped.

        A block is whole if its digests agree, its numbers are finite, and they are as many as in the others.
        """
        known, widths = KnownVectors(), set[int]()

        def is_sound(contents: Contents) -> bool:
            width = contents.shape[1]
            widths.update(() if widths else (width,))
            return width in widths and width % 4 == 0 and bool(np.isfinite(contents.view("<f4")).all())

        wanted = frozenset(sequences)
        for keys, contents in self._ask(lambda file: file.find(_VECTORS, wanted, is_sound)) or []:
            known.add(keys, contents.view("<f4"))
        return known

    def add_texts(self, texts: Mapping[str, CachedText]) -> None:
        """Remember what was found out of some texts."""
        rows = b"".join([_TEXT_ROW.pack(*row) for row in texts.values()])
        self._add(_TEXTS, list(map(text_key, texts)), np.ndarray((len(texts), _TEXT_ROW.size), np.uint8, rows))

    def add_vectors(self, vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        """Remember the vectors of some token sequences; if the process dies, some whole blocks of them."""
        if vectors:
            self._add(_VECTORS, list(vectors), np.stack(list(vectors.values())).astype("<f4").view(np.uint8))

    def tell_dropped(self) -> None:
        """Say how many entries were in damaged blocks since it was last said, if any were."""
        if self._dropped:
            _log.warning(
                "%d entries of the embedding cache %s stood in damaged blocks and were dropped: what is needed of "
                "them is encoded again.",
                self._dropped,
                self.path,
            )
        self._dropped = 0

    def _add(self, kind: bytes, keys: Sequence[bytes], contents: Contents) -> None:
        def write(file: BlockFile) -> None:
            if file.is_empty:
                about = np.frombuffer(self._description, np.uint8)[None]
                file.add(_ABOUT, [bytes(KEY_BYTES)], about)
            file.add(kind, keys, contents)

        if not keys:
            return
        try:
            self._ask(write)
        except UserError as error:
            if self._is_required:
                raise
            _warn_once(self.path.parent, error)

    def _ask(self, question: Callable[[BlockFile], _Result]) -> _Result | None:
        """Ask the file one question; None if another process holds the cache for too long."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with _alone(self.path.parent):
                file = BlockFile(self.path)
                if file.cut_at is not None:
                    _log.warning(
                        "the embedding cache %s was damaged, or a run was killed while it wrote it: what stood "
                        "from byte %d on was dropped, and what is needed of that is encoded again.",
                        self.path,
                        file.cut_at,
                    )
                answer = question(file)
                self._dropped += file.dropped
                return answer
        except Timeout:
            return None
        except OSError as error:
            raise UserError(
                f"cannot use the embedding cache {self.path} ({error.strerror or error}): "
                "free some space, set STSBENCH_CACHE to another folder, or use --no-cache."
            ) from error


def _holds_texts(contents: Contents) -> bool:
    return bool(contents.shape[1] == _TEXT_ROW.size)


def embeddings_dir() -> Path:
    """Return the folder of the embedding cache."""
    return cache_dir() / "embeddings"


def compiled_dir() -> Path:
    """Return the folder of the networks that were compiled for other back ends, and of what `--fast` chose."""
    return cache_dir() / "compiled"


def kept_by_board() -> Path:
    """Return the file in which the board keeps what it computed of records."""
    return cache_dir() / "board" / "kept.sqlite"


def cache_files(folder: Path | None = None) -> list[CacheFile]:
    """Return the files of the cache, the most recently used first."""
    files = []
    for path in (folder or embeddings_dir()).glob(_OURS):
        # A file that is damaged or has just been begun has nothing to show.
        with suppress(OSError, ValueError, AttributeError), opened(path) as stream:
            first, *others = blocks_in(stream, salt_of(path))
            identity = parse_json(content_of(stream, first) or b"")
            if not identity.keys() >= _SHOWN:
                continue
            count = sum(block.rows for block in others if block.kind == _VECTORS)
            state = path.stat()
            files.append(CacheFile(path, identity, count, state.st_size, state.st_mtime))
    return sorted(files, key=lambda file: -file.last_used)


def clear_cache(folder: Path | None = None) -> int:
    """Delete the cache; return how many bytes that freed."""
    folder = folder or embeddings_dir()
    if not folder.is_dir():
        return 0
    try:
        with _alone(folder):
            return sum(map(remove, list(folder.glob(_OURS))))
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
    # No disk is larger than the largest number that the system counts in.
    return int(min(float(size[1]) * _UNITS[size[2].upper()], 2.0**62))


def touch_and_trim(used: Path, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
    """Note that a cache file was used, and delete the least recently used ones above the size limit.

    The file in use stays, even if it is alone above the limit. In the person's cache what the board keeps is a
    file like the others.
    """
    folder = used.parent
    try:
        with _alone(folder):
            with suppress(FileNotFoundError):
                os.utime(used)
            files = list(folder.glob(_OURS))
            if folder == embeddings_dir() and kept_by_board().is_file():
                files.append(kept_by_board())
            total = 0
            for path in sorted(files, key=lambda path: path.stat().st_mtime, reverse=True):
                total += path.stat().st_size
                if total > max_bytes and path != used:
                    remove(path)
    except (Timeout, FileNotFoundError):  # busy, or deleted meanwhile: the next run trims
        return
    except OSError as error:
        _warn_once(folder, UserError(f"cannot trim the embedding cache {folder} ({error}): use --no-cache."))


def _warn_once(folder: Path, error: UserError) -> None:
    if folder not in _unwritable:
        _unwritable.add(folder)
        _log.warning("continuing without the cache: %s", error)


def remove(path: Path) -> int:
    """Delete a file that may be gone; return how many bytes that freed."""
    with suppress(FileNotFoundError):
        size = path.stat().st_size
        path.unlink()
        return size
    return 0


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of the cache.

    A file is cut, appended to and deleted by one process at a time.

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
