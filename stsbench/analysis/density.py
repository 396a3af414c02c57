"""Density: do cosines separate the levels of gold scores?"""

from collections.abc import Iterator, Mapping, Sequence
from math import nan

import numpy as np
import pandas as pd
from scipy.stats import gaussian_kde

from stsbench.analysis.base import OfTasks, Row
from stsbench.analysis.inputs import TASK, Answer, parameter
from stsbench.base.errors import UserError
from stsbench.records.kinds import STS
from stsbench.records.record import RunRecord
from stsbench.render.figures import Figure, colours, legend_above, new_figure, style
from stsbench.render.table import Table, Tables, place
from stsbench.scoring.subjects import ScoredTask, Subject
from stsbench.scoring.tasks import SAMPLE, STS_B, canonical, read_pairs_of
from stsbench.statistics.influence import Floats

_POINTS = 101  # The number of points from -1 to 1 at which densities are estimated

_QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}


class Density(OfTasks):
    """Draw the distribution of cosines for each range of gold scores, on STS-B.

    Returns:
        One row per model, `bucket` of gold scores and point `cosine` (-1 to 1): the `density` (NaN without
        spread), and the bucket's `pairs`, `mean` and quantiles `q05` to `q95`. A bucket includes its lower end,
        the last one both.

    >>> from stsbench import density
    >>> densities = density(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], task="sample")
    >>> densities.frame.drop_duplicates("bucket")["bucket"].tolist()
    ['[0, 1)', '[1, 2)', '[2, 3)', '[3, 4)', '[4, 5]']
    """

    answer = Answer("How far apart are gold levels?", column="mean", take=np.ptp)
    title = "Cosine densities"

    tasks: Sequence[str] = ()
    task = TASK
    buckets: int = parameter(5, "The number of equal ranges of gold scores.", limits=(1, 1000))

    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, Sequence[ScoredTask]]:
        task = canonical(self.task) if self.task else self._default_task(subjects)
        self.tasks, self.constants = (task,), {"task": task}
        return super().inputs(subjects)

    def _default_task(self, subjects: Mapping[str, Subject]) -> str:
        """Returns STS-B, or else the sample or the first task that all subjects have."""
        tasks = [
            [score.task for score in subject.scores_of(STS)]
            if isinstance(subject, RunRecord)
            else [read_pairs_of(None, None, data_dirs=self.data_dirs).task]
            for subject in subjects.values()
        ]
        common = (task for task in (STS_B, SAMPLE, *tasks[0]) if all(task in of_subject for of_subject in tasks))
        return next(common, STS_B)

    def measure(self, model: str, given: Sequence[ScoredTask]) -> Iterator[Row]:
        pairs = pd.concat([task.pairs for task in given])  # the splits of the task
        if "cosine" not in pairs.columns:
            raise UserError(f"the run of {model} has given similarities instead of cosines.")
        grid = np.linspace(-1, 1, _POINTS)
        for bucket, cosines in _buckets(pairs, given[0].gold_range, self.buckets):
            values = cosines if len(cosines) else np.array([nan])
            quantiles = dict(zip(_QUANTILES, np.quantile(values, list(_QUANTILES.values())), strict=True))
            about: Row = {"pairs": len(cosines), "mean": values.mean(), **quantiles}
            for point, value in zip(grid, kernel_density(cosines, grid), strict=True):
                yield {"bucket": bucket, "cosine": point, "density": value} | about

    def table(self) -> Tables:
        rows = self.frame.drop_duplicates(["model", "bucket"])
        table = rows[["model", "bucket", "pairs", "mean", *_QUANTILES]]
        table = table.rename(columns={"bucket": "gold", "q05": "5 %", "q25": "25 %", "q75": "75 %", "q95": "95 %"})
        return Tables([Table(table, f"Cosine by gold score{place(self.frame)}", 3)])

    def plot(self) -> Figure:
        """Draws the densities of each bucket, the highest gold scores on top; each bucket has its own scale."""
        palette = colours(list(self.frame["model"]))
        buckets = list(dict.fromkeys(self.frame["bucket"]))[::-1]
        visible = self.frame[self.frame["density"] > 0.02]
        with style():
            figure = new_figure(height=0.6 + 0.45 * len(buckets))
            rows = figure.subplots(len(buckets), 1, sharex=True, squeeze=False)[:, 0]
            for axes, bucket in zip(rows, buckets, strict=True):
                of_bucket = self.frame[self.frame["bucket"] == bucket]
                for model, part in of_bucket.dropna(subset="mean").groupby("model", sort=False):
                    colour, mean = palette[str(model)], float(part["mean"].iloc[0])
                    axes.fill_between(part["cosine"], part["density"], color=colour, alpha=0.2, lw=0)
                    axes.plot(part["cosine"], part["density"], color=colour, label=model)
                    axes.axvline(mean, color=colour, linewidth=0.8, linestyle=":")
                axes.set_ylabel(bucket, rotation=0, ha="right", va="center")
                axes.set_yticks([])
                axes.set_ylim(bottom=0)
            rows[-1].set_xlabel("cosine (dotted: mean of the bucket)")
            if len(visible) and (low := visible["cosine"].min()) < (high := visible["cosine"].max()):
                rows[-1].set_xlim(low, high)
            figure.supylabel("gold score", fontsize=8)
            legend_above(figure, rows[0])
        return figure


def _buckets(pairs: pd.DataFrame, gold_range: tuple[float, float], buckets: int) -> Iterator[tuple[str, Floats]]:
    edges = np.linspace(*gold_range, buckets + 1)
    gold, cosines = (np.asarray(pairs[name], dtype=float) for name in ("gold", "cosine"))
    codes = np.clip(np.searchsorted(edges, gold, side="right") - 1, 0, buckets - 1)
    for code in range(buckets):
        end = "]" if code == buckets - 1 else ")"
        yield f"[{edges[code]:g}, {edges[code + 1]:g}{end}", cosines[codes == code]


def kernel_density(values: Floats, grid: Floats) -> Floats:
    """Returns the (m,) estimated densities of (n,) cosines at (m,) points from -1 to 1.

    Gaussian kernels with Scott's bandwidth, sd n^(-1/5), reflected at -1 and 1, so that the density in between
    integrates to 1 although cosines pile up at 1. NaN for fewer than two values or equal ones.

    >>> grid = np.linspace(-1, 1, 2001)
    >>> round(float(np.trapezoid(kernel_density(np.array([0.2, 0.9, 1.0]), grid), grid)), 4)
    1.0
    """
    if len(values) < 2 or values.min() == values.max():
        return np.full(len(grid), np.nan)
    # Evaluating at reflected points is the same as reflecting the values.
    kernels = gaussian_kde(values)
    density: Floats = kernels(grid) + kernels(-2 - grid) + kernels(2 - grid)
    return density
