"""Curves over the steps of trainings, a colour for each."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from stsbench.render.figures import colours, legend_above, new_figure, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def curves(points: "Mapping[str, pd.DataFrame]", label: str) -> "Figure":
    """Return a figure of some curves.

    Args:
        points: by name a table with the columns `step` and `value`.
        label: of the values.
    """
    palette = colours(list(points))
    with style():
        figure = new_figure()
        axes = figure.add_subplot()
        for name, curve in points.items():
            axes.plot(curve["step"], curve["value"], color=palette[name], label=name)
        axes.set_xlabel("step")
        axes.set_ylabel(label)
        legend_above(figure, axes)
    return figure
