"""Methods trained with several seeds: how far apart are two, and how far does a seed carry?

One checkpoint says little about a method: 50 seeds of unsupervised SimCSE range over 3.5 points. The comparison of
two checkpoints knows nothing of that; here the runs are the sample. But other pairs would give other scores, too:
the interval of a method's mean is of both, other seeds and other pairs (see `statistics.seeds`).
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.judging.aligned import (
    AlignedScores,
    aligned_scores,
    common_values,
    in_points,
    shown_interval,
)
from stsbench.judging.comparison import ComparisonResult, Judged, by_kind, corrected, p_text, verdict
from stsbench.judging.runs import require_seeds_of_one_recipe
from stsbench.records.kinds import KINDS
from stsbench.records.record import RunRecord
from stsbench.render.charts import forest
from stsbench.render.table import Table, Tables, interval
from stsbench.statistics import DEPENDENCE, Dependence
from stsbench.statistics.dependence import Variance
from stsbench.statistics.means import compare_means, spread
from stsbench.statistics.seeds import (
    RESAMPLES,
    SEED,
    MeanVariance,
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
"""Runs of each method from which on a test is made."""


@dataclass(frozen=True)
class SeedsDifference(Judged):
    """How two methods score on one task, or on average; scores x 100. NaN where something is undefined.

    Attributes:
        kind: of the task (see `stsbench.records.kinds`).
        task: its name; of an average what that of its kind is called.
        a_runs: the number of runs of A; `a_mean`, `a_sd` (sample standard deviation), `a_lowest` and `a_highest`
            of their scores; the same of B, whose `b_runs` is 0 where there is none.
        a_low: lower limit of the interval of A's mean over other seeds and other pairs, and `a_high` the upper;
            from two runs on. The same of B.
        a_seed_share: share of that variance that is the seeds', and `a_pair_share` that is the pairs' (the rest is
            of single runs on single pairs); NaN where the pairs are not known: then it is of seeds alone.
        a_iqm: interquartile mean of A's runs, with the limits `a_iqm_low` and `a_iqm_high` of the bootstrap over
            whole runs; from `ENOUGH` runs on. The same of B.
        difference: mean of B less mean of A, with its interval `low` to `high` over other seeds and other pairs;
            these and the p-values only from `ENOUGH` runs of each on.
        p: of that interval; `p_holm`: after Holm's correction over the tasks.
        seed_share: share of the difference's variance that is the seeds', and `pair_share` that is the pairs'.
        seeds_low: lower limit by Welch's t test: over other seeds, on these pairs; `seeds_high`, `seeds_p` alike.
        permutation_p: by the permutation test of the runs, on these pairs, not corrected.
        improvement: probability that a run of B is above one of A, with `improvement_low` and `improvement_high`
            of the bootstrap over whole runs.
    """

    kind: str
    task: str
    a_runs: int
    a_mean: float
    a_sd: float
    a_lowest: float
    a_highest: float
    b_runs: int = 0
    b_mean: float = math.nan
    b_sd: float = math.nan
    b_lowest: float = math.nan
    b_highest: float = math.nan
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
    a_low: float = math.nan
    a_high: float = math.nan
    a_seed_share: float = math.nan
    a_pair_share: float = math.nan
    a_iqm: float = math.nan
    a_iqm_low: float = math.nan
    a_iqm_high: float = math.nan
    b_low: float = math.nan
    b_high: float = math.nan
    b_seed_share: float = math.nan
    b_pair_share: float = math.nan
    b_iqm: float = math.nan
    b_iqm_low: float = math.nan
    b_iqm_high: float = math.nan


@dataclass(frozen=True)
class SeedsComparison(ComparisonResult):
    """Methods over seeds.

    Its attributes are those of `Comparison`, without subsets; `b` is empty if there is no other method.
    """

    rows: tuple[SeedsDifference, ...]

    @property
    def sentence(self) -> str:
        """What is to be said, in a sentence for each kind of task; a claim only from `ENOUGH` runs on."""
        return " ".join(map(self._sentence, by_kind(self.rows).values()))

    @property
    def frame(self) -> pd.DataFrame:
        """One row per task and the average, with the columns of `SeedsDifference`."""
        return pd.DataFrame([asdict(row) for row in self.rows])

    def table(self, *, subsets: bool = False) -> Tables:
        """Return a table of all tasks, one of the shares and the whole runs, one of what was found in corpora.

        Args:
            subsets: without effect: methods are compared by whole tasks.
        """
        # Of a method alone, or of few seeds, there is no test.
        scores = pd.DataFrame([self._cells(row) for row in self.rows]).dropna(axis="columns", how="all")
        parts = pd.DataFrame([self._robust_cells(row) for row in self.rows]).replace("", None)
        parts = parts.dropna(axis="columns", how="all")
        more = [Table(parts)] if len(parts.columns) > 1 else []
        return self._with_overlaps([Table(scores, headline="B − A"), *more])

    def plot(self) -> "Figure":
        """Return a forest plot: the means with their ranges."""
        # Runs are named by their folders, of which the last part says enough where they differ in it.
        last = [PurePath(name).name for name in self._sides.values()]
        names = last if len(set(last)) == len(last) and all(last) else list(self._sides.values())
        rows = [
            {
                "label": row.task,
                "series": name,
                "value": getattr(row, f"{side}_mean"),
                "low": getattr(row, f"{side}_lowest"),
                "high": getattr(row, f"{side}_highest"),
                "filled": True,
                "summary": not row.is_task,
            }
            for row in self.rows
            for side, name in zip(self._sides, names, strict=True)
        ]
        return forest(pd.DataFrame(rows), self._title)

    @property
    def legend(self) -> list[str]:
        """Which is A and which is B; what the columns hold that are no plain scores."""
        lines = super().legend
        if not all(math.isnan(row.a_low) for row in self.rows):
            lines.append(
                f"{100 * self.level:g} %: the mean over other seeds and other pairs; seeds, pairs: their shares "
                "of its variance (the rest is of single runs on single pairs)"
            )
        if not all(math.isnan(row.a_iqm) for row in self.rows):
            lines.append("IQM: mean of the middle half of the runs; it and P(B > A) by resampling whole runs")
        return lines

    @property
    def remarks(self) -> list[str]:
        """What so many runs allow to say, what was found in each corpus, and the notes; a line each."""
        return [*self._on_few_runs(), *super().remarks]

    @property
    def _title(self) -> str:
        return "mean and range over seeds"

    @property
    def _sides(self) -> dict[str, str]:
        """The names of the methods by the letter that their fields begin with."""
        return {"a": self.a, "b": self.b} if self.b else {"a": self.a}

    def _sentence(self, rows: Sequence[SeedsDifference]) -> str:
        last = rows[-1]
        where = f"on {last.task}" if last.is_task else f"on {KINDS[last.kind].words} average"
        spreads = f"{self.a}: {_spread_text(last.a_mean, last.a_sd, last.a_runs)}"
        if not last.b_runs:
            return f"{spreads} {where}."
        spreads += f", {self.b}: {_spread_text(last.b_mean, last.b_sd, last.b_runs)} {where}"
        if min(last.a_runs, last.b_runs) < ENOUGH:
            return f"{spreads}; no claim: that takes {ENOUGH} runs of each."
        return f"{spreads}. {verdict(rows, self.level, (self.a, self.b))}"

    def _cells(self, row: SeedsDifference) -> dict[str, object]:
        cells: dict[str, object] = {"task": row.task}
        for side in self._sides:
            runs, mean, sd, lowest, highest = (
                getattr(row, f"{side}_{part}") for part in ("runs", "mean", "sd", "lowest", "highest")
            )
            letter = side.upper()
            range_text = f"{lowest:.2f} to {highest:.2f}" if runs > 1 else None
            cells |= {letter: mean, f"sd {letter}": sd, f"range {letter}": range_text}
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

    def _robust_cells(self, row: SeedsDifference) -> dict[str, object]:
        cells: dict[str, object] = {"task": row.task}
        for side in self._sides:
            letter = side.upper()
            limits = interval(getattr(row, f"{side}_low"), getattr(row, f"{side}_high"))
            cells |= {
                f"{letter} {100 * self.level:g} %": limits,
                f"seeds {letter}": _percent(getattr(row, f"{side}_seed_share")),
                f"pairs {letter}": _percent(getattr(row, f"{side}_pair_share")),
                f"IQM {letter}": _with_limits(row, f"{side}_iqm"),
            }
        return cells | {"P(B > A)": _with_limits(row, "improvement")}

    def _on_few_runs(self) -> Iterator[str]:
        last = self.rows[-1]
        for side, name in self._sides.items():
            runs, sd = getattr(last, f"{side}_runs"), getattr(last, f"{side}_sd")
            if runs < ENOUGH:
                yield f"note: {name}: {what_runs_say(runs, sd)}"


def _spread_text(mean: float, sd: float, runs: int) -> str:
    return f"{mean:.2f} (one run)" if runs == 1 else f"{mean:.2f} ± {sd:.2f} over {runs} runs"


def what_runs_say(runs: int, sd: float) -> str:
    """Return what one run, or a few whose sample standard deviation is `sd`, allow to say of a method, in words.

    >>> print(what_runs_say(2, 0.4))
    two runs hardly know how far seeds carry: from an sd of 0.40 the true one may be anything from 0.18 to 12.76
    """
    if runs == 1:
        return (
            "one run says what this checkpoint scores, and nothing of how far a seed carries: another training "
            "may score otherwise by an amount that no number of pairs shows"
        )
    low, high = (factor * sd for factor in spread_factors(runs))
    number, how = {2: ("two", "hardly know"), 3: ("three", "know roughly")}.get(runs, (str(runs), "know roughly"))
    true = f"the true one may be anything from {low:.2f} to {high:.2f}"
    return f"{number} runs {how} how far seeds carry: from an sd of {sd:.2f} {true}"


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{100 * share:.0f} %"


def _with_limits(row: SeedsDifference, field: str) -> str:
    value, low, high = (getattr(row, field + end) for end in ("", "_low", "_high"))
    return "" if math.isnan(value) else f"{value:.2f} {interval(low, high)}"


@dataclass(frozen=True)
class _Settings:
    """How methods are compared: which pairs depend on each other, the level, and the draws of whole runs."""

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
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> SeedsComparison:
    """Compare the runs of one method over seeds with those of another; where `b` is empty, tell the spread of `a`.

    The runs have a name each for messages, the methods have `names`. `resamples` are of whole runs, for the
    interquartile mean and the probability of improvement, and `seed` is of these.
    """
    runs = {**a, **b}
    for method in (a, b):
        require_seeds_of_one_recipe(method)
    scores, left_out = common_values(runs)
    if not scores:
        raise UserError("there is no task that all runs were measured on: measure them on the same tasks.")
    for (_, task), values in scores.items():
        if np.isnan(values).any():
            name = list(runs)[int(np.argmax(np.isnan(values)))]
            raise UserError(f"{name} has no score on {task} (its similarities are constant): leave it out.")
    aligned, notes = _aligned(runs)
    drawn = resampled_runs([len(method) for method in (a, b) if method], resamples, generator(seed, "runs"))
    settings = _Settings(interval, level, drawn)
    rows: list[SeedsDifference] = []
    for kind in KINDS:
        rows += corrected(
            [
                SeedsDifference(
                    kind, task, **_fields(values[: len(a)], values[len(a) :], aligned.get(task), settings)
                )
                for (held, task), values in scores.items()
                if held == kind
            ]
        )
    unknown = [name for name, record in runs.items() if record.model.weights_sha256 is None]
    if unknown:
        notes.append(f"whether {', '.join(unknown)} are of different weights cannot be known.")
    return SeedsComparison(*names, rows=tuple(rows), level=level, notes=(*left_out, *notes))


def _aligned(runs: Mapping[str, RunRecord]) -> tuple[dict[str, AlignedScores], list[str]]:
    """Return what each pair contributes to the runs' scores, by task; nothing where that is not known, and why."""
    imported = [name for name, record in runs.items() if record.is_imported]
    why = f"{imported[-1]} was imported, with scores alone" if imported else _unreadable(runs.values())
    if why:
        return {}, [f"what other pairs would change is not known ({why}): intervals are over seeds alone."]
    tasks, _ = aligned_scores(runs)
    return {task.task: task for task in tasks}, []


