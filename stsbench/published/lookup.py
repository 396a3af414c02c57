"""The verbs of `stsbench published`: what there is, one table, and one row with what other papers print for it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.published.catalogue import (
    PublishedRow,
    checkpoints,
    exhibits,
    left_out,
    papers,
    row,
    rows,
    rows_of,
    systems,
    tables,
)
from stsbench.published.catalogue import table as read_table
from stsbench.published.resolution import ResolvedTable, resolved
from stsbench.published.schema import PublishedCell, PublishedTable
from stsbench.render.cells import Named
from stsbench.render.formats import fitted
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables

Quantity = tuple[str, ...]
"""What a cell is a measurement of: system (whatever its edition), task, metric, split, group, variant."""

# Programs get every digit; people read four.
_MOST_DECIMALS = 4


@dataclass(frozen=True)
class Listing(Result):
    """The tables, exhibits (tables and figures), rows, systems or checkpoints that are known, or what is left out.

    Attributes:
        what: which of them.
    """

    what: str

    @property
    def frame(self) -> pd.DataFrame:
        """One row for each, with sources, lines and notes."""
        records, _ = _LISTS[self.what]
        return _frame(records())

    def table(self) -> Tables:
        """Return what people choose by."""
        _, columns = _LISTS[self.what]
        frame = self.frame[columns]
        prose = next((column for column in columns if column in _PROSE), "")
        return Tables([Table(fitted(frame, prose) if prose else frame)])


def list_published(what: str = "tables") -> Listing:
    """Return the tables, exhibits (tables and figures), rows, systems or checkpoints that are known.

    Args:
        what: `tables`, `exhibits`, `rows`, `systems` or `checkpoints`; `left-out` is the list of the results that
            no document at hand prints.

    Raises:
        UserError: if there is no such list.

    >>> list_published("checkpoints").frame.loc[0, "hub"]
    'princeton-nlp/unsup-simcse-bert-base-uncased'
    """
    if what not in _LISTS:
        raise UserError(f"there is no list of {what!r}: {suggestion(what, _LISTS)}")
    return Listing(what)


@dataclass(frozen=True)
class PrintedTable(Result):
    """A table of a paper.

    Attributes:
        entry: the table.
    """

    entry: PublishedTable

    @property
    def frame(self) -> pd.DataFrame:
        """One row for each cell: value, setting, and where and how it was read."""
        return cells_frame(rows_of(self.entry))

    def table(self) -> Tables:
        """Return it as it was printed: a row per row, a column per column, values in the printed unit."""
        cells = {(cell.row, cell.column): cell for row_ in rows_of(self.entry) for cell in row_.cells}
        frame = pd.DataFrame({"row": [entry.name for entry in self.entry.rows]})
        for column in self.entry.columns:
            printed = [_number(cells.get((name, column.name))) for name in frame["row"]]
            # A column may hold scores and how many pairs they are of.
            kinds = {type(value) for value in printed if value is not None}
            dtype: Any = object if len(kinds) > 1 else "Int64" if kinds == {int} else float
            frame[Named("column", column.name)] = pd.Series(printed, dtype=dtype)
        return Tables([Table(frame, decimals=_decimals(self.entry), notes=self.notes())])

    def notes(self) -> tuple[str, ...]:
        """Return what a reader should know: where it was printed, what was restored, its notes."""
        entry, paper = self.entry, papers()[self.entry.paper]
        cells, restored, lost = _counts(entry)
        number = f", table {entry.number}" if entry.number else ""
        notes = [f"{entry.title}. {paper.title} ({paper.venue}){number}."]
        if restored or lost:
            notes.append(
                f"Of {cells} cells {restored} were restored and {lost} are lost: --json says which and how."
            )
        return (*notes, *filter(None, (entry.missing, *entry.notes)))


def _number(cell: PublishedCell | None) -> float | int | None:
    if cell is None or cell.value is None:
        return None
    return int(cell.value) if cell.setting.unit == "pairs" else cell.value


def _decimals(table: PublishedTable) -> int:
    """Return how many decimals of a table's values are shown: as many as are printed, four at most."""
    printed = max((cell.decimals for row_ in rows_of(table) for cell in row_.cells), default=2)
    return min(_MOST_DECIMALS, printed)


