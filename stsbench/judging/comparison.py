"""What a comparison finds: rows of numbers, the sentence that they allow, tables and a forest plot."""

import html
import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import pandas as pd

from stsbench.base.words import listed
from stsbench.judging.overlap import Overlap, overlap_sentences, overlap_table
from stsbench.records.kinds import AVERAGES, KINDS
from stsbench.render.charts import forest
from stsbench.render.figures import shortened, svg_of
from stsbench.render.result import Result
from stsbench.render.section import ReportFigure, Section
from stsbench.render.table import Table, Tables
from stsbench.render.text import one_line
from stsbench.statistics import Dependence
from stsbench.statistics.significance import holm

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TESTS = {"williams": "Williams", "mcnemar": "McNemar"}
"""The tests that take items for independent, for a reader."""

_Tested = TypeVar("_Tested", bound="Judged")


class Judged:
    """What a verdict is made of: a tested difference on one task or on average, of two models or two methods."""

    tests: ClassVar[tuple[str, ...]] = ("p",)
    """The fields that hold a p-value; what Holm's correction makes of each has `_holm` behind its name."""

    kind: str
    task: str
    difference: float
    low: float
    high: float
    p: float
    p_holm: float

    @property
    def is_average(self) -> bool:
        """Whether this is the average over tasks."""
        return self.task in AVERAGES

    @property
    def is_task(self) -> bool:
        """Whether this is a task as a whole."""
        return not self.is_average


@dataclass(frozen=True)
class Difference(Judged):
    """How B differs from A on one task, one subset or on average. NaN where something is undefined.

    Attributes:
        kind: of the task (see `stsbench.records.kinds`).
        task: its name; of an average what that of its kind is called.
        subset: empty for a task as a whole.
        size: the number of pairs or items.
        a: the score of A, x 100; `b`: of B.
        difference: b - a, with the limits `low` and `high` of its interval.
        p: two-sided, below 1 - level exactly where the interval leaves out 0; `p_holm`: after Holm's correction
            over the tasks of a kind (or over all its subsets). The average is one question of its own: not
            corrected.
        effect_size: Cohen's `q` (of correlations) or `h` (of accuracies); empty where there is no usual one.
        effect: how large it is, with the limits `effect_low` and `effect_high`.
        test: `williams` or `mcnemar`, which take pairs and items for independent; empty where neither is defined.
        test_p: its p-value; `test_p_holm`: after correction.
        interval: how the interval and the p-value see pairs that share sentences.
        details: what else is known: the standard error of the difference, x 100, by each way to see pairs that
            share sentences (`se_dyadic`, `se_components`, `se_independent`) and the degrees of freedom (`df`);
            the test's statistics and counts.
    """

    tests = ("p", "test_p")

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
        """Whether this is a task as a whole."""
        return not self.subset and not self.is_average


def corrected(rows: Sequence[_Tested]) -> tuple[_Tested, ...]:
    """Return rows of one kind with p-values after Holm's correction: over the tasks, and over all subsets."""
    tasks = [place for place, row in enumerate(rows) if row.is_task]
    subsets = [place for place, row in enumerate(rows) if not (row.is_task or row.is_average)]
    adjusted: list[dict[str, float]] = [{} for _ in rows]
    for places in (tasks, subsets):
        for test in type(rows[0]).tests if places else ():
            p_values = holm([getattr(rows[place], test) for place in places])
            for place, p in zip(places, p_values.tolist(), strict=True):
                adjusted[place][f"{test}_holm"] = p
    changed = zip(rows, adjusted, strict=True)
    return tuple(replace(row, **fields) for row, fields in changed)  # type: ignore[type-var]


