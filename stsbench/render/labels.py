"""The names of what is drawn, at the lines themselves; in a legend only where there is no room for that."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

from stsbench.render.figures import CHARACTERS_PER_INCH, LETTERS, LINE, legend_above, shortened, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_ROOM = 0.36
"""Of a figure's width, what names beside its lines may take at most."""

_MOST_LINES = 3
_GAP = 4
"""Points between a line's end and its name."""

_LABEL_CHARACTERS = 17
"""Letters of the label of an axis in an inch."""


def dark(colour: str) -> str:
    """Return a colour dark enough for letters on white, by WCAG 2.1 (level AA, a contrast of 4.5).

    >>> dark("#000000"), dark("#E69F00")
    ('#000000', '#9c6c00')
    """
    from matplotlib.colors import to_hex, to_rgb

    rgb = to_rgb(colour)
    for step in range(100):
        shade = [channel * (1 - step / 100) for channel in rgb]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in shade]
        light = sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
        if 1.05 / (light + 0.05) >= 4.5:
            return to_hex(shade)
    return "#000000"


def apart(wanted: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float]:
    """Return where labels go that want to stand at some places: in that order, none over another, all in reach.

    Args:
        wanted: the middle of each label, in any order.
        sizes: of each label, along the same axis.
        low: where their reach begins.
        high: where it ends; labels that take more overlap.

    >>> apart([5.0, 5.2, 0.1], [1, 1, 1], 0, 10)
    [4.6, 5.6, 0.5]
    """
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    # Labels that touch become a block, which stands at the mean of what its labels want (isotonic regression).
    blocks: list[list[float]] = []
    before = 0.0
    for place in order:
        blocks.append([wanted[place] - before - sizes[place] / 2, 1])
        before += sizes[place]
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (first, count), (last, more) = blocks[-2:]
            blocks[-2:] = [[(first * count + last * more) / (count + more), count + more]]
    starts = [start for start, count in blocks for _ in range(int(count))]
    places, done = [0.0] * len(wanted), 0.0
    for place, start in zip(order, starts, strict=True):
        places[place] = min(max(start, low), high - before) + done + sizes[place] / 2
        done += sizes[place]
    return places


