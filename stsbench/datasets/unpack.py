"""Unpacking an archive that others wrote: everything stays inside the folder, or nothing is unpacked."""

import lzma
import tarfile
import zlib
from pathlib import Path, PurePosixPath, PureWindowsPath

from stsbench.foundation.progress import Progress, silent


class UnpackError(Exception):
    """Why an archive was not unpacked."""


def unpack(archive: Path, folder: Path, progress: Progress = silent) -> None:
    """Unpack a tar archive (compressed or not) into `folder`.

    The whole listing is checked before the first file is written, and each member once more by
    `tarfile`'s own `data` filter.

    Args:
        archive: the tar file.
        folder: an existing, empty folder.
        progress: told members done and members in all.

    Raises:
        UnpackError: if the archive is damaged, or a member is a device or would lie outside the folder.
    """
    stage = f"unpacking {archive.name}"
    try:
        with tarfile.open(archive) as tar:
            members = tar.getmembers()
            for member in members:
                _demand_harmless(member, archive)
            for done, member in enumerate(members):
                progress(stage, done, len(members))
                tar.extract(member, folder, filter="data")
            progress(stage, len(members), len(members))
    except tarfile.FilterError as error:
        raise UnpackError(f"{archive.name} was not unpacked, because it is unsafe: {error}") from error
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise UnpackError(f"{archive.name} is damaged or no tar archive") from error
    except OSError as error:
        raise UnpackError(f"{archive.name} cannot be unpacked: {error.strerror or error}") from error


def _demand_harmless(member: tarfile.TarInfo, archive: Path) -> None:
    unsafe = None
    if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
        unsafe = "is a device"
    elif _escapes(PurePosixPath(member.name)):
        unsafe = "lies outside its folder"
    elif (member.issym() or member.islnk()) and _escapes(_link_target(member)):
        unsafe = "links to a place outside its folder"
    if unsafe:
        raise UnpackError(
            f"{archive.name} was not unpacked, because it is unsafe: its member {member.name!r} {unsafe}"
        )


def _link_target(member: tarfile.TarInfo) -> PurePosixPath:
    # A symbolic link is read from where it lies, a hard link from the archive's root.
    start = PurePosixPath(member.name).parent if member.issym() else PurePosixPath()
    return start / member.linkname


def _escapes(path: PurePosixPath) -> bool:
    # Joining with an absolute link target gives that target, so this sees absolute links too.
    if path.is_absolute() or PureWindowsPath(path).drive:
        return True
    depth = 0
    for step in path.parts:
        depth += -1 if step == ".." else 1
        if depth < 0:
            return True
    return False
