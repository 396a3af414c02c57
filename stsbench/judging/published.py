"""Checks a run against published rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.encoders.protocol import WITH_POOLINGS
from stsbench.encoders.use import DEFAULTS
from stsbench.encoders.use_text import shown
from stsbench.judging.matching import MeasuredScore, fitting, is_score, measured_scores, open_fields
from stsbench.judging.verdicts import CellCheck, Check, FieldDifference, differences_text, within
from stsbench.published import catalogue
from stsbench.published.catalogue import PublishedRow, checkpoint_of_system, checkpoints, row, rows
from stsbench.published.measured import seeded_systems, seeds
from stsbench.published.schema import KnownCheckpoint, PublishedCell
from stsbench.records.record import RunRecord
from stsbench.records.signature import UNKNOWN

AUTO = "auto"
"""Selects the rows of the run's own checkpoint."""

TOLERANCE = 0.05
"""Default of the allowed difference in points: machines, libraries and rounding differ by less."""


def rows_to_check(record: RunRecord, against: str = AUTO) -> list[PublishedRow]:
    """Returns the published rows that a run should match.

    Args:
        record: the run.
        against: `table/row`; a system or the Hub name of its checkpoint, for all rows of it; or `auto` for the
            rows of the run's own checkpoint.

    Raises:
        UserError: if no row is known.
    """
    if against != AUTO:
        named = row(against)
        return [named] if "/" in against and against in rows() else _measured(_of_system(named), record) or [named]
    known = known_checkpoint(record)
    if known is None:
        like = catalogue.checkpoint_named_like(record.model.name)
        is_like = like is not None and like.system
        hint = (
            f" It is named like {like.system}, but a name does not identify a model." if like and is_like else ""
        )
        raise UserError(
            f"no published row is known for {record.model.name}: name one with --against "
            f"(`stsbench published list rows` lists them).{hint}"
        )
    expected = [rows()[name] for name in known.expected]
    if not expected:
        raise UserError(f"no row of {known.name} is included: {known.note}")
    return _measured(expected, record) or expected


def known_checkpoint(record: RunRecord) -> KnownCheckpoint | None:
    """Returns the checkpoint of a published system that a run measured, identified by weights or whole Hub name.

    If one checkpoint has rows with several poolings, the run's pooling decides.
    """
    model = record.model
    known = catalogue.identified_checkpoint(
        model.name, pooling=model.use.pooling, weights_sha256=model.weights_sha256
    )
    return known if known is not None and known.system else None


def _of_system(named: PublishedRow) -> list[PublishedRow]:
    """Returns the row and the other rows of the same checkpoint, such as those of the transfer tasks."""
    expected = [entry.expected for entry in checkpoints().values() if named.name in entry.expected]
    return [named, *(rows()[name] for name in dict.fromkeys(sum(expected, ())) if name != named.name)]


def _measured(candidates: Iterable[PublishedRow], record: RunRecord) -> list[PublishedRow]:
    tasks = {score.task for score in record.scores}
    return [row for row in candidates if any(cell.setting.task in tasks for cell in row.cells)]


def check_published(record: RunRecord, rows: Sequence[PublishedRow], tolerance: float = TOLERANCE) -> Check:
    """Checks a run against published rows.

    A score passes if it is within the tolerance (in points of 100) of the printed value, or rounds to it. Columns
    of differences and counts are skipped.
    """
    if not tolerance >= 0:
        raise UserError(f"a tolerance of {tolerance:g} points: give 0 or more.")
    scores = measured_scores(record)
    cells: list[CellCheck] = []
    notes: list[str] = []
    for expected in rows:
        model = _model_differences(expected, record)
        checked = [
            _check_cell(expected, cell, scores, model, tolerance) for cell in expected.cells if is_score(cell)
        ]
        settings = [expected.cell(cell.name).setting for cell in checked if cell.difference is not None]
        remarks = [
            *open_fields(settings, scores),
            *_checkpoint_remarks(expected, record),
            *_use_remarks(expected, record),
            *_seed_remarks(expected, checked),
            *expected.row.notes,
            *expected.table.notes,
        ]
        of_row = f"{expected.name}: " if len(rows) > 1 else ""
        notes += [of_row + remark for remark in remarks]
        cells += checked
    names = tuple(expected.name for expected in rows)
    return Check(record.model.name, names, "published", tolerance, tuple(cells), notes=tuple(notes))


