"""The scores of records as tables: one row per number, or one row per model as in papers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import pandas as pd

from stsbench.records.kinds import KINDS
from stsbench.records.labels import interval_remarks, labels, task_labels
from stsbench.records.parts import Number
from stsbench.records.signature import Signature, in_one_line, require_same_protocol
from stsbench.render.formats import labels_beside
from stsbench.render.table import Result, Style, Table, Tables

if TYPE_CHECKING:
    from stsbench.records.record import RunRecord

Row = dict[str, Any]
"""task, subset, metric, items, score, low, high, signature."""


@dataclass(frozen=True)
class Scores(Result):
    """The scores of records, side by side.

    Attributes:
        records: records of the same protocol (see `require_comparable`).
        subsets: whether to add a table of every subset and metric.
        intervals: whether two rows below each model show its confidence limits, and another the `devacc` of
            transfer tasks. Markdown and LaTeX never have them.
    """

    records: Sequence["RunRecord"]
    subsets: bool = False
    intervals: bool = True

    @property
    def frame(self) -> pd.DataFrame:
        """A row per model, task, subset and metric.

        Columns: model, those of `RunRecord.frame`, `aggregation` (of transfer tasks: the folds) and `similarity`
        (of trained tasks: the classifier or regressor).
        """
        frames = []
        for label, record in _labelled(self.records):
            frame = pd.DataFrame(score_rows(record))
            frame.insert(0, "model", label)
            # Only the first row of a task has the signature.
            signatures = [Signature.parse(text) for text in frame["signature"].replace("", None).ffill()]
            frame["aggregation"] = [signature.aggregation for signature in signatures]
            frame["similarity"] = [signature.similarity for signature in signatures]
            # The folds differ between trained tasks, so their mean has none.
            for average in record.averages:
                if any(score.training for score in record.scores_of(average.kind)):
                    frame.loc[frame["task"] == KINDS[average.kind].average, "aggregation"] = ""
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def table(self) -> Tables:
        """Returns a table per kind of task: a row per model, a column per task and their average, scores x 100.

        For a single task, each subset has a column, too.
        """
        tables = [
            _papers_table(self.records, kind, intervals=self.intervals)
            for kind in KINDS
            if any(record.scores_of(kind) for record in self.records)
        ]
        if self.subsets:
            rows = ((label, row) for label, record in _labelled(self.records) for row in score_rows(record))
            tables.append(Table(across_models(rows)))
        return Tables(tables)

    def to(self, style: Style) -> str:
        """Returns the tables as text (Markdown and LaTeX without intervals), or everything as `csv` or `json`."""
        if style in {"markdown", "latex"}:
            return Scores(self.records, self.subsets, intervals=False).table().to(style)
        return super().to(style)

    def to_dict(self) -> Any:
        """Returns the records with the fields of `run.json`."""
        return [record.to_dict() for record in self.records]

    @property
    def remarks(self) -> list[str]:
        """The signatures, in as few lines as possible, and notes on the scores."""
        signatures = chain.from_iterable(in_one_line(record.signatures) for record in self.records)
        remarks = (
            f"{label}: {remark}" for label, record in _labelled(self.records) for remark in _remarks(record)
        )
        intervals = interval_remarks(list(_labelled(self.records))) if self.intervals else ()
        return [*dict.fromkeys(signatures), *intervals, *remarks]


def require_comparable(records: Sequence["RunRecord"]) -> None:
    """Checks that records have the same protocol on the tasks that they share."""
    first: dict[str, tuple[str, Signature]] = {}
    for label, record in _labelled(records):
        for task, signature in zip(task_labels(record.scores), record.signatures, strict=True):
            other, known = first.setdefault(task, (label, signature))
            require_same_protocol(known, signature, names=(other, label), task=task, remedy="show them one by one")


def score_rows(record: "RunRecord") -> list[Row]:
    """Returns the rows of a record, kind by kind: each task with its subsets, the average last."""
    return [row for kind in KINDS for row in rows_of_kind(record, kind)]


def rows_of_kind(record: "RunRecord", kind: str) -> list[Row]:
    """Returns the rows of the tasks of a kind, the average last."""
    rows, scores = [], record.scores_of(kind)
    for label, score in zip(task_labels(scores), scores, strict=True):
        first, *others = score.headlines
        rows.append(_row(label, first, score.signature))
        rows += [_row(label, number) for number in others]
        rows += [_row(label, number) for number in score.subsets if len(score.subsets) > 1]
    average = record.average(kind)
    if average is not None:
        items = sum(score.items or 0 for score in scores)
        # Given items may have another measure in each task.
        statistics = {score.statistic for score in scores}
        statistic = scores[0].statistic if len(statistics) == 1 else "mean"
        mean = Number(statistic=statistic, value=average.value, items=items, interval=average.interval)
        rows.append(_row(KINDS[kind].average, mean))
    return rows


def headline_rows(record: "RunRecord", kind: str) -> list[Row]:
    """Returns the headlines among `rows_of_kind`, and their average."""
    scores = record.scores_of(kind)
    headlines = {label: score.statistic for label, score in zip(task_labels(scores), scores, strict=True)}
    rows = rows_of_kind(record, kind)
    return [row for row in rows if row["metric"] == headlines.get(row["task"], row["metric"])]


def _row(task: str, number: Number, signature: str = "") -> Row:
    low, high = number.interval or (None, None)
    return {
        "task": task,
        "subset": number.subset,
        "metric": number.statistic,
        "items": number.items,
        "score": _percent(number.value),
        "low": _percent(low),
        "high": _percent(high),
        "signature": signature,
    }


def _percent(value: float | None) -> float:
    return float("nan") if value is None else 100 * value


def _papers_table(records: Sequence["RunRecord"], kind: str, *, intervals: bool) -> Table:
    """Returns one row per model with a column per task of a kind and their average, scores x 100."""
    measured = [(label, record) for label, record in _labelled(records) if record.scores_of(kind)]
    rows = [row for label, record in measured for row in _rows_of_model(label, record, kind, intervals=intervals)]
    name = KINDS[kind].average
    averages = {average.tasks for _, record in measured if (average := record.average(kind)) is not None}
    if len(averages) > 1:
        # Means over different tasks are not comparable.
        rows = [{key: value for key, value in row.items() if key != name} for row in rows]
    return Table(pd.DataFrame(rows, dtype=object), headline=name)


def _rows_of_model(label: str, record: "RunRecord", kind: str, *, intervals: bool) -> Iterator[dict[str, Any]]:
    """Yields the row of a model's scores, and with intervals those of their limits and of `devacc`."""

    def cells(name: str, rows: Mapping[str, Row], column: str) -> dict[str, Any]:
        return {"model": name, **{key: row[column] for key, row in rows.items()}}

    is_single, below = len(record.scores_of(kind)) == 1, KINDS[kind].below
    # For a single task, its subsets have columns, too.
    headline = {column_of(row): row for row in headline_rows(record, kind) if is_single or not row["subset"]}
    yield cells(label, headline, "score")
    if intervals and record.protocol.interval:
        tail = 50 * (1 - record.protocol.level)
        for share, limit in ((tail, "low"), (100 - tail, "high")):
            yield cells(f"  {share:g} %", headline, limit)
    if intervals and below:
        others = {column_of(row): row for row in rows_of_kind(record, kind) if row["metric"] == below}
        yield cells(f"  {below}", others, "score")


