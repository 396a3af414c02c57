"""Recomputes the scores of a record from its items, to check that the record states what its items give.

`run.json` contains the hash of the items table, so a changed table is an error when it is read. This module finds
the other mistake: numbers that do not follow from the items. The same functions compute here and in `run`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf, isfinite

import pandas as pd

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.base.words import listed
from stsbench.records.kinds import ITEMS, KINDS
from stsbench.records.labels import task_labels
from stsbench.records.parts import AveragePart, Interval, Score
from stsbench.records.record import RECORD, MissingTableError, RunRecord
from stsbench.scoring.kinds import numbers_of
from stsbench.scoring.kinds.sts import rater_part
from stsbench.scoring.settings import Intervals
from stsbench.scoring.statistic import ItemsEstimate, mean_interval
from stsbench.scoring.task import Rows

EXACT = 1e-12
"""Tolerance of recomputed scores, for sums in a different order."""

_LIMIT = 1e-9
"""Tolerance of recomputed interval limits."""


def require_recomputed(*records: RunRecord, intervals: bool = True) -> tuple[str, ...]:
    """Checks that the numbers of saved records follow from their items, if these are available.

    Args:
        records: records; those in memory were measured by this process and are not checked.
        intervals: whether to check interval limits, too, for records of this version of stsbench.

    Returns:
        A sentence for each reason why scores could not be recomputed.

    Raises:
        UserError: for the first number that differs, or if the table does not belong to the record.
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


def differences(record: RunRecord, *, intervals: bool = True) -> Iterator[str]:
    """Yields a sentence for each number of a record that does not follow from its items.

    The items do not determine `devacc` of nested folds (nine predictions per item) and `dev` of regressors.
    """
    chosen = Intervals.of(record.protocol)
    if not intervals or record.stsbench != __version__:
        chosen = replace(chosen, interval=None)
    scores, estimates = [], []
    for score, rows in zip(record.scores, rows_of_scores(record), strict=True):
        computed = numbers_of(score, rows, chosen)
        estimates.append(computed.headline)
        counts = {name: n for name, n in counts_in(rows.scored).items() if name in score.counts}
        raters = score.raters and rater_part(rows.scored)
        scores.append(score.model_copy(update={"numbers": computed.numbers, "counts": counts, "raters": raters}))
    limits = chosen.interval is not None
    given = _facts(scores, averages(record.scores, estimates, chosen), limits=limits)
    stated = _facts(record.scores, record.averages, limits=limits)
    for what, value in given.items():
        if not _is_same(stated.get(what), value, _LIMIT if " limit of " in what else EXACT):
            before, now = ("undefined" if number is None else repr(number) for number in (stated.get(what), value))
            yield f"{what} is {before} in {RECORD}, and {ITEMS} gives {now}"


_Fact = float | str | None


def _facts(scores: Sequence[Score], means: Sequence[AveragePart], *, limits: bool) -> dict[str, _Fact]:
    """Returns the numbers of a record, by the words that name them in a message."""
    facts: dict[str, _Fact] = {"the list of averages": ", ".join(average.kind for average in means)}

    def add(what: str, value: float | None, interval: Interval | None) -> None:
        facts[f"the {what}"] = value
        if limits:
            facts[f"the lower limit of {what}"], facts[f"the upper limit of {what}"] = interval or (None, None)

    for label, score in zip(task_labels(scores), scores, strict=True):
        for number in score.numbers:
            what = " ".join(filter(None, [number.statistic, "of", label, number.subset]))
            what += f" by {number.aggregation}" if number.aggregation else ""
            facts[f"the number of {score.about.unit} of {what}"] = number.items
            add(what, number.value, number.interval)
        facts |= {f"the number {name} of {label}": count for name, count in score.counts.items()}
        facts |= {f"the {name} of the raters of {label}": value for name, value in score.raters or ()}
    for average in means:
        name = KINDS[average.kind].average
        facts |= {f"the tasks of {name}": ", ".join(average.tasks)}
        facts |= {f"{name} of rounded scores": average.of_rounded}
        add(name, average.value, average.interval)
    return facts


def _is_same(stated: _Fact, given: _Fact, tolerance: float) -> bool:
    if isinstance(stated, int | float) and isinstance(given, int | float):
        return abs(stated - given) <= tolerance * max(1, abs(given))
    return stated == given


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


def counts_in(items: pd.DataFrame) -> dict[str, int]:
    """Returns the numbers of identical and zero pairs (see `Score.counts`), if the items have these columns."""
    return {f"{name}_pairs": int(items[name].sum()) for name in ("identical", "zero") if name in items.columns}


def averages(
    scores: Sequence[Score], estimates: Sequence[ItemsEstimate], intervals: Intervals
) -> tuple[AveragePart, ...]:
    """Returns the mean headline score of each kind with several tasks, with its interval.

    There is no interval if a task has none.
    """
    parts = []
    for kind in KINDS.values():
        places = [place for place, score in enumerate(scores) if score.kind == kind.name]
        complete = len(places) > 1 and all(scores[place].interval is not None for place in places)
        bounds = (kind.lowest, 1.0 if isfinite(kind.lowest) else inf)
        interval = mean_interval([estimates[place] for place in places], intervals, bounds) if complete else None
        tasks, values = [scores[place].task for place in places], [scores[place].value for place in places]
        parts.append(AveragePart.of(kind.name, tasks, values, interval))
    return tuple(part for part in parts if part is not None)
