"""Recomputes the scores of a record from its items, to check that the record states what its items give.

`run.json` contains the hash of the items table, so a changed table is an error when it is read. This module finds
the other mistake: numbers that do not follow from the items. The same functions compute here and in `run`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite

import pandas as pd

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.base.words import listed
from stsbench.records.items import ITEMS
from stsbench.records.kinds import KINDS
from stsbench.records.labels import task_labels
from stsbench.records.parts import AveragePart, Interval, Number, Score
from stsbench.records.record import RECORD, MissingTableError, RunRecord
from stsbench.scoring.kinds import numbers_of
from stsbench.scoring.kinds.sts import rater_part
from stsbench.scoring.settings import Intervals
from stsbench.scoring.statistic import Support, mean_limits
from stsbench.scoring.task import Rows

EXACT = 1e-12
"""Tolerance of recomputed scores, for sums in a different order."""

_LIMIT = 1e-9
"""Tolerance of recomputed interval limits."""

Stated = float | int | None


@dataclass(frozen=True)
class Discrepancy:
    """A number in a record that does not follow from its items."""

    what: str
    stated: Stated
    given: Stated

    def __str__(self) -> str:
        stated, given = ("undefined" if value is None else repr(value) for value in (self.stated, self.given))
        return f"{self.what} is {stated} in {RECORD}, and {ITEMS} gives {given}"


def require_recomputed(*records: RunRecord, intervals: bool = True) -> tuple[str, ...]:
    """Checks that the numbers of saved records follow from their items, if these are available.

    Args:
        records: records; those in memory were measured by this process and are not checked.
        intervals: whether to check interval limits, too, for records of this version of stsbench.

    Returns:
        A sentence for each reason why scores could not be recomputed.

    Raises:
        UserError: for the first number that differs, or if the table does not belong to the record.

    >>> import stsbench as sb
    >>> run = sb.evaluate(lambda sentences: [[len(s), s.count("e")] for s in sentences], "sample")
    >>> require_recomputed(run)
    ()
    """
    models: dict[str, list[str]] = {}
    for record in records:
        reason = _reason_not_recomputed(record, intervals)
        if reason and record.model.name not in models.setdefault(reason, []):
            models[reason].append(record.model.name)
    return tuple(f"the scores of {listed(names)} were not recomputed: {why}." for why, names in models.items())


def _reason_not_recomputed(record: RunRecord, intervals: bool) -> str:
    """Recomputes a record; returns why that is impossible, or an empty string."""
    if record.folder is None and not record.is_imported:
        return ""
    try:
        for difference in differences(record, intervals=intervals):
            raise UserError(
                f"{record.folder} does not match its items: {difference}; restore both files, or measure again."
            )
    except (LookupError, TypeError, ValueError) as error:
        raise UserError(f"{ITEMS} of {record.folder} does not fit its {RECORD}: measure again.") from error
    except MissingTableError:
        return "they were imported without items" if record.is_imported else f"{ITEMS} is missing"
    return ""


def differences(record: RunRecord, *, intervals: bool = True) -> Iterator[Discrepancy]:
    """Yields the numbers of a record that do not follow from its items.

    The items do not determine `devacc` of nested folds (nine predictions per item) and `dev` of regressors.
    """
    chosen = Intervals.of(record.protocol)
    if not intervals or record.stsbench != __version__:
        chosen = replace(chosen, interval=None)
    supports = []
    for label, score, rows in zip(task_labels(record.scores), record.scores, rows_of_scores(record), strict=True):
        computed = numbers_of(score, rows, chosen)
        yield from _of_score(label, score, computed.numbers, rows.scored, intervals=chosen.interval is not None)
        supports.append(computed.support)
    again = {average.kind: average for average in averages(record.scores, supports, chosen)}
    for kind in KINDS.values():
        name, stated, given = kind.average, record.average(kind.name), again.get(kind.name)
        if stated is None and given is None:
            continue
        if stated is None or given is None or stated.tasks != given.tasks:
            counts = (None if average is None else len(average.tasks) for average in (stated, given))
            yield Discrepancy(f"the number of tasks of {name}", *counts)
            continue
        yield from _number(name, stated.value, given.value)
        yield from _number(f"{name} of rounded scores", stated.of_rounded, given.of_rounded)
        if chosen.interval is not None:
            yield from _limits(name, stated.interval, given.interval)


def rows_of_scores(record: RunRecord) -> Iterator[Rows]:
    """Yields the rows of each score of a record, in order."""
    groups = record.rows_by_score()
    keys = {score.key for score in record.scores}
    for score in record.scores:
        scored, task = groups[score.key], _without_split(score.key)
        held_out = [rows for key, rows in groups.items() if key not in keys and _without_split(key) == task]
        yield Rows(scored, pd.concat(held_out, ignore_index=True) if held_out else scored.iloc[:0])


def _without_split(key: tuple[str, str, str, str]) -> tuple[str, str, str]:
    kind, task, _, text = key
    return kind, task, text


def _of_score(
    label: str, score: Score, numbers: Sequence[Number], scored: pd.DataFrame, *, intervals: bool
) -> Iterator[Discrepancy]:
    recorded = {number.key: number for number in score.numbers}
    for given in numbers:
        stated = recorded.get(given.key)
        where = " ".join(filter(None, [label, given.subset]))
        what = f"the {given.statistic} of {where}" + (f" by {given.aggregation}" if given.aggregation else "")
        if stated is None:
            yield Discrepancy(what, None, given.value)
            continue
        yield from _number(f"the number of {score.about.unit} of {what[4:]}", stated.items, given.items)
        yield from _number(what, stated.value, given.value)
        if intervals:
            yield from _limits(what[4:], stated.interval, given.interval)
    for name, count in counts_in(scored).items():
        if name in score.counts:
            yield from _number(f"the number {name} of {label}", score.counts[name], count)
    if score.raters is not None:
        raters = rater_part(scored)
        for field, value in score.raters:
            yield from _number(f"the {field} of the raters of {label}", value, getattr(raters, field, None))


def _number(what: str, stated: Stated, given: Stated, tolerance: float = EXACT) -> Iterator[Discrepancy]:
    if stated is None or given is None:
        same = stated is given
    else:
        same = abs(stated - given) <= tolerance * max(1, abs(given))
    if not same:
        yield Discrepancy(what, stated, given)


def _limits(where: str, stated: Interval | None, given: Interval | None) -> Iterator[Discrepancy]:
    for place, name in enumerate(("lower", "upper")):
        limits = [interval and interval[place] for interval in (stated, given)]
        yield from _number(f"the {name} limit of {where}", limits[0], limits[1], _LIMIT)


def counts_in(items: pd.DataFrame) -> dict[str, int]:
    """Returns the numbers of identical and zero pairs (see `Score.counts`), if the items have these columns."""
    return {f"{name}_pairs": int(items[name].sum()) for name in ("identical", "zero") if name in items.columns}


def averages(
    scores: Sequence[Score], supports: Sequence[Support], intervals: Intervals
) -> tuple[AveragePart, ...]:
    """Returns the mean headline score of each kind with several tasks, with its interval.

    There is no interval if a task has none.
    """
    parts = []
    for kind in KINDS.values():
        places = [place for place, score in enumerate(scores) if score.kind == kind.name]
        complete = len(places) > 1 and all(scores[place].interval is not None for place in places)
        bounds = (kind.lowest, 1.0 if isfinite(kind.lowest) else inf)
        limits = mean_limits([supports[place] for place in places], intervals, bounds) if complete else None
        tasks, values = [scores[place].task for place in places], [scores[place].value for place in places]
        parts.append(AveragePart.of(kind.name, tasks, values, limits))
    return tuple(part for part in parts if part is not None)
