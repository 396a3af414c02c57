"""Hashes of files that are read after they were hashed: what was read is what was hashed, or it is told.

Between the two lie seconds in which libraries are imported, and weights that are mapped into memory are read as
long as they are used. So the state that a file had when it was hashed is kept, and compared with its state once it
was read. Time stamps do not show a change within their granularity: a file that had just been written is hashed
again.
"""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from stsbench.base.errors import UserError
from stsbench.base.files import sha256_of

_SETTLED_SECONDS = 2.0
"""How long ago a file must have changed for its time stamps to show the next change."""


class _State(NamedTuple):
    """What the system says of a file."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @property
    def is_settled(self) -> bool:
        return time.time() - max(self.modified_ns, self.changed_ns) / 1e9 > _SETTLED_SECONDS


class _Hashed(NamedTuple):
    """A file's hash, its state before that, and whether any later change of the file changes its state."""

    digest: str
    state: _State
    is_settled: bool


_hashes: dict[tuple[Path, _State], str] = {}


class HashedFiles:
    """The files of one model, each hashed once, and the same since."""

    def __init__(self) -> None:
        self._known: dict[Path, _Hashed] = {}

    def sha256(self, path: Path) -> str:
        """Return a file's hash."""
        if (known := self._known.get(path)) is not None:
            self._require_same(path, known)
            return known.digest
        hashed = _hash(path)
        if _state_of(path) != hashed.state:
            raise _changed(path)
        self._known[path] = hashed
        return hashed.digest

    def require_unchanged(self, paths: Iterable[Path] = ()) -> None:
        """Make sure that no file changed since it was hashed, and that each of `paths` was hashed at all."""
        for path in paths:
            if path not in self._known:
                raise _changed(path)  # it has come since
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
    """Return a file's hash, computed once in a process: analyses load a model several times."""
    state = _state_of(path)
    if state is None:
        sha256_of(path)  # which says what is wrong
        raise _changed(path)
    is_settled = state.is_settled
    digest = _hashes.get((path, state)) or sha256_of(path)
    if is_settled:
        _hashes[path, state] = digest
    return _Hashed(digest, state, is_settled)


def _state_of(path: Path) -> _State | None:
    """Return a file's state; None if it is not there, or may not be looked at."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return _State(stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)


def _changed(path: Path) -> UserError:
    return UserError(
        f"{path} is not what it was when it was hashed, so vectors would go by the name of other files: load the "
        "model again, once nothing writes there any more."
    )