def _counts(table: PublishedTable) -> tuple[int, int, int]:
    """Return how many cells a table has, how many of them were restored, and how many are lost."""
    status = [cell.status for row_ in rows_of(table) for cell in row_.cells]
    return len(status), sum(name in {"restored", "derived"} for name in status), status.count("lost")


def show_table(table: str, *, resolution: bool = False) -> PrintedTable | ResolvedTable:
    """Return a table as it was printed.

    Args:
        table: a table's name, as `stsbench published list` gives it.
        resolution: whether to print, in place of the scores, each difference to the baseline and to the best row,
            and whether the tasks' pairs could tell it from chance.

    Raises:
        UserError: if there is no such table; of `resolution`, if it has no STS scores to tell apart.

    >>> print(show_table("mocose-acl2022-1").table()[0].frame.loc[:1, ["row", "STS12", "Avg."]].to_string())
                        row  STS12   Avg.
    0             glove-avg  55.14  61.32
    1  bert-base-first-last  39.70  56.70
    """
    entry = read_table(table)
    return resolved(entry) if resolution else PrintedTable(entry)


@dataclass(frozen=True)
class PrintedRow(Result):
    """A row of a table, with what other papers print for it.

    Attributes:
        row: the row.
    """

    row: PublishedRow

    @property
    def frame(self) -> pd.DataFrame:
        """One row for each cell: value, setting, where and how it was read, and other prints that differ."""
        frame = cells_frame([self.row])
        frame.insert(4, "elsewhere", [_elsewhere(self.row, column) for column in frame["column"]])
        return frame

    @property
    def place(self) -> str:
        """Where it was read."""
        return f"{self.row.name}: {self.row.cells[0].place}"

    def table(self) -> Tables:
        """Return the scores x 100, whatever the unit that they were printed in, beside what was printed."""
        frame, notes = self.frame, [self.place]
        fractions = "1" in set(frame["unit"])
        if fractions:
            frame["value"] = frame["score"]
            notes.append("Its source prints scores from 0 to 1 (`raw`): here they are x 100, as everywhere else.")
        decimals = _decimals(self.row.table)
        shown = frame[["column", "value", "split", "metric", "status", "raw", "elsewhere"]]
        return Tables([Table(shown, headline="value", decimals=decimals - 2 * fractions, notes=tuple(notes))])


def show_row(name: str) -> PrintedRow:
    """Return a published row, where it was read, and what other papers print for it.

    Args:
        name: a system, the Hub name of a checkpoint, or `table/row`.

    Raises:
        UserError: if there is no such row.

    >>> show_row("minilm").table()[0].frame["value"].round(2).tolist()
    [72.37, 80.6, 85.39, 78.99, 82.03, 77.58]
    """
    return PrintedRow(row(name))


def quantity(cell: PublishedCell) -> Quantity | None:
    """Return what a cell is a measurement of; None for counts and differences, which are no measurements."""
    setting = cell.setting
    if not cell.system or setting.task == "delta":
        return None
    edition_of = systems()[cell.system].edition_of if cell.system in systems() else ""
    base = edition_of or cell.system
    return (base, setting.task, setting.metric, setting.split, setting.group, setting.variant)


def other_prints(cell: PublishedCell, among: Iterable[PublishedRow]) -> list[PublishedCell]:
    """Return the other cells that print the same thing, earlier editions included.

    >>> [other.table for other in other_prints(row("is-bert-base").cell("STS12"), rows().values())]
    ['esimcse-coling2022-3', 'mocose-acl2022-1']
    """
    wanted = quantity(cell)
    if wanted is None:
        return []
    return [other for row in among for other in row.cells if other != cell and quantity(other) == wanted]


def cells_frame(published: Iterable[PublishedRow]) -> pd.DataFrame:
    """Return one row per cell of some rows: value, setting, where and how it was read, and the score x 100."""
    return _frame(
        {
            "row": cell.row_name,
            "column": cell.column,
            "system": cell.system,
            "value": cell.value,
            **cell.setting.model_dump(exclude={"open"}),
            "open": ", ".join(cell.setting.open),
            "pooling": entry.usage.pooling,
            "template": entry.usage.template,
            "rules": "; ".join(entry.usage.rules),
            "precision": entry.usage.precision,
            "checkpoint": entry.usage.checkpoint,
            "usage open": ", ".join(entry.usage.open),
            "status": cell.status,
            "raw": cell.raw,
            "file": cell.file,
            "line": cell.line,
            "section": cell.section,
            "spread": cell.spread,
            "how": cell.how,
            "evidence": "; ".join(cell.evidence),
            "score": None if cell.setting.unit == "pairs" else cell.score,
        }
        for entry in published
        for cell in entry.cells
    )


