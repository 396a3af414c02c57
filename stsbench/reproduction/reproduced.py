"""What a reproduction comes to: the paper's table with ours beside it, the answers to its claims, what it cost."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench.base.errors import UserError
from stsbench.base.words import listed
from stsbench.published.catalogue import papers
from stsbench.published.schema import Exhibit
from stsbench.render.cells import Key, Named
from stsbench.render.charts import forest
from stsbench.render.figures import colours, legend_above, new_figure, style, svg_of
from stsbench.render.result import Result
from stsbench.render.section import Pointer, ReportFigure, Section
from stsbench.render.table import Table, Tables, interval
from stsbench.reproduction.answers import Answer
from stsbench.reproduction.table_plan import ScaleName, TablePlan, scales
from stsbench.sweeps.cells import reach_over_seeds

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_MOST_NAMED = 6
"""Rows that were not made and are named in a sentence."""

PRINTED, HERE, DIFFERENCE = "printed", "here", "difference"


@dataclass(frozen=True)
class ReproducedCell:
    """One cell of the table: what is printed, and what was measured here. Scores x 100; NaN for unknown.

    Attributes:
        row: its row.
        column: its column.
        printed: the number in print; NaN where there is none.
        here: the mean over seeds.
        sd: sample standard deviation over seeds.
        low: lower limit of the interval of the mean, and `high`: the upper.
        over: what the interval is over: `seeds and pairs`, `seeds`, `pairs`; empty for no interval.
        runs: how many seeds, or 1 checkpoint.
        last: the mean of the trainings' last step, where the split is the one that checkpoints were selected on.
        why: why it was not made; empty where it was.
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
        """What was measured here less what is printed."""
        return self.here - self.printed


