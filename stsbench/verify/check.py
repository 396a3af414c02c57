"""Is a number right: a run against published rows, cell by cell."""

from collections.abc import Sequence

from stsbench.evaluation.tasks import STS_TASKS, TRANSFER_TASKS
from stsbench.foundation.errors import UserError
from stsbench.published import Cell, PublishedRow, Setting
from stsbench.records import RunRecord
from stsbench.verify.check_fields import closest, differences, remarks, told
from stsbench.verify.check_measured import Measured, measured_scores
from stsbench.verify.check_model import model_differences, model_remarks
from stsbench.verify.check_outcome import CellCheck, Check, Difference, Verdict
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
        compared = {cell.name for cell in own if cell.difference is not None}
        found = [*_field_notes(row, compared, scores), *model_remarks(row, record), told_place(row, own)]
        of_row = f"{row.name}: " if len(rows) > 1 else ""
        notes += [of_row + note for note in (*found, *row.row.notes, *row.table.notes) if note]
        cells += own
    return Check(
        record.model.name, tuple(row.name for row in rows), "published", tolerance, tuple(cells), tuple(notes)
    )


def _is_score(cell: Cell) -> bool:
    return cell.setting.task != "delta" and cell.setting.unit != "pairs"


def _check_cell(
    row: PublishedRow, cell: Cell, scores: Sequence[Measured], model: tuple[Difference, ...], tolerance: float
) -> CellCheck:
    def found(
        verdict: Verdict,
        reason: str = "",
        measured: float | None = None,
        different: tuple[Difference, ...] = (),
        below: float | None = None,
    ) -> CellCheck:
        source = f"{cell.file}, line {cell.line}"
        return CellCheck(cell.column, cell.score, measured, verdict, reason, different, row.name, source, below)

    if cell.score is None:
        return found("no value", cell.how or "the paper prints no value")
    parts = [(setting, closest(setting, scores)) for setting in _parts(cell.setting)]
    missing = [setting.task for setting, score in parts if score is None]
    if missing:
        return found("not measured", f"{', '.join(missing)} was not measured")
    measured = [(setting, score) for setting, score in parts if score is not None]
    different = tuple(
        dict.fromkeys((*(gap for setting, score in measured for gap in differences(setting, score)), *model))
    )
    values = [score.score for _, score in measured]
    defined = [value for value in values if value is not None]
    value = sum(defined) / len(defined) if len(defined) == len(values) else None
    if different:
        return found("not comparable", told(different), value, different)
    if value is None:
        return found("fail", "the correlation is undefined (constant similarities)")
    gap = abs(value - cell.score)
    verdict: Verdict = "pass" if gap <= max(tolerance, cell.rounding) + _NOISE else "fail"
    reason = f"the printed value was restored: {cell.how}" if cell.status in {"restored", "derived"} else ""
    return found(verdict, reason, value, below=share_below(row, cell, value))


def _parts(setting: Setting) -> list[Setting]:
    """Return the settings of the scores that a value is of: itself, or those that an average is the mean of."""
    tasks = AVERAGES.get(setting.task)
    return [setting] if tasks is None else [setting.model_copy(update={"task": task}) for task in tasks]


def _field_notes(row: PublishedRow, compared: set[str], scores: Sequence[Measured]) -> list[str]:
    """Return what the compared cells of a row match in only because somebody leaves it open, each thing once."""
    of_tasks = [cell for cell in row.cells if cell.column in compared and cell.setting.task not in AVERAGES]
    tasks: dict[tuple[str, str], list[str]] = {}
    for cell in of_tasks:
        score = closest(cell.setting, scores)
        for remark in remarks(cell.setting, score) if score else ():
            tasks.setdefault(remark, []).append(cell.column)
    return [
        f"{name}: {why}" if len(of) == len(of_tasks) else f"{name} ({', '.join(of)}): {why}"
        for (name, why), of in tasks.items()
    ]
