"""`rank`: orders models, and shows how much of the order is statistically certain."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.base.words import listed, suggestion
from stsbench.judging.aligned import AlignedScores, Floats, aligned_scores, comparable_runs
from stsbench.judging.judgement import Judgement, OfTask, by_kind
from stsbench.judging.runs import Run, named_runs, require_distinct_models
from stsbench.records.kinds import KINDS
from stsbench.render.charts import forest
from stsbench.render.figures import shortened
from stsbench.render.table import Table, Tables
from stsbench.statistics import DEPENDENCE, LEVEL, Dependence
from stsbench.statistics.dependence import shared_sums
from stsbench.statistics.estimate import verdict_of_p
from stsbench.statistics.intervals import reach_of_mean
from stsbench.statistics.ranks import Adjustment, Ranking, letters_text, rank_scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 100
"""Largest number of models: they make 4,950 pairs."""

DRAWS = 5000
SEED = 12345

_FEW = 3
"""Largest number of models that a sentence names."""

_LABEL = 22
"""Characters of a model's name that leave room for the scores in a narrow figure."""


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
            `tasks_high` over other tasks. NaN for the first, and without an average or spread.
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

    @property
    def ranks(self) -> str:
        """The rank interval as text."""
        return f"{self.best} to {self.worst}" if self.best < self.worst else f"{self.best}"


@dataclass(frozen=True)
class RankedTask(OfTask):
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
        draws: draws of the parametric bootstrap.
    """

    models: tuple[str, ...]
    tasks: tuple[RankedTask, ...]
    simultaneous: bool
    adjustment: Adjustment
    interval: Dependence
    level: float
    draws: int

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
        return pd.DataFrame(
            {"kind": task.kind, "task": task.task, "size": task.size} | asdict(row) | {"tasks": task.tasks}
            for task in self.tasks
            for row in task.rows
        )

    def table(self) -> Tables:
        """Returns the ranking by each headline, and the scores of all tasks with their groups."""
        return Tables(table for task in self.headlines for table in self._tables(task))

    def plot(self, task: str | None = None) -> "Figure":
        """Returns a figure of the scores with intervals and ranks; models tied with the first are filled.

        Args:
            task: the task; by default the average, or the only task.

        Raises:
            UserError: if the task was not ranked.
        """
        tasks = {item.task: item for item in self.tasks}
        if task is not None and task not in tasks:
            raise UserError(f"{task!r} was not ranked: {suggestion(task, tasks)}")
        chosen = self.headlines[0] if task is None else tasks[task]
        rows = [
            {
                "label": f"{shortened(row.model, _LABEL)}, rank {row.ranks}",
                "series": "",
                "value": row.score,
                "low": row.low,
                "high": row.high,
                "filled": chosen.p[0][place] >= 1 - self.level,
                "summary": False,
            }
            for place, row in enumerate(chosen.rows)
        ]
        return forest(pd.DataFrame(rows), chosen.task)

    @property
    def remarks(self) -> list[str]:
        """What ranks and letters mean, and the notes; one line each."""
        scope = "for all models at once" if self.simultaneous else "per model"
        method = "max-statistic" if self.adjustment == "max" else "Holm"
        return [
            f"ranks: {100 * self.level:g} % rank intervals {scope}; models that share a letter do not differ "
            f"significantly (corrected for all pairs, {method}).",
            *super().remarks,
        ]

    def _tables(self, task: RankedTask) -> Iterator[Table]:
        """Yields the ranking by a headline; by an average also the scores of all tasks with their groups."""
        low, high = (f"{100 * share:g} %" for share in ((1 - self.level) / 2, (1 + self.level) / 2))
        rows = []
        for row in task.rows:
            columns: dict[Any, object] = {
                "rank": row.rank,
                "ranks": row.ranks,
                "model": row.model,
                task.task: row.score,
                low: row.low,
                high: row.high,
                "groups": letters_text(row.letters),
                "first": f"{100 * row.first:.0f} %",
            }
            if task.is_average:
                over = {"to first": row.to_first, f"tasks {low}": row.tasks_low, f"tasks {high}": row.tasks_high}
                columns |= over
            rows.append(columns)
        yield Table(pd.DataFrame(rows), headline=task.task)
        if task.is_average:
            frame = pd.DataFrame({"model": [row.model for row in task.rows]})
            for item in by_kind(self.tasks)[task.kind]:
                texts = {row.model: f"{row.score:.2f} {letters_text(row.letters)}" for row in item.rows}
                frame[item.task] = frame["model"].map(texts)
            yield Table(frame)

    def _sentence(self, task: RankedTask) -> str:
        first, *others = task.rows
        where = f"on {KINDS[task.kind].words} average" if task.is_average else f"on {task.task}"
        tied = [
            row.model
            for row, p in zip(others, task.p[0][1:], strict=True)
            if verdict_of_p(row.score - first.score, p, self.level) == "undecided"
        ]
        leads = f"{first.model} leads {where} with {first.score:.2f}"
        if not tied:
            return f"{leads}, significantly above every other model."
        below = len(others) - len(tied)
        rest = f"; {below} other{'s are' if below > 1 else ' is'} significantly below" if below else ""
        names = listed(tied) if len(tied) <= _FEW else f"{len(tied)} models"
        return f"{leads}; statistically tied with it: {names}{rest}."


def rank(
    runs: Sequence[Run],
    *,
    simultaneous: bool = False,
    adjustment: Adjustment = "max",
    interval: Dependence = DEPENDENCE,
    level: float = LEVEL,
    draws: int = DRAWS,
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
    named, left_out = comparable_runs(named_runs(runs))
    tasks, notes = aligned_scores(named, progress=progress)
    require_distinct_models(named)  # after the check of protocols, whose message says more
    how: Any = {"simultaneous": simultaneous, "adjustment": adjustment, "level": level, "draws": draws}
    ranked: list[RankedTask] = []
    for task in tasks:
        before = [other for other in ranked if other.kind == task.kind] if task.is_average else []
        ranking = ranking_of(task, interval, seed=SEED, **how)
        ranked.append(_ranked_task(task, tuple(named), ranking, tasks=before, interval=interval, level=level))
    notes = (*left_out, *notes)
    return RankResult(tuple(named), tuple(ranked), interval=interval, notes=notes, **how)


def ranking_of(task: AlignedScores, interval: Dependence = DEPENDENCE, **how: Any) -> Ranking:
    """Ranks the models of one task or average; further arguments are those of `statistics.ranks.rank_scores`."""
    return rank_scores(
        task.scores,
        task.covariance(interval),
        p_alone=_p_alone(task, interval),
        sums=shared_sums(task.terms, task.sharing, interval),
        df=_degrees_of_freedom(task, interval),
        **how,
    )


def _p_alone(task: AlignedScores, interval: Dependence) -> Floats:
    """Returns the (m, m) p-values of `compare` for every two models, 1 if undefined."""
    p = np.ones((len(task.scores), len(task.scores)))
    for (one, other), difference in task.differences(interval).items():
        p[one, other] = p[other, one] = difference.p
    return np.nan_to_num(p, nan=1.0)


def _degrees_of_freedom(task: AlignedScores, method: Dependence) -> float:
    """Returns the smallest degrees of freedom of any model's difference from the mean of all."""
    models = len(task.scores)
    contrasts = np.eye(models) - 1 / models
    freedoms = [task.estimate(contrast, method).variance.df for contrast in contrasts]
    return float(min((df for df in freedoms if np.isfinite(df)), default=np.inf))


