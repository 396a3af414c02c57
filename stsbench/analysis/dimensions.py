"""Dimensions: how much of the cosine comes from a few dimensions? (Timkey and van Schijndel 2021)"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from stsbench.analysis.base import OfVectors, Row, by_task
from stsbench.analysis.inputs import Answer, Estimates, ScoredVectors, averaged, spearman_of_task, with_overall
from stsbench.records.kinds import AVERAGE
from stsbench.render.table import Table, Tables, intervals_of, note_of, scaled, with_intervals
from stsbench.statistics.correlations import average_ranks
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.geometry import mean_cosine_by_dimension
from stsbench.statistics.influence import Floats, Linear
from stsbench.statistics.neighbours import directions, pair_similarities

TOP = (1, 3, 10)
MEAN, SHARE, SPEARMAN, DIFFERENCE = "mean cosine", "share", "spearman", "difference"
COSINE, STANDARDISED, RANKS, MANHATTAN = "cosine", "standardised", "ranks", "manhattan"


class Dimensions(OfVectors):
    """Measure how much of the cosine comes from a few dimensions, and the scores without them.

    Scores without the largest dimensions, standardised, with ranks and with Manhattan distance.

    Returns:
        One row per model, task, measure and group, with `value`, `low` and `high`: `mean cosine` of all pairs of
        distinct sentences; the `share` of it from the `group` largest dimensions (`which`, from 0; NaN unless the
        mean cosine is positive); `spearman` x 100 for each way to compare vectors; its `difference` to the cosine.
        `Avg.` is the mean over tasks. Also `sentences`, `pairs` and `dimensions`.

    >>> from stsbench import dimensions
    >>> shares = dimensions(lambda texts: [[len(s), s.count("e"), 9.0] for s in texts], tasks=["sample"])
    >>> shares.frame.loc[shares.frame["measure"] == "share", "which"].tolist()
    ['0']
    """

    answer = Answer("How much is due to one dimension?", ".1%", rows={"measure": SHARE, "group": "1"})

    def measure(self, model: str, given: Sequence[ScoredVectors]) -> Iterator[Row]:
        size = given[0].vectors.shape[1]
        counts = [count for count in TOP if count < size]
        tasks = {}
        for task in given:
            units = directions(task.vectors[task.usable]).units
            order = np.argsort(-mean_cosine_by_dimension(units), kind="stable").tolist()
            of_task = _shares(task, units, order, counts, self.estimates)
            of_task |= _scores(task, order, counts, self.estimates)
            tasks[task.task] = {"sentences": len(units), "pairs": len(task.pairs)}, order, of_task
        for name, (sizes, order, estimates) in with_overall(tasks, _average).items():
            about = {"task": name} | sizes | {"dimensions": size}
            for (measure, group), estimate in estimates.items():
                limits = self.estimates.limits(estimate, correlation=measure == SPEARMAN)
                which = ",".join(map(str, order[: int(group)])) if measure == SHARE else ""
                yield about | {"measure": measure, "group": group, "which": which} | limits

    def table(self) -> Tables:
        rows = scaled(self.frame[self.frame["measure"].isin([MEAN, SHARE])])
        shares = rows.assign(measure=rows["measure"].where(rows["measure"] == MEAN, "top " + rows["group"]))
        scores = by_task(self.frame[self.frame["measure"] == SPEARMAN], ["model", "group"])
        rows = self.headline[self.headline["measure"] == DIFFERENCE]
        differences = rows[["model", "group"]].assign(difference=rows["value"], interval=intervals_of(rows))
        scores = scores.merge(differences, how="left", on=["model", "group"]).fillna({"interval": ""})
        caption = "Mean cosine of two random sentences x 100; the percentage of it from the largest dimensions"
        compared = "Spearman x 100 for each way to compare vectors, and the difference to the cosine"
        shares = with_intervals(shares, ["model", "task", "dimensions"])
        scores = scores.rename(columns={"group": "compared by"})
        return Tables([Table(shares, caption, notes=self.notes), Table(scores, compared)])

    @property
    def notes(self) -> tuple[str, ...]:
        shares = self.frame[self.frame["measure"] == SHARE]
        undefined = shares[shares["value"].isna() & (shares["task"] != AVERAGE)].drop_duplicates(["model", "task"])
        tasks = undefined.groupby("model", sort=False)["task"].agg(", ".join)
        return note_of("No shares, as the mean cosine is not above 0", tasks)

    def panels(self) -> Mapping[str, pd.DataFrame]:
        rows = self.headline
        shares, differences = scaled(rows[rows["measure"] == SHARE]), rows[rows["measure"] == DIFFERENCE]
        return {
            "share of mean cosine, %": shares.assign(place="top " + shares["group"]),
            "points less the cosine's": differences.assign(place=differences["group"]),
        }


def _average(tasks: Sequence[Any]) -> Any:
    sizes, _, estimates = zip(*tasks, strict=True)
    return averaged(sizes), [], averaged(estimates)


def _shares(
    task: ScoredVectors, units: Floats, order: list[int], counts: Sequence[int], estimates: Estimates
) -> dict[tuple[str, str], Linear]:
    """Returns the mean cosine, and the shares of it that come from the largest dimensions."""
    block, n = f"sentences\n{task.task}", len(units)
    estimates.block(block, Sharing.of(task.chains[task.usable]))

    def mean_cosine(part: Floats) -> Linear:
        products = (part @ part.sum(axis=0) - np.einsum("ij,ij->i", part, part)) / (n - 1)
        value = float(products.mean())
        return Linear(value, {block: 2 * (products - value) / n})

    whole = mean_cosine(units)
    # The share of a total that may be 0 is undefined.
    is_positive = whole.value > 0 and not estimates.limits(whole)["low"] <= 0
    return {(MEAN, ""): whole} | {
        (SHARE, str(count)): mean_cosine(units[:, order[:count]]) / whole if is_positive else Linear.undefined()
        for count in counts
    }


def _scores(
    task: ScoredVectors, order: list[int], counts: Sequence[int], estimates: Estimates
) -> dict[tuple[str, str], Linear]:
    """Returns Spearman's correlation for each way to compare vectors, and the differences to the cosine."""
    block = f"pairs\n{task.task}"
    estimates.block(block, task.pairs)
    vectors = task.vectors.astype("float64")
    plain = pair_similarities(vectors, task.left, task.right, ("cosine", "manhattan"))

    def cosine(changed: Floats) -> Floats:
        return pair_similarities(changed, task.left, task.right)["cosine"]

    similarities = {COSINE: plain["cosine"]}
    similarities |= {f"without top {count}": cosine(vectors[:, order[count:]]) for count in counts}
    # The cosine of centred ranks is Spearman's correlation.
    ranks = average_ranks(task.vectors) - (vectors.shape[1] + 1) / 2
    similarities |= {STANDARDISED: cosine(standardised(vectors)), RANKS: cosine(ranks)}
    similarities[MANHATTAN] = plain["manhattan"]
    scores = {name: spearman_of_task(block, task.pairs, values) for name, values in similarities.items()}
    return {(SPEARMAN, name): score for name, score in scores.items()} | {
        (DIFFERENCE, name): score - scores[COSINE] for name, score in scores.items() if name != COSINE
    }


def standardised(vectors: Floats) -> Floats:
    """Standardises each dimension of (n, d) vectors; constant ones become 0; zero vectors do not count.

    >>> standardised(np.array([[1.0, 5.0], [3.0, 5.0], [0.0, 0.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
    """
    used = np.asarray(vectors.any(axis=1))
    deviations = vectors - vectors[used].mean(axis=0)
    spread = vectors[used].std(axis=0)
    # The rounded mean of equal numbers can differ from them.
    varies = vectors[used].min(axis=0) < vectors[used].max(axis=0)
    return np.where(used[:, np.newaxis] & varies, deviations / np.where(varies, spread, 1.0), 0.0)