def _check_cell(
    row: PublishedRow,
    cell: PublishedCell,
    scores: Sequence[MeasuredScore],
    model: tuple[FieldDifference, ...],
    tolerance: float,
) -> CellCheck:
    expected = CellCheck(cell.column, cell.score, None, "no value", origin=row.name, source=cell.place)
    if cell.score is None:
        return replace(expected, reason="the row has no value")
    fit = fitting(cell.setting, scores)
    if fit.missing:
        return replace(expected, verdict="not measured", reason=f"not measured: {', '.join(fit.missing)}")
    value = fit.value
    if different := tuple(dict.fromkeys((*fit.differences, *model))):
        reason = differences_text(different)
        return replace(expected, verdict="not comparable", measured=value, reason=reason, differences=different)
    if value is None:
        return replace(expected, verdict="fail", reason="the correlation is undefined (constant similarities)")
    passes = within(abs(value - cell.score), max(tolerance, cell.rounding))
    of_seeds = _seed_scores(row, cell)
    return replace(
        expected,
        measured=value,
        verdict="pass" if passes else "fail",
        seeds_below=None if of_seeds is None else float((of_seeds < value).mean()),
    )


def _checkpoint_of(row: PublishedRow) -> KnownCheckpoint | None:
    return None if row.row.variant else checkpoint_of_system(row.row.system)


def _model_differences(row: PublishedRow, record: RunRecord) -> tuple[FieldDifference, ...]:
    """Returns documented settings of the row's checkpoint that the run did not use."""
    stated, model = _checkpoint_of(row), record.model
    if stated is None:
        return ()
    differences = []
    here, there = model.use.pooling, stated.pooling
    if here != there and "pooling" not in stated.unverified and model.kind in WITH_POOLINGS:
        differences.append(FieldDifference("pooling", here, there, f"measure with --pooling {there}"))
    if _lengths_differ(stated, record) and _is_truncated(record):
        here, there = str(model.use.max_length), str(stated.max_length)
        differences.append(FieldDifference("max_length", here, there, f"measure with --max-length {there}"))
    return tuple(differences)


def _lengths_differ(stated: KnownCheckpoint, record: RunRecord) -> bool:
    here, there = record.model.use.max_length, stated.max_length
    return here is not None and there is not None and here != there


def _is_truncated(record: RunRecord) -> bool:
    return any(score.truncated_sentences for score in record.scores)


def _checkpoint_remarks(row: PublishedRow, record: RunRecord) -> Iterator[str]:
    """Yields what is unknown about the row's checkpoint, and whether the run used its files."""
    stated, model, use = _checkpoint_of(row), record.model, record.model.use
    here = "" if use.pooling == UNKNOWN else f"; this run uses {use.pooling}"
    if stated is None:
        what = f"a variant ({row.row.variant})" if row.row.variant else "a system without a known checkpoint"
        yield f"pooling: not stated, the row is of {what}{here}"
        return
    if _lengths_differ(stated, record) and not _is_truncated(record):
        yield f"max_length: the row uses {stated.max_length}; this run {use.max_length}, and truncates no sentence"
    if model.kind not in WITH_POOLINGS:
        yield f"pooling: the row uses {stated.pooling}; the pooling of {model.name} is unknown"
        return
    if "pooling" in stated.unverified:
        yield f"pooling: not documented, probably {stated.pooling}{here}"
    for what, is_same, sha256 in stated.files_compared(model.weights_sha256, model.tokenizer_sha256):
        same = "same as" if is_same else "different from"
        yield f"{what}: {same} those of the published row (SHA-256 {sha256[:12]}…)"


_UNSTATED = (
    "prompt",
    "prompts",
    "template",
    "precision",
    "dimensions",
    "postprocessing",
    "attention",
    "attention_mask",
)
"""Settings that few rows state; their defaults are assumed."""


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


_SEED_COLUMNS = {"Avg. STS": "Avg."}
"""Columns of the seeds whose names differ from the task's."""


def _seed_scores(row: PublishedRow, cell: PublishedCell) -> "pd.Series[float] | None":
    """Returns the scores of known seeds of the row's system in its own configuration, or None.

    >>> from stsbench.published.catalogue import row
    >>> average = row("unsup-simcse-bert-base")
    >>> float((_seed_scores(average, average.cell("Avg.")) < 76.25).mean())
    0.9
    """
    setting, system = cell.setting, row.row.system
    comparable = (setting.metric, setting.split, setting.group, setting.variant) == ("spearman", "test", "", "")
    if not comparable or system not in seeded_systems():
        return None
    return seeds(system).get(_SEED_COLUMNS.get(setting.task, setting.task))


def _seed_remarks(row: PublishedRow, cells: Sequence[CellCheck]) -> Iterator[str]:
    """Yields the spread of the known seeds on the average, or on the first score."""
    seeded = [row.cell(cell.name) for cell in cells if cell.seeds_below is not None]
    main = next((cell for cell in seeded if cell.setting.task == "Avg. STS"), next(iter(seeded), None))
    if main is not None and (scores := _seed_scores(row, main)) is not None:
        yield (
            f"the row is one training run; {len(scores)} seeds of an independent reproduction give {main.column} "
            f"{scores.mean():.2f} ± {scores.std():.2f}, from {scores.min():.2f} to {scores.max():.2f}."
        )
