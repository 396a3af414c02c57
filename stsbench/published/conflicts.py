"""What a finding is: something in the published numbers that does not add up."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from stsbench.published.catalogue import PublishedRow, checkpoints, papers, rows_of, systems, tables
from stsbench.published.measured import logged_dev_scores, logged_systems, logged_test_scores
from stsbench.published.schema import Cell, PublishedTable

Kind = Literal["average", "difference", "prints", "edition", "granularity", "header", "checkpoint", "log", "entry"]

KINDS: dict[Kind, str] = {
    "average": "A printed average is not the mean of its printed cells",
    "difference": "A printed difference is not the difference of the printed cells",
    "prints": "One thing is printed with several values",
    "edition": "A preprint's value and the final paper's",
    "granularity": "No whole number of right answers on the test set gives the printed accuracy",
    "header": "A column head names no data set, or another one",
    "checkpoint": "The average listed for a checkpoint is not its paper's",
    "log": "A training log disagrees with its paper",
    "entry": "A mistake in our own entries",
}

NOISE = 1e-9
"""Below this, two numbers of a few digits are the same."""


@dataclass(frozen=True)
class Finding:
    """Something that does not add up.

    Attributes:
        kind: one of `KINDS`.
        table: name of the table.
        row: name of the row; empty where a column is meant.
        column: name of the column.
        file: the text it was read from.
        line: the line in it; 0 where there is none.
        printed: what is printed.
        expected: what it should be, or what is printed elsewhere.
        message: the finding in words.
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


def finding(kind: Kind, cell: Cell, expected: str, message: str) -> Finding:
    """Return a finding about one cell."""
    return Finding(
        kind, cell.table, cell.row, cell.column, cell.file, cell.line, as_printed(cell), expected, message
    )


def as_printed(cell: Cell) -> str:
    """Return a cell's number with as many digits as were printed; empty where there is none."""
    return "" if cell.value is None else f"{cell.value:.{cell.decimals}f}"


def rounds_to(value: float, printed: float, decimals: int) -> bool:
    """Return whether a number was rightly printed; a tie may have been rounded either way.

    >>> rounds_to(74.5429, 74.54, 2), rounds_to(74.86, 74.89, 2), rounds_to(0.125, 0.13, 2)
    (True, False, True)
    """
    return abs(value - printed) <= 0.5 * 10.0**-decimals + NOISE


TEST_ITEMS = {"SST2": 1821, "TREC": 500, "MRPC": 1725}
"""Items in the test sets of the transfer tasks that have one: an accuracy is a whole number of them."""


def check_arithmetic(row: PublishedRow) -> Iterator[Finding]:
    """Yield the averages of a row that are not the mean of their cells, and the differences that are none."""
    cells = {cell.column: cell for cell in row.cells}
    for column in row.table.columns:
        cell = cells.get(column.name)
        if cell is None or cell.value is None or cell.status == "derived":
            continue
        if column.average_of:
            yield from _check_average(row, cell, [cells.get(name) for name in column.average_of])
        if column.difference_of:
            yield from _check_difference(row, cell, cells.get(column.difference_of), column.minus)


def check_granularity(row: PublishedRow) -> Iterator[Finding]:
    """Yield the accuracies on a test set that no whole number of right answers gives.

    Such a value is an average over runs or folds, or a misprint.
    """
    decimals = digits(row)
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
        if not rounds_to(share, cell.score, decimals):
            message = f"{as_printed(cell)} is no share of {items} items: {nearest} of them are {share:.2f}"
            yield finding("granularity", cell, f"{share:.2f}", message)


def digits(row: PublishedRow) -> int:
    """Return how many digits after the point a row really has.

    >>> from stsbench.published.catalogue import row
    >>> digits(row("esimcse-coling2022-3/mirror-bert-base"))  # 69.10 81.10 73.00 ...
    1
    """
    return max((len(as_printed(cell).partition(".")[2].rstrip("0")) for cell in row.cells), default=0)


def _check_average(row: PublishedRow, cell: Cell, parts: list[Cell | None]) -> Iterator[Finding]:
    present = [part for part in parts if part is not None and part.value is not None]
    if len(present) < len(parts) or cell.value is None:
        return
    mean = _mean(present)
    decimals = digits(row)
    if rounds_to(mean, cell.value, decimals):
        return
    # The mean of unrounded scores can be off by the rounding of the cells, and by its own.
    explained = abs(mean - cell.value) <= 10.0**-decimals
    remark = ", as averaging before rounding can make it" if explained else _swap(present, cell, decimals)
    message = f"the average is printed as {as_printed(cell)}, the mean of the cells is {mean:.3f}{remark}"
    yield finding("average", cell, f"{mean:.3f}", message)


