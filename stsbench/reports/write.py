"""A report as a folder: a self-contained page, the same in Markdown, every table and figure as a file."""

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_folder
from stsbench.render import one_line
from stsbench.render.figures import inline
from stsbench.render.formats import MISSING, columns_of, fenced, is_missing, to_csv, to_latex, to_markdown
from stsbench.render.page import Report, ReportFigure, render_page
from stsbench.render.table import Table

if TYPE_CHECKING:
    from markupsafe import Markup

PAGE = "index.html"

GENERATOR = "stsbench report"
"""The generator named in the page; a folder with such a page may be replaced."""

_INTERVAL = re.compile(r"\[\S+, \S+\]")
_VERDICTS = {"pass": "pass", "fail": "fail", "supported": "pass", "contradicted": "fail"}


def write_report(report: Report, folder: Path) -> Path:
    """Writes a report into a folder; an earlier report is replaced as a whole.

    Returns:
        The page.
    """
    require_replaceable(folder)
    if twice := [name for name, count in Counter(report.anchors).items() if count > 1]:
        raise ValueError(f"two parts of the report are named {', '.join(twice)}")
    with atomic_folder(folder) as new:
        _fill(report, new)
    return folder / PAGE


def require_replaceable(folder: Path) -> None:
    """Raises a `UserError` unless the folder is missing, empty, or holds a report."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    page = folder / PAGE
    if not page.is_file() or GENERATOR not in page.read_text(encoding="utf-8", errors="replace")[:2000]:
        raise UserError(f"{folder} contains something other than a report: choose another folder with --out.")


def _fill(report: Report, folder: Path) -> None:
    for part in ("tables", "figures"):
        (folder / part).mkdir(parents=True)
    for table in report.tables:
        _write(folder / "tables" / f"{table.name}.csv", to_csv(table.frame) + "\r\n")
        text = to_latex(table.frame, decimals=table.decimals, caption=table.caption)
        _write(folder / "tables" / f"{table.name}.tex", text + "\n")
    drawings = {figure.name: figure.svg for figure in report.figures}
    for name, svg in drawings.items():
        _write(folder / "figures" / f"{name}.svg", svg)
    if not drawings:
        shutil.rmtree(folder / "figures")
    _write(folder / "README.md", to_page(report))
    _write(folder / PAGE, to_html(report))


def _write(path: Path, text: str) -> None:
    # Records may hold file names in another encoding.
    path.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")


def to_page(report: Report) -> str:
    """Returns the report in Markdown; all text is escaped."""
    return render_page(
        "stsbench.reports",
        "page.md.j2",
        (),
        (),
        report=report,
        titles=_titles(report),
        markdown=lambda table: to_markdown(table.frame, decimals=table.decimals, caption=table.caption),
        fenced=lambda commands: "\n".join(fenced(commands, "sh")),
    )


def _titles(report: Report) -> dict[str, str]:
    """Returns the title of each section, table and figure, by its anchor.

    Raises:
        ValueError: if a pointer has no target.
    """
    parts = [part for section in report.sections for part in section.walk()]
    titles = {part.name: part.title for part in parts}
    titles |= {table.name: table.caption for table in report.tables}
    titles |= {figure.name: figure.caption for figure in report.figures}
    if lost := [to.to for part in parts for to in part.pointers if to.to and to.to not in titles]:
        raise ValueError(f"the report links to {', '.join(lost)}, which it does not have")
    return titles


class HtmlCell(NamedTuple):
    """A cell of the page: its text, sort key, tooltip and CSS classes."""

    text: str
    key: str
    hint: str
    look: str


def to_html(report: Report) -> str:
    """Returns the page; all text is escaped."""
    return render_page(
        "stsbench.reports",
        "page.html.j2",
        ("page.css",),
        ("theme.js", "table.js", "chart.js", "page.js"),
        report=report,
        generator=GENERATOR,
        heads=_heads,
        rows=_rows,
        drawn=_drawn,
        titles=_titles(report),
    )


def _drawn(figure: ReportFigure) -> "Markup":
    from markupsafe import Markup

    # Our own drawing; names in it are escaped as text.
    return Markup(inline(figure.svg, figure.name))


def _heads(table: Table) -> list[tuple[str, bool]]:
    return [(column.name, column.is_numeric) for column in columns_of(table.frame, table.decimals)]


def _rows(table: Table) -> Iterator[tuple[bool, list[HtmlCell]]]:
    """Yields whether each row was measured here, and its cells."""
    columns = columns_of(table.frame, table.decimals)
    names = [str(name) for name in table.frame]
    values = [list(table.frame.iloc[:, place]) for place in range(len(names))]
    for number in range(len(table.frame)):
        cells = []
        for column, name, own in zip(columns, names, values, strict=True):
            text = column.cells[number]
            key = "" if is_missing(own[number]) else repr(float(own[number])) if column.is_numeric else text
            look = "num" if column.is_numeric else "text"
            if name == table.verdicts:
                look = f"verdict {_VERDICTS.get(text, 'other')}"
            if text == MISSING:
                look += " missing"
            if _INTERVAL.fullmatch(text):
                look += " interval"
            cells.append(HtmlCell(text, key, one_line(table.hints.get((number, name), "")), look))
        yield number in table.own, cells
