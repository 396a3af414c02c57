"""Aligns any number of models on the same items: their scores, and what each item contributes to each score.

Comparisons, rankings, plans, gates and methods over seeds are computed from these: the scores, their covariance,
and the variance of any weighted sum of them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.judging.runs import common_scores
from stsbench.records.kinds import AVERAGES, KINDS
from stsbench.records.parts import Score
from stsbench.records.record import RunRecord
from stsbench.scoring.kinds import statistic_of
from stsbench.scoring.recompute import EXACT
from stsbench.scoring.statistic import Statistic, sharing_of
from stsbench.statistics import Dependence
from stsbench.statistics.correlations import members_of
from stsbench.statistics.dependence import Sharing, covariance, difference_variances
from stsbench.statistics.estimate import Estimate
from stsbench.statistics.intervals import Limits

Floats = NDArray[np.float64]

FEWEST = 4
"""The least number of items for an interval of a difference."""

MANY = 1e6
"""Above this many pairs, no realistic number is enough."""

_ITEM = ("subset", "item_id")
"""The columns that identify an item of a task."""

_TRUTHS = ("gold", "label")
"""The columns that must agree between models."""


@dataclass(frozen=True, eq=False)
class AlignedScores:
    """The scores of m models on the same n items of one task, one of its subsets, or an average over tasks.

    Attributes:
        kind: kind of the task or tasks (see `stsbench.records.kinds`).
        task: label of the task, or name of the average.
        statistic: the statistic of the scores, or of those that an average is the mean of.
        scores: (m,) values of the statistic, such as correlations from -1 to 1.
        terms: (m, n) influence terms of each item (see `statistics.influence`).
        sharing: which items share a sentence; sentences of an average are compared by letters and digits.
        folded: which items share a sentence by letters and digits.
        items: a table of subset, truth and prediction for each model; empty for an average.
    """

    kind: str
    task: str
    statistic: Statistic
    scores: Floats
    terms: Floats
    sharing: Sharing
    folded: Sharing
    items: tuple[pd.DataFrame, ...] = ()

    @property
    def is_average(self) -> bool:
        """Whether this is the average over tasks."""
        return self.task in AVERAGES

    @property
    def size(self) -> int:
        """The number of items."""
        return self.sharing.pairs

    def covariance(self, method: Dependence) -> Floats:
        """Returns the (m, m) covariance of the scores."""
        return covariance(self.terms, self.sharing, method)

    def estimate(self, weights: ArrayLike, method: Dependence) -> Estimate:
        """Returns a weighted sum of the scores with its variance, with (m,) weights such as (-1, 1)."""
        of = np.asarray(weights, dtype=np.float64)
        return Estimate.of(float(of @ self.scores), of @ self.terms, self.sharing, method)

    def differences(self, method: Dependence) -> dict[tuple[int, int], Estimate]:
        """Returns the differences of every two scores, the second minus the first, by their positions.

        Their variances are computed together, so that a hundred models take seconds.
        """
        variances = difference_variances(self.terms, self.sharing, method)
        return {
            (one, other): Estimate(float(self.scores[other] - self.scores[one]), variance)
            for one, of_one in enumerate(variances)
            for other, variance in enumerate(of_one, one + 1)
        }

    def limits(self, place: int, method: Dependence, level: float) -> Limits:
        """Returns the interval of one model's score, equal to that in its record."""
        estimate = Estimate.of(float(self.scores[place]), self.terms[place], self.sharing, method)
        if self.is_average:
            return estimate.interval(level)
        return self.statistic.limits(estimate.value, estimate.variance, self.size, level)

    def subsets(self) -> "Iterator[tuple[str, AlignedScores]]":
        """Yields each subset and its name in the order of the data; nothing for a single subset."""
        if not self.items:
            return
        codes, names = pd.factorize(self.items[0]["subset"])
        if len(names) == 1:
            return
        statistic = self.statistic.of_subset
        for name, members in zip(names, members_of(codes, self.size), strict=True):
            items = tuple(table.iloc[members] for table in self.items)
            part = replace(
                self,
                statistic=statistic,
                scores=np.array([statistic.value(table) for table in items]),
                terms=np.array([statistic.terms(table) for table in items]),
                sharing=self.sharing.take(members),
                folded=self.folded.take(members),
                items=items,
            )
            yield name, part


