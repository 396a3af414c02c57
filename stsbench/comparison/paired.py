"""Two models on the same pairs and items: their scores with paired replicates, and the rows that these make."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.comparison.result import AVERAGES, Difference, Kind, corrected
from stsbench.records.labels import task_labels
from stsbench.records.parts import TaskPart, TransferPart
from stsbench.records.record import RunRecord
from stsbench.records.signature import Signature, require_same_protocol
from stsbench.scoring.settings import Bootstrap
from stsbench.statistics.aggregation import Aggregation, correlate_task
from stsbench.statistics.bootstrap import (
    bootstrap_ratio,
    bootstrap_task,
    generator,
    percentile_interval,
    percentile_p_value,
)
from stsbench.statistics.correlations import CORRELATIONS, Metric
from stsbench.statistics.significance import mcnemar, steiger, williams

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

_Part = TypeVar("_Part", TaskPart, TransferPart)

ONE_PROTOCOL = "measure both by one protocol"
"""What to do about scores that do not compare."""


@dataclass(frozen=True)
class PairedScores:
    """A score of A and of B: on a task, a subset, or on average.

    Attributes:
        values: (2,) the scores, A first, from 0 or -1 to 1.
        replicates: (2, resamples) of the bootstrap; each column is of one resample.
    """

    values: Floats
    replicates: Floats

    @classmethod
    def mean(cls, scores: "Sequence[PairedScores]") -> "PairedScores":
        """Return the mean over tasks. They are resampled independently: k-th replicates average to one."""
        return cls(
            np.mean([task.values for task in scores], axis=0),
            np.mean([task.replicates for task in scores], axis=0),
        )


class _Test(NamedTuple):
    """The fields of `Difference` that are of a test beside the bootstrap."""

    name: str = ""
    p: float = float("nan")
    details: Mapping[str, float] = {}


_NO_TEST = _Test()


def compare_pairs(
    a: RunRecord,
    b: RunRecord,
    names: tuple[str, str],
    *,
    bootstrap: Bootstrap,
    progress: Progress = silent,
) -> tuple[tuple[Difference, ...], tuple[str, ...]]:
    """Return how two records differ on the STS tasks that both hold, and what a reader should know.

    Args:
        a: the one, often the baseline.
        b: the other.
        names: what to call them.
        bootstrap: resamples (at least one), level and seed.
        progress: told how far it is.

    Raises:
        UserError: if protocols differ on a task (naming the field), or the two scored other pairs; or a pair table
            is missing.
    """
    shared, notes = _shared_tasks(a.tasks, b.tasks, names)
    tasks = [_aligned_pairs(label, (a, one), (b, other)) for label, one, other in shared]
    aggregation: Aggregation = a.protocol.aggregation  # type: ignore[assignment]
    metric: Metric = a.protocol.metric  # type: ignore[assignment]
    rows: list[Difference] = []
    wholes: list[PairedScores] = []
    for number, task in enumerate(tasks):
        progress("bootstrap", number, len(tasks))
        whole, subsets = _pair_scores(task, metric, aggregation, bootstrap)
        wholes.append(whole)
        everywhere = np.ones(len(task.gold), dtype=bool)
        # A mean over subsets is no correlation, and the tests are of correlations.
        is_one = len(subsets) == 1 or aggregation == "all"
        test = _dependent_tests(task, everywhere, whole, metric) if is_one else _NO_TEST
        rows.append(_difference(whole, "sts", task.label, len(task.gold), bootstrap.level, test=test))
        for code, subset in enumerate(task.subsets if len(subsets) > 1 else ()):
            members = task.codes == code
            test = _dependent_tests(task, members, subsets[code], metric)
            size = int(members.sum())
            rows.append(
                _difference(subsets[code], "sts", task.label, size, bootstrap.level, subset=subset, test=test)
            )
    progress("bootstrap", len(tasks), len(tasks))
    return _with_average(rows, wholes, "sts", bootstrap.level), notes


def compare_transfer(
    a: RunRecord, b: RunRecord, names: tuple[str, str], *, bootstrap: Bootstrap
) -> tuple[tuple[Difference, ...], tuple[str, ...]]:
    """Return how two records differ on the transfer tasks that both hold, and what a reader should know.

    Args:
        a: the one, often the baseline.
        b: the other.
        names: what to call them.
        bootstrap: resamples (at least one), level and seed.

    Raises:
        UserError: if protocols differ on a task (naming the field), or the two were scored on other items; or an
            item table is missing.
    """
    shared, notes = _shared_tasks(a.transfer, b.transfer, names)
    items = {label: (_rows_of(a.items, one), _rows_of(b.items, other)) for label, one, other in shared}
    return compare_items(items, bootstrap=bootstrap), notes


def compare_items(
    items: "Mapping[str, tuple[pd.DataFrame, pd.DataFrame]]", *, bootstrap: Bootstrap
) -> tuple[Difference, ...]:
    """Return how the predictions of two models differ on transfer tasks.

    An accuracy is the share of test items that are right; for tasks without a test set of all items, each
    predicted by the fold that held it out. The mean over folds, which papers print, differs from it a
    little.

    Args:
        items: by task those of A and those of B: columns split, item_id, label, correct.
        bootstrap: resamples (at least one), level and seed.

    Raises:
        UserError: if the two were scored on other items or labels.
    """
    rows: list[Difference] = []
    wholes: list[PairedScores] = []
    for task, sides in items.items():
        one, other = map(_tested, sides)
        other = _in_order_of(one, other, ["split", "item_id"], "label", task)
        correct = np.array([side["correct"].to_numpy() for side in (one, other)], dtype=bool)
        # The same draws for both, named as the records name theirs.
        replicates = [
            bootstrap_ratio(side, rng=generator(bootstrap.seed, task, "acc"), resamples=bootstrap.resamples)
            for side in correct
        ]
        wholes.append(PairedScores(correct.mean(axis=1), np.array(replicates)))
        result = mcnemar(*correct)
        counts = {"only_a": float(result.only_first), "only_b": float(result.only_second)}
        test = _Test("mcnemar", result.p_value, counts)
        rows.append(_difference(wholes[-1], "transfer", task, len(one), bootstrap.level, test=test))
    return _with_average(rows, wholes, "transfer", bootstrap.level)


def left_out(tasks: Sequence[str]) -> tuple[str, ...]:
    """Return the note on tasks that not all records hold."""
    return (f"not all records hold {', '.join(tasks)}: left out.",) if tasks else ()


def _shared_tasks(
    a: Sequence[_Part], b: Sequence[_Part], names: tuple[str, str]
) -> tuple[list[tuple[str, _Part, _Part]], tuple[str, ...]]:
    """Return the tasks that both hold, in A's order, each with its label, and the note on the others.

    A task that both measured on other splits or texts is shared, too: the one to be refused.
    """
    left: dict[tuple[str, str, str], _Part] = {_key(part): part for part in b}
    twins = [left.pop(_key(part), None) for part in a]
    couples: list[tuple[_Part, _Part]] = []
    alone: list[str] = []
    for part, twin in zip(a, twins, strict=True):
        other = twin or next((candidate for candidate in left.values() if candidate.task == part.task), None)
        if other is None:
            alone.append(part.task)
            continue
        left.pop(_key(other), None)
        couples.append((part, other))
    labels = task_labels([one for one, _ in couples])
    for label, (one, other) in zip(labels, couples, strict=True):
        signatures = Signature.parse(one.signature), Signature.parse(other.signature)
        require_same_protocol(*signatures, names=names, task=label, remedy=ONE_PROTOCOL)
    shared = [(label, one, other) for label, (one, other) in zip(labels, couples, strict=True)]
    return shared, left_out([*alone, *(part.task for part in left.values())])


def _key(part: TaskPart | TransferPart) -> tuple[str, str, str]:
    return part.task, part.split if isinstance(part, TaskPart) else "", part.text


def _rows_of(table: "pd.DataFrame", part: TaskPart | TransferPart) -> "pd.DataFrame":
    """Return the rows of a pair table or an item table that are of one task."""
    members = (table["task"] == part.task) & (table["text"] == part.text)
    if isinstance(part, TaskPart):
        members &= table["split"] == part.split
    return table[members].reset_index(drop=True)


def _tested(items: "pd.DataFrame") -> "pd.DataFrame":
    """Return the items that a task's accuracy is over: its test set, or all where it has none."""
    is_test = items["split"] == "test"
    return items[is_test] if is_test.any() else items


