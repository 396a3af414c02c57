"""What a record says twice must agree, and what it says once must be possible.

A record holds many of its numbers twice: the pairs of a task and of its subsets, the average beside the scores
that it is of, the signature beside the fields that it is made of. So an edit by hand, or half of a merge, shows
without the items. What the items tell, `stsbench.scoring.recompute` computes again.
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
from stsbench.records.kinds import KINDS, Kind
from stsbench.records.parts import AveragePart, Number, ProtocolPart, RunFields, Score, Training
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
    >>> average = run.scores[0].number("spearman", "mean").model_copy(update={"value": 0.9})
    >>> numbers = [average if number.key == average.key else number for number in run.scores[0].numbers]
    >>> changed = run.scores[0].model_copy(update={"numbers": tuple(numbers)})
    >>> contradiction(run.model_copy(update={"scores": (changed,)}))
    'the spearman of sample by mean is 0.9, and its subsets say 0...'
    """
    tolerance = ROUNDED if record.is_imported else EXACT
    return next(
        chain(
            _of_the_run(record),
            _of_model(record),
            _of_protocol(record.protocol),
            _of_keys(record),
            chain.from_iterable(_of_score(score, record, tolerance) for score in record.scores),
            chain.from_iterable(_of_average(record, kind) for kind in KINDS.values()),
            _of_table(record),
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
        ("metric", protocol.metric, (*CORRELATIONS, "ap", "mean")),
    ):
        if value not in allowed:
            yield f"the protocol's {name} is {value!r}, which is none of {', '.join(allowed)}"
    if not 0 < protocol.level < 1:
        yield f"the protocol's level is {protocol.level:g}, and no share between 0 and 1"


def _of_keys(record: RunFields) -> Iterator[str]:
    for score in record.scores:
        if score.kind not in KINDS:
            yield f"the kind of {score.task} is {score.kind!r}, which is none of {', '.join(KINDS)}"
    keys = [score.key for score in record.scores]
    order = [list(KINDS).index(score.kind) for score in record.scores]
    if len(set(keys)) < len(keys):
        yield "it has two scores of one task, split and text"
    if order != sorted(order):
        yield "its scores are not in the order of their kinds"


def _of_score(score: Score, record: RunFields, tolerance: float) -> Iterator[str]:
    name = score.task + score.about.suffix
    signature = Signature.parse(score.signature)
    yield from _of_signature(score, signature, record)
    yield from _of_data(score)
    keys = [number.key for number in score.numbers]
    if len(set(keys)) < len(keys):
        yield f"{name} states a number twice"
    for number in score.numbers:
        yield from _of_number(name, number, score)
    yield from _of_subsets(name, score, record, tolerance)
    yield from _of_counts(name, score, record)
    if score.training is not None:
        yield from _of_training(name, score, score.training, is_imported=record.is_imported)


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


def _of_counts(name: str, score: Score, record: RunFields) -> Iterator[str]:
    if score.items is None and not record.is_imported:
        yield f"{name} does not say how many {score.about.unit} it has"
    for what, count in score.counts.items():
        if not 0 <= count <= (math.inf if score.items is None else score.items):
            yield f"{what} of {name} are {count} of {score.items}"
    cut, texts = score.truncated_sentences, record.encoding.get("texts", math.inf)
    if cut is not None and not 0 <= cut <= texts:
        yield f"truncated_sentences of {name} are {cut}"


def _of_training(name: str, score: Score, training: Training, *, is_imported: bool) -> Iterator[str]:
    nested, folded = training.design == "nested", training.design in {"nested", "kfold"}
    if training.design not in {"nested", "kfold", "split"}:
        yield f"the design of {name} is {training.design!r}"
    if is_imported:
        return
    held_out = score.number("devacc")
    if nested and held_out is not None and held_out.items != score.items:
        yield f"{name} is folded, and its devacc is over {held_out.items} of {score.items} items"
    if training.kfold is None or (training.kfold < 2 if folded else training.kfold != 0):
        yield f"{name} is of the design {training.design}, and its kfold is {training.kfold}"
    if min(training.grid, default=0) < 0:
        yield f"the grid of {name} is {training.grid}"
    elif training.grid and (
        len(training.chosen) != (training.kfold if nested else 1) or not set(training.chosen) <= set(training.grid)
    ):
        yield f"what was chosen for {name} is {training.chosen}, of the grid {training.grid}"


def _of_signature(score: Score, signature: Signature, record: RunFields) -> Iterator[str]:
    model, protocol, training = record.model, record.protocol, score.training
    fields = {
        "task": score.task,
        "split": score.split,
        "text": score.text,
        "metric": score.statistic,
        "data": score.data.sha256[: len(signature.data)] if signature.data else score.data.sha256,
        "fitted": model.fitted,
        "version": UNKNOWN if record.is_imported else record.stsbench,
    }
    if training is None:
        fields |= {"aggregation": score.numbers[0].aggregation or "all"}
        fields |= {"similarity": protocol.similarity} if score.about.by_similarity else {}
    elif training.design == "split":
        fields |= {"similarity": training.method}
    else:
        folds = UNKNOWN if training.kfold is None else f"{training.design}{training.kfold}"
        fields |= {"similarity": training.method, "aggregation": folds}
    said = {field: getattr(signature, field) for field in fields}
    # What is trained gets vectors of unit length only where that was asked for.
    normalize = model.use.normalize if training else model.normalize
    fields |= vars(replace(model.use, normalize=normalize).signed())
    said |= vars(signature.use)
    for field, value in fields.items():
        if said[field] != value:
            yield _says(f"the {field} of {score.task}", value, "the fields of its signature", said[field])


def _of_data(score: Score) -> Iterator[str]:
    data = score.data
    if not data.files:
        return
    combined = _combined(tuple((file.name, file.sha256) for file in data.files))
    if data.sha256 != combined:
        yield f"the data of {score.task} has the hash {data.sha256[:12]}..., and its files make {combined[:12]}..."
    differing = [file.name for file in data.files if file.expected is not None and file.expected != file.sha256]
    if data.status == "verified" and (differing or data.problems):
        yield f"the data of {score.task} is called verified, and {(*differing, *data.problems)[0]} is not"
    elif data.status == "modified" and not (differing or data.problems):
        yield f"the data of {score.task} is called modified, and every file is the catalogued one"


@lru_cache(maxsize=2**10)
def _combined(files: tuple[tuple[str, str], ...]) -> str:
    # Kept, as a thousand records are of the same few data sets.
    return combined_sha256(FileRead(name, sha256, None) for name, sha256 in files)


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


def _of_table(record: RunFields) -> Iterator[str]:
    file, rows = record.items_file, sum((score.items or 0) + score.held_out for score in record.scores)
    if file is None:
        return
    if file.file != "items.parquet":
        yield f"its items table is called {file.file!r}"
    if file.rows != rows:
        yield f"{file.file} has {file.rows} rows, and its tasks make {rows}"


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
    return f"{what} is {_told(value)}, and {others} say {_told(its)}"


def _told(value: object) -> str:
    return "undefined" if value is None else repr(value)
