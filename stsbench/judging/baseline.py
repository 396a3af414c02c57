"""Is a model no worse than its predecessor: a gate for continuous integration."""

from collections.abc import Iterator, Sequence

from stsbench.base.errors import UserError
from stsbench.judging.verdicts import CellCheck, Check, FieldDifference, in_words, within
from stsbench.records.kinds import KINDS
from stsbench.records.labels import task_labels
from stsbench.records.parts import Score, plain_mean
from stsbench.records.record import RunRecord
from stsbench.records.signature import PROTOCOL_FIELDS, UNKNOWN, Signature, differing_fields

MAX_DROP = 0.3
"""How many points a score may be lower by default."""


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
    names = task_labels(baseline.scores)
    cells: list[CellCheck] = []
    for kind in KINDS.values():
        checked = [
            _check(name, old, _closest(old, record.scores), max_drop)
            for name, old in zip(names, baseline.scores, strict=True)
            if old.kind == kind.name
        ]
        cells += checked
        if kind.average and len(checked) > 1 and all(cell.difference is not None for cell in checked):
            means = (
                plain_mean([cell.expected for cell in checked]),
                plain_mean([cell.measured for cell in checked]),
            )
            cells.append(_cell(kind.average, *means, max_drop))
    name = f"the baseline {baseline.folder or baseline.model.name}"
    return Check(record.model.name, (name,), "baseline", max_drop, tuple(cells), tuple(_notes(record, baseline)))


def _check(name: str, old: Score, new: Score | None, max_drop: float) -> CellCheck:
    expected, measured = _points(old), None if new is None else _points(new)
    if new is None:
        # What a kind says after a task's name is how a trained one is asked for.
        wanted = old.task + (old.about.suffix if old.training else "")
        gap = FieldDifference("task", "not measured", name, f"measure with --tasks {wanted}")
        return CellCheck(name, expected, None, "not comparable", in_words([gap]), (gap,))
    if different := _differences(old, new):
        return CellCheck(name, expected, measured, "not comparable", in_words(different), different)
    return _cell(name, expected, measured, max_drop)


def _points(score: Score) -> float | None:
    return None if score.value is None else 100 * score.value


def _cell(name: str, old: float | None, new: float | None, max_drop: float) -> CellCheck:
    if old is None or new is None:
        which = "the baseline's" if old is None else "the"
        return CellCheck(name, old, new, "fail", f"{which} correlation is undefined")
    return CellCheck(name, old, new, "pass" if within(old - new, max_drop) else "fail")


def _closest(old: Score, scores: Sequence[Score]) -> Score | None:
    same = [score for score in scores if (score.task, score.kind) == (old.task, old.kind)]
    return min(same, key=lambda score: len(_differences(old, score)), default=None)


def _differences(old: Score, new: Score) -> tuple[FieldDifference, ...]:
    before, after = Signature.parse(old.signature), Signature.parse(new.signature)
    fields = ((name, getattr(after, name), getattr(before, name)) for name in differing_fields(before, after))
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
    for name in sorted(PROTOCOL_FIELDS):
        if any(getattr(signature, name) == UNKNOWN for signature in (*record.signatures, *baseline.signatures)):
            yield f"{name}: an imported file does not say"
