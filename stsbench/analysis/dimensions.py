"""Do a few dimensions make the cosine, and do they hide what the others know? (Timkey and van Schijndel 2021)"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from stsbench.analysis.result import AnalysisResult, CommandWithIntervals, headline, in_columns
from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.cli.options import DataDirs, OwnTexts, Tasks, numbers
from stsbench.records.kinds import AVERAGE
from stsbench.render.cells import Named
from stsbench.render.charts import draw_by_model
from stsbench.render.figures import colours, legend_above, new_figure, style
from stsbench.render.table import Table, Tables, interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stsbench.analysis.inputs import ScoredVectors
    from stsbench.analysis.length_numbers import Estimates
    from stsbench.scoring.settings import Intervals
    from stsbench.scoring.subjects import Wanted
    from stsbench.statistics.influence import Linear

    Floats = NDArray[np.float64]

TOP = (1, 3, 10)
"""Of how many dimensions the share is told, and without how many the score."""

MEAN, SHARE, SPEARMAN, DIFFERENCE = "mean cosine", "share", "spearman", "difference"
COSINE, STANDARDISED, RANKS, MANHATTAN = "cosine", "standardised", "ranks", "manhattan"


class Dimensions(AnalysisResult):
    """What single dimensions make of models' cosines, and scores with less of them."""

    name = "dimensions"
    title = "Dimensions"
    question = "do a few dimensions make the cosine, and hide what the others know?"
    look_for = "a large share of few dimensions, and scores that rise without them or standardised"

    def table(self) -> Tables:
        """Return the shares of the largest dimensions by task, and the scores of each way to compare vectors."""
        return Tables(
            [
                Table(
                    _shares(self.frame),
                    "Mean cosine of two random sentences x 100; the share of it, in %, that few dimensions make",
                    notes=self.notes,
                ),
                Table(
                    _scores(self.frame),
                    "Spearman x 100 by how vectors are compared, and the difference to the cosine",
                    notes=(_HOW,),
                ),
            ]
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What shares are of, and where there are none."""
        shares = self.frame[self.frame["measure"] == SHARE]
        notes = [
            "Of d dimensions that all make the same, k make k / d. Intervals are of new sentences (those that a "
            "chain of pairs joins depend on each other), for the dimensions that are largest here."
        ]
        lost = shares[shares["value"].isna() & (shares["task"] != AVERAGE)]
        for model, part in lost.groupby("model", sort=False):
            tasks = ", ".join(dict.fromkeys(part["task"]))
            notes.append(f"{model}: the mean cosine is not above 0 on {tasks}, and nothing has a share of it.")
        return tuple(notes)

    def numbers(self) -> dict[str, float]:
        """Return mean cosine, shares and scores of the only task, or on average."""
        rows = headline(self.frame)
        return {
            f"{row['measure']} {row['group']}".strip(): float(row["value"])
            for row in rows[rows["measure"] != DIFFERENCE].to_dict("records")
        }

    def plot(self) -> "Figure":
        """Draw the shares of the largest dimensions, and the differences of the scores, with intervals."""
        rows = headline(self.frame)
        shares, differences = (rows[rows["measure"] == measure].copy() for measure in (SHARE, DIFFERENCE))
        shares["place"] = "top " + shares["group"]
        shares[["value", "low", "high"]] *= 100
        differences["place"] = differences["group"]
        palette = colours(list(rows["model"]))
        with style():
            figure = new_figure(height=4.2)
            above, below = figure.subplots(2, 1)
            draw_by_model(above, shares, palette)
            above.set_ylabel("share of mean cosine, %")
            draw_by_model(below, differences, palette)
            below.axhline(0, color="0.4", linewidth=0.8, zorder=0)
            below.set_ylabel("points less the cosine's")
            legend_above(figure, below)
        return figure


_HOW = (
    "`cosine`: of the vectors as they are. `without top k`: of all but the k dimensions with the largest share. "
    "`standardised`: each dimension less its mean, over its standard deviation among the task's sentences. "
    "`ranks`: Spearman's correlation of two vectors. `manhattan`: the negative distance."
)


def _shares(frame: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for (model, task), part in frame[frame["measure"].isin([MEAN, SHARE])].groupby(["model", "task"], sort=False):
        row: dict[str, Any] = {"model": model, "task": task, "dimensions": part["dimensions"].iloc[0]}
        for each in part.to_dict("records"):
            name = MEAN if each["measure"] == MEAN else f"top {each['group']}"
            value, low, high = (100 * each[column] for column in ("value", "low", "high"))
            row |= {name: value, f"{name}: interval": interval(low, high)}
        rows.append(row)
    return pd.DataFrame(rows)


def _scores(frame: pd.DataFrame) -> pd.DataFrame:
    scores = frame[frame["measure"] == SPEARMAN]
    keys = ["model", "group"]
    wide = in_columns(scores, keys, "task", "value")
    tasks = [task for task in dict.fromkeys(scores["task"]) if task != AVERAGE]
    ordered = wide[[*tasks, *([AVERAGE] if AVERAGE in wide else [])]]
    table = ordered.rename(columns={task: Named("task", task) for task in tasks}).reset_index()
    differences = {
        (row["model"], row["group"]): (row["value"], interval(row["low"], row["high"]))
        for row in headline(frame).to_dict("records")
        if row["measure"] == DIFFERENCE
    }
    beside = [differences.get(key, (float("nan"), "")) for key in zip(table["model"], table["group"], strict=True)]
    table["difference"], table["interval"] = zip(*beside, strict=True)
    return table.rename(columns={"group": "compared by"})


def dimensions(
    runs: "Wanted | Sequence[Wanted] | None" = None,
    *,
    tasks: Sequence[str] = (),
    top: Sequence[int] = (),
    data: Sequence[str | Path] = (),
    intervals: "Intervals | None" = None,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> Dimensions:
    """Measure the share of the cosine that few dimensions make, and the scores without them.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of, which are measured first.
        tasks: the tasks to look at, with commas; by default all that a run has, for models the seven STS tasks, or
            the sample.
        top: of how many dimensions the share is told, and without how many the score; by default `1,3,10`, as far
            as vectors have more.
        data: files with the sentences of runs on pairs of your own; repeatable. Records hold no sentences.
        intervals: how intervals are computed.
        data_dirs: folders to look for data in.
        progress: told how far it is.

    Returns:
        One row per model, task, measure and group, with `value`, `low`, `high`. Measures: `mean cosine` of all
        pairs of a task's distinct sentences; `share` of it that the largest so many dimensions make (`which` says
        which, from 0; NaN where the mean cosine is not above 0); `spearman` x 100 of gold and similarity over all
        pairs of the task, by how vectors are compared; `difference` of that to the `cosine`. `Avg.` is the mean
        over tasks. `sentences` and `pairs` say of how many, `dimensions` how many a vector has.

    Raises:
        UserError: if a run lacks a task, vectors have fewer dimensions than are to be left out, or all are one.

    >>> shares = dimensions(lambda texts: [[len(s), s.count("e"), 9.0] for s in texts], tasks=["sample"], top=[1])
    >>> shares.frame.loc[shares.frame["measure"] == "share", "which"].tolist()
    ['0']
    """
    from stsbench.analysis.inputs import analysable, scored_vectors

    if any(count < 1 for count in top):
        raise UserError(f"--top {','.join(map(str, top))}: give numbers of dimensions from 1, such as 1,3,10.")
    subjects = analysable(runs)
    models = scored_vectors(subjects, tasks, data=data, data_dirs=data_dirs, progress=progress)
    return Dimensions(dimensions_frame(models, top, intervals))


def dimensions_frame(
    models: "Mapping[str, Sequence[ScoredVectors]]", top: Sequence[int] = (), intervals: "Intervals | None" = None
) -> pd.DataFrame:
    """Measure the dimensions of several models' vectors of the tasks' sentences; see `dimensions`."""
    from stsbench.analysis.length_numbers import Estimates
    from stsbench.scoring.settings import Intervals
    from stsbench.statistics.threads import in_threads

    rows: list[dict[str, Any]] = []
    for model, tasks in models.items():
        estimates, by_task = Estimates(intervals or Intervals()), []
        size = tasks[0].vectors.shape[1]
        counts = _counts(model, size, top)
        for task in tasks:
            task.require_directions(model)
        measure = partial(_measured, counts=counts, estimates=estimates)
        for task, (measured, order) in zip(tasks, list(in_threads(measure, tasks)), strict=True):
            by_task.append(measured)
            about = {"model": model, "task": task.task, "dimensions": size}
            about |= {"sentences": int(task.usable.sum()), "pairs": len(task.pairs)}
            for row in _rows(measured, about, estimates):
                which = order[: int(row["group"])] if row["measure"] == SHARE else ()
                rows.append(row | {"which": ",".join(map(str, which))})
        if len(tasks) > 1:
            means = {key: _mean([measured[key] for measured in by_task]) for key in by_task[0]}
            about = {"model": model, "task": AVERAGE, "dimensions": size}
            about["sentences"] = sum(int(task.usable.sum()) for task in tasks)
            about["pairs"] = sum(len(task.pairs) for task in tasks)
            rows += [row | {"which": ""} for row in _rows(means, about, estimates)]
    columns = ["model", "task", "measure", "group", "value", "low", "high"]
    columns += ["pairs", "sentences", "dimensions", "which"]
    return pd.DataFrame(rows, columns=columns)


def _measured(
    task: "ScoredVectors", counts: Sequence[int], estimates: "Estimates"
) -> "tuple[dict[tuple[str, str], Linear], NDArray[np.intp]]":
    """Return the numbers of a task, and its dimensions from the one with the largest share down."""
    from stsbench.statistics.geometry import mean_cosine_by_dimension
    from stsbench.statistics.neighbours import directions

    units = directions(task.vectors[task.usable]).units
    order = np.argsort(-mean_cosine_by_dimension(units), kind="stable")
    measured = dict(_of_shares(task, units, order, counts, estimates))
    return measured | _of_scores(task, order, counts, estimates), order


def _counts(model: str, size: int, top: Sequence[int]) -> tuple[int, ...]:
    """Return of how many dimensions the share is told; one at least stays."""
    if size < 2:
        raise UserError(f"vectors of {model} have one dimension: there is nothing to take apart.")
    if too_many := [count for count in top if count >= size]:
        raise UserError(
            f"--top {too_many[0]}: vectors of {model} have {size} dimensions, and one at least has to stay; give "
            f"numbers below {size}."
        )
    return tuple(dict.fromkeys(top)) or tuple(count for count in TOP if count < size)


def _of_shares(
    task: "ScoredVectors",
    units: "Floats",
    order: "NDArray[np.intp]",
    counts: Sequence[int],
    estimates: "Estimates",
) -> Iterator[tuple[tuple[str, str], "Linear"]]:
    """Yield the mean cosine, and the shares of it that the largest dimensions make."""
    from stsbench.statistics.influence import Linear

    block = f"sentences\n{task.task}"
    estimates.block(block, task.dependent(task.usable))
    whole = Linear(*_with_terms(units, block))
    yield (MEAN, ""), whole
    limits = estimates.limits(whole, len(units))
    # A share of what may be 0 is no number.
    is_positive = whole.value > 0 and not limits["low"] <= 0
    for count in counts:
        part = Linear(*_with_terms(units[:, order[:count]], block))
        yield (SHARE, str(count)), part / whole if is_positive else Linear.undefined()


def _with_terms(units: "Floats", block: str) -> "tuple[float, dict[str, Floats]]":
    """Return what some dimensions make of the mean cosine of all pairs, and the terms of each vector."""
    n = len(units)
    products = (units @ units.sum(axis=0) - np.einsum("ij,ij->i", units, units)) / (n - 1)
    mean = float(products.mean())
    return mean, {block: 2 * (products - mean) / n}


def _of_scores(
    task: "ScoredVectors", order: "NDArray[np.intp]", counts: Sequence[int], estimates: "Estimates"
) -> "dict[tuple[str, str], Linear]":
    """Return the task's Spearman correlation by how vectors are compared, and the differences to the cosine."""
    from stsbench.statistics.similarity import pair_similarities

    block = f"pairs\n{task.task}"
    estimates.block(block, task.pairs)
    vectors = task.vectors.astype("float64")
    plain = pair_similarities(vectors, task.left, task.right, ("cosine", "manhattan"))
    ways = {COSINE: plain["cosine"]}
    for count in counts:
        kept = vectors[:, order[count:]]
        ways[f"without top {count}"] = pair_similarities(kept, task.left, task.right)["cosine"]
    for way, changed in ((STANDARDISED, standardised(vectors)), (RANKS, centred_ranks(task.vectors))):
        ways[way] = pair_similarities(changed, task.left, task.right)["cosine"]
    ways[MANHATTAN] = plain["manhattan"]
    scores = {
        (SPEARMAN, way): estimates.spearman_of_task(block, task.pairs, similarity)
        for way, similarity in ways.items()
    }
    cosine = scores[SPEARMAN, COSINE]
    differences = {(DIFFERENCE, way): score - cosine for (_, way), score in scores.items() if way != COSINE}
    return scores | differences


