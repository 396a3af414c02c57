"""The folders that are searched for data, and `read_table`, which reads users' tables by a schema."""

import numbers
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.files import cache_dir, require_file
from stsbench.data.catalogue import Source
from stsbench.data.rows import TABLES, Rows, ending_of, is_blank, number, open_rows


class DataNotFoundError(UserError):
    """The data was not found in any folder."""


@dataclass(frozen=True)
class Place:
    """A folder that is searched for data, and the option or variable that named it."""

    origin: str
    folder: Path


def places(data_dirs: Sequence[Path] = ()) -> tuple[Place, ...]:
    """Returns the folders that are searched for data, in order.

    `STSBENCH_DATA` lists folders as PATH does. If it is empty, the clone's folder is skipped, too.

    Args:
        data_dirs: the folders of this call, which come first.
    """
    named = [Place("--data-dir", Path(folder).expanduser()) for folder in data_dirs]
    variable = os.environ.get("STSBENCH_DATA")
    names = variable.split(os.pathsep) if variable else []
    named += [Place("STSBENCH_DATA", Path(name).expanduser()) for name in names if name]
    for place in named:
        if not place.folder.is_dir():
            raise UserError(
                f"{place.origin} names {place.folder}, which is not a folder: "
                "name the folder with the data (in SentEval's layout the one with `downstream/` in it)."
            )
    checkout = None if variable == "" else checkout_data()
    clone = [Place("checkout", checkout)] if checkout is not None else []
    return (*named, *clone, Place("cache", data_cache()))


def checkout_data() -> Path | None:
    """Returns the folder `data` of a clone of stsbench, from any working folder; None for an installed wheel."""
    folder = Path(str(files("stsbench"))).parent
    is_clone = (folder / "pyproject.toml").is_file() and (folder / "data").is_dir()
    return folder / "data" if is_clone else None


def data_cache() -> Path:
    """Returns the folder of downloaded data."""
    return cache_dir(own=True) / "data"


def root_in(place: Place, source: Source, paths: Sequence[str]) -> Path | None:
    """Returns the first of the source's roots below `place` with any of `paths`, or None."""
    for layout in source.roots:
        root = place.folder / layout
        if any((root / path).is_file() for path in paths):
            return root
    return None


def find_root(source: Source, paths: Sequence[str], name: str, data_dirs: Sequence[Path] = ()) -> Path:
    """Returns the folder with all of `paths`: the first with any of them, so that two copies are never mixed.

    Args:
        source: the source of the files.
        paths: the files, relative to the source's root.
        name: their name in messages ("STS12").
        data_dirs: see `places`.

    Raises:
        DataNotFoundError: if no place has any of them.
        UserError: if that folder has only some.
    """
    if source.kind == "bundled":
        return bundled_root(source)
    searched = places(data_dirs)
    for place in searched:
        root = root_in(place, source, paths)
        if root is not None:
            absent = next((path for path in paths if not (root / path).is_file()), None)
            if absent is not None:
                raise UserError(
                    f"{name} is incomplete in {root} ({place.origin}): {absent} is missing; "
                    f"put it there, name another folder, or {remedy(source)}."
                )
            return root
    folders = ", ".join(f"{place.folder} ({place.origin})" for place in searched)
    raise DataNotFoundError(f"{name} was not found in {folders}, which lack {paths[0]}: {remedy(source)}.")


def bundled_root(source: Source) -> Path:
    """Returns the folder of a bundled source."""
    return Path(str(files("stsbench.data").joinpath(source.name)))


def remedy(source: Source) -> str:
    """Returns what to do about missing files of a source, as the end of a sentence."""
    if source.kind == "bundled":
        return "it comes with stsbench, so install stsbench again"
    if source.kind == "by-hand":
        return f"get it by hand from {source.address} and set STSBENCH_DATA to its folder"
    by_hand = f"download {source.address} by hand and set STSBENCH_DATA to its folder"
    return f"run `stsbench data get {source.name}`, or {by_hand}"


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
        row: the noun for a row in messages: `pair`.
        columns: the columns to read, in any order; others are ignored.
        unnamed: the columns of TSV or CSV without a header, in order; empty if a header is required.
        absent: what to do if the file does not exist, for messages.
    """

    row: str
    columns: Sequence[Column]
    unnamed: Sequence[str] = ()
    absent: str = "check the path"

    def is_header(self, cells: Sequence[str]) -> bool:
        """Returns whether a first row has column names: that of a text column, or a number's in its place."""
        placed = dict(zip(self.unnamed, cells, strict=False))
        return len(cells) != len(self.unnamed) or any(
            column.matches(placed[column.name]) if column.parse is as_number else any(map(column.matches, cells))
            for column in self.columns
        )


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
    """Reads a table of a user, with the arguments and errors of `open_table`."""
    rows, headers, values = open_table(path, schema, format)
    # Text stays Python's `str`: a sentence may have characters that pandas' own strings cannot hold.
    return UserTable(rows, pd.DataFrame(list(values), columns=["line", *headers], dtype=object), headers)


def open_table(
    path: Path, schema: Schema, format: str = ""
) -> tuple[Rows, Mapping[str, str], Iterator[list[Any]]]:
    """Opens a table of a user as a stream of rows, so that it need not fit into memory.

    Args:
        path: a .tsv, .csv, .jsonl or .parquet file, the first three also with .gz or .zst.
        schema: its columns.
        format: `trec` for a file without a header and with cells separated by whitespace, of any suffix.

    Returns:
        The file's columns and notes, the file's name of each column, and for each row its line and its values.

    Raises:
        UserError: if the file cannot be read, has no rows, lacks a column or has two for one; or with file, line
            and remedy for each row with a wrong cell (the first ten, and how many more).
    """
    require_file(path, absent=schema.absent)
    if not format:
        ending_of(path, TABLES)
    texts = [column.name for column in schema.columns if column.optional and column.parse is as_text]
    is_header = schema.is_header if not format else lambda _: False
    rows = open_rows(path, is_header=is_header, unnamed=schema.unnamed, format=format, optional=texts)
    if not any(rows.columns):
        raise UserError(f"{path} is empty: give one {schema.row} per line, with {_columns_of(schema)}.")
    places = {column: place for column in schema.columns if (place := _place(rows, column, schema)) is not None}
    headers = {column.name: rows.columns[place] for column, place in places.items()}
    return rows, headers, _values(rows, places, schema)


def _values(rows: Rows, places: Mapping[Column, int], schema: Schema) -> Iterator[list[Any]]:
    mistakes, is_empty = list[str](), True
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
            is_empty = False
            yield row
    require_no_mistakes(rows.path, mistakes)
    if is_empty:
        raise UserError(f"{rows.path} has no {schema.row}s: give one per line, with {_columns_of(schema)}.")


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


def require_no_mistakes(path: Path, mistakes: Sequence[str]) -> None:
    """Raises a UserError for the mistakes in a file, if there are any: the first ten, and how many more."""
    if len(mistakes) == 1:
        raise UserError(mistakes[0])
    if mistakes:
        more = len(mistakes) - _MISTAKES_SHOWN
        last = [f"and {more:,} more."] if more > 0 else []
        raise UserError(f"{path} has {len(mistakes):,} mistakes:", *mistakes[:_MISTAKES_SHOWN], *last)
