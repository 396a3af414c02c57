"""From catalogued files to rows: what the readers of scored and of labelled data share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stsbench.datasets.catalogue import source
from stsbench.datasets.lines import CataloguedLines, read_catalogued
from stsbench.datasets.locate import find_root
from stsbench.datasets.schema import DataSet, Part, TextVariant
from stsbench.datasets.tables import FileRead, Status, combined_sha256
from stsbench.foundation.errors import UserError


@dataclass(frozen=True)
class PartRead:
    """A part of the catalogue with its files as they were found, in the catalogue's order."""

    part: Part
    files: tuple[CataloguedLines, ...]


@dataclass(frozen=True)
class Account:
    """What a table says of the files that it was read from."""

    status: Status
    sha256: str
    files: tuple[FileRead, ...]
    problems: tuple[str, ...]


def read_parts(
    entry: DataSet, variant: TextVariant, parts: Sequence[Part], data_dirs: Sequence[Path]
) -> list[PartRead]:
    """Find and read the files of some parts of a data set.

    Raises:
        UserError: if they are not found, incomplete, unreadable or wrongly encoded.
    """
    paths = [file.path for part in parts for file in part.files]
    root = find_root(source(variant.source), paths, entry.task, data_dirs)
    return [
        PartRead(part, tuple(read_catalogued(root, file, variant.encoding) for file in part.files))
        for part in parts
    ]


def account(task: str, reads: Sequence[PartRead], counts: Sequence[int]) -> Account:
    """Hold what was read against the catalogue.

    Args:
        task: the task's name, for the messages.
        reads: the parts read.
        counts: how many pairs or items each part gave, in the same order.
    """
    found = [file for read in reads for file in read.files]
    problems = [file.problem for file in found if file.problem]
    for read, count in zip(reads, counts, strict=True):
        if count != read.part.count:
            name = " ".join(filter(None, (task, read.part.subset, read.part.split)))
            problems.append(f"{name}: {read.part.count} items expected, {count} found.")
    files = tuple(file.read for file in found)
    return Account("modified" if problems else "verified", combined_sha256(files), files, tuple(problems))


def table_rows(file: CataloguedLines, variant: TextVariant) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of each row of a tab-separated file; quotes are plain characters.

    Raises:
        UserError: naming the file and line of a row with a number of columns that it may not have.
    """
    for line, text in enumerate(file.lines, start=1):
        cells = text.split("\t")
        if len(cells) not in variant.widths:
            expected = " or ".join(map(str, variant.widths))
            raise UserError(
                f"{file.path}, line {line}: {expected} tab-separated columns expected, {len(cells)} found; "
                "mend the line or get the file again."
            )
        if line > 1 or not variant.header:
            yield line, cells


def demand_equal_length(one: CataloguedLines, other: CataloguedLines) -> None:
    """Raise unless two files that belong together line by line have as many lines as each other.

    Raises:
        UserError: naming both files with their counts.
    """
    if len(one.lines) != len(other.lines):
        raise UserError(
            f"{one.path} has {len(one.lines)} lines but {other.path} has {len(other.lines)}: "
            "they must match line by line, so get both files again."
        )
