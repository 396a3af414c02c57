"""The short answers of reports and of `run`: headline numbers, standing, findings, human raters, next command."""

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from stsbench.analysis.pair_kinds import PairKinds
from stsbench.analysis.ranked_pairs import COST, SHIFT
from stsbench.base.words import listed
from stsbench.judging.published import (
    AVERAGES,
    Fit,
    check_published,
    checkpoint_of_run,
    fitting,
    measured_scores,
    rows_to_check,
)
from stsbench.judging.verdicts import Check
from stsbench.published import catalogue
from stsbench.records.kinds import KINDS, STS
from stsbench.records.labels import task_labels
from stsbench.records.parts import Score
from stsbench.records.record import RunRecord
from stsbench.records.signature import Signature
from stsbench.render.charts import forest
from stsbench.render.figures import add_tooltips, look, style, svg_of
from stsbench.render.formats import unique_labels
from stsbench.render.page import Pointer, ReportFigure, Section
from stsbench.render.table import Table, interval
from stsbench.reports.scores import Runs, task_names
from stsbench.statistics.dependence import Variance
from stsbench.statistics.estimate import Estimate, holm
from stsbench.statistics.intervals import correlation_interval

SUMMARY, STANDING = "summary", "standing"

MOST_FINDINGS = 3
NEAREST = 30  # Published models, nearest in average, that predict the score on a task
FEWEST = 10  # With fewer of them there is no prediction

_RATERS_COLUMNS = ("task", "ceiling", "raters", "low", "high", "rated pairs")


@dataclass(frozen=True)
class Standing:
    """A run's score on a task, or on average, among published models. Scores are x 100.

    Attributes:
        task: the papers' name of it; an average is one of `AVERAGES`.
        value: the run's score.
        limits: its interval; None without one.
        scores: the comparable scores of published models, by system.
    """

    task: str
    value: float
    limits: tuple[float, float] | None
    scores: Mapping[str, float]

    @property
    def words(self) -> str:
        """The number of published models with a lower score, and of all."""
        return f"{sum(score < self.value for score in self.scores.values())} of {len(self.scores)}"


def standing(record: RunRecord) -> list[Standing]:
    """Returns a run's standing among published models, each average before its tasks; empty if none is comparable.

    A system counts once, with the row that represents it; later editions of a system and the run's own system are
    left out. A system must be comparable on every task that has more than half as many comparable systems as the
    most common task. If a run has several scores of a task (of two splits, for example), the one with most
    comparable systems is used.
    """
    places = []
    for average, tasks in AVERAGES.items():
        published, fits = _comparable(record, (average, *tasks))
        counts = published.notna().sum().sort_values(ascending=False, kind="stable")
        common = counts.index[2 * counts > counts.max()] if len(counts) else counts.index
        columns = {fits[column][0]: column for column in reversed(common)}
        whole = published[list(columns.values())].dropna()
        for task in (average, *tasks):
            if task in columns and len(whole):
                value, fit = fits[columns[task]][1:]
                limits = fit_interval(record, task, fit)
                shown = None if limits is None else (100 * limits[0], 100 * limits[1])
                places.append(Standing(task, value, shown, whole[columns[task]].to_dict()))
    return places


def _comparable(record: RunRecord, tasks: Sequence[str]) -> tuple[pd.DataFrame, dict[str, tuple[str, float, Fit]]]:
    """Returns the comparable published scores, one row per system, and task, value and fit of each column.

    A column is one number of the record, so two scores of a task have two columns.
    """
    measured, known = measured_scores(record), checkpoint_of_run(record)
    # Many rows have the same settings.
    fit_of = cache(lambda setting: fitting(setting, measured))
    fits: dict[str, tuple[str, float, Fit]] = {}
    candidates = []
    for row in catalogue.rows().values():
        system = row.system
        if system is None or row.row.variant or system.edition_of or (known and known.system == system.name):
            continue
        values = {}
        for cell in row.cells:
            if cell.setting.task not in tasks or cell.score is None or cell.setting.unit == "pairs":
                continue
            fit = fit_of(cell.setting)
            if fit.value is not None and not fit.differences:
                column = " ".join([cell.setting.task, *(f"{of.of.key} {of.statistic}" for of in fit.scores)])
                fits[column] = cell.setting.task, fit.value, fit
                values[column] = cell.score
        if values:
            candidates.append((system.row == row.name, len(values), system.name, values))
    # The row that represents a system comes first, then the row with most values.
    candidates.sort(key=lambda candidate: candidate[:2], reverse=True)
    scores: dict[str, dict[str, float]] = {}
    for *_, name, values in candidates:
        scores.setdefault(name, values)
    return pd.DataFrame.from_dict(scores, orient="index"), fits


