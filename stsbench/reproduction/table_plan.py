"""The plan of a table or figure: how each of its rows is made, at which scale, and what the paper claims with it.

Plans are YAML files in `plans/`, one for each table, or for tables of several papers that show the same;
`plans/scales.yaml` says what a scale changes. `experiment_of` turns a plan into an experiment that `sweep` runs.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.data.locate import places
from stsbench.published.catalogue import checkpoint_of_system, exhibit, exhibits, tables
from stsbench.published.schema import Exhibit, PublishedTable
from stsbench.records.labels import distinct_labels
from stsbench.reproduction.stand_ins import labelled_path, tried
from stsbench.scoring.protocols import Protocol
from stsbench.scoring.tasks import parse_tasks
from stsbench.sweeps.experiment import Experiment
from stsbench.sweeps.measures import DEV

ScaleName = Literal["demo", "laptop", "paper", "wiring"]
SCALES: tuple[ScaleName, ...] = get_args(ScaleName)

_SCALES_FILE = "scales.yaml"

_AVERAGES = {"Avg. STS": "Avg.", "Avg. transfer": "Avg. transfer"}
"""What the averages of a published table are called among the measures of a job."""

_NEEDED = {"Avg. STS": "sts", "Avg. transfer": "transfer"}

_STAND_INS = {"sample": "sample", "sample-transfer": "Avg. transfer"}
"""What bundled tasks are called among the measures of a job."""

OF_HEADS = f"{DEV}: "
"""Before the score of a task's head, which training measures on a dev set of its own."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TableClaim(_Part):
    """What a paper says with a table. One of the relations is given.

    Rows are named as in the table; where each column is a training of its own, a cell is `row, column`.

    Attributes:
        name: of the claim, among those of its plan.
        says: the claim in a sentence of ours.
        lines: where the paper makes it: by exhibit, the line of its text.
        column: which column it is about; empty for the plan's headline.
        best: the row that is the best, of `among` (empty for all).
        above: two rows, the first of which is above the second.
        order: rows from the highest to the lowest.
        alike: rows that differ by less than `by` points.
        collapses: a row that is at least `by` points below the row `than`.
        smaller_gap: two pairs of rows: the first less the second of the first pair is smaller than of the other.
        among: the rows that `best` is the best of.
        than: see `collapses`.
        by: points.
        except_columns: where `above` is about all columns, those where the second row is above the first.
        every_column: whether `above` is about every column of the table.
    """

    name: str
    says: str
    lines: Mapping[str, int]
    column: str = ""
    best: str = ""
    above: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()
    collapses: str = ""
    smaller_gap: tuple[tuple[str, str], ...] = ()
    among: tuple[str, ...] = ()
    than: str = ""
    by: float = Field(0.0, ge=0)
    except_columns: tuple[str, ...] = ()
    every_column: bool = False

    @model_validator(mode="after")
    def _one_relation(self) -> Self:
        given = [name for name in RELATIONS if getattr(self, name)]
        if len(given) != 1:
            raise ValueError(f"claim {self.name}: give one of {', '.join(RELATIONS)}, not {given or 'none'}")
        if (self.collapses or self.alike) and not self.by:
            raise ValueError(f"claim {self.name}: say by how many points (`by`)")
        if bool(self.collapses) != bool(self.than):
            raise ValueError(f"claim {self.name}: `collapses` and `than` go together")
        if self.above and len(self.above) != 2:
            raise ValueError(f"claim {self.name}: `above` names two rows")
        if self.smaller_gap and len(self.smaller_gap) != 2:
            raise ValueError(f"claim {self.name}: `smaller_gap` names two pairs of rows")
        return self

    @property
    def relation(self) -> str:
        """Which relation it is."""
        return next(name for name in RELATIONS if getattr(self, name))

    @property
    def rows(self) -> tuple[str, ...]:
        """The rows that it names."""
        pairs = [row for pair in self.smaller_gap for row in pair]
        named = (self.best, *self.above, *self.order, *self.alike, self.collapses, self.than, *self.among, *pairs)
        return tuple(dict.fromkeys(filter(None, named)))


