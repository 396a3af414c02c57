"""The published numbers: what there is, one table, one row, and what does not add up."""

from typing import TYPE_CHECKING

from stsbench.base.errors import UserError
from stsbench.published import conflicts as validate
from stsbench.published import frames
from stsbench.published.catalogue import find_rows, rows, rows_of, systems, table
from stsbench.published.conflicts_page import conflicts_page

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "LISTS",
    "conflicts",
    "conflicts_page",
    "decimals",
    "find_rows",
    "list_",
    "notes",
    "row",
    "row_names",
    "show",
    "show_cells",
]

LISTS = ("tables", "rows", "systems", "checkpoints")


def list_(what: str = "tables") -> "pd.DataFrame":
    """Return one row per table, row, system or checkpoint.

    Raises:
        UserError: if there is no such list.
    """
    match what:
        case "tables":
            return frames.tables_frame()
        case "rows":
            return frames.rows_frame()
        case "systems":
            return frames.systems_frame()
        case "checkpoints":
            return frames.checkpoints_frame()
        case _:
            raise UserError(f"there is no list of {what!r}: choose one of {', '.join(LISTS)}.")


def show(name: str) -> "pd.DataFrame":
    """Return a table as it was printed.

    Raises:
        UserError: if there is no such table.
    """
    return frames.table_frame(name)


def show_cells(name: str) -> "pd.DataFrame":
    """Return a table with one row per cell: value, setting, and where and how it was read.

    Raises:
        UserError: if there is no such table.
    """
    return frames.cells_frame(rows_of(table(name)))


def decimals(name: str) -> int:
    """Return with how many digits after the point a table was printed; at most four, which is what people read.

    Raises:
        UserError: if there is no such table.
    """
    return min(4, max((cell.decimals for row_ in rows_of(table(name)) for cell in row_.cells), default=2))


def notes(name: str) -> list[str]:
    """Return what a reader of a table should know: where it was printed, what was restored, its notes.

    Raises:
        UserError: if there is no such table.
    """
    entry = table(name)
    found = list(rows_of(entry))
    listed = frames.tables_frame().set_index("table").loc[entry.name]
    number = f", table {entry.number}" if entry.number else ""
    lines = [f"{entry.title}. {listed['paper']} ({listed['venue']}){number}."]
    cells = [cell for row_ in found for cell in row_.cells]
    restored = sum(cell.status in {"restored", "derived"} for cell in cells)
    lost = sum(cell.status == "lost" for cell in cells)
    if restored or lost:
        lines.append(
            f"Of {len(cells)} cells {restored} were restored and {lost} are lost: --json says which and how."
        )
    lines += [text for text in (entry.missing, *entry.notes) if text]
    return lines


def row(name: str) -> "pd.DataFrame":
    """Return one row per cell of a published row, with other prints of it where they differ.

    Args:
        name: `table/row`, a system, or the Hub name of its checkpoint.

    Raises:
        UserError: if there is no such row.
    """
    return frames.row_frame(name)


def conflicts() -> "pd.DataFrame":
    """Return one row per finding: what does not add up in the published numbers."""
    return frames.findings_frame(validate.validate())


def row_names() -> list[str]:
    """Return every name that a row can be asked for by: the systems that have one, then `table/row`."""
    return [*(name for name, system in systems().items() if system.row), *rows()]
