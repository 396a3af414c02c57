"""`rank`: the order of several models, and how much of it the pairs show."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.base.words import listed, suggestion
from stsbench.judging.aligned import AlignedScores, Floats, aligned_scores, common_scores
from stsbench.judging.comparison import Judgement, by_kind
from stsbench.judging.runs import Run, model_of, named_runs, require_distinct_models, require_items
from stsbench.records.kinds import AVERAGES, KINDS
from stsbench.records.record import RunRecord
from stsbench.render import cells
from stsbench.render.figures import add_tooltips, new_figure, shortened, spoken, style, svg_of
from stsbench.render.section import ReportFigure, Section
from stsbench.render.table import Table, Tables
from stsbench.statistics import DEPENDENCE, LEVEL, Dependence
from stsbench.statistics.dependence import difference_variances, shared_sums
from stsbench.statistics.intervals import Limits, reach_of_mean, two_sided_p
from stsbench.statistics.ranks import Adjustment, Ranking, letters_text, rank_scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 100
"""Models at once: 4,950 pairs of them."""

DRAWS = 5000
SEED = 12345

_FEW = 3
"""So many names fit into a sentence."""

_SHOWN, _BAND = "#0072B2", "#D55E00"

_NAME_LETTERS = 6
"""Letters of a model's name for each inch of the figure's width."""


@dataclass(frozen=True)
class RankedScore:
    """A model's place on one task or on average.

    Attributes:
        model: what it is called.
        score: x 100, with the limits `low` and `high` of its own interval; NaN where it has none.
        rank: by the score as it is; 1 is the highest.
        best: the best rank that it can have, and `worst`: the worst.
        letters: its groups; models that share one do not differ significantly.
        first: how often it is the highest in the bootstrap, from 0 to 1.
        to_first: of an average, how much higher it is than that of the first model, in points, with the limits
            `tasks_low` and `tasks_high` that hold for other tasks of the kind, as if these had been drawn from
            them (see `over_tasks`). NaN of the first itself, and where there is no average or no spread.
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
    """A ranking of all models on one task or on average.

    Attributes:
        kind: of the task (see `stsbench.records.kinds`).
        task: its name; of an average what that of its kind is called.
        size: the number of pairs or items.
        rows: the models, the highest score first.
        p: the p-values of all differences in the order of `rows`, corrected for all pairs of models.
        tasks: of an average, how many tasks it is over; else 1.
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
    """The order of some models, and how much of it the pairs show.

    Attributes:
        models: their names, in the order given.
        tasks: the ranking of each task; after the tasks of a kind that of their average.
        simultaneous: whether all rank intervals of a task hold at once, or each by itself.
        adjustment: how the differences are corrected for all pairs of models.
        interval: how pairs that share sentences were seen.
        level: of the intervals.
        draws: of the parametric bootstrap, and their `seed`.
        notes: what a reader should know.
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
        """The rankings that matter most, of each kind that of the average, or of its tasks where it has none."""
        kinds = by_kind(self.tasks).items()
        return [task for kind, tasks in kinds for task in (tasks[-1:] if KINDS[kind].average else tasks)]

    @property
    def sentence(self) -> str:
        """Who leads, and who cannot be told apart from the first; a sentence for each kind of task."""
        return " ".join(self._sentence(task) for task in self.headlines)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per task and model, with the columns of `RankedScore` and `tasks`; scores x 100."""
        rows = [
            {"kind": task.kind, "task": task.task, "size": task.size} | asdict(row) | {"tasks": task.tasks}
            for task in self.tasks
            for row in task.rows
        ]
        return pd.DataFrame(rows)

    def table(self) -> Tables:
        """Return the ranking by the average of each kind, and one of the scores of all tasks with their groups."""
        return Tables(table for task in self.headlines for table in self._tables(task))

    def plot(self, task: str | None = None) -> "Figure":
        """Return a figure: the scores with their intervals, and beside them the ranks that each model can have.

        Args:
            task: of which task; by default of the average, or of the only task.

        Raises:
            UserError: if it was not ranked.
        """
        tasks = {item.task: item for item in self.tasks}
        if task is not None and task not in tasks:
            raise UserError(f"{task!r} was not ranked: {suggestion(task, tasks)}")
        return _drawn(self.headlines[0] if task is None else tasks[task], self.level)

    def section(self, number: int = 1) -> Section:
        """Return it as the section of the report's ranking with this number."""
        tables = tuple(
            replace(table, name=f"rank-{number}-{place}") for place, table in enumerate(self.table(), 1)
        )
        figure = ReportFigure(f"rank-figure-{number}", self.headlines[0].task, self.sentence, svg_of(self.plot()))
        return Section(f"ranking-{number}", "Ranking", (self.sentence,), tables, (figure,), points=self.notes)

    @property
    def words(self) -> list[str]:
        """What the columns rest on, and the notes; a line each."""
        kind = "all of them at once" if self.simultaneous else "each by itself"
        many = "a max-statistic" if self.adjustment == "max" else "Holm's procedure"
        return [
            f"ranks: {100 * self.level:g} % rank intervals that hold {kind}; models that share a letter cannot be "
            f"told apart at {100 * (1 - self.level):g} % by these pairs, corrected for all pairs of models by "
            f"{many}.",
            f"first: how often a model is the highest in a bootstrap of {self.draws} draws: a frequency there, "
            "not the probability of being the best.",
            *map(self._words_over_tasks, [task for task in self.headlines if task.is_average]),
            *(f"note: {note}" for note in self.notes),
        ]

    def _words_over_tasks(self, task: RankedTask) -> str:
        return (
            f"to first: {task.task} minus that of the first model. Its interval, the `tasks` columns, is about "
            f"other tasks, as if these {task.tasks} had been drawn at random (Student's t of the {task.tasks} "
            f"differences); all other columns are about other {KINDS[task.kind].unit} of these tasks."
        )

    def _tables(self, task: RankedTask) -> Iterator[Table]:
        low, high = (f"{100 * share:g} %" for share in ((1 - self.level) / 2, (1 + self.level) / 2))
        rows = [
            {
                "rank": row.rank,
                "ranks": f"{row.best} to {row.worst}" if row.best < row.worst else f"{row.best}",
                "model": row.model,
                cells.Named("task", task.task): row.score,
                low: row.low,
                high: row.high,
                "groups": letters_text(row.letters),
                "first": f"{100 * row.first:.0f} %",
                **(
                    {"to first": row.to_first, f"tasks {low}": row.tasks_low, f"tasks {high}": row.tasks_high}
                    if task.is_average
                    else {}
                ),
            }
            for row in task.rows
        ]
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
        alike = [row.model for row, p in zip(others, task.p[0][1:], strict=True) if p >= 1 - self.level]
        leads = f"{first.model} leads {where} with {first.score:.2f}"
        if not alike:
            return f"{leads}, and is told apart from every other at {100 * (1 - self.level):g} %."
        many = len(alike) > _FEW
        names = listed([*alike[: _FEW - 1], f"{len(alike) - _FEW + 1} more"] if many else alike)
        apart = len(others) - len(alike)
        rest = f", {apart} {'others are' if apart > 1 else 'other is'} below it" if apart else ""
        return f"{leads}; {names} cannot be told apart from it at {100 * (1 - self.level):g} %{rest}."