RELATIONS = ("best", "above", "order", "alike", "collapses", "smaller_gap")


class RowPlan(_Part):
    """How one row, or one cell, is made.

    Attributes:
        checkpoint: the published system whose public checkpoint is measured at the paper's scale.
        file: a file of word vectors that is measured in the same way, looked for in the data folders; a pattern,
            such as `glove*.txt`, where the paper does not say which file it used.
        recipe: what is trained: of the paper's base; other scales take what stands in for it.
        set: changes to the recipe.
        set_at: changes at one scale alone.
        recipe_at: what is trained at one scale, in place of what stands in for `recipe`.
        postprocessing: of a checkpoint's vectors, as an experiment has it.
        cannot: why it cannot be had, where it cannot.
        cannot_at: why not at a scale.
    """

    checkpoint: str = ""
    file: str = ""
    recipe: str = ""
    set: Mapping[str, Any] = {}
    set_at: Mapping[ScaleName, Mapping[str, Any]] = {}
    recipe_at: Mapping[ScaleName, str] = {}
    postprocessing: Any = None
    cannot: str = ""
    cannot_at: Mapping[ScaleName, str] = {}


class PlannedRow(RowPlan):
    """How a row is made: see `RowPlan`.

    Attributes:
        label: what it is called, where it is not as it is printed.
        at: its value on the axis.
        of: the row whose trainings it shares: another measure of the same.
        where: which rows of the analysis' frame are its numbers.
        cells: by column, for a table where each column is a training of its own.
    """

    label: str = ""
    at: float | None = None
    of: str = ""
    where: Mapping[str, str] = {}
    cells: Mapping[str, RowPlan] = {}


class PlannedColumn(_Part):
    """What fills a column.

    Attributes:
        label: what it is called, where its name is short for it.
        measure: its name among the measures of a job; of an analysis, the column of its frame, `value` by default.
        where: which rows of the analysis' frame are its numbers.
    """

    label: str = ""
    measure: str = ""
    where: Mapping[str, str] = {}


