"""Downloading one file over HTTP, and going on where an earlier attempt stopped.

While a file is on its way it lies beside its target as `<name>.part`, with the server's word for its version
(ETag or Last-Modified) in `<name>.part.version`. The next attempt asks for the rest only of that very version
(`If-Range`), so that two versions are never spliced.
"""

from __future__ import annotations

import lzma
import tarfile
import time
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from stsbench.base.files import sha256_of
from stsbench.base.progress import Progress, silent

if TYPE_CHECKING:
    import requests

CONNECT_SECONDS = 10.0
SILENT_SECONDS = 60.0
"""How long a server may take to answer, and to send nothing in the middle of a file."""

CHUNK_BYTES = 1 << 16


class DownloadError(Exception):
    """Why a file could not be had, without what to do about it: that depends on who wanted the file."""


class _CutShortError(Exception):
    """The server sent less than it announced, or something else than it was asked for."""


def download(url: str, target: Path, sha256: str | None, progress: Progress = silent) -> str:
    """Download `url` to `target`, which appears whole or not at all; if it is there already, keep it.

    Args:
        url: the address; redirects are followed.
        target: where the file goes.
        sha256: the hash that it must have (a target with another is replaced), None if nobody knows it.
        progress: told bytes done and bytes in all (0 where the server does not say).

    Returns:
        The file's SHA-256, 64 hexadecimal digits.

    Raises:
        DownloadError: if it cannot be had (no connection, no such file, cut short too often) or its hash
            differs. What has come so far is kept, so that the next attempt goes on from there; a file with
            the wrong hash is not.
    """
    import logging

    import pooch
    import requests

    # pooch tells hashes to standard error; who called us says what there is to say.
    pooch.get_logger().setLevel(logging.WARNING)
    try:
        pooch.retrieve(
            url,
            known_hash=sha256 and f"sha256:{sha256}",
            fname=target.name,
            path=target.parent,
            downloader=ResumingDownloader(target, progress),
        )
    except (requests.RequestException, _CutShortError) as error:
        raise DownloadError(f"cannot download {url}: {_reason(error)}") from error
    except ValueError as error:
        # Raised by pooch alone, for a hash that is not the expected one; it has removed the file.
        raise DownloadError(
            f"cannot download {url}: what came is not the catalogued file (SHA-256 {sha256} expected)"
        ) from error
    except OSError as error:
        raise DownloadError(f"cannot write {target}: {error.strerror or error}") from error
    return sha256_of(target)


@dataclass(frozen=True)
class ResumingDownloader:
    """A downloader for pooch that resumes, and tries again where that may help.

    Attributes:
        target: the file in the making; the partial file lies beside it.
        progress: told bytes done and bytes in all.
        attempts: how often to try.
        pause: seconds before the second attempt; each further one waits twice as long.
    """

    target: Path
    progress: Progress = silent
    attempts: int = 4
    pause: float = 0.5

    def __call__(self, url: str, output_file: str, _pooch: object) -> None:
        """Download `url` to `output_file`."""
        import requests

        for attempt in range(1, self.attempts + 1):
            try:
                self._fetch_rest(url)
                break
            except (requests.RequestException, _CutShortError) as error:
                if attempt == self.attempts or not _may_pass(error):
                    raise
            time.sleep(self.pause * 2 ** (attempt - 1))
        self._part.replace(output_file)
        self._version.unlink(missing_ok=True)

    @property
    def _part(self) -> Path:
        return self.target.with_name(f"{self.target.name}.part")

    @property
    def _version(self) -> Path:
        return self.target.with_name(f"{self.target.name}.part.version")

    def _fetch_rest(self, url: str) -> None:
        import requests

        have, headers = self._resume_point()
        with requests.get(
            url, headers=headers, stream=True, timeout=(CONNECT_SECONDS, SILENT_SECONDS)
        ) as response:
            if response.status_code == requests.codes.requested_range_not_satisfiable:
                if response.headers.get("Content-Range") == f"bytes */{have}":
                    return  # An earlier attempt had it all, and was ended before it could say so.
                self._start_over()
                raise _CutShortError("the partial file was longer than the server's")
            response.raise_for_status()
            resumed = response.status_code == requests.codes.partial_content
            if resumed and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
                self._start_over()
                raise _CutShortError("the server sent another part than it was asked for")
            if not resumed:
                have = 0
                self._start_over()
                self._remember_version(response)
            self._receive(response, have)

    def _resume_point(self) -> tuple[int, dict[str, str]]:
        # A compressed answer would make byte counts meaningless.
        headers = {"Accept-Encoding": "identity"}
        if not (self._part.is_file() and self._version.is_file()):
            return 0, headers
        have = self._part.stat().st_size
        if have:
            headers |= {"Range": f"bytes={have}-", "If-Range": self._version.read_text(encoding="ascii")}
        return have, headers

    def _start_over(self) -> None:
        # First the bytes, then their version: a kill in between must not give old bytes a new version.
        self._part.unlink(missing_ok=True)
        self._version.unlink(missing_ok=True)

    def _remember_version(self, response: requests.Response) -> None:
        etag = response.headers.get("ETag", "")
        # RFC 9110: a weak ETag does not promise the same bytes, so it may not stand in If-Range.
        version = etag if etag.startswith('"') else response.headers.get("Last-Modified", "")
        if version:
            self._version.write_text(version, encoding="ascii")

    def _receive(self, response: requests.Response, have: int) -> None:
        length = int(response.headers.get("Content-Length", 0))
        total = have + length if length else 0
        stage = f"downloading {self.target.name}"
        self.progress(stage, have, total)
        with self._part.open("ab") as stream:
            for chunk in response.iter_content(CHUNK_BYTES):
                stream.write(chunk)
                have += len(chunk)
                self.progress(stage, have, total)
        if total and have != total:
            raise _CutShortError(f"the connection was cut after {have} of {total} bytes")


def _may_pass(error: Exception) -> bool:
    """Say whether trying again may help: not where the server has given a definite no."""
    if isinstance(error, ValueError):  # So requests calls an address that is none.
        return False
    status = getattr(getattr(error, "response", None), "status_code", None)
    return status is None or status >= 500 or status in {408, 429}


def _reason(error: Exception) -> str:
    import requests

    if isinstance(error, requests.HTTPError):
        return f"the server answered {error.response.status_code} ({error.response.reason})"
    if isinstance(error, requests.Timeout):
        return "the server did not answer in time"
    if isinstance(error, requests.exceptions.ChunkedEncodingError | _CutShortError):
        return "the connection was cut again and again (what has come is kept for the next attempt)"
    if isinstance(error, requests.ConnectionError):
        return "the connection to the server failed (are you offline?)"
    return str(error)


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
