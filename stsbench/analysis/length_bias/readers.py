"""Length bias for readers: the papers' tables, the bias in one number, and the curve."""

from typing import TYPE_CHECKING

from stsbench.analysis.length_bias.numbers import (
    ABSOLUTE,
    ALL,
    AVERAGE,
    CONTRAST,
    GAP,
    MARGIN,
    PARTIAL,
    POOLED,
    RELATIVE,
    SIGNED,
    SLOPE,
    SPEARMAN,
)
from stsbench.render.figures import colours, legend_above, new_figure, style
from stsbench.render.table import Table, interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

UNSIGNED = "difference"
"""The measure of a published difference, of which the paper does not say whether it is signed."""

_FEWEST = 10
"""Pairs that a point of the drawn curve stands for at least; the table has them all."""


def views(frame: "pd.DataFrame") -> list[Table]:
    """Return the tables of a length bias for readers.

    Args:
        frame: what `length_bias` returned, published rows included.
    """
    unit = _unit(frame)
    bins = frame[(frame["measure"] == RELATIVE) & (frame["task"] == POOLED) & (frame["pairs"] > 0)]
    curve = bins.pivot_table(index="model", columns="group", values="value", sort=False).reset_index()
    found = [
        Table(_sizes(frame), f"Pairs by length difference in {unit}"),
        Table(_wide(frame, SPEARMAN), f"Spearman x 100 by length difference in {unit} (ESimCSE v1, table 1)"),
        Table(
            _wide(frame, SIGNED, UNSIGNED),
            "Mean difference of similarity and scaled gold x 100, signed (ESimCSE COLING, tables 1 and 7)",
        ),
        Table(_wide(frame, ABSOLUTE, UNSIGNED), "The same, absolute"),
        Table(_summary(frame, unit), "The bias in one number, with confidence intervals"),
        Table(curve, f"Error less the task's mean x 100, by length difference in {unit}, all tasks"),
    ]
    design = frame[frame["measure"].isin([CONTRAST, MARGIN])]
    if len(design):
        found.append(Table(_design(design), "The sample's designed pairs x 100 (unbiased: contrast 0)"))
    return found


def figure(frame: "pd.DataFrame") -> "Figure":
    """Draw the error over the length difference, each model's with its confidence band.

    Args:
        frame: what `length_bias` returned.
    """
    curve = frame[(frame["measure"] == RELATIVE) & (frame["task"] == POOLED) & (frame["pairs"] >= _FEWEST)]
    palette = colours(list(frame["model"]))
    unit = _unit(frame)
    with style():
        drawn = new_figure()
        axes = drawn.subplots()
        axes.axhline(0, color="0.4", linewidth=0.8)
        for model, part in curve.groupby("model", sort=False):
            axes.plot(
                part["length_difference"],
                part["value"],
                color=palette[str(model)],
                marker="o",
                markersize=2.5,
                label=model,
            )
            axes.fill_between(
                part["length_difference"], part["low"], part["high"], color=palette[str(model)], alpha=0.2, lw=0
            )
        axes.set_xlabel(f"length difference ({unit})")
        axes.set_ylabel("error less task mean (× 100)")
        legend_above(drawn, axes)
    return drawn


def _unit(frame: "pd.DataFrame") -> str:
    return str(frame["unit"].iloc[0])


def _sizes(frame: "pd.DataFrame") -> "pd.DataFrame":
    wide = frame[(frame["measure"] == SPEARMAN) & ~frame["group"].isin([GAP]) & (frame["pairs"] > 0)]
    wide = wide.pivot_table(
        index=["model", "group"], columns="task", values="pairs", sort=False, aggfunc="first"
    ).reset_index()
    # The pairs are the same for all models that were measured on the same tasks: their names say nothing then.
    sizes = wide.drop(columns="model").drop_duplicates()
    wide = sizes if len(sizes) == wide["group"].nunique() else wide
    counts = wide.columns.difference(["model", "group"], sort=False)
    wide = wide.rename(columns={"group": "difference"}).astype(dict.fromkeys(counts, "Int64"))
    return wide.rename(columns={AVERAGE: "all"})


def _wide(frame: "pd.DataFrame", *measures: str) -> "pd.DataFrame":
    rows = frame[frame["measure"].isin(measures) & (frame["task"] != POOLED)]
    wide = rows.pivot_table(index=["model", "group"], columns="task", values="value", sort=False, dropna=False)
    wide = wide.dropna(how="all").reset_index().rename(columns={"group": "difference"})
    if AVERAGE in wide:
        wide[AVERAGE] = wide.pop(AVERAGE)
    return wide


def _summary(frame: "pd.DataFrame", unit: str) -> "pd.DataFrame":
    import pandas as pd

    frame = frame[frame["pairs"].notna()]  # without what the papers print
    over = AVERAGE if AVERAGE in set(frame["task"]) else frame["task"].iloc[0]
    numbers = {
        f"slope: points per {unit.removesuffix('s')}": (SLOPE, ALL, POOLED),
        "gap of the signed difference": (SIGNED, GAP, over),
        "gap of the absolute difference": (ABSOLUTE, GAP, over),
        "Spearman": (SPEARMAN, ALL, over),
        "partial Spearman, length difference fixed": (PARTIAL, ALL, over),
    }
    keyed = frame.set_index(["measure", "group", "task"]).sort_index()
    rows = []
    for name, key in numbers.items():
        for _, row in keyed.loc[[key]].iterrows():
            limits = interval(row["low"], row["high"])
            rows.append({"number": name, "model": row["model"], "value": row["value"], "interval": limits})
    return pd.DataFrame(rows, columns=["number", "model", "value", "interval"])


def _design(frame: "pd.DataFrame") -> "pd.DataFrame":
    limits = [interval(low, high) for low, high in zip(frame["low"], frame["high"], strict=True)]
    return frame[["model", "measure", "group", "pairs", "value"]].assign(interval=limits)
