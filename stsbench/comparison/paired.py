"""Two models on the same pairs and items: their scores, what each pair contributes to them, how they differ."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.comparison.result import AVERAGES, Difference, Kind, corrected
from stsbench.records.intervals import INTERVAL_OF
from stsbench.records.labels import task_labels
from stsbench.records.parts import TaskPart, TransferPart
from stsbench.records.record import RunRecord
from stsbench.records.signature import Signature, require_same_protocol
from stsbench.scoring.intervals import Support, as_variances, mean_support, sharing_of
from stsbench.scoring.settings import Intervals
from stsbench.statistics.aggregation import Aggregation, correlate_task, members_of
from stsbench.statistics.correlations import CORRELATIONS, Metric
from stsbench.statistics.dependence import Sharing, variance
from stsbench.statistics.influence import TERMS, mean_terms, task_terms
from stsbench.statistics.intervals import plain_interval, two_sided_p
from stsbench.statistics.significance import mcnemar, steiger, williams

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

_Part = TypeVar("_Part", TaskPart, TransferPart)

ONE_PROTOCOL = "measure both by one protocol"
"""What to do about scores that do not compare."""

_TEST_NAMES = {"williams": "Williams' test takes", "mcnemar": "McNemar's test takes"}

_APART = 1.2
"""How much larger the standard error by components is, for a reader to be told."""

_FEWEST = 4
"""Pairs or items from which on a difference has an interval."""


@dataclass(frozen=True, eq=False)
class PairedScores:
    """A score of A and of B on the same pairs or items: of a task, a subset, or on average.

    Attributes:
        a: the score of A, from 0 or -1 to 1, and what its interval rests on.
        b: of B, likewise; the rows are those of A.
    """

    a: Support
    b: Support

    @property
    def values(self) -> Floats:
        """(2,) the two scores."""
        return np.array([self.a.value, self.b.value])

    @classmethod
    def mean(cls, scores: "Sequence[PairedScores]") -> "PairedScores":
        """Return the mean over tasks."""
        return cls(mean_support([task.a for task in scores]), mean_support([task.b for task in scores]))


class _Test(NamedTuple):
    """The fields of `Difference` that are of a test of independent pairs."""

    name: str = ""
    p: float = float("nan")
    details: Mapping[str, float] = {}


_NO_TEST = _Test()


def compare_pairs(
    a: RunRecord,
    b: RunRecord,
    names: tuple[str, str],
    *,
    intervals: Intervals,
    progress: Progress = silent,
) -> tuple[tuple[Difference, ...], tuple[str, ...]]:
    """Return how two records differ on the STS tasks that both hold, and what a reader should know.

    Args:
        a: the one, often the baseline.
        b: the other.
        names: what to call them.
        intervals: how intervals are computed.
        progress: told how far it is.

    Raises:
        UserError: if protocols differ on a task (naming the field), or the two scored other pairs; or a pair table
            is missing.
    """
    shared, notes = _shared_tasks(a.tasks, b.tasks, names)
    rows_a, rows_b = (rows_by_task(record, "sts") if shared else {} for record in (a, b))
    tasks = [
        _aligned_pairs(label, rows_a[part_key(one)], rows_b[part_key(other)], one, a.protocol.similarity)
        for label, one, other in shared
    ]
    aggregation: Aggregation = a.protocol.aggregation  # type: ignore[assignment]
    metric: Metric = a.protocol.metric  # type: ignore[assignment]
    rows: list[Difference] = []
    wholes: list[PairedScores] = []
    for number, task in enumerate(tasks):
        progress("pairs", number, len(tasks))
        whole, subsets = _pair_scores(task, metric, aggregation)
        wholes.append(whole)
        everywhere = np.ones(len(task.gold), dtype=bool)
        # A mean over subsets is no correlation, and the tests are of correlations.
        is_one = len(subsets) == 1 or aggregation == "all"
        test = _dependent_tests(task, everywhere, whole, metric) if is_one else _NO_TEST
        rows.append(_difference(whole, "sts", task.label, len(task.gold), intervals, test=test))
        for code, subset in enumerate(task.subsets if len(subsets) > 1 else ()):
            members = task.codes == code
            test = _dependent_tests(task, members, subsets[code], metric)
            size = int(members.sum())
            rows.append(_difference(subsets[code], "sts", task.label, size, intervals, subset=subset, test=test))
    progress("pairs", len(tasks), len(tasks))
    return _with_average(rows, wholes, "sts", intervals), notes


def compare_transfer(
    a: RunRecord, b: RunRecord, names: tuple[str, str], *, intervals: Intervals
) -> tuple[tuple[Difference, ...], tuple[str, ...]]:
    """Return how two records differ on the transfer tasks that both hold, and what a reader should know.

    Args:
        a: the one, often the baseline.
        b: the other.
        names: what to call them.
        intervals: how intervals are computed.

    Raises:
        UserError: if protocols differ on a task (naming the field), or the two were scored on other items; or an
            item table is missing.
    """
    shared, notes = _shared_tasks(a.transfer, b.transfer, names)
    rows_a, rows_b = (rows_by_task(record, "transfer") if shared else {} for record in (a, b))
    items = {label: (rows_a[part_key(one)], rows_b[part_key(other)]) for label, one, other in shared}
    return compare_items(items, intervals=intervals), notes


def compare_items(
    items: "Mapping[str, tuple[pd.DataFrame, pd.DataFrame]]", *, intervals: Intervals
) -> tuple[Difference, ...]:
    """Return how the predictions of two models differ on transfer tasks.

    An accuracy is the share of test items that are right; for tasks without a test set of all items, each
    predicted by the fold that held it out. The mean over folds, which papers print, differs from it a
    little.

    Args:
        items: by task those of A and those of B: columns split, item_id, label, correct.
        intervals: how intervals are computed.

    Raises:
        UserError: if the two were scored on other items or labels.
    """
    rows: list[Difference] = []
    wholes: list[PairedScores] = []
    for task, sides in items.items():
        one, other = map(tested_items, sides)
        other = in_order_of(one, other, ["split", "item_id"], "label", task)
        correct = np.array([side["correct"].to_numpy() for side in (one, other)], dtype=bool)
        sharing, folded = sharing_of(one), sharing_of(one, folded=True)
        supports = (Support(float(side.mean()), mean_terms(side), sharing, folded) for side in correct)
        wholes.append(PairedScores(*supports))
        result = mcnemar(*correct)
        counts = {"only_a": float(result.only_first), "only_b": float(result.only_second)}
        test = _Test("mcnemar", result.p_value, counts)
        rows.append(_difference(wholes[-1], "transfer", task, len(one), intervals, test=test))
    return _with_average(rows, wholes, "transfer", intervals)


def dependence_notes(rows: Sequence[Difference], intervals: Intervals) -> Iterator[str]:
    """Yield what a reader should know of pairs that share sentences: what is assumed, and where it matters.

    Args:
        rows: tasks, subsets and averages.
        intervals: what was asked for.
    """
    if intervals.interval == "independent":
        yield "pairs are taken for independent, although some share sentences (--interval dyadic)"
        return
    yield f"intervals and p are of {INTERVAL_OF}"
    tests = " and ".join(_TEST_NAMES[test] for test in dict.fromkeys(row.test for row in rows if row.test))
    if tests:
        yield f"{tests} pairs or items for independent; intervals and p do not"
    apart = [
        f"{row.task} {row.details['se_dyadic']:.2f} and {row.details['se_components']:.2f}"
        for row in rows
        if not row.subset and row.details.get("se_components", 0.0) > _APART * row.details.get("se_dyadic", 0.0)
    ]
    if apart:
        yield (
            "pairs of one topic may depend on each other without sharing a sentence: standard errors with pairs "
            "that share one, and with chains of such as clusters (--interval components), are apart on "
            f"{'; '.join(apart)}"
        )


def require_pairs(runs: Mapping[str, RunRecord]) -> None:
    """Refuse records of imported scores, which have no pairs to compare.

    Raises:
        UserError: naming the first.
    """
    for name, record in runs.items():
        if record.is_imported:
            raise UserError(
                f"{name} was imported, with scores alone, and pairs are compared: measure it, or hold its scores "
                "against another's with `stsbench check RUN --baseline OTHER`."
            )


def left_out(tasks: Sequence[str]) -> tuple[str, ...]:
    """Return the note on tasks that not all records hold."""
    return (f"not all records hold {', '.join(tasks)}: left out.",) if tasks else ()


def _shared_tasks(
    a: Sequence[_Part], b: Sequence[_Part], names: tuple[str, str]
) -> tuple[list[tuple[str, _Part, _Part]], tuple[str, ...]]:
    """Return the tasks that both hold, in A's order, each with its label, and the note on the others.

    A task that both measured on other splits or texts is shared, too: the one to be refused.
    """
    left: dict[tuple[str, str, str], _Part] = {part_key(part): part for part in b}
    twins = [left.pop(part_key(part), None) for part in a]
    couples: list[tuple[_Part, _Part]] = []
    alone: list[str] = []
    for part, twin in zip(a, twins, strict=True):
        other = twin or next((candidate for candidate in left.values() if candidate.task == part.task), None)
        if other is None:
            alone.append(part.task)
            continue
        left.pop(part_key(other), None)
        couples.append((part, other))
    labels = task_labels([one for one, _ in couples])
    for label, (one, other) in zip(labels, couples, strict=True):
        signatures = Signature.parse(one.signature), Signature.parse(other.signature)
        require_same_protocol(*signatures, names=names, task=label, remedy=ONE_PROTOCOL)
    shared = [(label, one, other) for label, (one, other) in zip(labels, couples, strict=True)]
    return shared, left_out([*alone, *(part.task for part in left.values())])


def part_key(part: TaskPart | TransferPart) -> tuple[str, str, str]:
    """Return what tells a task of a record from its others: task, split and text."""
    return part.task, part.split if isinstance(part, TaskPart) else "", part.text


def rows_by_task(record: RunRecord, kind: Kind) -> "dict[tuple[str, str, str], pd.DataFrame]":
    """Return the rows of each task of a record's pair table or item table, by the keys of parts (`part_key`)."""
    is_sts = kind == "sts"
    table, columns = (record.pairs, ["task", "split", "text"]) if is_sts else (record.items, ["task", "text"])
    rows = {}
    for names, of_task in table.groupby(columns, sort=False, observed=True):
        task, *between, text = map(str, names)
        rows[task, "".join(between), text] = of_task.reset_index(drop=True)
    return rows


