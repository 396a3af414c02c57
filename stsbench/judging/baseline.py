"""Checks a run against an earlier run, by a statistical test with a margin.

A difference that is not significant may still be large. So a margin m is tested: the run is within the margin if
the upper one-sided bound of its loss is below m, and worse if the lower bound is above m; otherwise there are too
few pairs to decide (Blackwelder 1982). A gate that passes only if every score passes needs no correction for many
scores. It fails if any does, so the lower bounds of k scores hold together, at 1 - (1 - level) / k (Bonferroni).
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from stsbench.base.errors import UserError
from stsbench.base.words import listed, rounded_up
from stsbench.judging.aligned import FEWEST, MANY, AlignedScores, aligned_scores
from stsbench.judging.verdicts import CellCheck, Check
from stsbench.records.kinds import KINDS
from stsbench.records.labels import model_labels, task_labels
from stsbench.records.record import RunRecord
from stsbench.scoring.settings import require_margin
from stsbench.statistics import DEPENDENCE, LEVEL, Dependence
from stsbench.statistics.estimate import Estimate, verdict
from stsbench.statistics.intervals import lower_bound, pairs_needed, upper_bound

MARGIN = 0.3
"""Default of the margin, in points."""


def check_baseline(
    record: RunRecord, baseline: RunRecord, margin: float = MARGIN, *, interval: Dependence = DEPENDENCE
) -> Check:
    """Tests whether a run loses less than a margin in points against an earlier run, on the same pairs and items.

    All scores of the baseline must be measured in the run, by the same protocol on the same items; averages are
    checked, too. How the models were used may differ. Classifiers are compared by the share of correct items.
    """
    require_margin(margin)
    # Tasks that only the run has do not matter here.
    tasks, _ = aligned_scores({"the baseline": baseline, "the run": record})
    measured = {score.key for score in record.scores}
    labels = zip(baseline.scores, task_labels(baseline.scores), strict=True)
    if missing := [label for score, label in labels if score.key not in measured]:
        raise UserError(f"the run has no score on {listed(missing)}, which the baseline has: measure it, too.")
    new, old = model_labels([record.model, baseline.model])
    name = f"the baseline {old}" + (f" in {baseline.folder}" if baseline.folder else "")
    return Check(new, (name,), "margin", margin, tuple(judged(tasks, margin, interval=interval)))


def judged(
    tasks: Sequence[AlignedScores], margin: float, *, interval: Dependence = DEPENDENCE, level: float = LEVEL
) -> list[CellCheck]:
    """Tests each task and average of two models, the baseline first; the margin is in points.

    A model that loses the margin passes with a probability of at most 1 - level, and one that loses no more fails
    with a probability of at most 1 - level.
    """
    losses = [task.estimate((1.0, -1.0), interval) for task in tasks]
    simultaneous = 1 - (1 - level) / max(1, sum(loss.variance.value > 0 for loss in losses))
    return [
        _judged(task, loss, margin / 100, (simultaneous, level)) for task, loss in zip(tasks, losses, strict=True)
    ]


def _judged(task: AlignedScores, loss: Estimate, margin: float, levels: tuple[float, float]) -> CellCheck:
    old, new = (100 * task.scores).tolist()
    cell, unit = CellCheck(task.task, old, new, "undecided"), KINDS[task.kind].unit
    if loss.value == loss.variance.value == 0:
        # Both models order all pairs in the same way.
        return replace(cell, verdict="within margin", loss_low=0.0, loss_high=0.0)
    if not loss.variance.value > 0 or task.size < FEWEST:
        return replace(cell, reason=f"{task.size} {unit} are too few: measure on more")
    low = lower_bound(loss.value, loss.variance, levels[0])
    high = upper_bound(loss.value, loss.variance, levels[1])
    decided = verdict(-high, -low, margin)
    cell = replace(cell, verdict=decided, loss_low=100 * low, loss_high=100 * high)
    if decided != "undecided":
        return cell
    passing = f"passes at a margin above {math.ceil(1e4 * high) / 100:.2f}"
    likely, reach = ("within margin", high - loss.value) if loss.value < margin else ("worse", loss.value - low)
    needed = pairs_needed(task.size, abs(margin - loss.value), reach)
    if needed > MANY:
        return replace(cell, reason=f"{passing}; the loss is too close to the margin for any number of {unit}")
    deciding = f"deciding needs about {rounded_up(needed):,} {unit}, you have {task.size:,}"
    return replace(cell, reason=f"{passing}; {deciding} ({likely}, if the loss stays)")
