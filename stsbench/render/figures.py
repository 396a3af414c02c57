"""Figures in the house style: of one of two widths, safe for the colour-blind, a colour for each model.

How wide a figure is, and which models share a report, is not passed from hand to hand: a block `with look(size)`
says it, and every figure made inside obeys. Charts that several rooms draw stand in `stsbench.render.charts`.
"""

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
from zlib import crc32

from stsbench.base.errors import UserError
from stsbench.render.cells import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FigureSize = Literal["column", "page"]

WIDTHS: dict[FigureSize, float] = {"column": 3.3, "page": 5.0}
"""Inches: a column of a two-column paper; the text of our own pages, or of a paper with one column."""

FORMATS = ("png", "svg", "pdf")

# Okabe and Ito (2008), told apart with any colour vision; its yellow is too pale for lines on white. They stand in
# the order in which the packaged model's own is the blue one.
_COLOURS = ("#CC79A7", "#E69F00", "#009E73", "#0072B2", "#56B4E9", "#000000", "#D55E00")

ONE_COLOUR = "#0072B2"
"""Of what is no model's: differences, ranges."""

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
    # A dollar sign in a name is a dollar sign.
    "text.parse_math": False,
    "savefig.dpi": 200,
    # Text stays text, and two savings of one figure are the same bytes.
    "svg.fonttype": "none",
    "svg.hashsalt": "stsbench",
}

# Of names beside lines and in legends: points, inches that a line of them takes, letters that fit into an inch.
LETTERS = 7
LINE = 0.125
CHARACTERS_PER_INCH = 20

_HANDLE_CHARACTERS = 10
"""The sample of a line in a legend takes as much room as some letters."""

_PIXELS_PER_INCH = 144
"""Half as large again as CSS has an inch: the 8 points of a figure are then as large as the text around it."""


@dataclass(frozen=True)
class Look:
    """What figures have in common.

    Attributes:
        size: how wide they are, a key of `WIDTHS`.
        models: the names that share the colours: those of a report, say.
    """

    size: FigureSize = "column"
    models: tuple[str, ...] = ()

    @property
    def stretch(self) -> float:
        """How much higher figures are than in a paper's column: half of what they are wider."""
        return (1 + WIDTHS[self.size] / WIDTHS["column"]) / 2


_PLAIN = Look()
_LOOK: ContextVar[Look] = ContextVar("look", default=_PLAIN)


@contextmanager
def look(size: FigureSize) -> Iterator[None]:
    """Give the figures that are made inside this block, or this function, a size: at first it is `column`.

    Raises:
        UserError: if there is no such size.
    """
    if size not in WIDTHS:
        raise UserError(f"a figure as wide as a {size!r}: choose {' or '.join(f'`{name}`' for name in WIDTHS)}.")
    token = _LOOK.set(replace(_LOOK.get(), size=size))
    try:
        yield
    finally:
        _LOOK.reset(token)


def keep_colours(names: Sequence[str]) -> None:
    """Give these names the same colours in all figures that are made until the block `look` around ends."""
    _LOOK.set(replace(_LOOK.get(), models=tuple(names)))


@contextmanager
def style() -> Iterator[None]:
    """Draw in the house style inside this block, whatever the person's own settings are."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def new_figure(height: float = 2.4, *, least: float = 0.0) -> "Figure":
    """Return an empty figure, known to no window: it needs no screen. Notebooks show it.

    Args:
        height: inches, in a paper's column; on a page it is a fourth higher.
        least: inches that what is drawn takes at least in width: wide tables have cells that no page decides.
    """
    now = _LOOK.get()
    return _shown_figure()(figsize=(max(WIDTHS[now.size], least), height * now.stretch))


def colours(names: Sequence[str]) -> dict[str, str]:
    """Return a colour for each name; beyond seven they come again.

    A name brings its own colour, the same in every figure. Where an earlier name of the figure has that, it gets
    the next; the names of `keep_colours` come before those of a figure.

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
    """Return the format that a figure's file name asks for.

    >>> figure_kind(Path("plane.PDF"))
    'pdf'
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise UserError(f"cannot write a figure to {path}: end its name in one of .{', .'.join(FORMATS)}.")
    return kind


def save_figure(figure: "Figure", path: str | Path) -> Path:
    """Write a figure whole, in the format that its name's ending says."""
    from stsbench.base.files import atomic_path, told_as_unwritable

    path = Path(path).expanduser()
    kind = figure_kind(path)
    # No date inside: the same figure is the same file.
    with style(), told_as_unwritable(path), atomic_path(path) as temporary:
        if kind == "svg":
            temporary.write_text(svg_of(figure), encoding="utf-8", newline="")
        else:
            figure.savefig(temporary, format=kind, metadata={"CreationDate": None} if kind == "pdf" else None)
    return path


