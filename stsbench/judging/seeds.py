"""Compares methods by several runs each, which differ in their training seed.

Fifty seeds of unsupervised SimCSE range over 3.5 points, so one checkpoint says little about a method. Here the
sample is a set of runs. Scores also vary with the pairs, so intervals are over other seeds and other pairs (see
`statistics.seeds`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.judging.aligned import AlignedScores, aligned_scores, common_values
from stsbench.judging.comparison import corrected, limit_names, verdict_sentence
from stsbench.judging.verdicts import OfTwo, p_text, records
from stsbench.records.kinds import AVERAGES, KINDS
from stsbench.records.record import RunRecord
from stsbench.render.charts import forest
from stsbench.render.table import Result, Table, Tables, interval
from stsbench.scoring.settings import Intervals
from stsbench.statistics import DEPENDENCE, Dependence
from stsbench.statistics.dependence import Variance
from stsbench.statistics.estimate import Estimate, compare_means
from stsbench.statistics.seeds import (
    RESAMPLES,
    SEED,
    Runs,
    generator,
    improvement,
    interaction_of,
    interquartile_mean,
    mean_variance,
    spread_factors,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
Draws = NDArray[np.intp]
Row = dict[Any, Any]

ENOUGH = 5
"""Runs of each method that a test needs."""

_DIFFERENCE = (
    *("difference", "low", "high", "p", "p_holm", "permutation_p", "seed_share", "pair_share"),
    *("seeds_low", "seeds_high", "seeds_p", "improvement", "improvement_low", "improvement_high"),
)


@dataclass(frozen=True)
class Method:
    """The runs of a method on a task, x 100. What needs more runs is NaN.

    Attributes:
        runs: number of runs; 0 for no method.
        mean: their mean; `sd`: their sample standard deviation.
        lowest: with `highest` the range.
        low: with `high` the interval of the mean, from two runs on.
        seed_share: share of the mean's variance that is due to seeds; NaN if the interval is over seeds only.
        pair_share: share that is due to pairs.
        iqm: interquartile mean with its bootstrap limits `iqm_low` and `iqm_high`, from `ENOUGH` runs on.
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

    def __str__(self) -> str:
        """Returns the mean and standard deviation."""
        if self.runs == 1:
            return f"{self.mean:.2f} (one run)"
        return f"{self.mean:.2f} ± {self.sd:.2f} over {self.runs} runs"

    @property
    def caution(self) -> str:
        """What so few runs show."""
        if self.runs == 1:
            return "one run does not show how much scores vary over seeds"
        low, high = (factor * self.sd for factor in spread_factors(self.runs))
        sd = f"an sd of {self.sd:.2f} is compatible with a true one from {low:.2f} to {high:.2f}"
        return f"with {self.runs} runs, {sd}"


