"""A person's own table as rows with line numbers: TSV, CSV, JSON Lines, Parquet."""

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from stsbench.base.errors import UserError
from stsbench.data.lines import decode, json_object, number, read_bytes, split_lines

HEADERLESS = ("sentence1", "sentence2", "score")
"""What the columns of a file without a header are: exactly these three, in this order."""

Row = tuple[int, list[object]]


@dataclass(frozen=True)
class UserTable:
    """A table as the person wrote it.

    `rows` are (line, cells), each with as many cells as `columns`; a line is counted from 1 in the file, in
    Parquet it is the row's number.
    """

    path: Path
    columns: tuple[str, ...]
    rows: list[Row]

    def at(self, line: int) -> str:
        """Return where `line` is, for a message."""
        return f"{self.path}, {'row' if self.path.suffix.lower() == '.parquet' else 'line'} {line}"


def read_user_table(path: Path) -> UserTable:
    """Read a table by its ending: .tsv, .csv, .jsonl or .parquet.

    In TSV quotes are plain characters, in CSV they are as spreadsheets write them. The first row of either is
    its header, unless it has three cells of which the third is a number: then the columns are sentence1,
    sentence2, score. Text is UTF-8, with or without a byte-order mark. Empty lines at the end do not count.

    Raises:
        UserError: if there is no such file, its ending is unknown, it is empty or cannot be parsed.
    """
    if not path.is_file():
        raise UserError(f"there is no file {path}: check the path given to --data.")
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise UserError(f"{path}: unknown ending {path.suffix!r}; use {', '.join(_READERS)}.")
    if path.stat().st_size == 0:
        raise UserError(f"{path} is empty: give it one pair a line, with columns {', '.join(HEADERLESS)}.")
    return reader(path)


def _read_tsv(path: Path) -> UserTable:
    rows = ((line, text.split("\t")) for line, text in enumerate(_text_lines(path), start=1))
    return _with_header(path, rows)


def _read_csv(path: Path) -> UserTable:
    # newline="" leaves line ends inside quotes as they are.
    text = io.StringIO(decode(read_bytes(path), path, "utf-8-sig"), newline="")
    return _with_header(path, _csv_rows(path, text))


def _csv_rows(path: Path, text: TextIO) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(text, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise UserError(f"{path}, line {line}: not valid CSV ({error}); mend its quotes.") from error
        yield line, cells


def _with_header(path: Path, lines: Iterator[tuple[int, list[str]]]) -> UserTable:
    rows = list(lines)
    while rows and not any(cell.strip() for cell in rows[-1][1]):
        rows.pop()
    if not rows:
        raise UserError(f"{path} is empty: give it one pair a line, with columns {', '.join(HEADERLESS)}.")
    columns: tuple[str, ...] = HEADERLESS
    first = rows[0][1]
    if not (len(first) == len(HEADERLESS) and _is_number(first[2])):
        columns = tuple(cell.strip() for cell in first)
        rows = rows[1:]
    for line, cells in rows:
        if len(cells) != len(columns):
            raise UserError(
                f"{path}, line {line}: {len(columns)} columns expected ({', '.join(columns)}), "
                f"{len(cells)} found; mend the line."
            )
    return UserTable(path, columns, [(line, list(cells)) for line, cells in rows])


def _is_number(text: str) -> bool:
    # "nan" and "inf" are scores gone wrong, not names of a column.
    return number(text) is not None or text.strip().casefold().lstrip("+-") in {"nan", "inf", "infinity"}


def _read_jsonl(path: Path) -> UserTable:
    columns: tuple[str, ...] = ()
    rows: list[Row] = []
    for line, text in enumerate(_text_lines(path), start=1):
        record = json_object(text, path, line, "pair")
        columns = columns or tuple(record)
        missing = [name for name in columns if name not in record]
        if missing:
            raise UserError(f"{path}, line {line}: {missing[0]!r} is missing, which line 1 has; add it.")
        rows.append((line, [record[name] for name in columns]))
    return UserTable(path, columns, rows)


def _read_parquet(path: Path) -> UserTable:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path} cannot be read as Parquet ({reason}): write it again.") from error
    cells = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return UserTable(path, tuple(table.column_names), [(row, list(values)) for row, values in enumerate(cells, 1)])


def _text_lines(path: Path) -> list[str]:
    lines = split_lines(decode(read_bytes(path), path, "utf-8-sig"))
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise UserError(f"{path} is empty: give it one pair a line, with columns {', '.join(HEADERLESS)}.")
    return lines


_READERS: dict[str, Callable[[Path], UserTable]] = {
    ".tsv": _read_tsv,
    ".csv": _read_csv,
    ".jsonl": _read_jsonl,
    ".parquet": _read_parquet,
}
