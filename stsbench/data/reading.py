"""`read_table` reads users' tables (CSV, TSV, JSON Lines, Parquet) by a schema of columns and cells."""

import numbers
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.files import require_file
from stsbench.data.rows import TABLES, Rows, ending_of, is_blank, number, open_rows

_MISTAKES_SHOWN = 10


def as_text(cell: object) -> str:
    """Returns a cell's text without the whitespace around it; it may be empty, or None in the file."""
    if cell is not None and not isinstance(cell, str):
        raise ValueError(f"is {cell!r}, not text; fix the line.")
    text = (cell or "").strip()
    # JSON can spell NUL and half of a surrogate pair, which no tokenizer reads.
    if re.search("[\0\ud800-\udfff]", text):
        raise ValueError("has an invalid character; fix the line.")
    return text


def as_sentence(cell: object) -> str:
    """Returns a cell's text, which must not be empty."""
    text = as_text(cell)
    if not text:
        raise ValueError("is empty; fill it in or delete the line.")
    return text


def as_name(cell: object) -> str:
    """Returns a name: text or a whole number. JSON's `true` is 1, as in other formats."""
    text = as_text(str(int(cell) if isinstance(cell, bool) else cell) if isinstance(cell, str | int) else "")
    if not text:
        raise ValueError(f"is {cell!r}; give a name or a whole number.")
    return text


def as_number(cell: object) -> float:
    """Returns a finite number."""
    is_plain = isinstance(cell, str | numbers.Real) and not isinstance(cell, bool)
    value = number(str(cell)) if is_plain else None
    if value is None:
        raise ValueError(f"{cell!r} is not a finite number; fix it or delete the line.")
    return value


@dataclass(frozen=True)
class Column:
    """A column of a schema.

    Attributes:
        name: its name in the resulting table.
        parse: turns a cell into a value; a ValueError has the rest of the message `file, line 3: COLUMN ...`.
        names: its possible names in files, ignoring case; by default `name`.
        optional: whether it may be missing.
    """

    name: str
    parse: Callable[[object], Any]
    names: Sequence[str] = ()
    optional: bool = False

    def matches(self, header: str) -> bool:
        """Returns whether a header names this column."""
        return header.strip().casefold() in {name.casefold() for name in self.names or (self.name,)}


@dataclass(frozen=True)
class Schema:
    """The columns of a kind of table.

    Attributes:
        row: what a row is, for messages: `pair`.
        columns: the columns to read, in any order; others are ignored.
        unnamed: the columns of TSV or CSV without a header, in order; empty if a header is required.
        absent: what to do if the file does not exist, for messages.
    """

    row: str
    columns: Sequence[Column]
    unnamed: Sequence[str] = ()
    absent: str = "check the path"

    def is_header(self, cells: Sequence[str]) -> bool:
        """Returns whether a first row has column names: it names a column of text, or has other columns."""
        texts = [column for column in self.columns if column.parse is not as_number]
        return len(cells) != len(self.unnamed) or any(column.matches(cell) for column in texts for cell in cells)


@dataclass(frozen=True)
class UserTable:
    """A table as read.

    Attributes:
        rows: the file's columns and notes.
        frame: one row per row of the file that is not blank: `line` (see `Rows.at`) and the schema's columns.
        headers: the file's name of each column.
    """

    rows: Rows
    frame: pd.DataFrame
    headers: Mapping[str, str]


def read_table(path: Path, schema: Schema, format: str = "") -> UserTable:
    """Reads a table of a user.

    Args:
        path: a .tsv, .csv, .jsonl or .parquet file, the first three also with .gz or .zst.
        schema: its columns.
        format: `trec` for a file without a header and with cells separated by whitespace, of any suffix.

    Raises:
        UserError: if the file cannot be read, has no rows, lacks a column or has two for one; or with file, line
            and remedy for each row with a wrong cell (the first ten, and how many more).
    """
    require_file(path, absent=schema.absent)
    if format:
        rows = open_rows(path, is_header=lambda _: False, unnamed=schema.unnamed, format=format)
    else:
        ending_of(path, TABLES)
        rows = open_rows(path, is_header=schema.is_header, unnamed=schema.unnamed)
    if not any(rows.columns):
        raise UserError(f"{path} is empty: give one {schema.row} per line, with {_columns_of(schema)}.")
    places = {column: place for column in schema.columns if (place := _place(rows, column, schema)) is not None}
    mistakes, values = list[str](), list[list[Any]]()
    for line, cells in rows.rows:
        if is_blank(cells):
            continue
        row: list[Any] = [line]
        for column, place in places.items():
            try:
                row.append(column.parse(cells[place]))
            except ValueError as error:
                mistakes.append(f"{rows.at(line)}: {rows.columns[place]} {error}")
                break
        else:
            values.append(row)
    _require_no_mistakes(path, mistakes)
    if not values:
        raise UserError(f"{path} has no {schema.row}s: give one per line, with {_columns_of(schema)}.")
    # Text stays Python's `str`: a sentence may have characters that pandas' own strings cannot hold.
    frame = pd.DataFrame(values, columns=["line", *(column.name for column in places)], dtype=object)
    return UserTable(rows, frame, {column.name: rows.columns[place] for column, place in places.items()})


def _columns_of(schema: Schema) -> str:
    return f"the columns {', '.join(schema.unnamed or [column.name for column in schema.columns])}"


def _place(rows: Rows, column: Column, schema: Schema) -> int | None:
    places = [place for place, header in enumerate(rows.columns) if column.matches(header)]
    if len(places) == 1:
        return places[0]
    if places:
        headers = ", ".join(repr(rows.columns[place]) for place in places)
        raise UserError(f"{rows.path} has several columns for {column.name} ({headers}): rename all but one.")
    if column.optional:
        return None
    name, *others = column.names or (column.name,)
    also = f" (or {', '.join(others)})" if others else ""
    remedy = f", or leave out the header and give {_columns_of(schema)}" if schema.unnamed else ""
    headers = ", ".join(map(repr, rows.columns))
    raise UserError(f"{rows.path} has no column {name!r}{also}, only {headers}: rename one{remedy}.")


def _require_no_mistakes(path: Path, mistakes: Sequence[str]) -> None:
    if len(mistakes) == 1:
        raise UserError(mistakes[0])
    if mistakes:
        more = len(mistakes) - _MISTAKES_SHOWN
        last = [f"and {more:,} more."] if more > 0 else []
        raise UserError(f"{path} has {len(mistakes):,} mistakes:", *mistakes[:_MISTAKES_SHOWN], *last)