class TablePlan(_Part):
    """How a table or figure is made.

    Attributes:
        name: of its file.
        makes: the exhibits that it makes: of each, the rows that it has.
        about: what is varied, in a sentence.
        reading: what the text leaves open and how it is read here, where nothing could be made otherwise.
        counts: whether the table counts the pairs of splits, which are read from the files.
        axis: what `at` is.
        recipe: what rows train that name no recipe.
        recipe_at: the same at one scale.
        rows: by name; of a published table every row stands here.
        columns: by name, where they are not simply the table's tasks.
        headline: the column that claims and figures are about; empty for the last.
        tasks: what is measured, as `stsbench run --tasks` names it; empty for what the columns need.
        labelled: whether its recipes read labelled tables, whose folder is named with `labelled.folder`.
        analysis: which analysis makes it; empty for scores.
        options: of the analysis.
        made_at: the rows, or cells, that a scale makes; all that can be had by default.
        last: whether the checkpoint of the last step is measured, too: the paper prints the split it selected on.
        cannot: why nothing of it can be made.
        notes: what a reader should know.
        claims: what the paper says with it.
    """

    name: str
    makes: tuple[str, ...]
    about: str
    reading: str = ""
    counts: bool = False
    axis: str = ""
    recipe: str = ""
    recipe_at: Mapping[ScaleName, str] = {}
    rows: Mapping[str, PlannedRow] = {}
    columns: Mapping[str, PlannedColumn] = {}
    headline: str = ""
    tasks: str = ""
    labelled: bool = False
    analysis: str = ""
    options: Mapping[str, Any] = {}
    made_at: Mapping[ScaleName, tuple[str, ...]] = {}
    last: bool = False
    cannot: str = ""
    notes: tuple[str, ...] = ()
    claims: tuple[TableClaim, ...] = ()

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        if bool(self.rows) == bool(self.cannot):
            raise ValueError("a plan has rows, or says why nothing can be made")
        for claim in self.claims:
            if unknown := [row for row in claim.rows if row.partition(", ")[0] not in self.rows]:
                raise ValueError(f"claim {claim.name} names {unknown[0]!r}, which is no row")
            if wrong := [name for name in claim.lines if name not in self.makes]:
                raise ValueError(f"claim {claim.name} is of {wrong[0]!r}, which this plan does not make")
        for scale, rows in self.made_at.items():
            if unknown := [row for row in rows if row.partition(", ")[0] not in self.rows]:
                raise ValueError(f"made_at {scale} names {unknown[0]!r}, which is no row")
        return self

    def rows_of(self, name: str) -> dict[str, PlannedRow]:
        """Return the rows that an exhibit has, in its order."""
        table = tables().get(name)
        if self.cannot or table is None or not table.rows:
            return dict(self.rows)
        return {row.name: self.rows[row.name] for row in table.rows}

    def labels_of(self, name: str) -> dict[str, str]:
        """Return what the rows of an exhibit are called: as the plan says, or as they are printed, or by name.

        Rows that share a label have their names behind it.
        """
        table = tables().get(name)
        printed = {row.name: without_marks(row.label) for row in table.rows} if table is not None else {}
        labels = {row: planned.label or printed.get(row) or row for row, planned in self.rows_of(name).items()}
        shared = [label for label, count in Counter(labels.values()).items() if count > 1]
        return {row: f"{label} ({row})" if label in shared else label for row, label in labels.items()}

    def column_labels_of(self, name: str) -> dict[str, str]:
        """Return what the columns of an exhibit are called: as the plan says, or by name."""
        labels = {column: planned.label for column, planned in self.columns.items()}
        return {column: labels.get(column) or column for column in self.columns_of(name)}

    def columns_of(self, name: str) -> dict[str, str]:
        """Return the columns of an exhibit by the measure that fills each; empty for one that nothing fills.

        Of an analysis the values are the columns' own names.
        """
        table = tables().get(name)
        if self.columns:
            return {column: planned.measure for column, planned in self.columns.items()}
        return _measures(table) if table is not None else {}

    def headline_of(self, name: str) -> str:
        """Return the column that claims and figures are about: by default the last that something fills."""
        return self.headline or [column for column, measure in self.columns_of(name).items() if measure][-1]

    def claims_of(self, name: str) -> tuple[TableClaim, ...]:
        """Return the claims that the paper of an exhibit makes with it."""
        return tuple(claim for claim in self.claims if name in claim.lines)


class Scale(_Part):
    """What a scale changes.

    Attributes:
        about: what it is, in a sentence.
        seeds: of the trainings.
        stands_in: by the paper's recipe, what is trained instead; empty for the recipe itself.
        without: why a recipe that nothing stands in for cannot be trained.
        set: changes to every recipe.
        rows: how many rows of each of the paper's tasks are measured, where their files are here; 0 for all.
        tasks: what is measured where they are not; empty for the paper's at any rate.
        corpus: what is trained on; empty for what the person names, or a fetched `wiki1m`.
        labelled: whether tables of the sample stand in for labelled ones that nobody named.
        checkpoints: whether public checkpoints are measured; else their rows are trained or left out.
        tried: whether encoders of random weights stand in for all bases and checkpoints (see `stand_ins`).
        last: whether the last step is measured beside the selected one; false where they are the same.
        options: of analyses.
        sample_options: of analyses, where the sample stands in for the paper's tasks.
        silent: why what comes out answers no claim; empty where it does.
    """

    about: str
    seeds: tuple[int, ...]
    stands_in: Mapping[str, str] = {}
    without: str = ""
    set: Mapping[str, Any] = {}
    rows: int = 0
    tasks: Mapping[str, str] = {}
    corpus: str = ""
    labelled: bool = False
    checkpoints: bool = False
    tried: bool = False
    last: bool = True
    options: Mapping[str, Mapping[str, Any]] = {}
    sample_options: Mapping[str, Mapping[str, Any]] = {}
    silent: str = ""


@dataclass(frozen=True)
class Made:
    """One thing that is trained or measured for a table.

    Attributes:
        row: the row that it fills.
        column: the column that it fills; empty for all of them.
        changes: as an experiment's axis has them.
    """

    row: str
    column: str
    changes: Mapping[str, Any]

    @property
    def label(self) -> str:
        """What it is called on the experiment's axis."""
        return f"{self.row}, {self.column}" if self.column else self.row

    @property
    def is_trained(self) -> bool:
        """Whether it is trained here."""
        return "recipe" in self.changes


