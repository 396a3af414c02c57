"""Curves over the steps of trainings, a colour for each method."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from stsbench.render.figures import colours, legend_above, new_figure, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


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
