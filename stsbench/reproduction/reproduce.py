"""`reproduce`: make a published table again, and answer what its paper claims with it."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.base.words import listed
from stsbench.published.catalogue import exhibit, exhibits, rows_of, tables
from stsbench.records.record import RECORD, RunRecord
from stsbench.records.store import load_run
from stsbench.render.fitting import fitted
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables
from stsbench.reproduction.answers import Comparer, Numbers, answers, error_of
from stsbench.reproduction.excerpt import excerpt
from stsbench.reproduction.reproduced import Cost, ReproducedCell, Reproduction
from stsbench.reproduction.stand_ins import make_stand_ins
from stsbench.reproduction.table_plan import (
    OF_HEADS,
    SCALES,
    Layout,
    ScaleName,
    TablePlan,
    demand_scale,
    experiment_of,
    layout,
    measure_of,
    on_sample,
    plan_of,
    plans,
    read_by,
    scales,
    takes,
)
from stsbench.scoring.run import RUNS
from stsbench.statistics.dependence import DEPENDENCE, Dependence
from stsbench.sweeps.experiment import Experiment
from stsbench.sweeps.forecast import Forecast
from stsbench.sweeps.measures import LAST
from stsbench.sweeps.result import Sweep
from stsbench.sweeps.states import JobState
from stsbench.sweeps.sweep import sweep

if TYPE_CHECKING:
    import pandas as pd

_WIKI = "wiki1m"
"""The source of the papers' corpus in the catalogue of data."""


def reproduce(
    table: str,
    *,
    scale: str = "demo",
    out: str | Path | None = None,
    on: str = "local",
    corpus: str | Path | None = None,
    seeds: Sequence[int] = (),
    settings: Mapping[str, Any] | None = None,
    threads: int = 1,
    workers: int | None = None,
    device: str = "auto",
    interval: Dependence = DEPENDENCE,
    data_dirs: Sequence[str | Path] = (),
    retry: bool = False,
    dry_run: bool = False,
    progress: Progress = silent,
    notice: Callable[[str], None] = lambda _: None,
) -> Reproduction | Forecast:
    """Make a published table or figure again: train and measure what its plan says, and answer its claims.

    The folder is an experiment's (see `sweep`): stopped or killed, the same call goes on, and what is done is
    never done again.

    Args:
        table: which, as `reproductions` lists them: `esimcse-coling2022-9`, `mocose-acl2022-figure-8`.
        scale: `demo` (a few steps, minutes), `laptop` (the same axis from a small base and a few thousand
            sentences), `paper` (the paper's own base, corpus and seeds) or `wiring` (every row of the paper's from
            random weights, offline: whether all of it can be made).
        out: the folder; by default `runs/TABLE-SCALE`.
        on: where jobs run: `local`, `ray` or `slurm`.
        corpus: a file to train on; by default the sample at `demo`, else the fetched `wiki1m`.
        seeds: of the trainings; by default the scale's.
        settings: changes to every recipe, over the plan's: `{"optimiser.batch": 32}`.
        threads: of every job.
        workers: jobs at once; by default one a GPU, or one for each group of cores that its threads fill.
        device: of local jobs.
        interval: how pairs that share sentences are seen, in the tests of the claims.
        data_dirs: folders to look for data in.
        retry: whether jobs that failed are tried again.
        dry_run: whether to tell only what there is to do, how long it takes and what room on the disk.
        progress: told how many jobs are done.
        notice: told what the person should know.

    Returns:
        `.table()` has the paper's table with ours, `.answers` what was found about each claim, `.section()` a part
        of a report; of a dry run the forecast.

    Raises:
        UserError: if there is no such table or scale, it cannot be made (saying why), or what it needs is missing.

    >>> try:
    ...     reproduce("esimcse-coling2022-2")
    ... except UserError as error:
    ...     print(str(error)[:47])
    esimcse-coling2022-2 cannot be made at the scal
    """
    plan, size = plan_of(table), demand_scale(scale)
    name = exhibit(table).name
    text = str(corpus) if corpus is not None else _corpus(plan, name, size)
    if plan.counts:
        return _counted(plan, name, size, out, data_dirs)
    folders = [Path(folder).expanduser() for folder in data_dirs]
    few = _few_rows(plan, name, size, folders)
    experiment = experiment_of(
        plan,
        name,
        size,
        corpus=text,
        seeds=tuple(seeds),
        threads=threads,
        settings=settings,
        here=few is not None,
        data_dirs=folders,
    )
    (rows,) = experiment.axes.values()
    assert isinstance(rows, dict)
    make_stand_ins(rows.values())
    place = Path(out).expanduser() if out is not None else RUNS / experiment.name
    found = sweep(
        experiment,
        place,
        on=on,
        workers=workers,
        device=device,
        data_dirs=data_dirs if few is None else (few, *data_dirs),
        retry=retry,
        dry_run=dry_run,
        progress=progress,
        notice=notice,
    )
    if not isinstance(found, Sweep):
        return found
    return read_reproduction(plan, name, size, found, interval=interval, data_dirs=folders)


