"""`rank`: orders models, and shows how much of the order is statistically certain."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.base.words import suggestion
from stsbench.judging.aligned import AlignedScores, Floats, aligned_scores
from stsbench.judging.comparison import limit_names
from stsbench.judging.runs import Run, choose_runs
from stsbench.judging.verdicts import Judgement, records
from stsbench.records.kinds import AVERAGES, KINDS
from stsbench.records.record import RunRecord
from stsbench.records.scores import seconds_per_1000
from stsbench.render.charts import forest
from stsbench.render.figures import shortened
from stsbench.render.table import Table, Tables
from stsbench.scoring.settings import Intervals
from stsbench.statistics import DEPENDENCE, LEVEL, Dependence
from stsbench.statistics.dependence import shared_sums
from stsbench.statistics.intervals import Limits, reach_of_mean
from stsbench.statistics.ranks import Ranking, letters_text, rank_scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 100
"""Largest number of models: they make 4,950 pairs."""

DRAWS = 5000
SEED = 12345

_FEW = 6
"""Largest number of models that a sentence names."""

_FASTER, _TIMED = 1.5, 100
"""The smallest ratio of speeds that a sentence states, and the fewest encoded texts that it needs."""

_BEHIND = ("behind", "behind_low", "behind_high")
_OVER_TASKS = ("to_first", "tasks_low", "tasks_high")

_LABEL = 22
"""Characters of a model's name that leave room for the scores in a narrow figure."""