def _in_order_of(
    one: "pd.DataFrame", other: "pd.DataFrame", key: list[str], truth: str, task: str
) -> "pd.DataFrame":
    """Return the rows of the other in the order of the one.

    Raises:
        UserError: if they do not hold the same keys with the same truth.
    """
    if not one[key].reset_index(drop=True).equals(other[key].reset_index(drop=True)):
        keyed = other.set_index(key)
        wanted = one.set_index(key).index
        if len(one) != len(other) or not wanted.isin(keyed.index).all():
            missing = int((~wanted.isin(keyed.index)).sum()) or len(other) - len(one)
            raise UserError(
                f"the two do not compare on {task}: {key[-1]} differs ({missing} of one are not in the other): "
                "measure both on the same data."
            )
        other = keyed.loc[wanted].reset_index()
    if not np.array_equal(one[truth].to_numpy(), other[truth].to_numpy()):
        raise UserError(
            f"the two do not compare on {task}: {truth} differs for the same {key[-1]}: measure both on the same "
            "data."
        )
    return other


@dataclass(frozen=True)
class _AlignedPairs:
    """One task as both models scored it, pair by pair.

    Attributes:
        label: the task's name, with split and text where the records hold several.
        signature: of A's score; B's has the same protocol.
        subsets: their names, in the order of the data.
        codes: (n,) the subset of each pair, an index into `subsets`.
        gold: (n,) the annotators' scores.
        similarities: (2, n) those by A, then by B.
    """

    label: str
    signature: Signature
    subsets: tuple[str, ...]
    codes: NDArray[np.int64]
    gold: Floats
    similarities: Floats


