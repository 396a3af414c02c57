"""What a check finds: a verdict on every value and one on all of them, for readers, programs and CI services."""

import html
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from stsbench.base.files import atomic_path, writing
from stsbench.render.ci import Case, Level, Status, annotation, to_junit
from stsbench.render.formats import escape_markdown
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables
from stsbench.render.text import one_line

Verdict = Literal["pass", "fail", "not comparable", "not measured", "no value", "no worse", "worse", "cannot tell"]

EXIT_CODES: Mapping[Verdict, int] = {
    "pass": 0,
    "no worse": 0,
    "fail": 1,
    "worse": 1,
    "not comparable": 2,
    "cannot tell": 3,
}
"""How a command ends on each verdict; on a value that is not there it says nothing."""

_JUDGED = set(EXIT_CODES) - {"not comparable"}

_NOISE = 1e-9


def within(points: float, allowed: float) -> bool:
    """Return whether a score is off by no more than is allowed, whatever rounding did to its last bit.

    >>> within(70.3 - 70.0, 0.3)
    True
    """
    return points <= allowed + _NOISE


@dataclass(frozen=True)
class FieldDifference:
    """A choice that was made otherwise here and there, so that two scores do not compare.

    Attributes:
        field: as in the signature.
        here: what the run has.
        there: what the other has.
        remedy: what to do about it; empty where nothing can be done.
    """

    field: str
    here: str
    there: str
    remedy: str = ""

    def __str__(self) -> str:
        """Return the difference in words."""
        remedy = f" ({self.remedy})" if self.remedy else ""
        return f"{self.field} is {self.here} here and {self.there} there{remedy}"


def in_words(differences: Sequence[FieldDifference]) -> str:
    """Return some differences in one clause."""
    return ", ".join(map(str, differences))