def _ranked_task(
    task: AlignedScores,
    names: Sequence[str],
    ranking: Ranking,
    *,
    tasks: Sequence[RankedTask],
    interval: Dependence,
    level: float,
) -> RankedTask:
    """Returns the rows of a ranking; for an average `tasks` are the rankings of its tasks."""
    rows: list[RankedScore] = []
    order = np.argsort(-task.scores, kind="stable")
    of_tasks = [{row.model: row.score for row in other.rows} for other in tasks]
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
        if rows and tasks:
            row = replace(row, **_over_tasks(of_tasks, row.model, rows[0].model, level))
        rows.append(row)
    p = tuple(map(tuple, ranking.p[np.ix_(order, order)].tolist()))
    return RankedTask(task.kind, task.task, task.size, tuple(rows), p, max(1, len(tasks)))


def _over_tasks(scores: Sequence[Mapping[str, float]], model: str, first: str, level: float) -> dict[str, Any]:
    """Returns the mean difference of two models over k tasks, and its limits over other tasks.

    The tasks are treated as a random sample: Student's t with k - 1 degrees of freedom. Choosing the best of
    several models as the first is not corrected for. There are no limits if all differences are equal.
    """
    differences = np.array([of_task[model] for of_task in scores]) - [of_task[first] for of_task in scores]
    mean, error = float(differences.mean()), float(differences.std(ddof=1))
    reach = reach_of_mean(error, len(differences), level) or math.nan
    return {"to_first": mean, "tasks_low": mean - reach, "tasks_high": mean + reach}
