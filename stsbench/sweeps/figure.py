"""The figure of an axis: a measure over its values, with the band of its intervals."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stsbench.render.figures import colours, legend_above, new_figure, shortened, style
from stsbench.sweeps.experiment import label_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_FEW_NAMES = 6
"""So many labels stand side by side under an axis; more are turned."""


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
    places = {value: place for place, value in enumerate(dict.fromkeys(rows[axis]))}
    others = [name for name in axes if name != axis]
    # Two choices may be written alike.
    lines = [
        (", ".join(map(label_of, key)), part)
        for key, part in (rows.groupby(others, sort=False) if others else [((), rows)])
    ]
    palette = list(colours([str(place) for place in range(len(lines))]).values())
    with style():
        figure = new_figure()
        panel = figure.add_subplot()
        for number, (name, of_line) in enumerate(lines):
            part = of_line.sort_values(axis) if numeric else of_line
            colour, label = palette[number], shortened(name) or None
            if numeric:
                panel.plot(part[axis], part["mean"], color=colour, marker="o", markersize=3, label=label)
                panel.fill_between(
                    part[axis].astype(float), part["low"], part["high"], color=colour, alpha=0.2, lw=0
                )
                continue
            shift = 0.5 * ((number + 0.5) / len(lines) - 0.5)
            x = [places[value] + shift for value in part[axis]]
            panel.plot(x, part["mean"], color=colour, marker="o", markersize=3.5, linestyle="none", label=label)
            panel.vlines(x, part["low"], part["high"], color=colour)
        if not numeric:
            turned = 30 if len(places) > _FEW_NAMES or max(len(label_of(name)) for name in places) > 12 else 0
            names = [shortened(label_of(name), 24) for name in places]
            panel.set_xticks(range(len(places)), names, rotation=turned, ha="right" if turned else "center")
            panel.grid(visible=False, axis="x")
        panel.set_xlabel(shortened(axis))
        panel.set_ylabel(shortened(measure))
        if others:
            legend_above(figure, panel)
    return figure