def fit_interval(record: RunRecord, task: str, fit: Fit) -> tuple[float, float] | None:
    """Returns the interval (0 to 1) of a record's score for a task or average, or None."""
    if task in AVERAGES:
        return next((mean.interval for mean in record.averages if set(mean.tasks) == set(AVERAGES[task])), None)
    (measured,) = fit.scores
    number = measured.of.number(measured.statistic)
    return None if number is None else number.interval


class Residual(NamedTuple):
    """A score minus its prediction in points, and the number of models that it is predicted from."""

    task: str
    estimate: Estimate
    models: int


def residuals(places: Sequence[Standing]) -> Iterator[Residual]:
    """Yields how much each task differs from published models with a similar average.

    Least squares over the `NEAREST` models: task = a + b * average. With n models, residual standard error s and
    the leverage h = 1 / n + (x - mean)^2 / sum of squares of the run's average x, the prediction interval is the
    value -+ t(n - 2) * s * sqrt(1 + h). There is none with fewer than `FEWEST` models, or if the run's average
    lies outside theirs.
    """
    by_task = {place.task: place for place in places}
    for average, tasks in AVERAGES.items():
        if average not in by_task:
            continue
        whole = by_task[average]
        nearest = sorted(whole.scores, key=lambda name: (abs(whole.scores[name] - whole.value), name))[:NEAREST]
        x = np.array([whole.scores[name] for name in nearest])
        if len(x) < FEWEST or not x.min() < whole.value < x.max():
            continue
        centred, own = x - x.mean(), whole.value - float(x.mean())
        squares = float(centred @ centred)
        leverage = 1 / len(x) + own**2 / squares
        for task in (task for task in tasks if task in by_task):
            y = np.array([by_task[task].scores[name] for name in nearest])
            slope = float(centred @ y) / squares
            errors = y - y.mean() - slope * centred
            variance = float(errors @ errors) / (len(x) - 2) * (1 + leverage)
            value = by_task[task].value - float(y.mean()) - slope * own
            yield Residual(task, Estimate.with_error(value, variance, len(x) - 2), len(x))


class Finding(NamedTuple):
    """An examined number: sentence, link, run, subject, weight (to sort by), p-value, and whether it is news."""

    text: str
    to: str
    run: str
    subject: str
    weight: float
    p: float
    is_news: bool = True


def findings(
    standings: Mapping[str, Sequence[Standing]], kinds: PairKinds | None, level: float
) -> tuple[Pointer, ...]:
    """Returns at most `MOST_FINDINGS` sentences about significant numbers, then how many were examined.

    Each task is compared with the published models of the run's average, each kind of pair by its shift and its
    cost. Holm's correction covers all numbers of all runs. `docs/definitions/pair-kinds.md` has the rules.

    Args:
        standings: by run, its standing among published models.
        kinds: the kinds of pairs of the same runs; None if they were not analysed.
        level: of the intervals; Holm's correction keeps the error below 1 - level.
    """
    tasks = [finding for run, places in standings.items() for finding in _task_findings(run, places, level)]
    pairs = [] if kinds is None else _pair_findings(kinds.headline, level, several=len(standings) > 1)
    examined = [finding for finding in (*tasks, *pairs) if not math.isnan(finding.p)]
    if not examined:
        return ()
    adjusted = holm([finding.p for finding in examined])
    significant = [finding for finding, p in zip(examined, adjusted, strict=True) if p < 1 - level]
    chosen: dict[tuple[str, str], Finding] = {}
    for finding in sorted(significant, key=lambda finding: -finding.weight):
        if finding.is_news:
            chosen.setdefault((finding.run, finding.subject), finding)
    # The largest finding about a task, then those about pairs, then the other tasks; weights differ in unit.
    of_tasks = [finding for finding in chosen.values() if finding.to == STANDING]
    of_pairs = [finding for finding in chosen.values() if finding.to != STANDING]
    shown = [*of_tasks[:1], *of_pairs, *of_tasks[1:]][:MOST_FINDINGS]
    correction = f"Holm, {100 * (1 - level):.2g} %"
    count = f"{len(significant)} of {len(examined)} examined numbers are significant ({correction})."
    return *(Pointer(finding.text, finding.to) for finding in shown), Pointer(count)


