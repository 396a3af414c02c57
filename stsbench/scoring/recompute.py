"""A record's scores computed again from its tables: what is stated is what the tables give, or it is not stated.

`run.json` carries the hashes of its tables, so a table that changed is told when it is read. This is for the other
half: a record whose numbers are not those of its tables. The same functions compute here as in `run`.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.data.catalogue import data_sets
from stsbench.data.plain_table import PlainTable, coded
from stsbench.records.labels import task_labels
from stsbench.records.parts import AveragePart, Interval, SupervisedPart, TaskPart, TransferPart
from stsbench.records.record import RECORD, MissingTableError, RunRecord
from stsbench.records.signature import Signature
from stsbench.records.tables import ITEMS, PAIRS
from stsbench.scoring.protocols import Protocol
from stsbench.scoring.relatedness import scores_on_test
from stsbench.scoring.settings import Intervals
from stsbench.scoring.sts import StsResult, average, score_task
from stsbench.scoring.transfer import f1_percent, f1_shares, mean_accuracy, nested_accuracy, percent
from stsbench.statistics.aggregation import members_of

if TYPE_CHECKING:
    import pandas as pd

EXACT = 1e-12
"""How far a score may be from what the table gives: other processors add up in another order."""

_LIMIT = 1e-9
"""The same of an interval's limits."""

_SHOWN = 3
"""Models that one note names."""

Stated = float | int | None


@dataclass(frozen=True)
class Discrepancy:
    """A number of a record that its table does not give.

    Attributes:
        what: the number, in words.
        said: what the record says.
        given: what the table gives.
        table: its file.
    """

    what: str
    said: Stated
    given: Stated
    table: str

    def __str__(self) -> str:
        """Say it."""
        return f"{self.what} is {_told(self.said)} in {RECORD}, and {self.table} gives {_told(self.given)}"


def require_recomputed(*records: RunRecord, intervals: bool = True) -> tuple[str, ...]:
    """Make sure that records say what their tables give, as far as there are tables.

    Args:
        records: as they were read. One in memory alone was measured by this very process: it is taken as it is.
        intervals: whether to compute the limits of STS intervals too, of records that this version of stsbench
            wrote.

    Returns:
        What could not be computed again, a sentence for each reason.

    Raises:
        UserError: naming the first number that is another, or if a table is another one than the record's.

    >>> import stsbench as sb
    >>> run = sb.evaluate(lambda sentences: [[len(s), s.count("e")] for s in sentences], "sample")
    >>> require_recomputed(run)
    ()
    """
    names: dict[str, dict[str, None]] = {}
    for record in records:
        for reason in _held_against_tables(record, intervals):
            names.setdefault(reason, {})[record.model.name] = None
    return tuple(f"the scores of {_some(models)} were not computed again: {why}." for why, models in names.items())


def _held_against_tables(record: RunRecord, intervals: bool) -> Iterator[str]:
    """Yield why scores could not be computed again."""
    if record.folder is None and not record.is_imported:
        return
    for name, held in ((PAIRS, record.tasks), (ITEMS, record.transfer or record.supervised)):
        if not held:
            continue
        try:
            differences = (
                pair_differences(record, record.pair_table(), intervals=intervals)
                if name == PAIRS
                else item_differences(record, record.item_table())
            )
        except MissingTableError:
            yield "they were imported without tables" if record.is_imported else f"{name} is not beside {RECORD}"
            continue
        for difference in differences:
            raise UserError(
                f"{record.folder} does not say what was measured: {difference}; put both files back as they were "
                "written, or measure again."
            )


def pair_differences(record: RunRecord, table: PlainTable, *, intervals: bool = True) -> Iterator[Discrepancy]:
    """Yield the numbers of a record's STS tasks that its pair table does not give."""
    protocol = record.protocol
    chosen = Intervals.of(protocol) if intervals and record.stsbench == __version__ else Intervals(None)
    choices = Protocol(protocol.name, protocol.aggregation, protocol.metric)  # type: ignore[arg-type]
    places, codes = coded(list(zip(table["task"], table["split"], table["text"], strict=True)))
    rows = {place: table.take(inside) for place, inside in zip(places, members_of(codes, len(table)), strict=True)}
    results: list[StsResult] = []
    for label, part in zip(task_labels(record.tasks), record.tasks, strict=True):
        again = score_task(
            rows[part.task, part.split, part.text],
            protocol=choices,
            similarity=protocol.similarity,
            signature=Signature.parse(part.signature),
            data=part.data,
            intervals=chosen,
            truncated_sentences=part.truncated_sentences or 0,
        )
        yield from _of_task(label, part, again.part, intervals=chosen.interval is not None)
        results.append(again)
    again_average = average(results, chosen)
    if record.average is not None and again_average is not None:
        yield from _of_average(record.average, again_average, intervals=chosen.interval is not None)


