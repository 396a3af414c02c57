"""The result of a comparison: rows of numbers, the verdict as a sentence, tables and a forest plot."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from stsbench.base.words import listed
from stsbench.judging.verdicts import OfTwo, p_text, records
from stsbench.records.kinds import AVERAGES, KINDS
from stsbench.render.charts import forest
from stsbench.render.figures import shortened, svg_of
from stsbench.render.page import ReportFigure, Section
from stsbench.render.table import Table, Tables
from stsbench.statistics.estimate import holm, verdict_of_p

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TESTS = {"williams": "Williams", "mcnemar": "McNemar"}
"""Names of the tests that treat items as independent."""


def corrected(
    rows: pd.DataFrame, level: float, *, tests: Sequence[str] = ("p",), by: Sequence[Any] = ("kind",)
) -> pd.DataFrame:
    """Adds the columns `p_holm` and `verdict` to tested differences.

    Args:
        rows: `task`, `difference` and `p` of differences.
        level: a corrected p-value below 1 - level is significant.
        tests: the columns of p-values; each gets a corrected one, with `_holm` after its name.
        by: the column to group by: p-values are corrected within a group. Averages are tested separately.
    """
    is_average = rows["task"].isin(AVERAGES)
    groups = rows[~is_average].groupby([rows[key] if isinstance(key, str) else key for key in by])
    rows = rows.assign(**{f"{test}_holm": groups[test].transform(holm) for test in tests})
    decisive = zip(rows["difference"], rows["p"].where(is_average, rows["p_holm"]), strict=True)
    return rows.assign(verdict=[verdict_of_p(difference, p, level) for difference, p in decisive])


def limit_names(level: float) -> tuple[str, str]:
    """Returns the names of the columns with the limits of an interval, such as `2.5 %` and `97.5 %`."""
    tail = 50 * (1 - level)
    return f"{tail:g} %", f"{100 - tail:g} %"


@dataclass(frozen=True, eq=False)
class Comparison(OfTwo):
    """Two models on the same pairs and items.

    Attributes:
        a: name of model A; `b`: of model B.
        rows: a row per task, followed by its subsets if it has several; after the tasks of a kind their average.
            Scores are x 100, undefined values NaN.

            - `kind`, `task`, `subset` (empty for a whole task), `size` in pairs or items;
            - the scores `a` and `b`, `difference` = b - a with its interval `low` to `high`;
            - `p`: two-sided p-value, below 1 - level if and only if the interval excludes 0; `p_holm`: after
              Holm's correction over the tasks of a kind, or over all their subsets (averages are not corrected);
              `verdict`: of B, `better`, `worse` or `undecided`;
            - `effect_size`: Cohen's `q` for correlations, `h` for accuracies, or empty; `effect`: its value, with
              the interval `effect_low` to `effect_high`;
            - `test`: `williams` or `mcnemar`, which treat items as independent, or empty, with its `test_p` and
              `test_p_holm`, statistics and counts;
            - `interval`: which pairs are treated as dependent; `se_dyadic`, `se_components`, `se_independent`: the
              standard error of the difference, and `df`: degrees of freedom.
        level: level of the intervals; a p-value below 1 - level is significant.
    """

    level: float

    @property
    def sentence(self) -> str:
        """The verdict, one sentence for each kind of task."""
        whole = records(self.rows[self.rows["subset"] == ""])
        return comparison_sentence(whole, self.level, (self.a, self.b))

    def table(self, *, subsets: bool = False) -> Tables:
        """Returns a table for each kind of task.

        Args:
            subsets: includes every subset.
        """
        rows = self.rows if subsets else self.rows[self.rows["subset"] == ""].drop(columns="subset")
        return Tables(Table(self._cells(of), headline="B − A") for _, of in rows.groupby("kind", sort=False))

    def plot(self) -> "Figure":
        """Returns a forest plot of the differences; significant ones are filled."""
        rows = self.rows[self.rows["subset"] == ""].rename(columns={"task": "label", "difference": "value"})
        filled, summary = rows["verdict"] != "undecided", rows["label"].isin(AVERAGES)
        alpha = 100 * (1 - self.level)
        label = f"{shortened(self.b)} − {shortened(self.a)} (filled: significant at {alpha:g} %, Holm)"
        return forest(rows.assign(series="", filled=filled, summary=summary), label, reference=0.0)

    def section(self, number: int = 1) -> Section:
        """Returns the comparison as a section of a report; the number makes its names unique."""
        tables = tuple(
            replace(table, caption="; ".join(self.legend), name=f"compare-{number}-{place}")
            for place, table in enumerate(self.table(subsets=True), 1)
        )
        caption = "B − A on each task, with intervals"
        figure = ReportFigure(f"compare-figure-{number}", caption, self.sentence, svg_of(self.plot()))
        name, title = f"comparison-{number}", " and ".join(filter(None, (self.b, self.a)))
        return Section(name, title, (self.sentence,), tables, (figure,), points=self.notes)

    def _cells(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Returns the table of one kind, without columns that are empty."""
        effect, test = rows["effect_size"].max(), rows["test"].max()
        texts = {name: rows[name].map(p_text) for name in ("p", "p_holm", "test_p_holm")}
        texts["effect"] = rows["effect"].map(lambda value: None if math.isnan(value) else f"{value:.3f}")
        heads = dict(zip(("low", "high"), limit_names(self.level), strict=True))
        heads |= {"task": "task", "subset": "subset", "a": "A", "b": "B", "difference": "B − A", "effect": effect}
        heads |= {"p": "p", "p_holm": "p (Holm)", "test_p_holm": f"{TESTS[test]} p (Holm)" if test else ""}
        order = ("task", "subset", "a", "b", "difference", "low", "high", "effect", "p", "p_holm", "test_p_holm")
        shown = {name: heads[name] for name in order if name in rows and heads[name]}
        return rows.assign(**texts)[list(shown)].rename(columns=shown)


