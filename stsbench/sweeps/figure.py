"""The figure of an axis: a measure over its values, with the band of its intervals."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stsbench.render.figures import colours, legend_above, new_figure, shortened, style
from stsbench.sweeps.experiment import label_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FEW_NAMES = 6
_SHORT_NAME = 12
"""So many labels, of so many characters, stand side by side under an axis; others are turned."""


def axis_figure(cells: "pd.DataFrame", axes: Sequence[str], axis: str, measure: str) -> "Figure":
    """Draw a measure over the values of an axis, a line for each choice of the other axes.

    Numbers stand where they are, other values side by side, without a line between them. The band, or the bar, is
    the interval; where there is none, the mean stands alone.

    Args:
        cells: as `cell_frame` returns them.
        axes: the names of all axes.
        axis: to draw over.
        measure: to draw.
    """
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    rows = cells[cells["measure"] == measure]
    numeric = is_numeric_dtype(rows[axis]) and not is_bool_dtype(rows[axis])
    others = [name for name in axes if name != axis]
    # Two choices may be written alike.
    lines = [
        (", ".join(map(label_of, key)), line)
        for key, line in (rows.groupby(others, sort=False) if others else [((), rows)])
    ]
    palette = list(colours([str(place) for place in range(len(lines))]).values())
    looks = [
        {"color": colour, "label": shortened(name) or None}
        for colour, (name, _) in zip(palette, lines, strict=True)
    ]
    with style():
        figure = new_figure()
        panel = figure.add_subplot()
        if numeric:
            for look, (_, line) in zip(looks, lines, strict=True):
                _draw_numbers(panel, line.sort_values(axis), axis, look)
        else:
            places = {value: place for place, value in enumerate(dict.fromkeys(rows[axis]))}
            for number, (look, (_, line)) in enumerate(zip(looks, lines, strict=True)):
                shift = 0.5 * ((number + 0.5) / len(lines) - 0.5)
                _draw_choices(panel, line, [places[value] + shift for value in line[axis]], look)
            _label_choices(panel, [label_of(value) for value in places])
        panel.set_xlabel(shortened(axis))
        panel.set_ylabel(shortened(measure))
        if others:
            legend_above(figure, panel)
    return figure


def _draw_numbers(panel: "Axes", line: "pd.DataFrame", axis: str, look: dict[str, Any]) -> None:
    """Draw means where their numbers are, with the band of their intervals."""
    panel.plot(line[axis], line["mean"], marker="o", markersize=3, **look)
    at = line[axis].astype(float)
    panel.fill_between(at, line["low"], line["high"], color=look["color"], alpha=0.2, lw=0)


def _draw_choices(panel: "Axes", line: "pd.DataFrame", at: list[float], look: dict[str, Any]) -> None:
    """Draw means side by side, without a line between them, with the bars of their intervals."""
    panel.plot(at, line["mean"], marker="o", markersize=3.5, linestyle="none", **look)
    panel.vlines(at, line["low"], line["high"], color=look["color"])


def _label_choices(panel: "Axes", labels: list[str]) -> None:
    is_turned = len(labels) > _FEW_NAMES or max(map(len, labels)) > _SHORT_NAME
    names = [shortened(label, 24) for label in labels]
    panel.set_xticks(
        range(len(labels)), names, rotation=30 if is_turned else 0, ha="right" if is_turned else "center"
    )
    panel.grid(visible=False, axis="x")
