"""Charts that several rooms draw: a line with its band, forest plots of intervals, curves over steps."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from stsbench.render.cells import one_line
from stsbench.render.figures import ONE_COLOUR, colours, new_figure, shortened, spoken, style, tell
from stsbench.render.labels import label_lines

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

_MOST_TOLD = 16
"""Points of a line whose numbers can be asked for."""

_ROW_HEIGHT = 0.22
_MARGINS = 0.75
"""Inches: of each line, and of axis and label together."""

_LABEL_CHARACTERS = 13
"""Characters of the axis label for each inch of the figure's width, part of which names take at its left."""


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
    """Draw a line with its name, the band of its intervals, and its numbers for whoever asks for them.

    Args:
        axes: where.
        name: of the line; `label_lines` writes it at its end.
        x: (n,) coordinates.
        y: (n,) values; NaN for none.
        colour: of the line.
        low: (n,) lower limits; NaN or nothing for none.
        high: (n,) upper limits.
        places: what each x is called, for values that are no numbers; by default the number.
        shade: of the band, from 0 to 1: less where many lie over one another.
        **drawn: how matplotlib draws the line.
    """
    import numpy as np

    across, values = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    none = np.full(len(values), np.nan)
    under, over = (none if limit is None else np.asarray(limit, dtype=float) for limit in (low, high))
    axes.plot(across, values, **{"color": colour, "label": name, **drawn})
    if not np.isnan(under).all():
        axes.fill_between(across, under, over, color=colour, alpha=shade, lw=0)
    known = np.flatnonzero(~np.isnan(values))
    # Of a long curve some of its points: a reader goes through them one by one.
    told = known[np.unique(np.linspace(0, len(known) - 1, min(len(known), _MOST_TOLD)).round().astype(int))]
    called = [f"{across[at]:g}" if places is None else places[at] for at in told]
    shown = name.removeprefix("_")
    texts = [
        f"{shown}, {where}: {spoken(values[at], under[at], over[at])}"
        for at, where in zip(told, called, strict=True)
    ]
    tell(axes, across[told].tolist(), values[told].tolist(), texts)


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
        numbers = part[["value", "low", "high"]].itertuples(index=False)
        said = [f"{model}, {place}: {spoken(*of)}" for place, of in zip(part["place"], numbers, strict=True)]
        tell(axes, x.tolist(), part["value"].tolist(), said)
    axes.set_xticks(range(len(places)), [str(place) for place in places], rotation=45, ha="right")
    axes.set_xlim(-0.5, len(places) - 0.5)


def plain_logarithms(axis: "Axis") -> None:
    """Write plain numbers at a logarithmic axis, whose own are formulas, and formulas are text here."""
    from matplotlib.ticker import LogLocator

    low, high = sorted(axis.get_view_interval())
    if high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")


def forest(rows: "pd.DataFrame", label: str, *, reference: float | None = None) -> "Figure":
    """Return a forest plot.

    Args:
        rows: columns label (a line each, in this order, from the top), series (a colour each; lines of one label
            stand together), value, low, high (NaN for no interval), filled (or hollow), summary (a diamond).
        label: of the axis.
        reference: where to draw a line to compare with.
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
            # The name stands beside the first mark of a series, behind its interval where it has one.
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
            tell(axes, [row["value"]], [y], [f"{of}: {spoken(row['value'], row['low'], row['high'])}"])
        axes.set_yticks(list(places.values()), list(map(shortened, places)))
        axes.set_ylim(len(places) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(fill(one_line(label), int(figure.get_figwidth() * _LABEL_CHARACTERS)))
        label_lines(figure, axes, beside=True)
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
            line(axes, legend, curve["step"], curve["value"], palette[method])
        axes.set_xlabel("step")
        axes.set_ylabel(label)
        label_lines(figure, axes)
    return figure
