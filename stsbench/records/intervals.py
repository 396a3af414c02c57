"""What the intervals of records are, in words: by which method, of what, and why a score has none."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from stsbench.records.parts import NoInterval, RunFields
from stsbench.statistics.intervals import INTERVAL, IntervalMethod

INTERVAL_OF = (
    "new pairs from the same subsets, with new sentences and the same pattern of sharing; the subsets are fixed"
)
"""What an interval is of."""

METHODS: Mapping[IntervalMethod, str] = {
    "dyadic": "dyadic (pairs that share a sentence depend on each other)",
    "components": "components (pairs that a chain of shared sentences joins depend on each other)",
    "independent": "independent (although some pairs share sentences)",
    "bootstrap": "bootstrap over pairs (as if none shared a sentence)",
}
"""The methods of intervals, for a reader."""

REASONS: Mapping[NoInterval, str] = {
    "undefined": "its correlation is undefined",
    "perfect": "a correlation of 1 or -1 does not show how far it would vary",
    "few pairs": "it has fewer than four pairs",
    "no spread": "all of its pairs contribute alike",
}
"""Why a score has no interval."""

_FIRST_WITH_METHOD = 3
"""The version of the record's layout from which on it names the method; before, there was the bootstrap alone."""


def method_in_words(record: RunFields) -> str:
    """Return how a record's intervals were computed."""
    words = METHODS[record.protocol.interval]
    if record.schema_version < _FIRST_WITH_METHOD:
        return f"{words}, recorded by stsbench {record.stsbench}, which knew no other"
    if record.tasks and record.protocol.interval_of_scores != record.protocol.interval:
        return f"{METHODS[record.protocol.interval_of_scores]}: Kendall's tau has no other"
    return words


def recorded_intervals(records: Iterable[RunFields]) -> list[IntervalMethod]:
    """Return the methods of the intervals of some records, each once; none for those that have no intervals."""
    return list(dict.fromkeys(record.protocol.interval for record in records if record.protocol.resamples))


def common_interval(records: Iterable[RunFields]) -> IntervalMethod:
    """Return the method of the intervals of some records, the default where theirs differ."""
    methods = recorded_intervals(records)
    return methods[0] if len(methods) == 1 else INTERVAL


def interval_remarks(labelled: Sequence[tuple[str, RunFields]]) -> Iterator[str]:
    """Yield what a reader of several records' intervals should know.

    Args:
        labelled: the records with their names.
    """
    methods: dict[str, list[str]] = {}
    for label, record in labelled:
        if record.protocol.resamples:
            methods.setdefault(f"{100 * record.protocol.level:g} %, {method_in_words(record)}", []).append(label)
    for words, labels in methods.items():
        whose = f" of {', '.join(labels)}" if len(methods) > 1 else ""
        yield f"intervals{whose}: {words}; of {INTERVAL_OF}"
    for label, record in labelled:
        for task in record.tasks:
            if task.no_interval:
                yield f"{label}: {task.task} has no interval: {REASONS[task.no_interval]}"
