"""Matches the scores of a record with the settings of published values."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from stsbench.judging.verdicts import FieldDifference
from stsbench.published import catalogue
from stsbench.published.catalogue import PublishedRow, rows
from stsbench.published.schema import PublishedCell, Setting
from stsbench.records.labels import task_labels
from stsbench.records.parts import Score, plain_mean
from stsbench.records.record import RunRecord
from stsbench.records.signature import UNKNOWN, Signature
from stsbench.scoring.settings import AGGREGATIONS, TEXTS
from stsbench.scoring.tasks import STS_TASKS, TRANSFER_TASKS
from stsbench.statistics.correlations import CORRELATIONS
from stsbench.statistics.similarity import SIMILARITIES

AVERAGES = {"Avg. STS": STS_TASKS, "Avg. transfer": TRANSFER_TASKS}

_METRICS = {"acc": "accuracy", "devacc": "accuracy"}


@dataclass(frozen=True)
class MeasuredScore:
    """A number of a record that papers print.

    Attributes:
        of: the score that it belongs to.
        statistic: name of the number: the main one, or the one below it (`devacc`).
        choices: the choices that define it, named as in published settings; `data` is the status of the files.
    """

    of: Score
    statistic: str
    choices: Mapping[str, str]

    @property
    def score(self) -> float | None:
        """The number x 100; None if undefined."""
        number = self.of.number(self.statistic)
        return None if number is None or number.value is None else 100 * number.value


def measured_scores(record: RunRecord) -> Sequence[MeasuredScore]:
    """Returns the numbers of a record that papers print: the main number of each score, and the one below it."""
    return [
        MeasuredScore(score, statistic, _choices(score, statistic))
        for score in record.scores
        for statistic in filter(None, (score.statistic, score.about.below))
        if score.number(statistic) is not None
    ]


def _choices(score: Score, statistic: str) -> Mapping[str, str]:
    signature = Signature.parse(score.signature)
    split = signature.split if score.training is None else "dev" if statistic == score.about.below else "test"
    choices = {"split": split, "metric": _METRICS.get(statistic, statistic), "text": score.text}
    if score.about.by_similarity:
        choices["similarity"] = signature.similarity
    elif score.training is not None:
        choices["classifier"] = score.training.method
    if score.training is None and len(score.subsets) != 1:
        # With a single subset every aggregation is the same number. (Imported tasks may name no subset.)
        choices["aggregation"] = signature.aggregation
    return {**choices, "data": score.data.status}


_FIELDS = ("split", "aggregation", "metric", "similarity", "text")

_OPTIONS: Mapping[str, Collection[str]] = {
    "aggregation": AGGREGATIONS,
    "metric": CORRELATIONS,
    "similarity": SIMILARITIES,
    "text": TEXTS,
}

_OTHER_DATA = {"modified": "modified", "user": "your own"}


@dataclass(frozen=True)
class Fit:
    """The measured scores for a published setting.

    Attributes:
        value: the score x 100, or the mean for an average; None if missing or undefined.
        parts: the settings of the tasks that it consists of, and their scores.
        differences: the choices that make it incomparable.
        missing: tasks that were not measured.
    """

    value: float | None
    parts: tuple[tuple[Setting, MeasuredScore], ...]
    differences: tuple[FieldDifference, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def scores(self) -> list[MeasuredScore]:
        """The scores that it consists of."""
        return [score for _, score in self.parts]


def fitting(setting: Setting, scores: Sequence[MeasuredScore]) -> Fit:
    """Returns the most similar measured score, or the mean of those for an average."""
    parts, missing = [], []
    for task in AVERAGES.get(setting.task, (setting.task,)):
        part = setting.model_copy(update={"task": task})
        of_task = [score for score in scores if score.of.task == task]
        if of_task:
            parts.append((part, min(of_task, key=lambda score: len(_compared(part, score)[0]))))
        else:
            missing.append(task)
    value = None if missing else plain_mean([score.score for _, score in parts])
    gaps = dict.fromkeys(gap for part in parts for gap in _compared(*part)[0])
    return Fit(value, tuple(parts), tuple(gaps), tuple(missing))


def open_fields(fits: Iterable[Fit]) -> list[str]:
    """Returns the choices that match only because a source does not state them, each once."""
    parts = [part for fit in fits for part in fit.parts]
    return list(dict.fromkeys(f"{name}: {why}" for part in parts for name, why in _compared(*part)[1]))


Comparable = tuple[PublishedRow, Mapping[tuple[str, str], float]]
"""A row, and its values x 100 by kind and task, or by kind and average if it is over the record's tasks."""


