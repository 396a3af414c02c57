"""`reproduce`: reproduces a published table and answers its claims; `reproductions` lists the tables."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.base.words import listed
from stsbench.data.catalogue import source
from stsbench.data.reading import places
from stsbench.published.catalogue import exhibits, rows_of, tables
from stsbench.render.table import Result, Table, Tables
from stsbench.reproduction.answers import answers
from stsbench.reproduction.differences import Comparer, Numbers
from stsbench.reproduction.layout import OF_HEADS, Layout, experiment_of, layout, measure_of, on_sample
from stsbench.reproduction.reproduced import Cost, ReproducedCell, Reproduction
from stsbench.reproduction.table_plan import (
    SCALES,
    Names,
    ScaleName,
    TablePlan,
    demand_scale,
    plan_of,
    planned_exhibit,
    plans_by_exhibit,
    scales,
)
from stsbench.scoring.run import RUNS
from stsbench.statistics import LEVEL
from stsbench.statistics.estimate import Estimate
from stsbench.statistics.intervals import t_quantile
from stsbench.sweeps.experiment import Experiment
from stsbench.sweeps.folder import LAST, WAITING, JobState
from stsbench.sweeps.result import Sweep
from stsbench.sweeps.sweep import sweep
from stsbench.training.log import LOG, read_log

_WIKI = "wiki1m"
"""The papers' corpus in the catalogue of data."""


def reproduce(
    table: str,
    *,
    scale: str = "demo",
    out: str | Path | None = None,
    corpus: str | Path | None = None,
    seeds: Sequence[int] = (),
    settings: Mapping[str, Any] | None = None,
    threads: int = 1,
    status: bool = False,
    on: str = "local",
    workers: int | None = None,
    device: str = "auto",
    data_dirs: Sequence[str | Path] = (),
    retry: bool = False,
    progress: Progress = silent,
    notice: Callable[[str], None] = lambda _: None,
) -> Reproduction | Sweep:
    """Reproduces a published table or figure: trains and measures according to its plan, and answers its claims.

    The folder is an experiment's (see `sweep`): the same call resumes it, and finished jobs are never repeated.

    Args:
        table: a name from `reproductions`: `esimcse-coling2022-9`, `mocose-acl2022-figure-8`.
        scale: `demo` (a few steps, minutes), `laptop` (a small base and a thousand sentences) or `paper` (the
            paper's base, corpus and seeds).
        out: the folder of the experiment; by default `runs/TABLE-SCALE`.
        corpus: the training corpus; by default the sample at `demo`, else `wiki1m`.
        seeds: of the trainings; by default the scale's.
        settings: changes to every recipe, over the plan's: `{"optimiser.batch": 32}`.
        threads: per job.
        status: returns the jobs and their states; runs none.
        on: see `sweep`, also for the parameters below.
        workers: jobs that run at once.
        device: of local jobs.
        data_dirs: folders to look for data in.
        retry: runs failed jobs again.
        progress: called with the progress.
        notice: called with messages for the user.

    Returns:
        The paper's table with ours, `.answers` to each claim, and a `.section()` for a report; with `status` the
        jobs.

    Raises:
        UserError: if there is no such table or scale, it cannot be reproduced, or an input is missing.

    >>> try:
    ...     reproduce("esimcse-coling2022-2")
    ... except UserError as error:
    ...     print(str(error)[:47])
    esimcse-coling2022-2 cannot be made at the scal
    """
    plan, size, name = plan_of(table), demand_scale(scale), planned_exhibit(table).name
    place = Path(out).expanduser() if out is not None else RUNS / f"{name}-{size}"
    if plan.labelled and "labelled.folder" not in (settings or {}):
        raise UserError(f"{name} trains on labelled tables: name their folder with --set labelled.folder=FOLDER.")
    experiment = experiment_of(
        plan,
        name,
        size,
        corpus=str(corpus) if corpus is not None else _corpus(plan, name, size),
        seeds=tuple(seeds),
        threads=threads,
        settings=settings,
    )
    result = sweep(
        experiment,
        place,
        on=on,
        workers=workers,
        device=device,
        data_dirs=data_dirs,
        retry=retry,
        status=status,
        progress=progress,
        notice=notice,
    )
    return result if status else read_reproduction(plan, name, size, result)


