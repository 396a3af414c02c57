"""The result of a check: a verdict on every score and on the run, for readers, programs and CI services."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from stsbench.base.files import atomic_path, writing
from stsbench.judging.judgement import Judgement
from stsbench.render.ci import Case, Level, Status, annotation, to_junit
from stsbench.render.formats import escape_markdown
from stsbench.render.table import Table, Tables

Verdict = Literal["pass", "fail", "not comparable", "not measured", "no value", "no worse", "worse", "cannot tell"]

EXIT_CODES: Mapping[Verdict, int] = {
    "pass": 0,
    "no worse": 0,
    "fail": 1,
    "worse": 1,
    "not comparable": 2,
    "cannot tell": 3,
}
"""Exit code of the command for each verdict; missing values have none."""

_COMPARED = set(EXIT_CODES) - {"not comparable"}

_ROUNDING = 1e-9


def within(points: float, allowed: float) -> bool:
    """Returns whether a difference is at most the allowed one, ignoring rounding errors.

    >>> within(70.3 - 70.0, 0.3)
    True
    """
    return points <= allowed + _ROUNDING


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


def differences_text(differences: Sequence[FieldDifference]) -> str:
    """Returns differences as one clause."""
    return ", ".join(map(str, differences))


@dataclass(frozen=True)
class CellCheck:
    """An expected score and the measured one.

    Attributes:
        name: the task, or the column of the row.
        expected: the expected score x 100; None if nothing is printed.
        measured: the measured score x 100, even if not comparable; None if missing or undefined.
        verdict: the verdict; `no value` if nothing is printed.
        reason: why the verdict is what it is, or how many pairs would decide.
        differences: the choices that make the two incomparable.
        origin: `table/row` of the expected score; empty for a baseline.
        source: file and line of the expected score.
        seeds_below: share of known seeds of the same method that score below the measured score, or None.
        loss_low: with a margin: one-sided lower bound of the loss in points, simultaneous for all scores, or None.
        loss_high: its one-sided upper bound, for this score alone.
    """

    name: str
    expected: float | None
    measured: float | None
    verdict: Verdict
    reason: str = ""
    differences: tuple[FieldDifference, ...] = ()
    origin: str = ""
    source: str = ""
    seeds_below: float | None = None
    loss_low: float | None = None
    loss_high: float | None = None

    @property
    def difference(self) -> float | None:
        """Measured minus expected, in points; None if not comparable."""
        if self.verdict not in _COMPARED or self.expected is None or self.measured is None:
            return None
        return self.measured - self.expected

    def __str__(self) -> str:
        """Returns the verdict as text."""
        if self.difference is None:
            return f"{self.name}: {self.verdict}: {self.reason}"
        scores = f"{self.name}: {self.measured:.2f}, expected {self.expected:.2f} ({self.difference:+.2f})"
        return f"{scores}: {self.reason}" if self.reason else scores


@dataclass(frozen=True)
class Check(Judgement):
    """A checked run.

    Attributes:
        run: what was checked: the model's name; with its settings if the baseline has the same name.
        against: the names of the published rows, or the baseline.
        kind: `published`, `baseline`, or `margin` for a baseline with a margin.
        allowed: allowed difference in points; with a baseline, the allowed loss.
        cells: one for each expected score.
        notes: what is unstated or unusual.
        level: level of the one-sided bounds, with a margin.
    """

    run: str
    against: tuple[str, ...]
    kind: Literal["published", "baseline", "margin"]
    allowed: float
    cells: tuple[CellCheck, ...]
    notes: tuple[str, ...] = ()
    level: float = 0.95

    @property
    def verdict(self) -> Verdict:
        """The worst verdict on any score; `not comparable` if nothing could be compared."""
        verdicts = {cell.verdict for cell in self.cells}
        if not verdicts & _COMPARED:
            return "not comparable"
        order: Sequence[Verdict] = ("not comparable", "fail", "worse", "cannot tell")
        passed: Verdict = "no worse" if self.kind == "margin" else "pass"
        return next((verdict for verdict in order if verdict in verdicts), passed)

    @property
    def passed(self) -> bool:
        """Whether the verdict is `pass` or `no worse`."""
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
        against = " and ".join(self.against)
        if self.kind == "margin" and self.verdict != "not comparable":
            return self._margin_sentence(against)
        failed, passed = self.of("fail"), self.of("pass")
        compared = len(passed) + len(failed)
        matches = "within {:g} of" if self.kind == "published" else "at most {:g} below"
        count = f"{len(passed)} of {compared} scores are {matches.format(self.allowed)} {against}"
        if self.verdict == "not comparable":
            reasons = "; ".join(self._reasons())
            if compared:
                return f"{count}, but {reasons}."
            return f"{self.run} is not comparable with {against}: {reasons}."
        scores = f"; off: {', '.join(f'{cell.name} {_signed(cell)}' for cell in failed)}" if failed else ""
        skipped = len(self.cells) - compared
        rest = f" ({skipped} could not be compared)" if skipped else ""
        return f"{self.verdict}: {self.run}: {count}{rest}{scores}."

    def _margin_sentence(self, against: str) -> str:
        cells = self.of(self.verdict)
        words = {
            "no worse": f"loses less than {self.allowed:g} against",
            "worse": f"loses more than {self.allowed:g} against",
            "cannot tell": f"may lose more than {self.allowed:g} against",
        }
        start = f"{self.verdict}: {self.run} {words[self.verdict]} {against} at {100 * self.level:g} %"
        if self.verdict == "no worse":
            return f"{start}, on {len(cells)} score{'s' if len(cells) > 1 else ''}."
        details = (f"{cell.name} {_signed(cell)}{f' ({cell.reason})' if cell.reason else ''}" for cell in cells)
        return f"{start}: {'; '.join(details)}."

    def _reasons(self) -> list[str]:
        """Returns why scores are not comparable, each reason once with its scores."""
        concerned = self.of("not comparable")
        if not concerned:
            missing = ", ".join(cell.name for cell in self.of("not measured"))
            return [f"{missing} not measured" if missing else "the row has no value"]
        names: dict[str, list[str]] = {}
        for cell in concerned:
            names.setdefault(cell.reason, []).append(cell.name)
        return [
            reason if len(tasks) == len(self.cells) else f"{', '.join(tasks)}: {reason}"
            for reason, tasks in names.items()
        ]

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
        rows = pd.DataFrame([self._row(cell) for cell in self.cells], dtype=object)
        return Tables([Table(rows, verdicts="verdict")])

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields as plain data."""
        cells = [asdict(cell) | {"difference": cell.difference} for cell in self.cells]
        whole = {"verdict": self.verdict, "summary": self.sentence, "run": self.run, "against": list(self.against)}
        return whole | {"kind": self.kind, "allowed": self.allowed, "cells": cells, "notes": list(self.notes)}

    def write_junit(self, path: str | Path) -> None:
        """Writes the verdicts as JUnit XML, one test case for each score.

        Raises:
            UserError: if the file cannot be written.
        """
        statuses: Mapping[int | None, Status] = {None: "skipped", 0: "passed", 1: "failed"}
        cases = []
        for cell in self.cells:
            status = statuses.get(EXIT_CODES.get(cell.verdict), "error")
            cases.append(Case(f"{cell.origin} {cell.name}".strip(), status, str(cell)))
        with atomic_path(Path(path).expanduser()) as file:
            file.write_text(to_junit(f"stsbench check {self.run}", cases), encoding="utf-8")

    @property
    def annotations(self) -> list[str]:
        """The failed scores and the verdict as annotations of a GitHub workflow."""
        off = [cell for cell in self.cells if cell.verdict in _COMPARED and EXIT_CODES[cell.verdict]]
        lines = [annotation("error", f"{cell.name}: {cell.verdict}", str(cell)) for cell in off]
        level: Level = "notice" if self.passed else "error"
        return [*lines, annotation(level, "stsbench check", self.sentence)]

    def append_step_summary(self) -> None:
        """Appends the check to the summary of a GitHub workflow's step (`GITHUB_STEP_SUMMARY`), if there is one.

        Raises:
            UserError: if the file cannot be written.
        """
        page = os.environ.get("GITHUB_STEP_SUMMARY")
        if not page:
            return
        notes = "".join(f"- {escape_markdown(note)}\n" for note in self.notes)
        text = f"{escape_markdown(self.sentence)}\n\n{self.table().to('markdown')}\n\n{notes}"
        with writing(Path(page)), Path(page).open("a", encoding="utf-8") as file:
            file.write(f"### stsbench check\n\n{text}\n")


def _signed(cell: CellCheck) -> str:
    return "undefined" if cell.difference is None else f"{cell.difference:+.2f}"
