"""The page of a reproduction: the paper's table with ours, the answers to its claims, what it cost."""

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from stsbench._version import __version__
from stsbench.published.catalogue import papers
from stsbench.render.section import Report, Section
from stsbench.reports.in_short import IN_SHORT, TITLE
from stsbench.reports.write import write_report
from stsbench.reproduction.reproduced import Reproduction

FOLDER = "report"
"""The page's folder in that of the experiment."""


def write_reproduction(reproduction: Reproduction, folder: Path | None = None, *, date: str = "") -> Path:
    """Write the page of a reproduction: HTML that needs no network, the same in Markdown, every table as a file.

    Args:
        reproduction: what `reproduce` returned.
        folder: where; by default `report` in the experiment's folder. A report that is in it is replaced.
        date: of the page; by default `SOURCE_DATE_EPOCH`, or else today.

    Returns:
        The page, `index.html` in the folder.
    """
    short = Section(IN_SHORT, TITLE, pointers=reproduction.pointers)
    section = reproduction.section()
    section = replace(section, parts=(*section.parts, _repeated(reproduction)))
    paper = papers()[reproduction.exhibit.paper]
    title = f"{reproduction.exhibit.title} of {paper.title.partition(':')[0]} ({paper.venue}), made again"
    report = Report(title, date or _today(), __version__, (short, section))
    return write_report(report, folder or reproduction.folder / FOLDER)


def _repeated(reproduction: Reproduction) -> Section:
    name, scale = reproduction.exhibit.name, reproduction.scale
    text = "The experiment's folder has a record for each job, from which all numbers here can be computed again."
    return Section("repeat", "How to repeat it", (text,), commands=(f"stsbench reproduce {name} --scale {scale}",))


def _today() -> str:
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdecimal() else datetime.now(UTC)
    return moment.date().isoformat()
