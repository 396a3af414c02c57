"""Rows of a file: one reader of text, TSV, CSV, JSON Lines, JSON and Parquet, for corpora and for tables of pairs.

Rows are a stream, so that a corpus need not fit into memory. A mistake in a file is named with its line.
"""

import csv
import gzip
import io
import math
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast

from stsbench.base.errors import UserError
from stsbench.base.files import require_file
from stsbench.base.parsing import parse_json
from stsbench.base.words import suggestion

FORMATS = (".txt", ".tsv", ".csv", ".jsonl", ".parquet")
"""The endings that say what a file holds."""

PACKED = (".gz", ".zst")
"""What may stand behind any of them but Parquet's, which is packed in itself."""

LONGEST_LINE = 1 << 24
"""Bytes of the longest line that is read: longer ones are no sentences, but files without line ends."""

NumberedCells = tuple[int, Sequence[object]]
"""The line that a row begins on, counted from 1 (in Parquet the row's number), and its cells."""

_NumberedTexts = tuple[int, list[str]]


class RowError(UserError):
    """A row that cannot be used: the next one can be read after it."""


@dataclass(frozen=True)
class Rows:
    """The rows of a file, to be read once.

    Attributes:
        path: of the file.
        columns: the names of the cells; empty where nothing names them.
        rows: where columns are named, each has as many cells as there are columns. A line of TSV or CSV without
            any text is a row of empty cells.
        unit: what the numbers of rows count: lines, rows of Parquet, entries of a JSON list.
        notes: what was assumed of the file, a sentence each.
    """

    path: Path
    columns: tuple[str, ...]
    rows: Iterator[NumberedCells]
    unit: str = "line"
    notes: tuple[str, ...] = ()

    def at(self, line: int) -> str:
        """Return where a row is, for a message."""
        return f"{self.path}, {self.unit} {line}"


def open_rows(
    path: Path,
    *,
    is_header: Callable[[Sequence[str]], bool],
    names: Sequence[str] | None = None,
    unnamed: Sequence[str] = (),
    delimiter: str = ",",
    format: str = "",
) -> Rows:
    """Open a file; it is read as its rows are taken.

    Text (.txt) has one cell a line. CSV is as spreadsheets write it, and so is TSV whose quotes are CSV's
    (`_Quotes`); in other TSV, and where `format` says tsv, a quote is text. The first row of either may be a
    header. JSON Lines holds an object a line, Parquet one table. Text is UTF-8, with or without a byte-order mark;
    empty lines of JSON Lines do not count. A list of objects in one JSON text is read too, where `format` says so.

    Args:
        path: of the file, whose ending says its format.
        is_header: whether the first row of TSV or CSV names the columns; asked unless `names` says so.
        names: the columns to read, in this order; None for all.
        unnamed: what the columns of TSV or CSV without a header are called; empty if nobody knows.
        delimiter: what stands between the cells of CSV; some programs write tabs or semicolons.
        format: `tsv`, `csv`, `jsonl`, `json` or `parquet`, for a file whose ending does not say it.
    """
    match f".{format}" if format else ending_of(path):
        case ".txt":
            if names is not None:
                raise UserError(f"{path} is text, one sentence a line: it has no columns to name.")
            return Rows(path, (), ((line, [text]) for line, text in text_lines(path)))
        case ".jsonl":
            return _json_lines(path, names)
        case ".json":
            return _json_list(path, names)
        case ".parquet":
            return _parquet(path, names)
        case ".tsv":
            quotes = _Quotes() if format else _Quotes.of(path)
            plain = ((line, text.split("\t")) for line, text in text_lines(path))
            cells = _csv_cells(path, "\t") if quotes.are_csv else plain
            rows = _delimited(path, cells, is_header, names, unnamed)
            return replace(rows, notes=(*quotes.notes(path), *rows.notes))
        case _:
            return _delimited(path, _csv_cells(path, delimiter), is_header, names, unnamed)


