"""What comparing methods over seeds finds: rows of numbers, what so many runs allow to say, tables and a plot."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from stsbench.judging.comparison import ComparisonResult, by_kind, p_text, result_tables, verdict
from stsbench.judging.overlap import Overlap
from stsbench.records.kinds import AVERAGES, KINDS
from stsbench.render.figures import forest
from stsbench.render.table import Table, Tables, interval
from stsbench.statistics.seeds import spread_factors

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ENOUGH = 5
"""Runs of each method from which on a test is made."""


@dataclass(frozen=True)
class SeedsDifference:
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

    @property
    def is_task(self) -> bool:
        """Whether this is a task, not the average."""
        return self.task not in AVERAGES


@dataclass(frozen=True)
class SeedsComparison(ComparisonResult):
    """Methods over seeds.

    Attributes:
        a: the name of the one; `b`: of the other, empty if there is none.
        rows: each task; after the tasks of a kind their average.
        level: of the intervals.
        notes: what a reader should know.
        overlaps: what of the test sentences was found in training corpora, if any were given.
    """

    a: str
    b: str
    rows: tuple[SeedsDifference, ...]
    level: float
    notes: tuple[str, ...] = ()
    overlaps: tuple[Overlap, ...] = ()

    @property
    def sentence(self) -> str:
        """What is to be said, in a sentence for each kind of task; a claim only from `ENOUGH` runs on."""
        return " ".join(map(self._sentence, by_kind(self.rows).values()))

    @property
    def frame(self) -> "pd.DataFrame":
        """One row per task and the average, with the columns of `SeedsDifference`."""
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows])

    def table(self, *, subsets: bool = False) -> Tables:
        """Return a table of all tasks, one of the shares and the whole runs, one of what was found in corpora.

        Args:
            subsets: without effect: methods are compared by whole tasks.
        """
        import pandas as pd

        frame = pd.DataFrame([self._cells(row) for row in self.rows])
        robust = pd.DataFrame([self._robust_cells(row) for row in self.rows]).replace("", None)
        # Of a method alone, or of few seeds, there is no test.
        found = result_tables([frame.dropna(axis="columns", how="all")], ())
        parts = robust.dropna(axis="columns", how="all")
        more = [Table(parts)] if len(parts.columns) > 1 else []
        return Tables([*found, *more, *result_tables([], self.overlaps)])

    def plot(self) -> "Figure":
        """Return a forest plot: the means with their ranges."""
        import pandas as pd

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
            for side, name in (("a", self.a), ("b", self.b))
            if name
        ]
        return forest(pd.DataFrame(rows), self._title)

    @property
    def _title(self) -> str:
        return "mean and range over seeds"

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
        for name, side in {"A": "a", "B": "b"}.items() if self.b else {"A": "a"}.items():
            runs, mean, sd, lowest, highest = (
                getattr(row, f"{side}_{part}") for part in ("runs", "mean", "sd", "lowest", "highest")
            )
            cells |= {
                name: mean,
                f"sd {name}": sd,
                f"range {name}": f"{lowest:.2f} to {highest:.2f}" if runs > 1 else None,
            }
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
        for name, side in {"A": "a", "B": "b"}.items() if self.b else {"A": "a"}.items():
            cells |= {
                f"{name} {100 * self.level:g} %": interval(
                    getattr(row, f"{side}_low"), getattr(row, f"{side}_high")
                ),
                f"seeds {name}": _percent(getattr(row, f"{side}_seed_share")),
                f"pairs {name}": _percent(getattr(row, f"{side}_pair_share")),
                f"IQM {name}": _with_limits(row, f"{side}_iqm"),
            }
        return cells | {"P(B > A)": _with_limits(row, "improvement")}

    @property
    def legend(self) -> list[str]:
        """Which is A and which is B; what the columns hold that are no plain scores."""
        lines = super().legend
        if any(row.a_low == row.a_low for row in self.rows):
            lines.append(
                f"{100 * self.level:g} %: the mean over other seeds and other pairs; seeds, pairs: their shares "
                "of its variance (the rest is of single runs on single pairs)"
            )
        if any(row.a_iqm == row.a_iqm for row in self.rows):
            lines.append("IQM: mean of the middle half of the runs; it and P(B > A) by resampling whole runs")
        return lines

    @property
    def remarks(self) -> list[str]:
        """What so many runs allow to say, what was found in each corpus, and the notes; a line each."""
        return [*self._on_few_runs(), *super().remarks]

    def _on_few_runs(self) -> Iterator[str]:
        last = self.rows[-1]
        for name, side in ((self.a, "a"), (self.b, "b")):
            runs, sd = getattr(last, f"{side}_runs"), getattr(last, f"{side}_sd")
            if name and runs < ENOUGH:
                yield f"note: {name}: {what_runs_say(runs, sd)}"


def _spread_text(mean: float, sd: float, runs: int) -> str:
    return f"{mean:.2f} (one run)" if runs == 1 else f"{mean:.2f} ± {sd:.2f} over {runs} runs"


def what_runs_say(runs: int, sd: float) -> str:
    """Return what one run, or a few, allow to say of a method, in words.

    Args:
        runs: how many there are.
        sd: the sample standard deviation of their scores; NaN for a single one.

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
