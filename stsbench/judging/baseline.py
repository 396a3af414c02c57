"""Checks a run against an earlier run: by the largest allowed drop, or by a statistical test with a margin.

A difference that is not significant may still be large. So a margin m is tested: the run is within the margin if
the upper one-sided bound of its loss is below m, and worse if the lower bound is above m; otherwise there are too
few pairs to decide (Blackwelder 1982). A gate that passes only if every score passes needs no correction for many
scores. It fails if any does, so the lower bounds of k scores hold together, at 1 - (1 - level) / k (Bonferroni).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from stsbench.base.errors import UserError
from stsbench.base.words import rounded_up
from stsbench.encoders.use import shown
from stsbench.judging.aligned import FEWEST, MANY, AlignedScores, aligned_scores
from stsbench.judging.verdicts import CellCheck, Check, FieldDifference, within
from stsbench.records.kinds import KINDS
from stsbench.records.labels import model_labels, task_labels
from stsbench.records.parts import Score, plain_mean
from stsbench.records.record import RunRecord
from stsbench.records.signature import PROTOCOL_FIELDS, UNKNOWN, Signature, differing_fields
from stsbench.scoring.settings import require_margin
from stsbench.statistics import DEPENDENCE, LEVEL, Dependence
from stsbench.statistics.estimate import Estimate, verdict
from stsbench.statistics.intervals import lower_bound, pairs_needed, upper_bound

MAX_DROP = 0.3
"""Default of the allowed drop, in points."""


def check_baseline(record: RunRecord, baseline: RunRecord, max_drop: float = MAX_DROP) -> Check:
    """Checks that no score is more than `max_drop` points (of 100) below that of an earlier run.

    All scores of the baseline must be measured in the run, by the same protocol on the same data; averages are
    checked, too. How the models were used (pooling, length) may differ and is noted.
    """
    if not max_drop >= 0:
        raise UserError(f"a drop of {max_drop:g} points: give 0 or more.")
    labels = dict(zip([score.key for score in baseline.scores], task_labels(baseline.scores), strict=True))
    cells: list[CellCheck] = []
    for kind in dict.fromkeys(score.kind for score in baseline.scores):
        checked = [_compared(labels[old.key], old, record.scores, max_drop) for old in baseline.scores_of(kind)]
        cells += checked
        if (
            (average := KINDS[kind].average)
            and len(checked) > 1
            and all(cell.difference is not None for cell in checked)
        ):
            old, new = ([getattr(cell, side) for cell in checked] for side in ("expected", "measured"))
            cells += [_dropped(average, plain_mean(old), plain_mean(new), max_drop)]
    run = model_labels([record.model, baseline.model])[0]
    name = f"the baseline {baseline.folder or baseline.model.name}"
    return Check(run, (name,), "baseline", max_drop, tuple(cells), notes=tuple(_notes(record, baseline)))


def _compared(name: str, old: Score, scores: Sequence[Score], max_drop: float) -> CellCheck:
    """Compares a score of the baseline with the most similar score of the run on that task."""
    of_task = [score for score in scores if (score.task, score.kind) == (old.task, old.kind)]
    if not of_task:
        task = old.task + (old.about.suffix if old.training else "")
        gap = FieldDifference("task", "not measured", name, f"measure with --tasks {task}")
        return CellCheck(name, _points(old), None).not_comparable(gap)
    new = min(of_task, key=lambda score: len(_differences(old, score)))
    if different := _differences(old, new):
        return CellCheck(name, _points(old), _points(new)).not_comparable(*different)
    return _dropped(name, _points(old), _points(new), max_drop)


def _points(score: Score) -> float | None:
    return None if score.value is None else 100 * score.value


def _dropped(name: str, old: float | None, new: float | None, max_drop: float) -> CellCheck:
    if old is None or new is None:
        which = "the baseline's" if old is None else "the"
        return CellCheck(name, old, new, "fail", f"{which} correlation is undefined")
    return CellCheck(name, old, new, "pass" if within(old - new, max_drop) else "fail")


def _differences(old: Score, new: Score) -> list[FieldDifference]:
    before, after = Signature.parse(old.signature), Signature.parse(new.signature)
    fields = [(name, getattr(after, name), getattr(before, name)) for name in differing_fields(before, after)]
    return [FieldDifference(name, here, there) for name, here, there in fields if UNKNOWN not in {here, there}]


def _notes(record: RunRecord, baseline: RunRecord) -> Iterator[str]:
    """Yields how the two models were used differently, and what imported files leave open."""

    def place(signature: Signature) -> tuple[str, str, str]:
        return signature.task, signature.split, signature.text

    before = {place(signature): signature for signature in baseline.signatures}
    # Prompts can differ by task.
    same = [(new, before[place(new)]) for new in record.signatures if place(new) in before]
    noted = (
        f"{name}: {shown(name, here or '')} here, {shown(name, there or '')} in the baseline"
        for new, old in same or [(record.signatures[0], baseline.signatures[0])]
        for (name, here), there in zip(new.model_fields().items(), old.model_fields().values(), strict=True)
        if here != there
    )
    yield from dict.fromkeys(noted)
    for name in sorted(PROTOCOL_FIELDS):
        if any(getattr(signature, name) == UNKNOWN for signature in (*record.signatures, *baseline.signatures)):
            yield f"{name}: not stated by an imported file"


def check_margin(
    record: RunRecord, baseline: RunRecord, margin: float, *, interval: Dependence = DEPENDENCE
) -> Check:
    """Tests whether a run loses less than a margin against an earlier run, on the same pairs and items.

    All scores of the baseline must be measured in the run, by the same protocol on the same items; averages are
    checked, too. Classifiers are compared by the share of correct items.
    """
    require_margin(margin)
    compared = replace(check_baseline(record, baseline, math.inf), kind="margin", allowed=margin)
    if compared.of("not comparable"):
        return compared
    # Tasks that only the run has do not matter here.
    tasks, _ = aligned_scores({"the baseline": baseline, "the run": record})
    return replace(compared, cells=tuple(judged(tasks, margin, interval=interval)))


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
