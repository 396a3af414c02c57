"""What a record has that an expected value can be compared with: its scores, and in which choices they differ."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stsbench.judging.verdicts import FieldDifference
from stsbench.records.parts import Score, plain_mean
from stsbench.records.record import RunRecord
from stsbench.records.signature import UNKNOWN, Signature
from stsbench.scoring.settings import AGGREGATIONS, TEXTS
from stsbench.scoring.tasks import STS_TASKS, TRANSFER_TASKS
from stsbench.statistics.correlations import CORRELATIONS
from stsbench.statistics.similarity import SIMILARITIES

if TYPE_CHECKING:
    from stsbench.published.schema import Setting

AVERAGES = {"Avg. STS": STS_TASKS, "Avg. transfer": TRANSFER_TASKS}
"""What published averages are the mean of."""

_METRICS = {"acc": "accuracy", "devacc": "accuracy"}
"""What papers call statistics that records call otherwise: an accuracy is on test, or the choice was by it."""


@dataclass(frozen=True)
class MeasuredScore:
    """One number of a record that papers print.

    Attributes:
        of: the score that it is a number of.
        statistic: which number: the headline's, or what follows it (`devacc`).
        choices: what fixes it, by the names of a published setting; `data` is the status of the files.
    """

    of: Score
    statistic: str
    choices: Mapping[str, str]

    @property
    def score(self) -> float | None:
        """On the scale from 0 to 100; None where it is undefined."""
        number = self.of.number(self.statistic)
        return None if number is None or number.value is None else 100 * number.value

    @property
    def task(self) -> str:
        """The task that was scored."""
        return self.of.task

    @property
    def name(self) -> str:
        """The task, with what keeps it apart from the task's other scores."""
        return self.task + self.of.about.suffix + ("" if self.is_headline else f" {self.statistic}")

    @property
    def is_headline(self) -> bool:
        """Whether it is the score that tables show."""
        return self.statistic == self.of.statistic


def measured_scores(record: RunRecord) -> Sequence[MeasuredScore]:
    """Return the numbers of a record that papers print: each headline, and what follows it."""
    return [
        MeasuredScore(score, statistic, _choices(score, statistic))
        for score in record.scores
        for statistic in filter(None, (score.statistic, score.about.below))
        if score.number(statistic) is not None
    ]


def _choices(score: Score, statistic: str) -> Mapping[str, str]:
    """Return what fixes a number, by the names of a published setting."""
    signature = Signature.parse(score.signature)
    split = signature.split if score.training is None else "dev" if statistic == score.about.below else "test"
    choices = {"split": split, "metric": _METRICS.get(statistic, statistic), "text": score.text}
    if score.about.by_similarity:
        choices["similarity"] = signature.similarity
    elif score.training is not None:
        choices["classifier"] = score.training.method
    if score.training is None and len(score.subsets) != 1:
        # Over a single subset every aggregation is the same number. (An imported task may name none.)
        choices["aggregation"] = signature.aggregation
    return {**choices, "data": score.data.status}


_FIELDS = ("split", "aggregation", "metric", "similarity", "text")

_CHOICES: Mapping[str, Collection[str]] = {
    "aggregation": AGGREGATIONS,
    "metric": CORRELATIONS,
    "similarity": SIMILARITIES,
    "text": TEXTS,
}
"""What a person can measure by: a published metric may be none of these."""

_CATALOGUED = {"modified": "not the catalogued files", "user": "a file of one's own"}


@dataclass(frozen=True)
class Fit:
    """What a record has for a published value's setting.

    Attributes:
        value: on the scale from 0 to 100; None where it was not measured or is undefined.
        scores: what it is the value, or the mean, of.
        differences: the choices that keep it from meaning what the setting says.
        missing: the tasks that were not measured.
    """

    value: float | None
    scores: tuple[MeasuredScore, ...]
    differences: tuple[FieldDifference, ...] = ()
    missing: tuple[str, ...] = ()


def fitting(setting: "Setting", scores: Sequence[MeasuredScore]) -> Fit:
    """Return what was measured of a setting, most like it: one score, or the mean that an average is of."""
    parts = [(part, _closest(part, scores)) for part in _parts(setting)]
    measured = [(part, score) for part, score in parts if score is not None]
    fitted = tuple(score for _, score in measured)
    gaps = tuple(dict.fromkeys(gap for part, score in measured for gap in _differences(part, score)))
    missing = tuple(part.task for part, score in parts if score is None)
    value = None if missing else plain_mean([score.score for score in fitted])
    return Fit(value, fitted, gaps, missing)


def _parts(setting: "Setting") -> "list[Setting]":
    """Return the settings of the scores that a value is of: itself, or those that an average is the mean of."""
    tasks = AVERAGES.get(setting.task)
    return [setting] if tasks is None else [setting.model_copy(update={"task": task}) for task in tasks]


def open_fields(settings: "Iterable[Setting]", scores: Sequence[MeasuredScore]) -> list[str]:
    """Return what scores match in only because somebody leaves it open, each thing once with its tasks."""
    parts = {part.task: part for setting in settings for part in _parts(setting)}
    tasks: dict[tuple[str, str], list[str]] = {}
    for task, part in parts.items():
        score = _closest(part, scores)
        for field in _open_fields(part, score) if score else ():
            tasks.setdefault(field, []).append(task)
    return [
        f"{name}: {why}" if len(of) == len(parts) else f"{name} ({', '.join(of)}): {why}"
        for (name, why), of in tasks.items()
    ]


def _closest(setting: "Setting", scores: Iterable[MeasuredScore]) -> MeasuredScore | None:
    """Return the score of a setting's task that was taken most like it; None if the task was not measured."""
    of_task = [score for score in scores if score.task == setting.task]
    return min(of_task, key=lambda score: len(_differences(setting, score)), default=None)


def _differences(setting: "Setting", score: MeasuredScore) -> tuple[FieldDifference, ...]:
    """Return the fields that keep a measured score from meaning what a published value does.

    What a paper leaves open and its authors' code does counts as stated; what nobody states, and what an
    imported file does not say, agrees with anything (see `open_fields`).
    """
    fields = [
        FieldDifference(name, here, there, _remedy(name, setting, there))
        for name in _FIELDS
        if (here := score.choices.get(name)) and (there := getattr(setting, name)) and here not in {there, UNKNOWN}
    ]
    if setting.group:
        fields.append(FieldDifference("group", "all of the data", setting.group))
    if (data := _CATALOGUED.get(score.choices["data"])) is not None:
        fields.append(FieldDifference("data", data, "the catalogued ones", "`stsbench data verify` names them"))
    return tuple(fields)


def _remedy(field: str, setting: "Setting", there: str) -> str:
    stated = ["the paper leaves it open, its authors' code does not"] if field in setting.open else []
    if field == "split":
        return "; ".join([*stated, f"measure with --tasks {setting.task}:{there}"])
    return "; ".join([*stated, *([f"measure with --{field} {there}"] if there in _CHOICES[field] else [])])


def _open_fields(setting: "Setting", score: MeasuredScore) -> Iterator[tuple[str, str]]:
    """Yield the fields that match only because somebody leaves them open, each with why, in words."""
    for name in (*_FIELDS, "data"):
        here, there = score.choices.get(name), "" if name == "data" else getattr(setting, name)
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