def _drawn(task: RankedTask, level: float) -> "Figure":
    count = len(task.rows)
    # A hundred models still have to fit on a page.
    line, size = (0.2, 7.0) if count <= 30 else (0.11, 5.0)
    with style():
        figure = new_figure()
        letters = int(figure.get_figwidth() * _NAME_LETTERS)
        names = [fill(shortened(row.model, 2 * letters), letters) for row in task.rows]
        line *= 1.5 if count <= 30 and any("\n" in name for name in names) else 1
        figure.set_figheight(0.9 + line * count)
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
        places = range(count)
        for place, row in enumerate(task.rows):
            left.plot([row.low, row.high], [place, place], color=_SHOWN)
            left.plot([row.score], [place], "o", color=_SHOWN, markersize=size / 2)
            right.plot(
                [row.best - 0.35, row.worst + 0.35],
                [place, place],
                color=_BAND,
                linewidth=size,
                alpha=0.35,
                solid_capstyle="butt",
            )
            right.plot([row.rank], [place], "o", color=_BAND, markersize=size / 2)
            words = f"rank {row.rank}" + (f", can be {row.best} to {row.worst}" if row.best < row.worst else "")
            add_tooltips(
                left, [row.score], [place], [f"{row.model}: {spoken(row.score, row.low, row.high)}; {words}"]
            )
        if count <= 30:
            groups = right.secondary_yaxis("right")
            texts = [letters_text(row.letters) if len(row.letters) <= 12 else "" for row in task.rows]
            groups.set_yticks(list(places), texts)
            groups.tick_params(length=0)
        left.set_yticks(
            list(places),
            names if count <= 30 else [shortened(row.model, letters) for row in task.rows],
            fontsize=size,
        )
        left.set_ylim(count - 0.5, -0.5)
        for axes in (left, right):
            axes.grid(visible=False, axis="y")
        right.tick_params(axis="y", length=0, labelleft=False)
        right.set_xlim(0.4, count + 0.6)
        right.xaxis.get_major_locator().set_params(integer=True)
        # Two panels stand above these words, which are longer than the panels are wide.
        broken = max(10, int(0.65 * letters))
        left.set_xlabel(fill(f"{task.task} with {100 * level:g} % intervals", broken))
        right.set_xlabel(fill("rank, and the ranks it can have", broken))
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
    """Rank models that were measured on the same pairs, and tell how much of the order the pairs show.

    Runs that do not compare, as those of a folder of runs may not, fall into groups: the largest is ranked (of two
    the one that was named first), and of each other run the notes say why it was left out. Of several runs of one
    model, used alike, the first is ranked.

    Each task, and the average, is ranked by itself. Two models are told apart if their difference is, corrected
    for all pairs of models; the ranks that a model can have follow from which others are shown to be above and
    below it (see `statistics.ranks`).

    Args:
        runs: run folders or `run.json` files, two to 100. In Python also records.
        simultaneous: whether to rank by intervals that hold for all models of a task at once. By default each
            interval holds by itself, which answers a question about one model.
        adjustment: how to correct for the many pairs of models: `max` (the distribution of the largest difference)
            or `holm`.
        interval: which pairs depend on each other.
        level: the level of all intervals; two models are told apart at 1 - level.
        draws: how many draws the parametric bootstrap makes.
        seed: the seed of the draws.
        progress: told how far it is.

    Returns:
        `.sentence` says who leads, `.table()` shows ranks and groups, `.plot()` draws them, `.frame` has a row per
        task and model.

    Raises:
        UserError: if there are fewer than two models or more than `MOST`, one run is named twice, or no two of
            the runs compare.

    Example:
        >>> import stsbench as sb
        >>> models = [lambda texts, k=k: [[len(s), s.count("e"), k * s.count("o")] for s in texts] for k in (0, 3)]
        >>> ranking = rank([sb.evaluate(model, "sample") for model in models])
        >>> [(row.rank, row.best, row.worst) for row in ranking.tasks[0].rows]
        [(1, 1, 2), (2, 1, 2)]
    """
    if not 0 < level < 1:
        raise UserError(f"an interval of level {level}: give a share between 0 and 1, such as 0.95.")
    if draws < 1:
        raise UserError("a ranking rests on draws: give at least one, better 5000.")
    if not 2 <= len(runs) <= MOST:
        count = "one model has no rank" if len(runs) == 1 else f"{len(runs)} models are no ranking"
        raise UserError(f"{count}: name 2 to {MOST} runs.")
    named, left_out = _comparable(named_runs(runs))
    tasks, notes = aligned_scores(named, progress=progress)
    require_distinct_models(named)  # of two that do not compare, another protocol is the better reason
    ranked = []
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
        limits = [task.limits(place, interval, level) for place in range(len(named))]
        ranked.append(_in_order(task, tuple(named), ranking, limits))
        if task.is_average:
            ranked[-1] = _with_tasks(ranked[-1], [each for each in ranked[:-1] if each.kind == task.kind], level)
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
    """Rank the models of one task or of an average; the arguments are those of `rank`."""
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
    """Return the (m, m) p-values that `compare` gives of every two models, 1 where there is none."""
    p = np.ones((len(task.scores), len(task.scores)))
    for one, variances in enumerate(difference_variances(task.terms, task.sharing, interval)):
        for other, variance in enumerate(variances, one + 1):
            p[one, other] = p[other, one] = two_sided_p(float(task.scores[other] - task.scores[one]), variance)
    return np.nan_to_num(p, nan=1.0)


