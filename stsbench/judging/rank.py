"""`rank`: orders models, and shows how much of the order is statistically certain."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.base.words import listed, suggestion
from stsbench.judging.aligned import AlignedScores, Floats, aligned_scores, common_scores
from stsbench.judging.comparison import by_kind
from stsbench.judging.judgement import Judgement
from stsbench.judging.runs import Run, model_of, named_runs, require_distinct_models, require_items
from stsbench.records.kinds import AVERAGES, KINDS
from stsbench.records.record import RunRecord
from stsbench.render import cells
from stsbench.render.figures import add_tooltips, new_figure, shortened, spoken, style, svg_of
from stsbench.render.section import ReportFigure, Section
from stsbench.render.table import Table, Tables
from stsbench.statistics import DEPENDENCE, LEVEL, Dependence
from stsbench.statistics.dependence import difference_variances, shared_sums
from stsbench.statistics.intervals import reach_of_mean, two_sided_p
from stsbench.statistics.ranks import Adjustment, Ranking, letters_text, rank_scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 100
"""Largest number of models: they make 4,950 pairs."""

DRAWS = 5000
SEED = 12345

_FEW = 3
"""Number of models that a sentence names."""

_ROWS = 30
"""Number of models up to which the figure has lines of full height and letters."""

_SCORE, _RANK = "#0072B2", "#D55E00"

_LETTERS_PER_INCH = 6


@dataclass(frozen=True)
class RankedScore:
    """A model on one task or on average.

    Attributes:
        model: name of the model.
        score: score x 100 with its own interval `low` to `high`, NaN if undefined.
        rank: rank by the score; 1 is the highest.
        best: best rank in its rank interval; `worst`: the worst.
        letters: its groups; models that share a letter do not differ significantly.
        first: share of bootstrap draws in which it is the highest, from 0 to 1.
        to_first: of an average: its difference from the first model in points, with the interval `tasks_low` to
            `tasks_high` over other tasks (see `over_tasks`). NaN for the first, and without an average or spread.
    """

    model: str
    score: float
    low: float
    high: float
    rank: int
    best: int
    worst: int
    letters: tuple[str, ...]
    first: float
    to_first: float = math.nan
    tasks_low: float = math.nan
    tasks_high: float = math.nan


@dataclass(frozen=True)
class RankedTask:
    """The ranking of all models on one task or on average.

    Attributes:
        kind: kind of the task (see `stsbench.records.kinds`).
        task: name of the task or average.
        size: number of pairs or items.
        rows: the models, highest score first.
        p: p-values of all differences in the order of `rows`, corrected for all pairs of models.
        tasks: number of tasks in an average, otherwise 1.
    """

    kind: str
    task: str
    size: int
    rows: tuple[RankedScore, ...]
    p: tuple[tuple[float, ...], ...]
    tasks: int = 1

    @property
    def is_average(self) -> bool:
        """Whether this is the average over tasks."""
        return self.task in AVERAGES


@dataclass(frozen=True)
class RankResult(Judgement):
    """The order of models, and how certain it is.

    Attributes:
        models: names of the models, in the order given.
        tasks: the ranking of each task; after the tasks of a kind that of their average.
        simultaneous: whether the rank intervals of a task hold for all models at once.
        adjustment: how p-values are corrected for all pairs of models.
        interval: which pairs are treated as dependent.
        level: level of the intervals.
        draws: draws of the parametric bootstrap; `seed`: their seed.
        notes: what limits the ranking.
    """

    models: tuple[str, ...]
    tasks: tuple[RankedTask, ...]
    simultaneous: bool
    adjustment: Adjustment
    interval: Dependence
    level: float
    draws: int
    seed: int
    notes: tuple[str, ...] = ()

    @property
    def headlines(self) -> list[RankedTask]:
        """For each kind the ranking by its average, or the rankings of its tasks if it has no average."""
        kinds = by_kind(self.tasks).items()
        return [task for kind, tasks in kinds for task in (tasks[-1:] if KINDS[kind].average else tasks)]

    @property
    def sentence(self) -> str:
        """Which model leads and which are tied with it, one sentence for each headline."""
        return " ".join(self._sentence(task) for task in self.headlines)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per task and model, with the columns of `RankedScore`, `kind`, `task`, `size` and `tasks`."""
        rows = [
            {"kind": task.kind, "task": task.task, "size": task.size} | asdict(row) | {"tasks": task.tasks}
            for task in self.tasks
            for row in task.rows
        ]
        return pd.DataFrame(rows)

    def table(self) -> Tables:
        """Returns the ranking by each headline, and the scores of all tasks with their groups."""
        return Tables(table for task in self.headlines for table in self._tables(task))

    def plot(self, task: str | None = None) -> "Figure":
        """Returns a figure of scores with intervals, and of ranks with rank intervals.

        Args:
            task: the task; by default the average, or the only task.

        Raises:
            UserError: if the task was not ranked.
        """
        tasks = {item.task: item for item in self.tasks}
        if task is not None and task not in tasks:
            raise UserError(f"{task!r} was not ranked: {suggestion(task, tasks)}")
        return _drawn(self.headlines[0] if task is None else tasks[task], self.level)

    def section(self, number: int = 1) -> Section:
        """Returns the ranking as a section of a report; the number makes its names unique."""
        tables = tuple(
            replace(table, name=f"rank-{number}-{place}") for place, table in enumerate(self.table(), 1)
        )
        figure = ReportFigure(f"rank-figure-{number}", self.headlines[0].task, self.sentence, svg_of(self.plot()))
        return Section(f"ranking-{number}", "Ranking", (self.sentence,), tables, (figure,), points=self.notes)

    @property
    def remarks(self) -> list[str]:
        """What ranks, letters and columns mean, and the notes; one line each."""
        scope = "for all models at once" if self.simultaneous else "per model"
        method = "max-statistic" if self.adjustment == "max" else "Holm"
        averages = [task for task in self.headlines if task.is_average]
        return [
            f"ranks: {100 * self.level:g} % rank intervals {scope}; models that share a letter do not differ "
            f"significantly (corrected for all pairs, {method}).",
            f"first: share of {self.draws} bootstrap draws in which the model is the highest.",
            *(f"tasks: interval of `to first` on other tasks ({task.task})." for task in averages),
            *super().remarks,
        ]

    def _tables(self, task: RankedTask) -> Iterator[Table]:
        low, high = (f"{100 * share:g} %" for share in ((1 - self.level) / 2, (1 + self.level) / 2))
        rows = []
        for row in task.rows:
            columns: dict[Any, object] = {
                "rank": row.rank,
                "ranks": f"{row.best} to {row.worst}" if row.best < row.worst else f"{row.best}",
                "model": row.model,
                cells.Named("task", task.task): row.score,
                low: row.low,
                high: row.high,
                "groups": letters_text(row.letters),
                "first": f"{100 * row.first:.0f} %",
            }
            if task.is_average:
                over = {"to first": row.to_first, f"tasks {low}": row.tasks_low, f"tasks {high}": row.tasks_high}
                columns |= over
            rows.append(columns)
        yield Table(pd.DataFrame(rows), headline=cells.Named("task", task.task))
        tasks = by_kind(self.tasks)[task.kind]
        if len(tasks) > 1 and task is tasks[-1]:
            frame = pd.DataFrame({"model": [row.model for row in task.rows]})
            for item in tasks:
                texts = {row.model: f"{row.score:.2f} {letters_text(row.letters)}" for row in item.rows}
                frame[cells.Named("task", item.task)] = frame["model"].map(texts)
            yield Table(frame)

    def _sentence(self, task: RankedTask) -> str:
        first, *others = task.rows
        where = f"on {KINDS[task.kind].words} average" if task.is_average else f"on {task.task}"
        tied = [row.model for row, p in zip(others, task.p[0][1:], strict=True) if p >= 1 - self.level]
        leads = f"{first.model} leads {where} with {first.score:.2f}"
        if not tied:
            return f"{leads}, significantly above every other model."
        many = len(tied) > _FEW
        names = listed([*tied[: _FEW - 1], f"{len(tied) - _FEW + 1} more"] if many else tied)
        below = len(others) - len(tied)
        rest = f"; {below} other{'s are' if below > 1 else ' is'} significantly below" if below else ""
        return f"{leads}; statistically tied with it: {names}{rest}."