@dataclass(frozen=True, eq=False)
class SeedsComparison(OfTwo):
    """One or two methods over seeds.

    Attributes:
        a: name of method A; `b`: of method B, empty if only A is described.
        rows: a row per task; after the tasks of a kind their average. Scores are x 100, undefined values NaN.

            - `kind`, `task`; `a` and `b`: the runs of each method, a `Method`. In `.frame` its fields are columns,
              as in `a_runs` and `b_mean`;
            - `difference`: mean of B minus mean of A, with its interval `low` to `high` over other seeds and other
              pairs. This and all p-values need `ENOUGH` runs of each method;
            - `p`: its two-sided p-value; `p_holm`: after Holm's correction over the tasks; `verdict`: of B;
            - `seed_share`: share of its variance due to seeds; `pair_share`: due to pairs (the rest is their
              interaction);
            - `seeds_low`, `seeds_high`, `seeds_p`: Welch's t test over other seeds on these pairs;
              `permutation_p`: the permutation test;
            - `improvement`: probability that a run of B beats one of A, with its bootstrap limits over whole runs.
        level: level of the intervals.
    """

    level: float

    @property
    def frame(self) -> pd.DataFrame:
        """One row per task and average, with the fields of both methods as columns."""
        methods = [pd.DataFrame(map(asdict, self.rows[side])).add_prefix(f"{side}_") for side in ("a", "b")]
        others = self.rows.drop(columns=["a", "b", "verdict"])
        return pd.concat([others, *methods, self.rows["verdict"]], axis="columns")

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields as plain data, with the rows of `frame`."""
        return super().to_dict() | {"rows": Result.to_dict(self)}

    @property
    def sentence(self) -> str:
        """The result, one sentence for each kind of task; a claim needs `ENOUGH` runs of each method."""
        return " ".join(self._sentence(rows) for _, rows in self.rows.groupby("kind", sort=False))

    def table(self) -> Tables:
        """Returns a table of scores, and one of variance shares and whole-run statistics."""
        rows = records(self.rows)
        frames = [pd.DataFrame(map(cells, rows)) for cells in (self._cells, self._whole_run_cells)]
        # Columns that need more runs, or a second method, are empty.
        scores, more = (frame.replace("", None).dropna(axis="columns", how="all") for frame in frames)
        return Tables([Table(scores, headline="B − A"), *([Table(more)] if len(more.columns) > 1 else [])])

    def plot(self) -> "Figure":
        """Returns a forest plot of means and ranges."""
        points = [
            {"label": row.task, "series": name, "value": method.mean, "low": method.lowest, "high": method.highest}
            for row in records(self.rows)
            for _, name, method in self._methods(row)
        ]
        frame = pd.DataFrame(points).assign(filled=True)
        return forest(frame.assign(summary=frame["label"].isin(AVERAGES)), "mean and range over seeds")

    @property
    def remarks(self) -> list[str]:
        """The limits of few runs, and the notes, one line each."""
        methods = self._methods(records(self.rows)[-1])
        few = [f"{name}: {method.caution}" for _, name, method in methods if method.runs < ENOUGH]
        return [*([f"note: {'; '.join(few)}."] if few else []), *super().remarks]

    def _methods(self, row: Any) -> list[tuple[str, str, Method]]:
        """Returns the letter, the name and the runs on a task of each method that has runs."""
        return [method for method in (("A", self.a, row.a), ("B", self.b, row.b)) if method[2].runs]

    def _sentence(self, rows: pd.DataFrame) -> str:
        last = records(rows)[-1]
        where = f"on {KINDS[last.kind].words} average" if last.task in AVERAGES else f"on {last.task}"
        spreads = ", ".join(f"{name}: {method}" for _, name, method in self._methods(last))
        if not last.b.runs:
            return f"{spreads} {where}."
        if min(last.a.runs, last.b.runs) < ENOUGH:
            return f"{spreads} {where}; a test needs {ENOUGH} runs of each."
        return f"{spreads} {where}. {verdict_sentence(records(rows), self.level, (self.a, self.b))}"

    def _cells(self, row: Any) -> Row:
        cells: Row = {"task": row.task}
        for letter, _, method in self._methods(row):
            range_text = f"{method.lowest:.2f} to {method.highest:.2f}" if method.runs > 1 else None
            cells |= {letter: method.mean, f"sd {letter}": method.sd, f"range {letter}": range_text}
        low, high = limit_names(self.level)
        cells |= {"B − A": row.difference, low: row.low, high: row.high}
        tests = {
            "p": row.p,
            "p (Holm)": row.p_holm,
            "seeds alone p": row.seeds_p,
            "permutation p": row.permutation_p,
        }
        return cells | {head: p_text(p) for head, p in tests.items()}

    def _whole_run_cells(self, row: Any) -> Row:
        cells: Row = {"task": row.task}
        for letter, _, method in self._methods(row):
            cells |= {
                f"{letter} {100 * self.level:g} %": interval(method.low, method.high),
                f"seeds {letter}": _percent(method.seed_share),
                f"pairs {letter}": _percent(method.pair_share),
                f"IQM {letter}": _with_limits(method, "iqm"),
            }
        return cells | {"P(B > A)": _with_limits(row, "improvement")}


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{100 * share:.0f} %"


def _with_limits(numbers: Any, name: str) -> str:
    value, low, high = (getattr(numbers, f"{name}{end}") for end in ("", "_low", "_high"))
    return "" if math.isnan(value) else f"{value:.2f} {interval(low, high)}"


def compare_seeds(
    methods: Mapping[str, Mapping[str, RunRecord]], intervals: Intervals | None = None
) -> SeedsComparison:
    """Compares the runs of two methods over seeds, or describes those of one.

    Args:
        methods: the runs of one or two methods, by method and name, as `group_seeds` returns them.
        intervals: how intervals are computed; by default dyadic, 95 %.
    """
    intervals = intervals or Intervals()
    runs = {name: record for method in methods.values() for name, record in method.items()}
    scores, left_out = common_values(runs)
    for (_, task), values in scores.items():
        if np.isnan(values).any():
            name = list(runs)[int(np.argmax(np.isnan(values)))]
            raise UserError(f"{name} has no score on {task} (its similarities are constant): leave it out.")
    aligned, notes = _aligned(runs)
    rng = generator(SEED, "runs")
    # The same draws are used for every task, because one run has the scores of all tasks.
    drawn = [rng.integers(len(method), size=(RESAMPLES, len(method))) for method in methods.values()]
    rows = [
        {"kind": kind, "task": task}
        | _numbers(np.split(values, [drawn[0].shape[1]]), drawn, aligned.get(task), intervals)
        for (kind, task), values in scores.items()
    ]
    if unknown := [name for name, record in runs.items() if record.model.weights_sha256 is None]:
        notes.append(f"no weights are known for {', '.join(unknown)}: they may be the same model.")
    a, b = (*methods, "")[:2]
    frame = corrected(pd.DataFrame(rows), intervals.level)
    return SeedsComparison(a, b, frame, intervals.level, notes=(*left_out, *notes))


def _aligned(runs: Mapping[str, RunRecord]) -> tuple[dict[str, AlignedScores], list[str]]:
    """Returns the aligned scores by task, or none and a note if a record has no readable items."""
    try:
        for record in runs.values():
            _ = record.items
    except UserError as error:
        return {}, [f"no pairs are available ({str(error).rstrip('.')}): intervals are over seeds only."]
    return {task.task: task for task in aligned_scores(runs)[0]}, []


def _numbers(
    methods: Sequence[Floats], drawn: Sequence[Draws], aligned: AlignedScores | None, intervals: Intervals
) -> Row:
    """Returns both methods on a task, and the numbers of their difference."""
    a, b = methods
    row: Row = dict.fromkeys(_DIFFERENCE, math.nan) | {"a": _method(a, drawn[0], aligned, 0, intervals)}
    row |= {"b": _method(b, drawn[-1], aligned, len(a), intervals)}
    if min(len(a), len(b)) < ENOUGH:
        return row
    test = compare_means(a, b, level=intervals.level)
    resampled = improvement(a[drawn[0]], b[drawn[1]])
    for name in ("", "seeds_"):
        row |= {f"{name}low": test.low, f"{name}high": test.high, f"{name}p": test.welch_p}
    row |= {"difference": test.difference, "permutation_p": test.permutation_p}
    row |= {"improvement": float(improvement(a, b)), **_limits("improvement", resampled, intervals.level)}
    if aligned is not None:
        estimate, shares = _over_seeds_and_pairs(test.difference, methods, aligned, intervals)
        low, high, _ = estimate.interval(intervals.level)
        row |= {"low": low, "high": high, "p": estimate.p, **shares}
    return row


def _method(
    scores: Floats, draws: Draws, aligned: AlignedScores | None, start: int, intervals: Intervals
) -> Method:
    """Returns the statistics of the runs that start at a position among all runs."""
    size = len(scores)
    if not size:
        return Method()
    numbers = {"mean": float(scores.mean()), "lowest": float(scores.min()), "highest": float(scores.max())}
    if size > 1:
        numbers["sd"] = float(scores.std(ddof=1))
        if aligned is None:
            estimate = Estimate.with_error(numbers["mean"], float(scores.var(ddof=1)) / size, size - 1)
        else:
            estimate, shares = _over_seeds_and_pairs(numbers["mean"], [scores], aligned, intervals, start)
            numbers |= shares
        low, high, _ = estimate.interval(intervals.level)
        numbers |= {"low": low, "high": high}
    if size >= ENOUGH:
        drawn = interquartile_mean(scores[draws])
        numbers |= {"iqm": float(interquartile_mean(scores)), **_limits("iqm", drawn, intervals.level)}
    return Method(size, **numbers)


def _limits(name: str, drawn: Floats, level: float) -> dict[str, float]:
    """Returns the percentile interval of a statistic of resampled runs (Efron 1979)."""
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return {f"{name}_low": float(low), f"{name}_high": float(high)}


def _over_seeds_and_pairs(
    value: float, methods: Sequence[Floats], aligned: AlignedScores, intervals: Intervals, start: int = 0
) -> tuple[Estimate, dict[str, float]]:
    """Returns the estimate of a mean, or of a difference of two, and the shares of its variance; in points."""
    variance = mean_variance(*runs_over_pairs(methods, aligned, intervals.interval or DEPENDENCE, start))
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