def _comparable(runs: dict[str, RunRecord]) -> tuple[dict[str, RunRecord], tuple[str, ...]]:
    """Return the largest group of runs that compare, and of each other run why it was left out.

    Where no two compare, all are returned: what follows says what keeps them apart.
    """
    models = {name: model_of(record) for name, record in runs.items()}

    def obstacle(group: Sequence[str], name: str) -> str | None:
        """Return why a run is not ranked with others, which compare with each other; None if it is."""
        first, folder = group[0], runs[name].folder
        try:
            both = {first: runs[first], name: runs[name]}
            require_items(both)
            common, _ = common_scores(both)
        except UserError as error:
            return str(error)
        if not common:
            return f"{name} was measured on no task of {first}."
        twins = (ranked for ranked in group if models[name] and models[ranked] == models[name])
        if (twin := next(twins, None)) is not None and runs[twin].folder != folder:
            return f"{name} is the model of {twin}, used alike."
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


def _in_order(
    task: AlignedScores, names: tuple[str, ...], ranking: Ranking, limits: Sequence[Limits]
) -> RankedTask:
    order = np.argsort(-task.scores, kind="stable")
    rows = tuple(
        RankedScore(
            model=names[place],
            score=100 * float(task.scores[place]),
            low=100 * limits[place].low,
            high=100 * limits[place].high,
            rank=int(ranking.rank[place]),
            best=int(ranking.best[place]),
            worst=int(ranking.worst[place]),
            letters=ranking.letters[place],
            first=float(ranking.first[place]),
        )
        for place in order
    )
    p = ranking.p[np.ix_(order, order)]
    return RankedTask(task.kind, task.task, task.size, rows, tuple(map(tuple, p.tolist())))


