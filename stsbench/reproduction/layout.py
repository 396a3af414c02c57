"""The experiment that reproduces a table at a scale: its trainings, measurements, and missing parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from stsbench.base.errors import UserError
from stsbench.published.catalogue import checkpoint_of_system, exhibits, tables
from stsbench.published.schema import PublishedTable
from stsbench.records.labels import distinct_labels
from stsbench.reproduction.table_plan import PlannedRow, ScaleName, TablePlan, scales
from stsbench.scoring.settings import Protocol
from stsbench.scoring.tasks import parse_tasks
from stsbench.sweeps.experiment import Experiment
from stsbench.sweeps.folder import DEV

_NEEDED = {"Avg. STS": "sts", "Avg. transfer": "transfer"}

_STAND_INS = {"sample": "sample", "sample-transfer": "Avg. transfer"}
"""The measures of bundled tasks."""

OF_HEADS = f"{DEV}: "
"""The prefix of a task head's dev score, which training measures."""


@dataclass(frozen=True)
class Made:
    """A training or checkpoint for a table: its row, and its column if it fills only one."""

    row: str
    column: str
    changes: Mapping[str, Any]

    @property
    def label(self) -> str:
        """Its label on the experiment's axis."""
        return f"{self.row}, {self.column}" if self.column else self.row

    @property
    def is_trained(self) -> bool:
        """Whether it is trained here."""
        return "recipe" in self.changes


@dataclass(frozen=True)
class Layout:
    """The trainings and checkpoints for a table at a scale, in the order of its rows.

    Attributes:
        made: the trainings and checkpoints.
        shares: by row, the row whose trainings it shares.
        missing: by row, or `row, column`, why it cannot be reproduced.
    """

    made: tuple[Made, ...]
    shares: Mapping[str, str]
    missing: Mapping[str, str]

    def filling(self, row: str, column: str) -> Made | None:
        """Returns the training or checkpoint that fills a cell; None for none."""
        by_place = {(made.row, made.column): made for made in self.made}
        source = self.shares.get(row, row)
        return by_place.get((source, column)) or by_place.get((source, ""))


def layout(plan: TablePlan, name: str, scale: ScaleName) -> Layout:
    """Returns the trainings and checkpoints for a table, of which a plan may make several, at a scale.

    >>> from stsbench.reproduction.table_plan import plan_of
    >>> rates = layout(plan_of("esimcse-coling2022-9"), "esimcse-coling2022-9", "laptop")
    >>> rates.made[0].label, rates.made[0].changes["views.key.rate"]
    ('dup_rate-0.08', 0.08)
    """
    made: list[Made] = []
    shares: dict[str, str] = {}
    missing: dict[str, str] = {}
    chosen = plan.made_at.get(scale)
    for row, planned in plan.rows_of(name).items():
        if chosen is not None and row not in {label.partition(", ")[0] for label in chosen}:
            missing[row] = planned.cannot or f"left out at the scale {scale}, which makes only a few rows"
            continue
        if planned.of:
            shares[row] = planned.of
            continue
        for column, of_column in planned.cells.items() or [("", {})]:
            label = f"{row}, {column}" if column else row
            if chosen is not None and not {row, label} & set(chosen):
                missing[label] = f"left out at the scale {scale}, which makes only a few cells"
                continue
            changes = _changes(plan, planned, scale)
            if isinstance(changes, str):
                missing[label] = changes
            else:
                made.append(Made(row, column, changes | dict(of_column)))
    return Layout(tuple(made), shares, missing)


def _changes(plan: TablePlan, row: PlannedRow, scale: ScaleName) -> dict[str, Any] | str:
    """Returns the experiment's changes for a row, or why it cannot be reproduced."""
    size = scales()[scale]
    if why := row.cannot or row.cannot_at.get(scale):
        return why
    known = checkpoint_of_system(row.checkpoint) if row.checkpoint and size.checkpoints else None
    if known is not None and known.hub:
        post = {"postprocessing": row.postprocessing} if row.postprocessing else {}
        return {"checkpoint": known.hub, "pooling": known.pooling} | post
    recipe = row.recipe or plan.recipe_at.get(scale) or plan.recipe
    if not recipe:
        if size.checkpoints:
            return "no public checkpoint is known, and no recipe trains it"
        return "measured from a checkpoint, only at the scale paper"
    if size.stands_in and recipe not in size.stands_in:
        return f"{recipe}: {size.without}"
    trained = size.stands_in.get(recipe, recipe)
    return {"recipe": trained, **size.set, **row.set, **row.set_at.get(scale, {})}