def _elsewhere(row_: PublishedRow, column: str) -> str:
    cell = row_.cell(column)
    prints = other_prints(cell, rows().values())
    return "; ".join(f"{other.printed} {other.row_name}" for other in prints if other.score != cell.score)


def _tables() -> Iterable[dict[str, Any]]:
    for entry in tables().values():
        cells, restored, lost = _counts(entry)
        yield {
            "table": entry.name,
            "number": entry.number,
            "title": entry.title,
            "rows": len(entry.rows),
            "cells": cells,
            "restored": restored,
            "lost": lost,
            "missing": entry.missing,
            "paper": papers()[entry.paper].title,
            "venue": papers()[entry.paper].venue,
            "address": papers()[entry.paper].address,
        }


def _exhibits() -> Iterable[dict[str, Any]]:
    for entry in exhibits().values():
        table = tables().get(entry.name)
        yield {
            "exhibit": entry.name,
            "kind": entry.kind,
            "number": entry.number,
            "shows": entry.caption,
            "section": entry.section,
            "line": _text(entry.line),
            "numbers": "entered" if table is not None and table.rows else "",
            "why not": entry.without_numbers or (table.missing if table is not None else ""),
            "without line": entry.without_line,
            "paper": papers()[entry.paper].title,
            "file": papers()[entry.paper].file,
        }


def _rows() -> Iterable[dict[str, Any]]:
    for entry in rows().values():
        row_ = entry.row
        said = {name: getattr(row_, name) for name in ("system", "variant", "label", "origin")}
        yield {
            "row": entry.name,
            **said,
            "file": entry.paper.file,
            "line": row_.line,
            "notes": " ".join(row_.notes),
        }


def _systems() -> Iterable[dict[str, Any]]:
    for entry in systems().values():
        cells = rows()[entry.row].cells if entry.row else ()
        yield {
            "system": entry.name,
            "kind": entry.kind,
            "Avg. STS": next((cell.printed for cell in cells if cell.setting.task == "Avg. STS"), ""),
            "row": entry.row,
            "edition of": entry.edition_of,
            "aliases": ", ".join(entry.aliases),
            "note": entry.note,
        }


_OF_CHECKPOINTS = (
    *("hub", "pooling", "max_length", "text", "expected", "unverified", "hub_source", "pooling_source"),
    *("max_length_source", "listed_average", "listed_source", "note", "system", "prompt", "template", "usage"),
)


def _checkpoints() -> Iterable[dict[str, Any]]:
    for entry in checkpoints().values():
        said = {name: getattr(entry, name) for name in _OF_CHECKPOINTS}
        texts = {name: _text(said[name]) for name in ("max_length", "expected", "unverified")}
        yield {"checkpoint": entry.name, **said, **texts}


def _left_out() -> Iterable[dict[str, Any]]:
    for entry in left_out().values():
        looked_in = "; ".join(entry.looked_in)
        yield {
            "result": entry.name,
            "title": entry.title,
            "why": entry.why,
            "looked in": looked_in,
            "usage": entry.usage,
        }


def _text(value: int | tuple[str, ...] | None) -> str:
    """Return a number, or names, as one text; empty for nothing."""
    return ", ".join(value) if isinstance(value, tuple) else "" if value is None else str(value)


_PROSE = ("title", "shows")
"""Columns of the lists that readers know a thing by its name without."""

_LISTS: dict[str, tuple[Callable[[], Iterable[dict[str, Any]]], list[str]]] = {
    "tables": (_tables, ["table", "title", "rows", "cells", "restored", "lost"]),
    "exhibits": (_exhibits, ["exhibit", "kind", "number", "shows", "numbers"]),
    "rows": (_rows, ["row", "system", "variant", "label"]),
    "systems": (_systems, ["system", "kind", "Avg. STS", "row"]),
    "checkpoints": (_checkpoints, ["checkpoint", "hub", "pooling", "unverified"]),
    "left-out": (_left_out, ["result", "why", "looked in"]),
}
"""Each list's records, and the columns that readers choose by."""


def _frame(records: Iterable[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(list(records))
