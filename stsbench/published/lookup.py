"""`stsbench published`: lists, a table as printed, and a row with other papers' values for it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.published.catalogue import PublishedRow, checkpoints, papers, row, rows, rows_of, systems, tables
from stsbench.published.catalogue import table as read_table
from stsbench.published.schema import PublishedCell, PublishedTable
from stsbench.render.table import Result, Table, Tables


@dataclass(frozen=True)
class Listing(Result):
    """A list of tables, rows, systems or checkpoints.

    Attributes:
        what: `tables`, `rows`, `systems` or `checkpoints`.
    """

    what: str

    @property
    def frame(self) -> pd.DataFrame:
        """One row per entry, with sources, lines and notes."""
        records, _ = _LISTS[self.what]
        return pd.DataFrame(list(records()))

    def table(self) -> Tables:
        """Returns the columns that identify an entry."""
        _, columns = _LISTS[self.what]
        return Tables([Table(self.frame[columns])])


def list_published(what: str = "tables") -> Listing:
    """Lists the included tables, rows, systems or checkpoints.

    Args:
        what: `tables`, `rows`, `systems` or `checkpoints`.

    Raises:
        UserError: if there is no such list.

    >>> list_published("checkpoints").frame.loc[0, "hub"]
    'princeton-nlp/unsup-simcse-bert-base-uncased'
    """
    if what in _LISTS:
        return Listing(what)
    raise UserError(f"there is no list of {what!r}: {suggestion(what, _LISTS)}")


@dataclass(frozen=True)
class PrintedTable(Result):
    """A table of a paper.

    Attributes:
        entry: the table.
    """

    entry: PublishedTable

    @property
    def frame(self) -> pd.DataFrame:
        """One row per cell: value, setting and source."""
        return cells_frame(rows_of(self.entry))

    def table(self) -> Tables:
        """Returns the table as printed, with values in the printed unit."""
        cells = {(cell.row, cell.column): cell for row_ in rows_of(self.entry) for cell in row_.cells}
        frame = pd.DataFrame({"row": [entry.name for entry in self.entry.rows]})
        for column in self.entry.columns:
            printed = [_number(cells.get((name, column.name))) for name in frame["row"]]
            is_mixed = len({type(value) for value in printed if value is not None}) > 1
            frame[column.name] = pd.Series(printed, dtype=object if is_mixed else None)
        return Tables([Table(frame, decimals=_decimals(self.entry), notes=self.notes)])

    @property
    def notes(self) -> tuple[str, ...]:
        """Where it was printed, and its notes."""
        entry, paper = self.entry, papers()[self.entry.paper]
        number = f", table {entry.number}" if entry.number else ""
        return f"{entry.title}. {paper.title} ({paper.venue}){number}.", *entry.notes


def _number(cell: PublishedCell | None) -> float | int | None:
    value = None if cell is None else cell.value
    return int(value) if value is not None and cell and cell.setting.unit == "pairs" else value


def _decimals(table: PublishedTable) -> int:
    printed = max((cell.decimals for row_ in rows_of(table) for cell in row_.cells), default=2)
    return min(4, printed)  # JSON and CSV have every digit


def show_table(table: str) -> PrintedTable:
    """Returns a table as printed.

    Args:
        table: a name from `stsbench published list`.

    Raises:
        UserError: if there is no such table.

    >>> print(show_table("mocose-acl2022-1").table()[0].frame.loc[:1, ["row", "STS12", "Avg."]].to_string())
                        row  STS12   Avg.
    0             glove-avg  55.14  61.32
    1  bert-base-first-last  39.70  56.70
    """
    return PrintedTable(read_table(table))


@dataclass(frozen=True)
class PrintedRow(Result):
    """A row of a table, with other papers' values for it.

    Attributes:
        row: the row.
    """

    row: PublishedRow

    @property
    def frame(self) -> pd.DataFrame:
        """One row per cell: value, setting, source, and other prints that differ."""
        frame = cells_frame([self.row])
        others = [(cell, other_prints(cell, rows().values())) for cell in self.row.cells]
        elsewhere = (
            "; ".join(f"{other.printed} {other.row_name}" for other in prints if other.score != cell.score)
            for cell, prints in others
        )
        frame.insert(4, "elsewhere", list(elsewhere))
        return frame

    @property
    def notes(self) -> tuple[str, ...]:
        """The source of the row, and the notes on it."""
        return f"{self.row.name}: {self.row.cells[0].place}", *self.row.row.notes

    def table(self) -> Tables:
        """Returns the scores x 100, regardless of the printed unit."""
        frame, notes, decimals = self.frame, self.notes, _decimals(self.row.table)
        if "1" in set(frame["unit"]):
            frame["value"], decimals = frame["score"], decimals - 2
            notes += ("The source prints scores from 0 to 1; here they are x 100.",)
        shown = frame[["column", "value", "split", "metric", "elsewhere"]]
        return Tables([Table(shown, headline="value", decimals=decimals, notes=notes)])


def show_row(name: str) -> PrintedRow:
    """Returns a published row, its source, and what other papers print for it.

    Args:
        name: a system, the Hub name of a checkpoint, or `table/row`.

    Raises:
        UserError: if there is no such row.

    >>> show_row("minilm").table()[0].frame["value"].round(2).tolist()
    [72.37, 80.6, 85.39, 78.99, 82.03, 77.58]
    """
    return PrintedRow(row(name))


def quantity(cell: PublishedCell) -> tuple[str, ...] | None:
    """Returns the quantity that a cell measures, in any edition of its system; None for counts and differences."""
    setting = cell.setting
    if not cell.system or setting.task == "delta":
        return None
    system = systems()[cell.system].edition_of or cell.system
    return system, setting.task, setting.metric, setting.split, setting.group, setting.variant


def other_prints(cell: PublishedCell, among: Iterable[PublishedRow]) -> list[PublishedCell]:
    """Returns the other cells for the same quantity, earlier editions included.

    >>> [other.table for other in other_prints(row("is-bert-base").cell("STS12"), rows().values())]
    ['esimcse-coling2022-3', 'mocose-acl2022-1']
    """
    measured = quantity(cell)
    if measured is None:
        return []
    return [other for row in among for other in row.cells if other != cell and quantity(other) == measured]


def cells_frame(published: Iterable[PublishedRow]) -> pd.DataFrame:
    """Returns one row per cell: value, setting, usage, source, and the score x 100.

    >>> from stsbench.published.catalogue import rows
    >>> cells = cells_frame(rows().values())
    >>> cells.query("system == 'mocose-bert-large' and task == 'Avg. STS'")["value"].tolist()
    [79.13]
    """
    return pd.DataFrame(
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
            "printed": cell.printed,
            "file": cell.file,
            "line": cell.line,
            "section": cell.section,
            "spread": cell.spread,
            "score": None if cell.setting.unit == "pairs" else cell.score,
            "rounding": cell.rounding,
            "notes": " ".join(entry.row.notes),
        }
        for entry in published
        for cell in entry.cells
    )


def _tables() -> Iterable[dict[str, Any]]:
    for entry in tables().values():
        paper = papers()[entry.paper]
        yield {
            "table": entry.name,
            "number": entry.number,
            "title": entry.title,
            "rows": len(entry.rows),
            "cells": sum(len(row_.cells) for row_ in rows_of(entry)),
            "notes": " ".join(entry.notes),
            "paper": paper.title,
            "venue": paper.venue,
            "address": paper.address,
        }


def _rows() -> Iterable[dict[str, Any]]:
    for entry in rows().values():
        yield {
            "row": entry.name,
            **{name: getattr(entry.row, name) for name in ("system", "variant", "label", "origin")},
            "file": entry.paper.file,
            "line": entry.row.line,
            "notes": " ".join(entry.row.notes),
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


def _checkpoints() -> Iterable[dict[str, Any]]:
    for entry in checkpoints().values():
        facts = entry.model_dump(exclude={"name", "weights_sha256", "tokenizer_sha256", "citation"})
        lists = {"expected": ", ".join(entry.expected), "unverified": ", ".join(entry.unverified)}
        yield {"checkpoint": entry.name, **facts, **lists, "max_length": str(entry.max_length or "")}


# For each list its records, and the columns of its table.
_LISTS: dict[str, tuple[Callable[[], Iterable[dict[str, Any]]], list[str]]] = {
    "tables": (_tables, ["table", "title", "rows", "cells"]),
    "rows": (_rows, ["row", "system", "variant", "label"]),
    "systems": (_systems, ["system", "kind", "Avg. STS", "row"]),
    "checkpoints": (_checkpoints, ["checkpoint", "hub", "pooling", "unverified"]),
}
