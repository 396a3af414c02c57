"""Where runs stand among the published models whose scores compare: by task, on average, and task against average.

A model that is good on average is good on each task, more or less: how much, the published models show. What a run
scores on a task above or below that is a finding if it lies outside of what one more such model would score.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stsbench.judging.matching import AVERAGES, Fit, MeasuredScore, fitting, measured_scores
from stsbench.judging.published import known_checkpoint
from stsbench.published.catalogue import rows
from stsbench.published.schema import Setting
from stsbench.records.record import RunRecord
from stsbench.render.figures import add_tooltips, colours, look, new_figure, shortened, spoken, style, svg_of
from stsbench.render.section import ReportFigure
from stsbench.reports.papers import fit_interval
from stsbench.statistics import LEVEL
from stsbench.statistics.dependence import Variance
from stsbench.statistics.intervals import Limits, plain_interval, two_sided_p

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STANDING = "standing"

NEAREST = 30
"""So many published models, nearest in average, say what a model of such an average scores on a task."""

FEWEST = 10
"""Of fewer nothing is said."""


@dataclass(frozen=True)
class Standing:
    """Where a run stands on a task, or on average. Scores are x 100.

    Attributes:
        task: as the papers call it; an average is one of `AVERAGES`.
        value: the run's score.
        limits: of its interval; None without one.
        scores: of the published models that compare on all tasks on which most do, by system.
    """

    task: str
    value: float
    limits: tuple[float, float] | None
    scores: Mapping[str, float]

    @property
    def below(self) -> int:
        """How many published models have a lower score."""
        return sum(score < self.value for score in self.scores.values())


@dataclass(frozen=True)
class Residual:
    """How far above the models of its average a run is on a task, in points.

    Attributes:
        task: which.
        value: the score less what the models predict.
        limits: the same less the prediction interval of one more model, at its level.
        p: the two-sided p-value of the run being one more such model.
        models: how many there are.
    """

    task: str
    value: float
    limits: Limits
    p: float
    models: int


def standing(record: RunRecord) -> list[Standing]:
    """Return where a run stands, each average before its tasks; nothing where no published model compares.

    A published model is one by its system: its own configuration, its last edition, not the run's own. Where a run
    has several scores of a task (of two splits, say), it is the one that most of them compare with.
    """
    scores = measured_scores(record)
    places = []
    for average, tasks in AVERAGES.items():
        published, fits = _published(record, scores, {average, *tasks})
        counts = Counter(number for of_system in published.values() for number in of_system)
        most = max(counts.values(), default=0)
        compared: dict[str, _Number] = {}
        for number, count in counts.most_common():
            # One model that compares on a task alone must not keep out the many that compare on the others.
            if 2 * count > most:
                compared.setdefault(number[0], number)
        whole = {name: of for name, of in published.items() if all(number in of for number in compared.values())}
        for task in (average, *tasks):
            own = compared.get(task)
            if own is not None and whole and (value := fits[own].value) is not None:
                limits = fit_interval(record, task, fits[own])
                shown = None if limits is None else (100 * limits[0], 100 * limits[1])
                of_task = {name: of[own] for name, of in whole.items()}
                places.append(Standing(task, value, shown, of_task))
    return places


_Number = tuple[str, tuple[object, ...]]
"""A number of a record: the task as papers call it, and which of the record's scores it is, or is the mean of."""


def _published(
    record: RunRecord, scores: Sequence[MeasuredScore], wanted: Collection[str]
) -> tuple[dict[str, dict[_Number, float]], dict[_Number, Fit]]:
    """Return by system what the published models have for numbers of a record, on the tasks wanted; and those."""
    known = known_checkpoint(record)
    own = known.system if known is not None else ""
    fitted: dict[Setting, tuple[_Number, Fit]] = {}
    best: dict[str, tuple[bool, int]] = {}
    found: dict[str, dict[_Number, float]] = {}
    for row in rows().values():
        system = row.system
        if system is None or row.row.variant or system.edition_of or system.name == own:
            continue
        values = {}
        for cell in row.cells:
            setting = cell.setting
            if setting.task not in wanted or cell.score is None or setting.unit == "pairs":
                continue
            if setting not in fitted:
                fit = fitting(setting, scores)
                fitted[setting] = ((setting.task, tuple((of.of.key, of.statistic) for of in fit.scores)), fit)
            number, fit = fitted[setting]
            if fit.value is not None and not fit.differences:
                values[number] = cell.score
        # Some tables print a system otherwise than its own paper does: the row that stands for it goes before.
        rank = (system.row == row.name, len(values))
        if values and rank > best.get(system.name, (False, 0)):
            best[system.name], found[system.name] = rank, values
    return found, dict(fitted.values())


