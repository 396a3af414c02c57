"""Which printed differences could a benchmark's own pairs tell from chance?

A table prints scores and no pairs, so what a test of two of its rows would say is not known. Within which bounds
it lies is. The standard error of a difference of two scores a and b on the same pairs is

    sqrt(s_a^2 + s_b^2 - 2 r s_a s_b)

with the scores' standard errors s and the correlation r of their errors. (Two models err on the same pairs: the
more alike they are, the higher r, and the smaller a difference can be told.) A two-sided test of 5 % tells a
printed difference above 1.96 of these; where sentences that stand in many pairs leave few degrees of freedom,
Student's t asks for more.

- s: on Fisher's scale a task's standard error hardly depends on the model. So that of the encoder at hand whose
  score e is nearest is taken there: s = s_e (1 - a^2) / (1 - e^2).
- r, and t's degrees of freedom: those of every two encoders at hand, task by task. What is said of a printed
  difference holds under each of them, or it depends.

Both stand in `measured/resolution.json`, made by `docs/resolution_facts.py` from the tasks' pairs. Pairs that
share a sentence count as dependent (`statistics.dependence`). All this is of two checkpoints and says nothing of
seeds: what those do, 50 trainings of SimCSE tell (`measured.seeds`).
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np
import pandas as pd

from stsbench.base.errors import UserError
from stsbench.published.catalogue import PublishedRow, rows, rows_of, systems
from stsbench.published.measured import resolution_facts, seeded_systems, seeds
from stsbench.published.schema import PublishedCell, PublishedTable
from stsbench.render.cells import Named
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables
from stsbench.statistics.dependence import Variance
from stsbench.statistics.intervals import plain_interval

Answer = Literal["real", "not told", "depends"]
"""`real`: told from chance under every correlation. `not told`: under none. `depends`: under some."""

Kin = Literal["seeds", "kin", "far"]
"""Two encoders are seeds of one training; of one family (the same weights, or trained from them); or far apart."""

Range = tuple[float, float]
"""The lowest and the highest of what was seen."""

LEVEL = 0.95
"""One minus the size of the test that a printed difference is held against."""

AVERAGE = "Avg. STS"

_SIMCSE = re.compile(r"^(?:un)?sup-simcse-")
_BACKBONE = re.compile(r"(?:ro)?berta?-(?:base|large)")
_SEED = re.compile(r"-\d$")
_MARKS: Mapping[Answer, str] = {"real": "{}", "depends": "{} ?", "not told": "({})"}


@dataclass(frozen=True, eq=False)
class Facts:
    """What was measured on the encoders at hand.

    Attributes:
        encoders: by name and task (`STS12`, ..., `Avg. STS`, `STS-B:dev`) a score and its standard error, x 100.
        pairs: two encoders, and by task the correlation of their errors, and the degrees of freedom of Student's t
            for their difference (infinite where nobody knows).
        assumed: which pairs these are, in words.
    """

    encoders: Mapping[str, Mapping[str, tuple[float, float]]]
    pairs: tuple[tuple[str, str, Mapping[str, tuple[float, float]]], ...]
    assumed: str

    @property
    def tasks(self) -> list[str]:
        """The tasks that something was measured of."""
        return list(dict.fromkeys(task for of in self.encoders.values() for task in of))

    def of_pairs(self, assumed: str, wanted: Callable[[str, str], bool]) -> "Facts":
        """Return the facts with those pairs of encoders alone that a function of their names wants."""
        return Facts(self.encoders, tuple(pair for pair in self.pairs if wanted(*pair[:2])), assumed)

    def with_correlations(self, low: float, high: float) -> "Facts":
        """Return the facts with a range of correlations, the same for every task, in place of those seen.

        Raises:
            UserError: if it is no range of correlations.
        """
        if not -1 <= low <= high <= 1:
            raise UserError(f"correlations from {low:g} to {high:g}: give the lower first, both between -1 and 1.")
        pairs = tuple(("", "", dict.fromkeys(self.tasks, (value, math.inf))) for value in (low, high))
        return Facts(self.encoders, pairs, "as given")

    def correlations(self, task: str) -> Range:
        """Return the lowest and the highest correlation of two encoders on a task."""
        seen = [of[task][0] for _, _, of in self.pairs if task in of]
        return min(seen), max(seen)

    def standard_error(self, task: str, score: float, without: str = "") -> float:
        """Return the standard error x 100 of a printed score x 100, by the rule at the head of this file.

        Args:
            task: its task.
            score: x 100.
            without: a family of encoders not to look at: to see how well the rule foretells it.
        """
        known = [of[task] for name, of in self.encoders.items() if task in of and family(name) != without]
        nearest, error = min(known, key=lambda encoder: abs(encoder[0] - score))
        return error * (1 - (score / 100) ** 2) / (1 - (nearest / 100) ** 2)

    def smallest(self, task: str, score: float, other: float) -> Range:
        """Return the smallest difference of two printed scores that is told from chance, over all pairs seen.

        Args:
            task: of both.
            score: one of them, x 100.
            other: the other, x 100.

        Returns:
            The least and the most that it is: two models as alike as the two that err most alike, and least.
        """
        errors = self.standard_error(task, score), self.standard_error(task, other)
        told = [smallest_told(errors, *of[task]) for _, _, of in self.pairs if task in of]
        return min(told), max(told)


def relation(a: str, b: str) -> Kin:
    """Return how two encoders of the facts are related, by their names.

    >>> relation("minilm-simcse-1", "minilm-simcse-2"), relation("minilm", "minilm-max")
    ('seeds', 'kin')
    """
    if family(a) != family(b):
        return "far"
    return "seeds" if _SEED.sub("", a) == _SEED.sub("", b) else "kin"


def family(encoder: str) -> str:
    """Return the family of an encoder of the facts: its name up to the first hyphen."""
    return encoder.partition("-")[0]


@cache
def facts() -> Facts:
    """Return the facts that come with the package."""
    content = json.loads(resolution_facts())
    encoders = {
        name: {task: (score, error) for task, (score, error) in tasks.items()}
        for name, tasks in content["encoders"].items()
    }
    pairs = tuple(
        (a, b, {task: (value, math.inf if df is None else float(df)) for task, (value, df) in of.items()})
        for a, b, of in content["pairs"]
    )
    return Facts(encoders, pairs, f"those of any two of {len(encoders)} encoders at hand")


def smallest_told(errors: tuple[float, float], correlation: float, df: float = math.inf) -> float:
    """Return the smallest difference of two scores that the test tells from chance.

    Args:
        errors: the standard errors of the two.
        correlation: of their errors.
        df: degrees of freedom of Student's t for the difference.

    >>> round(smallest_told((0.5, 0.5), 0.87), 3)
    0.5
    """
    a, b = errors
    return _quantile(df) * math.sqrt(max(a * a + b * b - 2 * correlation * a * b, 0.0))


@cache
def _quantile(df: float) -> float:
    return plain_interval(0.0, Variance(1.0, 1.0, df), LEVEL).high


def answer(difference: float, smallest: Range, rounding: float = 0.0) -> Answer:
    """Return whether a difference is told under every correlation, under none, or under some.

    Args:
        difference: as printed.
        smallest: the smallest difference told, at the least and at the most that it is over all pairs seen.
        rounding: how far the printed difference can be from the measured one.

    >>> [answer(difference, (0.5, 1.5)) for difference in (2.0, -0.3, 1.0)]
    ['real', 'not told', 'depends']
    """
    low, high = smallest
    if abs(difference) - rounding > high:
        return "real"
    return "not told" if abs(difference) + rounding <= low else "depends"


@dataclass(frozen=True)
class PrintedDifference:
    """A printed score less another, and whether the task's pairs could tell it from chance. Scores are x 100.

    Attributes:
        row: the full name of the row.
        column: the column.
        task: the task, with the split where that is not the test set.
        score: as printed.
        against: what the other row is: the `baseline` of this one, or the `best` of the column.
        other: its full name.
        other_score: as printed.
        difference: this score less the other.
        low: the smallest difference that the pairs tell, if the two models err as alike as any two seen.
        high: the one if they err as little alike as any.
        answer: see `Answer`.
        seeds: what the scores of two seeds of SimCSE differ by at most in 19 of 20 cases; NaN where nobody knows.
    """

    row: str
    column: str
    task: str
    score: float
    against: Literal["baseline", "best"]
    other: str
    other_score: float
    difference: float
    low: float
    high: float
    answer: Answer
    seeds: float


@dataclass(frozen=True)
class ScoredCell:
    """A cell whose score the facts are of, in its row."""

    row: PublishedRow
    cell: PublishedCell
    score: float

    @property
    def task(self) -> str:
        """The task as the facts call it: with the split where that is not the test set."""
        setting = self.cell.setting
        return setting.task if setting.split == "test" else f"{setting.task}:{setting.split}"

    def less(self, other: "ScoredCell", against: Literal["baseline", "best"], using: Facts) -> PrintedDifference:
        """Return this score less another of the same task.

        Args:
            other: the other.
            against: what it is to this one.
            using: the facts to reckon with.
        """
        smallest = using.smallest(self.task, self.score, other.score)
        difference = round(self.score - other.score, 10)
        return PrintedDifference(
            row=self.row.name,
            column=self.cell.column,
            task=self.task,
            score=self.score,
            against=against,
            other=other.row.name,
            other_score=other.score,
            difference=difference,
            low=smallest[0],
            high=smallest[1],
            answer=answer(difference, smallest, self.cell.rounding + other.cell.rounding),
            seeds=two_seeds(self.task, self.row),
        )


def scored_cells(row: PublishedRow) -> list[ScoredCell]:
    """Return the cells that the facts are of: Spearman's correlation on all pairs of a test set, or of STS-B's
    dev set.

    Where a paper leaves open how a task's subsets are put together, its value is taken as the facts have it.
    """
    known = set(facts().tasks)
    cells = [ScoredCell(row, cell, cell.score) for cell in row.cells if cell.score is not None]
    return [
        scored
        for scored in cells
        if scored.task in known
        and scored.cell.setting.metric == "spearman"
        and scored.cell.setting.aggregation in {"", "all"}
        and not scored.cell.setting.group
    ]


def differences(table: PublishedTable, using: Facts | None = None) -> list[PrintedDifference]:
    """Return each score of a table less that of its baseline, and less the best of its column.

    Args:
        table: the table.
        using: the facts to reckon with; by default all that come with the package.
    """
    using = using or facts()
    printed = [(row, scored_cells(row)) for row in rows_of(table)]
    best: dict[str, ScoredCell] = {}
    for _, cells in printed:
        for scored in cells:
            highest = best.setdefault(scored.cell.column, scored)
            if scored.score > highest.score:
                best[scored.cell.column] = scored
    made: list[PrintedDifference] = []
    for row, cells in printed:
        base = baseline(row)
        of_base = {} if base is None else {scored.task: scored for scored in scored_cells(base)}
        for scored in cells:
            if scored.task in of_base:
                made.append(scored.less(of_base[scored.task], "baseline", using))
            if best[scored.cell.column].row.name != row.name:
                made.append(scored.less(best[scored.cell.column], "best", using))
    return made


def baseline(row: PublishedRow) -> PublishedRow | None:
    """Return the row that a row is held against; None if there is none.

    It is the one that the table itself takes differences to; else, of a variant, the system's own configuration in
    the same table; else SimCSE of the same backbone, unsupervised or supervised as the system is: from the same
    table, or where that has none, the row to expect of it.

    >>> from stsbench.published.catalogue import row
    >>> baseline(row("esimcse-coling2022-4/word-repetition")).name, baseline(row("diffcse")).name
    ('esimcse-coling2022-4/unsup-simcse-bert-base', 'esimcse-coling2022-3/unsup-simcse-bert-base')
    """
    others = [other for other in rows_of(row.table) if other.name != row.name]
    if row.row.baseline:
        return next(other for other in others if other.row.name == row.row.baseline)
    # Of a table that prints the default twice, the one that stands nearest in the print.
    names = [entry.name for entry in row.table.rows]
    others.sort(key=lambda other: abs(names.index(other.row.name) - names.index(row.row.name)))
    default = [other for other in others if not other.row.variant]
    own = [other for other in default if row.row.variant and other.row.system == row.row.system]
    if own or row.system is None or is_simcse(row) or not backbone(row):
        return own[0] if own else None
    wanted = f"{'sup' if is_supervised(row) else 'unsup'}-simcse-{backbone(row)}"
    for other in default:
        if other.system is not None and wanted in {other.system.name, other.system.edition_of}:
            return other
    return rows().get(systems()[wanted].row)


def backbone(row: PublishedRow) -> str:
    """Return what a row's encoder was trained from, as the name of its system says; empty where that is another.

    >>> from stsbench.published.catalogue import row
    >>> backbone(row("sroberta-base")), backbone(row("glove-avg"))
    ('roberta-base', '')
    """
    match = _BACKBONE.search(row.row.system)
    return match[0] if match else ""


def is_simcse(row: PublishedRow) -> bool:
    """Return whether a row is of SimCSE itself, in whatever edition or variant."""
    return bool(_SIMCSE.match(row.row.system))


def is_supervised(row: PublishedRow) -> bool:
    """Return whether a row's system was trained on labelled pairs, as its kind or its part of the table says."""
    return row.row.group == "supervised" or (row.system is not None and row.system.kind == "supervised")


