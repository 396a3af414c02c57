"""Find inconsistencies in the published numbers: averages, differences, values that disagree.

`find_conflicts` runs all checks; `conflicts_page.py` writes the page.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from stsbench.published.catalogue import (
    PublishedRow,
    checkpoints,
    logged_dev_scores,
    logged_systems,
    logged_test_scores,
    papers,
    rows_of,
    tables,
)
from stsbench.published.lookup import quantity
from stsbench.published.schema import PublishedCell, PublishedTable

Kind = Literal["average", "difference", "prints", "edition", "granularity", "header", "checkpoint", "log"]

KINDS: dict[Kind, str] = {
    "average": "A printed average is not the mean of its printed cells",
    "difference": "A printed difference is not the difference of the printed cells",
    "prints": "The same score is printed with several values",
    "edition": "Preprint and final paper differ",
    "granularity": "No whole number of correct answers gives the printed accuracy",
    "header": "A column header names another data set",
    "checkpoint": "A checkpoint's listed average differs from its paper",
    "log": "A training log disagrees with its paper",
}

TEST_ITEMS = {"SST2": 1821, "TREC": 500, "MRPC": 1725}
"""Sizes of the transfer tasks' test sets: an accuracy is a whole number of items."""

# Below this, two numbers of a few digits are the same.
_NOISE = 1e-9

_DATA_SET = re.compile(r"[A-Z][A-Za-z]*-?[A-Z0-9]+")
_SAME_HEAD = {"SST": "SST2", "SST-2": "SST2", "STSBenchmark": "STS-B"}
_LOGGED_NAMES = {"STS-B": "STSBenchmark", "SICK-R": "SICKRelatedness"}


@dataclass(frozen=True)
class Conflict:
    """A published number that conflicts with others.

    Attributes:
        kind: one of `KINDS`.
        table: name of the table.
        row: name of the row; empty for a column.
        column: name of the column.
        file: the text that it was read from.
        line: its line; 0 if there is none.
        printed: what is printed.
        expected: what it should be, or what is printed elsewhere.
        message: the conflict in words.
    """

    kind: Kind
    table: str
    row: str
    column: str
    file: str
    line: int
    printed: str
    expected: str
    message: str


def find_conflicts(given: Iterable[PublishedTable] | None = None) -> list[Conflict]:
    """Return all conflicts in the published numbers.

    An average must be the mean of its cells to the printed digits, and a difference that of its cells. Two prints
    of the same score must agree, and a log must agree with its paper.

    Args:
        given: the tables to check; by default all, and the checkpoints.

    Returns:
        The conflicts in the order of `KINDS`, then of the tables.

    >>> [conflict.row for conflict in find_conflicts() if conflict.kind == "average"][:3]
    ['sbert-base', 'bert-base-avg', 'bert-base-avg']
    """
    chosen = list(tables().values() if given is None else given)
    rows = [row for table in chosen for row in rows_of(table)]
    conflicts = [*_check_prints(rows)]
    for table in chosen:
        conflicts += _check_heads(table)
    for row in rows:
        conflicts += [
            *_check_arithmetic(row),
            *_check_granularity(row),
            *_check_log(row),
        ]
    if given is None:
        conflicts += _check_checkpoints(rows)
    order = list(KINDS)
    return sorted(conflicts, key=lambda conflict: order.index(conflict.kind))


# Averages, differences and shares of test items.


def _check_arithmetic(row: PublishedRow) -> Iterator[Conflict]:
    """Yield the averages of a row that are not the mean of their cells, and the differences that are none."""
    cells = {cell.column: cell for cell in row.cells}
    for column in row.table.columns:
        cell = cells.get(column.name)
        if cell is None or cell.value is None:
            continue
        if column.average_of:
            yield from _check_average(row, cell, [cells.get(name) for name in column.average_of])
        if column.difference_of:
            yield from _check_difference(row, cell, cells.get(column.difference_of), column.minus)


