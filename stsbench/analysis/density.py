"""The density of numbers in an interval, estimated with Gaussian kernels."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.records.record import RunRecord
from stsbench.render.figures import colours, legend_above, new_figure, style
from stsbench.render.table import Table, place
from stsbench.scoring.subjects import Subject, Wanted, named_subjects, pair_tables
from stsbench.scoring.tasks import SAMPLE
from stsbench.scoring.vectors import STS_B, canonical, gold_ranges, read_pairs_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]


def kernel_density(values: ArrayLike, grid: ArrayLike, *, low: float = -1.0, high: float = 1.0) -> Floats:
    """Return the estimated density of a sample at some points.

    Gaussian kernels with Scott's bandwidth, sd n^(-1/5). What would fall outside the interval is reflected at its
    ends, so that the density over it sums to 1 although cosines pile up at 1.

    Args:
        values: (n,) numbers in the interval.
        grid: (m,) points in the interval.
        low: lower end.
        high: upper end.

    Returns:
        (m,) densities; NaN where there is no spread to estimate one from (fewer than two values, all equal).

    Raises:
        ValueError: if a value lies outside.

    Example:
        >>> grid = np.linspace(-1, 1, 2001)
        >>> density = kernel_density([0.2, 0.9, 1.0], grid)
        >>> round(float(np.trapezoid(density, grid)), 4)
        1.0
    """
    values, grid = np.asarray(values, dtype=np.float64), np.asarray(grid, dtype=np.float64)
    if ((values < low) | (values > high)).any():
        raise ValueError(f"expected values between {low} and {high}")
    if len(values) < 2 or values.min() == values.max():
        return np.full(len(grid), np.nan)
    width = values.std(ddof=1) * len(values) ** (-1 / 5)
    density = np.zeros(len(grid))
    for mirrored in (values, 2 * low - values, 2 * high - values):
        scaled = (grid[:, np.newaxis] - mirrored) / width
        density += np.exp(-0.5 * scaled**2).sum(axis=1)
    density /= len(values) * width * np.sqrt(2 * np.pi)
    return density


_GRID = np.linspace(-1, 1, 101)
_QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}


def density_frame(
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


def views(frame: "pd.DataFrame") -> list[Table]:
    """Return the table of the buckets' quantiles for readers.

    Args:
        frame: what `density` returned.
    """
    table = frame.drop_duplicates(["model", "bucket"])[["model", "bucket", "pairs", "mean", *_QUANTILES]]
    table = table.rename(columns={"bucket": "gold", "q05": "5 %", "q25": "25 %", "q75": "75 %", "q95": "95 %"})
    return [Table(table, f"Cosine by gold score{place(frame)}", 3)]


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


def density(
    runs: Wanted | Sequence[Wanted] | None = None,
    *,
    task: str | None = None,
    buckets: int = 5,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
    **options: Any,
) -> "pd.DataFrame":
    """Estimate the density of the cosines of a task's pairs in each bucket of gold scores.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of, which are measured first.
        task: by default STS-B; the sample where that is all there is.
        buckets: how many equal buckets the scale of gold scores is cut into.
        data_dirs: folders to look for data in.
        progress: told how far encoding is.
        options: how to load models, as in `load`.

    Returns:
        A tidy table; see `stsbench.analysis.density.density`.

    Raises:
        UserError: if a run lacks the task, or has no cosines.

    >>> frame = density(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], task="sample")
    >>> frame.drop_duplicates("bucket")["bucket"].tolist()
    ['[0, 1)', '[1, 2)', '[2, 3)', '[3, 4)', '[4, 5]']
    """
    import pandas as pd

    if buckets < 1:
        raise UserError(f"{buckets} buckets: give 1 or more.")
    subjects = named_subjects(runs, **options)
    chosen = canonical(task) if task else default_task(subjects, data_dirs)
    tables = pair_tables(subjects, [chosen], data_dirs=data_dirs, progress=progress)
    for name, table in tables.items():
        if "cosine" not in table:
            raise UserError(f"the run of {name} holds similarities that were given, and no cosines.")
    limits = gold_ranges(pd.concat(tables.values(), ignore_index=True))[chosen]
    return density_frame(tables, limits, buckets).assign(task=chosen)


def default_task(subjects: Mapping[str, Subject], data_dirs: Sequence[str | Path] = ()) -> str:
    """Return STS-B; the sample where all have that and not all have STS-B."""
    held = [
        {task.task for task in subject.tasks}
        if isinstance(subject, RunRecord)
        else {read_pairs_of(None, None, data_dirs=data_dirs).task}
        for subject in subjects.values()
    ]
    common = set.intersection(*held)
    return SAMPLE if SAMPLE in common and STS_B not in common else STS_B
