"""The cells of an experiment: means over seeds with their intervals, and their figure."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from stsbench.base.errors import UserError
from stsbench.judging.seeds import compare_seeds
from stsbench.render.charts import line
from stsbench.render.figures import ONE_COLOUR, colours, legend_above, new_figure, shortened, style
from stsbench.scoring.recompute import require_recomputed
from stsbench.statistics import LEVEL
from stsbench.statistics.intervals import reach_of_mean
from stsbench.sweeps.experiment import OF_CELLS, label_of
from stsbench.sweeps.states import JobState, headlines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FEW_NAMES, _SHORT_NAME = 6, 12
"""More or longer labels under an axis are rotated."""

_BOTH, _SEEDS, _PAIRS, _NONE = "seeds and pairs", "seeds", "pairs", ""


def cell_frame(axes: Sequence[str], jobs: Sequence[JobState]) -> tuple[pd.DataFrame, list[str]]:
    """Returns a row for each cell and measure of finished jobs; scores x 100, NaN for undefined.

    The interval of a score's mean is over other seeds and other pairs, as in `compare`; of a single run it is its
    record's, over other pairs. Without a record (a dev score, an alignment) it is over other seeds alone. `sd` is
    the sample standard deviation; `seed_share` and `pair_share` are shares of the variance of the mean.

    Returns:
        The frame, and a sentence for each cell with records whose intervals are over seeds alone.
    """
    cells: dict[tuple[str, ...], list[JobState]] = {}
    for state in jobs:
        if state.folder is not None:
            cells.setdefault(tuple(state.job.cell.values()), []).append(state)
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for labels, states in cells.items():
        name = ", ".join(labels)
        scored, why = _intervals(states)
        rows += [{"cell": name, **states[0].job.values, **row} for row in _rows(states, scored)]
        notes += [f"{name}: intervals are over seeds alone: {why}"] if why else []
    return pd.DataFrame(rows, columns=[OF_CELLS[0], *axes, *OF_CELLS[1:]]), notes


def _rows(states: Sequence[JobState], scored: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for measure in dict.fromkeys(name for state in states for name in state.measures):
        values = [value for state in states if (value := state.measures.get(measure)) is not None]
        row: dict[str, Any] = {"measure": measure, "runs": len(values)}
        row |= scored[measure] if measure in scored else _over_seeds(values)
        row |= {"mean": float(np.mean(values)) if values else nan, "sd": _deviation(values)}
        rows.append(row)
    return rows


def _deviation(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else nan


def _over_seeds(values: Sequence[float]) -> dict[str, Any]:
    if len(values) < 2:
        return _interval(nan, nan, _NONE)
    mean, half = float(np.mean(values)), reach_of_mean(_deviation(values), len(values))
    return _interval(mean - half, mean + half, _SEEDS)


def _intervals(states: Sequence[JobState]) -> tuple[dict[str, dict[str, Any]], str]:
    """Returns the interval of each score in the records, or else why there is none."""
    records = {str(state.folder): state.record for state in states if state.record is not None}
    if not records:
        return {}, ""
    require_recomputed(*records.values(), intervals=False)
    if len(records) == 1:
        (record,) = records.values()
        limits: dict[str, Any] = {name: pair for name, _, pair in headlines(record) if pair is not None}
        return {name: _interval(100 * low, 100 * high, _PAIRS) for name, (low, high) in limits.items()}, ""
    try:
        compared = compare_seeds(records, {}, ("", ""), level=LEVEL)
    except UserError as error:
        # A score is undefined in one of them, or two seeds have the same weights.
        return {}, str(error)
    return {row["task"]: _of_seeds(row) for row in compared.rows.to_dict("records")}, ""


def _of_seeds(row: Mapping[Any, Any]) -> dict[str, Any]:
    over = _SEEDS if np.isnan(row["a_pair_share"]) else _BOTH
    return _interval(row["a_low"], row["a_high"], over, row["a_seed_share"], row["a_pair_share"])


def _interval(low: float, high: float, over: str, seeds: float = nan, pairs: float = nan) -> dict[str, Any]:
    return dict(zip(OF_CELLS[-5:], (low, high, over, seeds, pairs), strict=True))


def axis_figure(cells: pd.DataFrame, axes: Sequence[str], axis: str, measure: str) -> "Figure":
    """Draws a measure over the values of an axis, with a line for each choice of the other axes.

    Numbers are drawn to scale with a band for the interval, other values side by side with bars.
    """
    rows = cells[cells["measure"] == measure]
    numeric = is_numeric_dtype(rows[axis]) and not is_bool_dtype(rows[axis])
    others = [name for name in axes if name != axis]
    lines = [
        (", ".join(map(label_of, key)), cells_of)
        for key, cells_of in (rows.groupby(others, sort=False) if others else [((), rows)])
    ]
    names = [name for name, _ in lines]
    # Equal names get different colours.
    keys = [name + " " * names[:place].count(name) for place, name in enumerate(names)]
    palette = colours(keys) if others else dict.fromkeys(keys, ONE_COLOUR)
    with style():
        figure = new_figure()
        panel = figure.add_subplot()
        if numeric:
            for key, (name, cells_of) in zip(keys, lines, strict=True):
                points = cells_of.sort_values(axis)
                look: dict[str, Any] = {
                    "low": points["low"],
                    "high": points["high"],
                    "marker": "o",
                    "markersize": 3,
                }
                numbers = points[axis].astype(float)
                line(panel, shortened(name), numbers, points["mean"], palette[key], **look)
        else:
            places = {value: place for place, value in enumerate(dict.fromkeys(rows[axis]))}
            for number, (key, (name, cells_of)) in enumerate(zip(keys, lines, strict=True)):
                shift = 0.5 * ((number + 0.5) / len(lines) - 0.5)
                at = [places[value] + shift for value in cells_of[axis]]
                words = [label_of(value) for value in cells_of[axis]]
                look = {"marker": "o", "markersize": 3.5, "linestyle": "none"}
                line(panel, shortened(name), at, cells_of["mean"], palette[key], places=words, **look)
                panel.vlines(at, cells_of["low"], cells_of["high"], color=palette[key])
            _label_choices(panel, [label_of(value) for value in places])
        panel.set_xlabel(shortened(axis))
        panel.set_ylabel(shortened(measure))
        legend_above(figure, panel)
    return figure


def _label_choices(panel: "Axes", labels: list[str]) -> None:
    is_turned = len(labels) > _FEW_NAMES or max(map(len, labels)) > _SHORT_NAME
    names = [shortened(label, 24) for label in labels]
    panel.set_xticks(
        range(len(labels)), names, rotation=30 if is_turned else 0, ha="right" if is_turned else "center"
    )
    panel.set_xlim(-0.5, len(labels) - 0.5)
    panel.grid(visible=False, axis="x")