def comparison_sentence(rows: Sequence[Any], level: float, names: tuple[str, str]) -> str:
    """Returns the verdict on whole tasks and averages, one sentence for each kind of task."""
    sentences = {
        kind: verdict_sentence([row for row in rows if row.kind == kind], level, names)
        for kind in dict.fromkeys(row.kind for row in rows)
    }
    if len(sentences) == 1:
        return next(iter(sentences.values()))
    words = {kind: KINDS[kind].words for kind in sentences}
    return " ".join(f"{words[kind][:1].upper()}{words[kind][1:]}: {text}" for kind, text in sentences.items())


def verdict_sentence(rows: Sequence[Any], level: float, names: tuple[str, str] = ("A", "B")) -> str:
    """Returns one sentence on the tasks and the average, the last row if there are several tasks."""
    tasks = [row for row in rows if row.task not in AVERAGES]
    if len(tasks) == 1:
        (only,) = tasks
        winner = {"better": names[1], "worse": names[0]}.get(only.verdict)
        start = f"{winner} is better" if winner else "No significant difference"
        return f"{start} on {only.task}: {difference_text(only)}."
    parts = []
    for name, wins in ((names[1], "better"), (names[0], "worse")):
        won = [row.task for row in tasks if row.verdict == wins]
        if won:
            parts.append(f"{name} is better on {'all tasks' if len(won) == len(tasks) else listed(won)}")
    parts = parts or ["No significant difference on any task"]
    if untested := [row.task for row in tasks if math.isnan(row.p)]:
        parts.append(f"{listed(untested)} could not be tested")
    average = rows[-1]
    if average.task in AVERAGES:
        significant = "not significant" if average.verdict == "undecided" else "significant"
        at_level = "" if math.isnan(average.p) else f" ({significant} at {100 * (1 - level):g} %)"
        parts.append(f"average difference {difference_text(average)}{at_level}")
    return f"{'; '.join(parts)}."


def difference_text(row: Any) -> str:
    """Returns the difference of a row with its interval and p-value."""
    if math.isnan(row.difference):
        return "undefined"
    if math.isnan(row.p):
        return f"{row.difference:.2f}, not tested"
    p = "p < 0.001" if row.p < 0.001 else f"p = {row.p:.3f}"
    return f"{row.difference:.2f} [{row.low:.2f}, {row.high:.2f}], {p}"