def text_width(text: str) -> float:
    """Return how many inches the widest line of a name takes."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    measure, font = TextToPath(), FontProperties(size=LETTERS)
    widths = [measure.get_text_width_height_descent(line, font, False)[0] for line in text.split("\n")]
    return float(max(widths)) / 72


class _End(NamedTuple):
    """What a line or a point is called, and where that belongs: in data, and as shares of the axes."""

    label: str
    colour: str
    data: tuple[float, float]
    at: tuple[float, float]


def label_lines(figure: "Figure", axes: "Axes", *, beside: bool = False) -> None:
    """Write the name of each line at its right end, outside the axes, in its colour; of lone points beside them.

    Names that are too long or too many for that stand in a legend above the figure. To be called last: the limits
    of the axes are fixed by it.

    Args:
        figure: the figure.
        axes: of it, whose labelled lines or points are named.
        beside: whether lines, too, are named beside their ends, inside the axes.
    """
    handles, names = axes.get_legend_handles_labels()
    if not names:
        return
    room = _ROOM * figure.get_figwidth()
    labels = [fill(shortened(str(name)), max(8, int(room * CHARACTERS_PER_INCH * 0.9))) for name in names]
    with style():
        figure.draw_without_rendering()
    height = axes.get_window_extent().height / figure.dpi
    lines = [1 + label.count("\n") for label in labels]
    # Inside the axes a second line of a name would lie on what is drawn below it.
    most = 1 if beside else _MOST_LINES
    fits = max(map(text_width, labels)) <= room and sum(lines) * LINE <= height and max(lines) <= most
    known = _ends_of(axes, handles, labels)
    if not fits or len(known) < len(labels):
        legend_above(figure, axes)
        return
    axes.set_xlim(axes.get_xlim())
    axes.set_ylim(axes.get_ylim())
    width = axes.get_window_extent().width / figure.dpi
    if beside:
        # Room inside the axes behind each end: a name to the left of it would lie on its own line.
        shares = [(text_width(end.label) + 2 * _GAP / 72) / width for end in known]
        more = max(end.at[0] / (1 - share) for end, share in zip(known, shares, strict=True))
        low, high = axes.get_xlim()
        axes.set_xlim(low, low + (high - low) * max(more, 1.0))
        known = _ends_of(axes, handles, labels)
    if beside or all(hasattr(handle, "get_offsets") for handle in handles):
        # To the left where the axes end on the right.
        left = [bool(end.at[0] > 0.5 and end.at[0] * width + text_width(end.label) > width) for end in known]
        for side in (False, True):
            of_side = [end for end, is_left in zip(known, left, strict=True) if is_left is side]
            _write(axes, of_side, height, side="left" if side else "point")
    else:
        _write(axes, known, height, side="right")
        # What stands on the right has taken room from what stands below.
        left_over = axes.get_window_extent().width / figure.dpi - max(map(text_width, labels))
        below = axes.figure.axes[-1]
        below.set_xlabel(fill(below.get_xlabel(), max(12, int(left_over * _LABEL_CHARACTERS))))


def _ends_of(axes: "Axes", handles: Sequence[Any], labels: Sequence[str]) -> list[_End]:
    """Return the ends of those lines that have any."""
    ends = (_end_of(axes, handle, label) for handle, label in zip(handles, labels, strict=True))
    return [end for end in ends if end is not None]


def _end_of(axes: "Axes", handle: Any, label: str) -> _End | None:
    """Return where a line ends or a point lies; None for what is neither."""
    import numpy as np
    from matplotlib.colors import to_hex

    if hasattr(handle, "lines"):  # error bars
        handle = handle.lines[0]
    if hasattr(handle, "get_offsets"):
        points, colour = np.asarray(handle.get_offsets(), float), handle.get_edgecolor()[0]
    elif hasattr(handle, "get_xydata"):
        points, colour = np.asarray(handle.get_xydata(), float), handle.get_color()
    else:
        return None
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        return None
    x, y = points[points[:, 0].argmax()]
    across, up = (axes.transScale + axes.transLimits).transform((x, y))
    return _End(label, to_hex(colour), (float(x), float(y)), (float(across), float(up)))


def _write(axes: "Axes", ends: list[_End], height: float, side: str) -> None:
    line = LINE / height
    sizes = [line * (1 + end.label.count("\n")) for end in ends]
    places = apart([end.at[1] for end in ends], sizes, 0.0, max(1.0, sum(sizes)))
    for end, place in zip(ends, places, strict=True):
        across = 1.0 if side == "right" else end.at[0]
        is_moved = abs(place - end.at[1]) > line / 2 or abs(across - end.at[0]) > 0.05
        how: dict[str, Any] = {"ha": "right" if side == "left" else "left", "va": "center"}
        if is_moved:
            # Dotted, as no interval is.
            thin = {
                "arrowstyle": "-",
                "color": end.colour,
                "linewidth": 0.6,
                "linestyle": (0, (1, 3)),
                "shrinkB": 2,
            }
            how |= {"arrowprops": thin}
        axes.annotate(
            end.label,
            xy=end.data,
            xytext=(across, place),
            textcoords=_shifted(axes, -1 if side == "left" else 1),
            fontsize=LETTERS,
            color=dark(end.colour),
            annotation_clip=False,
            **how,
        )


def _shifted(axes: "Axes", sign: int) -> Any:
    """Return the coordinates of the axes' shares, some points to the right or left."""
    from matplotlib.transforms import ScaledTranslation

    return axes.transAxes + ScaledTranslation(sign * _GAP / 72, 0, axes.figure.dpi_scale_trans)


def label_above(figure: "Figure", axes: "Axes", places: Mapping[str, tuple[float, str]]) -> None:
    """Write names above the axes, each over its place on the x axis: of lines that stand upright.

    Args:
        figure: the figure.
        axes: of it.
        places: by name the x coordinate, in data, and the colour. Names that do not fit side by side stand in a
            legend, if the axes have handles of that name.
    """
    labels = [shortened(name, 48) for name in places]
    with style():
        figure.draw_without_rendering()
    box = axes.get_window_extent()
    width = box.width / figure.dpi
    sizes = [(text_width(label) + 0.12) / width for label in labels]
    if sum(sizes) > 1:
        legend_above(figure, axes)
        return
    axes.set_xlim(axes.get_xlim())
    wanted = [
        float((axes.transScale + axes.transLimits).transform((x, axes.get_ylim()[1]))[0])
        for x, _ in places.values()
    ]
    for label, (x, colour), place, want in zip(
        labels, places.values(), apart(wanted, sizes, 0.0, 1.0), wanted, strict=True
    ):
        axes.annotate(
            label,
            xy=(x, 1.0),
            xycoords=axes.get_xaxis_transform(),
            xytext=(place, 1.0 + 0.06 / (box.height / figure.dpi)),
            textcoords=axes.transAxes,
            fontsize=LETTERS,
            color=dark(colour),
            ha="center",
            va="bottom",
            annotation_clip=False,
            arrowprops=None
            if abs(place - want) < 0.03
            else {"arrowstyle": "-", "color": colour, "linewidth": 0.5},
        )