def _swap(parts: list[Cell], average: Cell, decimals: int) -> str:
    """Say which cell, with two neighbouring digits the other way round, would make the average right."""
    for part in parts:
        text = as_printed(part)
        for place in range(len(text) - 1):
            pair = text[place : place + 2]
            swapped = text[:place] + pair[::-1] + text[place + 2 :]
            if not pair.isdigit() or part.value is None or average.value is None:
                continue
            mean = _mean(parts) + (float(swapped) - part.value) / len(parts)
            if rounds_to(mean, average.value, decimals):
                return f"; it would be right if {part.column} were {swapped} instead of {text}"
    return ""


def _mean(cells: list[Cell]) -> float:
    return math.fsum(cell.value for cell in cells if cell.value is not None) / len(cells)


def _check_difference(row: PublishedRow, cell: Cell, minuend: Cell | None, minus: str) -> Iterator[Finding]:
    if minuend is None or minuend.value is None or cell.value is None:
        return
    if minus:
        candidates = list(row.cells)
    else:
        others = rows_of(row.table)
        candidates = [other for base in others if base.row.name == row.row.baseline for other in base.cells]
    wanted = minus or minuend.column
    for reference in candidates:
        if reference.column != wanted or reference.value is None:
            continue
        difference = minuend.value - reference.value
        if not rounds_to(difference, cell.value, cell.decimals):
            expected = f"{difference:+.{cell.decimals}f}"
            message = f"{as_printed(minuend)} - {as_printed(reference)} is {expected}, printed is {cell.raw}"
            yield finding("difference", cell, expected, message)


Quantity = tuple[str, ...]
"""What a cell is a measurement of: system (whatever its edition), task, metric, split, group, variant."""


def quantity(cell: Cell) -> Quantity | None:
    """Return what a cell is a measurement of; None for counts and differences, which are no measurements."""
    setting = cell.setting
    if not cell.system or setting.task == "delta":
        return None
    edition_of = systems()[cell.system].edition_of if cell.system in systems() else ""
    base = edition_of or cell.system
    return (base, setting.task, setting.metric, setting.split, setting.group, setting.variant)


def other_prints(cell: Cell, among: Iterable[PublishedRow]) -> list[Cell]:
    """Return the other cells that print the same thing, earlier editions included.

    >>> from stsbench.published.catalogue import row, rows
    >>> [other.table for other in other_prints(row("is-bert-base").cell("STS12"), rows().values())]
    ['esimcse-coling2022-3', 'mocose-acl2022-1']
    """
    wanted = quantity(cell)
    if wanted is None:
        return []
    return [other for row in among for other in row.cells if other != cell and quantity(other) == wanted]


def agree(one: Cell, other: Cell) -> bool:
    """Return whether two cells can be prints of one number: 66.6 is 66.58 rounded further."""
    if one.score is None or other.score is None:
        return True
    if one.decimals == other.decimals and one.setting.unit == other.setting.unit:
        return abs(one.score - other.score) < NOISE
    return abs(one.score - other.score) <= max(one.rounding, other.rounding) + NOISE


def check_prints(found: Iterable[PublishedRow]) -> Iterator[Finding]:
    """Yield a finding for everything that is printed with several values."""
    same: dict[Quantity, list[Cell]] = defaultdict(list)
    for row in found:
        for cell in row.cells:
            key = quantity(cell)
            if key is not None and cell.value is not None:
                same[key].append(cell)
    for (base, *_), cells in same.items():
        editions = {name: _values([cell for cell in cells if cell.system == name]) for name in _names(cells)}
        for values in editions.values():
            if len(values) > 1:
                yield _conflict("prints", values)
        own = editions.pop(base, [])
        for values in editions.values():
            if own and values and not agree(own[0][0], values[0][0]):
                yield _conflict("edition", [own[0], values[0]])


def _names(cells: list[Cell]) -> list[str]:
    return list(dict.fromkeys(cell.system for cell in cells))


def _values(cells: list[Cell]) -> list[list[Cell]]:
    """Group cells by the value they print, the most digits first in a group."""
    groups: list[list[Cell]] = []
    for cell in sorted(cells, key=lambda cell: -cell.decimals):
        for group in groups:
            if agree(group[0], cell):
                group.append(cell)
                break
        else:
            groups.append([cell])
    return groups


def _conflict(kind: str, values: list[list[Cell]]) -> Finding:
    told = "; ".join(f"{as_printed(group[0])} in {', '.join(map(_place, group))}" for group in values)
    others = ", ".join(as_printed(group[0]) for group in values[1:])
    return finding("edition" if kind == "edition" else "prints", values[0][0], others, told)


def _place(cell: Cell) -> str:
    return f"{cell.table} (line {cell.line})"


_DATA_SET = re.compile(r"[A-Z][A-Za-z]*-?[A-Z0-9]+")
_SAME_HEAD = {"SST": "SST2", "SST-2": "SST2", "STSBenchmark": "STS-B"}
_LOGGED_NAMES = {"STS-B": "STSBenchmark", "SICK-R": "SICKRelatedness"}