@dataclass(frozen=True)
class Cost:
    """What it took, as it was measured.

    Attributes:
        jobs: that are done, of `planned`.
        planned: all of them.
        failed: that failed.
        steps: of all trainings together.
        hours: of training and measuring, summed over jobs.
        threads: of each job.
    """

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
        told = f"{self.jobs} of {self.planned} jobs are done"
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{told}{failed}: {self.steps:,} steps, {hours} of computing with {threads} a job."


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

    exhibit: Exhibit
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
        return f"{self.exhibit.title} of {papers()[self.exhibit.paper].venue}, made at the scale {self.scale}"

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
        told = f"{len(made)} of the {len(rows)} rows of {self.exhibit.name} were made at the scale {self.scale}"
        verdicts = [answer.verdict for answer in self.answers]
        counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts)]
        number = f"{len(verdicts)} claim{'s' if len(verdicts) != 1 else ''}"
        claims = f"; of {number} {listed(counts)}" if counts else ""
        return f"{told}{claims}."

    @property
    def spread(self) -> str:
        """Which row is the highest in the headline column, here and in print, and how far the rows lie apart."""
        made = [cell for cell in self.cells if cell.column == self.headline and cell.runs]
        # One run ranks no row, and at some scales nothing does.
        known = all(cell.runs > 1 and not math.isnan(cell.low) for cell in made)
        if len(made) < 2 or scales()[self.scale].silent or not known:
            return ""
        made.sort(key=lambda cell: -cell.here)
        top, second, bottom = made[0], made[1], made[-1]
        shown, apart = f"{top.here:.2f} {interval(top.low, top.high)}", f"{top.here - bottom.here:.2f}"
        best, worst = self._row(top.row), self._row(bottom.row)
        if _are_apart(top, second):
            told = f"{self._called} here is highest for {best}, {shown}, and {apart} lower for {worst}"
        elif _are_apart(top, bottom):
            told = (
                f"{self._called} here is {apart} higher for {best}, {shown}, than for {worst}; other rows lie too "
            )
            told += f"near {best} for any to be called the highest"
        else:
            return (
                f"No row is called the highest on {self._called} here: their means lie in each other's intervals."
            )
        printed = sorted((cell.printed, cell.row) for cell in made if not math.isnan(cell.printed))
        if len(printed) == len(made) and printed[0][0] < printed[1][0] and printed[-2][0] < printed[-1][0]:
            (least, last), (most, first) = printed[0], printed[-1]
            told += (
                f"; the print has its highest value of these rows, {most:.2f}, for {self._row(first)}, and its "
            )
            told += f"lowest, {least:.2f}, for {self._row(last)}"
        return f"{told}."

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
    def frame(self) -> "pd.DataFrame":
        """A row for each cell, with the fields of `ReproducedCell` and the `difference`."""
        import pandas as pd

        rows = [
            {"table": self.exhibit.name, "scale": self.scale, **asdict(cell), "difference": cell.difference}
            for cell in self.cells
        ]
        return pd.DataFrame(rows)

    def table(self) -> Tables:
        """Return the table in the paper's layout, the claims with their answers, and what was not made."""
        return Tables([*self._numbers(), *self._claims(), *self._missing()])

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data; what is not known is None."""
        return {
            "table": self.exhibit.name,
            "shows": self.exhibit.caption,
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
        made = [cell for cell in self.cells if cell.column == self.headline and cell.runs]
        if not made:
            raise UserError(
                f"no row of {self.exhibit.name} was made on {self.headline}: there is nothing to draw."
            )
        both = [cell for cell in made if not math.isnan(cell.printed)]
        here = printed = 0.0
        if self._is_shifted:
            here = sum(cell.here for cell in both) / len(both)
            printed = sum(cell.printed for cell in both) / len(both)
            made = [_over_seeds(cell) for cell in made]
        label = f"{self._called}, less the rows' mean" if self._is_shifted else self._called
        places = {row: planned.at for row, planned in self.plan.rows.items()}
        if len(made) > 2 and all(places[cell.row] is not None for cell in made):
            return self._curve(made, places, (here, printed), label)
        return self._forest(made, (here, printed), label)

    @property
    def _is_shifted(self) -> bool:
        """Whether the figure leaves out the levels of print and ours."""
        both = [
            cell
            for cell in self.cells
            if cell.column == self.headline and cell.runs and not math.isnan(cell.printed)
        ]
        return self.scale != "paper" and len(both) > 1

    def _curve(
        self,
        cells: "list[ReproducedCell]",
        places: Mapping[str, float | None],
        means: tuple[float, float],
        label: str,
    ) -> "Figure":
        palette = colours([HERE, PRINTED])
        cells = sorted(cells, key=lambda cell: places[cell.row] or 0.0)
        at = [places[cell.row] or 0.0 for cell in cells]
        values = [cell.here - means[0] for cell in cells]
        known = [(x, cell) for x, cell in zip(at, cells, strict=True) if not math.isnan(cell.low)]
        prints = [(x, cell) for x, cell in zip(at, cells, strict=True) if not math.isnan(cell.printed)]
        with style():
            figure = new_figure()
            axes = figure.add_subplot()
            axes.plot(at, values, marker="o", markersize=3, color=palette[HERE], label=f"{HERE} ({self.scale})")
            if known:
                axes.fill_between(
                    [x for x, _ in known],
                    [cell.low - means[0] for _, cell in known],
                    [cell.high - means[0] for _, cell in known],
                    color=palette[HERE],
                    alpha=0.2,
                    linewidth=0,
                )
            if prints:
                axes.plot(
                    [x for x, _ in prints],
                    [cell.printed - means[1] for _, cell in prints],
                    marker="s",
                    markersize=3,
                    linestyle="--",
                    color=palette[PRINTED],
                    label=PRINTED,
                )
            if min(at) > 0 and max(at) / min(at) > 20:
                axes.set_xscale("log")
                axes.xaxis.set_major_formatter("{x:g}")
            axes.set_xlabel(self.plan.axis)
            axes.set_ylabel(label)
            legend_above(figure, axes)
        return figure

    def _forest(self, cells: "list[ReproducedCell]", means: tuple[float, float], label: str) -> "Figure":
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for cell in cells:
            common = {"label": self._row(cell.row), "summary": False}
            limits = {"low": cell.low - means[0], "high": cell.high - means[0]}
            rows.append({**common, "series": HERE, "value": cell.here - means[0], **limits, "filled": True})
            if not math.isnan(cell.printed):
                none = {"low": math.nan, "high": math.nan}
                rows.append(
                    {**common, "series": PRINTED, "value": cell.printed - means[1], **none, "filled": False}
                )
        columns = ["label", "summary", "series", "value", "low", "high", "filled"]
        return forest(pd.DataFrame(rows, columns=columns), label)

    @property
    def pointers(self) -> tuple[Pointer, ...]:
        """The sentences that a reader needs first, each with where to read on."""
        name = self.exhibit.name
        said = [Pointer(answer.sentence, f"{name}-claims") for answer in self._answered]
        of_rows = f"{name}-{'each' if len(self._columns) > 1 else 'table'}"
        said[:0] = [Pointer(self.unanswered, f"{name}-claims")] if self.unanswered else []
        said[:0] = [Pointer(sentence, of_rows) for sentence in (self.spread, *self.odd) if sentence]
        made = {cell.row for cell in self.cells if cell.runs}
        rows = [self._row(row) for row, _ in _by_row(self.cells) if row not in made]
        if self.is_partial:
            said.insert(0, Pointer(f"Unfinished: {self.cost.sentence}", f"{name}-cost"))
        if rows and made:
            named = [*rows[:_MOST_NAMED], *(["others"] if len(rows) > _MOST_NAMED else [])]
            said.append(Pointer(f"Not made: {listed(named)}.", f"{name}-missing"))
        return (Pointer(self.sentence, f"{name}-table"), *said)

    def section(self) -> Section:
        """Return it as a part of a report."""
        name = self.exhibit.name
        names = ["table", *(["each"] if len(self._numbers()) > 1 else [])]
        tables = [_named(table, f"{name}-{of}") for table, of in zip(self._numbers(), names, strict=True)]
        parts = {
            "claims": ("Claims", self._claims()),
            "missing": ("What was not made", self._missing()),
            "cost": ("Cost", [self._costs()]),
        }
        inside = tuple(
            Section(f"{name}-about-{of}", title, tables=tuple(_named(table, f"{name}-{of}") for table in found))
            for of, (title, found) in parts.items()
            if found
        )
        made = [cell for cell in self.cells if cell.column == self.headline and cell.runs]
        figures: tuple[ReportFigure, ...] = ()
        if len(made) > 1 and not self.plan.counts:
            told = "; ".join(f"{self._row(cell.row)} {cell.here:.2f}" for cell in made)
            alt = f"{self._called} here: {told}"
            caption = f"{self._called}, printed and here"
            if self._is_shifted and any(cell.runs > 1 for cell in made):
                caption += ", with 95 % over other seeds"
            figures = (ReportFigure(f"{name}-figure", caption, alt, svg_of(self.plot())),)
        paper = papers()[self.exhibit.paper]
        where = f", line {self.exhibit.line}" if self.exhibit.line else ""
        place = f"{paper.file}{where}"
        source = f"{self.exhibit.title} of {paper.title} ({paper.venue}), {place}: {self.exhibit.caption}."
        made_by = f"Made at the scale {self.scale}: {scales()[self.scale].about}."
        scale = "" if self.plan.counts else made_by
        if self.stand_ins:
            swaps = [f"{other} for {own}" for own, other in self.stand_ins.items()]
            scale += (
                f" Trained instead: {listed(swaps)}. Levels do not compare with the print, and differences to it"
            )
            scale += " say nothing" + ("." if scales()[self.scale].silent else "; the order of the rows may.")
        text = tuple(filter(None, (source, scale, self.cost.sentence)))
        return Section(name, self.title, text, tuple(tables), figures, (*self.odd, *self.notes), parts=inside)

    def __str__(self) -> str:
        """Return what a terminal shows: the tables, the answers in sentences, and what to know."""
        answered = [answer.sentence for answer in self._answered]
        told = [self.sentence, *([self.unanswered] if self.unanswered else answered), self.cost.sentence]
        return "\n\n".join(
            [str(self.table()), "\n".join([*told, *(f"note: {note}" for note in (*self.odd, *self.notes))])]
        )

    @property
    def _answered(self) -> list[Answer]:
        """The answers that say more than that there is none."""
        return [answer for answer in self.answers if answer.verdict != "not answered"]

    def _row(self, row: str) -> str:
        return self._labels[row]

    def _column(self, column: str) -> str:
        return self.plan.column_labels_of(self.exhibit.name)[column]

    @property
    def _called(self) -> str:
        """What the headline column is called."""
        return self._column(self.headline)

    @cached_property
    def _labels(self) -> dict[str, str]:
        return self.plan.labels_of(self.exhibit.name)

    @property
    def _columns(self) -> list[str]:
        """The columns that hold anything that was made."""
        made = dict.fromkeys(cell.column for cell in self.cells if cell.runs)
        return list(made) or [self.headline]

    def _numbers(self) -> list[Table]:
        """Return the headline column with intervals, and of several columns all of them, in the paper's layout."""
        caption = f"{self.exhibit.title}: {self.exhibit.caption} (scale {self.scale})"
        if self.plan.counts:
            return [self._whole(caption)]
        if len(self._columns) == 1:
            return [self._of_column(self.headline, caption)]
        return [self._whole(caption), self._of_column(self.headline, f"{caption}: {self._called}")]

    def _of_column(self, column: str, caption: str) -> Table:
        import pandas as pd

        rows = []
        for cell in self.cells:
            if cell.column != column:
                continue
            rows.append(
                {
                    "row": self._row(cell.row),
                    PRINTED: cell.printed,
                    HERE: cell.here,
                    "sd": cell.sd,
                    "95 %": interval(cell.low, cell.high),
                    DIFFERENCE: cell.difference,
                    "last step": cell.last,
                    "seeds": cell.runs or None,
                }
            )
        frame = pd.DataFrame(rows).dropna(axis="columns", how="all")
        frame = frame.drop(columns=[name for name in ("95 %",) if name in frame and not frame[name].any()])
        if self.measured_on and DIFFERENCE in frame:
            frame = frame.drop(columns=DIFFERENCE)
        if "seeds" in frame:
            frame["seeds"] = frame["seeds"].astype("Int64")
        over = {cell.over for cell in self.cells if cell.over and cell.column == column}
        notes = (f"95 %: of the mean over other {' or '.join(sorted(over))}",) if over else ()
        if self.measured_on:
            notes = (*notes, f"{HERE}: on {self.measured_on}, whose scores do not compare with the printed task's")
        return Table(frame, caption, headline=HERE if HERE in frame else "", notes=notes)

    def _whole(self, caption: str) -> Table:
        import pandas as pd

        rows: list[dict[Key, Any]] = []
        own: set[int] = set()
        hints: dict[tuple[int, Key], str] = {}
        for row, cells in _by_row(self.cells):
            if any(not math.isnan(cell.printed) for cell in cells):
                values = {Named("column", self._column(cell.column)): cell.printed for cell in cells}
                rows.append({"row": self._row(row), "source": PRINTED} | values)
            if any(cell.runs for cell in cells):
                own.add(len(rows))
                for cell in cells:
                    if limits := interval(cell.low, cell.high):
                        hints[len(rows), Named("column", self._column(cell.column))] = (
                            f"95 % {limits} over other {cell.over}"
                        )
                values = {Named("column", self._column(cell.column)): cell.here for cell in cells}
                rows.append({"row": self._row(row), "source": HERE} | values)
        columns = dict.fromkeys(Named("column", self._column(cell.column)) for cell in self.cells)
        frame = pd.DataFrame(rows, columns=["row", "source", *columns]).dropna(axis="columns", how="all")
        if self.plan.counts:
            frame = frame.astype(dict.fromkeys(columns, "Int64"))
        return Table(frame, caption, own=frozenset(own), hints=hints)

    def _claims(self) -> list[Table]:
        import pandas as pd

        if not self.answers:
            return []
        prints = {True: "yes", False: "no", None: ""}
        rows = [
            {
                "claim": answer.claim.says,
                "line": str(answer.line),
                "in print": prints[answer.in_print],
                "answer": answer.told,
                "by": answer.evidence,
                "would decide": answer.decides,
            }
            for answer in self.answers
        ]
        frame = pd.DataFrame(rows)
        empty = [name for name in ("in print", "would decide") if not frame[name].any()]
        notes = ["line: of the paper's text; in print: whether the printed numbers alone say so."]
        if self.unanswered:
            notes.append(self.unanswered)
        elif self.scale != "paper":
            notes.append(f"The answers are for the scale {self.scale}, not for the paper's.")
        caption = "What the paper claims with it, and what was found"
        return [Table(frame.drop(columns=empty), caption, verdicts="answer", notes=tuple(notes))]

    def _missing(self) -> list[Table]:
        import pandas as pd

        rows, made = {cell.row for cell in self.cells}, {cell.row for cell in self.cells if cell.runs}
        # By the reason, what lacks by it: a row, a cell of a row that was made, or a column of every row.
        lacking: dict[str, dict[str, list[str]]] = {}
        for cell in self.cells:
            if not cell.runs and cell.why:
                column = self._column(cell.column) if cell.row in made else ""
                place = (self._row(cell.row), column)
                lacking.setdefault(cell.why, {}).setdefault(place[1], []).append(place[0])
        told: list[dict[str, str]] = []
        for why, columns in lacking.items():
            whole = [column for column, names in columns.items() if column and len(names) == len(rows)]
            named = [f"every row on {listed(whole)}"] if whole else []
            for column, names in columns.items():
                if column not in whole:
                    named += [f"{name} on {column}" if column else name for name in dict.fromkeys(names)]
            told.append({"what": "; ".join(named), "why": why})
        return [Table(pd.DataFrame(told), "What is not there, and why")] if told else []

    def _costs(self) -> Table:
        import pandas as pd

        frame = pd.DataFrame(
            [
                {
                    "jobs done": self.cost.jobs,
                    "planned": self.cost.planned,
                    "failed": self.cost.failed,
                    "steps": self.cost.steps,
                    "hours": self.cost.hours,
                    "threads a job": self.cost.threads,
                }
            ]
        )
        return Table(frame, "What it took, as measured", decimals=3)


def _are_apart(above: ReproducedCell, below: ReproducedCell) -> bool:
    """Return whether neither of two means lies in the other's interval; one that is not known holds everything."""
    return below.here < above.low and above.here > below.high


def _over_seeds(cell: ReproducedCell) -> ReproducedCell:
    """Return a cell with the interval of its mean over other seeds alone: Student's."""
    if cell.runs < 2:
        return replace(cell, low=math.nan, high=math.nan, over="")
    half = reach_over_seeds(cell.sd, cell.runs)
    return replace(cell, low=cell.here - half, high=cell.here + half, over="seeds")


def _by_row(cells: tuple[ReproducedCell, ...]) -> Iterator[tuple[str, list[ReproducedCell]]]:
    rows: dict[str, list[ReproducedCell]] = {}
    for cell in cells:
        rows.setdefault(cell.row, []).append(cell)
    yield from rows.items()


def _named(table: Table, name: str) -> Table:
    return replace(table, name=name)


def _plain_answer(answer: Answer) -> dict[str, Any]:
    differences = [asdict(found) for found in answer.differences]
    for found in differences:
        found |= {key: None for key, value in found.items() if isinstance(value, float) and math.isnan(value)}
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