def _check_average(
    row: PublishedRow, cell: PublishedCell, parts: list[PublishedCell | None]
) -> Iterator[Conflict]:
    present = [part for part in parts if part is not None and part.value is not None]
    if len(present) < len(parts) or cell.value is None:
        return
    mean = _mean(present)
    decimals = _digits(row)
    if _rounds_to(mean, cell.value, decimals):
        return
    # The mean of unrounded scores can be off by the rounding of the cells, and by its own.
    explained = abs(mean - cell.value) <= 10.0**-decimals
    remark = "; averaging before rounding can explain this" if explained else _swap(present, cell, decimals)
    message = f"mean of the cells: {mean:.3f}{remark}"
    yield _about("average", cell, f"{mean:.3f}", message)


def _swap(parts: list[PublishedCell], average: PublishedCell, decimals: int) -> str:
    """Say which cell, with two neighbouring digits the other way round, would make the average right."""
    for part in parts:
        text = part.printed
        for place in range(len(text) - 1):
            pair = text[place : place + 2]
            swapped = text[:place] + pair[::-1] + text[place + 2 :]
            if not pair.isdigit() or part.value is None or average.value is None:
                continue
            mean = _mean(parts) + (float(swapped) - part.value) / len(parts)
            if _rounds_to(mean, average.value, decimals):
                return f"; correct if {part.column} were {swapped} instead of {text}"
    return ""


def _mean(cells: list[PublishedCell]) -> float:
    return math.fsum(cell.value for cell in cells if cell.value is not None) / len(cells)


def _check_difference(
    row: PublishedRow, cell: PublishedCell, minuend: PublishedCell | None, minus: str
) -> Iterator[Conflict]:
    if minuend is None or minuend.value is None or cell.value is None:
        return
    if minus:
        candidates = list(row.cells)
    else:
        bases = [base for base in rows_of(row.table) if base.row.name == row.row.baseline]
        candidates = [candidate for base in bases for candidate in base.cells]
    wanted = minus or minuend.column
    for reference in candidates:
        if reference.column != wanted or reference.value is None:
            continue
        difference = minuend.value - reference.value
        if not _rounds_to(difference, cell.value, cell.decimals):
            expected = f"{difference:+.{cell.decimals}f}"
            message = f"{minuend.printed} - {reference.printed} = {expected}"
            yield _about("difference", cell, expected, message)


def _check_granularity(row: PublishedRow) -> Iterator[Conflict]:
    """Yield the accuracies on a test set that no whole number of right answers gives.

    Such a value is an average over runs or folds, or a misprint.
    """
    decimals = _digits(row)
    for cell in row.cells:
        items = TEST_ITEMS.get(cell.setting.task)
        if (
            items is None
            or cell.score is None
            or cell.setting.metric != "accuracy"
            or cell.setting.split != "test"
        ):
            continue
        nearest = round(cell.score / 100 * items)
        share = 100 * nearest / items
        if not _rounds_to(share, cell.score, decimals):
            message = f"nearest {share:.2f}"
            yield _about("granularity", cell, f"{share:.2f}", message)


def _digits(row: PublishedRow) -> int:
    """Return how many digits after the point a row really has.

    >>> from stsbench.published.catalogue import row
    >>> _digits(row("esimcse-coling2022-3/mirror-bert-base"))  # 69.10 81.10 73.00 ...
    1
    """
    return max((len(cell.printed.partition(".")[2].rstrip("0")) for cell in row.cells), default=0)


def _rounds_to(value: float, printed: float, decimals: int) -> bool:
    """Return whether a number was rightly printed; a tie may have been rounded either way.

    >>> _rounds_to(74.5429, 74.54, 2), _rounds_to(74.86, 74.89, 2), _rounds_to(0.125, 0.13, 2)
    (True, False, True)
    """
    return abs(value - printed) <= 0.5 * 10.0**-decimals + _NOISE


# Several values for the same score.


def _check_prints(rows: Iterable[PublishedRow]) -> Iterator[Conflict]:
    """Yield a conflict for each score that is printed with several values."""
    same: dict[tuple[str, ...], list[PublishedCell]] = defaultdict(list)
    for row in rows:
        for cell in row.cells:
            key = quantity(cell)
            if key is not None and cell.value is not None:
                same[key].append(cell)
    for (base, *_), cells in same.items():
        editions = {name: _values([cell for cell in cells if cell.system == name]) for name in _names(cells)}
        for values in editions.values():
            if len(values) > 1:
                yield _several_values("prints", values)
        final = editions.pop(base, [])
        for values in editions.values():
            if final and values and not _agree(final[0][0], values[0][0]):
                yield _several_values("edition", [final[0], values[0]])