def _aligned_pairs(label: str, a: tuple[RunRecord, TaskPart], b: tuple[RunRecord, TaskPart]) -> _AlignedPairs:
    one, other = (_rows_of(record.pairs, part) for record, part in (a, b))
    other = _in_order_of(one, other, ["subset", "pair_id"], "gold", label)
    subsets = tuple(dict.fromkeys(one["subset"]))
    record, part = a
    return _AlignedPairs(
        label=label,
        signature=Signature.parse(part.signature),
        subsets=subsets,
        codes=one["subset"].map({name: code for code, name in enumerate(subsets)}).to_numpy(),
        gold=one["gold"].to_numpy(),
        similarities=np.array([side[record.protocol.similarity].to_numpy() for side in (one, other)]),
    )


def _pair_scores(
    task: _AlignedPairs, metric: Metric, aggregation: Aggregation, bootstrap: Bootstrap
) -> tuple[PairedScores, list[PairedScores]]:
    """Return the scores of a task as a whole, and of each subset."""
    scores = [correlate_task(task.gold, side, task.codes, metric) for side in task.similarities]
    drawn = [
        bootstrap_task(
            task.gold,
            side,
            task.codes,
            metric,
            # Named as the records name their draws: the same seed gives the same intervals.
            task=f"{task.signature.task}:{task.signature.split}",
            names=task.subsets,
            resamples=bootstrap.resamples,
            seed=bootstrap.seed,
        )
        for side in task.similarities
    ]
    whole = PairedScores(
        np.array([side.aggregates[aggregation] for side in scores]),
        np.array([side.aggregates[aggregation] for side in drawn]),
    )
    values = np.array([side.subsets for side in scores])
    replicates = np.array([side.subsets for side in drawn])
    return whole, [PairedScores(values[:, code], replicates[:, :, code]) for code in range(len(task.subsets))]


def _dependent_tests(
    task: _AlignedPairs, members: NDArray[np.bool_], scores: PairedScores, metric: Metric
) -> _Test:
    """Return the tests of two dependent correlations; none are known for Kendall's."""
    if metric == "kendall":
        return _NO_TEST
    a, b = scores.values.tolist()
    between, size = CORRELATIONS[metric](*task.similarities[:, members]), int(members.sum())
    by_williams, by_steiger = (
        test(b, a, between, size, ranks=metric == "spearman") for test in (williams, steiger)
    )
    details = {
        "correlation_between": between,
        "williams_t": by_williams.statistic,
        "steiger_z": by_steiger.statistic,
        "steiger_p": by_steiger.p_value,
    }
    return _Test("williams", by_williams.p_value, details)


def _difference(
    scores: PairedScores,
    kind: Kind,
    task: str,
    size: int,
    level: float,
    *,
    subset: str = "",
    test: _Test = _NO_TEST,
) -> Difference:
    """Return the row of a score: difference, interval and p-value of the paired bootstrap, effect size."""
    scale = _fisher if kind == "sts" else _arcsine
    replicates = scores.replicates[1] - scores.replicates[0]
    low, high = percentile_interval(100 * replicates, level)
    # A perfect correlation is infinitely far from the others on Fisher's scale, and undefined from another such.
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = float(np.diff(scale(scores.values))[0])
        effects = np.diff(scale(scores.replicates), axis=0)[0]
        effect_low, effect_high = percentile_interval(effects, level)
    a, b = (100 * scores.values).tolist()
    return Difference(
        kind=kind,
        task=task,
        subset=subset,
        size=size,
        a=a,
        b=b,
        difference=b - a,
        low=low,
        high=high,
        p=percentile_p_value(replicates),
        effect=effect,
        effect_low=effect_low,
        effect_high=effect_high,
        test=test.name,
        test_p=test.p,
        details=test.details,
    )


def _with_average(
    rows: Sequence[Difference], wholes: Sequence[PairedScores], kind: Kind, level: float
) -> tuple[Difference, ...]:
    """Return the rows of one kind of task, corrected, and if there are several tasks that of their average."""
    if len(wholes) < 2:
        return corrected(rows)
    size = sum(row.size for row in rows if row.is_task)
    return corrected([*rows, _difference(PairedScores.mean(wholes), kind, AVERAGES[kind], size, level)])


def _fisher(correlations: Floats) -> Floats:
    """Return Fisher's z of correlations; their difference is Cohen's q (Cohen 1988, chapter 4)."""
    return np.arctanh(correlations)


def _arcsine(shares: Floats) -> Floats:
    """Return twice the arcsine of the roots of shares; their difference is Cohen's h (Cohen 1988, chapter 6)."""
    return 2 * np.arcsin(np.sqrt(shares))
