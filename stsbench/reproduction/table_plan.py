"""The plan of a table or figure: how each of its rows is made, and what the paper claims with it.

Plans are YAML files in `plans/`, one for each table, or for tables of several papers that show the same.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Self

from pydantic import model_validator

from stsbench.published.catalogue import exhibit, tables
from stsbench.published.schema import PublishedTable
from stsbench.reproduction.claim import TableClaim
from stsbench.reproduction.scales import PLANS, SCALES_FILE, PlanPart, ScaleName, read_plan_file

_AVERAGES = {"Avg. STS": "Avg.", "Avg. transfer": "Avg. transfer"}
"""What the averages of a published table are called among the measures of a job."""


@dataclass(frozen=True)
class Names:
    """What the rows and columns of a table are called, by their names."""

    rows: Mapping[str, str]
    columns: Mapping[str, str]

    def called(self, name: str) -> str:
        """Return what a row, or a cell that is named `row, column`, is called."""
        row, comma, column = name.partition(", ")
        return f"{self.rows.get(row, row)}{comma}{self.columns.get(column, column)}"


class RowPlan(PlanPart):
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


class PlannedColumn(PlanPart):
    """What fills a column.

    Attributes:
        label: what it is called, where its name is short for it.
        measure: its name among the measures of a job; of an analysis, the column of its frame, `value` by default.
        where: which rows of the analysis' frame are its numbers.
    """

    label: str = ""
    measure: str = ""
    where: Mapping[str, str] = {}


class TablePlan(PlanPart):
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

    def names_of(self, name: str) -> Names:
        """Return what rows and columns of an exhibit are called: as the plan says, or as printed, or by name.

        Rows that share a label have their names behind it.
        """
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


@cache
def plans() -> Mapping[str, TablePlan]:
    """Return every plan by its name.

    >>> plans()["esimcse-repetition-rate"].makes
    ('esimcse-coling2022-9', 'esimcse-arxiv-v1-9')
    """
    paths = sorted(path for path in PLANS.glob("*.yaml") if path != SCALES_FILE)
    return MappingProxyType(
        {path.stem: TablePlan.model_validate({"name": path.stem} | read_plan_file(path)) for path in paths}
    )


@cache
def plans_by_exhibit() -> Mapping[str, TablePlan]:
    """Return the plan of every table and figure, by its name; each has one."""
    return MappingProxyType({name: plan for plan in plans().values() for name in plan.makes})


def plan_of(name: str) -> TablePlan:
    """Return the plan that makes a table or figure.

    Raises:
        UserError: if there is no such exhibit.

    >>> plan_of("ESimCSE COLING2022 9").axis
    'repetition rate'
    """
    return plans_by_exhibit()[exhibit(name).name]


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
    measures = {}
    for column in table.columns:
        setting = column.setting.over(table.setting)
        named = f"{setting.task}:dev" if setting.split == "dev" else setting.task
        measures[column.name] = {"delta": "", **_AVERAGES}.get(setting.task, named)
    return measures