def two_seeds(task: str, row: PublishedRow) -> float:
    """Return what the scores x 100 of two seeds of unsupervised SimCSE differ by at most in 19 of 20 cases.

    It is the 95 % quantile over all pairs of the 50 seeds of the row's backbone. NaN where nobody trained that,
    for a supervised system, and for a task that was not measured.

    >>> from stsbench.published.catalogue import row
    >>> round(two_seeds("Avg. STS", row("esimcse-bert-base")), 2)
    2.28
    """
    if row.system is None or is_supervised(row):
        return math.nan
    return _two_seeds(task, f"unsup-simcse-{backbone(row)}")


@cache
def _two_seeds(task: str, system: str) -> float:
    column = task.replace(AVERAGE, "Avg.")
    if system not in seeded_systems() or column not in seeds(system):
        return math.nan
    scores = seeds(system)[column].to_numpy()
    gaps = np.abs(scores[:, None] - scores)[np.triu_indices(len(scores), 1)]
    return float(np.quantile(gaps, LEVEL))


@dataclass(frozen=True)
class ResolvedTable(Result):
    """The differences that a table prints, and which of them its tasks' pairs could tell from chance.

    Attributes:
        entry: the table.
        differences: each score less its baseline's, and less the best of its column.
        using: the facts that were reckoned with.
    """

    entry: PublishedTable
    differences: tuple[PrintedDifference, ...]
    using: Facts

    @property
    def frame(self) -> pd.DataFrame:
        """One row per difference, with the columns of `PrintedDifference`."""
        return pd.DataFrame([asdict(difference) for difference in self.differences])

    def table(self) -> Tables:
        """Return the average (or the first column) in full and then all columns, against baseline and best."""
        tables = []
        for against, title in (("baseline", "Against the baseline"), ("best", "Against the best row")):
            of_kind = [difference for difference in self.differences if difference.against == against]
            if not of_kind:
                continue
            columns = list(dict.fromkeys(difference.column for difference in of_kind))
            shown = next((difference.column for difference in of_kind if difference.task == AVERAGE), columns[0])
            in_full = [_in_full(difference) for difference in of_kind if difference.column == shown]
            tables.append(Table(_frame(in_full), f"{title}: {shown}", headline="difference"))
            if len(columns) > 1:
                caption = f"{title}: all columns (plain: real; with ?: depends; in brackets: not told)"
                wide = _frame(_by_column(of_kind))
                # A row may lack a difference in the first of them: the best of a column has none to itself.
                named = ["row", *(Named("column", column.name) for column in self.entry.columns)]
                order = [*filter(wide.__contains__, named), *(name for name in wide if name not in named)]
                tables.append(Table(wide[order], caption))
        return Tables([*tables[:-1], replace(tables[-1], notes=self.notes())])

    def notes(self) -> tuple[str, ...]:
        """Return what the answers mean, and what they assume."""
        tasks = list(dict.fromkeys(difference.task for difference in self.differences))
        seen = [(task, *self.using.correlations(task)) for task in tasks]
        ranges = ", ".join(f"{task} {low:.2f} to {high:.2f}" for task, low, high in seen)
        return (
            "smallest told: the smallest difference that a test of 5 % tells from chance on these tasks' pairs, "
            "under the highest and under the lowest correlation of two models' errors.",
            "real: told under every correlation; not told: under none; depends: under some. The correlations are "
            f"{self.using.assumed}: {ranges}.",
            "Standard errors are those of the encoder at hand with the nearest score, on Fisher's scale; pairs "
            "that share a sentence count as dependent. How many rows are looked at is not corrected for.",
            "two seeds: what two seeds of SimCSE differ by at most in 19 of 20 cases, in an independent "
            "reproduction. The answers are of checkpoints: what is real may still be a lucky seed.",
        )


