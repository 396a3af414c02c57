"""Pages: the sections of a report, templates, styles, and the content security policy."""

from abc import abstractmethod
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from stsbench.base.files import atomic_path, require_writable
from stsbench.render import one_line
from stsbench.render.formats import escape_markdown
from stsbench.render.table import Result, Table

if TYPE_CHECKING:
    from markupsafe import Markup

_HEIGHT = 900
"""Height of a page in a notebook, in pixels."""


class PageResult(Result):
    """A result that is an HTML page."""

    @property
    @abstractmethod
    def html(self) -> str:
        """The page as HTML."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The title of the page."""

    def save(self, path: str | Path) -> Path:
        """Writes the page; raises a `UserError` if the file exists or cannot be written."""
        target = Path(path).expanduser()
        require_writable(target)
        with atomic_path(target) as temporary:
            temporary.write_text(self.html, encoding="utf-8", errors="backslashreplace", newline="")
        return target

    def _repr_html_(self) -> str:
        # A frame keeps the styles and scripts of the page and of the notebook apart.
        look = f'style="width: 100%; height: {_HEIGHT}px; border: 0"'
        return (
            f'<iframe title="{escape(one_line(self.title))}" sandbox="allow-scripts allow-downloads" {look} '
            f'srcdoc="{escape(self.html)}"></iframe>'
        )


def render_page(
    package: str, template: str, style: tuple[str, ...], script: tuple[str, ...], **content: Any
) -> str:
    """Renders a template to a page; all text is escaped: in Markdown by the filter `plain`, in HTML always.

    Args:
        package: the package with the folder `templates`, such as `stsbench.reports`.
        template: file name of the template, which ends in `.html.j2` or `.md.j2`.
        style: CSS files of the package or of `stsbench.render`.
        script: JavaScript files of the same packages.
        **content: the variables of the template.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(package),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["line"] = one_line
    environment.filters["plain"] = lambda text: escape_markdown(one_line(text).strip())
    css, js = (_assets(package, names) for names in (style, script))
    return environment.get_template(template).render(css=css, script=js, policy=_policy(css, js), **content)


def _policy(css: str, script: str) -> str:
    """Returns the content security policy: only the page's own script, style and figures are allowed.

    Anything else in the page, such as text of a data set, is shown but never executed or fetched.
    """
    rules = {
        "default-src": "'none'",
        "img-src": "'self' data:",
        "style-src": _hash(css),
        "script-src": _hash(script),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _hash(content: str) -> str:
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"


def _assets(package: str, names: Sequence[str]) -> "Markup":
    from markupsafe import Markup

    texts = []
    for name in names:
        own = files(package).joinpath("templates", name)
        shared = files("stsbench.render").joinpath("templates", name)
        texts.append((own if own.is_file() else shared).read_text(encoding="utf-8"))
    # Our own files need no escaping. The hashes in the policy include the line breaks.
    return Markup("\n" + "".join(texts))


@dataclass(frozen=True)
class ReportFigure:
    """A figure of a report.

    Attributes:
        name: its anchor and file name.
        caption: what it shows.
        alt: its alternative text.
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
        fold: `open` or `closed` for a section that can be folded, by its initial state; empty for others.
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
    """A section, and sentences about its missing parts, such as runs that could not be checked."""

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
