"""What people score on the tasks, and the ceiling that their agreement sets, beside the models."""

import math
from typing import Any

import pandas as pd

from stsbench.published import catalogue
from stsbench.records.labels import task_labels
from stsbench.records.parts import Score
from stsbench.records.signature import Signature
from stsbench.render.cells import unique_labels
from stsbench.render.section import Section
from stsbench.render.table import Table
from stsbench.reports.scores import Runs, task_names
from stsbench.statistics.dependence import Variance
from stsbench.statistics.intervals import Limits, correlation_interval

_COLUMNS = ("task", "ceiling", "people", "low", "high", "people's pairs")


def people(runs: Runs) -> Section | None:
    """Returns the models' Pearson correlations beside people's and the ceiling; None if neither is known.

    The ceiling is the correlation of a similarity without error: the root of the gold scores' reliability, from
    the spread of the published ratings. People are two raters who scored a sample of the pairs again (HUME,
    arXiv 2510.10062); their interval assumes independent pairs.
    """
    raters, sizes = (catalogue.row(f"hume-sts/{name}") for name in ("two-raters-pearson", "pairs"))
    columns = {cell.setting.task: cell.column for cell in raters.cells}
    called, models = task_names(runs), dict(zip(runs, unique_labels(list(runs), _COLUMNS), strict=True))
    rows: dict[str, dict[str, Any]] = {}
    for label, record in runs.items():
        for name, score in zip(task_labels(record.scores), record.scores, strict=True):
            pearson = score.number("pearson", "all")
            ceiling = None if score.raters is None else score.raters.ceiling
            column = columns.get(score.task) if _is_whole_test_set(score) else None
            if pearson is None or pearson.value is None or (column is None and ceiling is None):
                continue
            task = called[label, name]
            row = rows.setdefault(task, {"task": task, "ceiling": None if ceiling is None else 100 * ceiling})
            if column is not None:
                value, size = raters.cell(column).score or 0.0, int(sizes.cell(column).value or 0)
                limits = _of_sample(value / 100, size)
                row |= {"people": value, "low": 100 * limits.low, "high": 100 * limits.high}
                row["people's pairs"] = size
            row[models[label]] = 100 * pearson.value
    if not rows:
        return None
    caption = "Pearson x 100 beside people on a sample and the ceiling of the raters"
    text = "People rated a sample; a model above them on all pairs is not thereby better than people."
    frame = pd.DataFrame(list(rows.values()), dtype=object).dropna(axis="columns", how="all")
    return Section("people", "People", (text,), (Table(frame, caption, name="people-scores"),))


def _is_whole_test_set(score: Score) -> bool:
    """Returns whether a score is of a whole released test set (of STS22, the English one)."""
    if Signature.parse(score.signature).split != "test" or score.data.status == "user":
        return False
    return score.task != "STS22" or [subset.subset for subset in score.subsets] == ["en"]


def _of_sample(correlation: float, pairs: int) -> Limits:
    """Returns the interval of a Pearson correlation; Fisher's z has the variance 1 / (n - 3)."""
    variance = (1 - correlation**2) ** 2 / (pairs - 3)
    return correlation_interval(correlation, Variance(variance, variance, math.inf), pairs, metric="pearson")