def standardised(vectors: "Floats") -> "Floats":
    """Return (n, d) vectors with each dimension less its mean and divided by its standard deviation.

    A dimension that is the same in all is 0. Zero vectors know nothing and stay zero; they are in no mean.

    >>> import numpy as np
    >>> standardised(np.array([[1.0, 5.0], [3.0, 5.0], [0.0, 0.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
    """
    used = np.asarray(vectors.any(axis=1))
    deviations = vectors - vectors[used].mean(axis=0)
    spread = vectors[used].std(axis=0)
    # The rounded mean of equal numbers can differ from them.
    varies = vectors[used].min(axis=0) < vectors[used].max(axis=0)
    return np.where(used[:, np.newaxis] & varies, deviations / np.where(varies, spread, 1.0), 0.0)


def centred_ranks(vectors: "NDArray[np.floating[Any]]") -> "Floats":
    """Return the ranks of the numbers in each of (n, d) vectors less their mean; the cosine of two is Spearman's.

    >>> import numpy as np
    >>> centred_ranks(np.array([[0.1, 7.0, 0.3]])).tolist()
    [[-1.0, 1.0, 0.0]]
    """
    from stsbench.statistics.correlations import average_ranks

    ranks: Floats = average_ranks(vectors) - (vectors.shape[1] + 1) / 2
    return ranks


