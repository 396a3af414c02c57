"""`rank`: the order of several models, and how much of it the pairs show."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np

from stsbench.base.errors import UserError
from stsbench.base.options import Count, Named, Spelled
from stsbench.base.progress import Progress, silent
from stsbench.judging.aligned import (
    AlignedScores,
    aligned_scores,
    common_scores,
    demand_distinct_models,
    model_of,
    named_runs,
    require_items,
)
from stsbench.judging.ranked import RankedScore, RankedTask, RankResult
from stsbench.records.record import RunRecord
from stsbench.statistics.dependence import DEPENDENCE, LEVEL, Dependence
from stsbench.statistics.intervals import Limits
from stsbench.statistics.ranks import Adjustment, Ranking, difference_errors, rank_scores

MOST = 100
"""Models at once: 4,950 pairs of them."""

DRAWS = 5000
SEED = 12345


def rank(
    runs: Annotated[Sequence[RunRecord | str | Path], Spelled("RUN...")],
    *,
    simultaneous: bool = False,
    adjustment: Annotated[Adjustment, Named(), Spelled("--adjust")] = "max",
    interval: Dependence = DEPENDENCE,
    level: float = LEVEL,
    draws: Count = DRAWS,
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
    demand_distinct_models(named)  # of two that do not compare, another protocol is the better reason
    method = interval
    ranked = []
    for task in tasks:
        matrix = task.covariance(method)
        ranking = rank_scores(
            task.scores,
            matrix,
            # As every variance here: at least that of independent pairs.
            np.maximum(difference_errors(matrix), difference_errors(task.covariance("independent"))),
            df=_degrees_of_freedom(task, method),
            level=level,
            simultaneous=simultaneous,
            adjustment=adjustment,
            draws=draws,
            seed=seed,
        )
        limits = [task.limits(place, method, level) for place in range(len(named))]
        ranked.append(_in_order(task, tuple(named), ranking, limits))
    return RankResult(
        tuple(named), tuple(ranked), simultaneous, adjustment, method, level, draws, seed, (*left_out, *notes)
    )


def _comparable(runs: dict[str, RunRecord]) -> tuple[dict[str, RunRecord], tuple[str, ...]]:
    """Return the largest group of runs that compare, and of each other run why it was left out.

    Where no two compare, all are returned: what follows says what keeps them apart.
    """
    models = {name: model_of(record) for name, record in runs.items()}

    def obstacle(group: Sequence[str], name: str) -> str | None:
        """Return why a run is not ranked with others, which compare with each other; None if it is."""
        first, folder = group[0], runs[name].folder
        try:
            two = {each: runs[each] for each in (first, name)}
            require_items(two)
            common, _ = common_scores(two)
        except UserError as error:
            return str(error)
        if not common:
            return f"{name} was measured on no task of {first}."
        twins = (each for each in group if models[name] and models[each] == models[name])
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


def _degrees_of_freedom(task: AlignedScores, method: Dependence) -> float:
    """Return the smallest degrees of freedom of any model's difference from the mean of all."""
    models = len(task.scores)
    contrasts = np.eye(models) - 1 / models
    found = [task.variance_of(contrast, method).df for contrast in contrasts]
    return float(min((df for df in found if np.isfinite(df)), default=np.inf))