def residuals(places: Sequence[Standing], level: float = LEVEL) -> Iterator[Residual]:
    """Yield for each task how far a run is above the published models of its average.

    The `NEAREST` models in average, by least squares: task = a + b * average. The interval is that of prediction:
    with n models, s the residual standard error and h = 1 / n + (x - mean)^2 / sum of squares the leverage of the
    run's average x, the value -+ t(n - 2) * s * sqrt(1 + h). Nothing where fewer than `FEWEST` models compare, or
    the run's average is outside of theirs: that would be a guess.
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
        for task in (task for task in tasks if task in by_task):
            y = np.array([by_task[task].scores[name] for name in nearest])
            yield _residual(task, x, y, (whole.value, by_task[task].value), level)


def _residual(task: str, x: np.ndarray, y: np.ndarray, own: tuple[float, float], level: float) -> Residual:
    centred, size = x - x.mean(), len(x)
    squares = float(centred @ centred)
    slope = float(centred @ y) / squares
    left = y - y.mean() - slope * centred
    leverage = 1 / size + (own[0] - float(x.mean())) ** 2 / squares
    squared_error = float(left @ left) / (size - 2) * (1 + leverage)
    value = own[1] - float(y.mean()) - slope * (own[0] - float(x.mean()))
    spread = Variance(squared_error, squared_error, size - 2)
    return Residual(task, value, plain_interval(value, spread, level), two_sided_p(value, spread), size)


def strip(standings: Mapping[str, Sequence[Standing]]) -> ReportFigure | None:
    """Return each run's scores with their intervals among the published ones, a line a task; None without any.

    The published scores of each line are those that the first run with such a line compares with.
    """
    lines = {place.task: place for places in reversed(list(standings.values())) for place in places}
    tasks = list(dict.fromkeys(place.task for places in standings.values() for place in places))
    if not tasks:
        return None
    told = [
        f"{label}: {place.task} {place.value:.2f}, above {place.below} of {len(place.scores)}"
        for label, places in standings.items()
        for place in places
    ]
    drawing = _drawn([lines[task] for task in tasks], standings)
    return ReportFigure(STANDING, "Among the published models", "; ".join(told), svg_of(drawing))


def _drawn(lines: list[Standing], standings: Mapping[str, Sequence[Standing]]) -> "Figure":
    runs = [label for label, places in standings.items() if places]
    palette = colours(runs)
    rows_of = {line.task: number for number, line in enumerate(lines)}
    # It stands in a narrow column of the page.
    with look("column"), style():
        figure = new_figure(height=0.55 + 0.27 * len(lines) + (0.15 * len(runs) if len(runs) > 1 else 0))
        axes = figure.add_subplot()
        for y, place in enumerate(lines):
            scores = list(place.scores.values())
            axes.plot(scores, [y] * len(scores), "o", color="0.45", alpha=0.35, markersize=3.5, mew=0, zorder=1)
            said = [f"{name}, {place.task}: {score:.2f}" for name, score in place.scores.items()]
            add_tooltips(axes, scores, [y] * len(scores), said)
        for number, label in enumerate(runs):
            offset = (number - (len(runs) - 1) / 2) * 0.5 / len(runs)
            for place in standings[label]:
                height = rows_of[place.task] + offset
                axes.plot(
                    place.limits or [place.value] * 2, [height] * 2, color=palette[label], linewidth=2.5, zorder=2
                )
                axes.plot(
                    [place.value],
                    [height],
                    "D" if place.task in AVERAGES else "o",
                    color=palette[label],
                    markeredgecolor="white",
                    markersize=5.5,
                    markeredgewidth=0.7,
                    zorder=3,
                )
                numbers = spoken(place.value, *(place.limits or ()))
                add_tooltips(axes, [place.value], [height], [f"{label}, {place.task}: {numbers}"])
        axes.set_yticks(range(len(lines)), [place.task for place in lines])
        axes.set_ylim(len(lines) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("score × 100 (grey: published models)")
        if len(runs) > 1:
            handles = [axes.plot([], [], "o", color=palette[label])[0] for label in runs]
            figure.legend(handles, [shortened(label, 40) for label in runs], loc="outside upper left", ncols=1)
    return figure