_CELL = re.compile(r'(?:"(?P<inside>[^"]*(?:""[^"]*)*)"|(?P<plain>[^"\t]*))(?:\t|\Z)')
_OPEN_ROW = re.compile(r'(?:(?:"[^"]*(?:""[^"]*)*"|[^"\t]*)\t)*"[^"]*(?:""[^"]*)*')
"""A cell of TSV written as CSV, and a row of such cells whose last goes on in the next line."""


@dataclass
class _Quotes:
    """What the quotes of a TSV are, which the whole file tells.

    Who writes TSV as CSV (Python's csv module, pandas, spreadsheets) puts each cell that holds a quote in quotes
    and doubles those inside. So they are CSV's if no cell has them otherwise, and one is doubled or no text is
    without.

    Attributes:
        doubled: how many cells in quotes have doubled ones inside.
        around: how many other cells are in quotes.
        is_bare: whether a text has a quote in another way.
        is_without: whether a text has none.
    """

    doubled: int = 0
    around: int = 0
    is_bare: bool = False
    is_without: bool = False

    @classmethod
    def of(cls, path: Path) -> "_Quotes":
        """Read a file for its quotes, up to the first one that CSV would not have."""
        quotes, row = cls(), list[str]()
        for _, text in text_lines(path):
            if '"' not in text:
                if row:  # Inside of a cell.
                    row.append(text)
                else:
                    quotes.is_without |= bool(text.strip())
                continue
            row.append(text)
            whole = "\n".join(row)
            if whole.count('"') % 2 == 0:
                quotes._count(whole)
                row.clear()
            elif not _OPEN_ROW.fullmatch(whole):
                quotes.is_bare = True
            if quotes.is_bare:
                return quotes
        quotes.is_bare = bool(row)
        return quotes

    def _count(self, row: str) -> None:
        end = 0
        for cell in _CELL.finditer(row):
            if cell.start() != end:
                break
            end, inside = cell.end(), cell["inside"]
            if inside is None:
                self.is_without |= number(cell["plain"]) is None and bool(cell["plain"].strip())
            elif '"' in inside:
                self.doubled += 1
            else:
                self.around += 1
        self.is_bare = end != len(row)

    @property
    def are_csv(self) -> bool:
        """Whether they are no text."""
        return not self.is_bare and bool(self.doubled or (self.around and not self.is_without))

    def notes(self, path: Path) -> Iterator[str]:
        """Yield what is assumed."""
        if self.are_csv:
            yield f"{path.name} has its quotes as CSV has them: those around a cell are no part of its text."
        elif self.around and not self.is_bare:
            cells = "1 cell" if self.around == 1 else f"{self.around:,} cells"
            yield (
                f"{path.name} has quotes around {cells}, which are read as a part of the text; if they are none, "
                "write it as .csv or .jsonl."
            )