def _counted(
    plan: TablePlan, name: str, scale: ScaleName, out: str | Path | None, data_dirs: Sequence[str | Path]
) -> Reproduction:
    """Return a table of counts, which takes no experiment.

    Raises:
        UserError: if no task's files are here, or some are broken.
    """
    from stsbench.reproduction.counts import counted_cells

    place = Path(out).expanduser() if out is not None else RUNS / f"{name}-{scale}"
    return Reproduction(
        exhibit=exhibits()[name],
        plan=plan,
        scale=scale,
        cells=counted_cells(name, [Path(folder).expanduser() for folder in data_dirs]),
        answers=(),
        cost=Cost(jobs=0, planned=0, failed=0, steps=0, hours=0.0, threads=1),
        folder=place,
        stand_ins={},
        notes=plan.notes,
    )


def _few_rows(plan: TablePlan, name: str, scale: ScaleName, data_dirs: Sequence[Path]) -> Path | None:
    """Return a folder with the few rows of the paper's tasks that a scale measures; None where it measures others.

    Raises:
        UserError: if a task's files are here in part, or the cache cannot be written.
    """
    rows, tasks = scales()[scale].rows, read_by(plan, name)
    return excerpt(tasks, rows, data_dirs) if rows and tasks else None


def _corpus(plan: TablePlan, name: str, scale: ScaleName) -> str:
    """Return the corpus of a scale, where the person names none.

    Raises:
        UserError: if it is not here.
    """
    whole = scales()[scale]
    if whole.corpus or whole.tried or not any(made.is_trained for made in layout(plan, name, scale).made):
        return whole.corpus
    from stsbench.data.catalogue import source
    from stsbench.data.locate import places

    file = source(_WIKI).address.rpartition("/")[2]
    for place in places():
        if (path := place.folder / file).is_file():
            return str(path)
    raise UserError(
        f"the scale {scale} trains on sentences of Wikipedia, which are not here: name a file with --corpus, or "
        f"fetch the papers' with `stsbench data get {_WIKI}`."
    )


def read_reproduction(
    plan: TablePlan,
    name: str,
    scale: ScaleName,
    found: Sweep,
    *,
    interval: Dependence = DEPENDENCE,
    data_dirs: Sequence[Path] = (),
) -> Reproduction:
    """Return what a sweep of a plan's experiment comes to, as far as it is.

    Args:
        plan: of the exhibit.
        name: the exhibit.
        scale: that it was made at.
        found: the experiment's jobs.
        interval: how pairs that share sentences are seen.
        data_dirs: folders that it was made with.

    Raises:
        UserError: if a folder that the person named is not there.
    """
    what = layout(plan, name, scale, data_dirs)
    printed = _printed(name)
    numbers, last, limits = _measured(plan, name, what, found)
    columns = plan.columns_of(name)
    failed = {state.job.cell["row"]: state.failure.reason for state in found.jobs if state.failure is not None}
    done = {state.job.cell["row"] for state in found.jobs if state.folder is not None}
    cells = []
    for row in plan.rows_of(name):
        for column in columns:
            value = printed.get((row, column), math.nan)
            held = numbers.get((row, column))
            if held is None:
                is_done = {f"{what.shares.get(row, row)}, {column}", what.shares.get(row, row)} & done
                left = _unfilled(plan, name, row, column, found.experiment) if is_done else "not done yet"
                why = _why(what, failed, row, column) or left
                cells.append(ReproducedCell(row, column, value, why=why))
                continue
            low, high, over = limits.get((row, column), (math.nan, math.nan, ""))
            steps = last.get((row, column), math.nan)
            cells.append(
                ReproducedCell(row, column, value, held.mean, held.sd, low, high, over, len(held.values), steps)
            )
    comparer = Comparer(interval)
    answered = answers(
        plan.claims_of(name),
        name,
        numbers,
        printed,
        headline=plan.headline_of(name),
        scale=scale,
        missing=dict(what.missing) | failed,
        labels=plan.labels_of(name),
        columns=plan.column_labels_of(name),
        silent=scales()[scale].silent,
        comparer=comparer,
    )
    swaps = scales()[scale].stands_in
    recipes = {planned.recipe or plan.recipe for planned in plan.rows_of(name).values()}
    stand_ins = {recipe: swaps[recipe] for recipe in sorted(recipes) if swaps.get(recipe, recipe) != recipe}
    return Reproduction(
        exhibit=exhibits()[name],
        plan=plan,
        scale=scale,
        cells=tuple(cells),
        answers=answered,
        cost=_cost(found),
        folder=found.folder,
        stand_ins=stand_ins,
        measured_on=_measured_on(plan, name, scale, found.experiment),
        notes=(
            *_reading(plan),
            *plan.notes,
            *_word_vectors(plan, name, scale, what),
            *_on_seeds(found.experiment),
            *comparer.notes,
        ),
        odd=tuple(_same_weights(found, plan.labels_of(name))),
    )


