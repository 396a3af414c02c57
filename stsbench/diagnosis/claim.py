"""The numbers to explain: those you give, or a published row."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from stsbench.base.errors import UserError
from stsbench.data.catalogue import data_set
from stsbench.published.catalogue import PublishedRow, row
from stsbench.published.schema import PublishedCell
from stsbench.records.kinds import AVERAGE
from stsbench.scoring.tasks import STS_TASKS

NOISE = 0.005
"""Points by which another device, library or thread count may move a score."""

_NUMBER = re.compile(r"[+-]?\d+(?:\.(?P<decimals>\d+))?")
_AVERAGES = {"avg", "average", "mean"}
_ROW = "row:"


@dataclass(frozen=True)
class Value:
    """A claimed number.

    Attributes:
        task: a task, or `Avg.`; empty for a bare number until `Claim.about` names its task.
        score: from 0 to 100.
        decimals: number of printed digits after the point.
        tolerance: the largest difference of a score that matches.
    """

    task: str
    score: float
    decimals: int
    tolerance: float

    @property
    def on(self) -> str:
        """The task in a sentence."""
        return "as the average" if self.task == AVERAGE else f"on {self.task}"

    def __str__(self) -> str:
        """Returns the number as claimed."""
        return f"{self.score:.{self.decimals}f}"


@dataclass(frozen=True)
class Claim:
    """The numbers to explain.

    Attributes:
        values: at least one, of different tasks.
        row: the published row that they are from, or None.
        notes: how the claim was read, if that is not obvious.
    """

    values: tuple[Value, ...]
    row: PublishedRow | None = None
    notes: tuple[str, ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of the values."""
        return tuple(value.task for value in self.values)

    def about(self, tasks: tuple[str, ...]) -> "Claim":
        """Returns the claim with a bare number taken as the score of these tasks, or their average."""
        task = tasks[0] if len(tasks) == 1 else AVERAGE
        return replace(self, values=tuple(replace(value, task=value.task or task) for value in self.values))


def read_claim(claim: str | float | Mapping[str, float], tolerance: float | None = None) -> Claim:
    """Reads a claim.

    Args:
        claim: a number (`76.25` or `0.7625`); numbers by task (`STS16=81.21,SICK-R=77.58`, or a mapping); or
            `row:NAME` with a name that `stsbench.published.row` accepts. A float has at least two decimals.
        tolerance: the largest difference of a score that matches; by default half a unit of the number's last
            digit, plus `NOISE`.

    Raises:
        UserError: if the claim cannot be read.

    >>> [(value.task, str(value)) for value in read_claim("sts16=0.8121, avg=0.789").values]
    [('STS16', '81.21'), ('Avg.', '78.9')]
    """
    if tolerance is not None and not 0 < tolerance < 100:
        raise UserError(f"a tolerance of {tolerance:g}: give a positive number of points, such as 0.05.")
    if isinstance(claim, Mapping):
        claim = ",".join(f"{task}={_digits(value)}" for task, value in claim.items())
    text = claim.strip() if isinstance(claim, str) else _digits(claim)
    if text.casefold().startswith(_ROW):
        return _read_row(row(text[len(_ROW) :].strip()), tolerance)
    numbers = _numbers_by_task(text)
    # Nobody claims correlations of at most 1 %: such numbers are on the scale from 0 to 1, if all are.
    is_small = all(abs(score) <= 1 and decimals > 1 for _, score, decimals in numbers) and "%" not in text
    if is_small:
        numbers = [(task, round(100 * score, 10), decimals - 2) for task, score, decimals in numbers]
    values = [
        Value(task, score, min(decimals, 4), 0.5 * 10.0**-decimals + NOISE if tolerance is None else tolerance)
        for task, score, decimals in numbers
    ]
    return Claim(tuple(values), notes=("The claim was read on the scale from 0 to 1.",) if is_small else ())


def _numbers_by_task(text: str) -> list[tuple[str, float, int]]:
    """Returns the task of each number ("" for a bare number), the number, and its digits after the point."""
    parts = [part.rpartition("=") for part in filter(None, map(str.strip, text.split(",")))]
    numbers = [(_task(name.strip()) if equals else "", *_number(number.strip())) for name, equals, number in parts]
    tasks = [task for task, *_ in numbers]
    if len(set(tasks)) < len(tasks) or (len(tasks) > 1 and "" in tasks) or not tasks:
        raise UserError(
            f"cannot read the claim {text!r}: give one number, a number for each task (STS16=81.21,SICK-R=77.58), "
            "or row:NAME."
        )
    return numbers


def _digits(number: float) -> str:
    # 76.20 as a float has lost its zero, and tables print at least two digits.
    return max(str(number), f"{number:.2f}", key=len)


def _task(name: str) -> str:
    if name.casefold().rstrip(".") in _AVERAGES:
        return AVERAGE
    if ":" in name or "@" in name:
        raise UserError(f"{name!r}: name only the task, because diagnose tries splits and texts.")
    entry = data_set(name)
    if entry.kind != "sts":
        raise UserError(f"{entry.task} has labels, not similarity scores: diagnose is for the STS tasks.")
    return entry.task


def _number(text: str) -> tuple[float, int]:
    number = _NUMBER.fullmatch(text.removesuffix("%").strip())
    if number is None:
        raise UserError(
            f"cannot read {text!r} in the claim: write a number (76.25), TASK=NUMBER (STS16=81.21), or row:NAME."
        )
    if abs(float(number[0])) > 100:
        raise UserError(f"{text} in the claim: a correlation is between -100 and 100.")
    return float(number[0]), len(number["decimals"] or "")


def _read_row(published: PublishedRow, tolerance: float | None) -> Claim:
    """Returns the STS scores of a row; of several values of a task the one on the test split."""
    cells: dict[str, PublishedCell] = {}
    for cell in sorted(filter(_is_sts, published.cells), key=lambda cell: cell.setting.split != "test"):
        task = cell.setting.task
        cells.setdefault(task if task in STS_TASKS else AVERAGE, cell)
    if cells.keys() >= {AVERAGE, *STS_TASKS}:
        del cells[AVERAGE]  # it follows from the seven
    if not cells:
        raise UserError(
            f"{published.name} prints no Spearman's or Pearson's correlation of an STS task: choose another row."
        )
    empty = [cell.column for cell in published.cells if cell.value is None]
    values = [
        Value(
            task,
            cells[task].score or 0.0,
            # Correlations printed to the last bit are compared to two digits.
            min(2, cells[task].decimals - (2 if cells[task].setting.unit == "1" else 0)),
            tolerance if tolerance is not None else cells[task].rounding + NOISE,
        )
        for task in (*STS_TASKS, AVERAGE)
        if task in cells
    ]
    notes = (f"{published.name} has no value for {', '.join(empty)}.",) if empty else ()
    return Claim(tuple(values), published, notes)


def _is_sts(cell: PublishedCell) -> bool:
    setting = cell.setting
    is_correlation = setting.metric in {"spearman", "pearson"} and setting.unit in {"x100", "1"}
    return (
        cell.score is not None
        and setting.task in {*STS_TASKS, "Avg. STS"}
        and is_correlation
        and not setting.group
    )
