"""The shapes of catalogued files: one function a shape, from the files of a part of the catalogue to rows.

A row holds the text of the files; `stsbench.data.benchmarks` says what it means, a score or a label.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from stsbench.base.errors import UserError
from stsbench.base.files import require_file, sha256_of
from stsbench.data.catalogue import CatalogueFile, CataloguePart, NamedColumns, TextVariant
from stsbench.data.rows import NumberedCells, Rows, decode, number, open_rows, read_bytes, split_lines
from stsbench.data.tables import FileRead

_BETWEEN = re.compile(r"[\t\n]")
"""What stands between two sentences in one cell."""


@dataclass(frozen=True)
class CataloguedLines:
    """A catalogued file as it is here: its hash, what the catalogue says of it, and its lines.

    The lines are empty for a file that is read by the names of its columns.
    """

    path: Path
    lines: list[str]
    sha256: str
    entry: CatalogueFile

    @property
    def read(self) -> FileRead:
        """The account of this file for the record."""
        return FileRead(self.entry.path, self.sha256, self.entry.expected)

    @property
    def problem(self) -> str | None:
        """A sentence saying how the file differs from the catalogued one, or None."""
        if self.entry.expected in {None, self.sha256}:
            return None
        hashes = f"(sha256 {self.entry.sha256[:12]}... expected, {self.sha256[:12]}... found)"
        if not self.lines or self.entry.lines is None:
            how = f"its bytes differ {hashes}"
        elif len(self.lines) != self.entry.lines:
            how = f"{self.entry.lines} lines expected, {len(self.lines)} found"
        else:
            how = f"{self.entry.lines} lines expected and found, but their bytes differ {hashes}"
        return f"{self.path} is not the catalogued file: {how}."

    def at(self, line: int) -> str:
        """Return where a line is, for a message."""
        return f"{self.path}, line {line}"


def read_catalogued(root: Path, entry: CatalogueFile, encoding: str) -> CataloguedLines:
    """Read one catalogued file below `root`."""
    path = root / entry.path
    data = read_bytes(path)
    return CataloguedLines(
        path, split_lines(decode(data, path, encoding)), hashlib.sha256(data).hexdigest(), entry
    )


class PartRead(NamedTuple):
    """A part of the catalogue with its files as they are here, in the catalogue's order."""

    part: CataloguePart
    files: tuple[CataloguedLines, ...]


def read_part(root: Path, part: CataloguePart, variant: TextVariant, task: str) -> PartRead:
    """Return the files of a part below `root`, none of which may be empty."""
    files = []
    for file in part.files:
        if variant.layout == "named":
            path = root / file.path
            require_file(path)
            read, is_empty = CataloguedLines(path, [], sha256_of(path), file), not path.stat().st_size
        else:
            read = read_catalogued(root, file, variant.encoding)
            is_empty = not any(read.lines)
        if is_empty:
            expected = f"{file.lines} lines" if file.lines else "pairs"
            raise UserError(
                f"{read.path} is empty, where {task} has {expected}: get it again (`stsbench data verify "
                f"{task}` says which files are not the catalogued ones)."
            )
        files.append(read)
    return PartRead(part, tuple(files))


