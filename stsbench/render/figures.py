"""Figures in the house style: a paper's column wide, safe for the colour-blind, one colour per model.

Charts of several rooms stand here: forest plots of intervals, and curves over the steps of trainings.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from io import BytesIO, StringIO
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from stsbench.base.errors import UserError
from stsbench.render.cells import one_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN_WIDTH = 3.3
"""Inches: a column of a two-column paper."""

FORMATS = ("png", "svg", "pdf")

# Okabe and Ito (2008), told apart with any colour vision; its yellow is too pale for lines on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

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

# Of the legend's font size; a legend's line sample takes as much room as some letters.
_CHARACTERS_PER_INCH = 20
_HANDLE_CHARACTERS = 10
_LEGEND_LINE = 0.13

_PIXELS_PER_INCH = 144
"""Half as large again as CSS has an inch: the 8 points of a figure are then as large as the text around it."""


@contextmanager
def style() -> Iterator[None]:
    """Draw in the house style inside this block, whatever the person's own settings are."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def new_figure(width: float = COLUMN_WIDTH, height: float = 2.4) -> "Figure":
    """Return an empty figure of so many inches, known to no window: it needs no screen. Notebooks show it."""
    return _shown_figure()(figsize=(width, height))


def colours(names: Sequence[str]) -> dict[str, str]:
    """Return a colour for each name, in their order; beyond seven they come again.

    A model keeps its colour in every figure that is given the same names.

    >>> colours(["a", "b", "a"])
    {'a': '#0072B2', 'b': '#D55E00'}
    """
    return {name: _COLOURS[place % len(_COLOURS)] for place, name in enumerate(dict.fromkeys(names))}


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
    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with style(), told_as_unwritable(path), atomic_path(path) as temporary:
        figure.savefig(temporary, format=kind, metadata=dated.get(kind))
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

    As many names stand side by side as fit into the figure's width; longer ones are broken; for each further line
    the figure grows.
    """
    handles, names = axes.get_legend_handles_labels()
    if not names:
        return
    width = int(figure.get_figwidth() * _CHARACTERS_PER_INCH)
    labels = [fill(shortened(str(name)), width - _HANDLE_CHARACTERS) for name in names]
    columns = max(1, min(len(labels), width // (max(map(len, names)) + _HANDLE_CHARACTERS)))
    lines = -(-len(labels) // columns) + sum(label.count("\n") for label in labels)
    figure.set_figheight(figure.get_figheight() + (lines - 1) * _LEGEND_LINE)
    figure.legend(handles, labels, loc="outside upper left", ncols=columns)


_ROW_HEIGHT = 0.22
_MARGINS = 0.75
"""Inches: of each line, and of axis and label together."""

_LABEL_WIDTH = 45
"""Characters of the axis label that fit on a line."""


def forest(rows: "pd.DataFrame", label: str, *, reference: float | None = None) -> "Figure":
    """Return a forest plot.

    Args:
        rows: columns label (a line each, in this order, from the top), series (a colour each; lines of one label
            stand together), value, low, high (NaN for no interval), filled (or hollow), summary (a diamond).
        label: of the axis.
        reference: where to draw a line to compare with.
    """
    places = {name: place for place, name in enumerate(dict.fromkeys(rows["label"]))}
    series = colours(list(rows["series"]))
    step = 0.6 / len(series)
    offsets = {name: (place - (len(series) - 1) / 2) * step for place, name in enumerate(series)}
    lines = len(places) * (1 if len(series) == 1 else 1.5)
    with style():
        figure = new_figure(COLUMN_WIDTH, _MARGINS + _ROW_HEIGHT * lines + (0.25 if len(series) > 1 else 0))
        axes = figure.add_subplot()
        if reference is not None:
            axes.axvline(reference, color="0.4", linewidth=0.8, zorder=1)
        for row in rows.to_dict("records"):
            y = places[row["label"]] + offsets[row["series"]]
            colour = series[row["series"]]
            axes.plot([row["low"], row["high"]], [y, y], color=colour, zorder=2)
            axes.plot(
                [row["value"]],
                [y],
                marker="D" if row["summary"] else "o",
                markersize=4.5,
                markerfacecolor=colour if row["filled"] else "white",
                markeredgecolor=colour,
                linestyle="none",
                zorder=3,
            )
        axes.set_yticks(list(places.values()), list(map(shortened, places)))
        axes.set_ylim(len(places) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(fill(one_line(label), _LABEL_WIDTH))
        if len(series) > 1:
            handles = [
                axes.plot([], [], color=colour, marker="o", markersize=4.5)[0] for colour in series.values()
            ]
            figure.legend(handles, list(map(shortened, series)), loc="outside upper center", ncols=len(series))
    return figure


def curves(points: "Mapping[str, pd.DataFrame]", label: str, methods: Mapping[str, str] | None = None) -> "Figure":
    """Return a figure of some curves.

    Args:
        points: by name a table with the columns `step` and `value`.
        label: of the values.
        methods: for the names that are seeds of one method, the method: they share its colour and its name.
    """
    named = {name: (methods or {}).get(name, name) for name in points}
    palette = colours(list(named.values()))
    drawn: set[str] = set()
    with style():
        figure = new_figure()
        axes = figure.add_subplot()
        for name, curve in points.items():
            method = named[name]
            # A label that begins with an underscore is none to matplotlib: one line in the legend for all seeds.
            legend = method if method not in drawn else f"_{method}"
            drawn.add(method)
            axes.plot(curve["step"], curve["value"], color=palette[method], label=legend)
        axes.set_xlabel("step")
        axes.set_ylabel(label)
        legend_above(figure, axes)
    return figure


def draw_by_model(axes: "Axes", rows: "pd.DataFrame", palette: Mapping[str, str]) -> None:
    """Draw values with their intervals at some places along an axis, model beside model.

    Args:
        axes: what to draw on.
        rows: with the columns `model`, `place`, `value`, `low` and `high`; NaN where there is no interval.
        palette: each model's colour.
    """
    places = {place: number for number, place in enumerate(dict.fromkeys(rows["place"]))}
    step = 0.7 / max(1, len(palette))
    for number, (model, colour) in enumerate(palette.items()):
        part = rows[rows["model"] == model]
        x = part["place"].map(places) + step * (number - (len(palette) - 1) / 2)
        axes.vlines(x, part["low"], part["high"], color=colour, linewidth=1.2)
        axes.plot(x, part["value"], color=colour, marker="o", markersize=3, linestyle="", label=model)
    axes.set_xticks(range(len(places)), [str(place) for place in places], rotation=45, ha="right")
    axes.set_xlim(-0.5, len(places) - 0.5)


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
    """Return a figure as SVG, without a date inside: the bytes that its `savefig` writes.

    That draws a figure twice, the first time for nothing but its layout, which drawing begins with anyway.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    text, dpi = StringIO(), figure.dpi
    with style():
        FigureCanvasSVG(figure).print_svg(text, metadata={"Date": None})
    figure.dpi = dpi
    return text.getvalue()