def _drawn(task: RankedTask, level: float) -> "Figure":
    count = len(task.rows)
    is_small = count <= _ROWS
    line, size = (0.2, 7.0) if is_small else (0.11, 5.0)
    with style():
        figure = new_figure()
        letters = int(figure.get_figwidth() * _LETTERS_PER_INCH)
        names = [fill(shortened(row.model, 2 * letters if is_small else letters), letters) for row in task.rows]
        figure.set_figheight(0.9 + line * count * (1.5 if any("\n" in name for name in names) else 1))
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
        places = range(count)
        for place, row in enumerate(task.rows):
            left.plot([row.low, row.high], [place, place], color=_SCORE)
            left.plot([row.score], [place], "o", color=_SCORE, markersize=size / 2)
            right.barh(place, row.worst - row.best + 0.7, size / 20, row.best - 0.35, color=_RANK, alpha=0.35)
            right.plot([row.rank], [place], "o", color=_RANK, markersize=size / 2)
            ranks = f"rank {row.rank}" + (f", can be {row.best} to {row.worst}" if row.best < row.worst else "")
            text = f"{row.model}: {spoken(row.score, row.low, row.high)}; {ranks}"
            add_tooltips(left, [row.score], [place], [text])
        if is_small:
            groups = right.secondary_yaxis("right")
            texts = [letters_text(row.letters) if len(row.letters) <= 12 else "" for row in task.rows]
            groups.set_yticks(list(places), texts)
            groups.tick_params(length=0)
        left.set_yticks(list(places), names, fontsize=size)
        left.set_ylim(count - 0.5, -0.5)
        for axes in (left, right):
            axes.grid(visible=False, axis="y")
        right.tick_params(axis="y", length=0, labelleft=False)
        right.set_xlim(0.4, count + 0.6)
        right.xaxis.get_major_locator().set_params(integer=True)
        broken = max(10, int(0.65 * letters))
        left.set_xlabel(fill(f"{task.task} with {100 * level:g} % intervals", broken))
        right.set_xlabel(fill("rank and rank interval", broken))
    return figure


