"""Getting data: download, check, unpack, check again, put in place."""

import lzma
import os
import shutil
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from urllib.parse import quote

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path, sha256_of
from stsbench.base.progress import Progress, silent
from stsbench.data.catalogue import CatalogueFile, Source, data_sets, source, sources
from stsbench.data.download import DownloadError, download
from stsbench.data.locate import Place, data_cache, root_in

HUB = "https://huggingface.co"


@dataclass(frozen=True)
class Fetched:
    """What `get` leaves behind.

    Attributes:
        name: the source's name in the catalogue.
        path: the file, or the folder of several or that the archive was unpacked to.
        sha256: of the downloaded file; empty where it was unpacked earlier and its hash was not kept, and of
            several files.
        verified: whether the catalogue vouches for what lies at `path`: by the download's own hash or, for
            several files and for an archive, by those of all that the catalogue lists.
        fresh: False if it was there already and nothing was downloaded.
    """

    name: str
    path: Path
    sha256: str
    verified: bool
    fresh: bool


def get(what: str = "senteval", progress: Progress = silent, *, to: Path | None = None) -> Fetched:
    """Get a source of the catalogue, unless it is there already, whole and unchanged.

    The environment variable `HF_ENDPOINT` names a mirror of the Hugging Face Hub. Several processes may ask
    at once: one downloads, the others wait for it.

    Args:
        what: `senteval` (the benchmarks), `wiki1m` or `nli` (training text), or the source of another set:
            `biosses`, `sts17`, ... (`stsbench data list --json`).
        progress: told what goes on.
        to: the folder to fill instead of the cache; name it in STSBENCH_DATA to have it used. The file goes there,
            or the folder of several or of an archive (`downstream`).

    Raises:
        UserError: if there is no such source, or it cannot be had, saying how to get it by hand; or if `to` holds
            something else in its place.
    """
    chosen = source(what)
    if not chosen.is_fetchable:
        fetchable = ", ".join(name for name, other in sources().items() if other.is_fetchable)
        where = "comes with stsbench" if chosen.kind == "bundled" else f"is to be had from {chosen.address}"
        raise UserError(f"{what} {where}, not by download: choose one of {fetchable}.")
    folder = data_cache() if to is None else Path(to).expanduser()
    try:
        return fetch(chosen, catalogued_files(what), folder, progress, cached=to is None)
    except (DownloadError, UnpackError) as error:
        raise UserError(f"{error}; try again, or {_by_hand(chosen, folder)}.") from error


def catalogued_files(name: str) -> tuple[CatalogueFile, ...]:
    """Return every file that the catalogue lists for a source, each path once."""
    variants = (variant for entry in data_sets().values() for variant in entry.texts.values())
    files = (file for variant in variants if variant.source == name for file in variant.files)
    return tuple({file.path: file for file in files}.values())


def fetch(
    chosen: Source,
    expected: Sequence[CatalogueFile],
    folder: Path,
    progress: Progress = silent,
    *,
    cached: bool = True,
) -> Fetched:
    """Get one source into `folder`, unless it is there already.

    Args:
        chosen: a source of kind "archive", "file" or "files".
        expected: the files that an archive must hold, or that are to be had one by one.
        folder: the data folder of the cache, or a person's own.
        progress: told what goes on.
        cached: whether the folder is the cache, which has a folder for each source, and where what differs from
            the catalogue is replaced. In a person's own it is an error.

    Raises:
        DownloadError: if the file cannot be had or is not the catalogued one.
        UnpackError: if the archive is unsafe or damaged, or what it holds is not what the catalogue says.
        UserError: if `folder` cannot be written, or is a person's own and holds something else.
    """
    fetching = _Fetching(chosen, expected, folder, progress, cached)
    kinds = {"archive": fetching.archive, "files": fetching.files, "file": fetching.file}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder / f".{chosen.name}.lock", progress):
            return kinds[chosen.kind]()
    except OSError as error:
        other = "set STSBENCH_CACHE" if cached else "name another folder"
        raise UserError(
            f"cannot write {folder} ({error.strerror or error}): free some space or {other}."
        ) from error


def address_of(chosen: Source) -> str:
    """Return the address to download from: the catalogue's, on the mirror that `HF_ENDPOINT` names."""
    mirror = os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB
    return chosen.address.replace(HUB, mirror, 1) if chosen.address.startswith(f"{HUB}/") else chosen.address


