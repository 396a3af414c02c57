"""Records as tables: one row a model as the papers print it, or one row a subset or metric."""

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from stsbench.base.errors import UserError
from stsbench.records.parts import ModelPart
from stsbench.records.record import (
    AVERAGE,
    TRANSFER_AVERAGE,
    Row,
    RunRecord,
    sts_rows,
    supervised_rows,
    transfer_rows,
)
from stsbench.records.signature import PROTOCOL_FIELDS, Signature

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "AVERAGE",
    "labels",
    "long_table",
    "remarks",
    "require_comparable",
    "scores_table",
    "scores_tables",
    "subsets_table",
    "supervised_table",
    "transfer_table",
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


class Scores(NamedTuple):
    """A table of scores, and the column of their average in it, if there is one."""

    table: "pd.DataFrame"
    headline: str


def scores_tables(records: Sequence[RunRecord], *, intervals: bool = False) -> list[Scores]:
    """Return the tables that records can fill: STS, transfer tasks by `acc`, supervised tasks by Pearson.

    Args:
        records: of the same protocol (see `require_comparable`).
        intervals: whether the limits of the confidence interval follow each model in two rows, and of transfer
            tasks their `devacc`.
    """
    kinds = [
        (scores_table, AVERAGE, any(record.tasks for record in records)),
        (transfer_table, TRANSFER_AVERAGE, any(record.transfer for record in records)),
        (supervised_table, "", any(record.supervised for record in records)),
    ]
    return [Scores(make(records, intervals=intervals), headline) for make, headline, there in kinds if there]


def scores_table(records: Sequence[RunRecord], *, intervals: bool = False) -> "pd.DataFrame":
    """Return one row per model with a column per STS task and their average, scores x 100.

    A record of a single task with subsets has a column for the task and one per subset.
    """
    measured = [(label, record) for label, record in _labelled(records) if record.tasks]
    rows = [
        (label, record, [row for row in sts_rows(record) if len(record.tasks) == 1 or not row["subset"]])
        for label, record in measured
    ]
    table = _wide(rows, intervals=intervals)
    if len({record.average.tasks for _, record in measured if record.average}) > 1:
        # Means of different tasks do not compare: better none than two under one name.
        table = table.drop(columns=AVERAGE)
    return table


def transfer_table(records: Sequence[RunRecord], *, intervals: bool = False) -> "pd.DataFrame":
    """Return one row per model with a column per transfer task and their average: `acc` in percent.

    With `intervals` a row with `devacc`, the score of MoCoSE's tables, follows the limits.
    """
    measured = [(label, record) for label, record in _labelled(records) if record.transfer]
    rows: list[tuple[str, RunRecord | None, list[Row]]] = []
    for label, record in measured:
        own = transfer_rows(record)
        rows.append((label, record, [row for row in own if row["metric"] == "acc"]))
        if intervals:
            dev = [row for row in own if row["metric"] == "devacc"]
            rows.append(("  devacc", None, dev))
    table = _wide(rows, intervals=intervals)
    if len({record.transfer_average.tasks for _, record in measured if record.transfer_average}) > 1:
        table = table.drop(columns=TRANSFER_AVERAGE)
    return table


def supervised_table(records: Sequence[RunRecord], *, intervals: bool = False) -> "pd.DataFrame":
    """Return one row per model with a column per relatedness task with a trained regressor: Pearson x 100."""
    rows = [
        (label, record, [row for row in supervised_rows(record) if row["metric"] == "pearson"])
        for label, record in _labelled(records)
        if record.supervised
    ]
    return _wide(rows, intervals=intervals)


