"""Hashes of a model's files, and the check that the files read are the files hashed.

Files are read seconds after they were hashed, and weights mapped into memory as long as they are used. So a file's
state (inode, size, time stamps) at hashing is compared with its state after reading.
"""

import time
from collections.abc import Iterable
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.base.files import sha256_of

_SETTLED_SECONDS = 2.0
"""A file unchanged for this long gets another time stamp at its next change."""

_State = tuple[int, int, int, int, int]
"""Device, inode, size, time of modification and of change of a file."""

_hashes: dict[tuple[Path, _State], str] = {}


class HashedFiles:
    """The hashed files of one model, which must not change."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[str, _State]] = {}

    def sha256(self, path: Path) -> str:
        """Returns a file's hash; each file is read once per process."""
        if path in self._known:
            self.require_unchanged([path])
        else:
            state = _state_of(path)
            digest = _hashes.get((path, state)) or sha256_of(path)
            self._known[path] = digest, state
            self.require_unchanged([path])
            if time.time() - max(state[3:]) / 1e9 > _SETTLED_SECONDS:
                _hashes[path, state] = digest
        return self._known[path][0]

    def require_unchanged(self, paths: Iterable[Path] | None = None) -> None:
        """Checks that files were hashed and have not changed since then; by default all hashed files."""
        for path in self._known if paths is None else paths:
            if path not in self._known or _state_of(path) != self._known[path][1]:
                raise UserError(
                    f"{path} changed after it was hashed, so vectors would be attributed to the wrong file. Load "
                    "the model again when nothing writes there any more."
                )


def _state_of(path: Path) -> _State:
    try:
        stat = path.stat()
    except OSError:  # missing or not accessible: hashing it raises the reason
        return 0, 0, 0, 0, 0
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns
