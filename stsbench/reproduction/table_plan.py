"""Plans of tables and figures: how each row is reproduced at each scale, and the paper's claims.

Plans are YAML files in `plans/`, one for each table, or for equal tables of several papers; `plans/scales.yaml`
has the changes of each scale. Tests check that plans are consistent.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from stsbench.base.errors import UserError
from stsbench.base.parsing import read_yaml
from stsbench.base.words import suggestion
from stsbench.published.catalogue import exhibit, tables
from stsbench.published.schema import PublishedTable

ScaleName = Literal["demo", "laptop", "paper"]
SCALES: tuple[ScaleName, ...] = get_args(ScaleName)

PLANS = Path(str(files("stsbench.reproduction") / "plans"))

SCALES_FILE = PLANS / "scales.yaml"

RELATIONS = ("best", "above", "alike", "smaller_gap")

_AVERAGES = {"Avg. STS": "Avg.", "Avg. transfer": "Avg. transfer"}
"""The measures of a published table's averages."""

_OF_SIZE = re.compile(r"\s*\$?_\{(\w+)\}\$?")
_MARKS = re.compile(r"\$\^\{[^}]*\}\$|[△♡♢♠♣♯*]| \.$")


class PlanPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Scale(PlanPart):
    """The changes of a scale.

    Attributes:
        about: a description.
        seeds: of the trainings.
        stands_in: replacements of the paper's recipes; empty for none.
        without: why a recipe without a replacement cannot be trained.
        set: changes to every recipe.
        tasks: bundled tasks instead of the paper's; empty for the paper's.
        corpus: the corpus; empty for the user's, or `wiki1m`.
        checkpoints: whether public checkpoints are measured; otherwise their rows are trained or left out.
        last: whether the last step is measured if a plan asks for it.
        options: of analyses.
        silent: why its numbers answer no claim; empty if they do.
    """

    about: str
    seeds: tuple[int, ...]
    stands_in: Mapping[str, str] = {}
    without: str = ""
    set: Mapping[str, Any] = {}
    tasks: Mapping[str, str] = {}
    corpus: str = ""
    checkpoints: bool = False
    last: bool = True
    options: Mapping[str, Mapping[str, Any]] = {}
    silent: str = ""


@cache
def scales() -> Mapping[ScaleName, Scale]:
    """Returns the scales by name."""
    written = read_plan_file(SCALES_FILE)
    return MappingProxyType({name: Scale.model_validate(written[name]) for name in SCALES})


def demand_scale(name: str) -> ScaleName:
    """Returns a scale's name, or raises a UserError if there is none."""
    for scale in SCALES:
        if scale == name:
            return scale
    raise UserError(f"there is no scale {name!r}: {suggestion(name, SCALES)}")


def read_plan_file(path: Path) -> dict[str, Any]:
    """Reads a YAML file in the folder of plans."""
    written: dict[str, Any] = read_yaml(path.read_text(encoding="utf-8"))
    return written


class TableClaim(PlanPart):
    """A paper's claim about a table, as one relation.

    Rows are named as in the table; if each column is a training, a cell is `row, column`.

    Attributes:
        name: of the claim, unique in its plan.
        says: the claim in our words.
        lines: the line of the paper's text, by table.
        column: the column; empty for the plan's headline.
        best: the row that is best among `among` (empty for all).
        above: rows from the highest to the lowest, each at least `by` points above the next.
        alike: rows that differ by less than `by` points.
        smaller_gap: two pairs of rows; the difference of the first pair is smaller than that of the second.
        among: see `best`.
        by: points.
        every_column: whether `above` is about every column.
    """

    name: str
    says: str
    lines: Mapping[str, int]
    column: str = ""
    best: str = ""
    above: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()
    smaller_gap: tuple[tuple[str, str], ...] = ()
    among: tuple[str, ...] = ()
    by: float = Field(0.0, ge=0)
    every_column: bool = False

    @property
    def relation(self) -> str:
        """The relation: the first of `RELATIONS` that is given."""
        return next(name for name in RELATIONS if getattr(self, name))

    @property
    def rows(self) -> tuple[str, ...]:
        """The rows that it names."""
        pairs = [row for pair in self.smaller_gap for row in pair]
        named = (self.best, *self.above, *self.alike, *self.among, *pairs)
        return tuple(dict.fromkeys(filter(None, named)))


@dataclass(frozen=True)
class Names:
    """The labels of rows and columns, by their names."""

    rows: Mapping[str, str]
    columns: Mapping[str, str]

    def called(self, name: str) -> str:
        """Returns the label of a row, or of a cell `row, column`."""
        row, comma, column = name.partition(", ")
        return f"{self.rows.get(row, row)}{comma}{self.columns.get(column, column)}"


class PlannedRow(PlanPart):
    """How a row is reproduced.

    Attributes:
        checkpoint: the published system whose public checkpoint is measured at the scale paper.
        recipe: the recipe to train; other scales replace it (`Scale.stands_in`).
        set: changes to the recipe.
        set_at: changes at one scale.
        postprocessing: of a checkpoint's vectors, as in an experiment.
        cannot: why it cannot be reproduced.
        cannot_at: why it cannot at a scale.
        label: its label, if not the printed one.
        at: its value on the axis.
        of: the row whose trainings it shares, with another measure.
        where: the rows of the analysis' frame with its numbers.
        cells: further changes by column, if each column is a training.
    """

    checkpoint: str = ""
    recipe: str = ""
    set: Mapping[str, Any] = {}
    set_at: Mapping[ScaleName, Mapping[str, Any]] = {}
    postprocessing: Any = None
    cannot: str = ""
    cannot_at: Mapping[ScaleName, str] = {}
    label: str = ""
    at: float | None = None
    of: str = ""
    where: Mapping[str, str] = {}
    cells: Mapping[str, Mapping[str, Any]] = {}


