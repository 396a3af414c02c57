"""Records as tables: one row a model as the papers print it, or one row a subset."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from stsbench.foundation.errors import UserError
from stsbench.records import RunRecord, Signature
from stsbench.records.record import AVERAGE, ModelPart
from stsbench.records.signature import PROTOCOL_FIELDS

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "AVERAGE",
    "labels",
    "long_table",
    "remarks",
    "require_comparable",
    "scores_table",
    "subsets_table",
]

# In what records of one model may differ, most telling first.
_TELLING = (
    "pooling",
    "max_length",
    "prompt",
    "dimensions",
    "postprocessing",
    "precision",
    "weights_sha256",
    "device",
)


def scores_table(records: Sequence[RunRecord], *, intervals: bool = False) -> "pd.DataFrame":
    """Return one row per model with a column per task and their average, scores x 100.

    A record of a single task with subsets has a column per subset instead, and the task's own last.

    Args:
        records: of the same protocol (see `require_comparable`).
        intervals: whether the limits of the confidence interval follow each model in two rows.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for label, record in zip(labels(records), records, strict=True):
        columns = {_column(row): row for row in record.table().to_dict("records") if _is_column(row, record)}
        rows.append({"model": label} | {name: row["score"] for name, row in columns.items()})
        if intervals and record.protocol.resamples:
            tail = 50 * (1 - record.protocol.level)
            for share, limit in ((tail, "low"), (100 - tail, "high")):
                rows.append({"model": f"  {share:g} %"} | {name: row[limit] for name, row in columns.items()})
    table = pd.DataFrame(rows)
    if len({record.average.tasks for record in records if record.average}) > 1:
        # Means of different tasks do not compare: better none than two under one name.
        table = table.drop(columns=AVERAGE)
    return table


def long_table(records: Sequence[RunRecord]) -> "pd.DataFrame":
    """Return one row per model, task and subset: everything that is needed to work on with the scores."""
    import pandas as pd

    parts = []
    for label, record in zip(labels(records), records, strict=True):
        table = record.table()
        table.insert(0, "model", label)
        for choice in ("aggregation", "metric", "similarity"):
            table[choice] = getattr(record.protocol, choice)
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def subsets_table(records: Sequence[RunRecord]) -> "pd.DataFrame":
    """Return one row per task and subset with a column per model, scores x 100."""
    import pandas as pd

    keys = ["task", "subset", "pairs"]
    rows: dict[tuple[Any, ...], dict[str, float]] = {}
    for label, record in zip(labels(records), records, strict=True):
        for row in record.table().to_dict("records"):
            rows.setdefault(tuple(row[key] for key in keys), {})[label] = row["score"]
    return pd.DataFrame([dict(zip(keys, where, strict=True)) | scores for where, scores in rows.items()])


def require_comparable(records: Sequence[RunRecord]) -> None:
    """Make sure that records can stand in one table.

    Raises:
        UserError: naming the field in which a task's signatures differ.
    """
    first: dict[str, tuple[str, Signature]] = {}
    for label, record in zip(labels(records), records, strict=True):
        for task, text in zip(record.table()["task"], record.table()["signature"], strict=True):
            if not text:
                continue
            signature = Signature.parse(text)
            other, known = first.setdefault(task, (label, signature))
            if known.protocol == signature.protocol:
                continue
            field = next(name for name in PROTOCOL_FIELDS if getattr(known, name) != getattr(signature, name))
            raise UserError(
                f"{other} and {label} do not compare on {task}: {field} is {getattr(known, field)} in one and "
                f"{getattr(signature, field)} in the other: show them one by one."
            )


def labels(records: Sequence[RunRecord]) -> list[str]:
    """Return a name for each record's model, as short as it can be and tell it from the others.

    That is the model's own name, without folders if it is a path; where several have the same, what they differ
    in follows, or else their number.
    """
    return model_labels([record.model for record in records])


def model_labels(models: Sequence[ModelPart]) -> list[str]:
    """Return a name for each model as `labels` does."""
    names = [_name(model) for model in models]
    found = []
    for model, name in zip(models, names, strict=True):
        same = [other for other, its in zip(models, names, strict=True) if its == name]
        differing = [field for field in _TELLING if len({getattr(other, field) for other in same}) > 1]
        # A choice that was not made (no dimensions left out, no prompt) goes without saying.
        chosen = {field: getattr(model, field) for field in differing if getattr(model, field) not in {None, ""}}
        told = ", ".join(f"{field} {str(value)[:20]}" for field, value in chosen.items())
        found.append(f"{name} ({told})" if told else name)
    return [f"{label} ({number})" if found.count(label) > 1 else label for number, label in enumerate(found, 1)]


def remarks(records: Sequence[RunRecord]) -> list[str]:
    """Return the signatures, one a line, and what a reader of the scores should know."""
    lines = list(dict.fromkeys(task.signature for record in records for task in record.tasks))
    for label, record in zip(labels(records), records, strict=True):
        average = record.average
        if average and average.score is not None and average.of_rounded is not None:
            exact, rounded = f"{100 * average.score:.2f}", f"{average.of_rounded:.2f}"
            if exact != rounded:
                lines.append(f"{label}: the average of the rounded scores, as papers print it, is {rounded}")
        for subject, count in (
            ("pairs with a zero vector, scored 0", sum(task.zero_pairs for task in record.tasks)),
            ("sentences were cut at the maximum length", sum(task.truncated_sentences for task in record.tasks)),
        ):
            if count:
                lines.append(f"{label}: {count} {subject}")
        if any(task.data.status == "modified" for task in record.tasks):
            lines.append(f"{label}: data: modified (see the notes)")
    return lines


def _name(model: ModelPart) -> str:
    is_path = model.kind not in {"function", "vectors", "similarities"} and model.name.startswith(("/", "~", "."))
    return PurePath(model.name).name or model.name if is_path else model.name


def _is_column(row: dict[Any, Any], record: RunRecord) -> bool:
    return len(record.tasks) == 1 or not row["subset"]


def _column(row: dict[Any, Any]) -> str:
    return str(row["subset"] or row["task"])