@dataclass(frozen=True)
class Layout:
    """What is made for an exhibit at a scale.

    Attributes:
        made: in the order of the rows.
        shares: by row, the row whose trainings it shares.
        missing: by row (or `row, column`), why it is not made.
    """

    made: tuple[Made, ...]
    shares: Mapping[str, str]
    missing: Mapping[str, str]


@cache
def plans() -> Mapping[str, TablePlan]:
    """Return every plan by its name.

    >>> plans()["esimcse-repetition-rate"].makes
    ('esimcse-coling2022-9', 'esimcse-arxiv-v1-9')
    """
    names = sorted(path.stem for path in _folder().glob("*.yaml") if path.name != _SCALES_FILE)
    return MappingProxyType(
        {name: TablePlan.model_validate({"name": name} | _read(f"{name}.yaml")) for name in names}
    )


@cache
def scales() -> Mapping[ScaleName, Scale]:
    """Return what each scale changes."""
    read = _read(_SCALES_FILE)
    return MappingProxyType({name: Scale.model_validate(read[name]) for name in SCALES})


def plan_of(name: str) -> TablePlan:
    """Return the plan that makes a table or figure.

    Raises:
        UserError: if there is no such exhibit, or nothing of it can be made (saying why).

    >>> plan_of("ESimCSE COLING2022 9").axis
    'repetition rate'
    """
    found = exhibit(name)
    plan = next((plan for plan in plans().values() if found.name in plan.makes), None)
    if plan is None:
        raise UserError(f"{found.name} has no plan: `stsbench reproduce --list` says what can be made.")
    return plan


def demand_scale(name: str) -> ScaleName:
    """Return a scale's name.

    Raises:
        UserError: if there is no such scale.
    """
    for scale in SCALES:
        if scale == name:
            return scale
    raise UserError(f"there is no scale {name!r}: {suggestion(name, SCALES)}")


def layout(plan: TablePlan, name: str, scale: ScaleName, data_dirs: Sequence[Path] = ()) -> Layout:
    """Return what is trained and measured for an exhibit at a scale, and why the rest is not.

    Args:
        plan: of the exhibit.
        name: the exhibit.
        scale: that it is made at.
        data_dirs: folders of the person's, in which files of word vectors are looked for first.

    Raises:
        UserError: if a folder that the person named is not there.

    >>> found = layout(plan_of("esimcse-coling2022-9"), "esimcse-coling2022-9", "laptop")
    >>> found.made[0].label, found.made[0].changes["views.key.rate"]
    ('dup_rate-0.08', 0.08)
    """
    made: list[Made] = []
    shares: dict[str, str] = {}
    missing: dict[str, str] = {}
    chosen = plan.made_at.get(scale)
    if plan.counts:
        return Layout((), {}, {})
    for row, planned in plan.rows_of(name).items():
        if chosen is not None and row not in {name.partition(", ")[0] for name in chosen}:
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


def tasks_of(plan: TablePlan, name: str, scale: ScaleName, *, here: bool = False) -> str | None:
    """Return what is measured of every job, as `run --tasks` names it; None for nothing.

    Args:
        plan: of the exhibit.
        name: the exhibit.
        scale: that it is made at.
        here: whether the files of the paper's tasks are here, where a scale measures a few of their rows.
    """
    if plan.analysis and not plan.tasks:
        return None
    needed = plan.tasks or _tasks(tables()[name])
    return needed if here else scales()[scale].tasks.get(needed, scales()[scale].tasks.get("", needed))