def rank(
    runs: Sequence[Run],
    *,
    simultaneous: bool = False,
    adjustment: Adjustment = "max",
    interval: Dependence = DEPENDENCE,
    level: float = LEVEL,
    draws: int = DRAWS,
    seed: int = SEED,
    progress: Progress = silent,
) -> RankResult:
    """Ranks models that were measured on the same pairs, and shows how much of the order is certain.

    If not all runs are comparable, the largest comparable group is ranked (the first of equal size), and notes say
    why each other run was left out. Several runs of one model, used in the same way, count once.

    Each task and the average are ranked separately. Two models differ if their difference is significant after
    correction for all pairs of models; rank intervals follow from the significant differences (see
    `statistics.ranks`).

    Args:
        runs: 2 to 100 run folders or `run.json` files, or records.
        simultaneous: uses rank intervals that hold for all models of a task at once, not per model.
        adjustment: correction for all pairs of models: `max` (distribution of the largest difference) or `holm`.
        interval: which pairs are treated as dependent.
        level: level of all intervals; differences are tested at 1 - level.
        draws: draws of the parametric bootstrap.
        seed: seed of the draws.
        progress: called with the stage and how much of it is done.

    Returns:
        The ranking, with the leaders as `.sentence`, and `.table()`, `.plot()` and `.frame`.

    Raises:
        UserError: if there are fewer than two models or more than `MOST`, a run is named twice, or no two runs are
            comparable.

    Example:
        >>> import stsbench as sb
        >>> models = [lambda texts, k=k: [[len(s), s.count("e"), k * s.count("o")] for s in texts] for k in (0, 3)]
        >>> ranking = rank([sb.evaluate(model, "sample") for model in models])
        >>> [(row.rank, row.best, row.worst) for row in ranking.tasks[0].rows]
        [(1, 1, 2), (2, 1, 2)]
    """
    if not 0 < level < 1:
        raise UserError(f"a level of {level}: give a number between 0 and 1, such as 0.95.")
    if draws < 1:
        raise UserError(f"{draws} draws: give at least 1; 5000 are usual.")
    if not 2 <= len(runs) <= MOST:
        raise UserError(f"expected 2 to {MOST} runs to rank, got {len(runs)}.")
    named, left_out = _comparable(named_runs(runs))
    tasks, notes = aligned_scores(named, progress=progress)
    require_distinct_models(named)  # after the check of protocols, whose message says more
    ranked: list[RankedTask] = []
    for task in tasks:
        ranking = ranking_of(
            task,
            interval,
            level=level,
            simultaneous=simultaneous,
            adjustment=adjustment,
            draws=draws,
            seed=seed,
        )
        rows = _rows(task, tuple(named), ranking, interval, level)
        if task.is_average:
            rows = _with_tasks(rows, [other for other in ranked if other.kind == task.kind], level)
        ranked.append(rows)
    return RankResult(
        tuple(named), tuple(ranked), simultaneous, adjustment, interval, level, draws, seed, (*left_out, *notes)
    )


def ranking_of(
    task: AlignedScores,
    interval: Dependence = DEPENDENCE,
    *,
    level: float = LEVEL,
    simultaneous: bool = False,
    adjustment: Adjustment = "max",
    draws: int = DRAWS,
    seed: int = SEED,
) -> Ranking:
    """Ranks the models of one task or average; the arguments are those of `rank`."""
    return rank_scores(
        task.scores,
        task.covariance(interval),
        p_alone=_p_alone(task, interval),
        sums=shared_sums(task.terms, task.sharing, interval),
        df=_degrees_of_freedom(task, interval),
        level=level,
        simultaneous=simultaneous,
        adjustment=adjustment,
        draws=draws,
        seed=seed,
    )


