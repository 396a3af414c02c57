"""Hashes of a model's files, and the check that the files read are the files hashed.

Files are read seconds after they were hashed, and weights mapped into memory as long as they are used. So a file's
state (inode, size, time stamps) at hashing is compared with its state after reading. Time stamps do not show two
changes within their granularity, so a file that has just been written is hashed again.
"""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from stsbench.base.errors import UserError
from stsbench.base.files import sha256_of

_SETTLED_SECONDS = 2.0
"""A file unchanged for this long gets another time stamp at its next change."""


class _State(NamedTuple):
    """The result of `stat` for a file."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @property
    def is_settled(self) -> bool:
        return time.time() - max(self.modified_ns, self.changed_ns) / 1e9 > _SETTLED_SECONDS


class _Hashed(NamedTuple):
    """A file's hash, its state before hashing, and whether any later change will change its state."""

    digest: str
    state: _State
    is_settled: bool


_hashes: dict[tuple[Path, _State], str] = {}


class HashedFiles:
    """The hashed files of one model, which must not change."""

    def __init__(self) -> None:
        self._known: dict[Path, _Hashed] = {}

    def sha256(self, path: Path) -> str:
        """Returns a file's hash."""
        if (known := self._known.get(path)) is not None:
            self._require_same(path, known)
            return known.digest
        hashed = _hash(path)
        if _state_of(path) != hashed.state:
            raise _changed(path)
        self._known[path] = hashed
        return hashed.digest

    def require_unchanged(self, paths: Iterable[Path] = ()) -> None:
        """Checks that no file has changed since it was hashed, and that all of `paths` were hashed."""
        for path in paths:
            if path not in self._known:
                raise _changed(path)  # it is new
        for path, known in list(self._known.items()):
            self._require_same(path, known)

    def _require_same(self, path: Path, known: _Hashed) -> None:
        state = _state_of(path)
        if state != known.state:
            raise _changed(path)
        if not known.is_settled:
            is_settled = state.is_settled  # before the file is read
            if sha256_of(path) != known.digest:
                raise _changed(path)
            self._known[path] = known._replace(is_settled=is_settled)


def _hash(path: Path) -> _Hashed:
    """Returns a file's hash, computed once per process."""
    state = _state_of(path)
    if state is None:
        sha256_of(path)  # raises the reason
        raise _changed(path)
    is_settled = state.is_settled
    digest = _hashes.get((path, state)) or sha256_of(path)
    if is_settled:
        _hashes[path, state] = digest
    return _Hashed(digest, state, is_settled)


def _state_of(path: Path) -> _State | None:
    """Returns a file's state; None if it is missing or not accessible."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return _State(stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)


def _changed(path: Path) -> UserError:
    return UserError(
        f"{path} changed after it was hashed, so vectors would be attributed to the wrong file: load the "
        "model again when nothing writes there any more."
    )
