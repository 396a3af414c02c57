"""The result of a comparison: rows of numbers, the verdict as a sentence, tables and a forest plot."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import pandas as pd

from stsbench.base.words import listed
from stsbench.judging.judgement import OfTask, OfTwo, by_kind, p_text
from stsbench.records.kinds import KINDS
from stsbench.render.charts import forest
from stsbench.render.figures import shortened, svg_of
from stsbench.render.section import ReportFigure, Section
from stsbench.render.table import Table, Tables
from stsbench.statistics import Dependence
from stsbench.statistics.estimate import Verdict, verdict_of_p
from stsbench.statistics.significance import holm

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TESTS = {"williams": "Williams", "mcnemar": "McNemar"}
"""Names of the tests that treat items as independent."""

_Tested = TypeVar("_Tested", bound="Judged")


class Judged(OfTask):
    """A tested difference between two models or methods, on one task, one subset or on average."""

    difference: float
    low: float
    high: float
    p: float
    p_holm: float

    @property
    def is_task(self) -> bool:
        """Whether this is a whole task."""
        return not self.is_average

    def verdict(self, level: float) -> Verdict:
        """Judges the difference of B from A; averages, which are tested alone, by the uncorrected p-value."""
        return verdict_of_p(self.difference, self.p if self.is_average else self.p_holm, level)


@dataclass(frozen=True)
class Difference(Judged):
    """How B differs from A on one task, one subset or on average. Undefined values are NaN.

    Attributes:
        kind: kind of the task (see `stsbench.records.kinds`).
        task: name of the task or average.
        subset: name of the subset; empty for a whole task.
        size: number of pairs or items.
        a: score of A x 100; `b`: of B.
        difference: b - a, with its interval `low` to `high`.
        p: two-sided p-value, below 1 - level if and only if the interval excludes 0; `p_holm`: after Holm's
            correction over the tasks of a kind, or over all their subsets. Averages are not corrected.
        effect_size: Cohen's `q` for correlations, `h` for accuracies; empty if there is no usual one.
        effect: its value, with the interval `effect_low` to `effect_high`.
        test: `williams` or `mcnemar`, which treat items as independent; empty if neither is defined.
        test_p: its p-value; `test_p_holm`: after correction.
        interval: which pairs interval and p-value treat as dependent.
        details: standard errors x 100 of the difference (`se_dyadic`, `se_components`, `se_independent`), degrees
            of freedom (`df`), and the statistics and counts of the test.
    """

    kind: str
    task: str
    subset: str
    size: int
    a: float
    b: float
    difference: float
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    effect: float = math.nan
    effect_low: float = math.nan
    effect_high: float = math.nan
    effect_size: str = ""
    p_holm: float = math.nan
    test: str = ""
    test_p: float = math.nan
    test_p_holm: float = math.nan
    interval: Dependence | None = None
    details: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_task(self) -> bool:
        """Whether this is a whole task."""
        return not (self.subset or self.is_average)


def corrected(rows: Sequence[_Tested], tests: Sequence[str] = ("p",)) -> list[_Tested]:
    """Returns rows of one kind with p-values after Holm's correction: over the tasks, and over all subsets.

    Args:
        rows: the rows.
        tests: the fields with p-values; the corrected value goes to the field with `_holm` after the name.
    """
    changed = list(rows)
    for of_tasks in (True, False):
        places = [n for n, row in enumerate(rows) if row.is_task == of_tasks and not row.is_average]
        for test in tests:
            p_values = holm([getattr(rows[place], test) for place in places]).tolist()
            for place, p in zip(places, p_values, strict=True):
                changed[place] = replace(changed[place], **{f"{test}_holm": p})  # type: ignore[type-var]
    return changed


@dataclass(frozen=True)
class ComparisonResult(OfTwo):
    """What comparing two models and comparing two methods have in common."""

    caption: ClassVar[str]
    """The caption of the figure."""

    rows: tuple[Any, ...]
    level: float

    @abstractmethod
    def table(self, *, subsets: bool = False) -> Tables:
        """Returns the scores, of every subset too if requested."""

    @abstractmethod
    def plot(self) -> "Figure":
        """Returns a forest plot."""

    def section(self, number: int = 1) -> Section:
        """Returns the comparison as a section of a report; the number makes its names unique."""
        tables = tuple(
            replace(table, caption="; ".join(self.legend), name=f"compare-{number}-{place}")
            for place, table in enumerate(self.table(subsets=True), 1)
        )
        figure = ReportFigure(f"compare-figure-{number}", self.caption, self.sentence, svg_of(self.plot()))
        name, title = f"comparison-{number}", " and ".join(filter(None, (self.b, self.a)))
        return Section(name, title, (self.sentence,), tables, (figure,), points=self.notes)

    @property
    def _limits(self) -> tuple[str, str]:
        tail = 50 * (1 - self.level)
        return f"{tail:g} %", f"{100 - tail:g} %"


@dataclass(frozen=True)
class Comparison(ComparisonResult):
    """Two models on the same pairs and items.

    Attributes:
        a: name of model A; `b`: of model B.
        rows: each task, followed by its subsets if it has several; after the tasks of a kind their average.
        level: level of the intervals; a p-value below 1 - level is significant.
    """

    caption = "B − A on each task, with intervals"

    rows: tuple[Difference, ...]

    @property
    def sentence(self) -> str:
        """The verdict, one sentence for each kind of task."""
        sentences = {
            kind: verdict_sentence([row for row in rows if not row.subset], self.level, (self.a, self.b))
            for kind, rows in by_kind(self.rows).items()
        }
        if len(sentences) == 1:
            return next(iter(sentences.values()))
        words = {kind: KINDS[kind].words for kind in sentences}
        return " ".join(f"{words[kind][:1].upper()}{words[kind][1:]}: {text}" for kind, text in sentences.items())

    @property
    def frame(self) -> pd.DataFrame:
        """One row per task, subset and average, with the columns of `Difference` and its details."""
        rows = [asdict(row) for row in self.rows]
        return pd.DataFrame([{**row, **row["details"]} for row in rows]).drop(columns="details")

    def table(self, *, subsets: bool = False) -> Tables:
        """Returns a table for each kind of task.

        Args:
            subsets: includes every subset.
        """
        rows = [row for row in self.rows if subsets or not row.subset]
        frames = [pd.DataFrame(self._cells(of_kind, subsets)) for of_kind in by_kind(rows).values()]
        return Tables(Table(frame, headline="B − A") for frame in frames)

    def plot(self) -> "Figure":
        """Returns a forest plot of the differences; significant ones are filled."""
        rows = [
            {
                "label": row.task,
                "series": "",
                "value": row.difference,
                "low": row.low,
                "high": row.high,
                "filled": row.verdict(self.level) != "undecided",
                "summary": not row.is_task,
            }
            for row in self.rows
            if not row.subset
        ]
        alpha = 100 * (1 - self.level)
        label = f"{shortened(self.b)} − {shortened(self.a)} (filled: significant at {alpha:g} %, Holm)"
        return forest(pd.DataFrame(rows), label, reference=0.0)

    def _cells(self, rows: Sequence[Difference], subsets: bool) -> Iterator[dict[str, object]]:
        """Yields the rows of one kind's table, without columns that are empty."""
        low, high = self._limits
        effect = next((row.effect_size for row in rows if row.effect_size), "")
        test = next((TESTS[row.test] for row in rows if row.test), "")
        for row in rows:
            effect_text = None if math.isnan(row.effect) else f"{row.effect:.3f}"
            yield {
                "task": row.task,
                **({"subset": row.subset} if subsets else {}),
                "A": row.a,
                "B": row.b,
                "B − A": row.difference,
                low: row.low,
                high: row.high,
                **({effect: effect_text} if effect else {}),
                "p": p_text(row.p),
                "p (Holm)": p_text(row.p_holm),
                **({f"{test} p (Holm)": p_text(row.test_p_holm)} if test else {}),
            }