def _measured_on(plan: TablePlan, name: str, scale: ScaleName, experiment: Experiment) -> str:
    """Return what a scale measures in place of the paper's tasks; empty for the paper's."""
    rows = scales()[scale].rows
    if on_sample(experiment) or (rows and not read_by(plan, name)):
        return experiment.measure.tasks or "the sample"
    return f"{rows} rows of each split" if rows else ""


def _same_weights(found: Sweep, labels: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for trainings of several rows that came to the same weights with every seed."""
    weights: dict[str, dict[int, str]] = {}
    for state in found.jobs:
        if state.job.seed is not None and state.folder is not None and (state.folder / RECORD).is_file():
            of_row = weights.setdefault(state.job.cell["row"], {})
            of_row[state.job.seed] = str(load_run(state.folder).model.weights_sha256)
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


def _reading(plan: TablePlan) -> tuple[str, ...]:
    return (f"Our reading, not the paper's word: {plan.reading}.",) if plan.reading else ()


def _word_vectors(plan: TablePlan, name: str, scale: ScaleName, what: Layout) -> Iterator[str]:
    """Yield of each row of word vectors which file they are of, and whether that is the paper's."""
    if scales()[scale].tried:
        return
    rows, labels = plan.rows_of(name), plan.labels_of(name)
    for made in what.made:
        if pattern := rows[made.row].file:
            told = f"{labels[made.row]} is the mean of the word vectors in {Path(made.changes['checkpoint']).name}"
            stands_in = ", which stands in: the paper does not say which file it used" if "*" in pattern else ""
            yield f"{told}{stands_in}."


def _on_seeds(experiment: Experiment) -> tuple[str, ...]:
    if len(experiment.seeds) == 1:
        return ("One seed says nothing of how far a seed carries: --seeds 1,2,3 trains more.",)
    return ()


def _printed(name: str) -> dict[tuple[str, str], float]:
    """Return what a table prints, x 100, by row and column; what is lost or not reported is left out."""
    if name not in tables():
        return {}
    cells = [cell for row in rows_of(tables()[name]) for cell in row.cells]
    return {(cell.row, cell.column): cell.score for cell in cells if cell.score is not None}


@dataclass(frozen=True)
class _Job:
    """A job that is done: its numbers, and its record."""

    state: JobState
    folder: Path

    @property
    def seed(self) -> int:
        return self.state.job.seed or 0

    def record(self) -> RunRecord | None:
        return load_run(self.folder) if (self.folder / RECORD).is_file() else None


_Key = tuple[str, str]


def _measured(
    plan: TablePlan, name: str, what: Layout, found: Sweep
) -> tuple[dict[_Key, Numbers], dict[_Key, float], dict[_Key, tuple[float, float, str]]]:
    """Return by row and column the numbers of all seeds, the mean of the last steps, the interval of the mean."""
    jobs: dict[str, list[_Job]] = {}
    for state in found.jobs:
        if state.folder is not None:
            jobs.setdefault(state.job.cell["row"], []).append(_Job(state, state.folder))
    records = {job.folder: job.record() for done in jobs.values() for job in done}
    intervals = found.cells
    numbers: dict[_Key, Numbers] = {}
    last: dict[_Key, float] = {}
    limits: dict[_Key, tuple[float, float, str]] = {}
    labels = {(made.row, made.column): made.label for made in what.made}
    checkpoints = {made.label: str(made.changes.get("checkpoint", "")) for made in what.made}
    for row in plan.rows_of(name):
        for column in plan.columns_of(name):
            taken = what.shares.get(row, row)
            label = labels.get((taken, column)) or labels.get((taken, ""))
            if label is None or label not in jobs:
                continue
            if plan.analysis:
                where = _where(plan, row, name, column, on_sample=on_sample(found.experiment))
                if where is None:
                    continue
                of = plan.columns[column].measure or "value"
                held = {job.seed: _of_analysis(job, plan.analysis, where, of) for job in jobs[label]}
                known = {seed: value for seed, value in held.items() if value is not None}
                if known:
                    errors = [error for _, error in known.values()]
                    numbers[row, column] = Numbers(
                        {seed: value for seed, (value, _) in known.items()},
                        error=errors[0],
                        training=label,
                        checkpoint=checkpoints[label],
                    )
                    limits[row, column] = _analysis_limits(numbers[row, column])
                continue
            measure = measure_of(plan, name, column, found.experiment.measure.tasks)
            scored = {job.seed: job.state.measures.get(measure) for job in jobs[label]}
            values = {seed: value for seed, value in scored.items() if value is not None}
            if not measure or not values:
                continue
            runs = {
                job.seed: run
                for job in jobs[label]
                if (run := records[job.folder]) is not None and job.seed in values
            }
            in_record = measure in {row_["measure"] for row_ in _rows_of(intervals, label)}
            numbers[row, column] = Numbers(
                values,
                runs if in_record and not measure.startswith(OF_HEADS) else {},
                measure,
                checkpoint=checkpoints[label],
            )
            for entry in _rows_of(intervals, label):
                if entry["measure"] == measure:
                    limits[row, column] = (entry["low"], entry["high"], entry["interval"])
                if entry["measure"] == f"{LAST}{measure}":
                    last[row, column] = entry["mean"]
    return numbers, last, limits


def _where(plan: TablePlan, row: str, name: str, column: str, *, on_sample: bool) -> dict[str, str] | None:
    """Return what a cell's row is in an analysis' frame; None for none.

    Where the sample stands in for the paper's tasks it fills one column where columns are tasks, the headline, and
    one row where rows are, the first.
    """
    rows = plan.rows_of(name)
    of_row, of_column = rows[row].where, plan.columns[column].where
    where = {**of_row, **of_column}
    if on_sample and "task" in where:
        where["task"] = "sample"
        if "task" in of_column and column != plan.headline_of(name):
            return None
        if "task" in of_row and row != next(iter(rows)):
            return None
    return where


def _rows_of(frame: "pd.DataFrame", label: str) -> list[dict[str, Any]]:
    rows = frame[frame["cell"] == label].to_dict("records")
    return [{str(key): value for key, value in row.items()} for row in rows]


def _of_analysis(job: _Job, analysis: str, where: Mapping[str, str], of: str) -> tuple[float, float] | None:
    """Return a number of an analysis' frame with its standard error (NaN for unknown); None where it has none."""
    import pandas as pd

    path = job.folder / "analyses" / f"{analysis}.csv"
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
    known = of == "value" and {"low", "high"} <= set(frame.columns) and pd.notna(first["low"])
    return float(first[of]), error_of(first["low"], first["high"]) if known else math.nan


def _as_text(value: Any) -> str:
    """Return a cell of a table as a plan spells it: whole numbers without a point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _analysis_limits(numbers: Numbers) -> tuple[float, float, str]:
    """Return the interval of a mean over seeds, or of an only value over pairs."""
    from stsbench.comparison.aligned import shown_interval

    size = len(numbers.values)
    if size > 1:
        (low, high), _ = shown_interval(numbers.mean, numbers.sd**2 / size, size - 1, 0.95)
        return low, high, "seeds"
    if math.isnan(numbers.error):
        return math.nan, math.nan, ""
    (low, high), _ = shown_interval(numbers.mean, numbers.error**2, math.inf, 0.95)
    return low, high, "pairs"


def _why(what: Layout, failed: Mapping[str, str], row: str, column: str) -> str:
    """Return why a cell is empty whose job was not done or failed; empty for neither."""
    for label in (f"{row}, {column}", row, what.shares.get(row, row)):
        if label in what.missing:
            return what.missing[label]
        if label in failed:
            return f"failed: {failed[label]}"
    return ""


def _unfilled(plan: TablePlan, name: str, row: str, column: str, experiment: Experiment) -> str:
    """Return why a cell is empty whose job is done; empty where nothing fills its column at any scale."""
    if not plan.analysis and not plan.columns_of(name)[column]:
        return ""
    if on_sample(experiment):
        if plan.analysis and _where(plan, row, name, column, on_sample=True) is not None:
            return "the sample has no such pairs"
        return "not measured: the sample stands in for the paper's tasks, which are not here, and is one task"
    return "no such number came out of it"


def _cost(found: Sweep) -> Cost:
    done = [state for state in found.jobs if state.folder is not None]
    # Jobs that measure one training in several ways share its log.
    steps = {state.job.unit: _steps(state.folder) for state in done if state.folder is not None}
    seconds = sum(state.seconds for state in done)
    threads = found.experiment.threads
    return Cost(len(done), len(found.jobs), len(found.failed), sum(steps.values()), seconds / 3600, threads)


def _steps(folder: Path) -> int:
    """Return how many steps the training of a job took; 0 for a checkpoint."""
    from stsbench.training.log import LOG, read_log

    if not (folder / LOG).is_file():
        return 0
    return max((int(line["step"]) for line in read_log(folder / LOG) if "step" in line), default=0)


@dataclass(frozen=True)
class Reproductions(Result):
    """Tables and figures of the papers: whether they can be made, and what it takes.

    Attributes:
        only: the one that is told of in full; empty for all of them, a line each.
    """

    only: str = ""

    @property
    def frame(self) -> "pd.DataFrame":
        """A row for each, with what it shows, what it takes at each scale, and its claims."""
        import pandas as pd

        by_exhibit = {name: plan for plan in plans().values() for name in plan.makes}
        rows: list[dict[str, Any]] = []
        for entry in exhibits().values():
            if self.only not in {"", entry.name}:
                continue
            plan = by_exhibit[entry.name]
            can = {scale: not takes(plan, entry, scale).startswith("cannot") for scale in SCALES}
            rows.append(
                {
                    "table": entry.name,
                    "shows": entry.caption,
                    "kind": entry.kind,
                    "can be made": ", ".join(scale for scale in SCALES if can[scale]),
                    **{scale: takes(plan, entry, scale) for scale in SCALES},
                    "claims": len(plan.claims_of(entry.name)),
                    "why not": plan.cannot,
                    "plan": plan.name,
                }
            )
        return pd.DataFrame(rows)

    def table(self) -> Tables:
        """Return what can be made at which scales, and what cannot be made with why; of one all that is known."""
        if self.only:
            return Tables([self._facts()])
        frame = self.frame
        can = frame["can be made"] != ""
        # At the scale wiring everything is made that the scale paper makes.
        at = frame["can be made"].str.removesuffix(", wiring")
        made = frame.assign(at=at)[can][["table", "at", "claims", "shows"]]
        cannot = frame[~can][["table", "why not"]]
        whole = "One of them with all that it takes: `stsbench reproduce --list NAME`."
        return Tables(
            [
                Table(fitted(made, "shows"), "What can be made, and at which scales", notes=(whole,)),
                Table(fitted(cannot, "why not"), "What cannot be made"),
            ]
        )

    def _facts(self) -> Table:
        """Return all that is known of one, a line each."""
        import pandas as pd

        plan, row = plan_of(self.only), self.frame.to_dict("records")[0]
        facts = [(str(name), str(value)) for name, value in row.items() if value != ""]
        labels = plan.labels_of(self.only)
        for scale in SCALES:
            for key, why in layout(plan, self.only, scale).missing.items():
                name, comma, column = key.partition(", ")
                facts.append((f"left out at {scale}", f"{labels[name]}{comma}{column}: {why}"))
        facts += [("claim", claim.says) for claim in plan.claims_of(self.only)]
        facts += [("note", note) for note in plan.notes]
        return Table(pd.DataFrame(facts, columns=["what", "of it"]))


def reproductions(table: str = "") -> Reproductions:
    """Return tables and figures of the papers: whether they can be made, and what it takes at each scale.

    Args:
        table: one of them, which is told of in full; empty for all.

    Raises:
        UserError: if there is no such table or figure.

    >>> reproductions().frame.set_index("table").loc["esimcse-coling2022-9", "demo"]
    '6 trainings; 5 of its rows left out'
    >>> print(reproductions("esimcse-coling2022-9").table()[0].frame.loc[0, "of it"])
    esimcse-coling2022-9
    """
    return Reproductions(exhibit(table).name if table else "")