def _task_findings(run: str, places: Sequence[Standing], level: float) -> Iterator[Finding]:
    for task, of, models in residuals(places):
        side, size, (low, high, _) = "exceeds" if of.value > 0 else "trails", abs(of.value), of.interval(level)
        text = f"On {task}, {run} {side} {models} models with a similar average by {size:.2f} points"
        yield Finding(f"{text} {_limits(low, high, level, 2)}.", STANDING, run, task, size, of.p)


def _pair_findings(kinds: pd.DataFrame, level: float, *, several: bool) -> Iterator[Finding]:
    for row in kinds.to_dict("records"):
        value, is_shift = row["value"], row["measure"] == SHIFT
        pairs = f"{row['model']}: pairs with {row['kind']}" if several else f"Pairs with {row['kind']}"
        if is_shift:
            way = "high" if value > 0 else "low"
            text = f"{pairs} are ranked {abs(value):.1f} points too {way} compared with equally similar pairs"
        else:
            text = f"{pairs} cause {value:.2f} times as much rank error as their number predicts"
        limits = _limits(row["low"], row["high"], level, 1 if is_shift else 2)
        # A kind that costs less than its share is not news, but it was examined.
        is_news = row["measure"] != COST or value > 1
        yield Finding(
            f"{text} {limits}.", PairKinds.name, row["model"], row["feature"], row["weight"], row["p"], is_news
        )


def _limits(low: float, high: float, level: float, decimals: int) -> str:
    """Returns the interval of an absolute difference."""
    low, high = (-high, -low) if high < 0 else (low, high)
    return f"({100 * level:g} % {interval(low, high, decimals)})"


def summary(
    runs: Runs,
    standings: Mapping[str, Sequence[Standing]],
    checks: Mapping[str, Check],
    differences: Mapping[str, str] | None = None,
    pointers: Sequence[Pointer] = (),
) -> Section:
    """Returns the top of a report: the headline numbers of each run, the picture, and sentences with links.

    All but `pointers`, the findings, are by run: its standing among published models, its comparison with a
    published row, and how much it differs from the first run.
    """
    facts = {
        label: dict(_facts(record, standings.get(label, ()), checks.get(label))) for label, record in runs.items()
    }
    for label, difference in (differences or {}).items():
        facts[label]["Difference from the first"] = difference
    numbers = tuple(facts.popitem()[1].items()) if len(runs) == 1 else ()
    rows = pd.DataFrame([{"model": label, **of_run} for label, of_run in facts.items()], dtype=object)
    figure = strip(standings)
    return Section(
        SUMMARY,
        "Summary",
        numbers=numbers,
        tables=(Table(rows, "Runs", name="runs"),) if facts else (),
        pointers=(*pointers, *_warnings(runs)),
        figures=(figure,) if figure else (),
    )


def _facts(record: RunRecord, places: Sequence[Standing], check: Check | None) -> Iterator[tuple[str, str]]:
    for kind in KINDS.values():
        average, scores = record.average(kind.name), record.scores_of(kind.name)
        if average is not None and average.value is not None:
            yield f"{kind.average} ({len(average.tasks)} tasks)", _score(average.value, average.interval)
        elif len(scores) == 1 and scores[0].value is not None:
            yield f"{scores[0].task} ({scores[0].statistic})", _score(scores[0].value, scores[0].interval)
    for place in places:
        if place.task in AVERAGES or len(places) == 1:
            yield f"Published models below ({place.task})", place.words
    if check is not None:
        compared = len(check.of("pass")) + len(check.of("fail"))
        text = f"{len(check.of('pass'))} of {compared}" if compared else check.verdict
        yield "Tasks that match the published row", text


def _score(value: float, limits: tuple[float, float] | None) -> str:
    return f"{100 * value:.2f}" + (f" {interval(100 * limits[0], 100 * limits[1])}" if limits else "")


def _warnings(runs: Runs) -> Iterator[Pointer]:
    for label, run in runs.items():
        if changed := [score.task for score in run.scores if score.data.status == "modified"]:
            names = listed(list(dict.fromkeys(changed)))
            yield Pointer(f"{label}: the files of {names} differ from the published ones.", "reproducibility")
        if undefined := [score.task for score in run.scores if score.value is None]:
            yield Pointer(f"{label}: no score on {listed(undefined)}, as all similarities are equal.", "scores")
        if zero := sum(score.counts.get("zero_pairs", 0) for score in run.scores):
            yield Pointer(f"{label}: {zero:,} pairs have a zero vector; their cosine counts as 0.", "scores")


