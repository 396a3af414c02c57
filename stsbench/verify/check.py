"""Is a number right: a run against published rows, cell by cell."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from stsbench.evaluation.tasks import STS_TASKS, TRANSFER_TASKS
from stsbench.foundation.errors import UserError
from stsbench.published import Cell, PublishedRow, Setting
from stsbench.records import RunRecord
from stsbench.verify.check_fields import closest, differences, remarks, told
from stsbench.verify.check_measured import Measured, measured_scores
from stsbench.verify.check_model import model_differences, model_remarks
from stsbench.verify.check_outcome import CellCheck, Check, Difference
from stsbench.verify.check_seeds import share_below, told_place

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
    for row in rows:
        model = model_differences(row, record)
        own = [_check_cell(row, cell, scores, model, tolerance) for cell in row.cells if _is_score(cell)]
        compared = [row.cell(cell.name) for cell in own if cell.difference is not None]
        found = [*_field_notes(compared, scores), *model_remarks(row, record), told_place(row, own)]
        of_row = f"{row.name}: " if len(rows) > 1 else ""
        notes += [of_row + note for note in (*found, *row.row.notes, *row.table.notes) if note]
        cells += own
    names = tuple(row.name for row in rows)
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
    parts = [(setting, closest(setting, scores)) for setting in _parts(cell.setting)]
    if missing := [setting.task for setting, score in parts if score is None]:
        return replace(found, verdict="not measured", reason=f"not measured: {', '.join(missing)}")
    measured = [(setting, score) for setting, score in parts if score is not None]
    values = [score.score for _, score in measured]
    defined = [value for value in values if value is not None]
    value = sum(defined) / len(defined) if len(defined) == len(values) else None
    gaps = (gap for setting, score in measured for gap in differences(setting, score))
    if different := tuple(dict.fromkeys((*gaps, *model))):
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
