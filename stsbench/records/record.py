"""The run record: everything that is said about a model is computed from it and its tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import PrivateAttr, model_validator

from stsbench.base.errors import UserError
from stsbench.records.parts import (
    AveragePart,
    Interval,
    ModelPart,
    Part,
    ProtocolPart,
    SupervisedPart,
    TableFile,
    TaskPart,
    TransferPart,
)
from stsbench.records.signature import Signature

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION = 1

IMPORTED = "imported"
"""The kind of a model whose scores were read from the results of another program."""


class RunRecord(Part):
    """One measurement of one model.

    Attributes:
        schema_version: of this layout.
        stsbench: the version that wrote it.
        created: when, in UTC.
        command: the command line, home folder redacted.
        model: what was measured.
        protocol: how.
        tasks: the STS scores.
        average: their mean; None for a single task.
        transfer: the scores of the transfer tasks.
        transfer_average: the mean of their `acc`; None for a single task.
        supervised: the scores of the relatedness tasks whose regressor was trained.
        notes: what the person was told: choices made for them, mismatches, modified data.
        environment: Python, platform, packages, threads.
        seconds: time by stage.
        encoding: distinct texts and sequences, how many were encoded, real and padded tokens.
        pairs_file: the pair table on disk; None for a record in memory, or without STS tasks.
        items_file: the item table on disk; None for a record in memory, or with STS tasks alone.
    """

    schema_version: int = SCHEMA_VERSION
    stsbench: str
    created: str
    command: str = ""
    model: ModelPart
    protocol: ProtocolPart
    tasks: tuple[TaskPart, ...] = ()
    average: AveragePart | None = None
    transfer: tuple[TransferPart, ...] = ()
    transfer_average: AveragePart | None = None
    supervised: tuple[SupervisedPart, ...] = ()
    notes: tuple[str, ...] = ()
    environment: dict[str, Any]
    seconds: dict[str, float]
    encoding: dict[str, int]
    pairs_file: TableFile | None = None
    items_file: TableFile | None = None

    _pairs: Any = PrivateAttr(default=None)
    _items: Any = PrivateAttr(default=None)
    _folder: Path | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _headline_is_there(self) -> Self:
        if not (self.tasks or self.transfer or self.supervised):
            raise ValueError("it has no task")
        metric = self.protocol.metric
        for task in self.tasks:
            parts = [task.scores.get(self.protocol.aggregation, {}), *(subset.scores for subset in task.subsets)]
            if not all(metric in scores for scores in parts):
                raise ValueError(f"{task.task} lacks a score by {metric}")
        return self

    def __eq__(self, other: object) -> bool:
        """Return whether both say the same; their tables are told apart by the hashes in
        `pairs_file` and `items_file`.
        """
        return isinstance(other, RunRecord) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    @property
    def pairs(self) -> "pd.DataFrame":
        """The pair table, one row per scored pair.

        Columns: task, split, text, subset, pair_id, gold; the similarities (float64); the lengths of both sides
        in words, sub-words (-1 where unknown) and characters.

        Raises:
            UserError: if the record was read from disk and its pair table is missing or another one.
        """
        if self._pairs is None:
            from stsbench.records.store import PAIRS

            self._pairs = self._read_table(PAIRS, self.pairs_file)
        table: pd.DataFrame = self._pairs
        return table

    @property
    def items(self) -> "pd.DataFrame":
        """The item table, one row per prediction of a transfer task, or of a trained regressor.

        Columns: task, text, split, item_id; label, prediction and correct (transfer tasks); fold (the fold that
        held the item out, -1 where none did); gold and estimate (float64, supervised tasks, else NaN).

        Raises:
            UserError: if the record has none, or it is missing or another one.
        """
        if self._items is None:
            from stsbench.records.store import ITEMS

            self._items = self._read_table(ITEMS, self.items_file)
        table: pd.DataFrame = self._items
        return table

    @property
    def parts(self) -> tuple[TaskPart | TransferPart | SupervisedPart, ...]:
        """The scores of all tasks of all kinds."""
        return (*self.tasks, *self.transfer, *self.supervised)

    @property
    def is_imported(self) -> bool:
        """Whether the scores come from the results of another program; there are no tables then."""
        return self.model.kind == IMPORTED

    @property
    def signatures(self) -> tuple[Signature, ...]:
        """The signature of each task's score."""
        return tuple(Signature.parse(text) for text in self.signature.splitlines())

    @property
    def signature(self) -> str:
        """All signatures, one a line."""
        return "\n".join(part.signature for part in self.parts)

    def table(self) -> "pd.DataFrame":
        """Return one row per task, subset and metric: pairs, score x 100 and the limits of its interval.

        Columns: task, subset (empty for the task as a whole), metric, pairs (of a transfer task: items), score,
        low, high, signature. STS tasks come first with their average last, then transfer tasks with theirs,
        then supervised ones. Of two splits or texts of one task, the label says which is which.
        """
        import pandas as pd

        return pd.DataFrame([*sts_rows(self), *transfer_rows(self), *supervised_rows(self)])

    def _read_table(self, name: str, file: TableFile | None) -> "pd.DataFrame":
        from stsbench.records.store import read_table

        if self.is_imported:
            raise UserError(f"{self.model.name} was imported, with scores alone: measure it for the {name}.")
        return read_table(self._folder, name, file)

    @property
    def folder(self) -> Path | None:
        """The folder that the record was saved in or read from; None for one in memory."""
        return self._folder

    def with_tables(
        self, pairs: "pd.DataFrame | None", items: "pd.DataFrame | None" = None, folder: Path | None = None
    ) -> "RunRecord":
        """Return the record holding its pair table and its item table."""
        record = self.model_copy()
        record._pairs, record._items, record._folder = pairs, items, folder
        return record


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
