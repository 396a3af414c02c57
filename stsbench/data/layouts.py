"""The layouts of catalogued files: a function per layout turns files into rows.

Rows have the text of the files; `stsbench.data.benchmarks` converts it into scores and labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from stsbench.base.errors import UserError
from stsbench.base.files import sha256_of
from stsbench.data.catalogue import CatalogueFile, CataloguePart, Columns, TextVariant
from stsbench.data.rows import number, open_rows, text_lines
from stsbench.data.tables import FileRead

_GET_AGAIN = "fix it or get the file again"


@dataclass(frozen=True)
class CataloguedLines:
    """A catalogued file: its hash, its entry in the catalogue, and its lines (none in the layout `named`)."""

    path: Path
    lines: list[str]
    sha256: str
    entry: CatalogueFile

    @property
    def read(self) -> FileRead:
        """The file for the record."""
        return FileRead(self.entry.path, self.sha256, self.entry.sha256)

    @property
    def problem(self) -> str | None:
        """A sentence on how the file differs from the catalogued one, or None."""
        if self.entry.sha256 in {None, self.sha256}:
            return None
        how = f"expected sha256 {self.entry.sha256[:12]}..., found {self.sha256[:12]}..."
        if self.lines and self.entry.lines not in {None, len(self.lines)}:
            how = f"expected {self.entry.lines} lines, found {len(self.lines)}"
        return f"{self.path} is not the catalogued file: {how}."

    def at(self, line: int) -> str:
        """Returns the place of a line for a message."""
        return f"{self.path}, line {line}"


class PartRead(NamedTuple):
    """A part of the catalogue with its files, in the catalogue's order."""

    part: CataloguePart
    files: tuple[CataloguedLines, ...]


def read_part(root: Path, part: CataloguePart, variant: TextVariant) -> PartRead:
    """Reads the files of a part below `root`, which must not be empty."""
    files = []
    for entry in part.files:
        path = root / entry.path
        if not path.stat().st_size:
            raise UserError(f"{path} is empty: get it again.")
        lines = [] if variant.layout == "named" else [text for _, text in text_lines(path, variant.encoding)]
        files.append(CataloguedLines(path, lines, sha256_of(path), entry))
    return PartRead(part, tuple(files))


class Row(NamedTuple):
    """A row of a catalogued file.

    Attributes:
        where: the file and line, for messages.
        value: the gold score or the label, as spelled in the file.
        ratings: the single ratings whose mean is the gold score, if the file has them.
    """

    where: str
    split: str
    id: str
    value: str
    sentence1: str
    sentence2: str | None = None
    subset: str | None = None
    design: str | None = None
    ratings: tuple[float, ...] = ()


def rows_of(read: PartRead, variant: TextVariant) -> Iterator[Row]:
    """Yields the rows of a part of a data set."""
    return _LAYOUTS[variant.layout](read, variant)


def _from_pairs_and_gold(read: PartRead, variant: TextVariant) -> Iterator[Row]:
    pairs, golds = read.files
    _require_equal_length(pairs, golds)
    subset = read.part.subset
    for (line, cells), gold in zip(_table_cells(pairs, variant), golds.lines, strict=True):
        if gold.strip():
            yield Row(golds.at(line), read.part.split, f"{subset}-{line}", gold, cells[0], cells[1], subset)


def _from_table(read: PartRead, variant: TextVariant) -> Iterator[Row]:
    (file,) = read.files
    for line, cells in _table_cells(file, variant):
        yield _row(dict(enumerate(cells)), file.at(line), line, read.part, variant.columns)


def _from_parallel(read: PartRead, _variant: TextVariant) -> Iterator[Row]:
    first, second, labels = read.files
    _require_equal_length(first, second)
    _require_equal_length(first, labels)
    split = read.part.split
    rows = zip(first.lines, second.lines, labels.lines, strict=True)
    for line, (sentence1, sentence2, label) in enumerate(rows, start=1):
        yield Row(labels.at(line), split, f"{split}-{line}", label, sentence1, sentence2)


def _from_lines(read: PartRead, _variant: TextVariant) -> Iterator[Row]:
    (file,) = read.files
    for line, text in enumerate(file.lines, start=1):
        label, sentence, block = str(read.part.label), text, str(read.part.label)
        if read.part.label is None:
            start, _, sentence = text.strip().partition(" ")
            label, block = start.partition(":")[0], read.part.split
        yield Row(file.at(line), read.part.split, f"{block}-{line}", label, sentence)