def strip(standings: Mapping[str, Sequence[Standing]]) -> ReportFigure | None:
    """Returns a figure of each run's scores among published ones, a line per task; None without any.

    The published scores of a line are those that are comparable with its first run.
    """
    places = [(label, place) for label, of_run in standings.items() for place in of_run]
    if not places:
        return None
    alt = "; ".join(f"{label}: {place.task} {place.value:.2f}, above {place.words}" for label, place in places)
    rows = [
        {"label": place.task, "series": label, "value": place.value, "low": low, "high": high}
        | {"filled": True, "summary": place.task in AVERAGES}
        for label, place in places
        for low, high in [place.limits or (math.nan, math.nan)]
    ]
    lines = {place.task: place for _, place in reversed(places)}
    with look("column"):
        figure = forest(pd.DataFrame(rows), "score × 100 (grey: published models)")
        (axes,) = figure.axes
        with style():
            for y, task in enumerate(dict.fromkeys(place.task for _, place in places)):
                scores = lines[task].scores
                x, heights = list(scores.values()), [y] * len(scores)
                axes.plot(x, heights, "o", color="0.45", alpha=0.35, markersize=3.5, zorder=1)
                texts = [f"{name}, {task}: {score:.2f}" for name, score in scores.items()]
                add_tooltips(axes, x, heights, texts)
        return ReportFigure(STANDING, "Among the published models", alt, svg_of(figure))


def human_raters(runs: Runs) -> Section | None:
    """Returns the models' Pearson correlations with human raters' and the ceiling; None if neither is known.

    The ceiling is the correlation of a similarity without error: the root of the gold scores' reliability, from
    the spread of the published ratings. The raters are two people who scored a sample of the pairs again (HUME,
    arXiv 2510.10062); their interval assumes independent pairs.
    """
    raters, sizes = (catalogue.row(f"hume-sts/{name}") for name in ("two-raters-pearson", "pairs"))
    columns = {cell.setting.task: cell.column for cell in raters.cells}
    called, models = task_names(runs), dict(zip(runs, unique_labels(list(runs), _RATERS_COLUMNS), strict=True))
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
                squared = (1 - (value / 100) ** 2) ** 2 / (size - 3)  # as Fisher's z has the variance 1 / (n - 3)
                spread = Variance(squared, squared, math.inf)
                low, high, _ = correlation_interval(value / 100, spread, size, metric="pearson")
                row |= {"raters": value, "low": 100 * low, "high": 100 * high, "rated pairs": size}
            row[models[label]] = 100 * pearson.value
    if not rows:
        return None
    caption = "Pearson x 100 of human raters on a sample, and of the models on all pairs"
    text = "Scoring above the raters does not mean better than people, as they rated a sample of the pairs."
    frame = pd.DataFrame(list(rows.values()), dtype=object).dropna(axis="columns", how="all")
    return Section("raters", "Human raters", (text,), (Table(frame, caption, name="raters-scores"),))


def _is_whole_test_set(score: Score) -> bool:
    """Returns whether a score covers a whole released test set (of STS22, the English one)."""
    if Signature.parse(score.signature).split != "test" or score.data.status == "user":
        return False
    return score.task != "STS22" or [subset.subset for subset in score.subsets] == ["en"]


def answer(records: Sequence[RunRecord]) -> Iterator[str]:
    """Yields the standing of each run, its comparison with its published row, and last the next command."""
    alone = "explain" if records[0].scores_of(STS) else "report"
    next_command = alone if len(records) == 1 else "compare" if len(records) == 2 else "rank"
    for record in records:
        name = f"{record.model.name}: " if len(records) > 1 else ""
        for place in (place for place in standing(record) if place.task in AVERAGES or len(record.scores) == 1):
            yield f"{name}{place.task} {place.value:.2f} is above {place.words} comparable published models."
        known = checkpoint_of_run(record)
        check = check_published(record, rows_to_check(record)) if known and known.expected else None
        if check is not None and any(cell.is_compared or cell.differences for cell in check.cells):
            yield check.sentence
            is_off = check.of("fail") or not any(cell.is_compared for cell in check.cells)
            next_command = "diagnose" if is_off and len(records) == 1 else next_command
    yield f"Next: stsbench {next_command} {shlex.join(str(record.folder) for record in records)}"
