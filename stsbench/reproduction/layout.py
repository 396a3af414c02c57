"""What is trained and measured for a table at a scale, why the rest is not, and the experiment that does it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from stsbench.base.errors import UserError
from stsbench.data.locate import places
from stsbench.published.catalogue import checkpoint_of_system, exhibits, tables
from stsbench.published.schema import PublishedTable
from stsbench.records.labels import distinct_labels
from stsbench.reproduction.samples import labelled_path
from stsbench.reproduction.table_plan import PlannedRow, RowPlan, Scale, ScaleName, TablePlan, scales
from stsbench.scoring.settings import Protocol
from stsbench.scoring.tasks import parse_tasks
from stsbench.sweeps.experiment import Experiment
from stsbench.sweeps.states import DEV


@dataclass(frozen=True)
class Made:
    """One thing that is trained or measured for a table: its row, and its column if it fills one alone."""

    row: str
    column: str
    changes: Mapping[str, Any]

    @property
    def label(self) -> str:
        """What it is called on the experiment's axis."""
        return f"{self.row}, {self.column}" if self.column else self.row

    @property
    def checkpoint(self) -> str:
        """The checkpoint that is measured without training; empty for a training."""
        return str(self.changes.get("checkpoint", ""))

    @property
    def is_trained(self) -> bool:
        """Whether it is trained here."""
        return "recipe" in self.changes


@dataclass(frozen=True)
class Layout:
    """What is made for an exhibit at a scale, in the order of its rows.

    `shares` names by row the row whose trainings it shares; `missing` says by row, or `row, column`, why it is not
    made.
    """

    made: tuple[Made, ...]
    shares: Mapping[str, str]
    missing: Mapping[str, str]

    def filling(self, row: str, column: str) -> Made | None:
        """Return what fills a cell of the table; None for nothing."""
        by_place = {(made.row, made.column): made for made in self.made}
        source = self.shares.get(row, row)
        return by_place.get((source, column)) or by_place.get((source, ""))


def layout(plan: TablePlan, name: str, scale: ScaleName, data_dirs: Sequence[Path] = ()) -> Layout:
    """Return what is trained and measured for an exhibit at a scale, and why the rest is not.

    Files of word vectors are looked for in the folders of data, the person's first.

    >>> from stsbench.reproduction.table_plan import plan_of
    >>> rates = layout(plan_of("esimcse-coling2022-9"), "esimcse-coling2022-9", "laptop")
    >>> rates.made[0].label, rates.made[0].changes["views.key.rate"]
    ('dup_rate-0.08', 0.08)
    """
    made: list[Made] = []
    shares: dict[str, str] = {}
    missing: dict[str, str] = {}
    chosen = plan.made_at.get(scale)
    if plan.counts:
        return Layout((), {}, {})
    for row, planned in plan.rows_of(name).items():
        if chosen is not None and row not in {label.partition(", ")[0] for label in chosen}:
            missing[row] = planned.cannot or f"left out at the scale {scale}, which makes a few rows alone"
            continue
        if planned.of:
            shares[row] = planned.of
            continue
        for column, place in planned.cells.items() or (("", planned),):
            label = f"{row}, {column}" if column else row
            if chosen is not None and not {row, label} & set(chosen):
                missing[label] = f"left out at the scale {scale}, which makes a few cells alone"
                continue
            changes = _changes(plan, planned, place, scale, data_dirs)
            if isinstance(changes, str):
                missing[label] = changes
            else:
                made.append(Made(row, column, changes))
    return Layout(tuple(made), shares, missing)