@dataclass(frozen=True)
class CellCheck:
    """One value that is expected, and what was measured.

    Attributes:
        name: the task, or the column of the row.
        expected: on the scale from 0 to 100; None where nothing is printed.
        measured: on the same scale, also where it does not compare; None if there is none or it is undefined.
        verdict: `no value` where nothing is printed to compare with.
        reason: why there is no difference to judge, in words; what would make pairs tell that cannot.
        differences: the choices that make the two incomparable.
        origin: where the expected value stands: `table/row`, or the baseline.
        source: the file and the line that it was read from.
        seeds_below: the share of known seeds of the same method with a lower score than the measured one; None
            where no seeds are known.
        loss_low: against a margin, the one-sided lower bound of the loss in points; holds together with the lower
            bounds of the other scores. None where there is none.
        loss_high: the upper bound; holds for this score alone.
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
        """Measured minus expected, in points; None where the two do not compare."""
        if self.verdict not in _JUDGED or self.expected is None or self.measured is None:
            return None
        return self.measured - self.expected

    def __str__(self) -> str:
        """Return the finding in words."""
        if self.difference is None:
            return f"{self.name}: {self.verdict}: {self.reason}"
        scores = f"{self.name}: {self.measured:.2f}, expected {self.expected:.2f} ({self.difference:+.2f})"
        return f"{scores}: {self.reason}" if self.reason else scores

    @property
    def _status(self) -> Status:
        """What a CI service calls the verdict."""
        statuses: Mapping[int | None, Status] = {None: "skipped", 0: "passed", 1: "failed"}
        return statuses.get(EXIT_CODES.get(self.verdict), "error")


@dataclass(frozen=True)
class Check(Result):
    """What was found about a run.

    Attributes:
        run: what was checked: the model's name; against a baseline of the same name with what they differ in.
        against: what with: the names of published rows, or a baseline.
        kind: `published`, `baseline`, or `margin`: against a baseline with a margin.
        allowed: how many points a score may be off; against a baseline, how many it may be lower.
        cells: one for each expected value.
        notes: what matches only because somebody leaves it open, and what a reader should know.
        level: of the one-sided bounds of the losses, against a margin.
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
        """`not comparable` if any value is, or if nothing could be compared; else `fail` if any fails.

        Against a margin `worse` if any score is, else `cannot tell` if of any it cannot be told, else `no worse`.
        """
        verdicts = {cell.verdict for cell in self.cells}
        if "not comparable" in verdicts or not verdicts & _JUDGED:
            return "not comparable"
        if self.kind == "margin":
            return next((verdict for verdict in ("worse", "cannot tell") if verdict in verdicts), "no worse")
        return "fail" if "fail" in verdicts else "pass"

    @property
    def passed(self) -> bool:
        """Whether the verdict is `pass`, or `no worse`."""
        return self.verdict in {"pass", "no worse"}

    @property
    def exit_code(self) -> int:
        """0 for a pass, 1 for a failure, 2 where something does not compare, 3 where these pairs cannot tell."""
        return EXIT_CODES[self.verdict]

    def of(self, verdict: Verdict) -> list[CellCheck]:
        """Return the cells with a verdict."""
        return [cell for cell in self.cells if cell.verdict == verdict]

    @property
    def sentence(self) -> str:
        """The verdict in a sentence."""
        against, failed, passed = " and ".join(self.against), self.of("fail"), self.of("pass")
        allowed = f"within {self.allowed:g} of" if self.kind == "published" else f"at most {self.allowed:g} below"
        compared, others = len(passed) + len(failed), len(self.cells) - len(passed) - len(failed)
        if self.verdict == "not comparable":
            reasons = "; ".join(self._reasons())
            if not compared:
                return f"{self.run} and {against} do not compare: {reasons}."
            return (
                f"{len(passed)} of {compared} scores of {self.run} are {allowed} {against}, and not all compare: "
                f"{reasons}."
            )
        if self.kind == "margin":
            return self._margin_sentence
        rest = f" ({others} could not be compared)" if others else ""
        if not failed:
            return f"pass: {self.run} is {allowed} {against}: {compared} of {compared} scores{rest}."
        scores = ", ".join(f"{cell.name} {_signed(cell)}" for cell in failed)
        return f"fail: {self.run} is not {allowed} {against}: {len(failed)} of {compared} scores{rest}: {scores}."

    @property
    def _margin_sentence(self) -> str:
        against, share = " and ".join(self.against), f"{100 * self.level:g} %"
        than = f"than {against} by more than {self.allowed:g} point{'' if self.allowed == 1 else 's'}"
        if self.verdict == "no worse":
            scores = "1 score" if len(self.cells) == 1 else f"{len(self.cells)} scores"
            return f"no worse: {self.run} is not worse {than}, at {share}: {scores}."
        cells = self.of(self.verdict)
        if self.verdict == "worse":
            losses = ", ".join(f"{cell.name} {_signed(cell)}" for cell in cells)
            return f"worse: {self.run} is worse {than}, at {share}: {losses}."
        remedies = "; ".join(f"{cell.name} ({_signed(cell)}): {cell.reason}" for cell in cells)
        return f"cannot tell with these pairs whether {self.run} is worse {than}, at {share}: {remedies}."

    def _reasons(self) -> Iterator[str]:
        """Yield why values do not compare, each reason once with the values that it holds for."""
        concerned = self.of("not comparable")
        if not concerned:
            absent = [cell.name for cell in self.of("not measured")]
            yield (
                f"task: none of {', '.join(absent)} was measured"
                if absent
                else "there is no value to compare with"
            )
        names: dict[str, list[str]] = {}
        for cell in concerned:
            names.setdefault(cell.reason, []).append(cell.name)
        for reason, of in names.items():
            yield reason if len(of) == len(self.cells) else f"{', '.join(of)}: {reason}"

    @property
    def frame(self) -> pd.DataFrame:
        """Task, published (or baseline), measured, difference and verdict, a row per expected value."""
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
        """Return the table of all values."""
        rows = pd.DataFrame([self._row(cell) for cell in self.cells], dtype=object)
        return Tables([Table(rows, verdicts="verdict")])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, for JSON."""
        cells = [asdict(cell) | {"difference": cell.difference} for cell in self.cells]
        whole = {"verdict": self.verdict, "summary": self.sentence, "run": self.run, "against": list(self.against)}
        return whole | {"kind": self.kind, "allowed": self.allowed, "cells": cells, "notes": list(self.notes)}

    def __str__(self) -> str:
        """Return what a terminal shows: the table, the notes and the verdict in a sentence."""
        return "\n".join([str(self.table()), *map(one_line, self._words)])

    def _repr_html_(self) -> str:
        return self.table()._repr_html_() + "".join(f"<p>{html.escape(line)}</p>" for line in self._words)

    @property
    def _words(self) -> list[str]:
        return [*(f"note: {note}" for note in self.notes), self.sentence]

    def write_junit(self, path: str | Path) -> None:
        """Write the verdicts as JUnit XML, one test case for each score.

        Raises:
            UserError: if the file cannot be written.
        """
        cases = [Case(f"{cell.origin} {cell.name}".strip(), cell._status, str(cell)) for cell in self.cells]
        with atomic_path(Path(path).expanduser()) as file:
            file.write_text(to_junit(f"stsbench check {self.run}", cases), encoding="utf-8")

    @property
    def annotations(self) -> list[str]:
        """The scores that fail and the verdict, as GitHub Actions shows them on the page of a workflow's run."""
        off = [cell for cell in self.cells if cell.verdict in _JUDGED and EXIT_CODES[cell.verdict]]
        lines = [annotation("error", f"{cell.name}: {cell.verdict}", str(cell)) for cell in off]
        level: Level = "notice" if self.passed else "error"
        return [*lines, annotation(level, "stsbench check", self.sentence)]

    def append_step_summary(self) -> None:
        """Add the check to the summary page of a GitHub workflow's step, if there is one (`GITHUB_STEP_SUMMARY`).

        Raises:
            UserError: if the page cannot be written.
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
