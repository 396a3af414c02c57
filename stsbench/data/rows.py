"""The rows of a file as a stream: text, TSV, CSV, JSON Lines, JSON and Parquet.

A corpus need not fit into memory. Mistakes are reported with file and line.
"""

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from stsbench.base.errors import UserError
from stsbench.base.files import require_file
from stsbench.base.parsing import parse_json
from stsbench.base.words import suggestion

FORMATS = (".txt", ".tsv", ".csv", ".jsonl", ".parquet")
"""The suffixes of the formats."""

TABLES = FORMATS[1:]
"""The formats with columns."""

PACKED = {".gz": "gzip", ".zst": "zstd"}
"""Compressions by suffix, allowed after every format but Parquet, which is compressed itself."""

NumberedCells = tuple[int, Sequence[object]]
"""The line on which a row begins, from 1 (Parquet: the row), and its cells."""

_NumberedTexts = tuple[int, list[str]]


@dataclass(frozen=True)
class Rows:
    """The rows of a file, which can be read once.

    Attributes:
        path: the file.
        columns: the names of the columns; empty if they have none.
        rows: the line and cells of each row. With named columns, each row has as many cells; a blank line of TSV
            or CSV is a row of empty cells.
        unit: the unit of line numbers: lines, rows of Parquet, or entries of a JSON list.
        notes: assumptions about the file, one sentence each.
    """

    path: Path
    columns: tuple[str, ...]
    rows: Iterator[NumberedCells]
    unit: str = "line"
    notes: tuple[str, ...] = ()

    def at(self, line: int) -> str:
        """Returns the place of a row for a message."""
        return f"{self.path}, {self.unit} {line}"


def open_rows(
    path: Path,
    *,
    is_header: Callable[[Sequence[str]], bool],
    names: Sequence[str] | None = None,
    unnamed: Sequence[str] = (),
    delimiter: str = ",",
    format: str = "",
    optional: Sequence[str] = (),
) -> Rows:
    """Opens a file as a stream of rows.

    Text has one cell per line. CSV is quoted as in spreadsheets; in TSV quotes are text; TREC's files have cells
    separated by whitespace. JSON Lines has one object per line, and its blank lines are skipped. Text is UTF-8,
    with or without a byte-order mark.

    Args:
        path: the file; its suffix gives the format.
        is_header: whether the first row of TSV or CSV has the column names; not called if `names` is given.
        names: the columns to read, in order; by default all.
        unnamed: the columns of TSV or CSV without a header.
        delimiter: the delimiter of CSV.
        format: `tsv`, `csv`, `jsonl`, `json`, `parquet` or `trec`, if the suffix does not give it.
        optional: the names that lines of JSON Lines may lack; their cells are None.
    """
    cells: Iterator[_NumberedTexts]
    match f".{format}" if format else ending_of(path):
        case ".txt":
            if names is not None:
                raise UserError(f"{path} has one sentence per line: it has no columns to name.")
            return Rows(path, (), ((line, [text]) for line, text in text_lines(path)))
        case ".jsonl":
            return _json_lines(path, names, optional)
        case ".json":
            return _json_list(path, names)
        case ".parquet":
            return _parquet(path, names)
        case ".tsv":
            cells = ((line, text.split("\t")) for line, text in text_lines(path))
        case ".trec":
            cells = ((line, text.split()) for line, text in text_lines(path))
        case _:
            cells = _csv_cells(path, delimiter)
    return _delimited(path, cells, is_header, names, unnamed)


def is_blank(cells: Sequence[object]) -> bool:
    """Returns whether a row is a blank line.

    >>> is_blank(["", " "]), is_blank([None])
    (True, False)
    """
    return all(isinstance(cell, str) and not cell.strip() for cell in cells)


def suffix_of(path: Path) -> str:
    """Returns a file's suffix in lower case, without the compression suffix.

    >>> suffix_of(Path("pairs.TSV.gz")), suffix_of(Path("wiki"))
    ('.tsv', '')
    """
    return Path(path.stem if path.suffix.lower() in PACKED else path.name).suffix.lower()


def ending_of(path: Path, formats: Sequence[str] = FORMATS) -> str:
    """Returns `suffix_of` a file; raises a UserError unless it is one of the formats."""
    packed, ending = path.suffix.lower() in PACKED, suffix_of(path)
    if ending not in formats or (packed and ending == ".parquet"):
        unknown = "".join(path.suffixes[-1 - packed :])
        known = f"{', '.join(formats)}; all but Parquet also with {' or '.join(PACKED)}"
        raise UserError(f"{path}: unknown ending {unknown!r}; use {known}.")
    return ending


