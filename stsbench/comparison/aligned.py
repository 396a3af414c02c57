"""Any number of models on the same pairs and items: their scores, and what each pair contributes to each of them.

What is said of several models at once (a ranking, a plan, a gate, a method over seeds) is computed from these: the
scores, their covariance, and the variance of any sum of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.base.words import listed
from stsbench.comparison.paired import (
    ONE_PROTOCOL,
    in_order_of,
    left_out,
    part_key,
    require_pairs,
    rows_by_task,
    tested_items,
)
from stsbench.comparison.result import AVERAGES, Kind
from stsbench.records.labels import distinct_labels, labels
from stsbench.records.parts import TaskPart, TransferPart
from stsbench.records.record import RunRecord
from stsbench.records.signature import Signature, require_same_protocol
from stsbench.records.store import load_run
from stsbench.scoring.intervals import sharing_of
from stsbench.scoring.recompute import EXACT
from stsbench.statistics.aggregation import correlate_task
from stsbench.statistics.dependence import Dependence, Sharing, Variance, covariance, variance
from stsbench.statistics.influence import mean_terms, task_terms
from stsbench.statistics.intervals import (
    Limits,
    correlation_interval,
    plain_interval,
    share_interval,
    two_sided_p,
)

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Part = TaskPart | TransferPart
Key = tuple[str, str, str]

ACCURACY = "accuracy"


@dataclass(frozen=True, eq=False)
class AlignedScores:
    """One task, or the average over some, as m models were scored on the same n pairs or items.

    Attributes:
        kind: `sts` (scores are correlations) or `transfer` (accuracies).
        task: the task's label, or what the average is called.
        metric: a correlation's name, or `accuracy`.
        scores: (m,) from -1 or 0 to 1.
        terms: (m, n) what each pair contributes to each score (see `statistics.influence`).
        sharing: which pairs share a sentence: of one task as released, of an average by letters and digits.
        folded: which do by letters and digits.
    """

    kind: Kind
    task: str
    metric: str
    scores: Floats
    terms: Floats
    sharing: Sharing
    folded: Sharing

    @property
    def size(self) -> int:
        """The number of pairs or items."""
        return self.sharing.pairs

    @property
    def is_average(self) -> bool:
        """Whether this is the average over tasks."""
        return self.task in AVERAGES.values()

    def covariance(self, method: Dependence) -> Floats:
        """Return the (m, m) covariance of the scores."""
        return covariance(self.terms, self.sharing, method)

    def variance_of(self, weights: ArrayLike, method: Dependence) -> Variance:
        """Return the variance of a weighted sum of the scores.

        Args:
            weights: (m,) -1 for A and 1 for B, say.
            method: which pairs depend on each other.
        """
        return variance(np.asarray(weights, dtype=np.float64) @ self.terms, self.sharing, method)


def aligned_scores(
    runs: Mapping[str, RunRecord], *, stage: str = "pairs", progress: Progress = silent
) -> tuple[tuple[AlignedScores, ...], tuple[str, ...]]:
    """Return the tasks that all records hold, an average after the tasks of each kind, and what to know.

    Args:
        runs: the records, by what to call each.
        stage: what `progress` is told.
        progress: told how far it is.

    Raises:
        UserError: if the records hold no task in common, their protocols differ on one, they were scored on other
            pairs, a score is undefined, or a table is missing.
    """
    require_pairs(runs)
    found: list[AlignedScores] = []
    alone: list[str] = []
    for kind in AVERAGES:
        shared, rest = common_parts({name: parts_of(record, kind) for name, record in runs.items()})
        alone += rest
        held = {name: rows_by_task(record, kind) for name, record in runs.items()} if shared else {}
        tasks = []
        for number, (label, parts) in enumerate(shared.items()):
            progress(stage, number, len(shared))
            rows = {name: held[name][part_key(part)] for name, part in parts.items()}
            is_sts = kind == "sts"
            tasks.append(_aligned_pairs(label, runs, parts, rows) if is_sts else _aligned_items(label, rows))
        found += with_average(tasks)
    if not found:
        raise UserError(
            f"there is no task that {listed(list(runs))} were all measured on: measure the same tasks."
        )
    return tuple(found), left_out(alone)


def with_average(tasks: Sequence[AlignedScores]) -> list[AlignedScores]:
    """Return tasks of one kind, with their average after them if there are several."""
    if len(tasks) < 2:
        return list(tasks)
    joined = Sharing.join([task.folded for task in tasks])
    average = replace(
        tasks[0],
        task=AVERAGES[tasks[0].kind],
        scores=np.mean([task.scores for task in tasks], axis=0),
        terms=np.concatenate([task.terms for task in tasks], axis=1) / len(tasks),
        sharing=joined,
        folded=joined,
    )
    return [*tasks, average]


def common_parts(runs: Mapping[str, Sequence[Part]]) -> tuple[dict[str, dict[str, Part]], list[str]]:
    """Return the tasks that all runs hold by one protocol, by label and run, and the names of the others.

    A task that some measured on other splits or texts is common, too: the one to be refused.

    Raises:
        UserError: if protocols differ on a task, naming the field.
    """
    held = {name: {part_key(part): part for part in parts} for name, parts in runs.items()}
    (first_name, first), *others = held.items()
    keys = [key for key in first if all(_named(parts, key[0]) for _, parts in others)]
    names = dict(zip(keys, distinct_labels(keys), strict=True))
    common: dict[str, dict[str, Part]] = {}
    for key in keys:
        by_run = {first_name: first[key]}
        for name, parts in others:
            part = parts.get(key) or _named(parts, key[0])[0]
            if key not in parts and all(part_key(twin) in first for twin in _named(parts, key[0])):
                # It holds another split of the task, which is compared with its own.
                break
            signatures = Signature.parse(first[key].signature), Signature.parse(part.signature)
            require_same_protocol(*signatures, names=(first_name, name), task=names[key], remedy=ONE_PROTOCOL)
            by_run[name] = part
        else:
            common[names[key]] = by_run
    kept = {part.task for by_run in common.values() for part in by_run.values()}
    every = dict.fromkeys(part.task for parts in runs.values() for part in parts)
    return common, [task for task in every if task not in kept]


def demand_distinct_models(runs: Mapping[str, RunRecord]) -> None:
    """Refuse one run named twice, and two runs of the same weights, used alike.

    Raises:
        UserError: naming them.
    """
    first_of: dict[Any, str] = {}
    for name, record in runs.items():
        if record.folder is not None and (other := first_of.setdefault(record.folder.resolve(), name)) != name:
            raise UserError(f"{record.folder} is named twice: give each run once.")
        model = model_of(record)
        if model is not None and (other := first_of.setdefault(model, name)) != name:
            raise UserError(
                f"{other} and {name} are runs of the same weights, used alike, which is one model: name it once."
            )


def model_of(record: RunRecord) -> tuple[str, ...] | None:
    """Return what tells a record's model from others, weights and use; None where no weights are known."""
    if record.model.weights_sha256 is None:
        return None
    use = record.model.model_dump(exclude={"name", "kind", "revision", "device"})
    return tuple(sorted(map(repr, use.items())))


