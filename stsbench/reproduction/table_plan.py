"""The plan of a table or figure: how each of its rows is made, at which scales, and what the paper claims with it.

Plans are YAML files in `plans/`, one for each table, or for tables of several papers that show the same.
`plans/scales.yaml` says what each scale changes.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.published.catalogue import exhibit, tables
from stsbench.published.schema import PublishedTable

ScaleName = Literal["demo", "laptop", "paper"]
SCALES: tuple[ScaleName, ...] = get_args(ScaleName)

PLANS = Path(str(files("stsbench.reproduction") / "plans"))
"""The folder of the plans."""

SCALES_FILE = PLANS / "scales.yaml"


class PlanPart(BaseModel):
    """A part of a plan: it cannot be changed, and takes no key that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Scale(PlanPart):
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
    last: bool = True
    options: Mapping[str, Mapping[str, Any]] = {}
    sample_options: Mapping[str, Mapping[str, Any]] = {}
    silent: str = ""


@cache
def scales() -> Mapping[ScaleName, Scale]:
    """Return what each scale changes."""
    written = read_plan_file(SCALES_FILE)
    return MappingProxyType({name: Scale.model_validate(written[name]) for name in SCALES})


def demand_scale(name: str) -> ScaleName:
    """Return a scale's name."""
    for scale in SCALES:
        if scale == name:
            return scale
    raise UserError(f"there is no scale {name!r}: {suggestion(name, SCALES)}")


def read_plan_file(path: Path) -> dict[str, Any]:
    """Return what a file in the folder of plans says."""
    written: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return written


RELATIONS = ("best", "above", "order", "alike", "collapses", "smaller_gap")


class TableClaim(PlanPart):
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
        refusals = {
            f"give one of {', '.join(RELATIONS)}, not {given or 'none'}": len(given) != 1,
            "say by how many points (`by`)": bool(self.collapses or self.alike) and not self.by,
            "`collapses` and `than` go together": bool(self.collapses) != bool(self.than),
            "`above` names two rows": len(self.above) not in {0, 2},
            "`smaller_gap` names two pairs of rows": len(self.smaller_gap) not in {0, 2},
        }
        for refusal, is_so in refusals.items():
            if is_so:
                raise ValueError(f"claim {self.name}: {refusal}")
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
        named = [(f"claim {claim.name}", claim.rows) for claim in self.claims]
        named += [(f"made_at {scale}", rows) for scale, rows in self.made_at.items()]
        for place, rows in named:
            if unknown := [row for row in rows if row.partition(", ")[0] not in self.rows]:
                raise ValueError(f"{place} names {unknown[0]!r}, which is no row")
        for claim in self.claims:
            if wrong := [name for name in claim.lines if name not in self.makes]:
                raise ValueError(f"claim {claim.name} is of {wrong[0]!r}, which this plan does not make")
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


def planned_exhibit(name: str) -> PublishedTable:
    """Return a table or figure that has a plan, by name; case and punctuation do not matter.

    Raises:
        UserError: if there is no such table or figure, or no plan for it.
    """
    entry = exhibit(name)
    if entry.name not in plans_by_exhibit():
        raise UserError(f"there is no plan for {entry.name}: `stsbench reproduce --list` lists the plans.")
    return entry


def plan_of(name: str) -> TablePlan:
    """Return the plan that makes a table or figure.

    >>> plan_of("ESimCSE COLING2022 9").axis
    'repetition rate'
    """
    return plans_by_exhibit()[planned_exhibit(name).name]


_OF_SIZE = re.compile(r"\s*\$?_\{(\w+)\}\$?")
_MARKS = re.compile(r"\$\^\{[^}]*\}\$|[△♡♢♠♣♯*]| \.$")


def without_marks(label: str) -> str:
    """Return a printed label without the print's LaTeX and the marks of its footnotes.

    >>> without_marks("unsup-SimCSE-BERT $_{base}$ ♣"), without_marks("BERT _{base} -whitening")
    ('unsup-SimCSE-BERT base', 'BERT base-whitening')
    """
    return re.sub(r"\s+-(?=\w)", "-", _MARKS.sub("", _OF_SIZE.sub(r" \1", label))).strip()


def _measures(table: PublishedTable) -> dict[str, str]:
    """Return the name that each column of a published table of scores has among the measures of a job."""
    measures = {}
    for column in table.columns:
        setting = column.setting.over(table.setting)
        named = f"{setting.task}:dev" if setting.split == "dev" else setting.task
        measures[column.name] = {"delta": "", **_AVERAGES}.get(setting.task, named)
    return measures
