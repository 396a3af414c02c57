"""A report as one HTML page that needs no network: style and script stand in it, figures beside it."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from stsbench.render.cells import MISSING, columns_of, is_missing, one_line
from stsbench.reports.page import Report, ReportTable

GENERATOR = "stsbench report"
"""What the page says that it was made by; a folder with such a page may be made anew."""

_VERDICTS = {"pass": "pass", "fail": "fail"}


@dataclass(frozen=True)
class Cell:
    """A cell as the page shows it: its text, what it is sorted by, what is told at it, its look."""

    text: str
    key: str
    hint: str
    look: str


def to_html(report: Report) -> str:
    """Return the page; all text of the report is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("stsbench.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["line"] = one_line
    return environment.get_template("page.html.j2").render(
        report=report,
        generator=GENERATOR,
        heads=_heads,
        rows=_rows,
        css=_asset("page.css"),
        script=_asset("page.js"),
    )


def _asset(name: str) -> Any:
    from markupsafe import Markup

    # Our own files, not data: they go into the page as they are.
    return Markup(files("stsbench.reports").joinpath("templates", name).read_text(encoding="utf-8"))


def _heads(table: ReportTable) -> list[tuple[str, bool]]:
    return [(column.name, column.is_numeric) for column in columns_of(table.frame, table.decimals)]


def _rows(table: ReportTable) -> Iterator[tuple[bool, list[Cell]]]:
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
            cells.append(Cell(text, key, one_line(table.hints.get((number, name), "")), look))
        yield number in table.own, cells
