"""Do a published value and a measured one mean the same? Field by field, as in the signature."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from stsbench.base.errors import UserError
from stsbench.checking.measured import Measured, measured_scores
from stsbench.checking.outcome import CellCheck, Check, Difference
from stsbench.published.catalogue import PublishedRow, checkpoint, checkpoints, row, rows
from stsbench.published.measured import seeded_systems, seeds
from stsbench.published.schema import Cell, Checkpoint, Setting
from stsbench.records.record import RunRecord
from stsbench.records.signature import UNKNOWN
from stsbench.scoring.protocols import AGGREGATIONS, TEXTS
from stsbench.scoring.tasks import STS_TASKS, TRANSFER_TASKS
from stsbench.statistics.correlations import CORRELATIONS
from stsbench.statistics.similarity import SIMILARITIES

if TYPE_CHECKING:
    import pandas as pd

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


_POOLED_HERE = {"transformer", "sentence-transformers", "static"}
"""Kinds of models whose pooling is known: of a callable, or of saved vectors, it is not."""

_UNSTATED = {"prompt": "", "precision": "fp32", "dimensions": None, "postprocessing": ""}
"""What no row states, and what is usual: anything else is remarked on."""


def checkpoint_of(row: PublishedRow) -> Checkpoint | None:
    """Return how the system of a row is used; None if that is not known, or the row is of a variant of it."""
    if row.row.variant:
        return None
    return next((entry for entry in checkpoints().values() if entry.system == row.row.system), None)


def model_differences(row: PublishedRow, record: RunRecord) -> tuple[Difference, ...]:
    """Return in what the model was used otherwise than for the row, of what a document states."""
    stated, model = checkpoint_of(row), record.model
    if stated is None:
        return ()
    found = []
    verified = "pooling" not in stated.unverified and model.kind in _POOLED_HERE
    if verified and model.pooling != stated.pooling:
        found.append(
            Difference("pooling", model.pooling, stated.pooling, f"measure with --pooling {stated.pooling}")
        )
    if _length_matters(stated, record):
        there = str(stated.max_length)
        found.append(Difference("max_length", str(model.max_length), there, f"measure with --max-length {there}"))
    return tuple(found)


def model_remarks(row: PublishedRow, record: RunRecord) -> Iterator[str]:
    """Yield what is to be known about how the model was used: what is open, and what is unusual."""
    stated, model = checkpoint_of(row), record.model
    here = "" if model.pooling == UNKNOWN else f"; {model.pooling} here"
    if stated is None:
        what = f"a variant ({row.row.variant})" if row.row.variant else "a system without a known checkpoint"
        yield f"pooling: the row is of {what} and states none{here}"
    elif model.kind not in _POOLED_HERE:
        yield f"pooling: {stated.pooling} for the row; how {model.name} pools is not known"
    elif "pooling" in stated.unverified:
        yield f"pooling: no document gives the row's, {stated.pooling} is likely{here}"
    if stated and _lengths_differ(stated, record) and not _length_matters(stated, record):
        yield f"max_length: {stated.max_length} for the row; {model.max_length} here, where no sentence was cut"
    if stated and stated.weights_sha256 and model.weights_sha256:
        same = "the" if model.weights_sha256 == stated.weights_sha256 else "other weights than the"
        yield f"weights: {same} ones that the row was taken with (SHA-256 {stated.weights_sha256[:12]}…)"
    for name, usual in _UNSTATED.items():
        if (chosen := getattr(model, name)) not in {usual, UNKNOWN}:
            yield f"{name}: the row states none; {chosen} here"


def _lengths_differ(stated: Checkpoint, record: RunRecord) -> bool:
    here, there = record.model.max_length, stated.max_length
    return here is not None and there is not None and here != there


def _length_matters(stated: Checkpoint, record: RunRecord) -> bool:
    """Return whether the lengths differ and a sentence was cut here: where none was, longer reads the same."""
    return _lengths_differ(stated, record) and any(part.truncated_sentences for part in record.parts)


AUTO = "auto"


def rows_to_check(record: RunRecord, against: str = AUTO) -> list[PublishedRow]:
    """Return the rows that a run should reproduce.

    Args:
        record: the run.
        against: `table/row`; a system or the Hub name of its checkpoint, which stands for all rows to expect of
            it; or `auto` for those of the run's own checkpoint.

    Raises:
        UserError: if there is no such row, or none is known for the run's checkpoint.
    """
    if against != AUTO:
        named = row(against)
        return [named] if "/" in against and against in rows() else _measured(_of_system(named), record) or [named]
    known = known_checkpoint(record)
    if known is None:
        raise UserError(
            f"no published row is known for {record.model.name}: name one with --against "
            "(`stsbench published list rows` lists them)."
        )
    expected = [rows()[name] for name in known.expected]
    if not expected:
        raise UserError(f"no row of {known.name} is published in a document at hand: {known.note}")
    return _measured(expected, record) or expected


def known_checkpoint(record: RunRecord) -> Checkpoint | None:
    """Return the known checkpoint that a run measured, by its Hub name or by a folder that bears it.

    Where one checkpoint has rows with several poolings, the run's own pooling decides.
    """
    name = record.model.name.rstrip("/")
    last = PurePath(name).name.casefold()
    known = [entry for entry in checkpoints().values() if entry.hub]
    same = [entry for entry in known if entry.hub.rpartition("/")[2].casefold() == last]
    if not same:
        try:
            return checkpoint(name)
        except UserError:
            return None
    return next((entry for entry in same if entry.pooling == record.model.pooling), same[0])


def _of_system(named: PublishedRow) -> list[PublishedRow]:
    """Return the row, and the others to expect of the same checkpoint (of the transfer tasks, say)."""
    expected = [entry.expected for entry in checkpoints().values() if named.name in entry.expected]
    return [named, *(rows()[name] for name in dict.fromkeys(sum(expected, ())) if name != named.name)]


def _measured(found: Iterable[PublishedRow], record: RunRecord) -> list[PublishedRow]:
    """Return those rows that have a value for a task of the record."""
    tasks = {part.task for part in record.parts}
    return [row for row in found if any(cell.setting.task in tasks for cell in row.cells)]


_COLUMNS = {"Avg. STS": "Avg."}
"""Where the seeds' columns are not called as the task is."""


