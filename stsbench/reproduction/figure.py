"""The figure of a reproduction: a column, printed and ours, over the axis where all rows stand on one."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stsbench.render.figures import colours, forest, legend_above, new_figure, style
from stsbench.reproduction.cells import ReproducedCell
from stsbench.reproduction.tables import HERE, PRINTED
from stsbench.sweeps.cells import reach_over_seeds

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def without_levels(cells: Sequence[ReproducedCell]) -> list[ReproducedCell]:
    """Return cells as points above their own mean over those that are printed, too; the print likewise.

    The intervals are then over other seeds alone, Student's: other pairs would be the same for all rows.
    """
    both = [cell for cell in cells if cell.is_printed]
    here = sum(cell.here for cell in both) / len(both)
    printed = sum(cell.printed for cell in both) / len(both)
    shifted = []
    for cell in cells:
        half = reach_over_seeds(cell.sd, cell.runs) if cell.runs > 1 else math.nan
        low, high = cell.here - half - here, cell.here + half - here
        shifted.append(
            replace(cell, here=cell.here - here, printed=cell.printed - printed, low=low, high=high, over="seeds")
        )
    return shifted


def curve(
    cells: Sequence[ReproducedCell], places: Mapping[str, float], axis: str, label: str, here: str
) -> "Figure":
    """Draw cells over the places of their rows on an axis.

    Args:
        cells: of a column.
        places: by row, where it stands on the axis.
        axis: its label.
        label: of the column.
        here: what ours are called.
    """
    palette = colours([HERE, PRINTED])
    points = sorted(((places[cell.row], cell) for cell in cells), key=lambda point: point[0])
    limited = [(x, cell.low, cell.high) for x, cell in points if not math.isnan(cell.low)]
    printed = [(x, cell.printed) for x, cell in points if cell.is_printed]
    with style():
        figure = new_figure()
        panel = figure.add_subplot()
        at = [x for x, _ in points]
        panel.plot(
            at, [cell.here for _, cell in points], marker="o", markersize=3, color=palette[HERE], label=here
        )
        if limited:
            x, low, high = map(list, zip(*limited, strict=True))
            panel.fill_between(x, low, high, color=palette[HERE], alpha=0.2, linewidth=0)
        if printed:
            of_print: dict[str, Any] = {"color": palette[PRINTED], "label": PRINTED, "linestyle": "--"}
            panel.plot(*zip(*printed, strict=True), marker="s", markersize=3, **of_print)
        if at[0] > 0 and at[-1] / at[0] > 20:
            panel.set_xscale("log")
            panel.xaxis.set_major_formatter("{x:g}")
        panel.set_xlabel(axis)
        panel.set_ylabel(label)
        legend_above(figure, panel)
    return figure


def row_by_row(cells: Sequence[ReproducedCell], labels: Mapping[str, str], label: str) -> "Figure":
    """Draw cells row by row.

    Args:
        cells: of a column.
        labels: of the rows.
        label: of the column.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for cell in cells:
        common = {"label": labels[cell.row], "summary": False}
        here = {"series": HERE, "value": cell.here, "low": cell.low, "high": cell.high, "filled": True}
        rows.append(common | here)
        if cell.is_printed:
            none = {"low": math.nan, "high": math.nan}
            rows.append(common | {"series": PRINTED, "value": cell.printed, **none, "filled": False})
    return forest(pd.DataFrame(rows), label)
