"""Files that are whole or absent: atomic writing, and hashing."""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stsbench.foundation.errors import UserError


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield a temporary path beside `target`; on success its content is synced and renamed over it.

    Whatever happens in between (an error, a full disk, a kill), `target` is either what it was or the
    whole new file. The temporary file keeps the target's suffix, because some writers go by it.

    Raises:
        UserError: if the disk is full or the folder cannot be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}-", suffix=target.suffix)
        os.close(handle)
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror or error}.") from error
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror or error}.") from error
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes as 64 hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _umask() -> int:
    # mkstemp makes files private; what a person writes on purpose follows their own umask.
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    # The rename itself lives in the folder. Some systems (Windows) cannot open one: nothing to sync there.
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