def _changes(
    plan: TablePlan, row: PlannedRow, place: RowPlan, scale: ScaleName, data_dirs: Sequence[Path]
) -> dict[str, Any] | str:
    """Return how a row or a cell is made at a scale as changes of an experiment, or why it is not."""
    size = scales()[scale]
    why = place.cannot or row.cannot or place.cannot_at.get(scale) or row.cannot_at.get(scale)
    if as_it_is := why or _as_it_is(row, place, size, data_dirs):
        return as_it_is
    recipes = (place.recipe_at, place.recipe, row.recipe_at, row.recipe, plan.recipe_at, plan.recipe)
    named = (recipe if isinstance(recipe, str) else recipe.get(scale, "") for recipe in recipes)
    recipe = next(filter(None, named), "")
    if not recipe:
        if size.checkpoints:
            return "no public checkpoint is known, and no recipe trains it"
        return "measured from a checkpoint, at the scale paper alone"
    name = size.stands_in.get(recipe, recipe) if size.stands_in else recipe
    if size.stands_in and recipe not in size.stands_in:
        return f"{recipe}: {size.without}"
    changes: dict[str, Any] = {"recipe": name, **size.set, **row.set, **row.set_at.get(scale, {})}
    return changes | dict(place.set) | dict(place.set_at.get(scale, {}))


def _as_it_is(row: PlannedRow, place: RowPlan, size: Scale, data_dirs: Sequence[Path]) -> dict[str, Any] | str:
    """Return the changes of a row that is measured without training, or why it cannot be; empty for a training."""
    if pattern := place.file or row.file:
        for data in places(data_dirs):
            for path in sorted(data.folder.glob(pattern)):
                if path.is_file():
                    return {"checkpoint": str(path.absolute())}
        return f"no file {pattern} is in a data folder: put word vectors there, or name a folder with --data-dir"
    system = place.checkpoint or row.checkpoint
    known = checkpoint_of_system(system) if system and size.checkpoints else None
    if known is None or not known.hub:
        return {}
    post = place.postprocessing or row.postprocessing
    return {"checkpoint": known.hub, "pooling": known.pooling} | ({"postprocessing": post} if post else {})


_NEEDED = {"Avg. STS": "sts", "Avg. transfer": "transfer"}

_STAND_INS = {"sample": "sample", "sample-transfer": "Avg. transfer"}
"""What bundled tasks are called among the measures of a job."""

OF_HEADS = f"{DEV}: "
"""Before the score of a task's head, which training measures on a dev set of its own."""


def experiment_of(
    plan: TablePlan,
    name: str,
    scale: ScaleName,
    *,
    corpus: str = "",
    seeds: tuple[int, ...] = (),
    threads: int = 1,
    settings: Mapping[str, Any] | None = None,
    here: bool = False,
    data_dirs: Sequence[Path] = (),
) -> Experiment:
    """Return the experiment that makes an exhibit at a scale, with the scale's corpus and seeds by default.

    `settings` go over the plan's; `here` says whether the files of the paper's tasks are here.
    """
    size, planned = scales()[scale], layout(plan, name, scale, data_dirs)
    if not planned.made:
        why = next(iter(planned.missing.values()), plan.cannot)
        raise UserError(f"{name} cannot be made at the scale {scale}: {why.rstrip('.')}.")
    rows = _rows(plan, planned, size, corpus=corpus, settings=settings or {})
    measure: dict[str, Any] = {"tasks": tasks_of(plan, name, scale, here=here)}
    if plan.analysis:
        of_sample = {} if here else size.sample_options.get(plan.analysis, {})
        measure["analyses"] = {plan.analysis: {**plan.options, **size.options.get(plan.analysis, {}), **of_sample}}
    measure["last"] = plan.last and size.last and any(made.is_trained for made in planned.made)
    try:
        return Experiment(
            name=f"{name}-{scale}",
            about=f"{exhibits()[name].title}; {size.about}",
            axes={"row": rows},
            seeds=seeds or size.seeds,
            measure=measure,
            threads=threads,
        )
    except ValidationError as error:
        mistake = error.errors()[0]
        what_is_wrong = mistake["msg"].removeprefix("Value error, ")
        raise UserError(f"{' '.join(map(str, mistake['loc'][:1]))}: {what_is_wrong}.") from error


