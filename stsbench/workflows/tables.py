"""Records as tables: one row a model as the papers print it, or one row a subset."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from stsbench.foundation.errors import UserError
from stsbench.records import RunRecord, Signature
from stsbench.records.record import AVERAGE
from stsbench.records.signature import PROTOCOL_FIELDS

if TYPE_CHECKING:
    import pandas as pd


__all__ = [
    "AVERAGE",
    "long_table",
    "model_label",
    "remarks",
    "require_comparable",
    "scores_table",
    "subsets_table",
]


def scores_table(records: Sequence[RunRecord], *, intervals: bool = False) -> "pd.DataFrame":
    """Return one row per model with a column per task and their average, scores x 100.

    A record of a single task with subsets has a column per subset instead, and the task's own last.

    Args:
        records: of the same protocol (see `require_comparable`).
        intervals: whether the limits of the confidence interval follow each model in two rows.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for record in records:
        columns = {_column(row): row for row in record.table().to_dict("records") if _is_column(row, record)}
        rows.append({"model": model_label(record)} | {name: row["score"] for name, row in columns.items()})
        if intervals and record.protocol.resamples:
            tail = 50 * (1 - record.protocol.level)
            for share, limit in ((tail, "low"), (100 - tail, "high")):
                rows.append({"model": f"  {share:g} %"} | {name: row[limit] for name, row in columns.items()})
    return pd.DataFrame(rows)


def long_table(records: Sequence[RunRecord]) -> "pd.DataFrame":
    """Return one row per model, task and subset: everything that is needed to work on with the scores."""
    import pandas as pd

    parts = []
    for record in records:
        table = record.table()
        table.insert(0, "model", model_label(record))
        for choice in ("aggregation", "metric", "similarity"):
            table[choice] = getattr(record.protocol, choice)
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def subsets_table(records: Sequence[RunRecord]) -> "pd.DataFrame":
    """Return one row per task and subset with a column per model, scores x 100."""
    import pandas as pd

    labels = [model_label(record) for record in records]
    keys = ["task", "subset", "pairs"]
    table = pd.DataFrame(columns=keys)
    for number, (label, record) in enumerate(zip(labels, records, strict=True), 1):
        # Two records of one model (other poolings, say) get columns of their own.
        name = f"{label} ({number})" if labels.count(label) > 1 else label
        scores = record.table()[[*keys, "score"]].rename(columns={"score": name})
        table = scores if number == 1 else table.merge(scores, on=keys, how="outer", sort=False)
    return table


def require_comparable(records: Sequence[RunRecord]) -> None:
    """Make sure that records can stand in one table.

    Raises:
        UserError: naming the field in which a task's signatures differ.
    """
    first: dict[str, tuple[RunRecord, Signature]] = {}
    for record in records:
        for task, text in zip(record.table()["task"], record.table()["signature"], strict=True):
            if not text:
                continue
            signature = Signature.parse(text)
            other, known = first.setdefault(task, (record, signature))
            if known.protocol == signature.protocol:
                continue
            field = next(name for name in PROTOCOL_FIELDS if getattr(known, name) != getattr(signature, name))
            raise UserError(
                f"{model_label(other)} and {model_label(record)} do not compare on {task}: {field} "
                f"is {getattr(known, field)} in one and {getattr(signature, field)} in the other: "
                "show them one by one."
            )


def model_label(record: RunRecord) -> str:
    """Return a short name for a record's model: its own, without folders."""
    name = record.model.name
    is_path = record.model.kind not in {"function", "vectors", "similarities"} and name.startswith(("/", "~", "."))
    return PurePath(name).name if is_path else name


def _is_column(row: dict[Any, Any], record: RunRecord) -> bool:
    return len(record.tasks) == 1 or not row["subset"]


def _column(row: dict[Any, Any]) -> str:
    return str(row["subset"] or row["task"])


def remarks(records: Sequence[RunRecord]) -> list[str]:
    """Return the signatures, one a line, and what a reader of the scores should know."""
    lines = list(dict.fromkeys(task.signature for record in records for task in record.tasks))
    for record in records:
        average = record.average
        if average and average.score is not None and average.of_rounded is not None:
            exact, rounded = f"{100 * average.score:.2f}", f"{average.of_rounded:.2f}"
            if exact != rounded:
                lines.append(
                    f"{model_label(record)}: the average of the rounded scores, as papers print it, is {rounded}"
                )
        for subject, count in (
            ("pairs with a zero vector, scored 0", sum(task.zero_pairs for task in record.tasks)),
            ("sentences were cut at the maximum length", sum(task.truncated_sentences for task in record.tasks)),
        ):
            if count:
                lines.append(f"{model_label(record)}: {count} {subject}")
        if any(task.data.status == "modified" for task in record.tasks):
            lines.append(f"{model_label(record)}: data: modified (see the notes)")
    return lines
