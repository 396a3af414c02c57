"""What a finding is: something in the published numbers that does not add up."""

from dataclasses import dataclass
from typing import Literal

from stsbench.published.schema import Cell

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