@dataclass(frozen=True, eq=False)
class RankResult(Judgement):
    """The order of models, and how certain it is.

    Attributes:
        models: names of the models, in the order given.
        rows: for each task, and after the tasks of a kind their average, a row per model, highest score first.

            - `kind`, `task`, `size` in pairs or items, `model`;
            - `score` x 100 with its own interval `low` to `high`, NaN if undefined;
            - `rank` by the score, 1 is the highest; `best` to `worst`: its rank interval; `letters`: its groups,
              models that share a letter do not differ significantly;
            - `first`: share of bootstrap draws in which it is the highest, from 0 to 1;
            - `to_first`: of an average, its difference from the first model in points, with the interval
              `tasks_low` to `tasks_high` over other tasks. NaN for the first, and without an average or spread;
            - `behind`: points below the first model, with the interval `behind_low` to `behind_high`; NaN for it;
            - `seconds` to encode 1,000 texts; NaN if fewer than 100 were encoded, or the environments differ;
            - `tasks`: number of tasks in an average, otherwise 1.
        p: by task, the (m, m) p-values of all differences in the order of its rows, corrected for all pairs.
        simultaneous: whether the rank intervals of a task hold for all models at once.
        interval: which pairs are treated as dependent.
        level: level of the intervals.
        draws: draws of the parametric bootstrap.
    """

    models: tuple[str, ...]
    rows: pd.DataFrame
    p: Mapping[str, Sequence[Sequence[float]]]
    simultaneous: bool
    interval: Dependence
    level: float
    draws: int

    @property
    def frame(self) -> pd.DataFrame:
        """One row per task and model."""
        return self.rows

    @property
    def headlines(self) -> list[str]:
        """For each kind its average, or its tasks if it has no average."""
        kinds = ((KINDS[str(kind)], rows["task"].unique()) for kind, rows in self.rows.groupby("kind", sort=False))
        return [task for kind, tasks in kinds for task in (tasks[-1:] if kind.average else tasks)]

    def of(self, task: str) -> pd.DataFrame:
        """Returns the rows of a task or average, with its rank intervals as text in `ranks`.

        Raises:
            UserError: if the task was not ranked.
        """
        if task not in self.p:
            raise UserError(f"{task!r} was not ranked: {suggestion(task, self.p)}")
        rows = self.rows[self.rows["task"] == task].reset_index(drop=True)
        limits = zip(rows["best"], rows["worst"], strict=True)
        return rows.assign(ranks=[f"{best} to {worst}" if best < worst else f"{best}" for best, worst in limits])

    @property
    def sentence(self) -> str:
        """Which model is best, which are tied with it, and how far the others are behind, for each headline."""
        return " ".join(map(self._sentence, self.headlines))

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
        task = self.headlines[0] if task is None else task
        rows = self.of(task).rename(columns={"score": "value"})
        label = rows["model"].map(lambda name: shortened(name, _LABEL)) + ", rank " + rows["ranks"]
        filled = [p >= 1 - self.level for p in self.p[task][0]]
        return forest(rows.assign(label=label, series="", filled=filled, summary=False), task)

    @property
    def remarks(self) -> list[str]:
        """What ranks and letters mean, and the notes; one line each."""
        scope = "for all models at once" if self.simultaneous else "per model"
        return [
            f"ranks: {100 * self.level:g} % rank intervals {scope}; models that share a letter do not differ "
            f"significantly (corrected for all pairs, max-statistic).",
            *super().remarks,
        ]

    def _tables(self, task: str) -> Iterator[Table]:
        """Yields the ranking by a headline; for an average also the scores of all tasks with their groups."""
        low, high = limit_names(self.level)
        rows = self.of(task)
        shown = rows.assign(
            groups=rows["letters"].map(letters_text), first=[f"{100 * share:.0f} %" for share in rows["first"]]
        )
        heads = {"rank": "rank", "ranks": "ranks", "model": "model", "score": task, "low": low, "high": high}
        heads |= {"groups": "groups", "first": "first"}
        if task in AVERAGES:
            heads |= {"to_first": "to first", "tasks_low": f"tasks {low}", "tasks_high": f"tasks {high}"}
        yield Table(shown[list(heads)].rename(columns=heads), headline=task)
        if task in AVERAGES:
            of_kind = self.rows[self.rows["kind"] == rows["kind"][0]]
            groups = [f"{row.score:.2f} {letters_text(row.letters)}" for row in records(of_kind)]
            wide = of_kind.assign(text=groups).pivot_table("text", "model", "task", aggfunc="first", sort=False)
            yield Table(wide.loc[rows["model"], of_kind["task"].unique()].rename_axis(columns=None).reset_index())

    def _sentence(self, task: str) -> str:
        (first, *others), (_, *p) = records(self.of(task)), self.p[task][0]
        where = f"on {KINDS[first.kind].words} average" if task in AVERAGES else f"on {task}"
        below = [row for row, of_row in zip(others, p, strict=True) if of_row < 1 - self.level]
        tied = [row for row in others if row not in below]
        parts = [f"{first.model} is best {where} ({first.score:.2f})"]
        if len(others) < _FEW:
            parts += [f"{row.model} does not differ significantly{_speed(row, first, ' and is')}" for row in tied]
            parts += [
                f"{row.model} is {row.behind:.1f} [{row.behind_low:.1f}, {row.behind_high:.1f}] points worse"
                f"{_speed(row, first, ' and')}"
                for row in below
            ]
        else:
            parts += [f"{len(tied)} of {len(others)} others do not differ significantly"]
        return f"{'; '.join(parts)}."


def _speed(row: Any, first: Any, link: str) -> str:
    ratio = first.seconds / row.seconds
    if ratio >= _FASTER:
        return f"{link} {ratio:.2g} times as fast"
    return f"{link} {1 / ratio:.2g} times as slow" if ratio <= 1 / _FASTER else ""