def _unreadable(records: Iterable[RunRecord]) -> str:
    """Return why the items of some records cannot be read; empty if they can."""
    try:
        for record in records:
            _ = record.items
    except UserError as error:
        return str(error).rstrip(".")
    return ""


def _fields(a: Floats, b: Floats, aligned: AlignedScores | None, settings: _Settings) -> dict[str, Any]:
    fields = _of_method("a", a, aligned, 0, settings) | _of_method("b", b, aligned, len(a), settings)
    if min(len(a), len(b)) >= ENOUGH:
        fields |= _of_difference(a, b, aligned, settings)
    return fields


def _of_method(
    side: str, scores: Floats, aligned: AlignedScores | None, start: int, settings: _Settings
) -> dict[str, Any]:
    """Return the fields of a method: the spread of its runs, the interval of its mean, the interquartile mean."""
    if not len(scores):
        return {}
    fields: dict[str, Any] = spread(scores)._asdict()
    fields["runs"] = fields.pop("size")
    if len(scores) > 1 and aligned is None:
        variance, df = float(scores.var(ddof=1)) / len(scores), float(len(scores) - 1)
        (fields["low"], fields["high"]), _ = shown_interval(fields["mean"], variance, df, settings.level)
    elif len(scores) > 1 and aligned is not None:
        limits = _limits(fields["mean"], [scores], aligned, settings, start)
        fields |= {name: limits[name] for name in ("low", "high", "seed_share", "pair_share")}
    if len(scores) >= ENOUGH:
        drawn = interquartile_mean(scores[settings.draws[1 if start else 0]])
        fields["iqm"] = float(interquartile_mean(scores))
        fields["iqm_low"], fields["iqm_high"] = percentile_interval(drawn, settings.level)
    return {f"{side}_{name}": value for name, value in fields.items()}


