"""What a record says twice must agree, and what it says once must be possible.

A record holds most of its numbers twice: the headline among all scores, the pairs of a task and of its subsets,
the average beside the scores that it is of, the signature beside the fields that it is made of. So an edit by
hand, or half of a merge, shows without the tables. What the tables tell, `stsbench.scoring.recompute` computes
again.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import Any

from stsbench.data.tables import FileRead, combined_sha256
from stsbench.encoders.use import ABOUT
from stsbench.records.parts import (
    AveragePart,
    Interval,
    ProtocolPart,
    RunFields,
    ScoredPart,
    SupervisedPart,
    TaskPart,
    TransferPart,
)
from stsbench.records.signature import UNKNOWN, Signature
from stsbench.statistics.correlations import CORRELATIONS

EXACT = 1e-12
"""Two ways of summing the same numbers may differ by so much."""

ROUNDED = 0.01
"""Scores that another program wrote may be rounded: to two decimals, at worst."""

_AGGREGATIONS = ("all", "mean", "wmean")
_YEARS = (1970, 2100)
"""A computer whose clock stands may date a record in the first of them; nobody dates one later than the second."""

_ABOVE_ONE = 1e-9
"""A mean of ones may be above 1 by its last bit."""

_NOT_MORE = (("encoded", "sequences"), ("sequences", "texts"), ("tokens", "padded_tokens"))


def contradiction(record: RunFields) -> str:
    """Return the first thing in a record that contradicts another or cannot be, in words; empty if there is none.

    >>> import stsbench as sb
    >>> run = sb.evaluate(lambda sentences: [[len(s), s.count("e")] for s in sentences], "sample")
    >>> contradiction(run)
    ''
    >>> changed = run.tasks[0].model_copy(update={"score": 0.9})
    >>> contradiction(run.model_copy(update={"tasks": (changed,)}))
    'the score of sample is 0.9, and its scores by all and spearman say 0...'
    """
    tolerance = ROUNDED if record.is_imported else EXACT
    return next(
        chain(
            _of_the_run(record),
            _of_model(record),
            _of_protocol(record.protocol),
            chain.from_iterable(_of_task(task, record, tolerance) for task in record.tasks),
            chain.from_iterable(_of_transfer(part, record) for part in record.transfer),
            chain.from_iterable(_of_supervised(part, record) for part in record.supervised),
            _of_average(record.average, record.tasks, [task.score for task in record.tasks], "average"),
            _of_average(
                record.transfer_average,
                record.transfer,
                [part.acc for part in record.transfer],
                "transfer average",
            ),
            _of_tables(record),
        ),
        "",
    )


def _of_the_run(record: RunFields) -> Iterator[str]:
    try:
        created = datetime.fromisoformat(record.created)
    except ValueError:
        yield f"created is {record.created!r}, which is no date"
        return
    if created.tzinfo is None or not _YEARS[0] <= created.year <= _YEARS[1]:
        yield f"created is {record.created!r}, which is no date in UTC"
    if not record.stsbench:
        yield "stsbench, the version that wrote it, is empty"
    for name, seconds in record.seconds.items():
        if not 0 <= seconds < math.inf:
            yield f"the seconds of {name} are {seconds:g}"
    for name, count in record.encoding.items():
        if count < 0:
            yield f"encoding counts {count} {name}"
    for less, more in _NOT_MORE:
        if record.encoding.get(less, 0) > record.encoding.get(more, math.inf):
            yield f"encoding counts {record.encoding[less]} {less} and {record.encoding[more]} {more}"


def _of_model(record: RunFields) -> Iterator[str]:
    model = record.model
    for name, about in ABOUT.items():
        number = getattr(model.use, name)
        if about.least is not None and number is not None and number < about.least:
            yield f"the model's {name} is {number}"
    threads = record.environment.get("threads", 1)
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        yield f"environment.threads is {threads!r}"
    if not _is_finite(record.environment):
        yield "environment holds a number that is not finite"


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return all(map(_is_finite, value.values()))
    return not isinstance(value, list | tuple) or all(map(_is_finite, value))


def _of_protocol(protocol: ProtocolPart) -> Iterator[str]:
    for name, value, allowed in (
        ("aggregation", protocol.aggregation, _AGGREGATIONS),
        ("metric", protocol.metric, CORRELATIONS),
    ):
        if value not in allowed:
            yield f"the protocol's {name} is {value!r}, which is none of {', '.join(allowed)}"
    if not 0 < protocol.level < 1:
        yield f"the protocol's level is {protocol.level:g}, and no share between 0 and 1"


def _of_task(task: TaskPart, record: RunFields, tolerance: float) -> Iterator[str]:
    protocol, name = record.protocol, task.task
    yield from _of_signature(task, record, _sts_signature(task, protocol))
    yield from _of_data(task)
    yield from _of_scores(task, record, tolerance)
    headline = task.scores[protocol.aggregation][protocol.metric]
    if task.score != headline:
        yield _says(
            f"the score of {name}",
            task.score,
            f"its scores by {protocol.aggregation} and {protocol.metric}",
            headline,
        )
    if task.interval != task.intervals.get(protocol.aggregation):
        its = task.intervals.get(protocol.aggregation)
        yield _says(f"the interval of {name}", task.interval, f"its intervals by {protocol.aggregation}", its)
    for kind, interval in task.intervals.items():
        if kind not in _AGGREGATIONS:
            yield f"the intervals of {name} name an aggregation {kind!r}"
        yield from _of_interval(f"of {name} by {kind}", interval, task.scores.get(kind, {}).get(protocol.metric))
    for subset in task.subsets:
        yield from _of_interval(f"of {name} {subset.name}", subset.interval, subset.scores[protocol.metric])
    yield from _of_counts(task, record)


def _sts_signature(task: TaskPart, protocol: ProtocolPart) -> Mapping[str, Any]:
    return {
        "split": task.split,
        "aggregation": protocol.aggregation,
        "metric": protocol.metric,
        "similarity": protocol.similarity,
    }


def _of_counts(task: TaskPart, record: RunFields) -> Iterator[str]:
    name, sizes = task.task, [subset.pairs for subset in task.subsets]
    names = [subset.name for subset in task.subsets]
    if len(set(names)) < len(names):
        yield f"{name} has two subsets of one name"
    if not record.is_imported and (not sizes or None in (task.pairs, *sizes)):
        yield f"{name} does not say how many pairs it and its subsets have"
    for what, count in ((name, task.pairs), *zip(names, sizes, strict=True)):
        if count is not None and count < 1:
            yield f"{what} has {count} pairs"
    known = [size for size in sizes if size is not None]
    if sizes and task.pairs is not None and len(known) == len(sizes) and sum(known) != task.pairs:
        yield f"{name} has {task.pairs} pairs, and its subsets have {sum(known)}"
    for what in ("identical_pairs", "zero_pairs"):
        count = getattr(task, what)
        if count is not None and not 0 <= count <= (math.inf if task.pairs is None else task.pairs):
            yield f"{what} of {name} are {count} of {task.pairs}"
    yield from _of_truncated(task, record)


def _of_truncated(part: ScoredPart, record: RunFields) -> Iterator[str]:
    cut, texts = part.truncated_sentences, record.encoding.get("texts", math.inf)
    if cut is not None and not 0 <= cut <= texts:
        yield f"truncated_sentences of {part.task} are {cut}"


def _of_scores(task: TaskPart, record: RunFields, tolerance: float) -> Iterator[str]:
    """Yield what is wrong with the scores of a task by aggregation and metric, and of its subsets."""
    name = task.task
    if not (record.is_imported or set(task.scores) == set(_AGGREGATIONS)):
        yield f"{name} has scores by {', '.join(task.scores)}, and not by {', '.join(_AGGREGATIONS)}"
    for kind, values in task.scores.items():
        if kind not in _AGGREGATIONS:
            yield f"the scores of {name} name an aggregation {kind!r}"
        yield from _of_correlations(f"of {name} by {kind}", values)
    for subset in task.subsets:
        yield from _of_correlations(f"of {name} {subset.name}", subset.scores)
    for metric in task.scores[record.protocol.aggregation]:
        of_subsets = [subset.scores.get(metric) for subset in task.subsets]
        if not of_subsets:
            continue
        sizes = [subset.pairs for subset in task.subsets]
        derived = {"mean": _mean(of_subsets), "wmean": _mean(of_subsets, sizes)}
        if len(of_subsets) == 1:
            derived["all"] = of_subsets[0]
        for kind, value in derived.items():
            said = task.scores.get(kind, {}).get(metric, math.nan)
            if said is not None and math.isnan(said):
                continue  # Another program's results lack it.
            if _differ(said, value, tolerance):
                yield _says(f"the {metric} of {name} by {kind}", said, "its subsets", value)


def _of_correlations(where: str, values: Mapping[str, float | None]) -> Iterator[str]:
    for metric, value in values.items():
        if metric not in CORRELATIONS:
            yield f"the scores {where} name a metric {metric!r}"
        if value is not None and not -1 - _ABOVE_ONE <= value <= 1 + _ABOVE_ONE:
            yield f"the {metric} {where} is {value!r}, and a correlation lies between -1 and 1"


def _of_interval(
    where: str, interval: Interval | None, score: float | None, *, lowest: float = -1.0
) -> Iterator[str]:
    if interval is None:
        return
    low, high = interval
    if not lowest - _ABOVE_ONE <= low <= high <= 1 + _ABOVE_ONE:
        yield f"the interval {where} is from {low!r} to {high!r}"
    elif score is None:
        yield f"there is an interval {where}, and no score"


def _of_transfer(part: TransferPart, record: RunFields) -> Iterator[str]:
    name = part.task
    nested, folded = part.design == "nested", part.design in {"nested", "kfold"}
    what = {
        "split": "all" if nested else "test",
        "aggregation": part.design
        if not folded
        else UNKNOWN
        if part.kfold is None
        else f"{part.design}{part.kfold}",
        "metric": "acc",
        "similarity": part.classifier,
    }
    yield from _of_signature(part, record, what)
    yield from _of_data(part)
    if part.design not in {"nested", "kfold", "split"}:
        yield f"the design of {name} is {part.design!r}"
    for quantity in ("acc", "devacc", "f1"):
        share, interval = getattr(part, quantity), getattr(part, f"{quantity}_interval")
        if share is not None and not 0 <= share <= 1:
            yield f"the {quantity} of {name} is {share!r}, and a share lies between 0 and 1"
        yield from _of_interval(f"of the {quantity} of {name}", interval, share, lowest=0.0)
    for count in ("ndev", "ntest"):
        if getattr(part, count) < 1:
            yield f"{count} of {name} is {getattr(part, count)}"
    yield from _of_truncated(part, record)
    if record.is_imported:
        return
    if nested and part.ndev != part.ntest:
        yield f"{name} is folded, and its ndev is {part.ndev} where its ntest is {part.ntest}"
    if part.kfold is None or (part.kfold < 2 if folded else part.kfold != 0):
        yield f"{name} is of the design {part.design}, and its kfold is {part.kfold}"
    if min(part.grid, default=0) < 0:
        yield f"the grid of {name} is {part.grid}"
    elif len(part.chosen) != (part.kfold if nested else 1) or not set(part.chosen) <= set(part.grid):
        yield f"what was chosen for {name} is {part.chosen}, of the grid {part.grid}"


def _of_supervised(part: SupervisedPart, record: RunFields) -> Iterator[str]:
    name = part.task
    what = {"split": "test", "aggregation": "all", "metric": part.stop_by, "similarity": "supervised"}
    yield from _of_signature(part, record, what)
    yield from _of_data(part)
    correlations = {"pearson": part.pearson, "spearman": part.spearman}
    yield from _of_correlations(f"of {name}:supervised", correlations)
    if not -1 - _ABOVE_ONE <= part.dev <= 1 + _ABOVE_ONE:
        yield f"the dev score of {name}:supervised is {part.dev!r}"
    for metric, value in correlations.items():
        interval = getattr(part, f"{metric}_interval")
        yield from _of_interval(f"of the {metric} of {name}:supervised", interval, value)
    if part.mse < 0:
        yield f"the mse of {name}:supervised is {part.mse!r}"
    for count in ("ndev", "ntest"):
        if getattr(part, count) < 1:
            yield f"{count} of {name}:supervised is {getattr(part, count)}"
    yield from _of_truncated(part, record)


def _of_signature(part: ScoredPart, record: RunFields, what: Mapping[str, Any]) -> Iterator[str]:
    signature, model = Signature.parse(part.signature), record.model
    fields = {
        "task": part.task,
        "text": part.text,
        "data": part.data.sha256[: len(signature.data)] if signature.data else part.data.sha256,
        **what,
        "fitted": model.fitted,
        "version": UNKNOWN if record.is_imported else record.stsbench,
    }
    said = {field: getattr(signature, field) for field in fields}
    # What is trained gets vectors of unit length only where that was asked for.
    normalize = model.normalize if isinstance(part, TaskPart) else model.use.normalize
    fields |= vars(replace(model.use, normalize=normalize).signed())
    said |= vars(signature.use)
    for field, value in fields.items():
        if said[field] != value:
            yield _says(f"the {field} of {part.task}", value, "the fields of its signature", said[field])


def _of_data(part: ScoredPart) -> Iterator[str]:
    data = part.data
    if not data.files:
        return
    combined = _combined(tuple((file.name, file.sha256) for file in data.files))
    if data.sha256 != combined:
        yield f"the data of {part.task} has the hash {data.sha256[:12]}..., and its files make {combined[:12]}..."
    differing = [file.name for file in data.files if file.expected is not None and file.expected != file.sha256]
    if data.status == "verified" and (differing or data.problems):
        yield f"the data of {part.task} is called verified, and {(*differing, *data.problems)[0]} is not"
    elif data.status == "modified" and not (differing or data.problems):
        yield f"the data of {part.task} is called modified, and every file is the catalogued one"


@lru_cache(maxsize=2**10)
def _combined(files: tuple[tuple[str, str], ...]) -> str:
    # Kept, as a thousand records are of the same few data sets.
    return combined_sha256(FileRead(name, sha256, None) for name, sha256 in files)


def _of_average(
    average: AveragePart | None, parts: Sequence[ScoredPart], scores: Sequence[float | None], name: str
) -> Iterator[str]:
    if average is None:
        if len(parts) > 1:
            yield f"it has {len(parts)} tasks, and no {name}"
        return
    tasks = tuple(part.task for part in parts)
    if average.tasks != tasks or len(tasks) < 2:
        yield f"the {name} is of {', '.join(average.tasks)}, and the tasks are {', '.join(tasks)}"
        return
    expected = AveragePart.of(tasks, scores)
    assert expected is not None, "there are two tasks or more"
    # Means of accuracies that are rounded themselves are kept with 12 digits.
    if _differ(average.score, expected.score, 2 * EXACT):
        yield _says(f"the {name}", average.score, "its tasks' scores", expected.score)
    if _differ(average.of_rounded, expected.of_rounded, 100 * EXACT):
        yield _says(f"the {name} of rounded scores", average.of_rounded, "its tasks' scores", expected.of_rounded)
    lowest = 0.0 if name.startswith("transfer") else -1.0
    yield from _of_interval(f"of the {name}", average.interval, average.score, lowest=lowest)


def _of_tables(record: RunFields) -> Iterator[str]:
    pairs = sum(task.pairs or 0 for task in record.tasks)
    for file, name, rows in (
        (record.pairs_file, "pairs", pairs),
        (record.items_file, "items", rows_of_items(record)),
    ):
        if file is None:
            continue
        if file.file != f"{name}.parquet":
            yield f"its table of {name} is called {file.file!r}"
        if file.rows != rows:
            yield f"{file.file} has {file.rows} rows, and its tasks make {rows}"


def rows_of_items(record: RunFields) -> int:
    """Return how many rows the item table of a record has: predictions on test and those that `devacc` is over.

    Of nested folds an item is there once: every item is predicted by the fold that held it out.
    """
    of_transfer = sum(part.ntest + (0 if part.design == "nested" else part.ndev) for part in record.transfer)
    return of_transfer + sum(part.ntest for part in record.supervised)


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
    if one is None or other is None:
        return one is not other
    return not math.isnan(other) and not abs(one - other) <= tolerance


def _says(what: str, value: object, others: str, its: object) -> str:
    return f"{what} is {_told(value)}, and {others} say {_told(its)}"


def _told(value: object) -> str:
    return "undefined" if value is None else repr(value)
