"""Is a model no worse than its predecessor: a gate for continuous integration."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stsbench.base.errors import UserError
from stsbench.checking.fitting import ACC, STS, SUPERVISED, MeasuredScore, measured_scores
from stsbench.checking.result import CellCheck, Check, FieldDifference, in_words, within
from stsbench.records.kinds import AVERAGE, TRANSFER_AVERAGE
from stsbench.records.labels import distinct_labels
from stsbench.records.parts import plain_mean
from stsbench.records.record import RunRecord
from stsbench.records.signature import PROTOCOL_FIELDS, UNKNOWN, Signature, differing_fields

MAX_DROP = 0.3
"""How many points a score may be lower by default."""

_GATED = {STS: AVERAGE, ACC: TRANSFER_AVERAGE, SUPERVISED: ""}
"""The headline scores, with the name of their average."""


def check_baseline(record: RunRecord, baseline: RunRecord, max_drop: float = MAX_DROP) -> Check:
    """Compare a run with the run of a predecessor: no score may be more than `max_drop` points lower.

    Everything that was measured for the baseline must have been measured by the same protocol on the same data;
    averages are looked at too. How the models were used (pooling, length) may differ: that is noted.

    Args:
        record: the run.
        baseline: its predecessor's.
        max_drop: how many points (of 100) a score may be lower.

    Raises:
        UserError: if `max_drop` is no number of points.
    """
    if not max_drop >= 0:
        raise UserError(f"a drop of {max_drop:g} points: give 0 or more.")
    scores = measured_scores(record)
    known = measured_scores(baseline)
    # Of two splits or texts of a task, and of own pairs that are called as a task, the name says which.
    names = distinct_labels([(old.name, old.signature.split, old.signature.text) for old in known])
    cells: list[CellCheck] = []
    for quantity, average in _GATED.items():
        checked = [
            replace(_check(old, _closest(old, scores), max_drop), name=name)
            for name, old in zip(names, known, strict=True)
            if old.quantity == quantity
        ]
        cells += checked
        if average and len(checked) > 1 and all(cell.difference is not None for cell in checked):
            means = (
                plain_mean([cell.expected for cell in checked]),
                plain_mean([cell.measured for cell in checked]),
            )
            cells.append(_cell(average, *means, max_drop))
    name = f"the baseline {baseline.folder or baseline.model.name}"
    return Check(record.model.name, (name,), "baseline", max_drop, tuple(cells), tuple(_notes(record, baseline)))


def _check(old: MeasuredScore, new: MeasuredScore | None, max_drop: float) -> CellCheck:
    if new is None:
        gap = FieldDifference("task", "not measured", old.name, f"measure with --tasks {old.task}")
        return CellCheck(old.name, old.score, None, "not comparable", in_words([gap]), (gap,))
    if different := _differences(old.signature, new.signature):
        return CellCheck(old.name, old.score, new.score, "not comparable", in_words(different), different)
    return _cell(old.name, old.score, new.score, max_drop)


def _cell(name: str, old: float | None, new: float | None, max_drop: float) -> CellCheck:
    if old is None or new is None:
        which = "the baseline's" if old is None else "the"
        return CellCheck(name, old, new, "fail", f"{which} correlation is undefined")
    return CellCheck(name, old, new, "pass" if within(old - new, max_drop) else "fail")


def _closest(old: MeasuredScore, scores: Sequence[MeasuredScore]) -> MeasuredScore | None:
    same = [score for score in scores if (score.task, score.quantity) == (old.task, old.quantity)]
    return min(same, key=lambda score: len(_differences(old.signature, score.signature)), default=None)


def _differences(old: Signature, new: Signature) -> tuple[FieldDifference, ...]:
    fields = ((name, getattr(new, name), getattr(old, name)) for name in differing_fields(old, new))
    return tuple(
        FieldDifference(name, here, there) for name, here, there in fields if UNKNOWN not in {here, there}
    )


def _notes(record: RunRecord, baseline: RunRecord) -> Iterator[str]:
    old, new = baseline.signatures[0], record.signatures[0]
    of_baseline = old.model_fields()
    for name, here in new.model_fields().items():
        there = of_baseline[name]
        if here != there:
            yield f"{name}: {here or 'none'} here, {there or 'none'} in the baseline"
    open_ = {
        name
        for signature in (*record.signatures, *baseline.signatures)
        for name in PROTOCOL_FIELDS
        if getattr(signature, name) == UNKNOWN
    }
    for name in sorted(open_):
        yield f"{name}: an imported file does not say"