def aligned_scores(
    runs: Mapping[str, RunRecord],
    *,
    may_be_undefined: bool = False,
    whole: bool = False,
    progress: Progress = silent,
) -> tuple[tuple[AlignedScores, ...], tuple[str, ...]]:
    """Returns the tasks that all records have, an average after the tasks of each kind, and notes.

    Args:
        runs: records by name.
        may_be_undefined: accepts undefined scores instead of raising a UserError.
        whole: keeps all columns of the items, which takes memory with many records.
        progress: called with the number of records read.
    """
    common, notes = common_scores(runs)
    first_name = next(iter(runs))
    first: dict[str, pd.DataFrame] = {}
    statistics = {label: statistic_of(by_run[first_name]) for label, by_run in common.items()}
    sides: dict[str, list[tuple[float, Floats, pd.DataFrame]]] = {label: [] for label in common}
    # The tables of a hundred records do not fit into memory together.
    for number, (name, record) in enumerate(runs.items()):
        progress("pairs", number, len(runs))
        rows = record.rows_by_score()
        for label, by_run in common.items():
            table, statistic = rows[by_run[name].key], statistics[label]
            of_first = first.setdefault(label, table)
            truths = [truth for truth in _TRUTHS if truth in by_run[name].about.columns]
            if table is not of_first:
                what = f"{first_name} and {name} are not comparable on {label}"
                table = _in_order_of(of_first, table, truths, what)
            own = {column: table[column] for column in statistic.columns}
            items = table if whole else of_first[["subset", *truths]].assign(**own)
            value = statistic.value(items)
            if math.isnan(value) and not may_be_undefined:
                raise UserError(f"{name} has no score on {label} (its similarities are constant): leave it out.")
            # A record without a folder was measured by this process.
            if record.folder is not None:
                _require_stated(by_run[name], value, f"{name} on {label}")
            sides[label].append((value, statistic.terms(items), items))
    progress("pairs", len(runs), len(runs))
    tasks: dict[str, list[AlignedScores]] = {kind: [] for kind in KINDS}
    for label, of_models in sides.items():
        values, terms, tables = zip(*of_models, strict=True)
        task = AlignedScores(
            common[label][first_name].kind,
            label,
            statistics[label],
            np.array(values),
            np.array(terms),
            sharing_of(first[label]),
            sharing_of(first[label], folded=True),
            tables,
        )
        tasks[task.kind].append(task)
    return tuple(task for of_kind in tasks.values() for task in with_average(of_kind)), notes


def _require_stated(score: Score, given: float, what: str) -> None:
    """Raises a UserError if a record contradicts its items, unless its protocol rounds scores."""
    if score.about.rounded or math.isnan(given):
        return
    if score.value is None or not abs(given - score.value) <= EXACT:
        stated = "undefined" if score.value is None else f"{100 * score.value:.4f}"
        raise UserError(
            f"the record has the score {stated} of {what}, but its items give {100 * given:.4f}: measure again."
        )


def with_average(tasks: Sequence[AlignedScores]) -> list[AlignedScores]:
    """Appends the average to the tasks of one kind, if there are several and the kind has one."""
    if len(tasks) < 2 or not KINDS[tasks[0].kind].average:
        return list(tasks)
    joined = Sharing.join([task.folded for task in tasks])
    average = replace(
        tasks[0],
        task=KINDS[tasks[0].kind].average,
        scores=np.mean(np.stack([task.scores for task in tasks], axis=1), axis=1),
        terms=np.concatenate([task.terms for task in tasks], axis=1) / len(tasks),
        sharing=joined,
        folded=joined,
        items=(),
    )
    return [*tasks, average]


def common_values(runs: Mapping[str, RunRecord]) -> tuple[dict[tuple[str, str], Floats], tuple[str, ...]]:
    """Returns the (m,) scores x 100 of the tasks that all runs have, by kind and label, and notes.

    Undefined scores are NaN. An average comes after the tasks of its kind.
    """
    common, notes = common_scores(runs)
    values: dict[tuple[str, str], Floats] = {}
    for kind in KINDS.values():
        of_kind = {
            label: np.array([math.nan if score.value is None else 100 * score.value for score in by_run.values()])
            for label, by_run in common.items()
            if next(iter(by_run.values())).kind == kind.name
        }
        if kind.average and len(of_kind) > 1:
            of_kind[kind.average] = np.mean(list(of_kind.values()), axis=0)
        values |= {(kind.name, label): scores for label, scores in of_kind.items()}
    return values, notes


def _in_order_of(first: pd.DataFrame, table: pd.DataFrame, truths: Sequence[str], what: str) -> pd.DataFrame:
    """Returns a table in the order of the first; raises a UserError for other items or another truth."""
    if not all(np.array_equal(first[column], table[column]) for column in _ITEM):
        expected, keys = (pd.MultiIndex.from_frame(side[list(_ITEM)]) for side in (first, table))
        missing = int((~expected.isin(keys)).sum())
        if missing or not len(expected) == len(keys) == len(keys.unique()):
            raise UserError(
                f"{what}: item_id differs ({missing or abs(len(keys) - len(expected))} of one are not in the "
                "other): measure both on the same data."
            )
        table = table.iloc[keys.get_indexer(expected)].reset_index(drop=True)
    for truth in truths:
        if not np.array_equal(first[truth], table[truth]):
            raise UserError(f"{what}: {truth} differs for the same item_id: measure both on the same data.")
    return table
