"""Downloading data: fetch, check, unpack, check again, put in place."""

import lzma
import os
import shutil
import tarfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path, sha256_of, writing
from stsbench.base.progress import Progress, silent
from stsbench.data.catalogue import CatalogueFile, Source, data_sets, source, sources
from stsbench.data.reading import Place, data_cache, root_in

HUB = "https://huggingface.co"

TIMEOUT = (10.0, 60.0)
"""Seconds to connect, and to wait for more data."""

RETRIES = 3
"""Retries of a download that failed or has another hash, after 1, 2 and 3 seconds."""

_CHUNK = 1 << 18
_BY_HAND = "try again, or download it by hand and set STSBENCH_DATA to its folder"


@dataclass(frozen=True)
class Fetched:
    """The result of `get`.

    Attributes:
        path: the file, or the folder of several files or of an unpacked archive.
        verified: whether the catalogue has the hash of the download, or of all files at `path`.
        fresh: False if nothing was downloaded because it was there already.
    """

    path: Path
    verified: bool
    fresh: bool


def get(what: str = "senteval", progress: Progress = silent, *, to: Path | None = None) -> Fetched:
    """Downloads a source of the catalogue, unless it is there already, complete and unchanged.

    The environment variable `HF_ENDPOINT` names a mirror of the Hugging Face Hub. If several processes call this
    at once, one downloads and the others wait.

    Args:
        what: `senteval` (the benchmarks), `wiki1m` or `nli` (training text), or the source of another set:
            `biosses`, `sts17`, ... (`stsbench data list --json`).
        progress: called with the stage, the bytes or files done, and how many there are.
        to: the data folder to fill instead of the cache; name it in STSBENCH_DATA to use it.

    Raises:
        UserError: if there is no such source, the download fails, an archive is unsafe or damaged, a file is not
            the catalogued one, or another file is in its place, which is never replaced.
    """
    chosen = source(what)
    if not chosen.is_fetchable:
        fetchable = ", ".join(name for name, other in sources().items() if other.is_fetchable)
        how = "comes with stsbench" if chosen.kind == "bundled" else f"is at {chosen.address}"
        raise UserError(f"{what} {how} and cannot be downloaded by stsbench: choose one of {fetchable}.")
    return fetch(chosen, catalogued_files(what), data_cache() if to is None else Path(to).expanduser(), progress)


def catalogued_files(name: str) -> tuple[CatalogueFile, ...]:
    """Returns the files that the catalogue lists for a source, without repetitions."""
    variants = (variant for entry in data_sets().values() for variant in entry.texts.values())
    files = (file for variant in variants if variant.source == name for file in variant.files)
    return tuple({file.path: file for file in files}.values())


def fetch(chosen: Source, expected: Sequence[CatalogueFile], folder: Path, progress: Progress = silent) -> Fetched:
    """Downloads a source into a data folder; see `get`. `expected` are the files in it."""
    from filelock import FileLock

    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f".{chosen.name}.lock"):
            getter = _get_archive if chosen.kind == "archive" else _get_files
            return getter(chosen, expected, folder, progress)


def address_of(chosen: Source) -> str:
    """Returns the address of a download: the catalogue's, or on the mirror that `HF_ENDPOINT` names."""
    mirror = os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB
    return chosen.address.replace(HUB, mirror, 1) if chosen.address.startswith(f"{HUB}/") else chosen.address


