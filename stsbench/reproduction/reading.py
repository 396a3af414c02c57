"""What the jobs of a sweep come to: cells beside the print, answers, cost, and what a reader should know.

Tables that count the pairs of each split of the tasks are made from the files that are here.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from stsbench.base.words import listed
from stsbench.data.benchmarks import load_sts
from stsbench.data.catalogue import SENTEVAL, data_set
from stsbench.data.locate import DataNotFoundError
from stsbench.published.catalogue import exhibits, rows_of, tables
from stsbench.reproduction.answers import answers
from stsbench.reproduction.differences import LEVEL, Comparer, Numbers, error_of
from stsbench.reproduction.layout import OF_HEADS, Layout, Made, layout, measure_of, on_sample, read_by
from stsbench.reproduction.reproduced import Cost, Reproduction
from stsbench.reproduction.table_plan import ScaleName, TablePlan, scales
from stsbench.reproduction.tables import ReproducedCell
from stsbench.statistics import DEPENDENCE, Dependence
from stsbench.statistics.estimate import Estimate
from stsbench.sweeps.experiment import Experiment
from stsbench.sweeps.result import Sweep
from stsbench.sweeps.states import LAST, JobState


def measured_cells(plan: TablePlan, name: str, planned: Layout, sweep: Sweep) -> dict[tuple[str, str], Numbers]:
    """Return by row and column what the jobs that are done measured."""
    jobs: dict[str, list[JobState]] = {}
    for state in sweep.jobs:
        if state.folder is not None:
            jobs.setdefault(state.job.cell["row"], []).append(state)
    intervals = {(entry["cell"], entry["measure"]): entry for entry in sweep.cells.to_dict("records")}
    cells = {}
    for row in plan.rows_of(name):
        for column in plan.columns_of(name):
            made = planned.filling(row, column)
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


def why_empty(plan: TablePlan, name: str, planned: Layout, sweep: Sweep, place: tuple[str, str]) -> str:
    """Return why nothing was measured for a cell; empty where nothing fills its column at any scale."""
    row, column = place
    source, failed = planned.shares.get(row, row), failures(sweep)
    whys = dict(planned.missing) | {label: f"failed: {reason}" for label, reason in failed.items()}
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
    return {state.job.cell["row"]: state.failure for state in sweep.jobs if state.failure is not None}


def _of_measure(
    made: Made, done: Sequence[JobState], measure: str, intervals: Mapping[tuple[str, str], Mapping[Any, Any]]
) -> Numbers | None:
    """Return what jobs say of a measure; None if none has it."""
    scored = {state.job.seed or 0: state.measures.get(measure) for state in done}
    values = {seed: value for seed, value in scored.items() if value is not None}
    if not values:
        return None
    records = {state.job.seed or 0: state.record for state in done}
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
    low, high, _ = Estimate.with_error(numbers.mean, variance, df).interval(LEVEL)
    return replace(numbers, low=low, high=high, over="seeds" if size > 1 else "pairs")


def _entry(path: Path, where: Mapping[str, str], of: str) -> tuple[float, float] | None:
    """Return a number of an analysis' frame with its standard error (NaN for unknown); None where it has none."""
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


def read_reproduction(
    plan: TablePlan,
    name: str,
    scale: ScaleName,
    sweep: Sweep,
    *,
    interval: Dependence = DEPENDENCE,
    data_dirs: Sequence[Path] = (),
) -> Reproduction:
    """Return what a sweep of a plan's experiment comes to, as far as it is."""
    planned, size = layout(plan, name, scale, data_dirs), scales()[scale]
    printed, labels, comparer = _printed(name), plan.names_of(name), Comparer(interval)
    measured = measured_cells(plan, name, planned, sweep)
    cells = []
    for row in plan.rows_of(name):
        for column in plan.columns_of(name):
            in_print = printed.get((row, column), math.nan)
            if (here := measured.get((row, column))) is None:
                why = why_empty(plan, name, planned, sweep, (row, column))
                cells.append(ReproducedCell(row, column, in_print, why=why))
                continue
            limits, seeds = (here.low, here.high, here.over), len(here.values)
            cells.append(ReproducedCell(row, column, in_print, here.mean, here.sd, *limits, seeds, here.last))
    answered = answers(
        plan.claims_of(name),
        name,
        measured,
        printed,
        headline=plan.headline_of(name),
        scale=scale,
        missing=dict(planned.missing) | failures(sweep),
        names=labels,
        silent=size.silent,
        comparer=comparer,
    )
    recipes = {planned.recipe or plan.recipe for planned in plan.rows_of(name).values()}
    swaps = {recipe: size.stands_in.get(recipe, recipe) for recipe in sorted(recipes)}
    return Reproduction(
        exhibit=exhibits()[name],
        plan=plan,
        scale=scale,
        cells=tuple(cells),
        answers=answered,
        cost=_cost(sweep),
        folder=sweep.folder,
        stand_ins={recipe: trained for recipe, trained in swaps.items() if trained != recipe},
        measured_on=_measured_on(plan, name, scale, sweep.experiment),
        notes=(*_notes(plan, name, planned, sweep.experiment), *comparer.notes),
        odd=tuple(_same_weights(sweep, labels.rows)),
    )


