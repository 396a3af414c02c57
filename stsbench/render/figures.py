"""Figures in the house style: two widths, colour-blind safe, one colour per model.

A block `with look(size)` sets the width of all figures made inside it, and `keep_colours` the models that share
colours. `svg_of` and `inline` write figures without style sheets, which the content security policy of our pages
forbids. Charts that several rooms use are in `stsbench.render.charts`.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from io import BytesIO, StringIO
from math import isnan, nan
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from xml.etree import ElementTree
from zlib import crc32

from stsbench.base.errors import UserError
from stsbench.render import one_line

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes

    Figure = matplotlib.figure.Figure
else:
    Figure = Any  # for annotations: matplotlib is imported when something is drawn

FigureSize = Literal["column", "page"]

WIDTHS: dict[FigureSize, float] = {"column": 3.3, "page": 5.0}
"""Inches: a column of a two-column paper; a page of our reports, or of a one-column paper."""

FORMATS = ("png", "svg", "pdf")

# Okabe and Ito (2008), distinguishable with any colour vision, without the yellow, which is too pale for lines on
# white. In this order the packaged model is blue.
_COLOURS = ("#CC79A7", "#E69F00", "#009E73", "#0072B2", "#56B4E9", "#000000", "#D55E00")

ONE_COLOUR = "#0072B2"
"""The colour of anything that does not belong to a model, such as differences."""

_STYLE = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "lines.linewidth": 1.2,
    "figure.constrained_layout.use": True,
    # Names may contain dollar signs.
    "text.parse_math": False,
    "savefig.dpi": 200,
    # Text stays text, and saving a figure twice gives the same bytes.
    "svg.fonttype": "none",
    "svg.hashsalt": "stsbench",
}

# Legends: inches per line, characters per inch, and the width of a line sample in characters.
_LINE = 0.125
_CHARACTERS_PER_INCH = 20
_HANDLE_CHARACTERS = 10

_PIXELS_PER_INCH = 144
"""At 1.5 times the resolution of CSS, the 8-point letters of a figure are as large as the text around it."""


@dataclass(frozen=True)
class Look:
    """Common settings of figures.

    Attributes:
        size: the width, a key of `WIDTHS`.
        models: names that share the colours, such as those of a report.
    """

    size: FigureSize = "column"
    models: tuple[str, ...] = ()

    @property
    def stretch(self) -> float:
        """The factor of the height relative to a column: half of the gain in width."""
        return (1 + WIDTHS[self.size] / WIDTHS["column"]) / 2


_PLAIN = Look()
_LOOK: ContextVar[Look] = ContextVar("look", default=_PLAIN)


@contextmanager
def look(size: FigureSize) -> Iterator[None]:
    """Sets the size of the figures made inside a block or decorated function; the default is `column`."""
    if size not in WIDTHS:
        raise UserError(f"no figure size {size!r}: choose {' or '.join(f'`{name}`' for name in WIDTHS)}.")
    token = _LOOK.set(replace(_LOOK.get(), size=size))
    try:
        yield
    finally:
        _LOOK.reset(token)


def keep_colours(names: Sequence[str]) -> None:
    """Gives names the same colours in all figures until the surrounding block `look` ends."""
    _LOOK.set(replace(_LOOK.get(), models=tuple(names)))


@contextmanager
def style() -> Iterator[None]:
    """Uses the house style inside a block, regardless of your matplotlib settings."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def new_figure(height: float = 2.4, *, least: float = 0.0) -> "Figure":
    """Returns an empty figure that needs no screen; notebooks show it.

    Args:
        height: inches, for the width of a column.
        least: minimum width in inches.
    """
    now = _LOOK.get()
    return _shown_figure()(figsize=(max(WIDTHS[now.size], least), height * now.stretch))


def colours(names: Sequence[str]) -> dict[str, str]:
    """Returns a colour for each name; more than seven names repeat colours.

    A name has the same colour in every figure, unless an earlier name of the figure has it. The names of
    `keep_colours` come first.

    >>> colours(["minilm", "glove", "minilm"])
    {'minilm': '#0072B2', 'glove': '#009E73'}
    """
    taken: dict[str, str] = {}
    free: list[int] = []
    for name in dict.fromkeys([*_LOOK.get().models, *names]):
        free = free or list(range(len(_COLOURS)))
        first = crc32(name.encode("utf-8", "surrogatepass")) % len(_COLOURS)
        place = min(free, key=lambda place: (place - first) % len(_COLOURS))
        free.remove(place)
        taken[name] = _COLOURS[place]
    return {name: taken[name] for name in dict.fromkeys(names)}


