"""Checks a run against published rows: finds the scores for a setting, and compares them with the printed ones."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.words import listed
from stsbench.encoders.protocol import WITH_POOLINGS
from stsbench.encoders.use import DEFAULTS, SIGNED, shown
from stsbench.judging.verdicts import CellCheck, Check, FieldDifference
from stsbench.published import catalogue
from stsbench.published.catalogue import (
    PublishedRow,
    checkpoint_of_system,
    checkpoints,
    row,
    rows,
    seeded_systems,
    seeds,
)
from stsbench.published.schema import KnownCheckpoint, PublishedCell, Setting
from stsbench.records.labels import task_labels
from stsbench.records.parts import Score, plain_mean
from stsbench.records.record import RunRecord
from stsbench.records.signature import UNKNOWN, Signature
from stsbench.scoring.settings import AGGREGATIONS, TEXTS
from stsbench.scoring.tasks import STS_TASKS, TRANSFER_TASKS
from stsbench.statistics.correlations import CORRELATIONS
from stsbench.statistics.neighbours import SIMILARITIES

AVERAGES = {"Avg. STS": STS_TASKS, "Avg. transfer": TRANSFER_TASKS}

_METRICS = {"acc": "accuracy", "devacc": "accuracy"}

_FIELDS = ("split", "aggregation", "metric", "similarity", "text")

_OPTIONS: Mapping[str, Collection[str]] = {
    "aggregation": AGGREGATIONS,
    "metric": CORRELATIONS,
    "similarity": SIMILARITIES,
    "text": TEXTS,
}

_OTHER_DATA = {"modified": "modified", "user": "your own"}

Comparable = tuple[PublishedRow, Mapping[tuple[str, str], float]]
"""A row, and its values x 100 by kind and task, or by kind and average if it is over the record's tasks."""

AUTO = "auto"
"""Selects the rows of the run's own checkpoint."""

TOLERANCE = 0.05
"""Default of the allowed difference in points: machines, libraries and rounding differ by less."""

_ROUNDING = 1e-9

_UNSTATED = (
    *(name for name in SIGNED if name not in {"pooling", "max_length", "backend", "normalize"}),
    "postprocessing",
)
"""Settings that few rows state, with the defaults that are assumed."""