def _corpus(plan: TablePlan, name: str, scale: ScaleName) -> str:
    """Returns the scale's corpus, or the papers' if it is on this machine."""
    size = scales()[scale]
    if size.corpus or not any(made.is_trained for made in layout(plan, name, scale).made):
        return size.corpus
    file = source(_WIKI).address.rpartition("/")[2]
    for place in places():
        if (path := place.folder / file).is_file():
            return str(path)
    raise UserError(
        f"the scale {scale} trains on Wikipedia sentences, which are not on this machine: name a file with "
        f"--corpus, or download the papers' with `stsbench data get {_WIKI}`."
    )


@dataclass(frozen=True)
class Reproductions(Result):
    """The papers' tables and figures, with the requirements of reproducing them."""

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each, with its title, the requirements of each scale, and the number of claims."""
        rows: list[dict[str, Any]] = []
        for entry in exhibits().values():
            plan = plans_by_exhibit().get(entry.name)
            if plan is None:
                continue
            by_scale: dict[str, str] = {scale: _takes(plan, entry.name, scale) for scale in SCALES}
            possible = [scale for scale, what in by_scale.items() if not what.startswith("cannot")]
            row = {
                "table": entry.name,
                "shows": entry.title,
                "kind": entry.kind,
                "can be made": ", ".join(possible),
            }
            claims = len(plan.claims_of(entry.name))
            rows.append({**row, **by_scale, "claims": claims, "why not": plan.cannot, "plan": plan.name})
        return pd.DataFrame(rows)

    def table(self) -> Tables:
        """Returns what can be reproduced at which scales, and what cannot and why."""
        frame = self.frame
        possible = frame["can be made"] != ""
        made = frame.rename(columns={"can be made": "at"})[possible][["table", "at", "claims", "shows"]]
        notes = (
            "`--csv` has the requirements at each scale.",
            "docs/reproduced-here.md has four tables at the scale laptop, and the hours that each took.",
        )
        return Tables(
            [
                Table(made, "Can be reproduced, at these scales", notes=notes),
                Table(frame[~possible][["table", "why not"]], "Cannot be reproduced"),
            ]
        )


def reproductions() -> Reproductions:
    """Lists the papers' tables and figures, with the requirements of reproducing them at each scale.

    >>> reproductions().frame.set_index("table").loc["esimcse-coling2022-9", "demo"]
    'trainings: 6; 5 of its rows left out'
    """
    return Reproductions()


def _takes(plan: TablePlan, name: str, scale: ScaleName) -> str:
    """Returns the requirements of reproducing a table at a scale, or why it is not possible."""
    planned = layout(plan, name, scale)
    if plan.cannot or not planned.made:
        return f"cannot be made: {plan.cannot or next(iter(planned.missing.values()))}"
    trained = sum(made.is_trained for made in planned.made)
    counts = {"trainings": trained * len(scales()[scale].seeds), "checkpoints": len(planned.made) - trained}
    parts = [f"{what}: {count}" for what, count in counts.items() if count]
    parts += [f"analysis {plan.analysis}"] if plan.analysis else []
    parts += ["by our reading of the text"] if plan.reading else []
    return ", ".join(parts) + (f"; {len(planned.missing)} of its rows left out" if planned.missing else "")


def read_reproduction(plan: TablePlan, name: str, scale: ScaleName, sweep: Sweep) -> Reproduction:
    """Returns the reproduction of a table from the finished jobs of its sweep at a scale."""
    planned, size, comparer = layout(plan, name, scale), scales()[scale], Comparer()
    places = [(row, column) for row in plan.rows_of(name) for column in plan.columns_of(name)]
    measured = _measured(plan, name, planned, sweep)
    printed = _printed(name)
    failed = {state.job.cell["row"]: state.failure for state in sweep.jobs if state.failure is not None}
    waiting = {state.job.cell["row"]: "not done yet" for state in sweep.jobs if state.state == WAITING}
    reasons = {**planned.missing, **waiting, **{label: f"failed: {reason}" for label, reason in failed.items()}}
    cells = []
    for place in places:
        cell = ReproducedCell(*place, printed.get(place, math.nan))
        if (here := measured.get(place)) is None:
            labels = (", ".join(place), place[0], planned.shares.get(place[0]))
            known = (reasons[label] for label in labels if label in reasons)
            cells.append(replace(cell, why=next(known, None) or _why_empty(plan, name, place[1], sweep)))
            continue
        cell = replace(cell, here=here.mean, sd=here.sd, runs=len(here.values), last=here.last)
        cells.append(replace(cell, low=here.low, high=here.high, over=here.over))
    answered = answers(
        plan.claims_of(name),
        name,
        measured,
        printed,
        headline=plan.headline_of(name),
        scale=scale,
        missing=dict(planned.missing) | failed,
        names=plan.names_of(name),
        silent=size.silent,
        comparer=comparer,
    )
    recipes = sorted({row.recipe or plan.recipe for row in plan.rows_of(name).values()})
    swaps = {recipe: size.stands_in.get(recipe, recipe) for recipe in recipes}
    return Reproduction(
        exhibit=exhibits()[name],
        plan=plan,
        scale=scale,
        cells=tuple(cells),
        answers=answered,
        cost=_cost(sweep),
        folder=sweep.folder,
        stand_ins={recipe: trained for recipe, trained in swaps.items() if trained != recipe},
        measured_on=(sweep.experiment.measure.tasks or "the sample") if on_sample(sweep.experiment) else "",
        notes=(*_notes(plan, sweep.experiment), *comparer.notes),
        odd=tuple(_equal_weights(sweep, plan.names_of(name))),
    )


def _measured(plan: TablePlan, name: str, planned: Layout, sweep: Sweep) -> dict[tuple[str, str], Numbers]:
    """Returns the numbers of finished jobs by row and column."""
    jobs: dict[str, list[JobState]] = {}
    for state in sweep.jobs:
        if state.folder is not None:
            jobs.setdefault(state.job.cell["row"], []).append(state)
    intervals = {(entry["cell"], entry["measure"]): entry for entry in sweep.cells.to_dict("records")}
    sample, tasks, cells = on_sample(sweep.experiment), sweep.experiment.measure.tasks, {}
    for row in plan.rows_of(name):
        for column in plan.columns_of(name):
            made = planned.filling(row, column)
            if made is None or not (done := jobs.get(made.label)):
                continue
            if plan.analysis:
                where = _where(plan, row, name, column, sample=sample)
                value = plan.columns[column].measure or "value"
                cell = None if where is None else _of_analysis(done, plan.analysis, where, value)
                cell = cell and replace(cell, training=made.label)
            else:
                measure = measure_of(plan, name, column, tasks)
                cell = _of_measure(made.label, done, measure, intervals) if measure else None
            if cell is not None:
                cells[row, column] = replace(cell, checkpoint=made.changes.get("checkpoint", ""))
    return cells


def _of_measure(
    label: str, done: Sequence[JobState], measure: str, intervals: Mapping[tuple[str, str], Mapping[Any, Any]]
) -> Numbers | None:
    scored = {state.job.seed or 0: state for state in done if state.measures.get(measure) is not None}
    if not scored:
        return None
    values = {seed: value for seed, state in scored.items() if (value := state.measures[measure]) is not None}
    # Scores of task heads come from the training's log, not from records.
    records = {} if measure.startswith(OF_HEADS) else {seed: state.record for seed, state in scored.items()}
    runs = {seed: record for seed, record in records.items() if record is not None}
    entry, last = intervals[label, measure], intervals.get((label, f"{LAST}{measure}"), {})
    limits = {"low": entry["low"], "high": entry["high"], "over": entry["interval"]}
    return Numbers(values, runs, measure, last=last.get("mean", math.nan), **limits)


def _where(plan: TablePlan, row: str, name: str, column: str, *, sample: bool) -> dict[str, str] | None:
    """Returns the row of an analysis' frame that fills a cell; None for none.

    The sample is one task: it fills the headline if columns are tasks, and the first row if rows are.
    """
    rows = plan.rows_of(name)
    of_row, of_column = rows[row].where, plan.columns[column].where
    where = {**of_row, **of_column}
    if sample and "task" in where:
        where["task"] = "sample"
        is_headline, is_first = column == plan.headline_of(name), row == next(iter(rows))
        if ("task" in of_column and not is_headline) or ("task" in of_row and not is_first):
            return None
    return where


def _of_analysis(done: Sequence[JobState], analysis: str, where: Mapping[str, str], column: str) -> Numbers | None:
    entries: dict[int, tuple[float, float]] = {}
    for state in done:
        path = (state.folder or Path()) / "analyses" / f"{analysis}.csv"
        if path.is_file() and (entry := _entry(pd.read_csv(path), where, column)) is not None:
            entries[state.job.seed or 0] = entry
    if not entries:
        return None
    values, error = {seed: value for seed, (value, _) in entries.items()}, next(iter(entries.values()))[1]
    numbers, size = Numbers(values, error=error), len(values)
    if size == 1 and math.isnan(error):
        return numbers
    variance, df = (numbers.sd**2 / size, size - 1) if size > 1 else (error**2, math.inf)
    low, high, _ = Estimate.with_error(numbers.mean, variance, df).interval(LEVEL)
    return replace(numbers, low=low, high=high, over="seeds" if size > 1 else "pairs")


def _entry(frame: pd.DataFrame, where: Mapping[str, str], column: str) -> tuple[float, float] | None:
    """Returns a number of an analysis' frame with its standard error (NaN for unknown); None if it has none."""
    for name, wanted in where.items():
        if name not in frame:
            return None
        frame = frame[frame[name].map(_as_text) == wanted]
    if not len(frame) or column not in frame or pd.isna(frame[column].iloc[0]):
        return None
    first = frame.iloc[0]
    is_known = column == "value" and {"low", "high"} <= set(frame.columns)
    width = 2 * t_quantile((1 + LEVEL) / 2)
    return float(first[column]), (first["high"] - first["low"]) / width if is_known else math.nan