def download(url: str, target: Path, sha256: str | None, progress: Progress = silent) -> None:
    """Downloads a file, which appears at `target` only when it is complete.

    Args:
        url: the address; redirects are followed.
        target: the file to write.
        sha256: the expected hash, None if it is unknown.
        progress: called with the bytes done and in total (0 if the server does not report it).

    Raises:
        UserError: if the server cannot be reached or rejects the request, or the hash differs.
    """
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")  # its other lines name temporary files

    def write(url: str, file: str, _: object) -> None:
        Path(file).unlink()  # written anew, because pooch's own file can be read by its owner only
        # A compressed answer would make byte counts meaningless.
        answer = requests.get(url, stream=True, timeout=TIMEOUT, headers={"Accept-Encoding": "identity"})
        with answer, Path(file).open("wb") as stream:
            answer.raise_for_status()
            size = answer.headers.get("Content-Length", "")
            total = int(size) if size.isdigit() else 0
            for chunk in answer.iter_content(_CHUNK):
                stream.write(chunk)
                progress(f"downloading {target.name}", stream.tell(), total)

    with atomic_path(target) as path:
        path.unlink()  # pooch leaves an existing file without a hash alone
        name = path.name
        files = pooch.create(path.parent, "", registry={name: sha256}, urls={name: url}, retry_if_failed=RETRIES)
        try:
            files.fetch(name, downloader=write)
        except requests.RequestException as error:
            reason = "no connection" if isinstance(error, requests.ConnectionError) else error
            raise UserError(f"cannot download {url} ({reason}): {_BY_HAND}.") from error
        except ValueError as error:
            raise UserError(
                f"{url} is not the catalogued file (expected SHA-256 {sha256}): {_BY_HAND}."
            ) from error


def _get_files(chosen: Source, expected: Sequence[CatalogueFile], folder: Path, progress: Progress) -> Fetched:
    address = address_of(chosen)
    if chosen.kind == "file":
        path = folder / chosen.file_name
        files = {path: (address, chosen.sha256)}
    else:
        path = folder / (chosen.folder or "")
        files = {path / file.path: (address + quote(file.path), file.sha256) for file in expected}
    fresh = False
    for file, (url, sha256) in files.items():
        if file.is_file():
            if sha256 in {None, sha256_of(file)}:
                continue
            raise UserError(f"{file} exists and is not the catalogued file: move it away.")
        download(url, file, sha256, progress)
        fresh = True
    verified = all(sha256 for _, sha256 in files.values())
    return Fetched(path, verified, fresh)


def _get_archive(chosen: Source, expected: Sequence[CatalogueFile], folder: Path, progress: Progress) -> Fetched:
    target = folder / (chosen.folder or "")
    verified = chosen.sha256 is not None or all(file.sha256 for file in expected)
    different = _differences(target, expected)
    if not different:
        return Fetched(target, verified, fresh=False)
    if target.exists() and any(target.iterdir()):
        raise UserError(
            f"{target} exists, and {len(different)} of its {len(expected)} files are missing or differ, the first "
            f"is {different[0].path}: move it away."
        )
    archive = folder / chosen.file_name
    try:
        download(address_of(chosen), archive, chosen.sha256, progress)
        progress(f"unpacking {archive.name}", 0, 0)
        _unpack_to(target, archive, chosen, expected)
    finally:
        archive.unlink(missing_ok=True)
    return Fetched(target, verified, fresh=True)


def _unpack_to(target: Path, archive: Path, chosen: Source, expected: Sequence[CatalogueFile]) -> None:
    # Unpacked next to the target and renamed at the end, so a killed process leaves no partial data set.
    scratch = archive.parent / f".{chosen.name}.unpacking"
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        scratch.mkdir()
        unpack(archive, scratch)
        root = root_in(Place("archive", scratch), chosen, [file.path for file in expected])
        different = _differences(root, expected) if root else expected
        if root is None or different:
            raise UserError(
                f"{archive.name} is not the catalogued archive ({len(different)} of {len(expected)} files are "
                f"missing or differ, the first is {different[0].path}): {_BY_HAND}."
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        root.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def unpack(archive: Path, folder: Path) -> None:
    """Unpacks a tar archive, compressed or not, into an empty folder.

    Python's `data` filter rejects members outside the folder, links out of it, and devices.

    Raises:
        UserError: if it is unsafe, damaged, or not a tar archive.
    """
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
    except tarfile.FilterError as error:
        raise UserError(f"{archive.name} is unsafe and was not unpacked ({error}): {_BY_HAND}.") from error
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, KeyError, RecursionError) as error:
        # KeyError and RecursionError: a hard link to a missing member, a symbolic link to itself.
        raise UserError(f"{archive.name} is damaged or not a tar archive: {_BY_HAND}.") from error


def _differences(root: Path, expected: Sequence[CatalogueFile]) -> list[CatalogueFile]:
    return [
        file
        for file in expected
        if not (root / file.path).is_file() or file.sha256 not in {None, sha256_of(root / file.path)}
    ]
