"""Numbers from papers as data with their source, known checkpoints, and what does not add up in them."""

from stsbench.published.catalogue import (
    PublishedRow,
    checkpoint,
    checkpoints,
    find_rows,
    papers,
    row,
    rows,
    system,
    systems,
    table,
    tables,
)
from stsbench.published.schema import Cell, Checkpoint, Paper, Row, Setting, System, Table

__all__ = [
    "Cell",
    "Checkpoint",
    "Paper",
    "PublishedRow",
    "Row",
    "Setting",
    "System",
    "Table",
    "checkpoint",
    "checkpoints",
    "find_rows",
    "papers",
    "row",
    "rows",
    "system",
    "systems",
    "table",
    "tables",
]
