"""The top of a report: the headline numbers of each run, its standing among published models, and findings."""

import math
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from stsbench.analysis.pair_kinds import PairKinds
from stsbench.analysis.ranked_pairs import COST, SHIFT
from stsbench.base.words import listed
from stsbench.judging.published import AVERAGES
from stsbench.judging.verdicts import Check
from stsbench.records.kinds import KINDS
from stsbench.records.record import RunRecord
from stsbench.render.charts import forest
from stsbench.render.figures import add_tooltips, look, style, svg_of
from stsbench.render.page import Pointer, ReportFigure, Section
from stsbench.render.table import Table, interval
from stsbench.reports.papers import Standing
from stsbench.reports.scores import Runs
from stsbench.statistics import LEVEL
from stsbench.statistics.dependence import Variance
from stsbench.statistics.estimate import holm
from stsbench.statistics.intervals import Limits, plain_interval, two_sided_p

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUMMARY, STANDING = "summary", "standing"

MOST_FINDINGS = 3

NEAREST = 30
"""The number of published models, nearest in average, that predict the score on a task."""

FEWEST = 10
"""With fewer published models there is no prediction."""


class Residual(NamedTuple):
    """A score minus its prediction in points, the prediction interval, the two-sided p-value, and the models."""

    task: str
    value: float
    limits: Limits
    p: float
    models: int


def residuals(places: Sequence[Standing], level: float = LEVEL) -> Iterator[Residual]:
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
            value, spread = (
                by_task[task].value - float(y.mean()) - slope * own,
                Variance(variance, variance, len(x) - 2),
            )
            limits, p = plain_interval(value, spread, level), two_sided_p(value, spread)
            yield Residual(task, value, limits, p, len(x))


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
    for of in residuals(places, level):
        side = "exceeds" if of.value > 0 else "trails"
        text = (
            f"On {of.task}, {run} {side} {of.models} models with a similar average by {abs(of.value):.2f} points"
        )
        yield Finding(f"{text} {_limits(*of.limits[:2], level, 2)}.", STANDING, run, of.task, abs(of.value), of.p)


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
    differences: Mapping[str, str] = MappingProxyType({}),
    pointers: Sequence[Pointer] = (),
) -> Section:
    """Returns the top of a report: the headline numbers of each run, the picture, and sentences with links.

    Args:
        runs: the runs of the report.
        standings: by run, its standing among published models.
        checks: by run, its comparison with a published row.
        differences: by run, how much it differs from the first.
        pointers: the findings.
    """
    facts = {
        label: dict(_facts(record, standings.get(label, ()), checks.get(label))) for label, record in runs.items()
    }
    for label, difference in differences.items():
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
    with look("column"):
        return ReportFigure(STANDING, "Among the published models", alt, svg_of(_drawn(places)))


def _drawn(places: Sequence[tuple[str, Standing]]) -> "Figure":
    rows = [
        {"label": place.task, "series": label, "value": place.value, "low": low, "high": high}
        | {"filled": True, "summary": place.task in AVERAGES}
        for label, place in places
        for low, high in [place.limits or (math.nan, math.nan)]
    ]
    figure = forest(pd.DataFrame(rows), "score × 100 (grey: published models)")
    (axes,) = figure.axes
    lines = {place.task: place for _, place in reversed(places)}
    with style():
        for y, task in enumerate(dict.fromkeys(place.task for _, place in places)):
            scores = lines[task].scores
            axes.plot(
                list(scores.values()), [y] * len(scores), "o", color="0.45", alpha=0.35, markersize=3.5, zorder=1
            )
            texts = [f"{name}, {task}: {score:.2f}" for name, score in scores.items()]
            add_tooltips(axes, list(scores.values()), [y] * len(scores), texts)
    return figure
