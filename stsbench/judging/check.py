"""`check`: does a run match published numbers, or an earlier run?"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.base.words import listed, rounded_up
from stsbench.judging.aligned import FEWEST, MANY, AlignedScores, aligned_scores
from stsbench.judging.published import AUTO, TOLERANCE, check_published, rows_to_check
from stsbench.judging.runs import choose_runs
from stsbench.judging.verdicts import CellCheck, Check
from stsbench.records.imports import read_results
from stsbench.records.kinds import KINDS
from stsbench.records.labels import model_labels, task_labels
from stsbench.records.record import RunRecord
from stsbench.scoring.recompute import require_recomputed
from stsbench.scoring.settings import require_margin
from stsbench.statistics import DEPENDENCE, LEVEL, Dependence
from stsbench.statistics.estimate import Estimate, judge_loss
from stsbench.statistics.intervals import pairs_needed

MARGIN = 0.3
"""Default of the margin, in points."""


def check(
    run: RunRecord | str | Path,
    against: str | None = None,
    *,
    tolerance: float | None = None,
    baseline: RunRecord | str | Path | None = None,
    margin: float | None = None,
    interval: Dependence = DEPENDENCE,
) -> Check:
    """Checks a run against a published row, or against an earlier run.

    Args:
        run: a run's folder or `run.json`, a file of results of SentEval or MTEB, or a record.
        against: the published row: a system, the Hub name of a checkpoint, `table/row`, or `auto` (the default)
            for the row of the run's own checkpoint.
        tolerance: allowed difference from the published value in points (of 100), 0.05 by default. A score that
            rounds to the published value always passes.
        baseline: a run to check against instead of a published row, such as that of the model's predecessor.
        margin: tests that the loss against the baseline is below this many points, 0.3 by default.
        interval: with a baseline: which pairs are treated as dependent.

    Returns:
        The check. `.verdict` is `pass`, `fail` or `not comparable`; with a baseline `within margin`, `worse` or
        `undecided`. `.frame` has a row per score, `.sentence` is the answer, `.notes` lists what is unusual.

    Raises:
        UserError: if a run or row is not found, a record contradicts its items, or options exclude each other.

    >>> import stsbench as sb
    >>> run = sb.evaluate(lambda sentences: [[len(s), s.count("e")] for s in sentences], "sample")
    >>> check(run, baseline=run).verdict
    'within margin'
    """
    if baseline is None:
        if margin is not None:
            raise UserError("--margin needs --baseline: name the run to compare with.")
        record = read_results(run)
        rows = rows_to_check(record, against or AUTO)
        notes = require_recomputed(record)
        result = check_published(record, rows, TOLERANCE if tolerance is None else tolerance)
        return replace(result, notes=(*result.notes, *notes))
    if against is not None or tolerance is not None:
        option = "--against" if against is not None else "--tolerance"
        raise UserError(f"{option} and --baseline exclude each other: check against a row, or against a run.")
    runs, _ = choose_runs([run, baseline], may_repeat=True)
    notes = require_recomputed(*runs.values())
    default = [f"{MARGIN} points is the default margin: choose yours with --margin."] if margin is None else []
    result = _check_baseline(runs, MARGIN if margin is None else margin, interval)
    return replace(result, notes=(*default, *notes))


def _check_baseline(runs: Mapping[str, RunRecord], margin: float, interval: Dependence) -> Check:
    """Tests whether a run loses less than a margin against an earlier run, the second; averages are checked, too.

    All scores of the earlier run must be measured. Classifiers are compared by the share of correct items.
    """
    require_margin(margin)
    (run, record), (earlier, baseline) = runs.items()
    # Tasks that only the run has do not matter here.
    tasks, _ = aligned_scores({earlier: baseline, run: record})
    measured = {score.key for score in record.scores}
    labels = zip(baseline.scores, task_labels(baseline.scores), strict=True)
    if missing := [label for score, label in labels if score.key not in measured]:
        raise UserError(f"{run} has no score on {listed(missing)}, which the baseline has: measure it, too.")
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
        _judged(task, loss, margin / 100, (level, simultaneous)) for task, loss in zip(tasks, losses, strict=True)
    ]


def _judged(task: AlignedScores, loss: Estimate, margin: float, levels: tuple[float, float]) -> CellCheck:
    old, new = (100 * task.scores).tolist()
    cell, unit = CellCheck(task.task, old, new, "undecided"), KINDS[task.kind].unit
    decided, low, high = judge_loss(loss, margin, *levels)
    if math.isnan(high) or (loss.variance.value > 0 and task.size < FEWEST):
        return replace(cell, reason=f"{task.size} {unit} are too few: measure on more")
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