def validate(given: Iterable[PublishedTable] | None = None) -> list[Finding]:
    """Return everything in the published numbers that does not add up.

    Averages must be the mean of their cells, to the digits printed; differences the difference of theirs; two
    prints of one thing the same; a log what its paper prints; and the entries must hold together.

    Args:
        given: the tables to look at; all, with the systems and checkpoints, by default.

    Returns:
        The findings, by kind in the order of `KINDS`, then in the order of the tables.

    >>> [finding.row for finding in validate() if finding.kind == "average"]
    ['sbert-base', 'bert-base-avg', 'bert-base-avg']
    """
    looked_at = list(tables().values() if given is None else given)
    found = [row for table in looked_at for row in rows_of(table)]
    findings = [*check_prints(found)]
    for table in looked_at:
        findings += _check_heads(table)
    for row in found:
        findings += [*check_arithmetic(row), *check_granularity(row), *_check_log(row), *_check_entry(row, found)]
    if given is None:
        findings += [*_check_checkpoints(found), *_check_references(found)]
    order = list(KINDS)
    return sorted(findings, key=lambda finding: order.index(finding.kind))


def _check_heads(table: PublishedTable) -> Iterator[Finding]:
    for column in table.columns:
        task, head = column.setting.task, column.label
        if not _DATA_SET.fullmatch(head) or not _DATA_SET.fullmatch(task) or _SAME_HEAD.get(head, head) == task:
            continue
        file, line = papers()[table.paper].file, table.caption_line or 0
        message = f"the column of {task} is headed {head}"
        yield Finding("header", table.name, "", column.name, file, line, head, task, message)


def _check_log(row: PublishedRow) -> Iterator[Finding]:
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
        told = "the training log"
        if setting.task == "STS-B" and setting.split == "dev":
            # The scores at the end of the log are of the best checkpoint: the dev curve must reach them.
            score = 100 * float(logged_dev_scores(row.system.name)["STS-B"].max())
            told = "the best step of the training log"
        if score is not None and abs(score - cell.score) > cell.rounding + NOISE:
            yield finding("log", cell, f"{score:.2f}", f"{told} has {score:.2f}")


def _check_entry(row: PublishedRow, found: list[PublishedRow]) -> Iterator[Finding]:
    if row.row.system and row.system is None:
        yield _mistake(row, "", f"there is no system {row.row.system}")
    for cell in row.cells:
        for evidence in cell.evidence:
            if not _holds(evidence, cell, row, found):
                yield _mistake(row, cell.column, f"the evidence {evidence!r} does not bear out {as_printed(cell)}")


def _holds(evidence: str, cell: Cell, row: PublishedRow, found: list[PublishedRow]) -> bool:
    kind, _, reason = evidence.partition(":")
    if evidence == "average":
        averages = [column for column in row.table.columns if cell.column in (*column.average_of, column.name)]
        wrong = {finding.column for finding in check_arithmetic(row)}
        return any(column.average_of and column.name not in wrong for column in averages)
    if "/" in kind:
        prints = [other for named in found if named.name == evidence for other in named.cells]
        return any(other.column == cell.column and other.value == cell.value for other in prints)
    return kind in {"format", "text", "derived"} and bool(reason.strip())


def _mistake(row: PublishedRow, column: str, message: str) -> Finding:
    return Finding("entry", row.table.name, row.row.name, column, row.paper.file, row.row.line, "", "", message)


def _check_checkpoints(found: list[PublishedRow]) -> Iterator[Finding]:
    by_name = {row.name: row for row in found}
    for entry in checkpoints().values():
        for row in (by_name[name] for name in entry.expected if name in by_name):
            for cell in row.cells:
                listed = entry.listed_average
                if cell.setting.task != "Avg. STS" or listed is None or cell.value is None:
                    continue
                if not rounds_to(listed, cell.value, digits(row)):
                    message = f"{entry.listed_source} lists {listed:.2f} for {entry.hub}"
                    yield finding("checkpoint", cell, f"{listed:.2f}", message)


def _check_references(found: list[PublishedRow]) -> Iterator[Finding]:
    names = {row.name for row in found}
    measured = {row.row.system for row in found}
    mistakes = []
    for name, system in systems().items():
        if system.row and system.row not in names:
            mistakes.append(f"{name} expects the row {system.row}, which does not exist")
        if system.row and name not in measured:
            mistakes.append(f"no row measures {name}")
        if system.edition_of and system.edition_of not in systems():
            mistakes.append(f"{name} is an edition of {system.edition_of}, which does not exist")
    for name, entry in checkpoints().items():
        if entry.system not in systems():
            mistakes.append(f"{name} is a checkpoint of {entry.system}, which does not exist")
        mistakes += [
            f"{name} expects the row {row}, which does not exist" for row in entry.expected if row not in names
        ]
    for message in mistakes:
        yield Finding("entry", "", "", "", "", 0, "", "", message)