def _printed(name: str) -> dict[tuple[str, str], float]:
    """Return what a table prints, x 100, by row and column; what is lost or not reported is left out."""
    if name not in tables():
        return {}
    cells = [cell for row in rows_of(tables()[name]) for cell in row.cells]
    return {(cell.row, cell.column): cell.score for cell in cells if cell.score is not None}


def _measured_on(plan: TablePlan, name: str, scale: ScaleName, experiment: Experiment) -> str:
    """Return what a scale measures in place of the paper's tasks; empty for the paper's."""
    rows = scales()[scale].rows
    if on_sample(experiment) or (rows and not read_by(plan, name)):
        return experiment.measure.tasks or "the sample"
    return f"{rows} rows of each split" if rows else ""


def _notes(plan: TablePlan, name: str, planned: Layout, experiment: Experiment) -> Iterator[str]:
    """Yield what a reader should know: our reading, the plan's notes, which word vectors, and of one seed."""
    if plan.reading:
        yield f"Our reading, not the paper's word: {plan.reading}."
    yield from plan.notes
    rows, labels = plan.rows_of(name), plan.names_of(name).rows
    for made in planned.made:
        if pattern := rows[made.row].file:
            mean = f"{labels[made.row]} is the mean of the word vectors in {Path(made.checkpoint).name}"
            stands_in = ", which stands in: the paper does not say which file it used" if "*" in pattern else ""
            yield f"{mean}{stands_in}."
    if len(experiment.seeds) == 1:
        yield "One seed says nothing of how far a seed carries: --seeds 1,2,3 trains more."


def _same_weights(sweep: Sweep, labels: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for trainings of several rows that came to the same weights with every seed."""
    weights: dict[str, dict[int, str]] = {}
    for state in sweep.jobs:
        if state.job.seed is not None and state.record is not None:
            of_row = weights.setdefault(state.job.cell["row"], {})
            of_row[state.job.seed] = str(state.record.model.weights_sha256)
    alike: dict[str, list[str]] = {}
    for label, by_seed in weights.items():
        row, comma, column = label.partition(", ")
        alike.setdefault(str(sorted(by_seed.items())), []).append(f"{labels.get(row, row)}{comma}{column}")
    for names in alike.values():
        if len(names) > 1:
            yield (
                f"{listed(names)} came to the same weights, bit for bit, with every seed: at this scale what they "
                "change changes nothing, and their difference is no finding."
            )


def _cost(sweep: Sweep) -> Cost:
    done = [state for state in sweep.jobs if state.folder is not None]
    # Jobs that measure one training in several ways share its log.
    steps = {state.job.unit: _steps(state.folder) for state in done if state.folder is not None}
    hours = sum(state.seconds for state in done) / 3600
    threads = sweep.experiment.threads
    return Cost(len(done), len(sweep.jobs), len(sweep.failed), sum(steps.values()), hours, threads)


def _steps(folder: Path) -> int:
    """Return how many steps the training of a job took; 0 for a checkpoint."""
    from stsbench.training.log import LOG, read_log

    if not (folder / LOG).is_file():
        return 0
    return max((int(line["step"]) for line in read_log(folder / LOG) if "step" in line), default=0)


def counted(
    plan: TablePlan, name: str, scale: ScaleName, folder: Path, data_dirs: Sequence[Path] = ()
) -> Reproduction:
    """Return a table of counts, whose rows are splits and columns tasks, from the files that are here."""
    cells = tuple(_cells(name, data_dirs))
    if not any(cell.here > 0 for cell in cells):
        raise DataNotFoundError(next(cell.why for cell in cells if cell.why))
    cost = Cost(jobs=0, planned=0, failed=0, steps=0, hours=0.0, threads=1)
    return Reproduction(exhibits()[name], plan, scale, cells, (), cost, folder, {}, notes=plan.notes)


def _cells(name: str, data_dirs: Sequence[Path]) -> Iterator[ReproducedCell]:
    columns = {column.name: column.setting.task for column in tables()[name].columns}
    for row in rows_of(tables()[name]):
        for cell in row.cells:
            printed = math.nan if cell.value is None else cell.value
            task, split = columns[cell.column], cell.setting.split
            if split not in data_set(task).texts[SENTEVAL].splits:
                yield ReproducedCell(cell.row, cell.column, printed, 0.0, runs=1)
                continue
            try:
                count = len(load_sts(task, split, SENTEVAL, data_dirs).pairs)
            except DataNotFoundError as error:
                yield ReproducedCell(cell.row, cell.column, printed, why=str(error))
            else:
                yield ReproducedCell(cell.row, cell.column, printed, float(count), runs=1)