def read_by(plan: TablePlan, name: str) -> str:
    """Return the tasks whose sentences the paper's own measure reads; empty for none.

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
    """Return the measure of a job that fills a column; empty for none.

    Where the sample stands in for the paper's tasks, that fills the headline alone, and columns of the same
    measure; where both of its kinds of tasks do, the average of each.

    Args:
        plan: of the exhibit.
        name: the exhibit.
        column: of it.
        tasks: that were measured.
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
    """Return what a job calls a measure: a split is named only where the tasks have several of one set.

    >>> _as_job_says("STS-B:dev", "STS-B:dev"), _as_job_says("STS-B", "sts,STS-B:dev")
    ('STS-B', 'STS-B:test')
    """
    if tasks is None:
        return measure
    specs = parse_tasks(tasks, Protocol())
    called = dict(zip(specs, distinct_labels(specs), strict=True))
    task, _, split = measure.partition(":")
    wanted = (spec for spec in specs if spec.task == task and spec.split in {split or "test", ""})
    return next((called[spec] for spec in wanted), measure)


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
    """Return the experiment that makes an exhibit at a scale.

    Args:
        plan: of the exhibit.
        name: the exhibit.
        scale: `demo`, `laptop`, `paper` or `wiring`.
        corpus: what is trained on; empty for the scale's own.
        seeds: of the trainings; empty for the scale's own.
        threads: of every job.
        settings: changes to every recipe, over the plan's.
        here: whether the files of the paper's tasks are here (see `tasks_of`).
        data_dirs: folders of the person's, in which files of word vectors are looked for first.

    Raises:
        UserError: if nothing can be made at this scale, saying why; or seeds or threads are none.
    """
    whole, found = scales()[scale], layout(plan, name, scale, data_dirs)
    if not found.made:
        why = next(iter(found.missing.values()), plan.cannot)
        raise UserError(f"{name} cannot be made at the scale {scale}: {why.rstrip('.')}.")
    measure: dict[str, Any] = {"tasks": tasks_of(plan, name, scale, here=here)}
    if plan.analysis:
        on = {} if here else whole.sample_options.get(plan.analysis, {})
        measure["analyses"] = {plan.analysis: {**plan.options, **whole.options.get(plan.analysis, {}), **on}}
    measure["last"] = plan.last and whole.last and any(made.is_trained for made in found.made)
    trained: dict[str, Any] = {}
    if whole.labelled and plan.labelled:
        # The sample's sentences are invented: no task's pairs are among them.
        trained |= {"labelled.folder": str(labelled_path()), "labelled.test_pairs": "kept"}
    trained |= settings or {}
    if text := corpus or whole.corpus:
        trained["corpus"] = text
    rows = {made.label: {**made.changes, **(trained if made.is_trained else {})} for made in found.made}
    if whole.tried:
        rows = {label: tried(changes) for label, changes in rows.items()}
    try:
        return Experiment(
            name=f"{name}-{scale}",
            about=f"{exhibits()[name].caption}; {whole.about}",
            axes={"row": rows},
            seeds=seeds or whole.seeds,
            measure=measure,
            threads=threads,
        )
    except ValidationError as error:
        mistake = error.errors()[0]
        what = mistake["msg"].removeprefix("Value error, ")
        raise UserError(f"{' '.join(map(str, mistake['loc'][:1]))}: {what}.") from error


def _changes(
    plan: TablePlan, row: PlannedRow, place: RowPlan, scale: ScaleName, data_dirs: Sequence[Path]
) -> dict[str, Any] | str:
    """Return how a row or a cell is made at a scale as changes of an experiment, or why it is not."""
    whole = scales()[scale]
    why = place.cannot or row.cannot or place.cannot_at.get(scale) or row.cannot_at.get(scale)
    if found := why or _as_it_is(row, place, whole, data_dirs):
        return found
    recipes = (place.recipe_at, place.recipe, row.recipe_at, row.recipe, plan.recipe_at, plan.recipe)
    named = (recipe if isinstance(recipe, str) else recipe.get(scale, "") for recipe in recipes)
    recipe = next(filter(None, named), "")
    if not recipe:
        if whole.checkpoints:
            return "no public checkpoint is known, and no recipe trains it"
        return "measured from a checkpoint, at the scale paper alone"
    name = whole.stands_in.get(recipe, recipe) if whole.stands_in else recipe
    if whole.stands_in and recipe not in whole.stands_in:
        return f"{recipe}: {whole.without}"
    changes: dict[str, Any] = {"recipe": name, **whole.set, **row.set, **row.set_at.get(scale, {})}
    return changes | dict(place.set) | dict(place.set_at.get(scale, {}))


