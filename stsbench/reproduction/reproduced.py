"""The result of a reproduction: the paper's table next to ours, the answers to its claims, and the cost."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.words import listed
from stsbench.published.catalogue import papers
from stsbench.published.schema import PublishedTable
from stsbench.render.figures import svg_of
from stsbench.render.page import Pointer, ReportFigure, Section
from stsbench.render.table import Result, Table, Tables, interval
from stsbench.reproduction.answers import NOT_ANSWERED, Answer
from stsbench.reproduction.table_plan import Names, ScaleName, TablePlan, scales
from stsbench.statistics.intervals import reach_of_mean
from stsbench.sweeps.result import axis_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRINTED, HERE, DIFFERENCE = "printed", "here", "difference"


@dataclass(frozen=True)
class ReproducedCell:
    """A cell of the table, in print and measured here. Scores x 100; NaN for unknown.

    Attributes:
        row: its row.
        column: its column.
        printed: the number in print.
        here: our mean over seeds.
        sd: sample standard deviation over seeds.
        low: lower limit of the interval of the mean, and `high`: the upper.
        over: the source of variation: `seeds and pairs`, `seeds`, `pairs`; empty for none.
        runs: the number of seeds, or 1 for a checkpoint.
        last: the mean of the last steps, if the paper prints the split that checkpoints were selected on.
        why: why it is missing; empty if it is not.
    """

    row: str
    column: str
    printed: float = math.nan
    here: float = math.nan
    sd: float = math.nan
    low: float = math.nan
    high: float = math.nan
    over: str = ""
    runs: int = 0
    last: float = math.nan
    why: str = ""

    @property
    def difference(self) -> float:
        """Our number minus the printed one."""
        return self.here - self.printed


def column_table(cells: Sequence[ReproducedCell], names: Names, caption: str, measured_on: str) -> Table:
    """Returns a column's cells with intervals, and differences if they are on the paper's tasks."""
    limits = [interval(cell.low, cell.high) for cell in cells]
    rows = [
        {
            "row": names.rows[cell.row],
            PRINTED: cell.printed,
            HERE: cell.here,
            "sd": cell.sd,
            "95 %": within if any(limits) else None,
            DIFFERENCE: None if measured_on else cell.difference,
            "last step": cell.last,
            "seeds": cell.runs or None,
        }
        for cell, within in zip(cells, limits, strict=True)
    ]
    frame = pd.DataFrame(rows).dropna(axis="columns", how="all")
    if "seeds" in frame:
        frame["seeds"] = frame["seeds"].astype("Int64")
    over = {cell.over for cell in cells if cell.over}
    notes = [f"95 %: of the mean over other {' or '.join(sorted(over))}"] if over else []
    if measured_on:
        notes.append(f"{HERE}: on {measured_on}, whose scores are not comparable with the printed task's")
    return Table(frame, caption, headline=HERE if HERE in frame else "", notes=tuple(notes))


def whole_table(cells: Sequence[ReproducedCell], names: Names, caption: str) -> Table:
    """Returns the table in the paper's layout, with our row below each printed row."""
    rows: list[dict[str, Any]] = []
    columns = [names.columns[column] for column in dict.fromkeys(cell.column for cell in cells)]
    for row, of_row in groupby(cells, key=lambda cell: cell.row):
        side_by_side = list(of_row)
        for source in (PRINTED, HERE):
            values = [getattr(cell, source) for cell in side_by_side]
            if not all(map(math.isnan, values)):
                rows.append({"row": names.rows[row], "source": source, **dict(zip(columns, values, strict=True))})
    frame = pd.DataFrame(rows, columns=["row", "source", *columns]).dropna(axis="columns", how="all")
    own = frozenset(place for place, row in enumerate(rows) if row["source"] == HERE)
    return Table(frame, caption, own=own)


def claims_table(answers: Sequence[Answer], note: str) -> Table:
    """Returns the claims with their answers."""
    in_print = {True: "yes", False: "no", None: ""}
    rows = [
        {
            "claim": answer.claim.says,
            "line": str(answer.line),
            "in print": in_print[answer.in_print],
            "answer": answer.verdict_at_scale,
            "by": answer.evidence,
            "would decide": answer.decides,
        }
        for answer in answers
    ]
    frame = pd.DataFrame(rows)
    empty = [name for name in ("in print", "would decide") if not frame[name].any()]
    notes = ("line: in the paper's text; in print: whether the printed numbers alone support the claim.", note)
    caption = "The paper's claims with our answers"
    return Table(frame.drop(columns=empty), caption, verdicts="answer", notes=tuple(filter(None, notes)))