def published_beside(record: RunRecord) -> Iterator[Comparable]:
    """Yields the main row of each published system with a value that is comparable with one of the record's."""
    scores = measured_scores(record)
    labels = dict(zip([score.key for score in record.scores], task_labels(record.scores), strict=True))
    for system in filter(None, (system.row for system in catalogue.systems().values())):
        values: dict[tuple[str, str], float] = {}
        for cell in filter(is_score, rows()[system].cells):
            fit = fitting(cell.setting, scores)
            is_main = all(score.statistic == score.of.statistic for score in fit.scores)
            if cell.score is None or fit.missing or fit.differences or not fit.scores or not is_main:
                continue
            of = [score.of for score in fit.scores]
            if cell.setting.task not in AVERAGES:
                values[of[0].kind, labels[of[0].key]] = cell.score
            elif {score.key for score in of} == {score.key for score in record.scores_of(of[0].kind)}:
                values[of[0].kind, of[0].about.average] = cell.score
        if values:
            yield rows()[system], values


def _compared(setting: Setting, score: MeasuredScore) -> tuple[list[FieldDifference], list[tuple[str, str]]]:
    """Compares a measured score with a published value's setting.

    What a paper leaves open and its authors' code fixes counts as stated. What nobody states, and what an imported
    file leaves open, matches any value.

    Returns:
        The choices that make the two incomparable; and those that match only because they are not stated, with
        the reason.
    """
    differences, unstated = [], []
    for name in _FIELDS:
        here, there = score.choices.get(name), getattr(setting, name)
        if here == UNKNOWN:
            unstated.append((name, "not stated by the imported file" + (f"; expected {there}" if there else "")))
        elif here is not None and not there:
            unstated.append((name, f"not stated by the source; this run uses {here}"))
        elif here and here != there:
            differences.append(FieldDifference(name, here, there, _remedy(name, setting, there)))
        elif here is not None and name in setting.open:
            unstated.append((name, f"not stated by the paper; assumed to be {there}"))
    if setting.group:
        differences.append(FieldDifference("group", "all data", setting.group))
    # Rows do not name their files; they are assumed to be the released ones.
    data = score.choices["data"]
    if data in _OTHER_DATA:
        remedy = "`stsbench data verify` lists changes"
        differences.append(FieldDifference("data", _OTHER_DATA[data], "the released files", remedy))
    if data in {UNKNOWN, "unknown"}:
        unstated.append(("data", "not stated by the imported file"))
    if "classifier" in setting.open and (here := score.choices.get("classifier")):
        unstated.append(("classifier", f"not stated by the paper; this run uses {here}"))
    return differences, unstated


def _remedy(field: str, setting: Setting, there: str) -> str:
    remedies = ["from the authors' code; the paper does not state it"] if field in setting.open else []
    if field == "split":
        remedies.append(f"measure with --tasks {setting.task}:{there}")
    elif there in _OPTIONS[field]:
        remedies.append(f"measure with --{field} {there}")
    return "; ".join(remedies)


def is_score(cell: PublishedCell) -> bool:
    """Returns whether a published value is a score, not a difference or a count."""
    return cell.setting.task != "delta" and cell.setting.unit != "pairs"
