"""What a reproduction comes to: the paper's table with ours beside it, the answers to its claims, what it cost."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.words import listed
from stsbench.published.catalogue import papers
from stsbench.published.schema import PublishedTable
from stsbench.render.figures import svg_of
from stsbench.render.result import Result
from stsbench.render.section import Pointer, ReportFigure, Section
from stsbench.render.table import Table, Tables, interval
from stsbench.reproduction.answers import Answer
from stsbench.reproduction.table_plan import Names, ScaleName, TablePlan, scales
from stsbench.reproduction.tables import (
    HERE,
    ReproducedCell,
    claims_table,
    column_table,
    curve,
    missing_table,
    row_by_row,
    whole_table,
    without_levels,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_NAMED = 6
"""Rows that were not made and are named in a sentence."""

_OF_NUMBERS = ("table", "each")
"""What the tables of numbers are called."""


@dataclass(frozen=True)
class Cost:
    """What it took, as it was measured: the threads are of each job, steps and hours of all jobs together."""

    jobs: int
    planned: int
    failed: int
    steps: int
    hours: float
    threads: int

    @property
    def sentence(self) -> str:
        """What it took, in a sentence."""
        if not self.planned:
            return "Nothing was trained or measured: it is counted in the files that are here."
        hours = f"{60 * self.hours:.1f} minutes" if self.hours < 1 else f"{self.hours:.1f} hours"
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        failed = f", {self.failed} failed" if self.failed else ""
        done = f"{self.jobs} of {self.planned} jobs are done{failed}"
        return f"{done}: {self.steps:,} steps, {hours} of computing with {threads} a job."

    def table(self) -> Table:
        """Return it as a table of one row."""
        names = {"jobs": "jobs done", "threads": "threads a job"}
        row = {names.get(name, name): number for name, number in asdict(self).items()}
        return Table(pd.DataFrame([row]), "What it took, as measured", decimals=3)


@dataclass(frozen=True)
class Reproduction(Result):
    """A published table or figure, made again.

    Attributes:
        exhibit: which.
        plan: how it was made.
        scale: at which scale.
        cells: of all rows and columns, in the table's order.
        answers: to the claims of the paper.
        cost: what it took.
        folder: the experiment's.
        stand_ins: by the paper's recipe, what was trained instead.
        measured_on: the tasks that a scale measures in place of the paper's; empty for the paper's.
        notes: what a reader should know.
        odd: what a reader should not overlook, in a sentence each.
    """

    exhibit: PublishedTable
    plan: TablePlan
    scale: ScaleName
    cells: tuple[ReproducedCell, ...]
    answers: tuple[Answer, ...]
    cost: Cost
    folder: Path
    stand_ins: Mapping[str, str]
    measured_on: str = ""
    notes: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Which table of which paper, made at which scale."""
        return f"{self.exhibit.heading} of {papers()[self.exhibit.paper].venue}, made at the scale {self.scale}"

    @property
    def headline(self) -> str:
        """The column that claims and figure are about."""
        return self.plan.headline_of(self.exhibit.name)

    @property
    def is_partial(self) -> bool:
        """Whether jobs are left."""
        return self.cost.jobs < self.cost.planned

    @property
    def sentence(self) -> str:
        """How many rows there are, and what was found about the claims."""
        made = {cell.row for cell in self.cells if cell.runs}
        rows = {cell.row for cell in self.cells}
        verdicts = [answer.verdict for answer in self.answers]
        counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts)]
        number = f"{len(verdicts)} claim{'s' if len(verdicts) != 1 else ''}"
        claims = f"; of {number} {listed(counts)}" if counts else ""
        of_rows = f"{len(made)} of the {len(rows)} rows of {self.exhibit.name}"
        return f"{of_rows} were made at the scale {self.scale}{claims}."

    @property
    def spread(self) -> str:
        """Which row is the highest in the headline column, here and in print, and how far the rows lie apart."""
        made = sorted(self._of_headline, key=lambda cell: -cell.here)
        # One run ranks no row, and at some scales nothing does.
        known = all(cell.runs > 1 and not math.isnan(cell.low) for cell in made)
        if len(made) < 2 or scales()[self.scale].silent or not known:
            return ""
        top, second, bottom = made[0], made[1], made[-1]
        best, worst = f"{self._row(top)}, {top.here:.2f} {interval(top.low, top.high)},", self._row(bottom)
        apart, column = f"{top.here - bottom.here:.2f}", self._names.columns[self.headline]
        if _are_apart(top, second):
            return f"{column} here is highest for {best} and {apart} lower for {worst}{self._highest_in_print}."
        if _are_apart(top, bottom):
            return (
                f"{column} here is {apart} higher for {best} than for {worst}; other rows lie too near "
                f"{self._row(top)} for any to be called the highest{self._highest_in_print}."
            )
        return f"No row is called the highest on {column} here: their means lie in each other's intervals."

    @property
    def _highest_in_print(self) -> str:
        """Which of the rows that were made is the highest and the lowest in print; empty where several are."""
        printed = sorted((cell.printed, cell.row) for cell in self._of_headline if cell.is_printed)
        numbers = [number for number, _ in printed]
        if len(printed) < len(self._of_headline) or numbers[0] == numbers[1] or numbers[-1] == numbers[-2]:
            return ""
        (least, last), (most, first) = printed[0], printed[-1]
        return (
            f"; the print has its highest value of these rows, {most:.2f}, for {self._names.rows[first]}, and its "
            f"lowest, {least:.2f}, for {self._names.rows[last]}"
        )

    @property
    def unanswered(self) -> str:
        """Why no claim is answered at a scale, and what an answer takes; empty where claims are."""
        why = scales()[self.scale].silent
        if not why or not self.answers:
            return ""
        return (
            f"At the scale {self.scale} numbers are shown and no claim is answered: {why}. An answer takes the "
            "scale laptop or paper, and at least two seeds of each row."
        )

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each cell, with the fields of `ReproducedCell` and the `difference`."""
        rows = [{"table": self.exhibit.name, "scale": self.scale, **cell.as_row()} for cell in self.cells]
        return pd.DataFrame(rows)

    def table(self) -> Tables:
        """Return the table in the paper's layout, the claims with their answers, and what was not made."""
        return Tables([*self._numbers(), *self._claims(), *self._missing()])

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data; what is not known is None."""
        return {
            "table": self.exhibit.name,
            "shows": self.exhibit.title,
            "scale": self.scale,
            "about": scales()[self.scale].about,
            "sentence": self.sentence,
            "cells": super().to_dict(),
            "claims": [_plain_answer(answer) for answer in self.answers],
            "cost": asdict(self.cost),
            "stand_ins": dict(self.stand_ins),
            "notes": [*self.odd, *self.notes],
            "folder": str(self.folder),
        }

    def plot(self) -> "Figure":
        """Draw the headline column: over the axis where all rows stand on one, else row by row.

        Levels of another base or corpus do not compare, so at another scale than the paper's both are drawn as
        points above their own mean over the rows that both have. What is left is the order of the rows, and the
        intervals are over other seeds: other pairs would be the same for all rows.

        Raises:
            UserError: if nothing of it was made.
        """
        made, label = self._of_headline, self._names.columns[self.headline]
        if not made:
            raise UserError(
                f"no row of {self.exhibit.name} was made on {self.headline}: there is nothing to draw."
            )
        if self._is_shifted:
            made, label = without_levels(made), f"{label}, less the rows' mean"
        places = {row: planned.at for row, planned in self.plan.rows.items() if planned.at is not None}
        if len(made) > 2 and all(cell.row in places for cell in made):
            return curve(made, places, self.plan.axis, label, f"{HERE} ({self.scale})")
        return row_by_row(made, self._names.rows, label)

    @property
    def pointers(self) -> tuple[Pointer, ...]:
        """The sentences that a reader needs first, each with where to read on."""
        name = self.exhibit.name
        of_rows = f"{name}-{'each' if len(self._columns) > 1 else 'table'}"
        pointers = [Pointer(self.sentence, f"{name}-table")]
        if self.is_partial:
            pointers.append(Pointer(f"Unfinished: {self.cost.sentence}", f"{name}-cost"))
        pointers += [Pointer(sentence, of_rows) for sentence in (self.spread, *self.odd) if sentence]
        said = [self.unanswered, *(answer.sentence for answer in self._answered)]
        pointers += [Pointer(sentence, f"{name}-claims") for sentence in said if sentence]
        made = {cell.row for cell in self.cells if cell.runs}
        rows = [self._names.rows[row] for row in dict.fromkeys(cell.row for cell in self.cells) if row not in made]
        if rows and made:
            named = [*rows[:_MOST_NAMED], *(["others"] if len(rows) > _MOST_NAMED else [])]
            pointers.append(Pointer(f"Not made: {listed(named)}.", f"{name}-missing"))
        return tuple(pointers)

    def section(self) -> Section:
        """Return it as a part of a report."""
        name, paper = self.exhibit.name, papers()[self.exhibit.paper]
        numbers = [_named(table, f"{name}-{of}") for table, of in zip(self._numbers(), _OF_NUMBERS, strict=False)]
        parts = {
            "claims": ("Claims", self._claims()),
            "missing": ("What was not made", self._missing()),
            "cost": ("Cost", [self.cost.table()]),
        }
        inside = tuple(
            Section(f"{name}-about-{of}", title, tables=tuple(_named(table, f"{name}-{of}") for table in tables))
            for of, (title, tables) in parts.items()
            if tables
        )
        where = f", line {self.exhibit.caption_line}" if self.exhibit.caption_line else ""
        source = (
            f"{self.exhibit.heading} of {paper.title} ({paper.venue}), {paper.file}{where}: {self.exhibit.title}."
        )
        text = tuple(filter(None, (source, self._made_at, self.cost.sentence)))
        notes = (*self.odd, *self.notes)
        return Section(name, self.title, text, tuple(numbers), self._figures(), notes, parts=inside)

    def __str__(self) -> str:
        """Return what a terminal shows: the tables, the answers in sentences, and what to know."""
        answered = [self.unanswered] if self.unanswered else [answer.sentence for answer in self._answered]
        notes = [f"note: {note}" for note in (*self.odd, *self.notes)]
        lines = [self.sentence, *answered, self.cost.sentence, *notes]
        return "\n\n".join([str(self.table()), "\n".join(lines)])

    @property
    def _made_at(self) -> str:
        """At which scale it was made, and what was trained instead of the paper's recipes."""
        if self.plan.counts:
            return ""
        scale = scales()[self.scale]
        made_at = f"Made at the scale {self.scale}: {scale.about}."
        if not self.stand_ins:
            return made_at
        swaps = [f"{trained} for {recipe}" for recipe, trained in self.stand_ins.items()]
        return (
            f"{made_at} Trained instead: {listed(swaps)}. Levels do not compare with the print, and differences "
            f"to it say nothing{'.' if scale.silent else '; the order of the rows may.'}"
        )

    def _figures(self) -> tuple[ReportFigure, ...]:
        """Return the figure of the headline column, where several of its rows were made."""
        made, column = self._of_headline, self._names.columns[self.headline]
        if len(made) < 2 or self.plan.counts:
            return ()
        values = "; ".join(f"{self._row(cell)} {cell.here:.2f}" for cell in made)
        caption = f"{column}, printed and here"
        if self._is_shifted and any(cell.runs > 1 for cell in made):
            caption += ", with 95 % over other seeds"
        return (
            ReportFigure(f"{self.exhibit.name}-figure", caption, f"{column} here: {values}", svg_of(self.plot())),
        )

    @property
    def _answered(self) -> list[Answer]:
        """The claims that were answered."""
        return [answer for answer in self.answers if answer.verdict != "not answered"]

    @cached_property
    def _names(self) -> Names:
        return self.plan.names_of(self.exhibit.name)

    def _row(self, cell: ReproducedCell) -> str:
        return self._names.rows[cell.row]

    @property
    def _of_headline(self) -> list[ReproducedCell]:
        """The cells of the headline column that were made."""
        return [cell for cell in self.cells if cell.column == self.headline and cell.runs]

    @property
    def _is_shifted(self) -> bool:
        """Whether the figure leaves out the levels of print and ours."""
        return self.scale != "paper" and sum(cell.is_printed for cell in self._of_headline) > 1

    @property
    def _columns(self) -> list[str]:
        """The columns that hold anything that was made."""
        made = dict.fromkeys(cell.column for cell in self.cells if cell.runs)
        return list(made) or [self.headline]

    def _numbers(self) -> list[Table]:
        """Return the headline column with intervals, and of several columns all of them, in the paper's layout."""
        caption = f"{self.exhibit.heading}: {self.exhibit.title} (scale {self.scale})"
        cells = [cell for cell in self.cells if cell.column == self.headline]
        if len(self._columns) == 1 and not self.plan.counts:
            return [column_table(cells, self._names, caption, self.measured_on)]
        whole = whole_table(self.cells, self._names, caption, counts=self.plan.counts)
        if self.plan.counts:
            return [whole]
        of_column = f"{caption}: {self._names.columns[self.headline]}"
        return [whole, column_table(cells, self._names, of_column, self.measured_on)]

    def _claims(self) -> list[Table]:
        scale = (
            "" if self.scale == "paper" else f"The answers are for the scale {self.scale}, not for the paper's."
        )
        return [claims_table(self.answers, self.unanswered or scale)] if self.answers else []

    def _missing(self) -> list[Table]:
        missing = missing_table(self.cells, self._names)
        return [] if missing is None else [missing]


def _are_apart(above: ReproducedCell, below: ReproducedCell) -> bool:
    """Return whether neither of two means lies in the other's interval; one that is not known holds everything."""
    return below.here < above.low and above.here > below.high


def _named(table: Table, name: str) -> Table:
    return replace(table, name=name)


def _plain_answer(answer: Answer) -> dict[str, Any]:
    differences = [
        {key: None if value != value else value for key, value in asdict(difference).items()}  # noqa: PLR0124
        for difference in answer.differences
    ]
    return {
        "name": answer.claim.name,
        "says": answer.claim.says,
        "relation": answer.claim.relation,
        "line": answer.line,
        "in_print": answer.in_print,
        "verdict": answer.verdict,
        "scale": answer.scale,
        "evidence": answer.evidence,
        "seeds_needed": answer.needed,
        "differences": differences,
    }