@dataclass(frozen=True)
class _Fetching:
    """The getting of one source; see `fetch`."""

    source: Source
    expected: Sequence[CatalogueFile]
    folder: Path
    progress: Progress
    cached: bool

    def file(self) -> Fetched:
        """Get the only file of a source."""
        target = self.folder / self.source.file_name
        known = self.source.expected
        if target.is_file():
            present = sha256_of(target)
            # A file that was put there by hand has no record yet, and is welcome.
            if present == (known or _recorded_sha256(target) or present):
                _record_sha256(target, present)
                return self._fetched(target, present, fresh=False)
            self._replace(target)
        sha256 = download(address_of(self.source), target, known, self.progress)
        _record_sha256(target, sha256)
        return self._fetched(target, sha256)

    def files(self) -> Fetched:
        """Get several files, one by one."""
        target, fresh = self.folder / (self.source.folder or ""), False
        for file in self.expected:
            path = target / file.path
            if path.is_file():
                if file.expected in {None, sha256_of(path)}:
                    continue
                self._replace(path)
            download(address_of(self.source) + quote(file.path), path, file.expected, self.progress)
            fresh = True
        return self._fetched(target, "", fresh=fresh)

    def archive(self) -> Fetched:
        """Get and unpack an archive."""
        archive = self.folder / self.source.file_name
        assert self.source.folder is not None, "an archive says where it is unpacked to"
        target = self.folder / (self.source.folder if self.cached else PurePosixPath(self.source.folder).name)
        different = self._differences(target)
        if not different:
            return self._fetched(target, _recorded_sha256(archive), fresh=False)
        if not self.cached and target.exists() and any(target.iterdir()):
            raise UserError(
                f"{target} is there, and {len(different)} of its {len(self.expected)} files are missing or "
                f"differ, the first is {different[0]}: move it away, or name another folder."
            )
        sha256 = download(address_of(self.source), archive, self.source.expected, self.progress)
        try:
            self._unpack_to(target, archive)
        finally:
            # An unpacked archive is of no more use, and a damaged one would be found damaged again.
            archive.unlink(missing_ok=True)
        _record_sha256(archive, sha256)
        return self._fetched(target, sha256)

    def _fetched(self, path: Path, sha256: str, *, fresh: bool = True) -> Fetched:
        by_files = self.source.kind != "file" and all(file.expected for file in self.expected)
        by_download = self.source.kind != "files" and self.source.expected is not None
        return Fetched(self.source.name, path, sha256, verified=by_download or by_files, fresh=fresh)

    def _replace(self, path: Path) -> None:
        if not self.cached:
            raise UserError(f"{path} is there, and is another file: move it away, or name another folder.")
        path.unlink()

    def _unpack_to(self, target: Path, archive: Path) -> None:
        # Unpacked beside the target and renamed at the end: a killed unpacking leaves no half a data set.
        scratch = archive.parent / f".{self.source.name}.unpacking"
        shutil.rmtree(scratch, ignore_errors=True)
        try:
            (scratch / "new").mkdir(parents=True)
            unpack(archive, scratch / "new", self.progress)
            paths = [file.path for file in self.expected]
            root = root_in(Place("archive", scratch / "new"), self.source, paths)
            different = self._differences(root) if root else paths
            if root is None or different:
                raise UnpackError(
                    f"{archive.name} is not what the catalogue says: {len(different)} of {len(paths)} files are "
                    f"missing or differ, the first is {different[0]}"
                )
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                target.rename(scratch / "old")
            root.rename(target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _differences(self, root: Path) -> list[str]:
        return [
            file.path
            for file in self.expected
            if not (root / file.path).is_file() or file.expected not in {None, sha256_of(root / file.path)}
        ]


@contextmanager
def _alone(lock_file: Path, progress: Progress) -> Iterator[None]:
    from filelock import FileLock, Timeout

    lock = FileLock(lock_file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress("waiting for another process that downloads the same", 0, 0)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _record_of(file: Path) -> Path:
    return file.with_name(f"{file.name}.sha256")


def _record_sha256(file: Path, sha256: str) -> None:
    # In the form that `sha256sum --check` reads.
    with atomic_path(_record_of(file)) as temporary:
        temporary.write_text(f"{sha256}  {file.name}\n", encoding="utf-8")


def _recorded_sha256(file: Path) -> str:
    record = _record_of(file)
    return record.read_text(encoding="utf-8").split()[0] if record.is_file() else ""


def _by_hand(chosen: Source, folder: Path) -> str:
    url = address_of(chosen)
    if chosen.kind == "archive":
        return f"download {url} by hand, unpack it and set STSBENCH_DATA to its folder"
    if chosen.kind == "files":
        return f"download what is below {url} by hand into {folder / (chosen.folder or '')}, in the same folders"
    return f"download {url} by hand to {folder / chosen.file_name}"


_DEEPEST = 100


class UnpackError(Exception):
    """Why an archive was not unpacked."""


def unpack(archive: Path, folder: Path, progress: Progress = silent) -> None:
    """Unpack a tar archive (compressed or not) into an empty folder.

    The whole listing is checked before the first file is written, and each member once more by
    `tarfile`'s own `data` filter.
    """
    stage = f"unpacking {archive.name}"
    try:
        with tarfile.open(archive) as tar:
            members = tar.getmembers()
            for member in members:
                if harm := _harm_of(member):
                    raise UnpackError(
                        f"{archive.name} was not unpacked, because it is unsafe: its member {member.name!r} {harm}"
                    )
            for done, member in enumerate(members):
                progress(stage, done, len(members))
                tar.extract(member, folder, filter="data")
            progress(stage, len(members), len(members))
    except tarfile.FilterError as error:
        raise UnpackError(f"{archive.name} was not unpacked, because it is unsafe: {error}") from error
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, KeyError, RecursionError) as error:
        # A hard link to a member that is not there, and a symbolic link to itself, are the last two.
        raise UnpackError(f"{archive.name} is damaged or no tar archive") from error
    except OSError as error:
        raise UnpackError(f"{archive.name} cannot be unpacked: {error.strerror or error}") from error


def _harm_of(member: tarfile.TarInfo) -> str:
    """Return why a member is unsafe, empty where it is not."""
    path, is_link = PurePosixPath(member.name), member.issym() or member.islnk()
    if not (member.isfile() or member.isdir() or is_link):
        return "is a device"
    if len(path.parts) > _DEEPEST:
        # Making and removing such folders exhausts Python's stack.
        return f"lies more than {_DEEPEST} folders deep"
    if _escapes(path):
        return "lies outside its folder"
    # A symbolic link is read from where it lies, a hard link from the archive's root.
    start = path.parent if member.issym() else PurePosixPath()
    return "links to a place outside its folder" if is_link and _escapes(start / member.linkname) else ""


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