def _of_task(label: str, said: TaskPart, given: TaskPart, *, intervals: bool) -> Iterator[Discrepancy]:
    yield from _whole(f"the number of pairs of {label}", said.pairs, given.pairs)
    yield from _score(f"the score of {label}", said.score, given.score)
    for kind, values in given.scores.items():
        for metric, value in values.items():
            yield from _score(f"the {metric} of {label} by {kind}", said.scores[kind].get(metric), value)
    subsets = {subset.name: subset for subset in said.subsets}
    for subset in given.subsets:
        where, its = f"{label} {subset.name}", subsets[subset.name]
        yield from _whole(f"the number of pairs of {where}", its.pairs, subset.pairs)
        for metric, value in subset.scores.items():
            yield from _score(f"the {metric} of {where}", its.scores.get(metric), value)
        if intervals:
            yield from _limits(where, its.interval, subset.interval)
    for count in ("identical_pairs", "zero_pairs"):
        yield from _whole(f"the number {count} of {label}", getattr(said, count), getattr(given, count))
    if said.raters is not None:
        reliable = given.raters.reliability if given.raters else None
        yield from _score(f"the reliability of {label}", said.raters.reliability, reliable)
    if intervals:
        yield from _limits(label, said.interval, given.interval)
        for kind, limits in given.intervals.items():
            yield from _limits(f"{label} by {kind}", said.intervals.get(kind), limits)


def _of_average(said: AveragePart, given: AveragePart, *, intervals: bool) -> Iterator[Discrepancy]:
    yield from _score("the average", said.score, given.score)
    if intervals:
        yield from _limits("the average", said.interval, given.interval)


def item_differences(record: RunRecord, table: "pd.DataFrame") -> Iterator[Discrepancy]:
    """Yield the numbers of a record's transfer tasks and trained regressors that its item table does not give.

    `devacc` of nested folds rests on nine predictions of each item, which the table does not hold.
    """
    rows = dict(list(table.groupby(["task", "text"], sort=False)))
    for label, part in zip(task_labels(record.transfer), record.transfer, strict=True):
        items = rows[part.task, part.text]
        yield from _of_transfer(label, part, items[items["label"].notna()])
    for label, trained in zip(task_labels(record.supervised), record.supervised, strict=True):
        items = rows[trained.task, trained.text]
        yield from _of_supervised(label, trained, items[items["label"].isna()])


def _of_transfer(label: str, part: TransferPart, items: "pd.DataFrame") -> Iterator[Discrepancy]:
    correct = (items["label"] == items["prediction"]).to_numpy(dtype=bool)
    marked = items["correct"].fillna(False).to_numpy(dtype=bool)
    if (correct != marked).any():
        yield Discrepancy(
            f"the number of right predictions of {label}", int(marked.sum()), int(correct.sum()), ITEMS
        )
    fold = items["fold"].to_numpy()
    is_test = np.ones(len(items), dtype=bool) if part.design == "nested" else (items["split"] == "test").to_numpy()
    yield from _whole(f"ntest of {label}", part.ntest, int(is_test.sum()), ITEMS)
    if part.design == "nested":
        acc, devacc = nested_accuracy(_by_fold(correct, fold)), None
    else:
        dev = ~is_test
        yield from _whole(f"ndev of {label}", part.ndev, int(dev.sum()), ITEMS)
        held_out = _by_fold(correct[dev], fold[dev]) if part.design == "kfold" else [correct[dev]]
        acc = percent(np.mean(correct[is_test]))
        devacc = percent(mean_accuracy([rows[:, np.newaxis] for rows in held_out])[0])
    yield from _score(f"acc of {label}", part.acc, acc / 100, ITEMS)
    if devacc is not None:
        yield from _score(f"devacc of {label}", part.devacc, devacc / 100, ITEMS)
    if part.f1 is not None:
        f1 = f1_percent(*f1_shares(items[is_test], _positive(part.task, items)))
        yield from _score(f"F1 of {label}", part.f1, f1 / 100, ITEMS)


def _by_fold(correct: np.ndarray, fold: np.ndarray) -> Sequence[np.ndarray]:
    return [correct[fold == number] for number in np.unique(fold)]


def _positive(task: str, items: "pd.DataFrame") -> str:
    """Return the class that F1 is of: the catalogue's second, or the second of the labels."""
    entry = data_sets().get(task)
    classes = entry.classes if entry is not None and entry.classes else sorted(items["label"].unique())
    return str(classes[1])


def _of_supervised(label: str, part: SupervisedPart, items: "pd.DataFrame") -> Iterator[Discrepancy]:
    yield from _whole(f"ntest of {label}", part.ntest, len(items), ITEMS)
    given = scores_on_test(items["estimate"].to_numpy(), items["gold"].to_numpy())
    for name, value in given.items():
        yield from _score(f"the {name} of {label}", getattr(part, name), value, ITEMS)


def _whole(what: str, said: int | None, given: int | None, table: str = PAIRS) -> Iterator[Discrepancy]:
    if said != given:
        yield Discrepancy(what, said, given, table)


def _score(
    what: str, said: float | None, given: float | None, table: str = PAIRS, tolerance: float = EXACT
) -> Iterator[Discrepancy]:
    same = said is given if said is None or given is None else abs(said - given) <= tolerance * max(1, abs(given))
    if not same:
        yield Discrepancy(what, said, given, table)


def _limits(where: str, said: Interval | None, given: Interval | None) -> Iterator[Discrepancy]:
    for place, name in enumerate(("lower", "upper")):
        one, other = (None if limits is None else limits[place] for limits in (said, given))
        yield from _score(f"the {name} limit of {where}", one, other, tolerance=_LIMIT)


def _some(names: Collection[str]) -> str:
    shown = list(names)[:_SHOWN]
    return ", ".join(shown) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _told(value: Stated) -> str:
    return "undefined" if value is None else repr(value)
