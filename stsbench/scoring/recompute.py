"""A record's scores computed again from its items: what is stated is what the items give, or it is not stated.

`run.json` carries the hash of its items table, so a table that changed is told when it is read. This is for the
other half: a record whose numbers are not those of its items. The same functions compute here as in `run`.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite

import pandas as pd

from stsbench._version import __version__
from stsbench.base.errors import UserError
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
"""Two ways of summing the same numbers may differ by this much."""

_LIMIT = 1e-9
"""How far an interval's limits may be from what the table gives; scores may by `EXACT`."""

_SHOWN = 3
"""Models that one note names."""

Stated = float | int | None


@dataclass(frozen=True)
class Discrepancy:
    """A number of a record, in words, that its items do not give."""

    what: str
    stated: Stated
    given: Stated

    def __str__(self) -> str:
        stated, given = ("undefined" if value is None else repr(value) for value in (self.stated, self.given))
        return f"{self.what} is {stated} in {RECORD}, and {ITEMS} gives {given}"


def require_recomputed(*records: RunRecord, intervals: bool = True) -> tuple[str, ...]:
    """Make sure that records say what their items give, as far as these are there.

    Args:
        records: as they were read. One in memory alone was measured by this very process: it is taken as it is.
        intervals: whether to compute the limits of intervals too, of records that this version of stsbench wrote.

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
    try:
        for difference in differences(record, intervals=intervals):
            raise UserError(
                f"{record.folder} does not say what was measured: {difference}; put both files back as they were "
                "written, or measure again."
            )
    except (LookupError, TypeError, ValueError) as error:
        raise UserError(f"{ITEMS} of {record.folder} does not fit its {RECORD}: measure again.") from error
    except MissingTableError:
        yield "they were imported without items" if record.is_imported else f"{ITEMS} is not beside {RECORD}"


def differences(record: RunRecord, *, intervals: bool = True) -> Iterator[Discrepancy]:
    """Yield the numbers of a record that its items do not give.

    `devacc` of nested folds rests on nine predictions of each item, which the items do not hold; `dev` on
    estimates that they do not hold either.
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
    """Yield the rows of each score of a record, in its order."""
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


def _some(names: Collection[str]) -> str:
    shown = list(names)[:_SHOWN]
    return ", ".join(shown) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def counts_in(items: pd.DataFrame) -> dict[str, int]:
    """Return how many items are unlike the others (see `Score.counts`), where the items say so."""
    return {f"{name}_pairs": int(items[name].sum()) for name in ("identical", "zero") if name in items.columns}


def averages(
    scores: Sequence[Score], supports: Sequence[Support], intervals: Intervals
) -> tuple[AveragePart, ...]:
    """Return the mean of the headlines of each kind of which there are several, with its interval.

    There is no interval where a task's own headline has none.
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