@dataclass(frozen=True)
class MeasuredScore:
    """A number in a record of a kind that papers print.

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

    A choice that a paper leaves open but its authors' code fixes counts as stated. A choice that is stated
    nowhere, or that an imported file leaves open, matches any value.

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


def rows_to_check(record: RunRecord, against: str = AUTO) -> list[PublishedRow]:
    """Returns the published rows that a run should match.

    Args:
        record: the run.
        against: `table/row`; a system or the Hub name of its checkpoint, for all rows of it; or `auto` for the
            rows of the run's own checkpoint.

    Raises:
        UserError: if no row is known.
    """
    tasks = {score.task for score in record.scores}

    def measured(candidates: Iterable[PublishedRow]) -> list[PublishedRow]:
        return [row for row in candidates if any(cell.setting.task in tasks for cell in row.cells)]

    if against != AUTO:
        named = row(against)
        if "/" in against and against in rows():
            return [named]
        # The checkpoint may have another row with the transfer tasks.
        expected = sum((entry.expected for entry in checkpoints().values() if named.name in entry.expected), ())
        return measured(rows()[name] for name in dict.fromkeys((named.name, *expected))) or [named]
    known = checkpoint_of_run(record)
    if known is None:
        like = catalogue.checkpoint_named_like(record.model.name)
        hint = (
            f" It is named like {like.system}, but a name does not identify a model."
            if like and like.system
            else ""
        )
        raise UserError(
            f"no published row is known for {record.model.name}: name one of those that `stsbench published list "
            f"rows` lists.{hint}"
        )
    of_checkpoint = [rows()[name] for name in known.expected]
    if not of_checkpoint:
        raise UserError(f"no row of {known.name} is included: {known.note}")
    return measured(of_checkpoint) or of_checkpoint


def checkpoint_of_run(record: RunRecord) -> KnownCheckpoint | None:
    """Returns the checkpoint of a published system that a run measured, identified by weights or whole Hub name.

    If one checkpoint has rows with several poolings, the run's pooling decides.
    """
    model = record.model
    known = catalogue.identified_checkpoint(
        model.name, pooling=model.use.pooling, weights_sha256=model.weights_sha256
    )
    return known if known is not None and known.system else None


def check_published(record: RunRecord, rows: Sequence[PublishedRow], tolerance: float = TOLERANCE) -> Check:
    """Checks a run against published rows.

    A score passes if it is within the tolerance (in points of 100) of the printed value, or rounds to it. Columns
    of differences and counts are skipped.
    """
    if not tolerance >= 0:
        raise UserError(f"a tolerance of {tolerance:g} points: give 0 or more.")
    scores = measured_scores(record)
    cells: list[CellCheck] = []
    settings: list[str] = []
    for expected in rows:
        different, remarks = _checkpoint_compared(expected, record)
        fits = [(cell, fitting(cell.setting, scores)) for cell in expected.cells if is_score(cell)]
        checked = [_check_cell(expected, cell, fit, different, tolerance) for cell, fit in fits]
        compared = [fit for (_, fit), cell in zip(fits, checked, strict=True) if cell.difference is not None]
        settings += [": ".join(open_) for fit in compared for part in fit.parts for open_ in _compared(*part)[1]]
        settings += [*remarks, *_use_remarks(expected, record)]
        cells += checked
    printed = [note for expected in rows for note in (*expected.row.notes, *expected.table.notes)]
    # One line each for settings, files, and notes on the rows.
    lines = "; ".join(dict.fromkeys(settings)), _files_text(rows, record), " ".join(dict.fromkeys(printed))
    names = tuple(expected.name for expected in rows)
    notes = tuple(filter(None, lines))
    return Check(record.model.name, names, "published", tolerance, tuple(cells), notes=notes)


def _check_cell(
    row: PublishedRow, cell: PublishedCell, fit: Fit, of_model: Sequence[FieldDifference], tolerance: float
) -> CellCheck:
    expected = CellCheck(cell.column, cell.score, None, origin=row.name, source=cell.place)
    if cell.score is None:
        return replace(expected, reason="the row has no value")
    if fit.missing:
        return replace(expected, verdict="not measured", reason=f"not measured: {', '.join(fit.missing)}")
    expected = replace(expected, measured=fit.value)
    if different := dict.fromkeys((*fit.differences, *of_model)):
        reason = ", ".join(map(str, different))
        return replace(expected, verdict="not comparable", reason=reason, differences=tuple(different))
    if fit.value is None:
        return replace(expected, verdict="fail", reason="the correlation is undefined (constant similarities)")
    passes = abs(fit.value - cell.score) <= max(tolerance, cell.rounding) + _ROUNDING
    seeds = _seed_scores(row, cell)
    below = None if seeds is None else float((seeds < fit.value).mean())
    return replace(expected, verdict="pass" if passes else "fail", seeds_below=below)


def _checkpoint_compared(row: PublishedRow, record: RunRecord) -> tuple[list[FieldDifference], list[str]]:
    """Returns documented settings of the row's checkpoint that the run did not use, and those that are unknown."""
    model, use = record.model, record.model.use
    stated = None if row.row.variant else checkpoint_of_system(row.row.system)
    here = "" if use.pooling == UNKNOWN else f"; this run uses {use.pooling}"
    if stated is None:
        what = f"a variant ({row.row.variant})" if row.row.variant else "a system without a known checkpoint"
        return [], [f"pooling: not stated, the row is {what}{here}"]
    different, remarks = [], []
    there, length = stated.pooling, stated.max_length
    if model.kind not in WITH_POOLINGS:
        remarks.append(f"pooling: the row uses {there}; the pooling of {model.name} is unknown")
    elif "pooling" in stated.unverified:
        remarks.append(f"pooling: not documented, probably {there}{here}")
    elif use.pooling != there:
        different.append(FieldDifference("pooling", use.pooling, there, f"measure with --pooling {there}"))
    # Another maximum length does not matter if it truncates no sentence.
    is_truncated = any(score.truncated_sentences for score in record.scores)
    if is_truncated and None not in {use.max_length, length} and use.max_length != length:
        remedy = f"measure with --max-length {length}"
        different.append(FieldDifference("max_length", str(use.max_length), str(length), remedy))
    return different, remarks


def _files_text(rows: Sequence[PublishedRow], record: RunRecord) -> str:
    """Returns whether the model's files are those of the rows' checkpoints, where both hashes are known."""
    names: dict[str, list[str]] = {}
    for expected in rows:
        stated, model = checkpoint_of_system(expected.row.system), record.model
        # Other kinds of models have no single hash of weights.
        if stated is None or expected.row.variant or model.kind not in WITH_POOLINGS:
            continue
        for what, is_same, _ in stated.files_compared(model.weights_sha256, model.tokenizer_sha256):
            of = names.setdefault("are the same as" if is_same else "differ from", [])
            of += [what] if what not in of else []
    return "; ".join(f"{listed(of)} {how} those of the published row" for how, of in names.items())


def _use_remarks(row: PublishedRow, record: RunRecord) -> Iterator[str]:
    """Yields the settings of the model that the row does not state, or states otherwise."""
    use, of_row = record.model.use, {"template": row.usage.template, "precision": row.usage.precision}
    one_value = {"template": getattr(use.template, "name", ""), "precision": use.computed_in}
    fields: list[Mapping[str, object]] = [signature.model_fields() | one_value for signature in record.signatures]
    for name in _UNSTATED:
        there = of_row.get(name, "")
        usual = {there, UNKNOWN} if there else {"", None, DEFAULTS.get(name), UNKNOWN}
        # Prompts can differ by task.
        unusual = [value for value in dict.fromkeys(of_task[name] for of_task in fields) if value not in usual]
        if unusual:
            expected = f"the row uses {there}" if there else f"the published row mentions no {name}"
            yield f"{name}: {expected}; this run uses {', '.join(shown(name, value) for value in unusual)}"


def _seed_scores(row: PublishedRow, cell: PublishedCell) -> "pd.Series[float] | None":
    """Returns the scores of known seeds of the row's system in its default configuration, or None."""
    setting, system = cell.setting, row.row.system
    comparable = (setting.metric, setting.split, setting.group, setting.variant) == ("spearman", "test", "", "")
    if not comparable or system not in seeded_systems():
        return None
    return seeds(system).get("Avg." if setting.task == "Avg. STS" else setting.task)
