"""Charts that several rooms use: lines with bands, forest plots, curves over training steps."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from stsbench.render import one_line
from stsbench.render.figures import (
    ONE_COLOUR,
    add_tooltips,
    colours,
    legend_above,
    new_figure,
    shortened,
    spoken,
    style,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

_MOST_TOOLTIPS = 16
"""Maximum number of tooltips per line."""

_MOST_TICKS = 13
"""Maximum number of labelled places along an axis: with more, every second or third has a label."""

_LONGEST_LEVEL = 5
"""Characters of the longest label that is not slanted."""

_ROW_HEIGHT = 0.22
_MARGINS = 0.75
"""Inches per row, and inches for the axis and its label."""

_LABEL_CHARACTERS = 13
"""Characters of the axis label per inch of the figure's width, part of which row labels take."""


def line(
    axes: "Axes",
    name: str,
    x: "ArrayLike",
    y: "ArrayLike",
    colour: str,
    *,
    low: "ArrayLike | None" = None,
    high: "ArrayLike | None" = None,
    places: Sequence[str] | None = None,
    shade: float = 0.2,
    **drawn: Any,
) -> None:
    """Draws a line with the band of its intervals and tooltips.

    Args:
        axes: the axes to draw on.
        name: legend entry of the line.
        x: (n,) coordinates.
        y: (n,) values; NaN for missing ones.
        colour: of the line.
        low: (n,) lower limits; NaN or None for no band.
        high: (n,) upper limits.
        places: names of the coordinates in tooltips; by default the numbers.
        shade: opacity of the band, from 0 to 1.
        **drawn: options of matplotlib's `plot`.
    """
    import numpy as np

    across, values = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    none = np.full(len(values), np.nan)
    under, over = (none if limit is None else np.asarray(limit, dtype=float) for limit in (low, high))
    axes.plot(across, values, **{"color": colour, "label": name, **drawn})
    if not np.isnan(under).all():
        axes.fill_between(across, under, over, color=colour, alpha=shade, lw=0)
    known = np.flatnonzero(~np.isnan(values))
    # Readers step through tooltips one by one, so long curves have only some.
    marked = known[np.unique(np.linspace(0, len(known) - 1, min(len(known), _MOST_TOOLTIPS)).round().astype(int))]
    shown_places = [f"{across[at]:g}" if places is None else places[at] for at in marked]
    shown = name.removeprefix("_")
    texts = [
        f"{shown}, {where}: {spoken(values[at], under[at], over[at])}"
        for at, where in zip(marked, shown_places, strict=True)
    ]
    add_tooltips(axes, across[marked].tolist(), values[marked].tolist(), texts)