def experiment_of(
    plan: TablePlan,
    name: str,
    scale: ScaleName,
    *,
    corpus: str = "",
    seeds: tuple[int, ...] = (),
    threads: int = 1,
    settings: Mapping[str, Any] | None = None,
) -> Experiment:
    """Returns the experiment that reproduces a table at a scale.

    Args:
        plan: the table's plan.
        name: its name.
        scale: the scale.
        corpus: the training corpus; by default the scale's.
        seeds: of the trainings; by default the scale's.
        threads: per job.
        settings: changes to every recipe, over the plan's.

    Raises:
        UserError: if nothing of the table can be reproduced at the scale.
    """
    size, planned = scales()[scale], layout(plan, name, scale)
    if not planned.made:
        why = next(iter(planned.missing.values()), plan.cannot)
        raise UserError(f"{name} cannot be made at the scale {scale}: {why.rstrip('.')}.")
    text = corpus or size.corpus
    trained = dict(settings or {}) | ({"corpus": text} if text else {})
    rows = {made.label: {**made.changes, **(trained if made.is_trained else {})} for made in planned.made}
    measure: dict[str, Any] = {"tasks": tasks_of(plan, name, scale)}
    if plan.analysis:
        measure["analyses"] = {plan.analysis: {**plan.options, **size.options.get(plan.analysis, {})}}
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


def tasks_of(plan: TablePlan, name: str, scale: ScaleName) -> str | None:
    """Returns the tasks to measure, as in `run --tasks`; None for none."""
    if plan.analysis and not plan.tasks:
        return None
    needed, bundled = plan.tasks or _tasks(tables()[name]), scales()[scale].tasks
    return bundled.get(needed, bundled.get("", needed))


def on_sample(experiment: Experiment) -> bool:
    """Returns whether an experiment measures the bundled sample instead of the paper's tasks."""
    options = [value for of in experiment.measure.analyses.values() for value in of.values()]
    named = {*(experiment.measure.tasks or "").split(","), *(value for value in options if isinstance(value, str))}
    return bool(named & set(_STAND_INS))


def measure_of(plan: TablePlan, name: str, column: str, tasks: str | None) -> str:
    """Returns the measure that fills a column if these tasks were measured; empty for none.

    The sample fills only columns with the headline's measure, or with both of its
    kinds of tasks the average of each.
    """
    columns = plan.columns_of(name)
    measure, stand_ins = columns.get(column, ""), (tasks or "").split(",")
    # Training measures task heads regardless of later measurements.
    if not set(stand_ins) <= set(_STAND_INS) or measure.startswith(OF_HEADS):
        return _label_of(measure, tasks)
    if len(stand_ins) == 1:
        return _STAND_INS[stand_ins[0]] if measure == columns[plan.headline_of(name)] else ""
    if measure == _STAND_INS["sample-transfer"]:
        return measure
    return _STAND_INS["sample"] if measure == "Avg." or measure.endswith(":dev") else ""


def _label_of(measure: str, tasks: str | None) -> str:
    """Returns a job's name for a measure, which has a split if it is not the usual one or one of several.

    >>> _label_of("STS-B:dev", "STS-B:dev"), _label_of("STS-B", "sts,STS-B:dev")
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
    settings = [column.setting.over(table.setting) for column in table.columns]
    needed = [
        _NEEDED.get(setting.task, f"{setting.task}:dev" if setting.split == "dev" else setting.task)
        for setting in settings
        if setting.task != "delta"
    ]
    groups = [group for group in ("sts", "transfer") if group in needed]
    return ",".join(groups if groups and "STS-B:dev" not in needed else dict.fromkeys(needed))
