"""What the intervals of records are, in words: by which method, of what, and why a score has none."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from stsbench.records.parts import NoInterval, ProtocolPart, RunFields
from stsbench.statistics.dependence import DEPENDENCE, Dependence

INTERVAL_OF = (
    "new pairs from the same subsets, with new sentences and the same pattern of sharing; the subsets are fixed"
)
"""What an interval is of."""

METHODS: Mapping[Dependence, str] = {
    "dyadic": "dyadic (pairs that share a sentence depend on each other)",
    "components": "components (pairs that a chain of shared sentences joins depend on each other)",
    "independent": "independent (although some pairs share sentences)",
}
"""The methods of intervals, for a reader."""

REASONS: Mapping[NoInterval, str] = {
    "undefined": "its correlation is undefined",
    "perfect": "a correlation of 1 or -1 does not show how far it would vary",
    "few pairs": "it has fewer than four pairs (five of Kendall's tau)",
    "no spread": "all of its pairs contribute alike",
}
"""Why a score has no interval."""


def interval_in_words(protocol: ProtocolPart) -> str:
    """Return of which level the intervals of a record are, and how they see pairs; empty where it has none."""
    return (protocol.interval and f"{100 * protocol.level:g} %, {METHODS[protocol.interval]}") or ""


def recorded_intervals(records: Iterable[RunFields]) -> list[Dependence]:
    """Return the methods of the intervals of some records, each once; none for those that have no intervals."""
    intervals = (record.protocol.interval for record in records)
    return list(dict.fromkeys(interval for interval in intervals if interval is not None))


def common_interval(records: Iterable[RunFields]) -> Dependence:
    """Return the method of the intervals of some records, the default where theirs differ."""
    methods = recorded_intervals(records)
    return methods[0] if len(methods) == 1 else DEPENDENCE


def interval_remarks(labelled: Sequence[tuple[str, RunFields]]) -> Iterator[str]:
    """Yield what a reader of several records' intervals should know.

    Args:
        labelled: the records with their names.
    """
    methods: dict[str, list[str]] = {}
    for label, record in labelled:
        if words := interval_in_words(record.protocol):
            methods.setdefault(words, []).append(label)
    for words, labels in methods.items():
        whose = f" of {', '.join(labels)}" if len(methods) > 1 else ""
        yield f"intervals{whose}: {words}; of {INTERVAL_OF}"
    for label, record in labelled:
        for task in record.tasks:
            if task.no_interval:
                yield f"{label}: {task.task} has no interval: {REASONS[task.no_interval]}"