def _named(parts: Mapping[Key, Part], task: str) -> list[Part]:
    return [part for key, part in parts.items() if key[0] == task]


def parts_of(record: RunRecord, kind: Kind) -> Sequence[Part]:
    """Return what a record holds of one kind of task."""
    return record.tasks if kind == "sts" else record.transfer


def _aligned_pairs(
    label: str, runs: Mapping[str, RunRecord], parts: Mapping[str, Part], rows: "Mapping[str, pd.DataFrame]"
) -> AlignedScores:
    protocol = next(iter(runs.values())).protocol
    metric: Any = protocol.metric
    aggregation: Any = protocol.aggregation
    scores = []
    for name, part in parts.items():
        if not isinstance(part, TaskPart) or part.score is None:
            raise UserError(f"{name} has no score on {label} (its similarities are constant): leave it out.")
        scores.append(part.score)
    tables = _in_one_order(label, rows, ["subset", "pair_id"], "gold")
    gold, codes = tables[0]["gold"].to_numpy(), tables[0]["subset"].factorize()[0]
    similarities = [
        table[record.protocol.similarity].to_numpy() for table, record in zip(tables, runs.values(), strict=True)
    ]
    for (name, record), score, similarity in zip(runs.items(), scores, similarities, strict=True):
        given = correlate_task(gold, similarity, codes, metric).aggregates[aggregation]
        # One in memory alone was measured by this very process.
        if record.folder is not None and not abs(given - score) <= EXACT:
            raise UserError(
                f"the score of {name} on {label} is {100 * score:.4f} in its record, and its pair table gives "
                f"{100 * given:.4f}: measure again."
            )
    terms = [task_terms(gold, similarity, codes, metric, aggregation) for similarity in similarities]
    return _aligned(("sts", label, metric), scores, terms, tables)