def _mean(several: "Sequence[Linear]") -> "Linear":
    first, *others = several
    return sum(others, first) / len(several)


def _rows(
    measured: "Mapping[tuple[str, str], Linear]", about: Mapping[str, Any], estimates: "Estimates"
) -> Iterator[dict[str, Any]]:
    for (measure, group), estimate in measured.items():
        count = about["pairs"] if measure in {SPEARMAN, DIFFERENCE} else about["sentences"]
        is_one = measure == SPEARMAN and about["task"] != AVERAGE
        limits = estimates.limits(estimate, count, correlation=is_one)
        yield {**about, "measure": measure, "group": group, **limits}


@dataclass(frozen=True)
class DimensionsCommand(CommandWithIntervals):
    """Measure how much of the cosine comes from a few dimensions, and the scores without them.

    Scores without the largest dimensions, standardised, with ranks and with Manhattan distance (Timkey and van
    Schijndel, 2021).

    Examples:
    * `stsbench dimensions runs/a runs/b --figure dimensions.svg`
    * `stsbench dimensions --model minilm --tasks sample --top 1,5 --json`
    """

    verb = staticmethod(dimensions)
    result = Dimensions
    of_pairs = True

    tasks: Tasks = None
    top: Annotated[
        str | None, typer.Option(help="The numbers of largest dimensions, with commas; by default `1,3,10`.")
    ] = None
    data: OwnTexts = None
    data_dirs: DataDirs = None

    def keywords(self) -> dict[str, Any]:
        """Return the options as `dimensions` takes them."""
        return super().keywords() | {"top": numbers(self.top, "--top", "1,3,10")}