def draw_by_model(axes: "Axes", rows: "pd.DataFrame", palette: Mapping[str, str]) -> None:
    """Draws values with intervals along an axis, models side by side.

    Args:
        axes: the axes to draw on.
        rows: columns `model`, `place`, `value`, `low` and `high` (NaN for no interval).
        palette: the colours of the models.
    """
    places = {place: number for number, place in enumerate(dict.fromkeys(rows["place"]))}
    step = 0.7 / max(1, len(palette))
    for number, (model, colour) in enumerate(palette.items()):
        part = rows[rows["model"] == model]
        x = part["place"].map(places) + step * (number - (len(palette) - 1) / 2)
        axes.vlines(x, part["low"], part["high"], color=colour, linewidth=1.2)
        axes.plot(x, part["value"], color=colour, marker="o", markersize=3, linestyle="", label=model)
        numbers = part[["value", "low", "high"]].itertuples(index=False)
        texts = [f"{model}, {place}: {spoken(*of)}" for place, of in zip(part["place"], numbers, strict=True)]
        add_tooltips(axes, x.tolist(), part["value"].tolist(), texts)
    every = max(1, -(-len(places) // _MOST_TICKS))
    names = [str(place) for place in places][::every]
    # Labels as short as numbers are read more easily without a slant.
    is_short = max(map(len, names), default=0) <= _LONGEST_LEVEL
    rotation, ha = (0, "center") if is_short else (45, "right")
    axes.set_xticks(range(0, len(places), every), names, rotation=rotation, ha=ha)
    axes.set_xlim(-0.5, len(places) - 0.5)


def plain_logarithms(axis: "Axis") -> None:
    """Labels a logarithmic axis with plain numbers instead of formulas."""
    from matplotlib.ticker import LogLocator

    low, high = sorted(axis.get_view_interval())
    if high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")


def forest(rows: "pd.DataFrame", label: str, *, reference: float | None = None) -> "Figure":
    """Returns a forest plot.

    Args:
        rows: columns `label` (one row each, from the top), `series` (one colour each, grouped by label), `value`,
            `low`, `high` (NaN for no interval), `filled` (or hollow) and `summary` (a diamond).
        label: label of the axis.
        reference: position of a vertical line to compare with.
    """
    places = {name: place for place, name in enumerate(dict.fromkeys(rows["label"]))}
    names = list(dict.fromkeys(rows["series"]))
    series = colours(names) if len(names) > 1 else dict.fromkeys(names, ONE_COLOUR)
    step = 0.6 / len(series)
    offsets = {name: (place - (len(series) - 1) / 2) * step for place, name in enumerate(series)}
    lines = len(places) * (1 if len(series) == 1 else 1.5)
    with style():
        figure = new_figure(_MARGINS + _ROW_HEIGHT * lines)
        axes = figure.add_subplot()
        if reference is not None:
            axes.axvline(reference, color="0.4", linewidth=0.8, zorder=1)
        named: set[str] = set()
        for row in rows.to_dict("records"):
            y = places[row["label"]] + offsets[row["series"]]
            colour = series[row["series"]]
            # One legend entry per series: its first interval, or its first mark.
            is_first = len(series) > 1 and row["series"] not in named
            named.add(row["series"])
            has_interval = row["high"] > row["value"]
            name = row["series"] if is_first else None
            axes.plot(
                [row["low"], row["high"]], [y, y], color=colour, zorder=2, label=name if has_interval else None
            )
            axes.plot(
                [row["value"]],
                [y],
                color=colour,
                marker="D" if row["summary"] else "o",
                markersize=4.5,
                markerfacecolor=colour if row["filled"] else "white",
                markeredgecolor=colour,
                linestyle="none",
                zorder=3,
                label=None if has_interval else name,
            )
            of = ", ".join(filter(None, (one_line(row["label"]), one_line(row["series"]))))
            add_tooltips(axes, [row["value"]], [y], [f"{of}: {spoken(row['value'], row['low'], row['high'])}"])
        axes.set_yticks(list(places.values()), list(map(shortened, places)))
        axes.set_ylim(len(places) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(fill(one_line(label), int(figure.get_figwidth() * _LABEL_CHARACTERS)))
        legend_above(figure, axes)
    return figure


def curves(points: "Mapping[str, pd.DataFrame]", label: str, methods: Mapping[str, str] | None = None) -> "Figure":
    """Returns a figure of curves over training steps.

    Args:
        points: tables with the columns `step` and `value`, by name.
        label: label of the values.
        methods: the method of each name, for seeds of one method, which share a colour and a legend entry.
    """
    named = {name: (methods or {}).get(name, name) for name in points}
    palette = colours(list(named.values()))
    drawn: set[str] = set()
    with style():
        figure = new_figure()
        axes = figure.add_subplot()
        for name, curve in points.items():
            method = named[name]
            # matplotlib leaves labels with a leading underscore out of the legend.
            legend = method if method not in drawn else f"_{method}"
            drawn.add(method)
            line(axes, legend, curve["step"], curve["value"], palette[method])
        axes.set_xlabel("step")
        axes.set_ylabel(label)
        legend_above(figure, axes)
    return figure