def shortened(name: str, characters: int = 80) -> str:
    """Return a name on one line that fits into a figure: of a long one the beginning and the end.

    >>> shortened("a" * 30 + "b" * 30, 9)
    'aaaa…bbbb'
    """
    name = one_line(name)
    half = (characters - 1) // 2
    return name if len(name) <= characters else f"{name[:half]}…{name[-half:]}"


def legend_above(figure: "Figure", axes: "Axes") -> None:
    """Put a legend of what is drawn on some axes above all of the figure, where it covers no data.

    For names that find no room at their lines. As many stand side by side as fit into the figure's width; longer
    ones are broken; for each further line the figure grows.
    """
    handles, names = axes.get_legend_handles_labels()
    if not names:
        return
    width = int(figure.get_figwidth() * CHARACTERS_PER_INCH)
    labels = [fill(shortened(str(name)), width - _HANDLE_CHARACTERS) for name in names]
    columns = max(1, min(len(labels), width // (max(map(len, names)) + _HANDLE_CHARACTERS)))
    lines = -(-len(labels) // columns) + sum(label.count("\n") for label in labels)
    figure.set_figheight(figure.get_figheight() + (lines - 1) * LINE)
    figure.legend(handles, labels, loc="outside upper left", ncols=columns)


class Mark(NamedTuple):
    """A value that is drawn: on which axes, where in data, and what it says in words."""

    axes: "Axes"
    x: float
    y: float
    text: str


def tell(axes: "Axes", xs: "Sequence[float]", ys: "Sequence[float]", texts: Sequence[str]) -> None:
    """Say the numbers of some points of the axes, for readers of the SVG: see `svg_of`."""
    marks = [Mark(axes, float(x), float(y), one_line(text)) for x, y, text in zip(xs, ys, texts, strict=True)]
    figure = axes.figure
    figure.marks = (*getattr(figure, "marks", ()), *marks)  # type: ignore[union-attr]


def spoken(value: float, low: float = nan, high: float = nan) -> str:
    """Return a value with its interval, if it has one, in words.

    >>> spoken(78.874), spoken(78.874, 77.9, 79.85)
    ('78.87', '78.87 (77.9 to 79.85)')
    """
    return f"{value:.4g}" if isnan(low) or isnan(high) else f"{value:.4g} ({low:.4g} to {high:.4g})"


@cache
def _shown_figure() -> "type[Figure]":
    # Made when the first figure is: matplotlib takes long to import.
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        """A matplotlib figure of no window, which Jupyter would else tell of by its size alone."""

        def _ipython_display_(self) -> None:
            from IPython.display import Image, display

            png = BytesIO()
            with style():
                self.savefig(png, format="png")
            width = round(self.get_figwidth() * _PIXELS_PER_INCH)
            display(Image(png.getvalue(), format="png", width=width, alt=described(self)))

    return ShownFigure


def described(figure: Any) -> str:
    """Return what a figure shows in words: the axes of each panel, and the names in its legends.

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
    """Return a figure as SVG, without a date inside.

    Each value that was told of is a transparent circle of the class `mark` with a `title`, which browsers show at
    the pointer; the keyboard goes from one to the next. A value outside its axes is left out.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    from stsbench.render.svg import finished

    text, dpi = StringIO(), figure.dpi
    with style():
        FigureCanvasSVG(figure).print_svg(text, metadata={"Date": None})
    # While the figure is as it was drawn, an inch is 72 units, as in the drawing.
    values = []
    for mark in getattr(figure, "marks", ()):
        x, y = mark.axes.transData.transform((mark.x, mark.y))
        if mark.axes.bbox.padded(1).contains(x, y):
            values.append((float(x), float(figure.bbox.height - y), mark.text))
    figure.dpi = dpi
    return finished(text.getvalue(), described(figure), values)