class Row(NamedTuple):
    """What a shape's reader reads.

    Attributes:
        where: the file and line, for a message.
        value: the gold score or the label, as the file spells it.
        ratings: the single ratings whose mean the gold score is, where the file has them.
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
    """Yield the rows of a part of a data set, by the shape of its files."""
    return _LAYOUTS[variant.layout](read, variant)


def _from_pairs_and_gold(read: PartRead, variant: TextVariant) -> Iterator[Row]:
    pairs, golds = read.files
    _demand_equal_length(pairs, golds)
    split, subset = read.part.split, read.part.subset
    for (line, cells), gold in zip(_table_cells(pairs, variant), golds.lines, strict=True):
        if gold.strip():
            yield Row(golds.at(line), split, f"{subset}-{line}", gold, cells[0], cells[1], subset)


def _from_table(read: PartRead, variant: TextVariant) -> Iterator[Row]:
    (file,) = read.files
    columns = variant.columns
    assert columns is not None, "the schema demands columns for a table"
    for line, cells in _table_cells(file, variant):
        split = read.part.split if columns.split is None else cells[columns.split]
        yield Row(
            file.at(line),
            split,
            id=f"{split}-{line}" if columns.id is None else cells[columns.id],
            value=cells[columns.value],
            sentence1=cells[columns.sentence1],
            sentence2=None if columns.sentence2 is None else cells[columns.sentence2],
            subset=read.part.subset if columns.subset is None else cells[columns.subset],
            design=None if columns.design is None else cells[columns.design],
        )


def _from_parallel(read: PartRead, _variant: TextVariant) -> Iterator[Row]:
    first, second, labels = read.files
    _demand_equal_length(first, second)
    _demand_equal_length(first, labels)
    split = read.part.split
    rows = zip(first.lines, second.lines, labels.lines, strict=True)
    for line, (sentence1, sentence2, label) in enumerate(rows, start=1):
        yield Row(labels.at(line), split, f"{split}-{line}", label, sentence1, sentence2)


def _from_one_label(read: PartRead, _variant: TextVariant) -> Iterator[Row]:
    (file,) = read.files
    label = str(read.part.label)
    for line, text in enumerate(file.lines, start=1):
        yield Row(file.at(line), read.part.split, f"{label}-{line}", label, text)


def _from_label_first(read: PartRead, _variant: TextVariant) -> Iterator[Row]:
    (file,) = read.files
    split = read.part.split
    for line, text in enumerate(file.lines, start=1):
        label, _, sentence = text.strip().partition(" ")
        yield Row(file.at(line), split, f"{split}-{line}", label.partition(":")[0], sentence)


def _from_named(read: PartRead, variant: TextVariant) -> Iterator[Row]:
    (file,) = read.files
    named = variant.named
    assert named is not None, "the schema demands named columns"
    split, only = read.part.split, read.part.only
    wanted = (named.sentence1, named.sentence2, named.pair, named.value, named.id, *named.raters, *only)
    heads = tuple(dict.fromkeys(name.partition(".")[0] for name in wanted if name))
    table, rows = _read_once(file.path, file.sha256, variant.format, heads, variant.names)
    for line, cells in rows:
        row = _NamedRow(dict(zip(table.columns, cells, strict=True)), table.at(line))
        if any(str(row.cell(column)) != value for column, value in only.items()):
            continue
        sentence1, sentence2 = row.sentences(named)
        ratings = row.ratings(named.raters)
        yield Row(
            row.where,
            split,
            id=str(row.cell(named.id)) if named.id else f"{split}-{line}",
            value=str(row.cell(named.value)) if named.value else str(sum(ratings) / len(ratings)),
            sentence1=sentence1,
            sentence2=sentence2,
            subset=read.part.subset,
            ratings=ratings,
        )


# Several parts may lie in one file: it is read once for all of them.
@lru_cache(maxsize=1)
def _read_once(
    path: Path, _sha256: str, format: str, heads: tuple[str, ...], names: tuple[str, ...]
) -> tuple[Rows, tuple[NumberedCells, ...]]:
    if names:
        table = open_rows(path, is_header=lambda _: False, unnamed=names, format=format)
    else:
        table = open_rows(path, is_header=lambda _: True, names=heads, format=format)
    return table, tuple(table.rows)


class _NamedRow(NamedTuple):
    cells: dict[str, object]
    where: str

    def cell(self, name: str) -> Any:
        """Return a cell, or what a dotted name leads to inside it."""
        value: Any = self.cells
        for step in name.split("."):
            if not isinstance(value, dict) or step not in value:
                raise self.refusal(f"{name!r} is missing")
            value = value[step]
        return value

    def refusal(self, what: str) -> UserError:
        return UserError(f"{self.where}: {what}; mend it or get the file again.")

    def text(self, name: str, *, may_be_empty: bool = False) -> str:
        value = self.cell(name)
        if not isinstance(value, str):
            raise self.refusal(f"{name} is {value!r}, not text")
        if not value.strip() and not may_be_empty:
            raise self.refusal(f"{name} is empty")
        return value

    def sentences(self, named: NamedColumns) -> tuple[str, str]:
        if not named.pair:
            first, second = (
                self.text(name, may_be_empty=named.may_be_empty) for name in (named.sentence1, named.sentence2)
            )
            return first, second
        parts = [part for part in _BETWEEN.split(self.text(named.pair)) if part.strip()]
        if len(parts) != 2:
            raise self.refusal(
                f"{named.pair} holds two sentences with a tab or a line feed between them, here there "
                + ("is one" if len(parts) == 1 else f"are {len(parts)}")
            )
        return parts[0], parts[1]

    def ratings(self, columns: Sequence[str]) -> tuple[float, ...]:
        values = [self.cell(column) for column in columns]
        if len(values) == 1 and isinstance(values[0], list):
            values = values[0]
        ratings = []
        for value in values:
            # bool is a number to Python; as a rating it is a slip.
            rating = None if isinstance(value, bool) else number(str(value))
            if rating is None:
                raise self.refusal(f"the rating {value!r} is not a number")
            ratings.append(rating)
        if columns and not ratings:
            raise self.refusal("there is no rating")
        return tuple(ratings)


_LAYOUTS: dict[str, Callable[[PartRead, TextVariant], Iterator[Row]]] = {
    "pairs-and-gold": _from_pairs_and_gold,
    "table": _from_table,
    "parallel": _from_parallel,
    "one-label": _from_one_label,
    "label-first": _from_label_first,
    "named": _from_named,
}


def _table_cells(file: CataloguedLines, variant: TextVariant) -> Iterator[tuple[int, list[str]]]:
    # Quotes are plain characters here, and a row may have any of several widths.
    for line, text in enumerate(file.lines, start=1):
        cells = text.split("\t")
        if len(cells) not in variant.widths:
            expected = " or ".join(map(str, variant.widths))
            raise UserError(
                f"{file.at(line)}: {expected} tab-separated columns expected, {len(cells)} found; "
                "mend the line or get the file again."
            )
        if line > 1 or not variant.header:
            yield line, cells


def _demand_equal_length(first: CataloguedLines, second: CataloguedLines) -> None:
    if len(first.lines) != len(second.lines):
        raise UserError(
            f"{first.path} has {len(first.lines)} lines but {second.path} has {len(second.lines)}: "
            "they must match line by line, so get both files again."
        )