def ending_of(path: Path, formats: Sequence[str] = FORMATS) -> str:
    """Return the ending that says a file's format, in lower case and without that of its packing.

    >>> ending_of(Path("pairs.TSV.gz"))
    '.tsv'
    """
    packed = path.suffix.lower() in PACKED
    ending = Path(path.stem if packed else path.name).suffix.lower()
    if ending not in formats or (packed and ending == ".parquet"):
        unknown = "".join(path.suffixes[-1 - packed :])
        known = f"{', '.join(formats)}; all but Parquet also with {' or '.join(PACKED)}"
        raise UserError(f"{path}: unknown ending {unknown!r}; use {known}.")
    return ending


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a UTF-8 file, packed or not, with their numbers from 1."""
    for line, whole in _lines_with_ends(path):
        text = whole.removesuffix("\n").removesuffix("\r")
        if line == 1 and "\r" in text:
            raise UserError(
                f"{path} ends its lines with carriage returns alone: save it with line feeds (LF or CRLF)."
            )
        yield line, text


def _lines_with_ends(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with _open(path) as stream:
            # Lines end at the line feed alone: other separators of Unicode occur inside sentences.
            for line, data in enumerate(iter(lambda: stream.readline(LONGEST_LINE + 1), b""), start=1):
                if len(data) > LONGEST_LINE:
                    raise UserError(
                        f"{path}, line {line}: longer than {LONGEST_LINE >> 20} MB, which is no sentence; name "
                        "another file, or give this one line ends."
                    )
                text = decode(data, path, "utf-8-sig" if line == 1 else "utf-8", first_line=line)
                if "\0" in text:
                    raise UserError(
                        f"{path}, line {line}: a NUL byte, which no text holds; save the file as UTF-8 (this may "
                        "be UTF-16), or get it again if it was damaged."
                    )
                yield line, text
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from error


def _open(path: Path) -> BinaryIO:
    require_file(path)
    if path.suffix.lower() == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if path.suffix.lower() == ".zst":
        import pyarrow as pa

        return io.BufferedReader(pa.input_stream(path.open("rb"), compression="zstd"))
    return path.open("rb")


def _csv_cells(path: Path, delimiter: str) -> Iterator[_NumberedTexts]:
    # A line end inside quotes is the cell's own; outside of them a carriage return alone ends a row, too.
    pieces = (piece for _, text in _lines_with_ends(path) for piece in io.StringIO(text, newline=""))
    reader = csv.reader(pieces, strict=True, delimiter=delimiter)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            reason = str(error)
            if "field limit" in reason:
                reason = f"a cell of more than {csv.field_size_limit()} characters"
            raise UserError(f"{path}, line {line}: not valid CSV ({reason}); mend its quotes.") from error
        yield line, cells


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
            notes = (
                f"{path.name} has no header: its first line is a row like the others ({', '.join(columns)}).",
            )
    rows = _of_one_width(path, cells, columns, len(first))
    if names is None:
        return Rows(path, columns, rows, notes=notes)
    places = [_place(path, columns, name) for name in names]
    return Rows(path, tuple(names), ((line, [cells[place] for place in places]) for line, cells in rows))


def _of_one_width(
    path: Path, rows: Iterator[_NumberedTexts], columns: Sequence[str], width: int
) -> Iterator[_NumberedTexts]:
    def checked(row: _NumberedTexts) -> _NumberedTexts:
        line, cells = row
        if not any(cell.strip() for cell in cells):
            return line, [""] * (len(columns) or width)
        if columns and len(cells) != len(columns):
            raise RowError(
                f"{path}, line {line}: {len(columns)} columns expected ({', '.join(columns)}), "
                f"{len(cells)} found; mend the line."
            )
        return line, cells

    # A map goes on after a row that raises, as a generator does not.
    return map(checked, rows)


def _place(path: Path, columns: Sequence[str], name: str) -> int:
    if name not in columns:
        raise UserError(f"{path} has no column {name!r}: {suggestion(name, columns)}")
    if list(columns).count(name) > 1:
        raise UserError(f"{path} has several columns {name!r}: rename or delete all but one.")
    return list(columns).index(name)


def _json_lines(path: Path, names: Sequence[str] | None) -> Rows:
    lines = filter(lambda row: row[1].strip(), text_lines(path))

    def parsed(row: tuple[int, str]) -> tuple[int, dict[str, Any]]:
        line, text = row
        try:
            # json keeps the last of two values of one name without a word.
            record = parse_json(text)
        except ValueError as error:
            raise RowError(f"{path}, line {line}: not valid JSON ({_reason(error)}); mend the line.") from error
        if not isinstance(record, dict):
            raise RowError(f"{path}, line {line}: a JSON object expected, one a line; mend the line.")
        return line, record

    return _of_records(path, map(parsed, lines), names, "line")


def _reason(error: ValueError) -> str:
    """Return why a text is not JSON, without the advice of its parser."""
    return getattr(error, "msg", None) or str(error).partition(";")[0]


def _json_list(path: Path, names: Sequence[str] | None) -> Rows:
    text = "\n".join(line for _, line in text_lines(path))
    try:
        entries = parse_json(text)
    except ValueError as error:
        line = getattr(error, "lineno", None)
        where = f"{path}, line {line}" if line else str(path)
        raise UserError(f"{where}: not valid JSON ({_reason(error)}); mend it or get the file again.") from error
    if not isinstance(entries, list):
        raise UserError(f"{path}: a JSON list of objects expected; mend it or get the file again.")
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict):
            raise UserError(f"{path}, entry {number}: a JSON object expected; mend the entry.")
    return _of_records(path, iter(list(enumerate(entries, start=1))), names, "entry")


def _of_records(
    path: Path, records: Iterator[tuple[int, dict[str, Any]]], names: Sequence[str] | None, unit: str
) -> Rows:
    first = next(records, None)
    if first is None:
        return Rows(path, tuple(names or ()), iter(()), unit)
    columns = tuple(names or first[1])

    def checked(row: tuple[int, dict[str, Any]]) -> NumberedCells:
        line, record = row
        missing = [name for name in columns if name not in record]
        if missing:
            which = "" if names else f", which {unit} {first[0]} has"
            raise RowError(f"{path}, {unit} {line}: {missing[0]!r} is missing{which}; add it.")
        if not names and len(record) > len(columns):
            more = next(name for name in record if name not in columns)
            raise RowError(
                f"{path}, {unit} {line}: {more!r} is not in {unit} {first[0]}, which says what is read; give "
                f"all {'lines' if unit == 'line' else 'entries'} the same names."
            )
        return line, [record[name] for name in columns]

    return Rows(path, columns, map(checked, chain([first], records)), unit)


def _parquet(path: Path, names: Sequence[str] | None) -> Rows:
    import pyarrow.parquet as pq

    require_file(path)
    with _told_as_no_parquet(path):
        # Opened here, as pyarrow takes no path that is not UTF-8.
        stream = path.open("rb")
        try:
            table = pq.ParquetFile(stream, page_checksum_verification=True)
        except BaseException:
            stream.close()
            raise
    columns = tuple(names or table.schema_arrow.names)
    for name in columns:
        _place(path, table.schema_arrow.names, name)

    def rows() -> Iterator[NumberedCells]:
        row = 0
        with _told_as_no_parquet(path), stream:
            for batch in table.iter_batches(columns=names and list(names)):
                arrays = [batch.column(name) for name in names] if names else batch.columns
                for cells in zip(*(array.to_pylist() for array in arrays), strict=True):
                    row += 1
                    yield row, cells

    return Rows(path, columns, rows(), "row")


@contextmanager
def _told_as_no_parquet(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = (str(error).splitlines() or ["damaged"])[0]
        raise UserError(f"{path} cannot be read as Parquet ({reason}): write it again.") from error


def read_bytes(path: Path) -> bytes:
    """Return a file's bytes."""
    require_file(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> UserError:
    reason = getattr(error, "strerror", None) or error
    return UserError(f"cannot read {path}: {reason}; check the path, the file and its permissions.")


def decode(data: bytes, path: Path, encoding: str, *, first_line: int = 1) -> str:
    """Decode a file's bytes, or those from line `first_line` on."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = first_line + data.count(b"\n", 0, error.start)
        byte, name = data[error.start], encoding.removesuffix("-sig")
        where = f"{path}, line {line}"
        raise UserError(f"{where}: byte 0x{byte:02x} is not {name}; save the file as {name}.") from error


def split_lines(text: str) -> list[str]:
    r"""Split on the line feed alone, dropping one carriage return before it.

    `str.splitlines` would also split at characters that occur inside sentences (U+0085, U+2028, ...).

    >>> split_lines("one\u2028still one\r\ntwo\n")
    ['one\u2028still one', 'two']
    """
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def number(text: str) -> float | None:
    """Return the finite number that `text` spells, or None.

    >>> number(" 4.75"), number("nan"), number("1_0"), number("four")
    (4.75, None, None, None)
    """
    try:
        value = float(text)
    except ValueError:
        return None
    # Python reads "1_0" as ten; in a table of scores it is a slip.
    return value if math.isfinite(value) and "_" not in text else None
