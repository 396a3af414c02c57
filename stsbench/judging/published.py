"""Checks a run against published rows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.encoders.protocol import WITH_POOLINGS
from stsbench.encoders.use import USUAL
from stsbench.encoders.use_text import shown
from stsbench.judging.best_of import BestOf
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
        hint = (
            f" It is named like {like.system}, but a name does not identify a model."
            if like and like.system
            else ""
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
        remarks = [*open_fields(settings, scores), *_model_remarks(expected, record)]
        remarks += [*_place_among_seeds(expected, checked), *expected.row.notes, *expected.table.notes]
        of_row = f"{expected.name}: " if len(rows) > 1 else ""
        notes += [of_row + remark for remark in remarks if remark]
        cells += checked
    names = tuple(expected.name for expected in rows)
    return Check(record.model.name, names, "published", tolerance, tuple(cells), tuple(notes))


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


_WITH_POOLING = {*WITH_POOLINGS, "static"}
"""Kinds of models whose pooling is known; that of callables and saved vectors is not."""

_USUAL = {
    "prompt": "",
    "prompts": "",
    "template": "",
    "precision": "fp32",
    "dimensions": None,
    "postprocessing": "",
    "attention": USUAL.attention,
    "attention_mask": USUAL.attention_mask,
}
"""Settings that rows do not state, and their usual values."""


def _checkpoint_of(row: PublishedRow) -> KnownCheckpoint | None:
    return None if row.row.variant else checkpoint_of_system(row.row.system)


def _model_differences(row: PublishedRow, record: RunRecord) -> tuple[FieldDifference, ...]:
    """Returns documented settings of the row's checkpoint that the run did not use."""
    stated, model = _checkpoint_of(row), record.model
    if stated is None:
        return ()
    differences = []
    here, there = model.use.pooling, stated.pooling
    if here != there and "pooling" not in stated.unverified and model.kind in _WITH_POOLING:
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


def _model_remarks(row: PublishedRow, record: RunRecord) -> Iterator[str]:
    """Yields what is unknown or unusual about how the model was used."""
    stated, model, use = _checkpoint_of(row), record.model, record.model.use
    here = "" if use.pooling == UNKNOWN else f"; this run uses {use.pooling}"
    if stated is None:
        what = f"a variant ({row.row.variant})" if row.row.variant else "a system without a known checkpoint"
        yield f"pooling: not stated, the row is of {what}{here}"
    elif model.kind not in _WITH_POOLING:
        yield f"pooling: the row uses {stated.pooling}; the pooling of {model.name} is unknown"
    elif "pooling" in stated.unverified:
        yield f"pooling: not documented, probably {stated.pooling}{here}"
    if stated and _lengths_differ(stated, record) and not _is_truncated(record):
        yield f"max_length: the row uses {stated.max_length}; this run {use.max_length}, and truncates no sentence"
    # Other kinds of models are not hashed by one weights file.
    if stated and model.kind in _WITH_POOLING:
        for what, is_same, sha256 in stated.files_compared(model.weights_sha256, model.tokenizer_sha256):
            same = "same as" if is_same else "different from"
            yield f"{what}: {same} those of the published row (SHA-256 {sha256[:12]}…)"
    # Prompts can differ by task.
    prompts = dict.fromkeys(each.use.prompts or each.use.prompt or "" for each in record.signatures)
    used = {
        "prompt": ", ".join(shown("prompt", text) for text in prompts if isinstance(text, str) and text),
        "prompts": "; ".join(shown("prompts", texts) for texts in prompts if not isinstance(texts, str)),
        "template": getattr(use.template, "name", ""),
        "precision": use.computed_in,
        "dimensions": use.dimensions,
        "postprocessing": model.postprocessing,
        "attention": use.attention,
        "attention_mask": use.attention_mask,
    }
    of_row = {"template": row.usage.template, "precision": row.usage.precision}
    for name, usual in _USUAL.items():
        there = of_row.get(name, "")
        if (chosen := used[name]) not in {there or usual, UNKNOWN}:
            expected = f"the row uses {there}" if there else f"the published row mentions no {name}"
            yield f"{name}: {expected}; this run uses {chosen or 'none'}"


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


def _place_among_seeds(row: PublishedRow, cells: Sequence[CellCheck]) -> Iterator[str]:
    """Yields where the run's average, or its first score, lies among known seeds."""
    seeded = {cell.name: cell for cell in cells if cell.seeds_below is not None}
    published = [row.cell(name) for name in seeded]
    main = next((cell for cell in published if cell.setting.task == "Avg. STS"), next(iter(published), None))
    scores = None if main is None else _seed_scores(row, main)
    if main is None or scores is None:
        return
    cell = seeded[main.column]
    low, high, measured, expected = scores.min(), scores.max(), cell.measured or 0.0, cell.expected or 0.0
    outside = "" if low <= measured <= high else "; this run is outside their range"
    yield (
        f"the row is one training run; {len(scores)} seeds of an independent reproduction (raw text, a slightly "
        f"different protocol) give {cell.name} {scores.mean():.2f} ± {scores.std():.2f}, from {low:.2f} to "
        f"{high:.2f}. {_share(scores < measured)} are below {measured:.2f} (this run), "
        f"{_share(scores < expected)} below {expected:.2f} (published)"
        f"{best_of_seeds(scores.tolist(), expected)}{outside}"
    )


def best_of_seeds(scores: Sequence[float], published: float) -> str:
    """Returns a clause on how many seeds have a published value as their expected best; empty for one.

    >>> best_of_seeds([74.0, 75.0, 76.0], 75.5)
    ', the expected best of 1 or 2'
    """
    typical = BestOf("", "", tuple(scores), published).typical
    if typical is None:
        return ", above the best of all"
    below, above = typical
    return f", the expected best of {below} or {above}" if below else ""


def _share(below: "pd.Series[bool]") -> str:
    return f"{100 * float(below.mean()):.0f} %"