def tested_items(items: "pd.DataFrame") -> "pd.DataFrame":
    """Return the items that a task's accuracy is over: its test set, or all where it has none."""
    is_test = items["split"] == "test"
    return items[is_test] if is_test.any() else items


def in_order_of(
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
        sharing: which pairs do, as released; `folded`: by letters and digits.
    """

    label: str
    signature: Signature
    subsets: tuple[str, ...]
    codes: NDArray[np.int64]
    gold: Floats
    similarities: Floats
    sharing: Sharing
    folded: Sharing


def _aligned_pairs(
    label: str, one: "pd.DataFrame", other: "pd.DataFrame", part: TaskPart, similarity: str
) -> _AlignedPairs:
    other = in_order_of(one, other, ["subset", "pair_id"], "gold", label)
    subsets = tuple(dict.fromkeys(one["subset"]))
    return _AlignedPairs(
        label=label,
        signature=Signature.parse(part.signature),
        subsets=subsets,
        codes=one["subset"].map({name: code for code, name in enumerate(subsets)}).to_numpy(),
        gold=one["gold"].to_numpy(),
        similarities=np.array([side[similarity].to_numpy() for side in (one, other)]),
        sharing=sharing_of(one),
        folded=sharing_of(one, folded=True),
    )


def _pair_scores(
    task: _AlignedPairs, metric: Metric, aggregation: Aggregation
) -> tuple[PairedScores, list[PairedScores]]:
    """Return the scores of a task as a whole, and of each subset."""
    sides = [_supports(task, side, metric, aggregation) for side in task.similarities]
    whole, *subsets = (PairedScores(a, b) for a, b in zip(*sides, strict=True))
    return whole, subsets


def _supports(task: _AlignedPairs, similarity: Floats, metric: Metric, aggregation: Aggregation) -> list[Support]:
    """Return what the interval of the task's score rests on, and of each subset's."""
    scores = correlate_task(task.gold, similarity, task.codes, metric)
    terms = task_terms(task.gold, similarity, task.codes, metric, aggregation)
    whole = Support(scores.aggregates[aggregation], terms, task.sharing, task.folded)
    subsets = [
        Support(value, TERMS[metric](task.gold[members], similarity[members]), task.sharing.take(members))
        for value, members in zip(scores.subsets.tolist(), members_of(task.codes, len(task.gold)), strict=True)
    ]
    return [whole, *subsets]


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


class _Judged(NamedTuple):
    """The fields of `Difference` that tell how certain it is, from 0 to 1; NaN where something is undefined."""

    limits: tuple[float, float] = (math.nan, math.nan)
    p: float = math.nan
    effects: tuple[float, float] = (math.nan, math.nan)
    details: Mapping[str, float] = {}


def _difference(
    scores: PairedScores,
    kind: Kind,
    task: str,
    size: int,
    intervals: Intervals,
    *,
    subset: str = "",
    test: _Test = _NO_TEST,
) -> Difference:
    """Return the row of a score: difference, interval, p-value, effect size."""
    scale = _SCALES[kind]
    judged = _judged(scores, scale, intervals)
    # A perfect correlation is infinitely far from the others on Fisher's scale, and undefined from another such.
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = float(np.diff(scale.of(scores.values))[0])
    a, b = (100 * scores.values).tolist()
    return Difference(
        kind=kind,
        task=task,
        subset=subset,
        size=size,
        a=a,
        b=b,
        difference=b - a,
        low=100 * judged.limits[0],
        high=100 * judged.limits[1],
        p=judged.p,
        effect=effect,
        effect_low=judged.effects[0],
        effect_high=judged.effects[1],
        test=test.name,
        test_p=test.p,
        interval=intervals.interval,
        details={**judged.details, **test.details},
    )


def _judged(scores: PairedScores, scale: "_Scale", intervals: Intervals) -> _Judged:
    """Return how certain a difference is by what each pair contributes to it."""
    a, b = scores.a, scores.b
    if a.terms is None or b.terms is None or a.sharing is None or intervals.interval is None:
        return _Judged()
    if len(a.terms) < _FEWEST or np.isnan(scores.values).any():
        return _Judged()
    terms, difference = b.terms - a.terms, b.value - a.value
    if difference == 0 and not terms.any():
        # The two order the pairs alike, or err on the same items: on any others they may, too.
        return _Judged((0.0, 0.0), 1.0, (0.0, 0.0))
    variances = as_variances(terms, a.sharing)
    found = variances[intervals.interval]
    limits = plain_interval(difference, found, intervals.level)
    effects = (math.nan, math.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = scale.slope(scores.values)
        low, high = scale.of(scores.values)
    if np.isfinite(slopes).all():
        spread = variance(slopes[1] * b.terms - slopes[0] * a.terms, a.sharing, intervals.interval)
        effects = plain_interval(high - low, spread, intervals.level)[:2]
    details = {f"se_{method}": 100 * of.standard_error for method, of in variances.items()}
    return _Judged(limits[:2], two_sided_p(difference, found), effects, {"df": found.df, **details})


def _with_average(
    rows: Sequence[Difference], wholes: Sequence[PairedScores], kind: Kind, intervals: Intervals
) -> tuple[Difference, ...]:
    """Return the rows of one kind of task, corrected, and if there are several tasks that of their average."""
    if len(wholes) < 2:
        return corrected(rows)
    size = sum(row.size for row in rows if row.is_task)
    return corrected([*rows, _difference(PairedScores.mean(wholes), kind, AVERAGES[kind], size, intervals)])


class _Scale(NamedTuple):
    """The scale on which two scores differ by an effect size, and its slope."""

    of: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]


_SCALES: dict[Kind, _Scale] = {
    "sts": _Scale(np.arctanh, lambda correlations: 1 / (1 - correlations**2)),
    "transfer": _Scale(
        lambda shares: 2 * np.arcsin(np.sqrt(shares)), lambda shares: 1 / np.sqrt(shares * (1 - shares))
    ),
}
"""Fisher's z, on which the difference is Cohen's q; twice the arcsine of the root: Cohen's h (Cohen 1988, chapters
4 and 6)."""
