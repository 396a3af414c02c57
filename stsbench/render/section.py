"""The contents of a report, independent of its format: sections of tables, figures and sentences."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from stsbench.render.table import Table


@dataclass(frozen=True)
class ReportFigure:
    """A figure of a report.

    Attributes:
        name: its anchor and file name.
        caption: what it shows.
        alt: its description for readers who cannot see it.
        svg: the drawing.
    """

    name: str
    caption: str
    alt: str
    svg: str


@dataclass(frozen=True)
class Pointer:
    """A sentence with a link to the section, table or figure named `to` (empty for none)."""

    text: str
    to: str = ""


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        name: its anchor.
        title: its heading.
        numbers: headline numbers, as name and text.
        text: paragraphs before the rest.
        tables: the tables, in order.
        figures: the figures, after the tables.
        points: a bulleted list.
        pointers: sentences with links.
        commands: command lines to copy.
        parts: subsections.
        fold: whether a page can fold the section: initially `open` or `closed`, or not at all (empty).
    """

    name: str
    title: str
    text: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[ReportFigure, ...] = ()
    points: tuple[str, ...] = ()
    pointers: tuple[Pointer, ...] = ()
    commands: tuple[str, ...] = ()
    parts: "tuple[Section, ...]" = ()
    fold: Literal["", "open", "closed"] = ""
    numbers: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        """Returns whether the section has any content."""
        own = (self.text, self.tables, self.figures, self.points, self.pointers, self.commands, self.numbers)
        return any(own) or any(self.parts)

    def walk(self) -> "Iterator[Section]":
        """Yields this section and all its subsections, in reading order."""
        yield self
        for part in self.parts:
            yield from part.walk()


@dataclass(frozen=True)
class Filled:
    """A section, and sentences about what is missing from it, such as runs that could not be checked."""

    section: Section
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """A report: its title, date, version of stsbench, and sections."""

    title: str
    date: str
    version: str
    sections: tuple[Section, ...]

    @property
    def anchors(self) -> list[str]:
        """The names of all sections, tables and figures, which must be unique."""
        sections = [part.name for section in self.sections for part in section.walk()]
        return [*sections, *(table.name for table in self.tables), *(figure.name for figure in self.figures)]

    @property
    def tables(self) -> list[Table]:
        """All tables, in reading order."""
        return [table for section in self.sections for part in section.walk() for table in part.tables]

    @property
    def figures(self) -> list[ReportFigure]:
        """All figures, in reading order."""
        return [figure for section in self.sections for part in section.walk() for figure in part.figures]