def figure_kind(path: Path) -> str:
    """Returns the format of a figure by the suffix of its file.

    >>> figure_kind(Path("plane.PDF"))
    'pdf'
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise UserError(f"cannot write a figure to {path}: end its name in one of .{', .'.join(FORMATS)}.")
    return kind


def save_figure(figure: "Figure", path: str | Path) -> Path:
    """Writes a figure atomically, in the format of the suffix."""
    from stsbench.base.files import atomic_path, writing

    path = Path(path).expanduser()
    kind = figure_kind(path)
    # Without a date inside, the same figure is the same file.
    with style(), writing(path), atomic_path(path) as temporary:
        if kind == "svg":
            temporary.write_text(svg_of(figure), encoding="utf-8", newline="")
        else:
            figure.savefig(temporary, format=kind, metadata={"CreationDate": None} if kind == "pdf" else None)
    return path


def shortened(name: str, characters: int = 80) -> str:
    """Returns a name on one line, shortened in the middle if it is too long for a figure.

    >>> shortened("a" * 30 + "b" * 30, 9)
    'aaaa…bbbb'
    """
    name = one_line(name)
    half = (characters - 1) // 2
    return name if len(name) <= characters else f"{name[:half]}…{name[-half:]}"


def legend_above(figure: "Figure", axes: "Axes") -> None:
    """Puts the legend of some axes above the figure, in as many columns as fit; the figure grows by its height."""
    handles, names = axes.get_legend_handles_labels()
    if not names:
        return
    width = int(figure.get_figwidth() * _CHARACTERS_PER_INCH)
    labels = [fill(shortened(str(name)), width - _HANDLE_CHARACTERS) for name in names]
    columns = max(1, min(len(labels), width // (max(map(len, names)) + _HANDLE_CHARACTERS)))
    lines = -(-len(labels) // columns) + sum(label.count("\n") for label in labels)
    figure.set_figheight(figure.get_figheight() + (lines - 1) * _LINE)
    figure.legend(handles, labels, loc="outside upper left", ncols=columns)


class Mark(NamedTuple):
    """A point with a tooltip: its axes, its data coordinates, and the text."""

    axes: "Axes"
    x: float
    y: float
    text: str


def add_tooltips(axes: "Axes", xs: "Sequence[float]", ys: "Sequence[float]", texts: Sequence[str]) -> None:
    """Attaches tooltips to points of the axes; `svg_of` writes them."""
    marks = [Mark(axes, float(x), float(y), one_line(text)) for x, y, text in zip(xs, ys, texts, strict=True)]
    figure = axes.figure
    figure.marks = (*getattr(figure, "marks", ()), *marks)  # type: ignore[union-attr]


def spoken(value: float, low: float = nan, high: float = nan) -> str:
    """Formats a value and its interval as text for a tooltip.

    >>> spoken(78.874), spoken(78.874, 77.9, 79.85)
    ('78.87', '78.87 (77.9 to 79.85)')
    """
    return f"{value:.4g}" if isnan(low) or isnan(high) else f"{value:.4g} ({low:.4g} to {high:.4g})"


@cache
def _shown_figure() -> "type[Figure]":
    # A function, because matplotlib takes long to import.
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        """A matplotlib figure without a window that Jupyter displays."""

        def _ipython_display_(self) -> None:
            from IPython.display import Image, display

            png = BytesIO()
            with style():
                self.savefig(png, format="png")
            width = round(self.get_figwidth() * _PIXELS_PER_INCH)
            display(Image(png.getvalue(), format="png", width=width, alt=described(self)))

    return ShownFigure


def described(figure: Any) -> str:
    """Returns a description of a figure: the axes of each panel and the names in its legends.

    >>> figure = new_figure()
    >>> axes = figure.add_subplot()
    >>> _ = axes.set_xlabel("step"), axes.set_ylabel("loss"), axes.plot([1, 2], label="minilm"), axes.legend()
    >>> described(figure)
    'Figure: loss over step; minilm'
    """
    panels = []
    for axes in figure.axes:
        x, y, title = axes.get_xlabel(), axes.get_ylabel(), axes.get_title()
        over = f"{y} over {x}" if x and y else x or y
        panels.append(": ".join(filter(None, (title, over))))
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes)]
    names = [text.get_text() for legend in legends if legend for text in legend.get_texts()]
    words = "; ".join([*filter(None, panels), *([", ".join(names)] if names else [])])
    return f"Figure: {' '.join(words.split())}"


def svg_of(figure: "Figure") -> str:
    """Returns a figure as SVG, without a date inside.

    Each tooltip of `add_tooltips` becomes a transparent circle of the class `mark` with a `title`, which browsers
    show and the keyboard reaches. Points outside their axes are left out.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    text, dpi = StringIO(), figure.dpi
    with style():
        FigureCanvasSVG(figure).print_svg(text, metadata={"Date": None})
    # While the figure has the resolution of the drawing, an inch is 72 units.
    values = []
    for mark in getattr(figure, "marks", ()):
        x, y = mark.axes.transData.transform((mark.x, mark.y))
        if mark.axes.bbox.padded(1).contains(x, y):
            values.append((float(x), float(figure.bbox.height - y), mark.text))
    figure.dpi = dpi
    return finished(text.getvalue(), described(figure), values)


