"""The published numbers as DataFrames: what there is, one table as printed, and one row per cell."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from stsbench.published.catalogue import PublishedRow, checkpoints, papers, rows, rows_of, systems, table, tables
from stsbench.published.catalogue import row as published_row
from stsbench.published.conflicts import KINDS, Finding, as_printed, other_prints

if TYPE_CHECKING:
    import pandas as pd

_LABEL = "row"


def tables_frame() -> "pd.DataFrame":
    """Return one row per table: its paper, number and title, and how many cells were restored or lost."""
    listed = []
    for entry in tables().values():
        cells = [cell for row in rows_of(entry) for cell in row.cells]
        listed.append(
            {
                "table": entry.name,
                "number": entry.number,
                "title": entry.title,
                "rows": len(entry.rows),
                "cells": len(cells),
                "restored": sum(cell.status in {"restored", "derived"} for cell in cells),
                "lost": sum(cell.status == "lost" for cell in cells),
                "missing": entry.missing,
                "paper": papers()[entry.paper].title,
                "venue": papers()[entry.paper].venue,
                "address": papers()[entry.paper].address,
            }
        )
    return _frame(listed)


def systems_frame() -> "pd.DataFrame":
    """Return one row per system: kind, the row to expect, its average, its other names."""
    listed = []
    for system in systems().values():
        average = ""
        if system.row:
            cells = rows()[system.row].cells
            average = next((as_printed(cell) for cell in cells if cell.setting.task == "Avg. STS"), "")
        listed.append(
            {
                "system": system.name,
                "kind": system.kind,
                "Avg. STS": average,
                "row": system.row,
                "edition of": system.edition_of,
                "aliases": ", ".join(system.aliases),
                "note": system.note,
            }
        )
    return _frame(listed)


def checkpoints_frame() -> "pd.DataFrame":
    """Return one row per known checkpoint: what to load, how to pool, what to expect, what is unverified."""
    return _frame(
        {
            "checkpoint": entry.name,
            "hub": entry.hub,
            "pooling": entry.pooling,
            "max_length": "" if entry.max_length is None else str(entry.max_length),
            "text": entry.text,
            "expected": ", ".join(entry.expected),
            "unverified": ", ".join(entry.unverified),
            "hub_source": entry.hub_source,
            "pooling_source": entry.pooling_source,
            "max_length_source": entry.max_length_source,
            "listed_average": entry.listed_average,
            "listed_source": entry.listed_source,
            "note": entry.note,
        }
        for entry in checkpoints().values()
    )


def rows_frame(found: Iterable[PublishedRow] | None = None) -> "pd.DataFrame":
    """Return one row per published row: its full name, system, configuration, label, line, and notes.

    Args:
        found: the rows; all by default.
    """
    return _frame(
        {
            "row": row.name,
            "system": row.row.system,
            "variant": row.row.variant,
            "label": row.row.label,
            "origin": row.row.origin,
            "file": row.paper.file,
            "line": row.row.line,
            "notes": " ".join(row.row.notes),
        }
        for row in (rows().values() if found is None else found)
    )


def table_frame(name: str) -> "pd.DataFrame":
    """Return a table as it was printed: a row per row, a column per column, values in the printed unit.

    Raises:
        UserError: if there is no such table.

    >>> print(table_frame("mocose-acl2022-1").loc[:1, ["row", "STS12", "Avg."]].to_string())
                        row  STS12   Avg.
    0             glove-avg  55.14  61.32
    1  bert-base-first-last  39.70  56.70
    """
    import pandas as pd

    entry = table(name)
    frame = pd.DataFrame({_LABEL: [row.name for row in entry.rows]})
    for column in entry.columns:
        values = {
            cell.row: cell.value for row in rows_of(entry) for cell in row.cells if cell.column == column.name
        }
        is_count = entry.setting.unit == "pairs"
        frame[column.name] = pd.Series(
            [values.get(row.name) for row in entry.rows], dtype="Int64" if is_count else float
        )
    return frame


def cells_frame(found: Iterable[PublishedRow]) -> "pd.DataFrame":
    """Return one row per cell: value, setting, and where and how it was read."""
    return _frame(
        {
            "row": cell.row_name,
            "column": cell.column,
            "system": cell.system,
            "value": cell.value,
            **cell.setting.model_dump(exclude={"open"}),
            "open": ", ".join(cell.setting.open),
            "status": cell.status,
            "raw": cell.raw,
            "file": cell.file,
            "line": cell.line,
            "how": cell.how,
            "evidence": "; ".join(cell.evidence),
        }
        for row in found
        for cell in row.cells
    )


def row_frame(name: str) -> "pd.DataFrame":
    """Return one row per cell of a published row, with the other papers' prints of it where they differ.

    Args:
        name: what `stsbench.published.row` understands.

    Raises:
        UserError: if there is no such row.
    """
    row = published_row(name)
    frame = cells_frame([row])
    frame.insert(4, "elsewhere", [_elsewhere(row, column) for column in frame["column"]])
    return frame


def findings_frame(findings: Iterable[Finding]) -> "pd.DataFrame":
    """Return one row per finding, with its kind in words."""
    return _frame(
        {
            "kind": finding.kind,
            "table": finding.table,
            "row": finding.row,
            "column": finding.column,
            "printed": finding.printed,
            "expected": finding.expected,
            "message": finding.message,
            "meaning": KINDS[finding.kind],
            "file": finding.file,
            "line": finding.line,
        }
        for finding in findings
    )


def _elsewhere(row: PublishedRow, column: str) -> str:
    own = row.cell(column)
    prints = other_prints(own, rows().values())
    return "; ".join(f"{as_printed(cell)} {cell.row_name}" for cell in prints if cell.score != own.score)


def _frame(records: Iterable[dict[str, Any]]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(list(records))
