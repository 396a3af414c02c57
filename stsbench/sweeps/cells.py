"""The cells of an experiment: means over seeds with their intervals, and their figure."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from stsbench.base.errors import UserError
from stsbench.judging.seeds import compare_seeds
from stsbench.render.charts import forest, line, plain_logarithms
from stsbench.render.figures import ONE_COLOUR, colours, legend_above, new_figure, shortened, style
from stsbench.scoring.recompute import require_recomputed
from stsbench.statistics import LEVEL
from stsbench.statistics.intervals import reach_of_mean
from stsbench.sweeps.experiment import OF_CELLS, label_of
from stsbench.sweeps.states import JobState, headlines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


def axis_figure(points: pd.DataFrame, axis: str, label: str) -> "Figure":
    """Draws values with their intervals: over an axis if all places are numbers, else row by row.

    Args:
        points: columns `series`, `place` (a number or a label), `value`, `low`, `high` (NaN for no interval) and
            `filled` (otherwise dashed or hollow).
        axis: label of the axis with the places.
        label: label of the values.
    """
    if not is_numeric_dtype(points["place"]):
        rows = points.assign(label=points["place"].map(label_of), summary=False)
        return forest(rows, shortened(label))
    series = list(dict.fromkeys(points["series"]))
    palette = colours(series) if len(series) > 1 else dict.fromkeys(series, ONE_COLOUR)
    with style():
        figure = new_figure()
        panel = figure.add_subplot()
        for name, of_series in points.groupby("series", sort=False):
            at = of_series.sort_values("place").astype({"place": float})
            look: dict[str, Any] = {"low": at["low"], "high": at["high"], "marker": "o", "markersize": 3}
            look["linestyle"] = "-" if at["filled"].all() else "--"
            line(panel, shortened(str(name)), at["place"], at["value"], palette[str(name)], **look)
        if points["place"].min() > 0 and points["place"].max() > 20 * points["place"].min():
            panel.set_xscale("log")
            plain_logarithms(panel.xaxis)
        panel.set_xlabel(shortened(axis))
        panel.set_ylabel(shortened(label))
        legend_above(figure, panel)
    return figure