def over_tasks(scores: ArrayLike, first: ArrayLike, level: float = LEVEL) -> tuple[float, float, float]:
    """Return the mean difference of two models over some tasks, and its limits if other tasks had been drawn.

    The tasks are taken for a random sample of those that are meant, each as good as another and independent of
    the others: Student's t of their k differences with k - 1 degrees of freedom. What a task's own items leave
    open is in the differences already. That the first is the best of several models is not corrected for.

    Args:
        scores: (k,) of the one on each task; at least two.
        first: (k,) of the other.
        level: of the interval, whose limits are NaN where all differences are the same.

    >>> [round(number, 2) for number in over_tasks([70.0, 80.0, 60.0], [72.0, 81.0, 66.0])]
    [-3.0, -9.57, 3.57]
    """
    differences = np.asarray(scores, dtype=np.float64) - np.asarray(first, dtype=np.float64)
    mean = float(differences.mean())
    reach = reach_of_mean(float(differences.std(ddof=1)), len(differences), level)
    return (mean, mean - reach, mean + reach) if reach > 0 else (mean, math.nan, math.nan)


def _with_tasks(average: RankedTask, tasks: Sequence[RankedTask], level: float) -> RankedTask:
    """Return the ranking by an average with what its tasks, taken as drawn, say of the differences."""
    of_tasks = [{row.model: row.score for row in task.rows} for task in tasks]
    first, *others = average.rows
    rows = [first]
    for row in others:
        scores, of_first = ([of_task[model] for of_task in of_tasks] for model in (row.model, first.model))
        difference, low, high = over_tasks(scores, of_first, level)
        rows.append(replace(row, to_first=difference, tasks_low=low, tasks_high=high))
    return replace(average, rows=tuple(rows), tasks=len(tasks))


def _degrees_of_freedom(task: AlignedScores, method: Dependence) -> float:
    """Return the smallest degrees of freedom of any model's difference from the mean of all."""
    models = len(task.scores)
    contrasts = np.eye(models) - 1 / models
    freedoms = [task.variance_of(contrast, method).df for contrast in contrasts]
    return float(min((df for df in freedoms if np.isfinite(df)), default=np.inf))
