"""A record's scores as rows: one per task, subset and metric, x 100."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stsbench.records.parts import Interval, TaskPart
from stsbench.records.transfer import TransferPart

if TYPE_CHECKING:
    from stsbench.records.record import RunRecord

AVERAGE = "Avg."
TRANSFER_AVERAGE = "Avg. transfer"

Row = dict[str, Any]
"""task, subset, metric, pairs (or items), score, low, high, signature."""


def sts_rows(record: "RunRecord") -> list[Row]:
    """Return the rows of the STS tasks: each task, its subsets if it has several; their average last."""
    metric, rows = record.protocol.metric, []
    for task in record.tasks:
        label = _label(task, record.tasks)
        rows.append(_row(label, metric, task.pairs, task.score, task.interval, signature=task.signature))
        for subset in task.subsets if len(task.subsets) > 1 else ():
            score = subset.scores[metric]
            rows.append(_row(label, metric, subset.pairs, score, subset.interval, subset=subset.name))
    if record.average is not None:
        pairs = sum(task.pairs or 0 for task in record.tasks)
        rows.append(_row(AVERAGE, metric, pairs, record.average.score, record.average.interval))
    return rows


def transfer_rows(record: "RunRecord") -> list[Row]:
    """Return the rows of the transfer tasks: `acc`, `devacc` and, of some, `f1`; the average `acc` last."""
    rows = []
    for part in record.transfer:
        label = _label(part, record.transfer)
        rows.append(_row(label, "acc", part.ntest, part.acc, part.acc_interval, signature=part.signature))
        rows.append(_row(label, "devacc", part.ndev, part.devacc, part.devacc_interval))
        if part.f1 is not None:
            rows.append(_row(label, "f1", part.ntest, part.f1, part.f1_interval))
    if (mean := record.transfer_average) is not None:
        items = sum(part.ntest for part in record.transfer)
        rows.append(_row(TRANSFER_AVERAGE, "acc", items, mean.score, mean.interval))
    return rows


def supervised_rows(record: "RunRecord") -> list[Row]:
    """Return the rows of the relatedness tasks with a trained regressor: Pearson and Spearman."""
    rows = []
    for part in record.supervised:
        label = f"{part.task}:supervised"
        pearson, spearman = (part.pearson, part.pearson_interval), (part.spearman, part.spearman_interval)
        rows.append(_row(label, "pearson", part.ntest, *pearson, signature=part.signature))
        rows.append(_row(label, "spearman", part.ntest, *spearman))
    return rows


def _label(part: TaskPart | TransferPart, among: Sequence[TaskPart | TransferPart]) -> str:
    # Of two splits or texts of one task, the label says which is which.
    same = [other for other in among if other.task == part.task]
    splits = {other.split for other in same if isinstance(other, TaskPart)}
    split = f":{part.split}" if isinstance(part, TaskPart) and len(splits) > 1 else ""
    text = f"@{part.text}" if len({other.text for other in same}) > 1 else ""
    return part.task + split + text


def _row(
    task: str,
    metric: str,
    pairs: int | None,
    score: float | None,
    interval: Interval | None,
    *,
    subset: str = "",
    signature: str = "",
) -> Row:
    low, high = interval or (None, None)
    return {
        "task": task,
        "subset": subset,
        "metric": metric,
        "pairs": pairs,
        "score": _percent(score),
        "low": _percent(low),
        "high": _percent(high),
        "signature": signature,
    }


def _percent(value: float | None) -> float:
    return float("nan") if value is None else 100 * value
