"""Do the numbers of one row add up? Averages, differences, and accuracies that are shares of a test set."""

import math
from collections.abc import Iterator

from stsbench.published.catalogue import PublishedRow, rows_of
from stsbench.published.findings import Finding, as_printed, finding, rounds_to
from stsbench.published.schema import Cell

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

    >>> from stsbench.published import row
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