def share_below(row: PublishedRow, cell: Cell, measured: float) -> float | None:
    """Return the share of known seeds that score lower than a run; None where no seeds are known.

    Seeds are those of the row's own system in its own configuration, by Spearman on test.

    >>> from stsbench.published.catalogue import row
    >>> average = row("unsup-simcse-bert-base")
    >>> share_below(average, average.cell("Avg."), 76.25)
    0.9
    """
    setting, system = cell.setting, row.row.system
    comparable = (setting.metric, setting.split, setting.group, setting.variant) == ("spearman", "test", "", "")
    if not comparable or system not in seeded_systems():
        return None
    column = _COLUMNS.get(setting.task, setting.task)
    scores = seeds(system)
    return float((scores[column] < measured).mean()) if column in scores else None


def told_place(row: PublishedRow, cells: Sequence[CellCheck]) -> str:
    """Return in a sentence where the run lies among the seeds; empty where none are known.

    The average is told of if it was measured, else the first score that was.
    """
    known = [cell for cell in cells if cell.seeds_below is not None and cell.measured is not None]
    if not known:
        return ""
    cell = next((cell for cell in known if row.cell(cell.name).setting.task == "Avg. STS"), known[0])
    task = row.cell(cell.name).setting.task
    scores = seeds(row.row.system)[_COLUMNS.get(task, task)]
    low, high, measured, expected = scores.min(), scores.max(), cell.measured or 0.0, cell.expected or 0.0
    outside = "" if low <= measured <= high else "; the run lies outside their range"
    return (
        f"the row is one training run: in {len(scores)} of an independent reproduction that differ in the seed "
        f"(raw text: close to the papers' protocol, not the same) {cell.name} is {scores.mean():.2f} ± "
        f"{scores.std():.2f}, from {low:.2f} to {high:.2f}; {_share(scores < measured)} are below the "
        f"{measured:.2f} measured here, {_share(scores < expected)} below the {expected:.2f} published{outside}"
    )


def _share(below: "pd.Series[bool]") -> str:
    return f"{100 * float(below.mean()):.0f} %"


TOLERANCE = 0.05
"""How many points a score may be off by default: what another machine, library or rounding can do."""

AVERAGES = {"Avg. STS": STS_TASKS, "Avg. transfer": TRANSFER_TASKS}
"""What published averages are the mean of."""

_NOISE = 1e-9


