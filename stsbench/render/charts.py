"""Charts of more than one subject: forest plots of intervals, curves over the steps of trainings."""

from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING

from stsbench.render.cells import one_line
from stsbench.render.figures import COLUMN_WIDTH, colours, legend_above, new_figure, shortened, style

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