def _agree(first: PublishedCell, second: PublishedCell) -> bool:
    """Return whether two cells can be prints of one number: 66.6 is 66.58 rounded further."""
    if first.score is None or second.score is None:
        return True
    if first.decimals == second.decimals and first.setting.unit == second.setting.unit:
        return abs(first.score - second.score) < _NOISE
    return abs(first.score - second.score) <= max(first.rounding, second.rounding) + _NOISE


def _names(cells: list[PublishedCell]) -> list[str]:
    return list(dict.fromkeys(cell.system for cell in cells))


def _values(cells: list[PublishedCell]) -> list[list[PublishedCell]]:
    """Group cells by the value they print, the most digits first in a group."""
    groups: list[list[PublishedCell]] = []
    for cell in sorted(cells, key=lambda cell: -cell.decimals):
        for group in groups:
            if _agree(group[0], cell):
                group.append(cell)
                break
        else:
            groups.append([cell])
    return groups


def _several_values(kind: str, values: list[list[PublishedCell]]) -> Conflict:
    message = "; ".join(f"{group[0].printed} in {', '.join(map(_place, group))}" for group in values)
    others = ", ".join(group[0].printed for group in values[1:])
    return _about("edition" if kind == "edition" else "prints", values[0][0], others, message)


def _place(cell: PublishedCell) -> str:
    return f"{cell.table} (line {cell.line})" if cell.line else cell.table


# Headers, training logs and checkpoints.


def _check_heads(table: PublishedTable) -> Iterator[Conflict]:
    for column in table.columns:
        task, head = column.setting.task, column.label
        if not _DATA_SET.fullmatch(head) or not _DATA_SET.fullmatch(task) or _SAME_HEAD.get(head, head) == task:
            continue
        file, line = papers()[table.paper].file, table.caption_line or 0
        message = f"holds {task}"
        yield Conflict("header", table.name, "", column.name, file, line, head, task, message)


def _check_log(row: PublishedRow) -> Iterator[Conflict]:
    if row.system is None or row.system.name not in logged_systems():
        return
    log = logged_test_scores(row.system.name)
    keys = zip(log["task"], log["subset"], strict=True)
    logged = {key: 100 * float(score) for key, score in zip(keys, log["spearman"], strict=True)}
    for cell in row.cells:
        setting = cell.setting
        if setting.metric != "spearman" or setting.variant or setting.group or cell.score is None:
            continue
        part = setting.split if setting.task in _LOGGED_NAMES else "ALL"
        score = logged.get((_LOGGED_NAMES.get(setting.task, setting.task), part))
        source = "the training log"
        if setting.task == "STS-B" and setting.split == "dev":
            # The scores at the end of the log are of the best checkpoint: the dev curve must reach them.
            score = 100 * float(logged_dev_scores(row.system.name)["STS-B"].max())
            source = "the best step of the training log"
        if score is not None and abs(score - cell.score) > cell.rounding + _NOISE:
            yield _about("log", cell, f"{score:.2f}", f"{source} has {score:.2f}")


def _check_checkpoints(rows: list[PublishedRow]) -> Iterator[Conflict]:
    by_name = {row.name: row for row in rows}
    for entry in checkpoints().values():
        for row in (by_name[name] for name in entry.expected if name in by_name):
            for cell in row.cells:
                listed = entry.listed_average
                if cell.setting.task != "Avg. STS" or listed is None or cell.value is None:
                    continue
                if not _rounds_to(listed, cell.value, _digits(row)):
                    message = f"{entry.listed_source} lists {listed:.2f} for {entry.hub}"
                    yield _about("checkpoint", cell, f"{listed:.2f}", message)


def _about(kind: Kind, cell: PublishedCell, expected: str, message: str) -> Conflict:
    """Return a conflict about one cell."""
    return Conflict(
        kind, cell.table, cell.row, cell.column, cell.file, cell.line or 0, cell.printed, expected, message
    )
