"""The result of a reproduction: the paper's table beside ours, the answers to its claims, and the cost."""

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
from stsbench.render.page import Pointer, ReportFigure, Section
from stsbench.render.table import Result, Table, Tables
from stsbench.reproduction.answers import NOT_ANSWERED, Answer
from stsbench.reproduction.table_plan import ScaleName, TablePlan, scales
from stsbench.reproduction.tables import (
    ReproducedCell,
    claims_table,
    column_table,
    figure_points,
    missing_table,
    whole_table,
)
from stsbench.sweeps.result import axis_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_NAMED = 6
"""Missing rows that a sentence names."""


@dataclass(frozen=True)
class Cost:
    """What the jobs took: `threads` is per job, `steps` and `hours` are totals."""

    jobs: int
    planned: int
    failed: int
    steps: int
    hours: float
    threads: int

    @property
    def sentence(self) -> str:
        """The cost in a sentence."""
        hours = f"{60 * self.hours:.1f} minutes" if self.hours < 1 else f"{self.hours:.1f} hours"
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        failed = f", {self.failed} failed" if self.failed else ""
        done = f"{self.jobs} of {self.planned} jobs are done{failed}"
        return f"{done}: {self.steps:,} steps, {hours} of computing with {threads} a job."


@dataclass(frozen=True)
class Reproduction(Result):
    """A reproduced table or figure.

    Attributes:
        exhibit: the published table or figure.
        plan: how it is reproduced.
        scale: the scale.
        cells: of all rows and columns, in the table's order.
        answers: to the paper's claims.
        cost: what the jobs took.
        folder: the experiment's folder.
        stand_ins: the recipes that were trained in place of the paper's, by the paper's.
        measured_on: the tasks that are measured in place of the paper's; empty for the paper's.
        notes: what the reader should know.
        odd: warnings, such as rows with equal weights.
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
    def headline(self) -> str:
        """The column of the claims and the figure."""
        return self.plan.headline_of(self.exhibit.name)

    @property
    def is_partial(self) -> bool:
        """Whether jobs are left."""
        return self.cost.jobs < self.cost.planned

    @property
    def sentence(self) -> str:
        """How many rows were reproduced, and how many claims have which answer."""
        made, rows = {cell.row for cell in self.cells if cell.runs}, {cell.row for cell in self.cells}
        verdicts = [answer.verdict for answer in self.answers]
        counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts)]
        number = f"{len(verdicts)} claim{'s' if len(verdicts) != 1 else ''}"
        claims = f"; of {number} {listed(counts)}" if counts else ""
        of_rows = f"{len(made)} of the {len(rows)} rows of {self.exhibit.name}"
        return f"{of_rows} were made at the scale {self.scale}{claims}."

    @property
    def frame(self) -> pd.DataFrame:
        """A row per cell, with the fields of `ReproducedCell` and the `difference`."""
        rows = [
            {"table": self.exhibit.name, "scale": self.scale, **asdict(cell), "difference": cell.difference}
            for cell in self.cells
        ]
        return pd.DataFrame(rows)

    def table(self) -> Tables:
        """Returns the table in the paper's layout, the claims with their answers, and what is missing."""
        return Tables(self._tables.values())

    @cached_property
    def _tables(self) -> dict[str, Table]:
        names = self.plan.names_of(self.exhibit.name)
        caption = f"{self.exhibit.heading}: {self.exhibit.title} (scale {self.scale})"
        cells = [cell for cell in self.cells if cell.column == self.headline]
        tables: dict[str, Table] = {}
        if len({cell.column for cell in self.cells if cell.runs}) > 1:
            tables["table"] = whole_table(self.cells, names, caption)
            caption = f"{caption}: {names.columns[self.headline]}"
        tables["each" if tables else "table"] = column_table(cells, names, caption, self.measured_on)
        if self.answers:
            plain = (
                "" if self.scale == "paper" else f"The answers are for the scale {self.scale}, not the paper's."
            )
            tables["claims"] = claims_table(self.answers, self._unanswered or plain)
        if (missing := missing_table(self.cells, names)) is not None:
            tables["missing"] = missing
        return tables

    @property
    def _unanswered(self) -> str:
        """Why no claim is answered at this scale; empty if claims are answered."""
        why = scales()[self.scale].silent
        return (
            f"No claim is answered at the scale {self.scale}: {why}. Use the scale laptop or paper, with at least "
            "two seeds of each row."
            if why and self.answers
            else ""
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as plain data; None for unknown."""
        return {
            "table": self.exhibit.name,
            "shows": self.exhibit.title,
            "scale": self.scale,
            "about": scales()[self.scale].about,
            "sentence": self.sentence,
            "cells": super().to_dict(),
            "claims": [answer.to_dict() for answer in self.answers],
            "cost": asdict(self.cost),
            "stand_ins": dict(self.stand_ins),
            "notes": [*self.odd, *self.notes],
            "folder": str(self.folder),
        }

    @property
    def _of_headline(self) -> list[ReproducedCell]:
        return [cell for cell in self.cells if cell.column == self.headline and cell.runs]

    @property
    def _is_shifted(self) -> bool:
        """Whether the figure subtracts the rows' mean."""
        return self.scale != "paper" and sum(not math.isnan(cell.printed) for cell in self._of_headline) > 1

    def plot(self) -> "Figure":
        """Draws the headline column, over the plan's axis if all rows have a value on it, else row by row.

        At other scales than the paper's both series are shown minus their mean over the rows that both have,
        because the levels of another base do not compare; the intervals are over other seeds alone.

        Raises:
            UserError: if nothing was reproduced.
        """
        cells, names = self._of_headline, self.plan.names_of(self.exhibit.name)
        if not cells:
            raise UserError(
                f"no row of {self.exhibit.name} was made on {self.headline}: there is nothing to draw."
            )
        places: Mapping[str, Any] = {row: planned.at for row, planned in self.plan.rows.items()}
        if len(cells) <= 2 or any(places[cell.row] is None for cell in cells):
            places = names.rows
        label = names.columns[self.headline] + (", less the rows' mean" if self._is_shifted else "")
        points = figure_points(cells, places, is_shifted=self._is_shifted)
        return axis_figure(points, self.plan.axis, label)

    @property
    def pointers(self) -> tuple[Pointer, ...]:
        """The most important sentences with links to their tables."""
        name = self.exhibit.name
        pointers = [Pointer(self.sentence, f"{name}-table")]
        if self.is_partial:
            pointers.append(Pointer(f"Unfinished: {self.cost.sentence}", f"{name}-table"))
        pointers += [Pointer(sentence, f"{name}-table") for sentence in self.odd]
        answered = [
            self._unanswered,
            *(answer.sentence for answer in self.answers if answer.verdict != NOT_ANSWERED),
        ]
        pointers += [Pointer(sentence, f"{name}-claims") for sentence in answered if sentence]
        made, labels = {cell.row for cell in self.cells if cell.runs}, self.plan.names_of(name).rows
        missing = [labels[row] for row in dict.fromkeys(cell.row for cell in self.cells) if row not in made]
        if missing and made:
            named = [*missing[:_MOST_NAMED], *(["others"] if len(missing) > _MOST_NAMED else [])]
            pointers.append(Pointer(f"Not made: {listed(named)}.", f"{name}-missing"))
        return tuple(pointers)

    def section(self) -> Section:
        """Returns a section for a report."""
        exhibit, paper = self.exhibit, papers()[self.exhibit.paper]
        title = f"{exhibit.heading} of {paper.venue}, made at the scale {self.scale}"
        where = f", line {exhibit.caption_line}" if exhibit.caption_line else ""
        source = f"{exhibit.heading} of {paper.title} ({paper.venue}), {paper.file}{where}: {exhibit.title}."
        text = tuple(filter(None, (source, self._stand_ins(), self.cost.sentence)))
        tables = {of: replace(table, name=f"{exhibit.name}-{of}") for of, table in self._tables.items()}
        parts = tuple(
            Section(f"{exhibit.name}-about-{of}", heading, tables=(tables.pop(of),))
            for of, heading in (("claims", "Claims"), ("missing", "Missing"))
            if of in tables
        )
        notes = (*self.odd, *self.notes)
        return Section(exhibit.name, title, text, tuple(tables.values()), self._figures(), notes, parts=parts)

    def _stand_ins(self) -> str:
        """The scale, and what was trained in place of the paper's recipes."""
        about = f"Made at the scale {self.scale}: {scales()[self.scale].about}."
        if not self.stand_ins:
            return about
        swaps = listed([f"{trained} for {recipe}" for recipe, trained in self.stand_ins.items()])
        order = "" if scales()[self.scale].silent else "; the order of the rows may"
        return f"{about} Trained instead: {swaps}. Levels and differences do not compare with the print{order}."

    def _figures(self) -> tuple[ReportFigure, ...]:
        cells, names = self._of_headline, self.plan.names_of(self.exhibit.name)
        if len(cells) < 2:
            return ()
        column = names.columns[self.headline]
        values = "; ".join(f"{names.rows[cell.row]} {cell.here:.2f}" for cell in cells)
        caption = f"{column}, printed and here"
        if self._is_shifted and any(cell.runs > 1 for cell in cells):
            caption += ", with 95 % over other seeds"
        figure = svg_of(self.plot())
        return (ReportFigure(f"{self.exhibit.name}-figure", caption, f"{column} here: {values}", figure),)

    def __str__(self) -> str:
        """Returns the tables, answers and notes for a terminal."""
        answered = [answer.sentence for answer in self.answers if answer.verdict != NOT_ANSWERED]
        notes = [f"note: {note}" for note in (*self.odd, *self.notes)]
        lines = [
            self.sentence,
            *([self._unanswered] if self._unanswered else answered),
            self.cost.sentence,
            *notes,
        ]
        return "\n\n".join([str(self.table()), "\n".join(lines)])