def text_lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Yields the lines of a text file, compressed or not, with their numbers from 1."""
    for line, whole in _lines_with_ends(path, encoding):
        text = whole.removesuffix("\n").removesuffix("\r")
        # A corpus with such line ends would be a single sentence.
        if line == 1 and "\r" in text:
            raise UserError(f"{path} has line ends of old Macs (CR): save it with LF or CRLF.")
        yield line, text


def _lines_with_ends(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    try:
        with _open(path) as stream:
            # Lines end at the line feed only: other separators of Unicode occur inside sentences.
            for line, data in enumerate(stream, start=1):
                text = data.decode(encoding)
                if "\0" in text:
                    raise UserError(f"{path}, line {line}: NUL byte; save the file as UTF-8 (this may be UTF-16).")
                yield line, text.removeprefix("\ufeff") if line == 1 else text
    except UnicodeDecodeError as error:
        problem = f"byte 0x{data[error.start]:02x} is not {encoding}; save the file as {encoding}"
        raise UserError(f"{path}, line {line}: {problem}.") from error
    except OSError as error:
        raise _unreadable(path, error) from error


def _open(path: Path) -> BinaryIO:
    require_file(path)
    if path.suffix.lower() not in PACKED:
        return path.open("rb")
    import pyarrow as pa

    return io.BufferedReader(pa.input_stream(path.open("rb"), compression=PACKED[path.suffix.lower()]))


def _csv_cells(path: Path, delimiter: str) -> Iterator[_NumberedTexts]:
    # A line end inside quotes belongs to the cell.
    reader = csv.reader((text for _, text in _lines_with_ends(path)), strict=True, delimiter=delimiter)
    line = 1
    try:
        for cells in reader:
            yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise UserError(f"{path}, line {line}: not valid CSV ({error}); fix its quotes.") from error


def _delimited(
    path: Path,
    cells: Iterator[_NumberedTexts],
    is_header: Callable[[Sequence[str]], bool],
    names: Sequence[str] | None,
    unnamed: Sequence[str],
) -> Rows:
    line, first = next(cells, (0, []))
    notes: tuple[str, ...] = ()
    if names is not None or (line and is_header(first)):
        columns = tuple(cell.strip() for cell in first)
    else:
        columns = tuple(unnamed) if line else ()
        cells = chain([(line, first)] if line else [], cells)
        if columns:
            notes = (f"{path.name} has no header: its first line is read as data ({', '.join(columns)}).",)

    def rows() -> Iterator[_NumberedTexts]:
        for line, row in cells:
            if is_blank(row):
                yield line, [""] * (len(columns) or len(first))
            elif columns and len(row) != len(columns):
                expected = f"{len(columns)} columns ({', '.join(columns)})"
                raise UserError(f"{path}, line {line}: expected {expected}, found {len(row)}; fix the line.")
            else:
                yield line, row

    if names is None:
        return Rows(path, columns, rows(), notes=notes)
    places = [_place(path, columns, name) for name in names]
    return Rows(path, tuple(names), ((line, [row[place] for place in places]) for line, row in rows()))


def _place(path: Path, columns: Sequence[str], name: str) -> int:
    if name not in columns:
        raise UserError(f"{path} has no column {name!r}: {suggestion(name, columns)}")
    if list(columns).count(name) > 1:
        raise UserError(f"{path} has several columns {name!r}: rename or delete all but one.")
    return list(columns).index(name)


def _json_lines(path: Path, names: Sequence[str] | None, optional: Sequence[str]) -> Rows:
    def records() -> Iterator[tuple[int, Any]]:
        for line, text in text_lines(path):
            if text.strip():
                try:
                    record = parse_json(text)
                except ValueError as error:
                    reason = getattr(error, "msg", None) or error
                    raise UserError(f"{path}, line {line}: not valid JSON ({reason}); fix the line.") from error
                yield line, dict.fromkeys(optional) | record if isinstance(record, dict) else record

    return _of_records(path, records(), names, "line")


def _json_list(path: Path, names: Sequence[str] | None) -> Rows:
    try:
        entries = parse_json("\n".join(line for _, line in text_lines(path)))
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON ({error}); fix it or get the file again.") from error
    if not isinstance(entries, list):
        raise UserError(f"{path}: expected a JSON list of objects; get the file again.")
    return _of_records(path, iter(list(enumerate(entries, start=1))), names, "entry")


def _of_records(path: Path, records: Iterator[tuple[int, Any]], names: Sequence[str] | None, unit: str) -> Rows:
    first = next(records, None)
    columns = tuple(names or (first[1] if first and isinstance(first[1], dict) else ()))

    def rows() -> Iterator[NumberedCells]:
        for line, record in chain([first] if first else [], records):
            if not isinstance(record, dict):
                raise UserError(f"{path}, {unit} {line}: expected a JSON object; fix the {unit}.")
            differing = [name for name in columns if name not in record]
            if not names:
                differing += [name for name in record if name not in columns]
            if differing:
                problem = f"{differing[0]!r} is missing here or in the first {unit}; use the same names."
                raise UserError(f"{path}, {unit} {line}: {problem}")
            yield line, [record[name] for name in columns]

    return Rows(path, columns, rows(), unit)


def _parquet(path: Path, names: Sequence[str] | None) -> Rows:
    import pyarrow as pa
    import pyarrow.parquet as pq

    require_file(path)
    try:
        # pyarrow takes no path that is not UTF-8.
        with path.open("rb") as stream:
            table = pq.ParquetFile(stream, page_checksum_verification=True).read()
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        reason = (str(error).splitlines() or ["damaged"])[0]
        raise UserError(f"{path} cannot be read as Parquet ({reason}): write it again.") from error
    columns = tuple(names or table.column_names)
    table = table.select([_place(path, table.column_names, name) for name in columns])
    batches = (zip(*(column.to_pylist() for column in batch.columns), strict=True) for batch in table.to_batches())
    return Rows(path, columns, enumerate(chain.from_iterable(batches), start=1), "row")


def read_bytes(path: Path) -> bytes:
    """Returns a file's bytes."""
    require_file(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> UserError:
    reason = getattr(error, "strerror", None) or error
    return UserError(f"cannot read {path}: {reason}; check the path, the file and its permissions.")


def number(text: str) -> float | None:
    """Returns the finite number that a text spells, or None.

    >>> number(" 4.75"), number("nan"), number("1_0"), number("four")
    (4.75, None, None, None)
    """
    try:
        value = float(text)
    except ValueError:
        return None
    # Python reads "1_0" as ten; in a table of scores it is a mistake.
    return value if math.isfinite(value) and "_" not in text else None
