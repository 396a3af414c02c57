"""A report in Markdown, for where pages are read as GitHub shows them."""

import re
from collections.abc import Iterator, Sequence

from stsbench.render.cells import one_line
from stsbench.render.markdown import escape, to_markdown
from stsbench.reports.page import Report, Section


def to_page(report: Report) -> str:
    """Return the report in Markdown; all text of the report is escaped."""
    lines = [
        f"# {_plain(report.title)}",
        "",
        f"Made by stsbench {report.version}, dated {_plain(report.date)}.",
        "",
        *_contents(report.sections),
    ]
    for section in report.sections:
        if section:
            lines += _section(section, 2)
    return "\n".join(lines) + "\n"


def _contents(sections: tuple[Section, ...], depth: int = 0) -> Iterator[str]:
    for section in sections:
        if section:
            yield f"{'  ' * depth}- [{_plain(section.title)}](#{section.name})"
            yield from _contents(section.parts, depth + 1)


def _section(section: Section, level: int) -> Iterator[str]:
    yield from ("", f'<a id="{section.name}"></a>', "", f"{'#' * level} {_plain(section.title)}")
    for paragraph in section.text:
        yield from ("", _plain(paragraph))
    if section.points:
        yield from ("", *(f"- {_plain(point)}" for point in section.points))
    for table in section.tables:
        yield from ("", f'<a id="{table.name}"></a>', "")
        yield to_markdown(table.frame, decimals=table.decimals, caption=table.caption)
        if table.notes:
            yield from ("", *(f"- {_plain(note)}" for note in table.notes))
        yield from ("", f"[CSV](tables/{table.name}.csv), [LaTeX](tables/{table.name}.tex)")
    for figure in section.figures:
        yield from ("", f"![{_plain(figure.alt)}](figures/{figure.name}.svg)", "", _plain(figure.caption))
    if section.commands:
        yield from ("", *fenced(section.commands, "sh"))
    for part in section.parts:
        if part:
            yield from _section(part, min(level + 1, 6))


def fenced(lines: Sequence[str], language: str = "") -> list[str]:
    """Return lines as a block of code, whatever is in them.

    >>> fenced(["```"])
    ['````', '```', '````']
    """
    plain = [one_line(line) for line in lines]
    # A fence ends at one as long: longer than any run of backticks inside it cannot end early.
    longest = max((len(run) for line in plain for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", *plain, fence]


def _plain(text: str) -> str:
    return escape(one_line(text).strip())