def _rows(
    plan: TablePlan, planned: Layout, size: Scale, *, corpus: str, settings: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the changes of each row, with what the scale and the person change of every training."""
    trained: dict[str, Any] = {}
    if size.labelled and plan.labelled:
        # The sample's sentences are invented: no task's pairs are among them.
        trained |= {"labelled.folder": str(labelled_path()), "labelled.test_pairs": "kept"}
    trained |= settings
    if text := corpus or size.corpus:
        trained["corpus"] = text
    return {made.label: {**made.changes, **(trained if made.is_trained else {})} for made in planned.made}


def tasks_of(plan: TablePlan, name: str, scale: ScaleName, *, here: bool = False) -> str | None:
    """Return what is measured of every job, as `run --tasks` names it; None for nothing.

    Where the files of the paper's tasks are `here`, a scale measures a few of their rows.
    """
    if plan.analysis and not plan.tasks:
        return None
    needed = plan.tasks or _tasks(tables()[name])
    return needed if here else scales()[scale].tasks.get(needed, scales()[scale].tasks.get("", needed))


def read_by(plan: TablePlan, name: str) -> str:
    """Return the tasks whose sentences the paper's own measure reads; empty for none.

    >>> from stsbench.reproduction.table_plan import plan_of
    >>> read_by(plan_of("simcse-slides-figure-3"), "simcse-slides-figure-3")
    'STS-B'
    """
    return tasks_of(plan, name, "paper") or str(plan.options.get("task", ""))


def on_sample(experiment: Experiment) -> bool:
    """Return whether an experiment measures the bundled sample in place of the paper's tasks."""
    options = [value for of in experiment.measure.analyses.values() for value in of.values()]
    named = {*(experiment.measure.tasks or "").split(","), *(value for value in options if isinstance(value, str))}
    return bool(named & set(_STAND_INS))


def measure_of(plan: TablePlan, name: str, column: str, tasks: str | None) -> str:
    """Return the measure of a job that fills a column when these tasks were measured; empty for none.

    Where the sample stands in for the paper's tasks, that fills the headline alone, and columns of the same
    measure; where both of its kinds of tasks do, the average of each.
    """
    columns = plan.columns_of(name)
    measure, stand_ins = columns.get(column, ""), (tasks or "").split(",")
    # What training says is there whatever was measured afterwards.
    if not set(stand_ins) <= set(_STAND_INS) or measure.startswith(OF_HEADS):
        return _as_job_says(measure, tasks)
    if len(stand_ins) == 1:
        return _STAND_INS[stand_ins[0]] if measure == columns[plan.headline_of(name)] else ""
    # Of both kinds of tasks, each stands for an average or the development set.
    if measure == _STAND_INS["sample-transfer"]:
        return measure
    return _STAND_INS["sample"] if measure == "Avg." or measure.endswith(":dev") else ""


def _as_job_says(measure: str, tasks: str | None) -> str:
    """Return what a job calls a measure: a split is named where papers report another, or it is one of several.

    >>> _as_job_says("STS-B:dev", "STS-B:dev"), _as_job_says("STS-B", "sts,STS-B:dev")
    ('STS-B:dev', 'STS-B:test')
    """
    if tasks is None:
        return measure
    specs = parse_tasks(tasks, Protocol())
    task, _, split = measure.partition(":")
    labels = zip(specs, distinct_labels(specs), strict=True)
    wanted = (label for spec, label in labels if spec.task == task and spec.split in {split or "test", ""})
    return next(wanted, measure)


def _tasks(table: PublishedTable) -> str:
    """Return the tasks that a published table of scores needs."""
    settings = [column.setting.over(table.setting) for column in table.columns]
    needed = [
        _NEEDED.get(setting.task, f"{setting.task}:dev" if setting.split == "dev" else setting.task)
        for setting in settings
        if setting.task != "delta"
    ]
    groups = [group for group in ("sts", "transfer") if group in needed]
    return ",".join(groups if groups and "STS-B:dev" not in needed else dict.fromkeys(needed))
