"""The tables and the figure of a reproduction: print and ours side by side, the claims, what is missing."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pandas as pd

from stsbench.base.words import listed
from stsbench.render.charts import forest, line, plain_logarithms
from stsbench.render.figures import colours, legend_above, new_figure, style
from stsbench.render.table import Table, interval
from stsbench.reproduction.answers import Answer
from stsbench.reproduction.table_plan import Names
from stsbench.statistics.intervals import reach_of_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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

    @property
    def is_printed(self) -> bool:
        """Whether there is a number in print."""
        return not math.isnan(self.printed)

    def as_row(self) -> dict[str, Any]:
        """Return its fields and the difference."""
        return {**asdict(self), "difference": self.difference}


def column_table(cells: Sequence[ReproducedCell], names: Names, caption: str, measured_on: str) -> Table:
    """Return a column's cells with their intervals; scores on other tasks than the paper's do not compare."""
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
        notes.append(f"{HERE}: on {measured_on}, whose scores do not compare with the printed task's")
    return Table(frame, caption, headline=HERE if HERE in frame else "", notes=tuple(notes))


def whole_table(cells: Sequence[ReproducedCell], names: Names, caption: str, *, counts: bool) -> Table:
    """Return the table in the paper's layout: of each row the print, and ours below it."""
    rows: list[dict[str, Any]] = []
    hints: dict[tuple[int, str], str] = {}
    own: set[int] = set()
    columns = {cell.column: names.columns[cell.column] for cell in cells}
    for row, of_row in groupby(cells, key=lambda cell: cell.row):
        side_by_side = list(of_row)
        if any(cell.is_printed for cell in side_by_side):
            printed: dict[str, Any] = {columns[cell.column]: cell.printed for cell in side_by_side}
            rows.append({"row": names.rows[row], "source": PRINTED, **printed})
        if any(cell.runs for cell in side_by_side):
            own.add(len(rows))
            hints |= {
                (len(rows), columns[cell.column]): f"95 % {limits} over other {cell.over}"
                for cell in side_by_side
                if (limits := interval(cell.low, cell.high))
            }
            here: dict[str, Any] = {columns[cell.column]: cell.here for cell in side_by_side}
            rows.append({"row": names.rows[row], "source": HERE, **here})
    frame = pd.DataFrame(rows, columns=["row", "source", *dict.fromkeys(columns.values())]).dropna(
        axis="columns", how="all"
    )
    if counts:
        frame = frame.astype(dict.fromkeys(columns.values(), "Int64"))
    return Table(frame, caption, own=frozenset(own), hints=hints)


def claims_table(answers: Sequence[Answer], note: str) -> Table:
    """Return the claims, whether the print says so itself, and what was found about each."""
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
    notes = ("line: of the paper's text; in print: whether the printed numbers alone say so.", note)
    caption = "What the paper claims with it, and what was found"
    return Table(frame.drop(columns=empty), caption, verdicts="answer", notes=tuple(filter(None, notes)))


def missing_table(cells: Sequence[ReproducedCell], names: Names) -> Table | None:
    """Return what is not there, and why; None where nothing is missing that has a reason."""
    rows, made = {cell.row for cell in cells}, {cell.row for cell in cells if cell.runs}
    # By the reason and the column, the rows: a row that was not made at all stands under no column.
    lacking: dict[str, dict[str, list[str]]] = {}
    for cell in cells:
        if not cell.runs and cell.why:
            column = names.columns[cell.column] if cell.row in made else ""
            lacking.setdefault(cell.why, {}).setdefault(column, []).append(names.rows[cell.row])
    reasons = [{"what": "; ".join(_in_words(columns, len(rows))), "why": why} for why, columns in lacking.items()]
    return Table(pd.DataFrame(reasons), "What is not there, and why") if reasons else None


def _in_words(lacking: Mapping[str, Sequence[str]], count: int) -> list[str]:
    """Return what lacks: columns that every row lacks, cells, and whole rows."""
    whole = [column for column, rows in lacking.items() if column and len(rows) == count]
    named = [f"every row on {listed(whole)}"] if whole else []
    for column, rows in lacking.items():
        if column not in whole:
            named += [f"{row} on {column}" if column else row for row in dict.fromkeys(rows)]
    return named


def without_levels(cells: Sequence[ReproducedCell]) -> list[ReproducedCell]:
    """Return cells as points above their own mean over those that are printed, too; the print likewise.

    The intervals are then over other seeds alone, Student's: other pairs would be the same for all rows.
    """
    both = [cell for cell in cells if cell.is_printed]
    here = sum(cell.here for cell in both) / len(both)
    printed = sum(cell.printed for cell in both) / len(both)
    shifted = []
    for cell in cells:
        half = reach_of_mean(cell.sd, cell.runs) if cell.runs > 1 else math.nan
        low, high = cell.here - half - here, cell.here + half - here
        shifted.append(
            replace(cell, here=cell.here - here, printed=cell.printed - printed, low=low, high=high, over="seeds")
        )
    return shifted


def curve(
    cells: Sequence[ReproducedCell], places: Mapping[str, float], axis: str, label: str, here: str
) -> "Figure":
    """Draw a column's cells over the places of their rows on an axis; `here` is what ours are called."""
    palette = colours([HERE, PRINTED])
    points = sorted(((places[cell.row], cell) for cell in cells), key=lambda point: point[0])
    printed = [(x, cell.printed) for x, cell in points if cell.is_printed]
    with style():
        figure = new_figure()
        panel = figure.add_subplot()
        at = [x for x, _ in points]
        low, high = ([getattr(cell, side) for _, cell in points] for side in ("low", "high"))
        values = [cell.here for _, cell in points]
        line(panel, here, at, values, palette[HERE], low=low, high=high, marker="o", markersize=3)
        if printed:
            x, y = map(list, zip(*printed, strict=True))
            line(panel, PRINTED, x, y, palette[PRINTED], linestyle="--", marker="s", markersize=3)
        if at[0] > 0 and at[-1] / at[0] > 20:
            panel.set_xscale("log")
            plain_logarithms(panel.xaxis)
        panel.set_xlabel(axis)
        panel.set_ylabel(label)
        legend_above(figure, panel)
    return figure


def row_by_row(cells: Sequence[ReproducedCell], labels: Mapping[str, str], label: str) -> "Figure":
    """Draw a column's cells row by row."""
    rows: list[dict[str, Any]] = []
    for cell in cells:
        common = {"label": labels[cell.row], "summary": False}
        here = {"series": HERE, "value": cell.here, "low": cell.low, "high": cell.high, "filled": True}
        rows.append(common | here)
        if cell.is_printed:
            none = {"low": math.nan, "high": math.nan}
            rows.append(common | {"series": PRINTED, "value": cell.printed, **none, "filled": False})
    return forest(pd.DataFrame(rows), label)