def long_table(records: Sequence[RunRecord]) -> "pd.DataFrame":
    """Return one row per model, task, subset and metric: everything that is needed to work on with the scores.

    The choices behind a score stand beside it; `aggregation` says of a transfer task how it was folded, and
    `similarity` what was trained.
    """
    import pandas as pd

    parts = []
    for label, record in _labelled(records):
        table = record.table()
        table.insert(0, "model", label)
        # The rows after a signature are of the same task, up to the average of all of them.
        signatures = [Signature.parse(text) for text in table["signature"].replace("", None).ffill()]
        table["aggregation"] = [signature.aggregation for signature in signatures]
        table["similarity"] = [signature.similarity for signature in signatures]
        # Transfer tasks are folded in several ways: their mean in none.
        table.loc[table["task"] == TRANSFER_AVERAGE, "aggregation"] = ""
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def subsets_table(records: Sequence[RunRecord]) -> "pd.DataFrame":
    """Return one row per task, subset and metric with a column per model, scores x 100."""
    import pandas as pd

    keys = ["task", "subset", "metric", "pairs"]
    rows: dict[tuple[Any, ...], dict[str, float]] = {}
    for label, record in _labelled(records):
        for row in record.table().to_dict("records"):
            rows.setdefault(tuple(row[key] for key in keys), {})[label] = row["score"]
    return pd.DataFrame([dict(zip(keys, where, strict=True)) | scores for where, scores in rows.items()])


def require_comparable(records: Sequence[RunRecord]) -> None:
    """Make sure that records can stand in one table.

    Raises:
        UserError: naming the field in which a task's signatures differ.
    """
    first: dict[str, tuple[str, Signature]] = {}
    for label, record in _labelled(records):
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

    That is the model's own name: of a path without folders, of a function of a script or a notebook without
    `__main__`. Where several have the same, what they differ in follows, or else their number.
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
    lines = list(dict.fromkeys(line for record in records for line in record.signature.splitlines()))
    for label, record in _labelled(records):
        average = record.average
        if average and average.score is not None and average.of_rounded is not None:
            exact, rounded = f"{100 * average.score:.2f}", f"{average.of_rounded:.2f}"
            if exact != rounded:
                lines.append(f"{label}: the average of the rounded scores, as papers print it, is {rounded}")
        # An imported score comes without these counts.
        zero = sum(task.zero_pairs or 0 for task in record.tasks)
        cut = sum(part.truncated_sentences or 0 for part in record.parts)
        for subject, count in (
            ("pairs with a zero vector, scored 0", zero),
            ("sentences were cut at the maximum length", cut),
        ):
            if count:
                lines.append(f"{label}: {count} {subject}")
        lines += [
            f"{label}: F1 of {part.task} {100 * part.f1:.2f}" for part in record.transfer if part.f1 is not None
        ]
        if any(part.data.status == "modified" for part in record.parts):
            lines.append(f"{label}: data: modified (see the notes)")
    return lines


def _name(model: ModelPart) -> str:
    is_path = model.kind not in {"function", "vectors", "similarities"} and model.name.startswith(("/", "~", "."))
    # A function of a script or a notebook is known by its own name.
    return PurePath(model.name).name or model.name if is_path else model.name.removeprefix("__main__:")


def _labelled(records: Sequence[RunRecord]) -> Iterator[tuple[str, RunRecord]]:
    return zip(labels(records), records, strict=True)


def _wide(measured: Sequence[tuple[str, RunRecord | None, list[Row]]], *, intervals: bool) -> "pd.DataFrame":
    """Return rows of a score per column; limits follow a model whose record says how wide they are."""
    import pandas as pd

    found: list[dict[str, Any]] = []
    for label, record, rows in measured:
        columns = {str(row["subset"] or row["task"]): row for row in rows}
        found.append({"model": label} | {name: row["score"] for name, row in columns.items()})
        if intervals and record is not None and record.protocol.resamples:
            tail = 50 * (1 - record.protocol.level)
            for share, limit in ((tail, "low"), (100 - tail, "high")):
                found.append({"model": f"  {share:g} %"} | {name: row[limit] for name, row in columns.items()})
    return pd.DataFrame(found)
