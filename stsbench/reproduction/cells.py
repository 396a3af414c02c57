"""What the jobs of a sweep measured for each cell of a table, and why a cell is empty."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from stsbench.judging.aligned import shown_interval
from stsbench.reproduction.differences import LEVEL, Numbers, error_of
from stsbench.reproduction.layout import OF_HEADS, Layout, Made, measure_of, on_sample
from stsbench.reproduction.table_plan import TablePlan
from stsbench.sweeps.result import Sweep
from stsbench.sweeps.states import LAST, JobState


@dataclass(frozen=True)
class ReproducedCell:
    """One cell of the table: what is printed, and what was measured here. Scores x 100; NaN for unknown.

    Attributes:
        row: its row.
        column: its column.
        printed: the number in print; NaN where there is none.
        here: the mean over seeds.
        sd: sample standard deviation over seeds.
        low: lower limit of the interval of the mean, and `high`: the upper.
        over: what the interval is over: `seeds and pairs`, `seeds`, `pairs`; empty for no interval.
        runs: how many seeds, or 1 checkpoint.
        last: the mean of the trainings' last step, where the split is the one that checkpoints were selected on.
        why: why it was not made; empty where it was.
    """

    row: str
    column: str
    printed: float = math.nan
    here: float = math.nan
    sd: float = math.nan
    low: float = math.nan
    high: float = math.nan
    over: str = ""
    runs: int = 0
    last: float = math.nan
    why: str = ""

    @property
    def difference(self) -> float:
        """What was measured here less what is printed."""
        return self.here - self.printed

    @property
    def is_printed(self) -> bool:
        """Whether there is a number in print."""
        return not math.isnan(self.printed)

    def as_row(self) -> dict[str, Any]:
        """Return its fields and the difference."""
        return {**asdict(self), "difference": self.difference}


def measured_cells(plan: TablePlan, name: str, what: Layout, sweep: Sweep) -> dict[tuple[str, str], Numbers]:
    """Return by row and column what the jobs that are done measured."""
    jobs: dict[str, list[JobState]] = {}
    for state in sweep.jobs:
        if state.folder is not None:
            jobs.setdefault(state.job.cell["row"], []).append(state)
    intervals = {(entry["cell"], entry["measure"]): entry for entry in sweep.cells.to_dict("records")}
    cells = {}
    for row in plan.rows_of(name):
        for column in plan.columns_of(name):
            made = what.filling(row, column)
            done = jobs.get(made.label, []) if made is not None else []
            if made is None or not done:
                continue
            if plan.analysis:
                where = _where(plan, row, name, column, sample=on_sample(sweep.experiment))
                of = plan.columns[column].measure or "value"
                cell = None if where is None else _of_analysis(made, done, plan.analysis, where, of)
            else:
                measure = measure_of(plan, name, column, sweep.experiment.measure.tasks)
                cell = _of_measure(made, done, measure, intervals) if measure else None
            if cell is not None:
                cells[row, column] = cell
    return cells


def why_empty(plan: TablePlan, name: str, what: Layout, sweep: Sweep, place: tuple[str, str]) -> str:
    """Return why nothing was measured for a cell; empty where nothing fills its column at any scale."""
    row, column = place
    source, failed = what.shares.get(row, row), failures(sweep)
    whys = dict(what.missing) | {label: f"failed: {reason}" for label, reason in failed.items()}
    for label in (f"{row}, {column}", row, source):
        if label in whys:
            return whys[label]
    done = {state.job.cell["row"] for state in sweep.jobs if state.folder is not None}
    if not done & {f"{source}, {column}", source}:
        return "not done yet"
    return _unfilled(plan, name, place, sample=on_sample(sweep.experiment))


def _unfilled(plan: TablePlan, name: str, place: tuple[str, str], *, sample: bool) -> str:
    """Return why a cell is empty whose job is done."""
    row, column = place
    if not plan.analysis and not plan.columns_of(name)[column]:
        return ""
    if not sample:
        return "no such number came out of it"
    if plan.analysis and _where(plan, row, name, column, sample=True) is not None:
        return "the sample has no such pairs"
    return "not measured: the sample stands in for the paper's tasks, which are not here, and is one task"


def failures(sweep: Sweep) -> dict[str, str]:
    """Return by row, or `row, column`, why its job failed."""
    return {state.job.cell["row"]: state.failure.reason for state in sweep.jobs if state.failure is not None}


def _of_measure(
    made: Made, done: Sequence[JobState], measure: str, intervals: Mapping[tuple[str, str], Mapping[Any, Any]]
) -> Numbers | None:
    """Return what jobs say of a measure; None if none has it."""
    scored = {state.job.seed or 0: state.measures.get(measure) for state in done}
    values = {seed: value for seed, value in scored.items() if value is not None}
    if not values:
        return None
    records = {state.job.seed or 0: state.finished.record for state in done if state.finished is not None}
    # The score of a head, which training measured, is in no record.
    runs = {} if measure.startswith(OF_HEADS) else {seed: records[seed] for seed in values}
    known = {seed: record for seed, record in runs.items() if record is not None}
    entry = intervals[made.label, measure]
    return Numbers(
        values,
        known,
        measure,
        checkpoint=made.checkpoint,
        low=entry["low"],
        high=entry["high"],
        over=entry["interval"],
        last=intervals.get((made.label, f"{LAST}{measure}"), {}).get("mean", math.nan),
    )


def _where(plan: TablePlan, row: str, name: str, column: str, *, sample: bool) -> dict[str, str] | None:
    """Return what a cell's row is in an analysis' frame; None for none.

    Where the sample stands in for the paper's tasks it fills one column where columns are tasks, the headline, and
    one row where rows are, the first.
    """
    rows = plan.rows_of(name)
    of_row, of_column = rows[row].where, plan.columns[column].where
    where = {**of_row, **of_column}
    if sample and "task" in where:
        where["task"] = "sample"
        if "task" in of_column and column != plan.headline_of(name):
            return None
        if "task" in of_row and row != next(iter(rows)):
            return None
    return where


def _of_analysis(
    made: Made, done: Sequence[JobState], analysis: str, where: Mapping[str, str], of: str
) -> Numbers | None:
    """Return what jobs say in the frame of an analysis; None if none has such a number."""
    entries = {
        state.job.seed or 0: entry
        for state in done
        if state.folder is not None
        and (entry := _entry(state.folder / "analyses" / f"{analysis}.csv", where, of)) is not None
    }
    if not entries:
        return None
    values = {seed: value for seed, (value, _) in entries.items()}
    _, error = next(iter(entries.values()))
    numbers = Numbers(values, error=error, training=made.label, checkpoint=made.checkpoint)
    size = len(values)
    if size == 1 and math.isnan(error):
        return numbers
    variance, df = (numbers.sd**2 / size, size - 1) if size > 1 else (error**2, math.inf)
    (low, high), _ = shown_interval(numbers.mean, variance, df, LEVEL)
    return replace(numbers, low=low, high=high, over="seeds" if size > 1 else "pairs")


def _entry(path: Path, where: Mapping[str, str], of: str) -> tuple[float, float] | None:
    """Return a number of an analysis' frame with its standard error (NaN for unknown); None where it has none."""
    import pandas as pd

    if not path.is_file():
        return None
    frame = pd.read_csv(path)
    for column, wanted in where.items():
        if column not in frame:
            return None
        frame = frame[frame[column].map(_as_text) == wanted]
    if not len(frame) or of not in frame or pd.isna(frame[of].iloc[0]):
        return None
    first = frame.iloc[0]
    is_known = of == "value" and {"low", "high"} <= set(frame.columns) and pd.notna(first["low"])
    return float(first[of]), error_of(first["low"], first["high"]) if is_known else math.nan


def _as_text(value: Any) -> str:
    """Return a cell of a table as a plan spells it: whole numbers without a point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