@dataclass(frozen=True)
class Judgement(Result):
    """A result that a sentence sums up, below its tables and before what a reader should know."""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """What is to be said."""

    @property
    @abstractmethod
    def words(self) -> list[str]:
        """What a reader should know, a line each."""

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data; what is undefined is None."""
        whole: dict[str, Any] = plain_data({"sentence": self.sentence} | asdict(self))
        return whole

    def __str__(self) -> str:
        """Return what a terminal shows: the tables, the sentence, and what to know."""
        words = "\n".join(map(one_line, self.words))
        return "\n\n".join([*map(str, self.table()), one_line(self.sentence), words])

    def _repr_html_(self) -> str:
        words = "".join(f"<p>{html.escape(line)}</p>" for line in (self.sentence, *self.words))
        return f"{self.table()._repr_html_()}{words}"


@dataclass(frozen=True)
class ComparisonResult(Judgement):
    """What comparing two models and comparing two methods have in common: how they show themselves."""

    a: str
    b: str
    rows: tuple[Any, ...]
    level: float
    notes: tuple[str, ...] = ()
    overlaps: tuple[Overlap, ...] = ()

    @abstractmethod
    def table(self, *, subsets: bool = False) -> Tables:
        """Return what readers are shown: the scores (of every subset too), then what was found in corpora."""

    @abstractmethod
    def plot(self) -> "Figure":
        """Return a forest plot."""

    @property
    @abstractmethod
    def _title(self) -> str: ...

    @property
    def legend(self) -> list[str]:
        """Which is A and which is B."""
        return [f"{letter}: {name}" for letter, name in (("A", self.a), ("B", self.b)) if name]

    @property
    def remarks(self) -> list[str]:
        """What was found in each corpus, and the notes; a line each."""
        return [*overlap_sentences(self.overlaps), *(f"note: {note}" for note in self.notes)]

    @property
    def words(self) -> list[str]:
        """What a reader should know, a line each."""
        return self.remarks

    def section(self, number: int = 1) -> Section:
        """Return it as the section of the report's comparison with this number."""
        tables = tuple(
            replace(table, caption="; ".join(self.legend), name=f"compare-{number}-{place}")
            for place, table in enumerate(self.table(subsets=True), 1)
        )
        figure = ReportFigure(f"compare-figure-{number}", self._title, self.sentence, svg_of(self.plot()))
        name, title = f"comparison-{number}", " and ".join(filter(None, (self.b, self.a)))
        return Section(name, title, (self.sentence,), tables, (figure,), points=self.notes)

    def __str__(self) -> str:
        """Return what a terminal shows: which is A and which B, the tables, the sentence, and what to know."""
        return "\n\n".join(
            filter(None, ["\n".join(map(one_line, self.legend)), *map(str, self.table()), self._words])
        )

    def _repr_html_(self) -> str:
        above, below = (html.escape(text).replace("\n", "<br>") for text in ("\n".join(self.legend), self._words))
        return f"<p>{above}</p>{self.table()._repr_html_()}<p>{below}</p>"

    def _with_overlaps(self, scores: list[Table]) -> Tables:
        return Tables([*scores, overlap_table(self.overlaps)] if self.overlaps else scores)

    @property
    def _words(self) -> str:
        return "\n".join(map(one_line, [self.sentence, *self.remarks]))

    @property
    def _limits(self) -> tuple[str, str]:
        tail = 50 * (1 - self.level)
        return f"{tail:g} %", f"{100 - tail:g} %"