def _as_text(value: Any) -> str:
    """Formats a cell as plans do: whole numbers without a point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _why_empty(plan: TablePlan, name: str, column: str, sweep: Sweep) -> str:
    """Returns why a cell of finished jobs is empty; "" if its column is never filled."""
    if not plan.analysis and not plan.columns_of(name)[column]:
        return ""
    if on_sample(sweep.experiment):
        return "not measured: the paper's tasks are not here, and the sample in their place has no such number"
    return "the jobs have no such number"


def _printed(name: str) -> dict[tuple[str, str], float]:
    """Returns the printed numbers of a table, x 100; lost and missing ones are left out."""
    cells = [cell for row in rows_of(tables()[name]) for cell in row.cells] if name in tables() else []
    return {(cell.row, cell.column): cell.score for cell in cells if cell.score is not None}


def _notes(plan: TablePlan, experiment: Experiment) -> Iterator[str]:
    if plan.reading:
        yield f"Our reading, not the paper's word: {plan.reading}."
    yield from plan.notes
    if len(experiment.seeds) == 1:
        yield "One seed does not show how much seeds differ: --seeds 1,2,3 trains more."


def _equal_weights(sweep: Sweep, names: Names) -> Iterator[str]:
    """Yields a sentence for rows whose trainings have the same weights with every seed."""
    weights: dict[str, dict[int, str]] = {}
    for state in sweep.jobs:
        if state.job.seed is not None and state.record is not None:
            weights.setdefault(names.called(state.job.cell["row"]), {})[state.job.seed] = str(
                state.record.model.weights_sha256
            )
    groups: dict[str, list[str]] = {}
    for label, by_seed in weights.items():
        groups.setdefault(str(sorted(by_seed.items())), []).append(label)
    for rows in groups.values():
        if len(rows) > 1:
            yield f"{listed(rows)} have equal weights with every seed, so their difference is not a finding."


def _cost(sweep: Sweep) -> Cost:
    done = [state for state in sweep.jobs if state.folder is not None]
    steps: dict[str, int] = {}
    for state in done:
        log = (state.folder or Path()) / LOG
        # Jobs that measure one training in several ways share its log.
        steps[state.job.unit] = max((line["step"] for line in read_log(log)), default=0) if log.is_file() else 0
    hours = sum(state.seconds for state in done) / 3600
    return Cost(
        len(done), len(sweep.jobs), len(sweep.failed), sum(steps.values()), hours, sweep.experiment.threads
    )
