"""Two methods, each trained with several seeds: how far apart are they, and how far does a seed carry?

One checkpoint says little about a method: 50 seeds of unsupervised SimCSE range over 3.5 points. The paired
bootstrap of two checkpoints knows nothing of that; here the runs are the sample.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stsbench.base.errors import UserError
from stsbench.comparison.aligned import ScoredPart, labels_of, left_out, require_same_protocol
from stsbench.comparison.overlap import Overlap
from stsbench.comparison.result import AVERAGES, Kind, plain, verdict
from stsbench.records.parts import TransferPart
from stsbench.records.record import RunRecord
from stsbench.statistics.significance import compare_means, holm, spread

if TYPE_CHECKING:
    import pandas as pd

ENOUGH = 5
"""Seeds of each method from which on a test is made."""


@dataclass(frozen=True)
class SeedsDifference:
    """How two methods score on one task, or on average; scores x 100. NaN where something is undefined.

    Attributes:
        kind: `sts` or `transfer`.
        task: its name; `Avg.` or `Avg. transfer` for the average of a kind.
        a_runs: the number of runs of A; `a_mean`, `a_sd` (sample standard deviation), `a_lowest` and `a_highest`
            of their scores; the same of B, whose `b_runs` is 0 where there is none.
        difference: mean of B less mean of A, with Welch's interval `low` to `high`; these and the p-values only
            from `ENOUGH` runs of each on.
        p: by Welch's t test; `p_holm`: after Holm's correction over the tasks.
        permutation_p: by the permutation test, not corrected.
    """

    kind: Kind
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

    @property
    def is_task(self) -> bool:
        """Whether this is a task, not the average."""
        return self.task not in AVERAGES.values()


@dataclass(frozen=True)
class SeedsComparison:
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
        by_kind = [[row for row in self.rows if row.kind == kind] for kind in AVERAGES]
        return " ".join(_sentence(rows, self.level) for rows in by_kind if rows)

    def table(self) -> "pd.DataFrame":
        """Return one row per task and the average, with the columns of `SeedsDifference`."""
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows])

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as plain data; what is undefined is None."""
        data: dict[str, Any] = plain({"sentence": self.sentence} | asdict(self))
        return data


def compare_seeds(
    a: Mapping[str, RunRecord], b: Mapping[str, RunRecord], names: tuple[str, str], *, level: float
) -> SeedsComparison:
    """Compare the runs of one method over seeds with those of another, or tell the spread of one.

    Args:
        a: the runs of the one, by a name for messages.
        b: the runs of the other; empty for none.
        names: what to call the two.
        level: of the intervals.

    Raises:
        UserError: if protocols differ, no task is in all runs, a score is undefined, or two runs of a method are
            of the same weights.
    """
    runs = {**a, **b}
    for method in (a, b):
        _demand_distinct(method)
    rows: list[SeedsDifference] = []
    alone: list[str] = []
    for kind in AVERAGES:
        parts = {name: _parts(record, kind) for name, record in runs.items()}
        common, rest = _common_tasks(parts)
        alone += rest
        values_a, values_b = (_scores({name: parts[name] for name in method}, common, kind) for method in (a, b))
        found = [_row(kind, task, values_a[task], values_b[task], level) for task in values_a]
        adjusted = holm([row.p for row in found if row.is_task]).tolist()
        rows += [replace(row, p_holm=p) for row, p in zip(found, adjusted, strict=False)]
        rows += found[len(adjusted) :]
    if not rows:
        raise UserError("there is no task that all runs were measured on: measure them on the same tasks.")
    notes = [*left_out(alone)]
    unknown = [name for name, record in runs.items() if record.model.weights_sha256 is None]
    if unknown:
        notes.append(f"whether {', '.join(unknown)} are of different weights cannot be known.")
    return SeedsComparison(*names, rows=tuple(rows), level=level, notes=tuple(notes))


def _row(kind: Kind, task: str, a: Sequence[float], b: Sequence[float], level: float) -> SeedsDifference:
    row = SeedsDifference(kind, task, *spread(a))
    if not b:
        return row
    size, mean, sd, lowest, highest = spread(b)
    row = replace(row, b_runs=size, b_mean=mean, b_sd=sd, b_lowest=lowest, b_highest=highest)
    if min(len(a), len(b)) < ENOUGH:
        return row
    test = compare_means(a, b, level=level)
    return replace(
        row,
        difference=test.difference,
        low=test.low,
        high=test.high,
        p=test.welch_p,
        permutation_p=test.permutation_p,
    )


Parts = Mapping[str, ScoredPart]
"""The scores of a run by the tasks' labels."""


def _scores(runs: Mapping[str, Parts], tasks: Sequence[str], kind: Kind) -> dict[str, list[float]]:
    """Return the scores x 100 of all runs by task, and their averages if there are several tasks."""
    found: dict[str, list[float]] = {task: [] for task in tasks}
    for name, parts in runs.items():
        for task in tasks:
            part = parts[task]
            score = part.acc if isinstance(part, TransferPart) else part.score
            if score is None:
                raise UserError(f"{name} has no score on {task} (its similarities are constant): leave it out.")
            found[task].append(100 * score)
    if len(tasks) > 1:
        found[AVERAGES[kind]] = np.mean(list(found.values()), axis=0).tolist()
    return found


def _common_tasks(runs: Mapping[str, Parts]) -> tuple[list[str], list[str]]:
    """Return the tasks that all runs hold, by one protocol, and those that only some do."""
    (first_name, first), *others = runs.items()
    every = list(dict.fromkeys(task for parts in runs.values() for task in parts))
    common = [task for task in every if all(task in parts for parts in runs.values())]
    for name, parts in others:
        for task in common:
            require_same_protocol(task, first[task], parts[task], (first_name, name))
    return common, [task for task in every if task not in common]


def _parts(record: RunRecord, kind: Kind) -> Parts:
    parts: Sequence[ScoredPart] = record.tasks if kind == "sts" else record.transfer
    return dict(zip(labels_of(parts), parts, strict=True))


def _demand_distinct(runs: Mapping[str, RunRecord]) -> None:
    seen: dict[str, str] = {}
    for name, record in runs.items():
        weights = record.model.weights_sha256
        other = seen.setdefault(weights, name) if weights else name
        if other != name:
            raise UserError(
                f"{other} and {name} are runs of the same weights, which is one seed: give each checkpoint once."
            )


def _sentence(rows: Sequence[SeedsDifference], level: float) -> str:
    last = rows[-1]
    where = f"on {last.task}" if last.is_task else f"on {'STS' if last.kind == 'sts' else 'transfer'} average"
    told = f"A: {_told(last.a_mean, last.a_sd, last.a_runs)}"
    if not last.b_runs:
        return f"{told} {where}."
    told += f", B: {_told(last.b_mean, last.b_sd, last.b_runs)} {where}"
    if min(last.a_runs, last.b_runs) < ENOUGH:
        return f"{told}; no claim: that takes {ENOUGH} runs of each."
    return f"{told}. {verdict(rows, level)}"


def _told(mean: float, sd: float, runs: int) -> str:
    return f"{mean:.2f} (one run)" if runs == 1 else f"{mean:.2f} ± {sd:.2f} over {runs} runs"