@dataclass(frozen=True)
class Comparison(ComparisonResult):
    """Two models on the same pairs and items.

    Attributes:
        a: the name of the one; `b`: of the other.
        rows: each task, followed by its subsets if it has several; after the tasks of a kind their average.
        level: of the intervals; 1 - level is what p-values are held against.
        notes: what a reader should know.
        overlaps: what of the test sentences was found in training corpora, if any were given.
    """

    rows: tuple[Difference, ...]

    @property
    def sentence(self) -> str:
        """What is to be said of the two, a sentence for each kind of task."""
        sentences = {
            kind: verdict([row for row in rows if not row.subset], self.level, (self.a, self.b))
            for kind, rows in by_kind(self.rows).items()
        }
        if len(sentences) == 1:
            return next(iter(sentences.values()))
        words = {kind: KINDS[kind].words for kind in sentences}
        return " ".join(f"{words[kind][:1].upper()}{words[kind][1:]}: {said}" for kind, said in sentences.items())

    @property
    def frame(self) -> pd.DataFrame:
        """One row per task, subset and average, with the columns of `Difference`, its details spread out."""
        rows = [asdict(row) for row in self.rows]
        return pd.DataFrame([{**row, **row["details"]} for row in rows]).drop(columns="details")

    def table(self, *, subsets: bool = False) -> Tables:
        """Return a table for each kind of task, and one of what was found in corpora.

        Args:
            subsets: whether to show every subset too.
        """
        rows = [row for row in self.rows if subsets or not row.subset]
        frames = [pd.DataFrame(self._cells(of_kind, subsets)) for of_kind in by_kind(rows).values()]
        return self._with_overlaps([Table(frame, headline="B − A") for frame in frames])

    def plot(self) -> "Figure":
        """Return a forest plot: the differences with their intervals, filled where they are real."""
        alpha = 1 - self.level
        rows = [
            {
                "label": row.task,
                "series": "",
                "value": row.difference,
                "low": row.low,
                "high": row.high,
                "filled": (row.p_holm if row.is_task else row.p) < alpha,
                "summary": not row.is_task,
            }
            for row in self.rows
            if not row.subset
        ]
        label = f"{shortened(self.b)} less {shortened(self.a)} (filled: real at {100 * alpha:g} % by Holm)"
        return forest(pd.DataFrame(rows), label, reference=0.0)

    @property
    def _title(self) -> str:
        return f"{self.b} less {self.a}, with {100 * self.level:g} % intervals"

    def _cells(self, rows: Sequence[Difference], subsets: bool) -> Iterator[dict[str, object]]:
        """Yield the rows of one kind's table; a column that none has anything for is left out."""
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


class OfKind(Protocol):
    """What has a kind of task."""

    @property
    def kind(self) -> str: ...


_Row = TypeVar("_Row", bound=OfKind)


def by_kind(rows: Iterable[_Row]) -> dict[str, list[_Row]]:
    """Return rows by the kind of their task, in their order."""
    kinds: dict[str, list[_Row]] = {}
    for row in rows:
        kinds.setdefault(row.kind, []).append(row)
    return kinds


def verdict(rows: Sequence[Judged], level: float, names: tuple[str, str] = ("A", "B")) -> str:
    """Return what a test of each task and of the average shows, in one sentence.

    A task counts as different if its p-value is below 1 - level after Holm's correction; the average, which comes
    last if there are several tasks and the kind has one, by its own.
    """
    alpha = 1 - level
    tasks = [row for row in rows if row.is_task]
    if len(tasks) == 1:
        (only,) = tasks
        winner = f"{names[only.difference > 0]} is better" if only.p < alpha else "Neither is shown to be better"
        return f"{winner} on {only.task}: {_judged(only, 'the', alpha)}."
    parts = []
    for name, sign in ((names[1], 1), (names[0], -1)):
        won = [row.task for row in tasks if row.p_holm < alpha and sign * row.difference > 0]
        if won:
            parts.append(f"{name} is better on {'all tasks' if len(won) == len(tasks) else listed(won)}")
    undefined = [row.task for row in tasks if math.isnan(row.p)]
    if undefined:
        parts.append(f"{listed(undefined)} could not be tested")
    parts = parts or ["No task shows a difference"]
    if not rows[-1].is_task:
        parts.append(_judged(rows[-1], "the average", alpha))
    return f"{'; '.join(parts)}."


def _judged(row: Judged, which: str, alpha: float) -> str:
    if math.isnan(row.difference):
        return f"{which} difference is undefined"
    values = f"{which} difference of {row.difference:.2f}"
    if math.isnan(row.p):
        return f"{values} could not be tested"
    judgement = "is real" if row.p < alpha else "may be chance"
    return f"{values} [{row.low:.2f}, {row.high:.2f}] {judgement} at {100 * alpha:g} %"


def p_text(p: float) -> str | None:
    """Return a p-value as it is printed: three digits, or that it is smaller.

    >>> p_text(0.0312), p_text(0.0002), p_text(float("nan"))
    ('0.031', '<0.001', None)
    """
    if math.isnan(p):
        return None
    return f"{p:.3f}" if p >= 0.001 else "<0.001"


def plain_data(value: Any) -> Any:
    """Return nested data with None for every number that JSON has not."""
    if isinstance(value, dict):
        return {key: plain_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
