"""Compares methods by several runs each, which differ in their training seed.

Fifty seeds of unsupervised SimCSE range over 3.5 points, so one checkpoint says little about a method. Here the
sample is a set of runs. Scores also vary with the pairs, so intervals are over other seeds and other pairs (see
`statistics.seeds`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.judging.aligned import AlignedScores, aligned_scores, common_values
from stsbench.judging.comparison import ComparisonResult, corrected, verdict_sentence
from stsbench.judging.runs import require_seeds_of_one_recipe
from stsbench.judging.verdicts import p_text, records
from stsbench.records.kinds import AVERAGES, KINDS
from stsbench.records.record import RunRecord
from stsbench.render.charts import forest
from stsbench.render.table import Table, Tables, interval
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
Row = dict[Any, Any]

ENOUGH = 5
"""Runs of each method that a test needs."""

_METHOD = (
    *("mean", "sd", "lowest", "highest", "low", "high", "seed_share", "pair_share"),
    *("iqm", "iqm_low", "iqm_high"),
)
_DIFFERENCE = (
    *("difference", "low", "high", "p", "p_holm", "permutation_p", "seed_share", "pair_share"),
    *("seeds_low", "seeds_high", "seeds_p", "improvement", "improvement_low", "improvement_high"),
)


@dataclass(frozen=True, eq=False)
class SeedsComparison(ComparisonResult):
    """One or two methods over seeds.

    Attributes:
        a: name of method A; `b`: of method B, empty if only A is described.
        rows: a row per task; after the tasks of a kind their average. Scores are x 100, undefined values NaN.

            - `kind`, `task`;
            - `difference`: mean of B minus mean of A, with its interval `low` to `high` over other seeds and other
              pairs. This and all p-values need `ENOUGH` runs of each method;
            - `p`: its two-sided p-value; `p_holm`: after Holm's correction over the tasks; `verdict`: of B;
            - `seed_share`: share of its variance due to seeds; `pair_share`: due to pairs (the rest is their
              interaction);
            - `seeds_low`, `seeds_high`, `seeds_p`: Welch's t test over other seeds on these pairs;
              `permutation_p`: the permutation test;
            - `improvement`: probability that a run of B beats one of A, with its bootstrap limits over whole runs;
            - of each method, as in `a_runs`: number of `runs`, their `mean`, sample standard deviation `sd` and
              range `lowest` to `highest`; from two runs on the interval `low` to `high` of the mean, with
              `seed_share` and `pair_share` (NaN if the interval is over seeds only); from `ENOUGH` runs on the
              interquartile mean `iqm` with its bootstrap limits.
        level: level of the intervals.
    """

    caption = "mean and range over seeds"

    @property
    def sentence(self) -> str:
        """The result, one sentence for each kind of task; a claim needs `ENOUGH` runs of each method."""
        return " ".join(self._sentence(rows) for _, rows in self.rows.groupby("kind", sort=False))

    def table(self, *, subsets: bool = False) -> Tables:
        """Returns a table of scores, and one of variance shares and whole-run statistics.

        Args:
            subsets: ignored; methods are compared by whole tasks.
        """
        records = self.rows.to_dict("records")
        frames = [pd.DataFrame(map(cells, records)) for cells in (self._cells, self._whole_run_cells)]
        # Columns that need more runs, or a second method, are empty.
        scores, more = (frame.replace("", None).dropna(axis="columns", how="all") for frame in frames)
        return Tables([Table(scores, headline="B − A"), *([Table(more)] if len(more.columns) > 1 else [])])

    def plot(self) -> "Figure":
        """Returns a forest plot of means and ranges."""
        columns = {"mean": "value", "lowest": "low", "highest": "high"}
        sides = [
            pd.DataFrame({name: self.rows[f"{side}_{column}"] for column, name in columns.items()}).assign(
                label=self.rows["task"], series=name, filled=True, summary=self.rows["task"].isin(AVERAGES)
            )
            for side, name in self._methods
        ]
        return forest(pd.concat(sides).sort_index(kind="stable"), self.caption)

    @property
    def remarks(self) -> list[str]:
        """The limits of few runs, and the notes, one line each."""
        last = self.rows.to_dict("records")[-1]
        few = [
            f"{name}: {_few_runs_text(last[f'{side}_runs'], last[f'{side}_sd'])}"
            for side, name in self._methods
            if last[f"{side}_runs"] < ENOUGH
        ]
        return [*([f"note: {'; '.join(few)}."] if few else []), *super().remarks]

    @property
    def _methods(self) -> list[tuple[str, str]]:
        """The sides, `a` and `b`, and names of the methods that have runs."""
        sides = (("a", self.a), ("b", self.b))
        return [(side, name) for side, name in sides if self.rows[f"{side}_runs"].iloc[0]]

    def _sentence(self, rows: pd.DataFrame) -> str:
        last = rows.to_dict("records")[-1]
        task = last["task"]
        where = f"on {KINDS[last['kind']].words} average" if task in AVERAGES else f"on {task}"
        spreads = ", ".join(f"{name}: {_spread_text(last, side)}" for side, name in self._methods)
        if not last["b_runs"]:
            return f"{spreads} {where}."
        if min(last["a_runs"], last["b_runs"]) < ENOUGH:
            return f"{spreads} {where}; a test needs {ENOUGH} runs of each."
        return f"{spreads} {where}. {verdict_sentence(records(rows), self.level, (self.a, self.b))}"

    def _cells(self, row: Row) -> Row:
        cells: Row = {"task": row["task"]}
        for side, _ in self._methods:
            low, high, letter = row[f"{side}_lowest"], row[f"{side}_highest"], side.upper()
            range_text = f"{low:.2f} to {high:.2f}" if row[f"{side}_runs"] > 1 else None
            cells |= {
                letter: row[f"{side}_mean"],
                f"sd {letter}": row[f"{side}_sd"],
                f"range {letter}": range_text,
            }
        low, high = self._limits
        cells |= {"B − A": row["difference"], low: row["low"], high: row["high"]}
        tests = {"p": "p", "p (Holm)": "p_holm", "seeds alone p": "seeds_p", "permutation p": "permutation_p"}
        return cells | {head: p_text(row[name]) for head, name in tests.items()}

    def _whole_run_cells(self, row: Row) -> Row:
        cells: Row = {"task": row["task"]}
        for side, _ in self._methods:
            letter = side.upper()
            cells |= {
                f"{letter} {100 * self.level:g} %": interval(row[f"{side}_low"], row[f"{side}_high"]),
                f"seeds {letter}": _percent(row[f"{side}_seed_share"]),
                f"pairs {letter}": _percent(row[f"{side}_pair_share"]),
                f"IQM {letter}": _with_limits(row, f"{side}_iqm"),
            }
        return cells | {"P(B > A)": _with_limits(row, "improvement")}


def _spread_text(row: Row, side: str) -> str:
    runs, mean, sd = (row[f"{side}_{name}"] for name in ("runs", "mean", "sd"))
    return f"{mean:.2f} (one run)" if runs == 1 else f"{mean:.2f} ± {sd:.2f} over {runs} runs"


def _few_runs_text(runs: int, sd: float) -> str:
    if runs == 1:
        return "one run does not show how much scores vary over seeds"
    low, high = (factor * sd for factor in spread_factors(runs))
    return f"with {runs} runs, an sd of {sd:.2f} is compatible with a true one from {low:.2f} to {high:.2f}"


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{100 * share:.0f} %"


def _with_limits(row: Row, name: str) -> str:
    value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
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
    for (_, task), values in scores.items():
        if np.isnan(values).any():
            name = list(runs)[int(np.argmax(np.isnan(values)))]
            raise UserError(f"{name} has no score on {task} (its similarities are constant): leave it out.")
    aligned, notes = _aligned(runs)
    rng = generator(SEED, "runs")
    # The same draws are used for every task, because one run has the scores of all tasks.
    drawn = [rng.integers(len(method), size=(RESAMPLES, len(method))) for method in (a, b) if method]
    settings = _Settings(interval, level, drawn)
    rows = [
        _difference(kind, task, (values[: len(a)], values[len(a) :]), aligned.get(task), settings)
        for (kind, task), values in scores.items()
    ]
    unknown = [name for name, record in runs.items() if record.model.weights_sha256 is None]
    if unknown:
        notes.append(f"no weights are known for {', '.join(unknown)}: they may be the same model.")
    return SeedsComparison(*names, corrected(pd.DataFrame(rows), level), level, notes=(*left_out, *notes))


def _aligned(runs: Mapping[str, RunRecord]) -> tuple[dict[str, AlignedScores], list[str]]:
    """Returns the aligned scores by task, or none and a note if a record has no readable items."""
    try:
        for record in runs.values():
            _ = record.items
    except UserError as error:
        return {}, [f"no pairs are available ({str(error).rstrip('.')}): intervals are over seeds only."]
    tasks, _ = aligned_scores(runs)
    return {task.task: task for task in tasks}, []


def _difference(
    kind: str, task: str, methods: tuple[Floats, Floats], aligned: AlignedScores | None, settings: _Settings
) -> Row:
    a, b = methods
    row: Row = {"kind": kind, "task": task} | dict.fromkeys(_DIFFERENCE, math.nan)
    for side, scores, start in (("a", a, 0), ("b", b, len(a))):
        row |= {f"{side}_{name}": number for name, number in _method(scores, aligned, start, settings).items()}
    if min(len(a), len(b)) < ENOUGH:
        return row
    test = compare_means(a, b, level=settings.level)
    drawn = improvement(a[settings.draws[0]], b[settings.draws[1]])
    for name in ("", "seeds_"):
        row |= {f"{name}low": test.low, f"{name}high": test.high, f"{name}p": test.welch_p}
    row |= {"difference": test.difference, "permutation_p": test.permutation_p}
    row |= {"improvement": float(improvement(a, b)), **_limits("improvement", drawn, settings.level)}
    if aligned is not None:
        estimate, shares = _over_seeds_and_pairs(test.difference, methods, aligned, settings.dependence)
        low, high, _ = estimate.interval(settings.level)
        row |= {"low": low, "high": high, "p": estimate.p, **shares}
    return row


def _method(scores: Floats, aligned: AlignedScores | None, start: int, settings: _Settings) -> Row:
    """Returns the statistics of the runs that start at a position among all runs."""
    size = len(scores)
    numbers: Row = {"runs": size} | dict.fromkeys(_METHOD, math.nan)
    if size:
        numbers |= {"mean": float(scores.mean()), "lowest": float(scores.min()), "highest": float(scores.max())}
    if size > 1:
        numbers["sd"] = float(scores.std(ddof=1))
        if aligned is None:
            estimate = Estimate.with_error(numbers["mean"], float(scores.var(ddof=1)) / size, size - 1)
        else:
            estimate, shares = _over_seeds_and_pairs(
                numbers["mean"], [scores], aligned, settings.dependence, start
            )
            numbers |= shares
        low, high, _ = estimate.interval(settings.level)
        numbers |= {"low": low, "high": high}
    if size >= ENOUGH:
        drawn = interquartile_mean(scores[settings.draws[1 if start else 0]])
        numbers |= {"iqm": float(interquartile_mean(scores)), **_limits("iqm", drawn, settings.level)}
    return numbers


def _limits(name: str, drawn: Floats, level: float) -> Row:
    """Returns the percentile interval of a statistic of resampled runs (Efron 1979)."""
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return {f"{name}_low": float(low), f"{name}_high": float(high)}


def _over_seeds_and_pairs(
    value: float, methods: Sequence[Floats], aligned: AlignedScores, dependence: Dependence, start: int = 0
) -> tuple[Estimate, dict[str, Any]]:
    """Returns the estimate of a mean, or of a difference of two, and the shares of its variance; in points."""
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