def verdict_sentence(rows: Sequence[Judged], level: float, names: tuple[str, str] = ("A", "B")) -> str:
    """Returns one sentence on the tasks and the average, the last row if there are several tasks."""
    tasks = [row for row in rows if row.is_task]
    if len(tasks) == 1:
        (only,) = tasks
        winner = {"better": names[1], "worse": names[0]}.get(only.verdict(level))
        start = f"{winner} is better" if winner else "No significant difference"
        return f"{start} on {only.task}: {_tested(only)}."
    parts = []
    for name, wins in ((names[1], "better"), (names[0], "worse")):
        won = [row.task for row in tasks if row.verdict(level) == wins]
        if won:
            parts.append(f"{name} is better on {'all tasks' if len(won) == len(tasks) else listed(won)}")
    parts = parts or ["No significant difference on any task"]
    if untested := [row.task for row in tasks if math.isnan(row.p)]:
        parts.append(f"{listed(untested)} could not be tested")
    average = rows[-1]
    if not average.is_task:
        significant = "not significant" if average.verdict(level) == "undecided" else "significant"
        at_level = "" if math.isnan(average.p) else f" ({significant} at {100 * (1 - level):g} %)"
        parts.append(f"average difference {_tested(average)}{at_level}")
    return f"{'; '.join(parts)}."


def _tested(row: Judged) -> str:
    if math.isnan(row.difference):
        return "undefined"
    if math.isnan(row.p):
        return f"{row.difference:.2f}, not tested"
    p = "p < 0.001" if row.p < 0.001 else f"p = {row.p:.3f}"
    return f"{row.difference:.2f} [{row.low:.2f}, {row.high:.2f}], {p}"