def _as_it_is(row: PlannedRow, place: RowPlan, whole: Scale, data_dirs: Sequence[Path]) -> dict[str, Any] | str:
    """Return the changes of what is measured as it is, or why it is not; nothing where it is to be trained."""
    if pattern := place.file or row.file:
        if whole.tried:
            return {"checkpoint": pattern}
        for data in places(data_dirs):
            for path in sorted(data.folder.glob(pattern)):
                if path.is_file():
                    return {"checkpoint": str(path.absolute())}
        return f"no file {pattern} is in a data folder: put word vectors there, or name a folder with --data-dir"
    system = place.checkpoint or row.checkpoint
    known = checkpoint_of_system(system) if system and whole.checkpoints else None
    if known is None or not known.hub:
        return {}
    post = place.postprocessing or row.postprocessing
    return {"checkpoint": known.hub, "pooling": known.pooling} | ({"postprocessing": post} if post else {})


_OF_SIZE = re.compile(r"\s*\$?_\{(\w+)\}\$?")
_MARKS = re.compile(r"\$\^\{[^}]*\}\$|[△♡♢♠♣♯*]| \.$")


def without_marks(label: str) -> str:
    """Return a printed label without the print's LaTeX and the marks of its footnotes.

    >>> without_marks("unsup-SimCSE-BERT $_{base}$ ♣"), without_marks("BERT _{base} -whitening")
    ('unsup-SimCSE-BERT base', 'BERT base-whitening')
    """
    return re.sub(r"\s+-(?=\w)", "-", _MARKS.sub("", _OF_SIZE.sub(r" \1", label))).strip()


def _measures(table: PublishedTable) -> dict[str, str]:
    """Return by column of a published table of scores what it is called among the measures of a job."""
    found = {}
    for column in table.columns:
        setting = column.setting.over(table.setting)
        if setting.task == "delta":
            found[column.name] = ""
        elif setting.task in _AVERAGES:
            found[column.name] = _AVERAGES[setting.task]
        else:
            found[column.name] = setting.task + (f":{setting.split}" if setting.split == "dev" else "")
    return found


def _tasks(table: PublishedTable) -> str:
    """Return the tasks that a published table of scores needs."""
    settings = [column.setting.over(table.setting) for column in table.columns]
    names = dict.fromkeys(setting.task for setting in settings if setting.task != "delta")
    needed = [
        _NEEDED.get(setting.task, f"{setting.task}:dev" if setting.split == "dev" else setting.task)
        for setting in settings
        if setting.task in names
    ]
    groups = [group for group in ("sts", "transfer") if group in needed]
    if groups and "STS-B:dev" not in needed:
        return ",".join(groups)
    return ",".join(dict.fromkeys(needed))


def _folder() -> Path:
    return Path(str(files("stsbench.reproduction") / "plans"))


def _read(name: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((_folder() / name).read_text(encoding="utf-8"))
    return read


def takes(plan: TablePlan, found: Exhibit, scale: ScaleName) -> str:
    """Return what making an exhibit at a scale takes, or why it cannot be made, in a phrase."""
    if plan.cannot:
        return f"cannot be made: {plan.cannot}"
    if plan.counts:
        return "pairs counted in the tasks' files"
    what = layout(plan, found.name, scale)
    trained = sum(made.is_trained for made in what.made)
    measured = len(what.made) - trained
    if not what.made:
        return f"cannot be made: {next(iter(what.missing.values()))}"
    parts = []
    if trained:
        trainings = trained * len(scales()[scale].seeds)
        parts.append(f"{trainings} training{'s' if trainings > 1 else ''}")
    if measured:
        parts.append(f"{measured} checkpoint{'s' if measured > 1 else ''} measured")
    if plan.analysis:
        parts.append(f"analysis {plan.analysis}")
    if plan.reading:
        parts.append("by our reading of the text")
    return ", ".join(parts) + (f"; {len(what.missing)} of its rows left out" if what.missing else "")
