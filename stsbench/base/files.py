"""Atomic writing of files and folders, checks before reading and writing, hashes, manifests, the cache folder."""

import glob
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any

from platformdirs import user_cache_dir

from stsbench.base.errors import UserError

DIGEST = "digest"
"""The field of a JSON file with the fingerprint of all its other fields, which detects damage and edits."""

_FILES = "files"

_replacements: list[Path] = []
"""The cache folders of nested `cache_at` blocks; the last is used."""


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yields a temporary path next to `target` that replaces it when the block succeeds.

    After an error, a full disk or a killed process, `target` is either the old file or the complete new one. The
    temporary file has the target's suffix, because some libraries choose a format by it.
    """
    with writing(target):
        require_writable(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f"{_prefix(target)}{secrets.token_hex(8)}{target.suffix}")
        try:
            temporary.touch(exist_ok=False)
            yield temporary
            _sync(temporary)
            temporary.replace(target)
            with suppress(OSError):  # not every system can open a folder
                _sync(target.parent)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """Yields an empty folder that replaces `target` when the block succeeds.

    An error or an interrupt leaves the old folder in place. If the process is killed between the two renames, a
    hidden folder keeps both, and the next writer of `target` restores the old one.
    """
    from filelock import FileLock, Timeout  # 0.1 s, and nearly every module imports this one

    with writing(target):
        require_writable(target, as_folder=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        for lock in target.parent.glob(f".{glob.escape(target.name)}.stsbench-*.lock"):
            # The lock of a killed writer is free.
            with suppress(Timeout), FileLock(lock, timeout=0):
                _close(lock.with_suffix(""), target)
        workshop = target.with_name(f".{target.name}.stsbench-{secrets.token_hex(8)}")
        with FileLock(f"{workshop}.lock"):
            try:
                new = workshop / "new"
                new.mkdir(parents=True)
                yield new
                # In parallel, because a file system combines writes that wait together.
                with ThreadPoolExecutor() as pool:
                    list(pool.map(_sync, files_below(new)))
                with suppress(FileNotFoundError):
                    target.rename(workshop / "old")
                try:
                    new.rename(target)
                except OSError:
                    # Another writer finished in the same moment; its folder is complete, too.
                    if not target.exists():
                        raise
                with suppress(OSError):
                    _sync(target.parent)
            finally:
                _close(workshop, target)


def _close(workshop: Path, target: Path) -> None:
    """Restores the old folder if no new one replaced it, and deletes the workshop."""
    if (workshop / "old").exists() and (workshop / "new").exists() and not target.exists():
        (workshop / "old").rename(target)
    shutil.rmtree(workshop, ignore_errors=True)
    Path(f"{workshop}.lock").unlink(missing_ok=True)


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Turns an OSError while writing `target` into a UserError."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot write {target} ({error.strerror or error}): free some space there, allow writing, or "
            "choose another folder."
        ) from error


def require_writable(path: Path, option: str = "", *, as_folder: bool = False) -> None:
    """Checks that a file or folder can be written or replaced, before minutes of work rather than after.

    Args:
        path: the file or folder, which may not exist yet.
        option: the command-line option that named it, for the message.
        as_folder: whether it is a folder.

    Raises:
        UserError: if something else is there, or writing is not permitted.
    """
    remedy = f"choose another {'folder' if as_folder else 'file'}{f' with {option}' if option else ''}"
    with writing(path):
        # Renaming a file over a device such as /dev/null would replace the device.
        if path.exists() and not (path.is_dir() if as_folder else path.is_file()):
            raise UserError(f"cannot write {path}: it is {_kind(path)}; {remedy}.")
        folder = path if path.is_dir() else next(above for above in path.absolute().parents if above.exists())
        if not folder.is_dir():
            raise UserError(f"cannot write {path}: {folder} is not a folder; {remedy}.")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise UserError(f"cannot write {path}: no permission; {remedy}.")


def require_file(path: Path, *, absent: str = "check the path") -> None:
    """Raises a UserError unless a path is a regular file: reading a pipe may never end. `absent` is the remedy."""
    try:
        if not path.exists():
            raise UserError(f"there is no file {path}: {absent}.")
        if not path.is_file():
            raise UserError(f"{path} is {_kind(path)}, not a file: {absent}, or save its content in a file.")
        path.name.encode()  # records store the name as UTF-8
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", error)
        raise UserError(f"cannot read {path} ({reason}): check its path, name and permissions.") from error


def _kind(path: Path) -> str:
    return "a folder" if path.is_dir() else "a file" if path.is_file() else "a pipe or device"


def files_in(folder: Path, *patterns: str) -> list[Path]:
    """Returns the files of a folder whose names match a pattern, sorted; none if there is no such folder."""
    paths = files_below(folder, most=1) if folder.is_dir() else []
    return [path for path in paths if any(fnmatchcase(path.name, name) for name in patterns)]


def files_below(folder: Path, *, most: int | None = None) -> list[Path]:
    """Returns the files in at most `most` levels of a folder, by default all, sorted, hidden ones included.

    Raises a UserError if a folder cannot be listed (`Path.glob` would ignore it).
    """

    def refuse(error: OSError) -> None:
        if isinstance(error, FileNotFoundError):  # deleted meanwhile
            return
        raise UserError(
            f"cannot list {error.filename} ({error.strerror or error}): check its permissions."
        ) from error

    walked = islice(os.walk(folder, onerror=refuse), most)
    return sorted(path for place, _, names in walked for name in names if (path := Path(place, name)).is_file())


def remove_leftovers(target: Path) -> None:
    """Deletes temporary files left by killed writers of `target`; call it while holding the target's lock."""
    for path in list(target.parent.iterdir()) if target.parent.is_dir() else []:
        if path.name.startswith(_prefix(target)) and path.suffix == target.suffix:
            path.unlink(missing_ok=True)


