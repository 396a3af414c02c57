"""The numbers that are to be explained: what a person writes, or a published row."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from stsbench.base.errors import UserError
from stsbench.data.catalogue import data_set
from stsbench.diagnosis.choices import (
    AGGREGATION,
    COMPARISON,
    METRIC,
    POOLING,
    PRECISION,
    TEMPLATE,
    TEXT,
    split_of,
)
from stsbench.published.catalogue import PublishedRow, checkpoint_of_system, row
from stsbench.published.schema import PublishedCell
from stsbench.records.kinds import AVERAGE
from stsbench.scoring.tasks import STS_TASKS

NOISE = 0.005
"""How far the last bits of the vectors (another device, library or thread count) may move a score, of 100."""

_NUMBER = re.compile(r"[+-]?\d+(?:\.(?P<decimals>\d+))?")
_AVERAGES = {"avg", "average", "mean"}
_ROW = "row:"
_SHOWN_DECIMALS = 4


@dataclass(frozen=True)
class Value:
    """One claimed number.

    Attributes:
        task: a task, or `Avg.`; empty for a bare number until `Claim.about` says what it is of.
        score: on the scale from 0 to 100.
        decimals: how many digits after the point it is printed with.
        tolerance: how far a score may be from it and still be what it rounds.
        stated: what its source says of how it was taken, by the names of the choices.
    """

    task: str
    score: float
    decimals: int
    tolerance: float
    stated: tuple[tuple[str, str], ...] = ()

    @property
    def on(self) -> str:
        """What the number is of, as a sentence has it."""
        return "as the average" if self.task == AVERAGE else f"on {self.task}"

    def __str__(self) -> str:
        """Return the number as claimed."""
        return f"{self.score:.{self.decimals}f}"


@dataclass(frozen=True)
class Claim:
    """What is claimed of a model.

    Attributes:
        values: at least one; each of another task.
        row: the published row that it is, or None.
        notes: how it was read, where that is not plain.
    """

    values: tuple[Value, ...]
    row: PublishedRow | None = None
    notes: tuple[str, ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        """What the values are of."""
        return tuple(value.task for value in self.values)

    def about(self, tasks: tuple[str, ...]) -> "Claim":
        """Return the claim with a bare number taken as the score of these tasks, or their average."""
        of = tasks[0] if len(tasks) == 1 else AVERAGE
        return replace(self, values=tuple(replace(v, task=v.task or of) for v in self.values))


def read_claim(claim: str | float | Mapping[str, float], tolerance: float | None = None) -> Claim:
    """Read a claim.

    Args:
        claim: a number (`76.25`, or `0.7625`); numbers by task (`STS16=81.21,SICK-R=77.58`, or a mapping); or
            `row:NAME`, what `stsbench.published.row` understands. A float has two decimals or more.
        tolerance: how far a score may be from a number; by default half a unit of its last digit, and `NOISE`.

    >>> [(value.task, str(value)) for value in read_claim("sts16=0.8121, avg=0.789").values]
    [('STS16', '81.21'), ('Avg.', '78.9')]
    """
    if tolerance is not None and not 0 < tolerance < 100:
        raise UserError(f"a tolerance of {tolerance:g}: give a positive number of points, such as 0.05.")
    text = _as_text(claim)
    if text.casefold().startswith(_ROW):
        return _of_row(row(text[len(_ROW) :].strip()), tolerance)
    named = _numbers_by_task(text)
    # A correlation of at most 1 % is nobody's claim: such numbers are on the scale from 0 to 1, if all are.
    small = all(abs(score) <= 1 and decimals > 1 for _, score, decimals in named) and "%" not in text
    notes = ("The claim was read as on the scale from 0 to 1.",) if small else ()
    if small:
        named = [(task, round(100 * score, 10), decimals - 2) for task, score, decimals in named]
    return Claim(tuple(_as_printed(*number, tolerance) for number in named), notes=notes)


def _as_text(claim: str | float | Mapping[str, float]) -> str:
    if isinstance(claim, Mapping):
        return ",".join(f"{task}={_in_digits(value)}" for task, value in claim.items())
    return claim.strip() if isinstance(claim, str) else _in_digits(claim)


def _numbers_by_task(text: str) -> list[tuple[str, float, int]]:
    """Return the task of each number, empty for a bare one, the number, and its digits behind the point."""
    parts = [part.rpartition("=") for part in filter(None, map(str.strip, text.split(",")))]
    named = [(_task(name.strip()) if equals else "", *_number(number.strip())) for name, equals, number in parts]
    tasks = [task for task, *_ in named]
    if len(set(tasks)) < len(tasks) or (len(tasks) > 1 and "" in tasks) or not tasks:
        raise UserError(
            f"cannot read the claim {text!r}: give one number, one for each of some tasks "
            "(STS16=81.21,SICK-R=77.58), or row:NAME."
        )
    return named


def _in_digits(number: float) -> str:
    # 76.20 as a float has lost its zero: tables print two digits at least.
    short, whole = f"{number:.2f}", str(number)
    return short if len(short) > len(whole) else whole


def _task(name: str) -> str:
    if name.casefold().rstrip(".") in _AVERAGES:
        return AVERAGE
    if ":" in name or "@" in name:
        raise UserError(f"{name!r}: name the task alone, as split and text are among what diagnose tries.")
    entry = data_set(name)
    if entry.kind != "sts":
        raise UserError(f"{entry.task} has labels, not similarity scores: diagnose is for the STS tasks.")
    return entry.task


def _number(text: str) -> tuple[float, int]:
    """Return a number and how many digits stand behind its point."""
    number = _NUMBER.fullmatch(text.removesuffix("%").strip())
    if number is None:
        raise UserError(
            f"cannot read {text!r} in the claim: write a number (76.25), TASK=NUMBER (STS16=81.21), or row:NAME."
        )
    if abs(float(number[0])) > 100:
        raise UserError(f"{text} in the claim: a correlation is between -100 and 100.")
    return float(number[0]), len(number["decimals"] or "")


def _as_printed(
    task: str, score: float, decimals: int, tolerance: float | None, stated: Mapping[str, str] | None = None
) -> Value:
    if tolerance is None:
        tolerance = 0.5 * 10.0**-decimals + NOISE
    return Value(task, score, min(decimals, _SHOWN_DECIMALS), tolerance, tuple((stated or {}).items()))


def _of_row(published: PublishedRow, tolerance: float | None) -> Claim:
    """Return what a row prints of the STS tasks; of several values of one task the one on test."""
    usable = [cell for cell in published.cells if _is_sts(cell)]
    # Sorted so that test comes first; the order of the columns stays otherwise.
    cells: dict[str, PublishedCell] = {}
    for cell in sorted(usable, key=lambda cell: cell.setting.split != "test"):
        cells.setdefault(_column(cell), cell)
    notes = []
    if cells.keys() >= {AVERAGE, *STS_TASKS}:
        del cells[AVERAGE]  # it follows from the seven
    if not cells:
        raise UserError(
            f"{published.name} prints no Spearman's or Pearson's correlation of an STS task: choose another row."
        )
    if missing := [cell.column for cell in published.cells if cell.value is None]:
        notes.append(f"{published.name} has no value for {', '.join(missing)}.")
    order, usage = [*STS_TASKS, AVERAGE], _stated_usage(published)
    values = [
        _as_printed(
            task,
            cell.score or 0.0,
            # Correlations printed to the last bit have no rounding: two digits are what anybody compares.
            min(2, cell.decimals - (2 if cell.setting.unit == "1" else 0)),
            tolerance if tolerance is not None else cell.rounding + NOISE,
            _stated(cell) | usage,
        )
        for task, cell in sorted(cells.items(), key=lambda item: order.index(item[0]))
    ]
    return Claim(tuple(values), published, tuple(notes))


def _is_sts(cell: PublishedCell) -> bool:
    setting = cell.setting
    return (
        cell.score is not None
        and (setting.task in STS_TASKS or setting.task == "Avg. STS")
        and setting.metric in {"spearman", "pearson"}
        and setting.unit in {"x100", "1"}
        and not setting.group
    )


def _column(cell: PublishedCell) -> str:
    return cell.setting.task if cell.setting.task in STS_TASKS else AVERAGE


def _stated(cell: PublishedCell) -> dict[str, str]:
    setting = cell.setting
    stated = {
        METRIC.name: setting.metric,
        AGGREGATION.name: setting.aggregation,
        COMPARISON.name: setting.similarity,
        TEXT.name: setting.text,
        split_of(setting.task).name: setting.split,
    }
    return {name: value for name, value in stated.items() if value and name not in setting.open}


def _stated_usage(published: PublishedRow) -> dict[str, str]:
    """Return what a row's source says of how the model was used, by the names of the choices."""
    usage, checkpoint = published.usage, checkpoint_of_system(published.row.system)
    stated = {
        POOLING.name: usage.pooling,
        TEMPLATE.name: checkpoint.template if checkpoint and usage.template else "",
        PRECISION.name: usage.precision,
    }
    return {name: value for name, value in stated.items() if value and name not in usage.open}
