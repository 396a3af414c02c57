"""The density of cosines at each level of gold scores: are levels of similarity kept apart?"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import ArrayLike, NDArray
from scipy.stats import gaussian_kde

from stsbench.analysis.result import AnalysisCommand, AnalysisResult
from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.cli.options import DataDirs, Task
from stsbench.render.figures import add_tooltips, colours, legend_above, new_figure, style
from stsbench.render.table import Table, Tables, place

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stsbench.scoring.subjects import Subject, Wanted

_POINTS = 101
"""Where densities are estimated: so many points from -1 to 1."""

_QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}


class Density(AnalysisResult):
    """The densities of models' cosines in buckets of gold scores."""

    name = "density"
    title = "Cosine densities"
    question = "are levels of similarity kept apart?"
    look_for = "hills that move right with the gold score and overlap little"

    def table(self) -> Tables:
        """Return the quantiles of each bucket."""
        table = self.frame.drop_duplicates(["model", "bucket"])[["model", "bucket", "pairs", "mean", *_QUANTILES]]
        table = table.rename(columns={"bucket": "gold", "q05": "5 %", "q25": "25 %", "q75": "75 %", "q95": "95 %"})
        return Tables([Table(table, f"Cosine by gold score{place(self.frame)}", 3)])

    def numbers(self) -> dict[str, float]:
        """Return the mean and the median cosine of each bucket of gold scores."""
        rows = self.frame.drop_duplicates("bucket").to_dict("records")
        return {f"{name} {row['bucket']}": float(row[name]) for row in rows for name in ("mean", "median")}

    def plot(self) -> "Figure":
        """Draw the densities bucket above bucket, the highest gold scores on top, each model in its colour.

        Each bucket has a scale of its own: heights compare inside a bucket.
        """
        frame = self.frame
        palette = colours(list(frame["model"]))
        buckets = list(dict.fromkeys(frame["bucket"]))[::-1]
        visible = frame[frame["density"] > 0.02]
        low, high = (visible["cosine"].min(), visible["cosine"].max()) if len(visible) else (-1.0, 1.0)
        with style():
            figure = new_figure(height=0.6 + 0.45 * len(buckets))
            rows = figure.subplots(len(buckets), 1, sharex=True, squeeze=False)[:, 0]
            for axes, bucket in zip(rows, buckets, strict=True):
                for model, part in frame[frame["bucket"] == bucket].groupby("model", sort=False):
                    colour, mean = palette[str(model)], float(part["mean"].iloc[0])
                    axes.fill_between(part["cosine"], part["density"], color=colour, alpha=0.2, lw=0)
                    axes.plot(part["cosine"], part["density"], color=colour, label=model)
                    if not math.isnan(mean):
                        axes.axvline(mean, color=colour, linewidth=0.8, linestyle=":")
                        height = float(np.interp(mean, part["cosine"], part["density"]))
                        add_tooltips(
                            axes, [mean], [height], [f"{model}, gold score {bucket}: mean cosine {mean:.3f}"]
                        )
                axes.set_ylabel(bucket, rotation=0, ha="right", va="center")
                axes.set_yticks([])
                axes.set_ylim(bottom=0)
            rows[-1].set_xlabel("cosine (dotted: mean of the bucket)")
            if low < high:
                rows[-1].set_xlim(low, high)
            figure.supylabel("gold score", fontsize=8)
            legend_above(figure, rows[0])
        return figure


