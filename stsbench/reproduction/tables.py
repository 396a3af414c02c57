"""The tables and the figure of a reproduction: the print beside ours, the claims, and what is missing."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import pandas as pd

from stsbench.base.words import listed
from stsbench.render.table import Table, interval
from stsbench.reproduction.answers import Answer
from stsbench.reproduction.table_plan import Names
from stsbench.statistics.intervals import reach_of_mean

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
        over: what the interval is over: `seeds and pairs`, `seeds`, `pairs`; empty for none.
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
        notes.append(f"{HERE}: on {measured_on}, whose scores do not compare with the printed task's")
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
        named = list(dict.fromkeys(named))
        reasons.append({"what": "; ".join(named), "why": why})
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