def _from_named(read: PartRead, variant: TextVariant) -> Iterator[Row]:
    (file,) = read.files
    used = [name for name in variant.columns.model_dump().values() if isinstance(name, str)]
    heads = dict.fromkeys(name.partition(".")[0] for name in (*used, *variant.columns.raters, *read.part.only))
    names = None if variant.names else list(heads)
    table = open_rows(
        file.path, is_header=lambda _: False, names=names, unnamed=variant.names, format=variant.format
    )
    for line, values in table.rows:
        where, cells = table.at(line), dict(zip(table.columns, values, strict=True))
        if all(str(_cell(cells, column, where)) == value for column, value in read.part.only.items()):
            yield _row(cells, where, line, read.part, variant.columns)


def _row(cells: Mapping[Any, object], where: str, line: int, part: CataloguePart, columns: Columns) -> Row:
    def cell(column: int | str | None, default: object) -> Any:
        return default if column is None else _cell(cells, column, where)

    split = cell(columns.split, part.split)
    sentences = _sentences(cells, columns, where)
    ratings = _ratings([_cell(cells, name, where) for name in columns.raters], where)
    return Row(
        where,
        split,
        id=str(cell(columns.id, f"{split}-{line}")),
        value=str(cell(columns.value, sum(ratings) / max(1, len(ratings)))),
        sentence1=sentences[0],
        sentence2=sentences[1] if len(sentences) > 1 else None,
        subset=cell(columns.subset, part.subset),
        design=cell(columns.design, None),
        ratings=ratings,
    )


def _cell(cells: Mapping[Any, object], column: int | str, where: str) -> Any:
    """Returns a cell, or the value at a dotted name inside it."""
    if isinstance(column, int):
        return cells[column]
    value: Any = cells
    for step in column.split("."):
        if not isinstance(value, dict) or step not in value:
            raise UserError(f"{where}: {column!r} is missing; {_GET_AGAIN}.")
        value = value[step]
    return value


def _sentences(cells: Mapping[Any, object], columns: Columns, where: str) -> list[str]:
    texts = []
    for column in (columns.pair, columns.sentence1, columns.sentence2):
        if column is not None:
            text = _cell(cells, column, where)
            may_be_empty = columns.may_be_empty or isinstance(column, int)
            if not isinstance(text, str) or not (text.strip() or may_be_empty):
                raise UserError(f"{where}: {column} is {text!r}, not a sentence; {_GET_AGAIN}.")
            texts.append(text)
    if columns.pair:
        texts = [part for part in re.split(r"[\t\n]", texts[0]) if part.strip()]
        if len(texts) != 2:
            raise UserError(
                f"{where}: expected two sentences in {columns.pair}, with a tab or line feed between them, found "
                f"{len(texts)}; {_GET_AGAIN}."
            )
    return texts


def _ratings(cells: Sequence[Any], where: str) -> tuple[float, ...]:
    values = cells[0] if len(cells) == 1 and isinstance(cells[0], list) else cells
    ratings = tuple(number(str(value)) for value in values)
    if None in ratings or (cells and not ratings):
        raise UserError(
            f"{where}: expected ratings, found {', '.join(map(repr, values)) or 'none'}; {_GET_AGAIN}."
        )
    return tuple(rating for rating in ratings if rating is not None)


_LAYOUTS: dict[str, Callable[[PartRead, TextVariant], Iterator[Row]]] = {
    "pairs-and-gold": _from_pairs_and_gold,
    "table": _from_table,
    "parallel": _from_parallel,
    "one-label": _from_lines,
    "label-first": _from_lines,
    "named": _from_named,
}


def _table_cells(file: CataloguedLines, variant: TextVariant) -> Iterator[tuple[int, list[str]]]:
    # Quotes are plain characters here, and rows may have several widths.
    for line, text in enumerate(file.lines, start=1):
        cells = text.split("\t")
        if len(cells) not in variant.widths:
            expected = " or ".join(map(str, variant.widths))
            raise UserError(
                f"{file.at(line)}: expected {expected} tab-separated columns, found {len(cells)}; {_GET_AGAIN}."
            )
        if line > 1 or not variant.header:
            yield line, cells


def _require_equal_length(first: CataloguedLines, second: CataloguedLines) -> None:
    if len(first.lines) != len(second.lines):
        raise UserError(
            f"{first.path} has {len(first.lines)} lines but {second.path} has {len(second.lines)}: get both again."
        )