def _aligned_items(label: str, rows: "Mapping[str, pd.DataFrame]") -> AlignedScores:
    tested = {name: tested_items(table) for name, table in rows.items()}
    tables = _in_one_order(label, tested, ["split", "item_id"], "label")
    correct = [table["correct"].to_numpy(dtype=np.float64) for table in tables]
    scores = [side.mean() for side in correct]
    return _aligned(("transfer", label, ACCURACY), scores, map(mean_terms, correct), tables)


def _aligned(
    named: tuple[Kind, str, str],
    scores: Iterable[float],
    terms: Iterable[Floats],
    tables: "Sequence[pd.DataFrame]",
) -> AlignedScores:
    return AlignedScores(
        *named,
        scores=np.array(list(scores), dtype=np.float64),
        terms=np.array(list(terms)),
        sharing=sharing_of(tables[0]),
        folded=sharing_of(tables[0], folded=True),
    )


def _in_one_order(
    label: str, tables: "Mapping[str, pd.DataFrame]", key: list[str], truth: str
) -> "list[pd.DataFrame]":
    """Return the tables with their rows in the order of the first.

    Raises:
        UserError: if they do not hold the same keys with the same truth, naming the two.
    """
    (first_name, first), *others = tables.items()
    ordered = [first]
    columns = [first[column].to_numpy() for column in (*key, truth)]
    for name, table in others:
        if all(
            np.array_equal(mine, table[column].to_numpy())
            for mine, column in zip(columns, (*key, truth), strict=True)
        ):
            ordered.append(table)
            continue
        try:
            ordered.append(in_order_of(first, table, key, truth, label))
        except UserError as error:
            raise UserError(f"{first_name} and {name}: {error}") from error
    return ordered


def named_runs(runs: Sequence[RunRecord | str | Path]) -> dict[str, RunRecord]:
    """Return records by what their models are called, read where they are folders.

    Raises:
        UserError: if one cannot be read.
    """
    records = [run if isinstance(run, RunRecord) else load_run(run) for run in runs]
    return dict(zip(labels(records), records, strict=True))


def score_limits(task: AlignedScores, place: int, method: Dependence, level: float) -> Limits:
    """Return the interval of one model's score, the one that its record and every analysis shows."""
    value = float(task.scores[place])
    found = variance(task.terms[place], task.sharing, method)
    if task.is_average:
        return plain_interval(value, found, level)
    if task.metric == ACCURACY:
        return share_interval(value, found, task.size, level)
    metric: Any = task.metric
    return correlation_interval(value, found, task.size, level, metric)


def shown_interval(
    value: float, squared_error: float, df: float, level: float
) -> tuple[tuple[float, float], float]:
    """Return the interval of a mean or a difference and its two-sided p-value, by Student's t.

    Args:
        value: the mean or the difference.
        squared_error: its variance.
        df: degrees of freedom.
        level: of the interval.
    """
    found = Variance(squared_error, squared_error, df)
    limits = plain_interval(value, found, level)
    return (limits.low, limits.high), two_sided_p(value, found)