def _in_full(difference: PrintedDifference) -> dict[Any, Any]:
    return {
        "row": _short(difference.row, difference.row),
        "score": difference.score,
        difference.against: _short(difference.other, difference.row),
        "difference": difference.difference,
        "smallest told": f"{difference.low:.2f} to {difference.high:.2f}",
        "answer": difference.answer,
        "two seeds": difference.seeds,
    }


def _by_column(of_kind: Sequence[PrintedDifference]) -> list[dict[Any, Any]]:
    by_row: dict[str, dict[Any, Any]] = {}
    for difference in of_kind:
        cells = by_row.setdefault(difference.row, {"row": _short(difference.row, difference.row)})
        marked = _MARKS[difference.answer].format(f"{difference.difference:+.2f}")
        cells[Named("column", difference.column)] = marked
    return list(by_row.values())


def _short(name: str, beside: str) -> str:
    """Return a row's name, without its table where that is the other's, too."""
    table, _, row = name.partition("/")
    return row if table == beside.partition("/")[0] else name


def _frame(records: Sequence[Mapping[Any, Any]]) -> pd.DataFrame:
    return pd.DataFrame(list(records))


def resolved(table: PublishedTable, using: Facts | None = None) -> ResolvedTable:
    """Return which of a table's differences its tasks' pairs could tell from chance.

    Args:
        table: the table.
        using: the facts to reckon with; by default all that come with the package.

    Raises:
        UserError: if the table has no scores that the facts are of, or nothing to hold them against.
    """
    if not any(scored_cells(row) for row in rows_of(table)):
        raise UserError(
            f"{table.name} has no Spearman correlations on all pairs of STS test sets or of STS-B's development "
            "set, so it has no differences to resolve: `stsbench published list` names the tables."
        )
    made = differences(table, using)
    if not made:
        raise UserError(
            f"{table.name} has STS scores of one row, and no SimCSE of its backbone is published: there is no "
            "difference to resolve."
        )
    return ResolvedTable(table, tuple(made), using or facts())
