"""Cosine densities per gold bucket: how far a model keeps levels of similarity apart (SimCSE 2021, figure 4)."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from stsbench.analysis.views import View, place
from stsbench.render.figures import colours, legend_above, new_figure, style
from stsbench.statistics.density import kernel_density

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_GRID = np.linspace(-1, 1, 101)
_QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}


def density(
    tables: "Mapping[str, pd.DataFrame]", gold_range: tuple[float, float] = (0.0, 5.0), buckets: int = 5
) -> "pd.DataFrame":
    """Estimate the density of the cosines of pairs in each bucket of gold scores.

    Args:
        tables: by model, a table with `gold` and `cosine` of the pairs of one task.
        gold_range: lowest and highest possible gold score.
        buckets: how many equal buckets that range is cut into; each holds its lower end, the last both ends.

    Returns:
        One row per model, `bucket` and point `cosine` (-1 to 1), with the `density` there (NaN where the bucket
        has no spread), and of the bucket `pairs`, `mean` and the quantiles `q05`, `q25`, `median`, `q75`, `q95`.
    """
    import pandas as pd

    parts = [
        pd.DataFrame({"model": model, "bucket": name, "cosine": _GRID, "density": kernel_density(values, _GRID)})
        .assign(pairs=len(values), mean=values.mean() if len(values) else float("nan"))
        .assign(**{key: _quantile(values, at) for key, at in _QUANTILES.items()})
        for model, table in tables.items()
        for name, values in _buckets(table, gold_range, buckets)
    ]
    return pd.concat(parts, ignore_index=True)


def _buckets(table: "pd.DataFrame", gold_range: tuple[float, float], buckets: int) -> Iterator[tuple[str, Any]]:
    edges = np.linspace(*gold_range, buckets + 1)
    gold, cosines = table["gold"].to_numpy(float), table["cosine"].to_numpy(float)
    codes = np.clip(np.searchsorted(edges, gold, side="right") - 1, 0, buckets - 1)
    for code in range(buckets):
        end = "]" if code == buckets - 1 else ")"
        yield f"[{edges[code]:g}, {edges[code + 1]:g}{end}", cosines[codes == code]


def _quantile(values: Any, at: float) -> float:
    return float(np.quantile(values, at)) if len(values) else float("nan")


def views(frame: "pd.DataFrame") -> list[View]:
    """Return the table of the buckets' quantiles for readers.

    Args:
        frame: what `density` returned.
    """
    table = frame.drop_duplicates(["model", "bucket"])[["model", "bucket", "pairs", "mean", *_QUANTILES]]
    table = table.rename(columns={"bucket": "gold", "q05": "5 %", "q25": "25 %", "q75": "75 %", "q95": "95 %"})
    return [View(f"Cosine by gold score{place(frame)}", table, 3)]


def figure(frame: "pd.DataFrame") -> "Figure":
    """Draw the densities bucket above bucket, the highest gold scores on top, models over each other in colour.

    Each bucket has a scale of its own: heights compare inside a bucket.

    Args:
        frame: what `density` returned.
    """
    palette = colours(list(frame["model"]))
    buckets = list(dict.fromkeys(frame["bucket"]))[::-1]
    seen = frame[frame["density"] > 0.02]
    low, high = (seen["cosine"].min(), seen["cosine"].max()) if len(seen) else (-1.0, 1.0)
    with style():
        drawn = new_figure(height=0.6 + 0.45 * len(buckets))
        rows = drawn.subplots(len(buckets), 1, sharex=True, squeeze=False)[:, 0]
        for axes, bucket in zip(rows, buckets, strict=True):
            for model, part in frame[frame["bucket"] == bucket].groupby("model", sort=False):
                axes.fill_between(part["cosine"], part["density"], color=palette[str(model)], alpha=0.2, lw=0)
                axes.plot(part["cosine"], part["density"], color=palette[str(model)], label=model)
                axes.axvline(part["mean"].iloc[0], color=palette[str(model)], linewidth=0.8, linestyle=":")
            axes.set_ylabel(bucket, rotation=0, ha="right", va="center")
            axes.set_yticks([])
            axes.set_ylim(bottom=0)
        rows[-1].set_xlabel("cosine (dotted: mean of the bucket)")
        rows[-1].set_xlim(low, high)
        drawn.supylabel("gold score", fontsize=8)
        legend_above(drawn, rows[0])
    return drawn
