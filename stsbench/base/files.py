"""Atomic writing of files and folders, checks before reading and writing, file hashes, and the cache folder."""

import glob
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NoReturn

from platformdirs import user_cache_dir

from stsbench.base.errors import UserError

_HASHED_AT_ONCE = 2**24
"""Bytes per read; few large reads, as each waits for the interpreter lock."""


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield a temporary path beside `target` that replaces it when the block succeeds.

    After an error, a full disk or a kill, `target` is either the old file or the complete new one. The temporary
    file has the target's suffix, as some libraries choose a format by it.
    """
    with told_as_unwritable(target):
        _require_replaceable(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f"{_prefix(target)}{secrets.token_hex(8)}{target.suffix}")
        try:
            temporary.touch(exist_ok=False)
            yield temporary
            with temporary.open("rb") as stream:
                os.fsync(stream.fileno())
            temporary.replace(target)
            _sync_folder(target.parent)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder that takes the place of `target` when the block succeeds.

    An error or an interrupt leaves the old folder in place. A kill between the two renames of the exchange leaves
    both folders complete in a hidden one, and the next writer of `target` puts the old one back.
    """
    from filelock import FileLock  # it takes 0.1 s, and nearly every module imports this one

    with told_as_unwritable(target):
        require_new_folder(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        _clean_up(target)
        workshop = target.with_name(f"{_folder_prefix(target)}{secrets.token_hex(8)}")
        # The lock shows other writers that this workshop is in use.
        with FileLock(_lock_of(workshop)):
            try:
                new = workshop / "new"
                new.mkdir(parents=True)
                yield new
                for path in files_below(new):
                    with path.open("rb") as stream:
                        os.fsync(stream.fileno())
                _exchange(target, workshop)
            finally:
                _close(workshop, target)


def _exchange(target: Path, workshop: Path) -> None:
    with suppress(FileNotFoundError):
        target.rename(workshop / "old")
    try:
        (workshop / "new").rename(target)
    except OSError:
        # Of two writers in the same moment one is the last; either folder is complete.
        if not target.exists():
            raise
    _sync_folder(target.parent)


def _close(workshop: Path, target: Path) -> None:
    """Put the old folder back where no new one took its place, and delete the workshop."""
    if (workshop / "old").exists() and (workshop / "new").exists() and not target.exists():
        (workshop / "old").rename(target)
    shutil.rmtree(workshop, ignore_errors=True)
    _lock_of(workshop).unlink(missing_ok=True)


def _clean_up(target: Path) -> None:
    """Close the workshops of killed writers."""
    from filelock import FileLock, Timeout

    for lock in target.parent.glob(f"{glob.escape(_folder_prefix(target))}*.lock"):
        with suppress(Timeout), FileLock(lock, timeout=0):
            _close(lock.with_suffix(""), target)


def _folder_prefix(target: Path) -> str:
    return f".{target.name}.stsbench-"


def _lock_of(workshop: Path) -> Path:
    return workshop.with_name(f"{workshop.name}.lock")


@contextmanager
def told_as_unwritable(target: Path) -> Iterator[None]:
    """Turn an OSError while writing `target` into a UserError."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot write {target} ({error.strerror or error}): free some space there, allow writing, or "
            "choose another folder."
        ) from error


def require_new_file(path: Path, option: str = "") -> None:
    """Check that a file can be written or replaced, before minutes of work rather than after.

    Args:
        path: the file.
        option: the command-line option that named it, for the message.
    """
    _require_replaceable(path, option)
    _require_writable(path.parent, path, option)


def require_new_folder(path: Path, option: str = "") -> None:
    """Check that files can be written into a folder, which may not exist yet; see `require_new_file`."""
    _exists(path)
    _require_writable(path, path, option)


def _require_replaceable(path: Path, option: str = "") -> None:
    # Renaming a file over a device such as /dev/null would replace the device.
    if _exists(path) and not path.is_file():
        kind = _kind(path.stat().st_mode)
        what = "name a file in it" if path.is_dir() else "name a file"
        raise UserError(f"cannot write {path}: it is {kind}; {what}{_with(option)}.")


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def _require_writable(folder: Path, target: Path, option: str) -> None:
    there = next(path for path in (folder, *folder.absolute().parents) if _exists(path))
    into = f"cannot write into {target}" if folder == target else f"cannot write {target}"
    if not there.is_dir():
        raise UserError(f"{into}: {there} is not a folder; choose another{_with(option)}.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UserError(f"{into}: no permission; choose another folder{_with(option)}.")


def _exists(path: Path) -> bool:
    """Return whether a path exists."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise UserError(f"cannot write {path} ({error.strerror or error}): choose another place.") from error
    return True


def _with(option: str) -> str:
    return f" with {option}" if option else ""


def require_file(path: Path, *, absent: str = "check the path") -> None:
    """Check that a path is a regular file, as reading a pipe or a device may never end.

    Args:
        path: the file.
        absent: what to do if it does not exist, for the message.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise UserError(f"there is no file {path}: {absent}.") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the name
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"cannot read {path} ({reason}): check the path and its permissions.") from error
    if stat.S_ISREG(mode):
        return
    raise UserError(f"{path} is {_kind(mode)}, not a file: {absent}, or save what it gives in a file.")


def files_in(folder: Path, *patterns: str) -> list[Path]:
    """Return the files of a folder whose names match a pattern, sorted; none if there is no such folder.

    Unlike `Path.glob`, it raises for a folder that cannot be listed.
    """
    try:
        paths = sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        _refuse_unlisted(error)
    return [
        path for path in paths if any(fnmatchcase(path.name, pattern) for pattern in patterns) and path.is_file()
    ]


def files_below(folder: Path) -> list[Path]:
    """Return the files of a folder and its subfolders, sorted, hidden ones included."""
    walked = os.walk(folder, onerror=_refuse_unlisted)
    paths = (Path(place) / name for place, _, names in walked for name in names)
    return sorted(path for path in paths if path.is_file())


def _refuse_unlisted(error: OSError) -> NoReturn:
    raise UserError(f"cannot list {error.filename} ({error.strerror or error}): check its permissions.") from error


def remove_leftovers(target: Path) -> None:
    """Delete temporary files left by killed writers of `target`; call it while holding the target's lock."""
    for path in list(target.parent.iterdir()) if target.parent.is_dir() else []:
        if is_leftover(path, target):
            path.unlink(missing_ok=True)


def is_leftover(path: Path, target: Path) -> bool:
    """Return whether a file is a temporary file of a writer of `target`."""
    return path.name.startswith(_prefix(target)) and path.suffix == target.suffix


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes as 64 hexadecimal digits."""
    try:
        digest = hashlib.sha256()
        with path.open("rb", buffering=0) as stream:
            while block := stream.read(_HASHED_AT_ONCE):
                digest.update(block)
        return digest.hexdigest()
    except OSError as error:
        raise UserError(
            f"cannot read {path} ({error.strerror or error}): check that it is there, and its permissions."
        ) from error


def _prefix(target: Path) -> str:
    return f".{target.stem}.stsbench-"


def _sync_folder(folder: Path) -> None:
    # A rename is stored in the folder. Windows cannot open folders.
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


_instead_of_cache: list[Path] = []


def cache_dir() -> Path:
    """Return the cache folder: the one of `cache_at`, or the user's."""
    return _instead_of_cache[-1] if _instead_of_cache else own_cache_dir()


def own_cache_dir() -> Path:
    """Return the user's cache folder: `STSBENCH_CACHE` if set, else the platform's (`~/.cache/stsbench`)."""
    chosen = os.environ.get("STSBENCH_CACHE")
    return Path(chosen).expanduser() if chosen else Path(user_cache_dir("stsbench"))


@contextmanager
def cache_at(path: Path) -> Iterator[None]:
    """Use another cache folder in this process; downloaded data stays where it is."""
    _instead_of_cache.append(path)
    try:
        yield
    finally:
        _instead_of_cache.pop()
