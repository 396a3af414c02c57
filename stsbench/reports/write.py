"""A report as a folder: a page that needs no network, the same in Markdown, every table and figure as files."""

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_folder
from stsbench.render.cells import MISSING, columns_of, is_missing
from stsbench.render.formats import escape_markdown, fenced, to_csv, to_latex, to_markdown
from stsbench.render.page import render_page
from stsbench.render.section import Pointer, Report, ReportFigure, Section
from stsbench.render.svg import inline
from stsbench.render.table import Table
from stsbench.render.text import one_line

if TYPE_CHECKING:
    from markupsafe import Markup

PAGE = "index.html"

GENERATOR = "stsbench report"
"""What the page says that it was made by; a folder with such a page may be made anew."""

_VERDICTS = {"pass": "pass", "fail": "fail", "supported": "pass", "contradicted": "fail"}


def write_report(report: Report, folder: Path) -> Path:
    """Write a report into a folder that is then whole: another report in it is replaced.

    Returns:
        The page.
    """
    require_replaceable(folder)
    if twice := [name for name, count in Counter(report.anchors).items() if count > 1]:
        raise ValueError(f"two parts of the report are called {', '.join(twice)}")
    with atomic_folder(folder) as new:
        _fill(report, new)
    return folder / PAGE


def require_replaceable(folder: Path) -> None:
    """Make sure that nothing but a report would be lost."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    page = folder / PAGE
    if not page.is_file() or GENERATOR not in page.read_text(encoding="utf-8", errors="replace")[:2000]:
        raise UserError(f"{folder} holds something else than a report: choose another folder with --out.")


def _fill(report: Report, folder: Path) -> None:
    for part in ("tables", "figures"):
        (folder / part).mkdir(parents=True)
    for table in report.tables:
        _write(folder / "tables" / f"{table.name}.csv", to_csv(table.frame) + "\r\n")
        text = to_latex(table.frame, decimals=table.decimals, caption=table.caption)
        _write(folder / "tables" / f"{table.name}.tex", text + "\n")
    drawings = {figure.name: figure.svg for figure in report.figures}
    drawings |= {picture.name: picture.svg for table in report.tables for picture in table.pictures.values()}
    for name, svg in drawings.items():
        _write(folder / "figures" / f"{name}.svg", svg)
    if not drawings:
        shutil.rmtree(folder / "figures")
    _write(folder / "README.md", to_page(report))
    _write(folder / PAGE, to_html(report))


def _write(path: Path, text: str) -> None:
    # Line ends as they are; of file names in another encoding a record may hold halves of characters.
    path.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")


def to_page(report: Report) -> str:
    """Return the report in Markdown; all text of the report is escaped."""
    lines = [
        f"# {_plain(report.title)}",
        "",
        f"Made by stsbench {report.version}, dated {_plain(report.date)}.",
        "",
        *_contents(report.sections),
    ]
    titles = _titles(report)
    for section in report.sections:
        if section:
            lines += _section(section, 2, titles)
    return "\n".join(lines) + "\n"


def _contents(sections: tuple[Section, ...], depth: int = 0) -> Iterator[str]:
    for section in sections:
        if section:
            yield f"{'  ' * depth}- [{_plain(section.title)}](#{section.name})"
            yield from _contents(section.parts, depth + 1)


def _pointer(pointer: Pointer, titles: Mapping[str, str]) -> str:
    link = f" ([{_plain(titles[pointer.to])}](#{pointer.to}))" if pointer.to else ""
    return f"- {_plain(pointer.text)}{link}"


def _titles(report: Report) -> dict[str, str]:
    """Return what each section, table and figure is called by, for a link to it.

    Raises:
        ValueError: if a pointer leads nowhere.
    """
    parts = [part for section in report.sections for part in section.walk()]
    titles = {part.name: part.title for part in parts}
    titles |= {table.name: table.caption for table in report.tables}
    titles |= {figure.name: figure.caption for figure in report.figures}
    if lost := [to.to for part in parts for to in part.pointers if to.to and to.to not in titles]:
        raise ValueError(f"the report points to {', '.join(lost)}, which it does not have")
    return titles


def _section(section: Section, level: int, titles: Mapping[str, str]) -> Iterator[str]:
    yield from ("", f'<a id="{section.name}"></a>', "")
    if section.fold:
        opened = " open" if section.fold == "open" else ""
        yield from (f"<details{opened}>", f"<summary>{escape(one_line(section.title).strip())}</summary>", "")
    yield f"{'#' * level} {_plain(section.title)}"
    for paragraph in section.text:
        yield from ("", _plain(paragraph))
    if section.pointers:
        yield from ("", *(_pointer(pointer, titles) for pointer in section.pointers))
    if section.points:
        yield from ("", *(f"- {_plain(point)}" for point in section.points))
    for table in section.tables:
        yield from ("", f'<a id="{table.name}"></a>', "")
        yield to_markdown(table.frame, decimals=table.decimals, caption=table.caption)
        if table.notes:
            yield from ("", *(f"- {_plain(note)}" for note in table.notes))
        if table.pictures:
            images = (f"![{_plain(of.alt)}](figures/{of.name}.svg)" for of in table.pictures.values())
            yield from ("", *images)
        yield from ("", f"[CSV](tables/{table.name}.csv), [LaTeX](tables/{table.name}.tex)")
    for figure in section.figures:
        image = f"![{_plain(figure.alt)}](figures/{figure.name}.svg)"
        yield from ("", f'<a id="{figure.name}"></a>', "", image, "", _plain(figure.caption))
    if section.commands:
        yield from ("", *fenced(section.commands, "sh"))
    for part in section.parts:
        if part:
            yield from _section(part, min(level + 1, 6), titles)
    if section.fold:
        yield from ("", "</details>")


def _plain(text: str) -> str:
    return escape_markdown(one_line(text).strip())


@dataclass(frozen=True)
class HtmlCell:
    """A cell as the page shows it: its text, its key for sorting, the hint at it, its look."""

    text: str
    key: str
    hint: str
    look: str


def to_html(report: Report) -> str:
    """Return the page; all text of the report is escaped."""
    return render_page(
        "stsbench.reports",
        "page.html.j2",
        ("page.css",),
        ("theme.js", "page.js"),
        report=report,
        generator=GENERATOR,
        heads=_heads,
        rows=_rows,
        drawn=_drawn,
        titles=_titles(report),
    )


def _drawn(figure: ReportFigure) -> "Markup":
    from markupsafe import Markup

    # Drawn by us: whatever a name holds was escaped as text of the drawing.
    return Markup(inline(figure.svg, figure.name))


def _heads(table: Table) -> list[tuple[str, bool]]:
    return [(column.name, column.is_numeric) for column in columns_of(table.frame, table.decimals)]


def _rows(table: Table) -> Iterator[tuple[bool, list[HtmlCell]]]:
    """Yield each row: whether it was measured here, and its cells."""
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
            cells.append(HtmlCell(text, key, one_line(table.hints.get((number, name), "")), look))
        yield number in table.own, cells