def _p_alone(task: AlignedScores, interval: Dependence) -> Floats:
    """Returns the (m, m) p-values of `compare` for every two models, 1 if undefined."""
    p = np.ones((len(task.scores), len(task.scores)))
    for one, variances in enumerate(difference_variances(task.terms, task.sharing, interval)):
        for other, variance in enumerate(variances, one + 1):
            p[one, other] = p[other, one] = two_sided_p(float(task.scores[other] - task.scores[one]), variance)
    return np.nan_to_num(p, nan=1.0)


def _degrees_of_freedom(task: AlignedScores, method: Dependence) -> float:
    """Returns the smallest degrees of freedom of any model's difference from the mean of all."""
    models = len(task.scores)
    contrasts = np.eye(models) - 1 / models
    freedoms = [task.variance_of(contrast, method).df for contrast in contrasts]
    return float(min((df for df in freedoms if np.isfinite(df)), default=np.inf))


def _comparable(runs: dict[str, RunRecord]) -> tuple[dict[str, RunRecord], tuple[str, ...]]:
    """Returns the largest group of comparable runs, and notes on the others.

    If no two runs are comparable, all are returned: `aligned_scores` reports why.
    """
    models = {name: model_of(record) for name, record in runs.items()}

    def obstacle(group: Sequence[str], name: str) -> str | None:
        first, folder = group[0], runs[name].folder
        both = {first: runs[first], name: runs[name]}
        try:
            require_items(both)
            common, _ = common_scores(both)
        except UserError as error:
            return str(error)
        if not common:
            return f"{name} has no task in common with {first}."
        twins = (ranked for ranked in group if models[name] and models[ranked] == models[name])
        if (twin := next(twins, None)) is not None and runs[twin].folder != folder:
            return f"{name} is the same model as {twin}, used in the same way."
        return None

    groups: list[list[str]] = []
    for name in runs:
        home = next((group for group in groups if obstacle(group, name) is None), None)
        if home is None:
            groups.append([name])
        else:
            home.append(name)
    chosen = max(groups, key=len)
    if len(chosen) == 1:
        return runs, ()
    left_out = tuple(f"left out: {obstacle(chosen, name)}" for name in runs if name not in chosen)
    return {name: runs[name] for name in chosen}, left_out


def _rows(
    task: AlignedScores, names: tuple[str, ...], ranking: Ranking, interval: Dependence, level: float
) -> RankedTask:
    order = np.argsort(-task.scores, kind="stable")
    rows = []
    for place in order:
        limits = task.limits(place, interval, level)
        row = RankedScore(
            model=names[place],
            score=100 * float(task.scores[place]),
            low=100 * limits.low,
            high=100 * limits.high,
            rank=int(ranking.rank[place]),
            best=int(ranking.best[place]),
            worst=int(ranking.worst[place]),
            letters=ranking.letters[place],
            first=float(ranking.first[place]),
        )
        rows.append(row)
    p = ranking.p[np.ix_(order, order)]
    return RankedTask(task.kind, task.task, task.size, tuple(rows), tuple(map(tuple, p.tolist())))


def over_tasks(scores: ArrayLike, first: ArrayLike, level: float = LEVEL) -> tuple[float, float, float]:
    """Returns the mean difference of two models over tasks, and its limits over other tasks.

    The k tasks are treated as a random sample, each as good as another: Student's t of their k differences with
    k - 1 degrees of freedom. Choosing the best of several models as the first is not corrected for.

    Args:
        scores: (k,) scores of one model, k at least 2.
        first: (k,) scores of the other.
        level: level of the interval, whose limits are NaN if all differences are equal.

    >>> [round(number, 2) for number in over_tasks([70.0, 80.0, 60.0], [72.0, 81.0, 66.0])]
    [-3.0, -9.57, 3.57]
    """
    differences = np.asarray(scores, dtype=np.float64) - np.asarray(first, dtype=np.float64)
    mean = float(differences.mean())
    reach = reach_of_mean(float(differences.std(ddof=1)), len(differences), level)
    return (mean, mean - reach, mean + reach) if reach > 0 else (mean, math.nan, math.nan)


def _with_tasks(average: RankedTask, tasks: Sequence[RankedTask], level: float) -> RankedTask:
    """Adds the intervals over other tasks to the ranking by an average."""
    of_tasks = [{row.model: row.score for row in task.rows} for task in tasks]
    first, *others = average.rows
    rows = [first]
    for row in others:
        scores, of_first = ([of_task[model] for of_task in of_tasks] for model in (row.model, first.model))
        difference, low, high = over_tasks(scores, of_first, level)
        rows.append(replace(row, to_first=difference, tasks_low=low, tasks_high=high))
    return replace(average, rows=tuple(rows), tasks=len(tasks))