_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_HREF = f"{{{_LINK}}}href"

_REACH = 5
"""Radius of a tooltip, in points."""

_WIDE = 4
"""Inches; wider figures scroll on a phone."""

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FONT = re.compile(r"^(?P<before>.*?)(?P<size>[\d.]+px) (?P<family>.+)$")


def finished(svg: str, label: str, values: Sequence[tuple[float, float, str]]) -> str:
    """Returns a drawing of matplotlib without style sheets and with tooltips.

    Args:
        svg: the drawing.
        label: its description.
        values: coordinates from the upper left corner, and text, of each tooltip.
    """
    for prefix, address in (("", _SVG), ("xlink", _LINK)):
        ElementTree.register_namespace(prefix, address)
    root = ElementTree.fromstring(_NOT_XML.sub("\ufffd", svg))
    _plain(root)
    root.set("role", "group")
    root.set("aria-label", _NOT_XML.sub("\ufffd", label))
    root.extend(_circle(*value) for value in values)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def inline(svg: str, name: str) -> str:
    """Returns the SVG of a figure for inclusion in a page: without a header, with unique ids.

    Args:
        svg: as returned by `svg_of`.
        name: the name of the figure, unique in the page.
    """
    root = ElementTree.fromstring(svg)
    for each in root.iter():
        for key, value in each.attrib.items():
            if key in {"id", _HREF} or value.startswith("url(#"):
                before, hash_, after = value.rpartition("#")
                each.set(key, f"{before}{hash_}{name}-{after}")
    # Scale to 144 pixels per inch, so that letters are as large as the text of the page.
    inches = float(root.attrib["width"].removesuffix("pt")) / 72
    for side in ("width", "height"):
        root.set(side, f"{2 * float(root.attrib[side].removesuffix('pt')):g}")
    if inches > _WIDE:
        root.set("class", "wide")
    return ElementTree.tostring(root, encoding="unicode")


def _circle(x: float, y: float, text: str) -> "ElementTree.Element":
    where = {"cx": f"{x:.2f}", "cy": f"{y:.2f}", "r": str(_REACH)}
    look = {"class": "mark", "fill": "none", "pointer-events": "all", "tabindex": "0", "role": "img"}
    circle = ElementTree.Element(f"{{{_SVG}}}circle", where | look)
    ElementTree.SubElement(circle, f"{{{_SVG}}}title").text = _NOT_XML.sub("\ufffd", text)
    return circle


def _plain(root: "ElementTree.Element") -> None:
    """Turns style sheets and `style` into attributes, and drops what only matplotlib uses."""
    inner = {reference for each in root.iter() for reference in _references(each)}
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in {f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"}:
                parent.remove(child)
    for each in root.iter():
        if each.get("id") not in inner:
            each.attrib.pop("id", None)
        for declaration in filter(None, map(str.strip, each.attrib.pop("style", "").split(";"))):
            key, _, value = (part.strip() for part in declaration.partition(":"))
            each.attrib.update(_font(value) if key == "font" else {key: value})
    # The rules of the style sheet for all elements.
    root.set("stroke-linejoin", "round")
    root.set("stroke-linecap", "butt")


def _references(element: "ElementTree.Element") -> list[str]:
    return [
        value.removeprefix("url(").rstrip(")").removeprefix("#")
        for key, value in element.attrib.items()
        if key == _HREF or value.startswith("url(#")
    ]


def _font(value: str) -> dict[str, Any]:
    found = _FONT.match(value)
    assert found is not None, value
    words = {"italic": "font-style", "oblique": "font-style"}
    own = {words.get(word, "font-weight"): word for word in found["before"].split()}
    return {"font-size": found["size"], "font-family": found["family"], **own}
