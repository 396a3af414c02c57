"""Judgements: results whose answer is a sentence. That of `check` has a verdict on every score and on the run."""

import html
import json
import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic_core import to_json

from stsbench.base.files import atomic_path
from stsbench.render import one_line
from stsbench.render.formats import Case, Status, to_junit
from stsbench.render.table import Result, Table, Tables
from stsbench.statistics import estimate

Verdict = Literal["pass", "fail", "not comparable", "not measured", "no value"] | estimate.Verdict

EXIT_CODES: Mapping[Verdict, int] = {
    "not comparable": 2,
    "fail": 1,
    "worse": 1,
    "undecided": 3,
    "within margin": 0,
    "pass": 0,
}
"""Exit code of the command for each verdict, the worst first; missing values have none."""


@dataclass(frozen=True, eq=False)
class Judgement(Result):
    """A result whose answer is a sentence. It is shown as legend, tables, remarks and sentence.

    Attributes:
        notes: limits of the answer.
    """

    notes: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    @abstractmethod
    def sentence(self) -> str:
        """The answer."""

    @property
    def legend(self) -> list[str]:
        """The meaning of the tables' letters and columns, one line each."""
        return []

    @property
    def remarks(self) -> list[str]:
        """Limits of the answer, one line each."""
        return [f"note: {note}" for note in self.notes]

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields as plain data; undefined numbers are None."""
        data = {"sentence": self.sentence} | asdict(self)
        text = to_json(data, inf_nan_mode="null", fallback=lambda frame: frame.to_dict("records"))
        plain: dict[str, Any] = json.loads(text)
        return plain

    def __str__(self) -> str:
        """Returns what a terminal shows."""
        texts = (self.legend, self.remarks, self.sentence.splitlines())
        legend, remarks, answer = ("\n".join(map(one_line, lines)) for lines in texts)
        return "\n\n".join(filter(None, [legend, *map(str, self.table()), remarks, answer]))

    def _repr_html_(self) -> str:
        texts = (self.legend, self.remarks, self.sentence.splitlines())
        legend, remarks, answer = ("<br>".join(map(html.escape, lines)) for lines in texts)
        return f"<p>{legend}</p>{self.table()._repr_html_()}<p>{remarks}</p><p>{answer}</p>"


@dataclass(frozen=True, eq=False)
class OfTwo(Judgement):
    """A judgement of two models or methods, named A and B; `b` is empty if there is only one.

    Attributes:
        rows: a row per task; after the tasks of a kind a row for their average.
    """

    a: str
    b: str
    rows: pd.DataFrame

    @property
    def frame(self) -> pd.DataFrame:
        """One row per task and average."""
        return self.rows

    @property
    def legend(self) -> list[str]:
        """The names of A and B."""
        return [f"{letter}: {name}" for letter, name in (("A", self.a), ("B", self.b)) if name]


def records(rows: pd.DataFrame) -> list[Any]:
    """Returns rows as named tuples."""
    return list(rows.itertuples(index=False))


def p_text(p: float) -> str | None:
    """Returns a p-value with three digits, or None if it is undefined.

    >>> p_text(0.0312), p_text(0.0002), p_text(float("nan"))
    ('0.031', '<0.001', None)
    """
    if math.isnan(p):
        return None
    return f"{p:.3f}" if p >= 0.001 else "<0.001"


@dataclass(frozen=True)
class FieldDifference:
    """A choice that differs, so that two scores are not comparable.

    Attributes:
        field: name of the choice in the signature.
        here: value in the run.
        there: expected value.
        remedy: what to do; empty if nothing can be done.
    """

    field: str
    here: str
    there: str
    remedy: str = ""

    def __str__(self) -> str:
        """Returns the difference as text."""
        remedy = f" ({self.remedy})" if self.remedy else ""
        return f"{self.field} is {self.here}, expected {self.there}{remedy}"


@dataclass(frozen=True)
class CellCheck:
    """An expected score and the measured one.

    Attributes:
        name: the task, or the column of the row.
        expected: the expected score x 100; None if nothing is printed.
        measured: the measured score x 100, even if not comparable; None if missing or undefined.
        verdict: the verdict; `no value` if the table prints none.
        reason: the reason for the verdict, or how many pairs would decide.
        differences: the choices that make the two incomparable.
        origin: `table/row` of the expected score; empty for a baseline.
        source: file and line of the expected score.
        seeds_below: share of known seeds of the same method that score below the measured score, or None.
        loss_low: with a baseline: one-sided lower bound of the loss in points, simultaneous for all scores.
        loss_high: its one-sided upper bound, for this score alone.
    """

    name: str
    expected: float | None
    measured: float | None
    verdict: Verdict = "no value"
    reason: str = ""
    differences: tuple[FieldDifference, ...] = ()
    origin: str = ""
    source: str = ""
    seeds_below: float | None = None
    loss_low: float | None = None
    loss_high: float | None = None

    @property
    def is_compared(self) -> bool:
        """Whether the two scores are comparable."""
        return self.verdict in EXIT_CODES and self.verdict != "not comparable"

    @property
    def difference(self) -> float | None:
        """Measured minus expected, in points; None if not comparable."""
        if not self.is_compared or self.expected is None or self.measured is None:
            return None
        return self.measured - self.expected

    @property
    def signed(self) -> str:
        """The name and the difference as text."""
        return f"{self.name} " + ("undefined" if self.difference is None else f"{self.difference:+.2f}")


@dataclass(frozen=True)
class Check(Judgement):
    """A checked run.

    Attributes:
        run: the name of the checked model, with its settings if the baseline has the same name.
        against: the names of the published rows, or the baseline.
        kind: `published`, or `margin` for a baseline.
        allowed: allowed difference in points; with a baseline, the margin of the loss.
        cells: one for each expected score.
    """

    run: str
    against: tuple[str, ...]
    kind: Literal["published", "margin"]
    allowed: float
    cells: tuple[CellCheck, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict on any score; `not comparable` if nothing could be compared."""
        if not any(cell.is_compared for cell in self.cells):
            return "not comparable"
        return next(verdict for verdict in EXIT_CODES if self.of(verdict))

    @property
    def passed(self) -> bool:
        """Whether the verdict is `pass` or `within margin`."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """0 for a pass, 1 for a failure, 2 if not comparable, 3 if there are too few pairs to decide."""
        return EXIT_CODES[self.verdict]

    def of(self, verdict: Verdict) -> list[CellCheck]:
        """Returns the cells with a verdict."""
        return [cell for cell in self.cells if cell.verdict == verdict]

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        verdict, against = self.verdict, " and ".join(self.against)
        compared = [cell for cell in self.cells if cell.is_compared]
        passed = [cell for cell in compared if not EXIT_CODES[cell.verdict]]
        matches = f"within {'a margin of ' if self.kind == 'margin' else ''}{self.allowed:g} of"
        scores = "comparable scores" if verdict == "not comparable" else "scores"
        count = f"{len(passed)} of {len(compared)} {scores} are {matches} {against}"
        if verdict == "not comparable":
            start = f"{count}." if compared else f"{self.run} is not comparable with {against}:"
            return f"{start} {self._reasons()}."
        skipped = len(self.cells) - len(compared)
        rest = f" ({skipped} could not be compared)" if skipped else ""
        off = [] if self.passed else self.of(verdict)
        details = f"; off: {', '.join(cell.signed for cell in off)}" if off else ""
        # The score that is farthest from a decision needs the most pairs.
        farthest = max(off, key=lambda cell: cell.loss_high or 0.0, default=None)
        if verdict == "undecided" and farthest:
            details += f"; {farthest.name} {farthest.reason}"
        return f"{verdict}: {self.run}: {count}{rest}{details}."

    def _reasons(self) -> str:
        """Returns why scores are not comparable: each difference with its scores."""
        names: dict[str, list[str]] = {}
        for cell in self.of("not comparable"):
            for difference in cell.differences:
                names.setdefault(str(difference), []).append(cell.name)
        if not names:
            missing = ", ".join(cell.name for cell in self.of("not measured"))
            return f"{missing} not measured" if missing else "the row has no value"
        return "; ".join(
            difference if len(tasks) == len(self.cells) else f"{', '.join(tasks)}: {difference}"
            for difference, tasks in names.items()
        )

    @property
    def frame(self) -> pd.DataFrame:
        """One row per score, with task, published (or baseline), measured, difference and verdict."""
        return pd.DataFrame([self._row(cell) for cell in self.cells])

    def _row(self, cell: CellCheck) -> dict[str, Any]:
        expected = "published" if self.kind == "published" else "baseline"
        numbers = {expected: cell.expected, "measured": cell.measured, "difference": cell.difference}
        if self.kind == "margin":
            numbers |= {"loss at least": cell.loss_low, "loss at most": cell.loss_high}
        row: dict[str, Any] = {"row": cell.origin} if len(self.against) > 1 else {}
        row |= {"task": cell.name}
        row |= {name: math.nan if number is None else float(number) for name, number in numbers.items()}
        fields = ", ".join(difference.field for difference in cell.differences)
        row |= {"verdict": f"{cell.verdict}: {fields}" if fields else cell.verdict}
        if any(other.seeds_below is not None for other in self.cells):
            row["seeds below"] = "" if cell.seeds_below is None else f"{100 * cell.seeds_below:.0f} %"
        return row

    def table(self) -> Tables:
        """Returns the table of all scores."""
        return Tables([Table(self.frame, verdicts="verdict")])

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields as plain data."""
        cells = [asdict(cell) | {"difference": cell.difference} for cell in self.cells]
        return super().to_dict() | {"verdict": self.verdict, "cells": cells}

    def write_junit(self, path: str | Path) -> None:
        """Writes the verdicts as JUnit XML, one test case for each score.

        Raises:
            UserError: if the file cannot be written.
        """
        statuses: Mapping[int | None, Status] = {None: "skipped", 0: "passed", 1: "failed"}
        cases = []
        for cell in self.cells:
            status = statuses.get(EXIT_CODES.get(cell.verdict), "error")
            message = " ".join(
                filter(None, [f"{cell.verdict}:", cell.signed if cell.is_compared else "", cell.reason])
            )
            cases.append(Case(f"{cell.origin} {cell.name}".strip(), status, message))
        with atomic_path(Path(path).expanduser()) as file:
            file.write_text(to_junit(f"stsbench check {self.run}", cases), encoding="utf-8")