def _prefix(target: Path) -> str:
    return f".{target.stem}.stsbench-"


def sha256_of(path: Path) -> str:
    """Returns the SHA-256 of a file's bytes as 64 hexadecimal digits."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise UserError(
            f"cannot read {path} ({error.strerror or error}): check that it exists, and its permissions."
        ) from error


def _sync(path: Path) -> None:
    """Waits until the content of a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cache_dir(*, own: bool = False) -> Path:
    """Returns the cache folder: that of `cache_at`, unless `own`; `STSBENCH_CACHE`; or `~/.cache/stsbench`."""
    chosen = os.environ.get("STSBENCH_CACHE") or user_cache_dir("stsbench")
    return _replacements[-1] if _replacements and not own else Path(chosen).expanduser()


@contextmanager
def cache_at(path: Path) -> Iterator[None]:
    """Uses another cache folder in this process; downloaded data stays where it is."""
    _replacements.append(path)
    try:
        yield
    finally:
        _replacements.pop()


def fingerprint(*parts: Any) -> str:
    """Returns the SHA-256 of plain values as 64 hexadecimal digits.

    The values are hashed as JSON, so the order of keys does not matter; NaN and infinity are a ValueError.

    >>> fingerprint({"b": 1, "a": 0.5}) == fingerprint({"a": 0.5, "b": 1})
    True
    """
    texts = (json.dumps(part, sort_keys=True, separators=(",", ":"), allow_nan=False) for part in parts)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


@dataclass(frozen=True)
class Manifest:
    """The description of a folder.

    Attributes:
        content: its fields, as JSON has them.
        files: the SHA-256 of each file that belongs to it, by the file's path in the folder.
    """

    content: Mapping[str, Any]
    files: Mapping[str, str]

    @classmethod
    def of(cls, folder: Path, content: Mapping[str, Any], names: Iterable[str]) -> "Manifest":
        """Returns the manifest of some files of a folder."""
        return cls(content, {name: sha256_of(folder / name) for name in sorted(names)})

    def write(self, folder: Path, name: str) -> None:
        """Writes the manifest into its folder."""
        fields = {**self.content, _FILES: dict(self.files)}
        text = json.dumps({**fields, DIGEST: fingerprint(fields)}, indent=1)
        (folder / name).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path, name: str, remedy: str) -> "Manifest":
        """Reads a manifest and checks the files that it names.

        Args:
            folder: the folder.
            name: of the manifest's file.
            remedy: what to do if it is damaged, for the message.

        Raises:
            UserError: if the manifest was edited or is not one, or a file is missing or differs.
        """
        path = folder / name
        try:
            fields = json.loads(path.read_bytes())
            digest = fields.pop(DIGEST)
            files: dict[str, str] = fields[_FILES]
            if digest != fingerprint(fields):
                raise UserError(f"{path} was edited after it was written: {remedy}.")
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise UserError(f"{path} is damaged ({type(error).__name__}: {error}): {remedy}.") from error
        for file, sha256 in fields.pop(_FILES).items():
            if not (folder / file).is_file():
                raise UserError(f"{folder} lacks {file}, which its {name} names: {remedy}.")
            if sha256_of(folder / file) != sha256:
                raise UserError(f"{folder / file} is not the file that its {name} was written with: {remedy}.")
        return cls(fields, files)
