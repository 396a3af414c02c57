"""Do a published value and a measured one mean the same? Field by field, as in the signature."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from stsbench.evaluation.protocols import AGGREGATIONS, TEXTS
from stsbench.published import Setting
from stsbench.records.signature import UNKNOWN
from stsbench.statistics import CORRELATIONS, SIMILARITIES
from stsbench.verify.check_measured import Measured
from stsbench.verify.check_outcome import Difference

_FIELDS = ("split", "aggregation", "metric", "similarity", "text")

_CHOICES: Mapping[str, Collection[str]] = {
    "aggregation": AGGREGATIONS,
    "metric": CORRELATIONS,
    "similarity": SIMILARITIES,
    "text": TEXTS,
}
"""What a person can measure by: a published metric may be none of these."""

_CATALOGUED = {"modified": "not the catalogued files", "user": "a file of one's own"}


def closest(setting: Setting, scores: Iterable[Measured]) -> Measured | None:
    """Return the score of a setting's task that was taken most like it; None if the task was not measured."""
    of_task = [score for score in scores if score.task == setting.task]
    return min(of_task, key=lambda score: len(differences(setting, score)), default=None)


def differences(setting: Setting, score: Measured) -> tuple[Difference, ...]:
    """Return the fields that keep a measured score from meaning what a published value does.

    What a paper leaves open and its authors' code does counts as stated; what nobody states, and what an
    imported file does not say, agrees with anything (see `remarks`).
    """
    found = [
        Difference(name, here, there, _remedy(name, setting, there))
        for name in _FIELDS
        if (here := score.choices.get(name)) and (there := getattr(setting, name)) and here not in {there, UNKNOWN}
    ]
    if setting.group:
        found.append(Difference("group", "all of the data", setting.group))
    if (data := _CATALOGUED.get(score.choices["data"])) is not None:
        found.append(Difference("data", data, "the catalogued ones", "`stsbench data verify` names them"))
    return tuple(found)


def remarks(setting: Setting, score: Measured) -> Iterator[tuple[str, str]]:
    """Yield the fields that match only because somebody leaves them open, each with why, in words."""
    for name in (*_FIELDS, "data"):
        here, there = score.choices.get(name), getattr(setting, name, "")
        if here is None:
            continue
        if here in {UNKNOWN, "unknown"}:
            yield name, "the imported file does not say" + (f"; {there} is expected" if there else "")
        elif name == "data":
            # No row names its files: they are taken to be the released ones, as the catalogued are.
            continue
        elif not there:
            yield name, f"the source does not state it; {here} here"
        elif name in setting.open:
            yield name, f"the paper leaves it open; taken as {there}"
    if "classifier" in setting.open and (here := score.choices.get("classifier")):
        yield "classifier", f"the paper leaves it open; {here} here"


def told(found: Sequence[Difference]) -> str:
    """Return some differences in one clause."""
    return ", ".join(map(str, found))


def _remedy(field: str, setting: Setting, there: str) -> str:
    stated = ["the paper leaves it open, its authors' code does not"] if field in setting.open else []
    if field == "split":
        return "; ".join([*stated, f"measure with --tasks {setting.task}:{there}"])
    return "; ".join([*stated, *([f"measure with --{field} {there}"] if there in _CHOICES[field] else [])])
