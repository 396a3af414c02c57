"""Forest plots: values with their intervals, one below the other."""

from textwrap import fill
from typing import TYPE_CHECKING

from stsbench.render.figures import COLUMN_WIDTH, colours, new_figure, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

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
        axes.set_yticks(list(places.values()), list(places))
        axes.set_ylim(len(places) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(fill(label, _LABEL_WIDTH))
        if len(series) > 1:
            handles = [
                axes.plot([], [], color=colour, marker="o", markersize=4.5)[0] for colour in series.values()
            ]
            figure.legend(handles, list(series), loc="outside upper center", ncols=len(series))
    return figure