def column_of(row: Row) -> str:
    """Returns the column of a row of `score_rows`: the task or the subset, as `task: subset` if both are equal."""
    task, subset = row["task"], row["subset"]
    return f"{task}: {subset}" if subset in {task, "model"} else subset or task


def across_models(rows: Iterable[tuple[str, Row]]) -> pd.DataFrame:
    """Pivots labelled rows: a row per task, subset and metric, and a column per model."""
    keys = ("task", "subset", "metric", "items")
    wide: dict[tuple[Any, ...], dict[str, Any]] = {}
    times: Counter[tuple[Any, ...]] = Counter()
    labelled = list(rows)
    columns = labels_beside((label for label, _ in labelled), taken=keys)
    for label, row in labelled:
        where = tuple(row[key] for key in keys)
        # A model can have two rows with the same keys, if your own pairs have a trained task's name.
        times[label, where] += 1
        cells = wide.setdefault((times[label, where], where), dict(zip(keys, where, strict=True)))
        cells[columns[label]] = row["score"]
    return pd.DataFrame(list(wide.values()), dtype=object)


def _remarks(record: "RunRecord") -> Iterator[str]:
    for average in record.averages:
        if average.value is not None and average.of_rounded is not None:
            exact, rounded = f"{100 * average.value:.2f}", f"{average.of_rounded:.2f}"
            if exact != rounded:
                yield f"the average of the rounded scores, as papers print it, is {rounded}"
    if zero := sum(score.counts.get("zero_pairs", 0) for score in record.scores):
        yield f"{zero} pairs with a zero vector, scored 0"
    if truncated := sum(score.truncated_sentences or 0 for score in record.scores):
        yield f"{truncated} sentences were cut at the maximum length"
    if "index_bytes" in record.encoding:
        yield ", ".join(_costs(record))
    for score in record.scores:
        if (f1 := score.number("f1")) is not None and f1.value is not None:
            yield f"F1 of {score.task} {100 * f1.value:.2f}"
    for head in record.heads:
        reached = "undefined" if head.score is None else f"{100 * head.score:.2f}"
        yield f"head {head.task}, trained with the encoder: {head.measure} {reached} on {head.ndev:,} rows"
    for score in record.scores:
        if score.raters is not None and (ceiling := score.raters.ceiling) is not None:
            yield f"{score.task}: the raters' agreement limits Pearson to {100 * ceiling:.2f}"
    statuses = {score.data.status for score in record.scores}
    meanings = {"modified": "see the notes", "unverified": "the catalogue has no hash of some files"}
    yield from (f"data: {status} ({meaning})" for status, meaning in meanings.items() if status in statuses)


def _costs(record: "RunRecord") -> Iterator[str]:
    """Yields the cost of retrieval: encoding, unless the vectors were cached, search, and the index."""
    encoding = record.encoding
    if (rate := seconds_per_1000(record)) is not None:
        yield f"encoding {rate:.3g} s per 1,000 texts"
    yield f"search {encoding['search_microseconds'] / 1000 / encoding['queries']:.3g} ms per query"
    yield f"index {encoding['index_bytes'] / 1e6:.3g} MB of {encoding['documents']:,} documents"


def seconds_per_1000(record: "RunRecord") -> float | None:
    """Returns the seconds to encode 1,000 texts; None if their vectors were cached."""
    encoded, seconds = record.encoding.get("encoded", 0), record.seconds
    return 1000 * (seconds["tokenize"] + seconds["encode"]) / encoded if encoded else None


def _labelled(records: Sequence["RunRecord"]) -> Iterator[tuple[str, "RunRecord"]]:
    return zip(labels(records), records, strict=True)
