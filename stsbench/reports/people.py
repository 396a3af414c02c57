"""What people score on the tasks, and the ceiling that their agreement sets: beside what the models score."""

import math
from typing import Any

import pandas as pd

from stsbench.base.words import listed
from stsbench.published import catalogue
from stsbench.records.labels import task_labels
from stsbench.records.parts import Score
from stsbench.records.signature import Signature
from stsbench.render.charts import forest
from stsbench.render.figures import svg_of
from stsbench.render.section import ReportFigure, Section
from stsbench.render.table import Table
from stsbench.reports.scores import MOST_DRAWN, Runs, task_names
from stsbench.statistics.correlations import Metric
from stsbench.statistics.dependence import Variance
from stsbench.statistics.intervals import Limits, correlation_interval


def people(runs: Runs) -> Section | None:
    """Return what people score beside the models, and the ceilings of ratings; None where there is neither."""
    text, ceilings, scored_anew = [], _ceilings(runs), _scored_anew(runs)
    if ceilings:
        text.append(
            "A ceiling is the Pearson correlation of a similarity without error: the root of the gold scores' "
            "reliability, from the spread of the published ratings."
        )
    if scored_anew:
        text.append(
            "People are two raters who scored a few dozen of the pairs anew (HUME, arXiv 2510.10062): the "
            "interval is of so many pairs. The models' scores are on all pairs: one above people's is not "
            "thereby better."
        )
    drawn = tuple(filter(None, [_human_line(runs)]))
    return Section("people", "People", tuple(text), (*ceilings, *scored_anew), drawn) if text else None


def _percent(value: float | None) -> float | None:
    return None if value is None else 100 * value


def _ceilings(runs: Runs) -> list[Table]:
    """Return the Pearson correlations beside the ceilings that raters set, where their ratings are published."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    called = task_names(runs)
    for label, record in runs.items():
        for name, score in zip(task_labels(record.scores), record.scores, strict=True):
            if score.raters is not None:
                raters = score.raters
                key = (called[label, name], raters.ratings, raters.reliability, _percent(raters.ceiling))
                pearson = score.number("pearson", "all")
                rows.setdefault(key, {})[label] = None if pearson is None else _percent(pearson.value)
    if not rows:
        return []
    keys = ("task", "ratings a pair", "reliability", "ceiling")
    cells = [{**dict(zip(keys, key, strict=True)), **scores} for key, scores in rows.items()]
    table = pd.DataFrame(cells, dtype=object)
    return [Table(table, "Pearson x 100 beside the ceiling that the raters' agreement sets", name="ceilings")]


def _scored_anew(runs: Runs) -> list[Table]:
    """Return what people score on samples of the test sets, beside the models' Spearman correlations."""
    mean, *alone = (catalogue.row(f"hume-sts/{name}") for name in ("two-raters", "first-rater", "second-rater"))
    sizes = catalogue.row("hume-sts/pairs")
    measured = {cell.setting.task: cell.column for cell in mean.cells}
    rows: dict[str, dict[str, Any]] = {}
    for label, record in runs.items():
        for score in record.scores:
            column = measured.get(score.task)
            if column is None or not _is_whole_test_set(score):
                continue
            if column not in rows:
                pairs = int(sizes.cell(column).value or 0)
                limits = _of_sample((mean.cell(column).score or 0.0) / 100, pairs)
                each = sorted(rater.cell(column).score or 0.0 for rater in alone)
                rows[column] = {
                    "task": column,
                    "their pairs": pairs,
                    "people": mean.cell(column).score,
                    "low": 100 * limits.low,
                    "high": 100 * limits.high,
                    "each alone": " and ".join(f"{value:.2f}" for value in each),
                }
            spearman = score.number("spearman", "all")
            rows[column][label] = None if spearman is None else _percent(spearman.value)
    if not rows:
        return []
    caption = "People on samples of the test sets, beside Spearman x 100 on all pairs"
    return [Table(pd.DataFrame(list(rows.values()), dtype=object), caption, name="scored-anew")]


def _human_line(runs: Runs) -> ReportFigure | None:
    """Draw what people score and the ceiling that raters set beside the models' Pearson; None without either.

    People's interval is of as many independent pairs as they scored; ceilings and models' Pearson have none here.
    """
    if len(runs) > MOST_DRAWN:
        return None
    people, sizes = (catalogue.row(f"hume-sts/{name}") for name in ("two-raters-pearson", "pairs"))
    columns = {cell.setting.task: cell.column for cell in people.cells}
    marks: dict[tuple[str, str], tuple[float, float, float]] = {}
    called, nan = task_names(runs), math.nan
    for label, record in runs.items():
        for name, score in zip(task_labels(record.scores), record.scores, strict=True):
            task, pearson = called[label, name], score.number("pearson", "all")
            column = columns.get(score.task) if _is_whole_test_set(score) else None
            ceiling = None if score.raters is None else score.raters.ceiling
            if pearson is None or pearson.value is None or (column is None and ceiling is None):
                continue
            if ceiling is not None:
                marks[task, "ceiling"] = (100 * ceiling, nan, nan)
            if column is not None:
                value = people.cell(column).score or 0.0
                limits = _of_sample(value / 100, int(sizes.cell(column).value or 0), "pearson")
                marks[task, "people"] = (value, 100 * limits.low, 100 * limits.high)
            marks[task, label] = (100 * pearson.value, nan, nan)
    if not marks:
        return None
    order = {name: place for place, name in enumerate((*runs, "people", "ceiling"))}
    rows = [
        {"label": task, "series": series, "value": value, "low": low, "high": high}
        for (task, series), (value, low, high) in sorted(marks.items(), key=lambda mark: order[mark[0][1]])
    ]
    frame = pd.DataFrame(rows).assign(filled=True, summary=False)
    frame["filled"] = ~frame["series"].isin(["people", "ceiling"])
    told = "; ".join(f"{row['label']}, {row['series']}: {row['value']:.2f}" for row in rows)
    beside = {"people": "people on samples of the test sets", "ceiling": "the ceiling of the raters"}
    shown = [words for series, words in beside.items() if series in set(frame["series"])]
    caption = f"Pearson x 100 beside {listed(shown)}"
    return ReportFigure("human-line", caption, told, svg_of(forest(frame, "Pearson x 100")))


def _is_whole_test_set(score: Score) -> bool:
    """Return whether a score is of the released test set that people had a sample of: of STS22 the English."""
    if Signature.parse(score.signature).split != "test" or score.data.status == "user":
        return False
    return score.task != "STS22" or [subset.subset for subset in score.subsets] == ["en"]


def _of_sample(correlation: float, pairs: int, metric: Metric = "spearman") -> Limits:
    """Return the interval of a correlation of which the number of pairs alone is known.

    Fisher's z has the variance 1 / (n - 3), of a Spearman correlation Bonett and Wright's (2000)
    (1 + r^2 / 2) / (n - 3), of independent pairs.
    """
    to_r = (1 - correlation**2) ** 2
    variance = (1 + correlation**2 / 2 if metric == "spearman" else 1.0) / (pairs - 3) * to_r
    return correlation_interval(correlation, Variance(variance, variance, math.inf), pairs, metric=metric)