def _of_difference(a: Floats, b: Floats, aligned: AlignedScores | None, settings: _Settings) -> dict[str, Any]:
    """Return the fields of the difference of two methods: its interval, its tests, who is likely above."""
    test = compare_means(a, b, level=settings.level)
    drawn = improvement(a[settings.draws[0]], b[settings.draws[1]])
    low, high = percentile_interval(drawn, settings.level)
    over_seeds = {"low": test.low, "high": test.high, "p": test.welch_p}
    return {
        "difference": test.difference,
        **(over_seeds if aligned is None else _limits(test.difference, [a, b], aligned, settings)),
        **{f"seeds_{name}": value for name, value in over_seeds.items()},
        "permutation_p": test.permutation_p,
        "improvement": float(improvement(a, b)),
        "improvement_low": low,
        "improvement_high": high,
    }


def _limits(
    value: float, methods: Sequence[Floats], aligned: AlignedScores, settings: _Settings, start: int = 0
) -> dict[str, float]:
    """Return the interval and p-value of a method's mean, or of a difference, over other seeds and other pairs."""
    variance = variance_over_seeds(methods, aligned, settings.dependence, start)
    (low, high), p = shown_interval(value, variance.value, variance.df, settings.level)
    shares = {"seed_share": variance.share(variance.seeds), "pair_share": variance.share(variance.pairs)}
    return {"low": low, "high": high, "p": p, **shares}


def variance_over_seeds(
    methods: Sequence[Floats], aligned: AlignedScores, dependence: Dependence, start: int = 0
) -> MeanVariance:
    """Return the variance of a method's mean or of the difference of two, in points squared."""
    return mean_variance(*runs_over_pairs(methods, aligned, dependence, start))


def runs_over_pairs(
    methods: Sequence[Floats], aligned: AlignedScores, dependence: Dependence, start: int = 0
) -> tuple[list[Runs], Variance]:
    """Return the runs of one method or two, and the variance over pairs of the mean or of the difference.

    `methods` are the scores x 100 of their runs, `start` is the place of the first of these runs among all.
    """
    weights = np.zeros(len(aligned.scores))
    matrix = 1e4 * aligned.covariance(dependence)
    parts = []
    for sign, scores in zip((-1, 1) if len(methods) > 1 else (1,), methods, strict=True):
        places = slice(start, start + len(scores))
        weights[places] = sign / len(scores)
        parts.append(Runs(scores, interaction_of(matrix[places, places])))
        start += len(scores)
    return parts, in_points(aligned.variance_of(weights, dependence))
