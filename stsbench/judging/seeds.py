"""Compares methods by several runs each, which differ in their training seed.

Fifty seeds of unsupervised SimCSE range over 3.5 points, so one checkpoint says little about a method. Here the
runs are the sample. Scores also vary with the pairs, so intervals are over other seeds and other pairs (see
`statistics.seeds`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.judging.aligned import AlignedScores, aligned_scores, common_values
from stsbench.judging.comparison import ComparisonResult, Judged, corrected, verdict_sentence
from stsbench.judging.judgement import by_kind, p_text
from stsbench.judging.runs import require_seeds_of_one_recipe
from stsbench.records.kinds import KINDS
from stsbench.records.record import RunRecord
from stsbench.render.charts import forest
from stsbench.render.table import Table, Tables, interval
from stsbench.statistics import DEPENDENCE, Dependence
from stsbench.statistics.dependence import Variance
from stsbench.statistics.estimate import Estimate
from stsbench.statistics.means import compare_means, spread
from stsbench.statistics.seeds import (
    RESAMPLES,
    SEED,
    Runs,
    generator,
    improvement,
    interaction_of,
    interquartile_mean,
    mean_variance,
    percentile_interval,
    resampled_runs,
    spread_factors,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

ENOUGH = 5
"""Runs of each method that a test needs."""


@dataclass(frozen=True)
class Method:
    """The scores x 100 of one method's runs on one task or on average. Undefined values are NaN.

    Attributes:
        runs: number of runs; 0 if there is no such method.
        mean: mean of the scores; `sd` is their sample standard deviation, `lowest` and `highest` their range.
        low: lower limit of the interval of the mean over other seeds and other pairs, `high` the upper; from two
            runs on.
        seed_share: share of that variance due to seeds, `pair_share` due to pairs (the rest is their interaction);
            NaN without pairs, when the interval is over seeds alone.
        iqm: interquartile mean, `iqm_low` and `iqm_high` its bootstrap limits over whole runs; from `ENOUGH` runs.
    """

    runs: int = 0
    mean: float = math.nan
    sd: float = math.nan
    lowest: float = math.nan
    highest: float = math.nan
    low: float = math.nan
    high: float = math.nan
    seed_share: float = math.nan
    pair_share: float = math.nan
    iqm: float = math.nan
    iqm_low: float = math.nan
    iqm_high: float = math.nan


@dataclass(frozen=True)
class SeedsDifference(Judged):
    """Two methods on one task or on average. Scores are x 100; undefined values are NaN.

    Attributes:
        kind: kind of the task (see `stsbench.records.kinds`).
        task: name of the task or average.
        a: method A; `b`: method B, without runs if only A is described.
        difference: mean of B minus mean of A, with its interval `low` to `high` over other seeds and other pairs.
            This and all p-values need `ENOUGH` runs of each.
        p: two-sided p-value of the difference; `p_holm`: after Holm's correction over the tasks.
        seed_share: share of the difference's variance due to seeds; `pair_share`: due to pairs.
        seeds_low: lower limit of Welch's t test over other seeds on these pairs; `seeds_high`, `seeds_p` likewise.
        permutation_p: p-value of the permutation test of the runs on these pairs, not corrected.
        improvement: probability that a run of B beats one of A; `improvement_low` and `improvement_high` are its
            bootstrap limits over whole runs.
    """

    kind: str
    task: str
    a: Method
    b: Method = Method()
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    p_holm: float = math.nan
    permutation_p: float = math.nan
    seed_share: float = math.nan
    pair_share: float = math.nan
    seeds_low: float = math.nan
    seeds_high: float = math.nan
    seeds_p: float = math.nan
    improvement: float = math.nan
    improvement_low: float = math.nan
    improvement_high: float = math.nan


@dataclass(frozen=True)
class SeedsComparison(ComparisonResult):
    """One or two methods over seeds. The attributes are those of `Comparison`; `b` is empty for one method."""

    caption = "mean and range over seeds"

    rows: tuple[SeedsDifference, ...]

    @property
    def sentence(self) -> str:
        """The result, one sentence for each kind of task; a claim needs `ENOUGH` runs of each method."""
        return " ".join(map(self._sentence, by_kind(self.rows).values()))

    @property
    def frame(self) -> pd.DataFrame:
        """One row per task and average, with the columns of `SeedsDifference`, and of `Method` as `a_mean` ..."""
        rows = []
        for row in self.rows:
            columns = asdict(row)
            methods = {side: columns.pop(side) for side in ("a", "b")}
            rows.append(columns | {f"{side}_{name}": x for side, of in methods.items() for name, x in of.items()})
        return pd.DataFrame(rows)

    def table(self, *, subsets: bool = False) -> Tables:
        """Returns a table of scores, and one of variance shares and whole-run statistics.

        Args:
            subsets: without effect: methods are compared by whole tasks.
        """
        frames = [pd.DataFrame(map(cells, self.rows)) for cells in (self._cells, self._whole_run_cells)]
        # Columns that need more runs, or a second method, are empty.
        scores, more = (frame.replace("", None).dropna(axis="columns", how="all") for frame in frames)
        return Tables([Table(scores, headline="B − A"), *([Table(more)] if len(more.columns) > 1 else [])])

    def plot(self) -> "Figure":
        """Returns a forest plot of means and ranges."""
        rows = [
            {
                "label": row.task,
                "series": name,
                "value": method.mean,
                "low": method.lowest,
                "high": method.highest,
                "filled": True,
                "summary": not row.is_task,
            }
            for row in self.rows
            for _, name, method in self._methods(row)
        ]
        return forest(pd.DataFrame(rows), self.caption)

    @property
    def remarks(self) -> list[str]:
        """What few runs cannot show, and the notes, one line each."""
        few = [
            f"note: {name}: {_few_runs_text(method.runs, method.sd)}"
            for _, name, method in self._methods(self.rows[-1])
            if method.runs < ENOUGH
        ]
        return [*few, *super().remarks]

    def _methods(self, row: SeedsDifference) -> list[tuple[str, str, Method]]:
        """Returns letter, name and numbers of the methods that have runs."""
        methods = (("A", self.a, row.a), ("B", self.b, row.b))
        return [method for method in methods if method[2].runs]

    def _sentence(self, rows: Sequence[SeedsDifference]) -> str:
        last = rows[-1]
        where = f"on {last.task}" if last.is_task else f"on {KINDS[last.kind].words} average"
        spreads = ", ".join(f"{name}: {_spread_text(method)}" for _, name, method in self._methods(last))
        if not last.b.runs:
            return f"{spreads} {where}."
        if min(last.a.runs, last.b.runs) < ENOUGH:
            return f"{spreads} {where}; a test needs {ENOUGH} runs of each."
        return f"{spreads} {where}. {verdict_sentence(rows, self.level, (self.a, self.b))}"

    def _cells(self, row: SeedsDifference) -> dict[str, object]:
        cells: dict[str, object] = {"task": row.task}
        for letter, _, method in self._methods(row):
            range_text = f"{method.lowest:.2f} to {method.highest:.2f}" if method.runs > 1 else None
            cells |= {letter: method.mean, f"sd {letter}": method.sd, f"range {letter}": range_text}
        low, high = self._limits
        return cells | {
            "B − A": row.difference,
            low: row.low,
            high: row.high,
            "p": p_text(row.p),
            "p (Holm)": p_text(row.p_holm),
            "seeds alone p": p_text(row.seeds_p),
            "permutation p": p_text(row.permutation_p),
        }

    def _whole_run_cells(self, row: SeedsDifference) -> dict[str, object]:
        cells: dict[str, object] = {"task": row.task}
        for letter, _, method in self._methods(row):
            cells |= {
                f"{letter} {100 * self.level:g} %": interval(method.low, method.high),
                f"seeds {letter}": _percent(method.seed_share),
                f"pairs {letter}": _percent(method.pair_share),
                f"IQM {letter}": _with_limits(method.iqm, method.iqm_low, method.iqm_high),
            }
        better = _with_limits(row.improvement, row.improvement_low, row.improvement_high)
        return cells | {"P(B > A)": better}


def _spread_text(method: Method) -> str:
    if method.runs == 1:
        return f"{method.mean:.2f} (one run)"
    return f"{method.mean:.2f} ± {method.sd:.2f} over {method.runs} runs"


def _few_runs_text(runs: int, sd: float) -> str:
    if runs == 1:
        return "one run measures this checkpoint; it does not show how much scores vary over seeds"
    low, high = (factor * sd for factor in spread_factors(runs))
    return f"with {runs} runs, an sd of {sd:.2f} is compatible with a true one from {low:.2f} to {high:.2f}"


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{100 * share:.0f} %"


def _with_limits(value: float, low: float, high: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f} {interval(low, high)}"


@dataclass(frozen=True)
class _Settings:
    dependence: Dependence
    level: float
    draws: Sequence[NDArray[np.intp]]


def compare_seeds(
    a: Mapping[str, RunRecord],
    b: Mapping[str, RunRecord],
    names: tuple[str, str],
    *,
    level: float,
    interval: Dependence = DEPENDENCE,
) -> SeedsComparison:
    """Compares the runs of two methods over seeds, or describes those of one.

    Args:
        a: the runs of method A by name; names are used in messages.
        b: the runs of method B; empty to describe A alone.
        names: names of the two methods.
        level: level of the intervals.
        interval: which pairs are treated as dependent.
    """
    runs = {**a, **b}
    for method in (a, b):
        require_seeds_of_one_recipe(method)
    scores, left_out = common_values(runs)
    if not scores:
        raise UserError("the runs have no task in common: measure them on the same tasks.")
    for (_, task), values in scores.items():
        if np.isnan(values).any():
            name = list(runs)[int(np.argmax(np.isnan(values)))]
            raise UserError(f"{name} has no score on {task} (its similarities are constant): leave it out.")
    aligned, notes = _aligned(runs)
    drawn = resampled_runs([len(method) for method in (a, b) if method], RESAMPLES, generator(SEED, "runs"))
    settings = _Settings(interval, level, drawn)
    rows = [
        _difference(kind, task, (values[: len(a)], values[len(a) :]), aligned.get(task), settings)
        for (kind, task), values in scores.items()
    ]
    judged = tuple(row for of_kind in by_kind(rows).values() for row in corrected(of_kind))
    unknown = [name for name, record in runs.items() if record.model.weights_sha256 is None]
    if unknown:
        notes.append(f"no weights are known for {', '.join(unknown)}: they may be the same model.")
    return SeedsComparison(*names, rows=judged, level=level, notes=(*left_out, *notes))


def _aligned(runs: Mapping[str, RunRecord]) -> tuple[dict[str, AlignedScores], list[str]]:
    """Returns the aligned scores by task, or none and a note if a record has no readable items."""
    try:
        for record in runs.values():
            _ = record.items
    except UserError as error:
        return {}, [f"no pairs are available ({str(error).rstrip('.')}): intervals are over seeds alone."]
    tasks, _ = aligned_scores(runs)
    return {task.task: task for task in tasks}, []


def _difference(
    kind: str, task: str, methods: tuple[Floats, Floats], aligned: AlignedScores | None, settings: _Settings
) -> SeedsDifference:
    a, b = methods
    row = SeedsDifference(kind, task, _method(a, aligned, 0, settings))
    if len(b):
        row = replace(row, b=_method(b, aligned, len(a), settings))
    if min(len(a), len(b)) < ENOUGH:
        return row
    test = compare_means(a, b, level=settings.level)
    drawn = improvement(a[settings.draws[0]], b[settings.draws[1]])
    low, high = percentile_interval(drawn, settings.level)
    row = replace(
        row,
        difference=test.difference,
        low=test.low,
        high=test.high,
        p=test.welch_p,
        seeds_low=test.low,
        seeds_high=test.high,
        seeds_p=test.welch_p,
        permutation_p=test.permutation_p,
        improvement=float(improvement(a, b)),
        improvement_low=low,
        improvement_high=high,
    )
    if aligned is None:
        return row
    estimate, shares = estimate_over_seeds(test.difference, methods, aligned, settings.dependence)
    low, high, _ = estimate.interval(settings.level)
    return replace(row, low=low, high=high, p=estimate.p, **shares)


def _method(scores: Floats, aligned: AlignedScores | None, start: int, settings: _Settings) -> Method:
    """Returns the statistics of the runs that start at a position among all runs."""
    method, size = Method(*spread(scores)), len(scores)
    if size > 1:
        if aligned is None:
            estimate = Estimate.with_error(method.mean, float(scores.var(ddof=1)) / size, size - 1)
        else:
            estimate, shares = estimate_over_seeds(method.mean, [scores], aligned, settings.dependence, start)
            method = replace(method, **shares)
        low, high, _ = estimate.interval(settings.level)
        method = replace(method, low=low, high=high)
    if size >= ENOUGH:
        drawn = interquartile_mean(scores[settings.draws[1 if start else 0]])
        low, high = percentile_interval(drawn, settings.level)
        method = replace(method, iqm=float(interquartile_mean(scores)), iqm_low=low, iqm_high=high)
    return method


def estimate_over_seeds(
    value: float, methods: Sequence[Floats], aligned: AlignedScores, dependence: Dependence, start: int = 0
) -> tuple[Estimate, dict[str, Any]]:
    """Returns a method's mean, or the difference of two, with its variance over other seeds and other pairs.

    Args:
        value: the mean or difference x 100.
        methods: the scores x 100 of the runs of each method.
        aligned: the scores of all runs on the same items.
        dependence: which pairs are treated as dependent.
        start: position of the first of these runs in `aligned`.

    Returns:
        The estimate in points, and the shares of its variance due to seeds and to pairs.
    """
    variance = mean_variance(*runs_over_pairs(methods, aligned, dependence, start))
    shares = {"seed_share": variance.share(variance.seeds), "pair_share": variance.share(variance.pairs)}
    return Estimate.with_error(value, variance.value, variance.df), shares


def runs_over_pairs(
    methods: Sequence[Floats], aligned: AlignedScores, dependence: Dependence, start: int = 0
) -> tuple[list[Runs], Variance]:
    """Returns the runs of one or two methods, and the variance over pairs of the mean or of the difference."""
    weights = np.zeros(len(aligned.scores))
    matrix = 1e4 * aligned.covariance(dependence)
    parts = []
    for sign, scores in zip((-1, 1) if len(methods) > 1 else (1,), methods, strict=True):
        places = slice(start, start + len(scores))
        weights[places] = sign / len(scores)
        parts.append(Runs(scores, interaction_of(matrix[places, places])))
        start += len(scores)
    return parts, aligned.estimate(weights, dependence).in_points.variance