def check_published(record: RunRecord, rows: Sequence[PublishedRow], tolerance: float = TOLERANCE) -> Check:
    """Compare a run with published rows.

    A score passes if it is within the tolerance of the printed value, or prints as that does: 82.449 is 82.4.
    Columns of differences and of counts are not looked at.

    Args:
        record: the run.
        rows: what it should reproduce.
        tolerance: how many points (of 100) a score may be off.

    Raises:
        UserError: if the tolerance is no number of points.
    """
    if not tolerance >= 0:
        raise UserError(f"a tolerance of {tolerance:g} points: give 0 or more.")
    scores = measured_scores(record)
    cells: list[CellCheck] = []
    notes: list[str] = []
    for expected in rows:
        model = model_differences(expected, record)
        own = [_check_cell(expected, cell, scores, model, tolerance) for cell in expected.cells if _is_score(cell)]
        compared = [expected.cell(cell.name) for cell in own if cell.difference is not None]
        found = [*_field_notes(compared, scores), *model_remarks(expected, record), told_place(expected, own)]
        of_row = f"{expected.name}: " if len(rows) > 1 else ""
        notes += [of_row + note for note in (*found, *expected.row.notes, *expected.table.notes) if note]
        cells += own
    names = tuple(expected.name for expected in rows)
    return Check(record.model.name, names, "published", tolerance, tuple(cells), tuple(notes))


def _is_score(cell: Cell) -> bool:
    return cell.setting.task != "delta" and cell.setting.unit != "pairs"


def _check_cell(
    row: PublishedRow, cell: Cell, scores: Sequence[Measured], model: tuple[Difference, ...], tolerance: float
) -> CellCheck:
    source = f"{cell.file}, line {cell.line}"
    found = CellCheck(cell.column, cell.score, None, "no value", cell.how, origin=row.name, source=source)
    if cell.score is None:
        return found if found.reason else replace(found, reason="the paper prints no value")
    fit = fitting(cell.setting, scores)
    if fit.missing:
        return replace(found, verdict="not measured", reason=f"not measured: {', '.join(fit.missing)}")
    value = fit.value
    if different := tuple(dict.fromkeys((*fit.differences, *model))):
        reason = told(different)
        return replace(found, measured=value, verdict="not comparable", reason=reason, differences=different)
    if value is None:
        return replace(found, verdict="fail", reason="the correlation is undefined (constant similarities)")
    # A value passes if it prints as the published one does, too.
    passes = abs(value - cell.score) <= max(tolerance, cell.rounding) + _NOISE
    return replace(
        found,
        measured=value,
        verdict="pass" if passes else "fail",
        reason=f"the printed value was restored: {cell.how}" if cell.status in {"restored", "derived"} else "",
        seeds_below=share_below(row, cell, value),
    )


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
    scores: tuple[Measured, ...]
    differences: tuple[Difference, ...] = ()
    missing: tuple[str, ...] = ()


def fitting(setting: Setting, scores: Sequence[Measured]) -> Fit:
    """Return what was measured of a setting, most like it: one score, or the mean that an average is of."""
    parts = [(part, closest(part, scores)) for part in _parts(setting)]
    measured = [(part, score) for part, score in parts if score is not None]
    found = tuple(score for _, score in measured)
    gaps = tuple(dict.fromkeys(gap for part, score in measured for gap in differences(part, score)))
    if missing := tuple(part.task for part, score in parts if score is None):
        return Fit(None, found, gaps, missing)
    defined = [score.score for score in found if score.score is not None]
    return Fit(sum(defined) / len(defined) if len(defined) == len(found) else None, found, gaps)


def _parts(setting: Setting) -> list[Setting]:
    """Return the settings of the scores that a value is of: itself, or those that an average is the mean of."""
    tasks = AVERAGES.get(setting.task)
    return [setting] if tasks is None else [setting.model_copy(update={"task": task}) for task in tasks]


def _field_notes(compared: Iterable[Cell], scores: Sequence[Measured]) -> list[str]:
    """Return what compared cells match in only because somebody leaves it open, each thing once with its tasks."""
    settings = {setting.task: setting for cell in compared for setting in _parts(cell.setting)}
    tasks: dict[tuple[str, str], list[str]] = {}
    for task, setting in settings.items():
        score = closest(setting, scores)
        for remark in remarks(setting, score) if score else ():
            tasks.setdefault(remark, []).append(task)
    return [
        f"{name}: {why}" if len(of) == len(settings) else f"{name} ({', '.join(of)}): {why}"
        for (name, why), of in tasks.items()
    ]
