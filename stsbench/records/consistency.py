"""What the results of another program say twice must agree, and what they say must be possible.

A record of our own is held by its digest, by the hash of its items and by what these give again
(`stsbench.scoring.recompute`). Foreign results have nothing of that.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import chain

from stsbench.records.kinds import KINDS, Kind
from stsbench.records.parts import AveragePart, Number, RunFields, Score
from stsbench.statistics.correlations import CORRELATIONS

EXACT = 1e-12
"""Two ways of summing the same numbers may differ by so much."""

ROUNDED = 0.01
"""Scores that another program wrote may be rounded: to two decimals, at worst."""

_AGGREGATIONS = ("all", "mean", "wmean")

_ABOVE_ONE = 1e-9
"""A mean of ones may be above 1 by its last bit."""


def contradiction(record: RunFields) -> str:
    """Return the first number of a record that contradicts another or cannot be, in words; empty if none does.

    >>> import stsbench as sb
    >>> run = sb.evaluate(lambda sentences: [[len(s), s.count("e")] for s in sentences], "sample")
    >>> contradiction(run)
    ''
    >>> average = run.scores[0].number("spearman", "mean").model_copy(update={"value": 0.9})
    >>> numbers = [average if number.key == average.key else number for number in run.scores[0].numbers]
    >>> changed = run.scores[0].model_copy(update={"numbers": tuple(numbers)})
    >>> contradiction(run.model_copy(update={"scores": (changed,)}))
    'the spearman of sample by mean is 0.9, and its subsets say 0...'
    """
    tolerance = ROUNDED if record.is_imported else EXACT
    return next(
        chain(
            chain.from_iterable(_of_score(score, record, tolerance) for score in record.scores),
            chain.from_iterable(_of_average(record, kind) for kind in KINDS.values()),
        ),
        "",
    )


def _of_score(score: Score, record: RunFields, tolerance: float) -> Iterator[str]:
    name = score.task + score.about.suffix
    for number in score.numbers:
        yield from _of_number(name, number, score)
    yield from _of_subsets(name, score, record, tolerance)


def _of_number(name: str, number: Number, score: Score) -> Iterator[str]:
    where = f"the {number.statistic} of {name}" + (f" {number.subset}" if number.subset else "")
    where += f" by {number.aggregation}" if number.aggregation else ""
    lowest, highest = (0.0, math.inf) if number.statistic == "mse" else (_lowest(number, score), _highest(score))
    if number.aggregation not in {"", *_AGGREGATIONS}:
        yield f"{where} names an aggregation {number.aggregation!r}"
    if number.value is not None and not lowest - _ABOVE_ONE <= number.value <= highest + _ABOVE_ONE:
        yield f"{where} is {number.value!r}, and lies between {lowest:g} and {highest:g}"
    if number.items is not None and number.items < 1:
        yield f"{where} is over {number.items} {score.about.unit}"
    if number.interval is None:
        return
    low, high = number.interval
    if not lowest - _ABOVE_ONE <= low <= high <= highest + _ABOVE_ONE:
        yield f"the interval of {where[4:]} is from {low!r} to {high!r}"
    elif number.value is None:
        yield f"there is an interval of {where[4:]}, and no score"
    elif number.no_interval:
        yield f"there is an interval of {where[4:]}, and a reason why there is none"


def _lowest(number: Number, score: Score) -> float:
    return -1.0 if number.statistic in CORRELATIONS or number.statistic == "dev" else score.about.lowest


def _highest(score: Score) -> float:
    return -score.about.lowest if math.isinf(score.about.lowest) else 1.0


def _of_subsets(name: str, score: Score, record: RunFields, tolerance: float) -> Iterator[str]:
    """Yield what the numbers of a task's subsets contradict: those of the whole task are made of them."""
    if not score.subsets:
        return
    names = [number.subset for number in score.subsets]
    sizes = [number.items for number in score.subsets]
    known = [size for size in sizes if size is not None]
    if score.items is not None and len(known) == len(sizes) and sum(known) != score.items:
        yield f"{name} has {score.items} {score.about.unit}, and its subsets have {sum(known)}"
    whole = [number for number in score.numbers if not number.subset and number.aggregation in _AGGREGATIONS]
    for number in whole:
        parts = [part for part in score.numbers if part.subset and part.statistic == number.statistic]
        known_of = {part.subset: part.value for part in parts}
        if set(known_of) != set(names):
            if not record.is_imported:  # Another program's results may lack them.
                yield f"{name} has the {number.statistic} of other subsets than the {score.statistic}"
            continue
        of_subsets = [known_of[subset] for subset in names]
        derived = {"mean": _mean(of_subsets), "wmean": _mean(of_subsets, sizes)}
        if len(of_subsets) == 1:
            derived["all"] = of_subsets[0]
        value = derived.get(number.aggregation, math.nan)
        if _differ(number.value, value, tolerance):
            where = f"the {number.statistic} of {name} by {number.aggregation}"
            yield _says(where, number.value, "its subsets", value)


def _of_average(record: RunFields, kind: Kind) -> Iterator[str]:
    scores, average, name = record.scores_of(kind.name), record.average(kind.name), kind.average
    tasks, values = tuple(score.task for score in scores), [score.value for score in scores]
    expected = AveragePart.of(kind.name, tasks, values)
    if average is None or expected is None:
        if average is not expected:
            there = "no" if average is None else "an"
            yield f"it has {len(tasks)} tasks of the kind {kind.name}, and {there} average"
        return
    if average.tasks != tasks:
        yield f"{name} is of {', '.join(average.tasks)}, and the tasks are {', '.join(tasks)}"
        return
    if _differ(average.value, expected.value, EXACT):
        yield _says(name, average.value, "its tasks' scores", expected.value)
    if _differ(average.of_rounded, expected.of_rounded, 100 * EXACT):
        yield _says(f"{name} of rounded scores", average.of_rounded, "its tasks' scores", expected.of_rounded)
    if average.interval is not None and not kind.lowest - _ABOVE_ONE <= average.interval[0] <= average.interval[1]:
        yield f"the interval of {name} is from {average.interval[0]!r} to {average.interval[1]!r}"


def _mean(values: Sequence[float | None], sizes: Sequence[int | None] | None = None) -> float | None:
    """Return the mean of the subsets' scores, weighted by their pairs; NaN where those are not known."""
    defined = [value for value in values if value is not None]
    if len(defined) < len(values):
        return None
    if sizes is None:
        return sum(defined) / len(defined)
    weights = [size for size in sizes if size is not None]
    if len(weights) < len(sizes) or sum(weights) < 1:
        return math.nan
    return sum(value * weight for value, weight in zip(defined, weights, strict=True)) / sum(weights)


def _differ(one: float | None, other: float | None, tolerance: float) -> bool:
    if other is not None and math.isnan(other):
        return False  # Nobody knows it.
    if one is None or other is None:
        return one is not other
    return not abs(one - other) <= tolerance


def _says(what: str, value: object, others: str, its: object) -> str:
    return f"{what} is {as_stated(value)}, and {others} say {as_stated(its)}"


def as_stated(value: object) -> str:
    """Return a number as a message has it."""
    return "undefined" if value is None else repr(value)