class PlannedColumn(PlanPart):
    """The numbers of a column.

    Attributes:
        label: its label, if not its name.
        measure: a measure of the jobs; for an analysis a column of its frame, by default `value`.
        where: the rows of the analysis' frame with its numbers.
    """

    label: str = ""
    measure: str = ""
    where: Mapping[str, str] = {}


class TablePlan(PlanPart):
    """How a table or figure is reproduced.

    Attributes:
        name: of its file.
        makes: the tables and figures that it reproduces, each with some of the rows.
        about: the choice that varies, in a sentence.
        reading: how we read a text that leaves something open.
        axis: the name of the axis of `at`.
        recipe: of rows that name none.
        recipe_at: the recipe at one scale, instead of the replacement.
        rows: by name.
        columns: by name, if they are not the table's tasks.
        headline: the column of claims and figures; empty for the last.
        tasks: the measured tasks, as in `stsbench run --tasks`; empty for those that the columns need.
        labelled: whether its recipes read labelled tables, from `labelled.folder`.
        analysis: the analysis that fills it; empty for scores.
        options: of the analysis.
        made_at: the rows or cells of a scale; by default all that are possible.
        last: whether the last step is measured, too, because the paper prints the split that it selected on.
        cannot: why nothing of it can be reproduced.
        notes: notes for the reader.
        claims: the paper's claims.
    """

    name: str
    makes: tuple[str, ...]
    about: str
    reading: str = ""
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

    def rows_of(self, name: str) -> dict[str, PlannedRow]:
        """Returns the rows of a table, in its order."""
        table = tables().get(name)
        if self.cannot or table is None or not table.rows:
            return dict(self.rows)
        return {row.name: self.rows[row.name] for row in table.rows}

    def names_of(self, name: str) -> Names:
        """Returns the labels of a table: the plan's, or as printed, or the names; equal ones with their names."""
        table = tables().get(name)
        printed = {row.name: without_marks(row.label) for row in table.rows} if table is not None else {}
        rows = {row: planned.label or printed.get(row) or row for row, planned in self.rows_of(name).items()}
        shared = [label for label, count in Counter(rows.values()).items() if count > 1]
        columns = {column: planned.label for column, planned in self.columns.items()}
        return Names(
            {row: f"{label} ({row})" if label in shared else label for row, label in rows.items()},
            {column: columns.get(column) or column for column in self.columns_of(name)},
        )

    def columns_of(self, name: str) -> dict[str, str]:
        """Returns the measure of each column; empty for a column that is not filled."""
        table = tables().get(name)
        if self.columns:
            return {column: planned.measure for column, planned in self.columns.items()}
        return _measures(table) if table is not None else {}

    def headline_of(self, name: str) -> str:
        """Returns the column of claims and figures: by default the last that is filled."""
        return self.headline or [column for column, measure in self.columns_of(name).items() if measure][-1]

    def claims_of(self, name: str) -> tuple[TableClaim, ...]:
        """Returns the claims that a table's paper makes with it."""
        return tuple(claim for claim in self.claims if name in claim.lines)


@cache
def plans() -> Mapping[str, TablePlan]:
    """Returns all plans by name.

    >>> plans()["esimcse-repetition-rate"].makes
    ('esimcse-coling2022-9', 'esimcse-arxiv-v1-9')
    """
    paths = sorted(path for path in PLANS.glob("*.yaml") if path != SCALES_FILE)
    return MappingProxyType(
        {path.stem: TablePlan.model_validate({"name": path.stem} | read_plan_file(path)) for path in paths}
    )


@cache
def plans_by_exhibit() -> Mapping[str, TablePlan]:
    """Returns the plan of each table and figure by name."""
    return MappingProxyType({name: plan for plan in plans().values() for name in plan.makes})


def planned_exhibit(name: str) -> PublishedTable:
    """Returns a table or figure with a plan, by name; case and punctuation do not matter.

    Raises:
        UserError: if there is no such table or figure, or no plan for it.
    """
    entry = exhibit(name)
    if entry.name not in plans_by_exhibit():
        raise UserError(f"there is no plan for {entry.name}: `stsbench reproduce --list` lists the plans.")
    return entry


def plan_of(name: str) -> TablePlan:
    """Returns the plan of a table or figure.

    >>> plan_of("ESimCSE COLING2022 9").axis
    'repetition rate'
    """
    return plans_by_exhibit()[planned_exhibit(name).name]


def without_marks(label: str) -> str:
    """Removes LaTeX and footnote marks from a printed label.

    >>> without_marks("unsup-SimCSE-BERT $_{base}$ ♣"), without_marks("BERT _{base} -whitening")
    ('unsup-SimCSE-BERT base', 'BERT base-whitening')
    """
    return re.sub(r"\s+-(?=\w)", "-", _MARKS.sub("", _OF_SIZE.sub(r" \1", label))).strip()


def _measures(table: PublishedTable) -> dict[str, str]:
    """Returns the measure of each column of a published table of scores."""
    measures = {}
    for column in table.columns:
        setting = column.setting.over(table.setting)
        named = f"{setting.task}:dev" if setting.split == "dev" else setting.task
        measures[column.name] = {"delta": "", **_AVERAGES}.get(setting.task, named)
    return measures
