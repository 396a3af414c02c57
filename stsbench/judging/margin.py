"""Is a model no worse than its predecessor, by more than a margin: a gate that knows what the pairs can show.

That a difference is not significant does not show that there is none. Here the loss L (the baseline's score less
the run's) is held against a margin m: no worse if the upper one-sided bound of L is below m, worse if the lower
one is above it, else these pairs cannot tell (Blackwelder 1982). A gate that passes only if every score passes
needs no correction for many scores; one that fails if any does needs Holm's.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from stsbench.base.errors import UserError
from stsbench.base.words import rounded_up
from stsbench.judging.aligned import AlignedScores, aligned_scores
from stsbench.judging.baseline import check_baseline
from stsbench.judging.differences import FEWEST
from stsbench.judging.verdicts import CellCheck, Check
from stsbench.records.kinds import KINDS
from stsbench.records.record import RunRecord
from stsbench.statistics.dependence import DEPENDENCE, Dependence, Variance
from stsbench.statistics.intervals import lower_bound, one_sided_p, pairs_needed, upper_bound
from stsbench.statistics.significance import holm

LEVEL = 0.95
"""Of the one-sided bounds."""

MARGIN = 0.5
"""Points of 100: what a lower precision may lose against fp32 unless a person says otherwise."""

_CONTRAST = (1.0, -1.0)
"""The loss: the baseline's score less the run's."""


def check_margin(
    record: RunRecord,
    baseline: RunRecord,
    margin: float,
    *,
    interval: Dependence = DEPENDENCE,
    level: float = LEVEL,
) -> Check:
    """Tell whether a run is no worse than a predecessor's by more than a margin, on the same pairs and items.

    Everything that was measured for the baseline must have been measured by the same protocol on the same items;
    averages are looked at too. Classifiers are compared by the share of their items that are right.

    Args:
        record: the run.
        baseline: its predecessor's.
        margin: how many points (of 100) a score may be lower, above 0.
        interval: how pairs that share sentences are seen.
        level: of the one-sided bounds; 1 - level is the chance to pass a model whose loss is the margin.

    Raises:
        UserError: if the margin is no positive number, or there are no pairs to compare.
    """
    require_margin(margin)
    compared = check_baseline(record, baseline, math.inf)
    if compared.of("not comparable"):
        return replace(compared, kind="margin", allowed=margin)
    imported = [side for side in (record, baseline) if side.is_imported]
    if imported:
        raise UserError(
            f"{imported[0].model.name} was imported, with scores alone, and --margin compares pairs: measure "
            "it, or use --max-drop."
        )
    tasks, notes = aligned_scores({"the baseline": baseline, "the run": record})
    cells = judged(tasks, margin, interval=interval, level=level)
    # What only the run holds is none of the baseline's business.
    notes = tuple(note for note in notes if not note.startswith("not all records hold"))
    return replace(
        compared, kind="margin", allowed=margin, level=level, cells=tuple(cells), notes=(*compared.notes, *notes)
    )


def require_margin(margin: float) -> None:
    """Refuse a margin that no number of pairs could show to be kept.

    Args:
        margin: how many points (of 100) a score may be lower.

    Raises:
        UserError: if it is no positive number.
    """
    if not (math.isfinite(margin) and margin > 0):
        raise UserError(
            f"a margin of {margin:g} points: give more than 0, as no number of pairs shows that nothing was lost."
        )


def judged(
    tasks: Sequence[AlignedScores], margin: float, *, interval: Dependence = DEPENDENCE, level: float = LEVEL
) -> list[CellCheck]:
    """Return the verdict on each task and average.

    Args:
        tasks: of two models, the predecessor first.
        margin: in points (of 100).
        interval: how pairs that share sentences are seen.
        level: of the one-sided bounds.
    """
    losses = [_loss(task, interval) for task in tasks]
    adjusted = holm([one_sided_p(loss - margin / 100, variance) for loss, variance in losses])
    return [
        _cell(task, loss, variance, margin / 100, level, worse=bool(p < 1 - level))
        for task, (loss, variance), p in zip(tasks, losses, adjusted, strict=True)
    ]


def _loss(task: AlignedScores, interval: Dependence) -> tuple[float, Variance]:
    old, new = task.scores.tolist()
    return old - new, task.variance_of(_CONTRAST, interval)


def _cell(
    task: AlignedScores, loss: float, variance: Variance, margin: float, level: float, *, worse: bool
) -> CellCheck:
    old, new = (100 * task.scores).tolist()
    cell, unit = CellCheck(task.task, old, new, "cannot tell"), KINDS[task.kind].unit
    if variance.value <= 0 and loss == 0:
        # Two models that order all pairs alike.
        return replace(cell, verdict="no worse", loss_low=0.0, loss_high=0.0)
    if variance.value <= 0 or task.size < FEWEST:
        return replace(cell, reason=f"its {task.size} {unit} show no spread: more {unit} would tell")
    low, high = lower_bound(loss, variance, level), upper_bound(loss, variance, level)
    cell = replace(cell, loss_low=100 * low, loss_high=100 * high)
    if high < margin:
        return replace(cell, verdict="no worse")
    if worse:
        return replace(cell, verdict="worse")
    return replace(cell, reason=_remedy(task, loss, high, margin))


def _remedy(task: AlignedScores, loss: float, high: float, margin: float) -> str:
    """Return in words what would let the gate tell."""
    what = KINDS[task.kind].unit
    passing = f"a margin above {math.ceil(1e4 * high) / 100:.2f} would pass"
    gap = abs(margin - loss)
    needed = pairs_needed(task.size, gap, high - loss)
    if needed > 1e9:
        return f"{passing}; no number of {what} would tell a loss of the margin itself"
    verdict = "no worse" if loss < margin else "worse"
    about = f"about {rounded_up(needed):,} {what} like these {task.size:,} would tell"
    return f"{passing}; {about} ({verdict}, if the loss stays)"