def density(
    runs: "Wanted | Sequence[Wanted] | None" = None,
    *,
    task: str | None = None,
    buckets: int = 5,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> Density:
    """Estimate the density of the cosines of a task's pairs in each bucket of gold scores.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of, which are measured first.
        task: the task whose pairs are looked at; by default `STS-B`; of runs without it the sample or their first.
        buckets: how many equal buckets the scale of gold scores is cut into.
        data_dirs: folders to look for data in.
        progress: told how far encoding is.

    Returns:
        One row per model, `bucket` and point `cosine` (-1 to 1), with the `density` there (NaN where the bucket
        has no spread), and of the bucket `pairs`, `mean` and the quantiles `q05`, `q25`, `median`, `q75`, `q95`.
        `task` says of what.

    Raises:
        UserError: if a run lacks the task, or has no cosines.

    >>> densities = density(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], task="sample")
    >>> densities.frame.drop_duplicates("bucket")["bucket"].tolist()
    ['[0, 1)', '[1, 2)', '[2, 3)', '[3, 4)', '[4, 5]']
    """
    from stsbench.analysis.inputs import analysable
    from stsbench.scoring.subjects import tasks_by_model
    from stsbench.scoring.tasks import canonical

    if buckets < 1:
        raise UserError(f"{buckets} buckets: give 1 or more.")
    subjects = analysable(runs)
    chosen = canonical(task) if task else _default_task(subjects, data_dirs)
    frames = []
    for name, scored in tasks_by_model(subjects, [chosen], data_dirs=data_dirs, progress=progress).items():
        pairs = pd.concat([task.pairs for task in scored])  # of several splits of the task
        if "cosine" not in pairs.columns:
            raise UserError(f"the run of {name} holds similarities that were given, and no cosines.")
        frames.append(density_frame({name: pairs}, scored[0].gold_range, buckets))
    return Density(pd.concat(frames, ignore_index=True).assign(task=chosen))


def _default_task(subjects: "Mapping[str, Subject]", data_dirs: Sequence[str | Path]) -> str:
    """Return STS-B; where not all have that, the sample, or else the first task of the first that all have."""
    from stsbench.records.kinds import STS
    from stsbench.records.record import RunRecord
    from stsbench.scoring.tasks import SAMPLE, STS_B, read_pairs_of

    tasks = [
        [score.task for score in subject.scores_of(STS)]
        if isinstance(subject, RunRecord)
        else [read_pairs_of(None, None, data_dirs=data_dirs).task]
        for subject in subjects.values()
    ]
    common = [task for task in (STS_B, SAMPLE, *tasks[0]) if all(task in those for those in tasks)]
    return common[0] if common else STS_B


def density_frame(
    tables: "Mapping[str, pd.DataFrame]", gold_range: tuple[float, float] = (0.0, 5.0), buckets: int = 5
) -> pd.DataFrame:
    """Estimate the densities from the `gold` and `cosine` of the pairs of one task by model; see `density`.

    Each bucket holds its lower end, the last both ends.
    """
    grid = np.linspace(-1, 1, _POINTS)
    parts = [
        pd.DataFrame({"model": model, "bucket": name, "cosine": grid, "density": kernel_density(values, grid)})
        .assign(pairs=len(values), mean=values.mean() if len(values) else float("nan"))
        .assign(**{key: np.quantile(values, at) if len(values) else np.nan for key, at in _QUANTILES.items()})
        for model, table in tables.items()
        for name, values in _buckets(table, gold_range, buckets)
    ]
    return pd.concat(parts, ignore_index=True)


def _buckets(table: pd.DataFrame, gold_range: tuple[float, float], buckets: int) -> Iterator[tuple[str, Any]]:
    edges = np.linspace(*gold_range, buckets + 1)
    gold, cosines = (np.asarray(table[name], dtype=float) for name in ("gold", "cosine"))
    codes = np.clip(np.searchsorted(edges, gold, side="right") - 1, 0, buckets - 1)
    for code in range(buckets):
        end = "]" if code == buckets - 1 else ")"
        yield f"[{edges[code]:g}, {edges[code + 1]:g}{end}", cosines[codes == code]


def kernel_density(values: "ArrayLike", grid: "ArrayLike") -> "NDArray[np.float64]":
    """Return the (m,) estimated densities of (n,) cosines at (m,) points from -1 to 1.

    Gaussian kernels with Scott's bandwidth, sd n^(-1/5). What would fall outside is reflected at the ends, so that
    the density from -1 to 1 sums to 1 although cosines pile up at 1. NaN where there is no spread to estimate a
    density from: fewer than two values, or all equal.

    Example:
        >>> import numpy as np
        >>> grid = np.linspace(-1, 1, 2001)
        >>> density = kernel_density([0.2, 0.9, 1.0], grid)
        >>> from scipy.integrate import trapezoid
        >>> round(float(trapezoid(density, grid)), 4)
        1.0
    """
    values, grid = np.asarray(values, dtype=np.float64), np.asarray(grid, dtype=np.float64)
    if ((values < -1) | (values > 1)).any():
        raise ValueError("expected values between -1.0 and 1.0")
    if len(values) < 2 or values.min() == values.max():
        return np.full(len(grid), np.nan)
    # Evaluating at reflected points is the same as reflecting the values.
    kernels = gaussian_kde(values)
    density: NDArray[np.float64] = kernels(grid) + kernels(-2 - grid) + kernels(2 - grid)
    return density


@dataclass(frozen=True)
class DensityCommand(AnalysisCommand):
    """Draw the distribution of cosines for each range of gold scores, on STS-B.

    Examples:
    * `stsbench density runs/a runs/b --figure density.png`
    * `stsbench density runs/a --task STS16 --buckets 3 --markdown`
    """

    verb = staticmethod(density)
    result = Density
    of_pairs = True

    task: Task = None
    buckets: Annotated[int, typer.Option(min=1, max=1000, help="The number of equal ranges of gold scores.")] = 5
    data_dirs: DataDirs = None