def missing_table(cells: Sequence[ReproducedCell], names: Names) -> Table | None:
    """Returns the missing rows, columns and cells by the reason; None if nothing with a reason is missing."""
    rows, made = {cell.row for cell in cells}, {cell.row for cell in cells if cell.runs}
    missing = [cell for cell in cells if not cell.runs and cell.why]
    reasons = []
    for why in dict.fromkeys(cell.why for cell in missing):
        cells_of = [cell for cell in missing if cell.why == why]
        of_column = Counter(cell.column for cell in cells_of)
        whole = [column for column, count in of_column.items() if made and count == len(rows)]
        named = [f"every row on {listed([names.columns[column] for column in whole])}"] if whole else []
        named += [
            f"{names.rows[cell.row]} on {names.columns[cell.column]}" if cell.row in made else names.rows[cell.row]
            for cell in cells_of
            if cell.column not in whole
        ]
        reasons.append({"what": "; ".join(dict.fromkeys(named)), "why": why})
    return Table(pd.DataFrame(reasons), "Missing, and why") if reasons else None


def figure_points(cells: Sequence[ReproducedCell], places: Mapping[str, Any], *, is_shifted: bool) -> pd.DataFrame:
    """Returns the points of a figure of a column, printed and measured, for `axis_figure`.

    Args:
        cells: the cells.
        places: of the rows: numbers on an axis, or labels.
        is_shifted: subtracts the mean of the rows that are printed and measured from each series.
    """
    rows: list[dict[str, Any]] = []
    for cell in _without_levels(cells) if is_shifted else cells:
        here = {"series": HERE, "value": cell.here, "low": cell.low, "high": cell.high, "filled": True}
        rows.append({"place": places[cell.row], **here})
        if not math.isnan(cell.printed):
            none = {"low": math.nan, "high": math.nan, "filled": False}
            rows.append({"place": places[cell.row], "series": PRINTED, "value": cell.printed, **none})
    return pd.DataFrame(rows)


def _without_levels(cells: Sequence[ReproducedCell]) -> list[ReproducedCell]:
    """Subtracts the mean of each series; the intervals are Student's over seeds, as all rows share the pairs."""
    both = [cell for cell in cells if not math.isnan(cell.printed)]
    here, printed = sum(cell.here for cell in both) / len(both), sum(cell.printed for cell in both) / len(both)
    shifted = []
    for cell in cells:
        half = reach_of_mean(cell.sd, cell.runs) if cell.runs > 1 else math.nan
        low, high = cell.here - half - here, cell.here + half - here
        shifted.append(replace(cell, here=cell.here - here, printed=cell.printed - printed, low=low, high=high))
    return shifted


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
        cost: the cost of the jobs.
        folder: the experiment's folder.
        stand_ins: the recipes that were trained instead of the paper's, by the paper's.
        measured_on: the tasks that are measured instead of the paper's; empty for the paper's.
        notes: notes for the reader.
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

    @property
    def _answered(self) -> list[str]:
        answered = [answer.sentence for answer in self.answers if answer.verdict != NOT_ANSWERED]
        return [self._unanswered] if self._unanswered else answered

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
        because the levels of another base are not comparable; the intervals are over other seeds only.

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
        if self.cost.jobs < self.cost.planned:
            pointers.append(Pointer(f"Unfinished: {self.cost.sentence}", f"{name}-table"))
        pointers += [Pointer(sentence, f"{name}-table") for sentence in self.odd]
        pointers += [Pointer(sentence, f"{name}-claims") for sentence in self._answered]
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
        """The scale, and the recipes trained instead of the paper's."""
        about = f"Made at the scale {self.scale}: {scales()[self.scale].about}."
        if not self.stand_ins:
            return about
        swaps = listed([f"{trained} for {recipe}" for recipe, trained in self.stand_ins.items()])
        order = "" if scales()[self.scale].silent else "; the order of rows is comparable"
        return f"{about} Trained instead: {swaps}. Do not compare levels or differences with the paper{order}."

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
        notes = [f"note: {note}" for note in (*self.odd, *self.notes)]
        lines = [self.sentence, *self._answered, self.cost.sentence, *notes]
        return "\n\n".join([str(self.table()), "\n".join(lines)])
