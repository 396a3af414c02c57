"""What a report consists of, before any format dresses it: sections of tables, figures and sentences."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from stsbench.render.table import Table


@dataclass(frozen=True)
class ReportFigure:
    """A drawing.

    Attributes:
        name: its anchor and the name of its file, as of a table.
        caption: what it shows.
        alt: what it tells, for those who cannot see it.
        svg: the drawing.
    """

    name: str
    caption: str
    alt: str
    svg: str


@dataclass(frozen=True)
class Pointer:
    """A sentence, and where in the report to read on.

    Attributes:
        text: the sentence.
        to: the name of a section, table or figure of the report; empty for none.
    """

    text: str
    to: str = ""


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        name: its anchor.
        title: its heading.
        text: paragraphs before the rest.
        tables: in their order.
        figures: after the tables.
        points: a list: of what is missing, say.
        pointers: a list of sentences that say where to read on.
        commands: command lines, to be copied.
        parts: sections inside this one.
        fold: whether a page shows its title alone until a reader asks for more (`closed`), lets them fold it away
            (`open`), or neither (empty).
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

    def __bool__(self) -> bool:
        """Return whether there is anything in it."""
        own = (self.text, self.tables, self.figures, self.points, self.pointers, self.commands)
        return any(own) or any(self.parts)

    def walk(self) -> "Iterator[Section]":
        """Yield this section and all inside it, in the order they are read."""
        yield self
        for part in self.parts:
            yield from part.walk()


@dataclass(frozen=True)
class Filled:
    """A section, and in a sentence each what it lacks: runs that could not be checked, columns without a value."""

    section: Section
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """A report: a title, the date it bears, and its sections."""

    title: str
    date: str
    version: str
    sections: tuple[Section, ...]

    @property
    def anchors(self) -> list[str]:
        """The names of all sections, tables and figures, which have to be unique."""
        sections = [part.name for section in self.sections for part in section.walk()]
        return [*sections, *(table.name for table in self.tables), *(figure.name for figure in self.figures)]

    @property
    def tables(self) -> list[Table]:
        """All tables, in the order they are read."""
        return [table for section in self.sections for part in section.walk() for table in part.tables]

    @property
    def figures(self) -> list[ReportFigure]:
        """All figures, in the order they are read."""
        return [figure for section in self.sections for part in section.walk() for figure in part.figures]
