"""The scores of records as tables: a row for each number, or a row a model as papers print it."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from stsbench.records.digest import sealed
from stsbench.records.intervals import interval_remarks
from stsbench.records.labels import AVERAGE, TRANSFER_AVERAGE, labels, task_labels
from stsbench.records.parts import AveragePart, Interval, RunFields
from stsbench.records.signature import Signature, require_same_protocol
from stsbench.render.cells import Key, Named, Rows
from stsbench.render.result import Result
from stsbench.render.table import Style, Table, Tables

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]
"""task, subset, metric, pairs (or items), score, low, high, signature."""


@dataclass(frozen=True)
class Scores(Result):
    """The scores of records, side by side.

    Attributes:
        records: of the same protocol (see `require_comparable`).
        subsets: whether a table of every subset and metric follows.
        intervals: whether the limits of the confidence intervals follow each model in two rows, and of transfer
            tasks their `devacc`. Markdown and LaTeX are as papers print them, without.
    """

    records: Sequence[RunFields]
    subsets: bool = False
    intervals: bool = True

    @property
    def frame(self) -> "pd.DataFrame":
        """All that is needed to work on with the scores, a row per model, task, subset and metric.

        Columns: model, those of `RunRecord.frame`, and the choices behind a score: `aggregation` says of a
        transfer task how it was folded, and `similarity` what was trained.
        """
        import pandas as pd

        frames = []
        for label, record in _labelled(self.records):
            frame = score_frame(record)
            frame.insert(0, "model", label)
            # The rows after a signature are of the same task, up to the average of all of them.
            signatures = [Signature.parse(text) for text in frame["signature"].replace("", None).ffill()]
            frame["aggregation"] = [signature.aggregation for signature in signatures]
            frame["similarity"] = [signature.similarity for signature in signatures]
            # Transfer tasks are folded in several ways: their mean in none.
            frame.loc[frame["task"] == TRANSFER_AVERAGE, "aggregation"] = ""
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def table(self) -> Tables:
        """Return the tables that the records can fill, as papers print them: a row a model, a column a task.

        First STS, with a column per task and their average, of a single task with subsets one per subset; then
        transfer tasks by `acc`; then supervised tasks by Pearson. Scores x 100.
        """
        tables = [
            _papers_table(self.records, kind, intervals=self.intervals)
            for kind in ("tasks", "transfer", "supervised")
            if any(getattr(record, kind) for record in self.records)
        ]
        return Tables([*tables, *([_subsets_table(self.records)] if self.subsets else [])])

    def to(self, style: Style) -> str:
        """Return them as text: the tables for readers, all of it as `csv` and `json`.

        Raises:
            UserError: if there is no such format.
        """
        if style in {"markdown", "latex"}:
            return Scores(self.records, self.subsets, intervals=False).table().to(style)
        return super().to(style)

    def to_dict(self) -> Any:
        """Return the records, as `run.json` has them."""
        return [json.loads(sealed(record).model_dump_json()) for record in self.records]

    @property
    def remarks(self) -> list[str]:
        """The signatures, one a line, and what a reader of the scores should know."""
        signatures = chain.from_iterable(record.signature.splitlines() for record in self.records)
        remarks = (
            f"{label}: {remark}" for label, record in _labelled(self.records) for remark in _remarks(record)
        )
        told = interval_remarks(list(_labelled(self.records))) if self.intervals else ()
        return [*dict.fromkeys(signatures), *told, *remarks]


def require_comparable(records: Sequence[RunFields]) -> None:
    """Make sure that records can stand in one table.

    Raises:
        UserError: naming the field in which a task's signatures differ.
    """
    first: dict[str, tuple[str, Signature]] = {}
    for label, record in _labelled(records):
        for task, signature in zip(task_labels(record.parts), record.signatures, strict=True):
            other, known = first.setdefault(task, (label, signature))
            require_same_protocol(known, signature, names=(other, label), task=task, remedy="show them one by one")


def score_frame(record: RunFields) -> "pd.DataFrame":
    """Return one row per task, subset and metric of a record (see `RunRecord.frame`)."""
    import pandas as pd

    return pd.DataFrame(_all_rows(record))


def _all_rows(record: RunFields) -> list[Row]:
    return [*sts_rows(record), *transfer_rows(record), *supervised_rows(record)]


def sts_rows(record: RunFields) -> list[Row]:
    """Return the rows of the STS tasks: each task, its subsets if it has several; their average last."""
    metric, rows = record.protocol.metric, []
    for label, task in zip(task_labels(record.tasks), record.tasks, strict=True):
        rows.append(_row(label, metric, task.pairs, task.score, task.interval, signature=task.signature))
        for subset in task.subsets if len(task.subsets) > 1 else ():
            score = subset.scores[metric]
            rows.append(_row(label, metric, subset.pairs, score, subset.interval, subset=subset.name))
    pairs = sum(task.pairs or 0 for task in record.tasks)
    return [*rows, *_average_row(AVERAGE, metric, pairs, record.average)]


def transfer_rows(record: RunFields) -> list[Row]:
    """Return the rows of the transfer tasks: `acc`, `devacc` and, of some, `f1`; the average `acc` last."""
    rows = []
    for label, part in zip(task_labels(record.transfer), record.transfer, strict=True):
        rows.append(_row(label, "acc", part.ntest, part.acc, part.acc_interval, signature=part.signature))
        rows.append(_row(label, "devacc", part.ndev, part.devacc, part.devacc_interval))
        if part.f1 is not None:
            rows.append(_row(label, "f1", part.ntest, part.f1, part.f1_interval))
    items = sum(part.ntest for part in record.transfer)
    return [*rows, *_average_row(TRANSFER_AVERAGE, "acc", items, record.transfer_average)]


def supervised_rows(record: RunFields) -> list[Row]:
    """Return the rows of the relatedness tasks with a trained regressor: Pearson and Spearman."""
    rows = []
    for label, part in zip(task_labels(record.supervised), record.supervised, strict=True):
        pearson, spearman = (part.pearson, part.pearson_interval), (part.spearman, part.spearman_interval)
        rows.append(_row(label, "pearson", part.ntest, *pearson, signature=part.signature))
        rows.append(_row(label, "spearman", part.ntest, *spearman))
    return rows


def _average_row(name: str, metric: str, pairs: int, average: AveragePart | None) -> list[Row]:
    return [] if average is None else [_row(name, metric, pairs, average.score, average.interval)]


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


def _papers_table(records: Sequence[RunFields], kind: str, *, intervals: bool) -> Table:
    """Return one row per model with a column per task of a kind and their average, scores x 100."""
    rows: list[dict[Key, Any]] = []
    averages = set()
    for label, record in _labelled(records):
        if not getattr(record, kind):
            continue
        headline, others, average = _rows_of_kind(record, kind)
        averages |= {average.tasks} if average else set()
        rows.append({"model": label, **{key: row["score"] for key, row in headline.items()}})
        if intervals and record.protocol.interval:
            tail = 50 * (1 - record.protocol.level)
            for share, limit in ((tail, "low"), (100 - tail, "high")):
                rows.append({"model": f"  {share:g} %", **{key: row[limit] for key, row in headline.items()}})
        if intervals and others:
            rows.append({"model": "  devacc", **{key: row["score"] for key, row in others.items()}})
    name = {"tasks": AVERAGE, "transfer": TRANSFER_AVERAGE}.get(kind, "")
    if len(averages) > 1:
        # Means of different tasks do not compare: better none than two under one name.
        rows = [{key: value for key, value in row.items() if key != name} for row in rows]
    return Table(Rows(rows), headline=name)


def column_of(row: Row) -> Key:
    """Return the column of a row of `sts_rows` and its like, where each task and each subset has one."""
    if row["subset"]:
        return Named("subset", row["subset"], of=row["task"])
    return row["task"] if row["task"] in {AVERAGE, TRANSFER_AVERAGE} else Named("task", row["task"])


def _rows_of_kind(record: RunFields, kind: str) -> tuple[dict[Key, Row], dict[Key, Row], AveragePart | None]:
    """Return the headline's rows by column, those of `devacc` (the score of MoCoSE's tables), and the average."""
    if kind == "tasks":
        rows = [row for row in sts_rows(record) if len(record.tasks) == 1 or not row["subset"]]
        return {column_of(row): row for row in rows}, {}, record.average
    if kind == "transfer":
        rows = transfer_rows(record)
        headline, others = ({column_of(row): row for row in rows if row["metric"] == m} for m in ("acc", "devacc"))
        return headline, others, record.transfer_average
    return {column_of(row): row for row in supervised_rows(record) if row["metric"] == "pearson"}, {}, None


def _subsets_table(records: Sequence[RunFields]) -> Table:
    """Return one row per task, subset and metric with a column per model, scores x 100."""
    return Table(across_models((label, row) for label, record in _labelled(records) for row in _all_rows(record)))


def across_models(rows: Iterable[tuple[str, Row]]) -> Rows:
    """Return a row for each task, subset and metric, with a column for each model.

    Args:
        rows: of the models, each with its model's label.
    """
    keys = ("task", "subset", "metric", "pairs")
    found: dict[tuple[Any, ...], dict[Key, Any]] = {}
    times: Counter[tuple[Any, ...]] = Counter()
    for label, row in rows:
        where = tuple(row[key] for key in keys)
        # A model that has two alike (own pairs, say, that are called as a trained task) has a row for each.
        times[label, where] += 1
        cells = found.setdefault((times[label, where], where), dict(zip(keys, where, strict=True)))
        cells[Named("model", label)] = row["score"]
    return Rows(list(found.values()))


def _remarks(record: RunFields) -> Iterator[str]:
    average = record.average
    if average and average.score is not None and average.of_rounded is not None:
        exact, rounded = f"{100 * average.score:.2f}", f"{average.of_rounded:.2f}"
        if exact != rounded:
            yield f"the average of the rounded scores, as papers print it, is {rounded}"
    # An imported score comes without these counts.
    if zero := sum(task.zero_pairs or 0 for task in record.tasks):
        yield f"{zero} pairs with a zero vector, scored 0"
    if truncated := sum(part.truncated_sentences or 0 for part in record.parts):
        yield f"{truncated} sentences were cut at the maximum length"
    for part in record.transfer:
        if part.f1 is not None:
            yield f"F1 of {part.task} {100 * part.f1:.2f}"
    for head in record.heads:
        score = "undefined" if head.score is None else f"{100 * head.score:.2f}"
        yield f"head {head.task}, trained with the encoder: {head.measure} {score} on {head.ndev:,} rows"
    for task in record.tasks:
        if task.raters is not None and task.raters.ceiling is not None:
            ceiling = f"{100 * task.raters.ceiling:.2f}"
            yield f"{task.task}: the ceiling that its raters' agreement sets is a Pearson of {ceiling}"
    if any(part.data.status == "modified" for part in record.parts):
        yield "data: modified (see the notes)"
    if any(part.data.status == "unverified" for part in record.parts):
        yield "data: unverified (nobody vouches for the files' hashes)"


def _labelled(records: Sequence[RunFields]) -> Iterator[tuple[str, RunFields]]:
    return zip(labels(records), records, strict=True)