def rank(
    runs: Sequence[Run],
    *,
    simultaneous: bool = False,
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
        >>> ranking.frame[["rank", "best", "worst"]].values.tolist()
        [[1, 1, 2], [2, 1, 2]]
    """
    Intervals(interval, level)  # raises the error for a wrong choice
    if draws < 1:
        raise UserError(f"{draws} draws: give at least 1; 5000 are usual.")
    named, left_out = choose_runs(runs, 2, MOST, comparable=True)
    tasks, notes = aligned_scores(named, progress=progress)
    how: Any = {"simultaneous": simultaneous, "level": level, "draws": draws}
    frames, p, seconds = [], {}, _seconds(list(named.values()))
    for task in tasks:
        ranking = ranking_of(task, interval, seed=SEED, **how)
        order = np.argsort(-task.scores, kind="stable")
        limits = [task.limits(place, interval, level) for place in range(len(named))]
        rows = _ranked(task, list(named), ranking, limits).assign(seconds=seconds)
        rows = rows.iloc[order].reset_index(drop=True)
        rows.loc[1:, list(_BEHIND)] = [_behind(task, place, order[0], interval, level) for place in order[1:]]
        of_kind = [other for other in tasks if other.kind == task.kind and not other.is_average]
        if task.is_average:
            rows.loc[1:, list(_OVER_TASKS)] = [_over_tasks(of_kind, place, order[0], level) for place in order[1:]]
        frames.append(rows.assign(tasks=len(of_kind) if task.is_average else 1))
        p[task.task] = ranking.p[np.ix_(order, order)].tolist()
    rows = pd.concat(frames, ignore_index=True)
    return RankResult(tuple(named), rows, p, interval=interval, notes=(*left_out, *notes), **how)


def ranking_of(task: AlignedScores, interval: Dependence = DEPENDENCE, **how: Any) -> Ranking:
    """Ranks the models of one task or average; further arguments are those of `statistics.ranks.rank_scores`."""
    return rank_scores(
        task.scores,
        task.covariance(interval),
        _p_alone(task, interval),
        shared_sums(task.terms, task.sharing, interval),
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


def _ranked(
    task: AlignedScores, models: Sequence[str], ranking: Ranking, limits: Sequence[Limits]
) -> pd.DataFrame:
    """Returns the rows of a task or average, in the order of the models."""
    columns = {"kind": task.kind, "task": task.task, "size": task.size, "model": models}
    columns |= {"score": 100 * task.scores}
    columns |= {name: [100 * getattr(of_model, name) for of_model in limits] for name in ("low", "high")}
    columns |= {name: getattr(ranking, name) for name in ("rank", "best", "worst", "letters", "first")}
    return pd.DataFrame(columns | dict.fromkeys((*_BEHIND, *_OVER_TASKS), math.nan))


def _seconds(runs: Sequence[RunRecord]) -> list[float]:
    """Returns the seconds of each model for 1,000 texts; NaN unless all were timed in one environment."""
    same = all(run.environment == runs[0].environment for run in runs)
    timed = [same and run.encoding.get("encoded", 0) >= _TIMED for run in runs]
    return [
        (seconds_per_1000(run) if is_timed else None) or math.nan
        for run, is_timed in zip(runs, timed, strict=True)
    ]


def _behind(
    task: AlignedScores, place: int, first: int, interval: Dependence, level: float
) -> tuple[float, float, float]:
    weights = np.eye(len(task.scores))[first] - np.eye(len(task.scores))[place]
    estimate = task.estimate(weights, interval)
    low, high, _ = estimate.interval(level)
    return 100 * estimate.value, 100 * low, 100 * high


def _over_tasks(
    tasks: Sequence[AlignedScores], place: int, first: int, level: float
) -> tuple[float, float, float]:
    """Returns the mean difference of a model from the first over k tasks, and its limits over other tasks.

    The tasks are treated as a random sample: Student's t with k - 1 degrees of freedom. Choosing the best of
    several models as the first is not corrected for. There are no limits if all differences are equal.
    """
    differences = np.array([100 * float(task.scores[place]) - 100 * float(task.scores[first]) for task in tasks])
    mean, error = float(differences.mean()), float(differences.std(ddof=1))
    reach = reach_of_mean(error, len(differences), level) or math.nan
    return mean, mean - reach, mean + reach
