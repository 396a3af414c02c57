"""Downloading one file over HTTP, and going on where an earlier attempt stopped.

Ours, because the libraries for it do not go on in a later call: pooch, and today huggingface_hub (which fetches
models here), start a file anew in each process, and what a slow line has brought is lost.

While a file is on its way it lies beside its target as `<name>.part`, with the server's word for its version
(ETag or Last-Modified) in `<name>.part.version`. The next attempt asks for the rest only of that very version
(`If-Range`), so that two versions are never spliced.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stsbench.base.files import sha256_of
from stsbench.base.progress import Progress, silent

if TYPE_CHECKING:
    import requests

CONNECT_SECONDS = 10.0
SILENT_SECONDS = 60.0
"""How long a server may take to answer, and to send nothing in the middle of a file."""

PAUSES = (0.5, 1.0, 2.0)
"""Seconds to wait before each further attempt within one call."""

CHUNK_BYTES = 1 << 16


class DownloadError(Exception):
    """Why a file could not be had, without advice, which depends on who wanted the file."""


class _CutShortError(Exception):
    """The server sent less than it announced, or something else than it was asked for."""


def download(url: str, target: Path, sha256: str | None, progress: Progress = silent) -> str:
    """Download `url` to `target`, which appears whole or not at all; if it is there already, keep it.

    If it cannot be had (no connection, no such file, cut short too often), what has come so far is kept, so that
    the next attempt goes on from there; a file with the wrong hash is not.

    Args:
        url: the address; redirects are followed.
        target: where the file goes.
        sha256: the hash that it must have (a target with another is replaced), None if nobody knows it.
        progress: told bytes done and bytes in all (0 where the server does not say).

    Returns:
        The file's SHA-256, 64 hexadecimal digits.
    """
    if target.is_file():
        present = sha256_of(target)
        if sha256 in {None, present}:
            return present
    arrival = _Arrival(target, progress)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        arrival.complete(url)
        received = sha256_of(arrival.part)
        if sha256 not in {None, received}:
            arrival.discard()
            raise DownloadError(
                f"cannot download {url}: what came is not the catalogued file (SHA-256 {sha256} expected)"
            )
        arrival.part.replace(target)
        arrival.discard()
    except OSError as error:
        raise DownloadError(f"cannot write {target}: {error.strerror or error}") from error
    return received


@dataclass(frozen=True)
class _Arrival:
    """A file on its way: what has come of it lies beside its target."""

    target: Path
    progress: Progress

    @property
    def part(self) -> Path:
        return self.target.with_name(f"{self.target.name}.part")

    @property
    def _version(self) -> Path:
        return self.target.with_name(f"{self.target.name}.part.version")

    def complete(self, url: str) -> None:
        """Fetch what is missing, and try again where that may help."""
        import requests

        for pause in (*PAUSES, None):
            try:
                self._fetch_rest(url)
            except (requests.RequestException, _CutShortError) as error:
                if pause is None or not _may_pass(error):
                    raise DownloadError(f"cannot download {url}: {_reason(error)}") from error
                time.sleep(pause)
            else:
                return

    def discard(self) -> None:
        """Delete what has come."""
        # First the bytes, then their version: a kill in between must not give old bytes a new version.
        self.part.unlink(missing_ok=True)
        self._version.unlink(missing_ok=True)

    def _fetch_rest(self, url: str) -> None:
        import requests

        have, headers = self._resume_point()
        with requests.get(
            url, headers=headers, stream=True, timeout=(CONNECT_SECONDS, SILENT_SECONDS)
        ) as response:
            if response.status_code == requests.codes.requested_range_not_satisfiable:
                if response.headers.get("Content-Range") == f"bytes */{have}":
                    return  # An earlier attempt had it all, and was ended before it could say so.
                self.discard()
                raise _CutShortError("the partial file was longer than the server's")
            response.raise_for_status()
            resumed = response.status_code == requests.codes.partial_content
            if resumed and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
                self.discard()
                raise _CutShortError("the server sent another part than it was asked for")
            if not resumed:
                have = 0
                self.discard()
                self._remember_version(response)
            self._receive(response, have)

    def _resume_point(self) -> tuple[int, dict[str, str]]:
        # A compressed answer would make byte counts meaningless.
        headers = {"Accept-Encoding": "identity"}
        if not (self.part.is_file() and self._version.is_file()):
            return 0, headers
        have = self.part.stat().st_size
        if have:
            headers |= {"Range": f"bytes={have}-", "If-Range": self._version.read_text(encoding="ascii")}
        return have, headers

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
        with self.part.open("ab") as stream:
            for chunk in response.iter_content(CHUNK_BYTES):
                stream.write(chunk)
                have += len(chunk)
                self.progress(stage, have, total)
        if total and have != total:
            raise _CutShortError(f"the connection was cut after {have} of {total} bytes")


def _may_pass(error: Exception) -> bool:
    """Say whether trying again may help: not where the server has given a definite no."""
    if isinstance(error, ValueError):  # requests raises it for what is not an address.
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
