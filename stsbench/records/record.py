"""The run record that people hold: its scores, and its tables, read from disk when they are asked for."""

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import PrivateAttr

from stsbench.base.digest import DIGEST
from stsbench.base.errors import UserError
from stsbench.base.files import sha256_of
from stsbench.data.plain_table import PlainTable
from stsbench.records.digest import sealed
from stsbench.records.parquet import as_plain, read_table
from stsbench.records.parts import RunFields, TableFile
from stsbench.records.scores import Scores, score_frame
from stsbench.records.tables import ITEMS, PAIRS, fault_in_columns, fault_in_rows
from stsbench.render.result import Result
from stsbench.render.table import Style, Tables

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

RECORD = "run.json"


class MissingTableError(UserError):
    """A table that a record has not, or that is not beside it."""


class RunRecord(Result, RunFields):
    """One measurement of one model; everything that is said about the model is computed from it and its tables.

    Its fields are those of `run.json`; it prints itself as `stsbench run` does.
    """

    _pairs: Any = PrivateAttr(default=None)
    _items: Any = PrivateAttr(default=None)
    _replaced: bool = PrivateAttr(default=False)

    def __eq__(self, other: object) -> bool:
        """Return whether both say the same; their tables are told apart by the hashes in
        `pairs_file` and `items_file`. The digest says nothing of its own.
        """
        return isinstance(other, RunRecord) and self.__dict__ | {DIGEST: None} == other.__dict__ | {DIGEST: None}

    __hash__ = None  # type: ignore[assignment]

    @property
    def frame(self) -> "pd.DataFrame":
        """Pairs, score x 100 and limits of the interval, a row per task, subset and metric.

        Columns: task, subset (empty for the task as a whole), metric, pairs (of a transfer task: items), score,
        low, high, signature. STS tasks come first with their average last, then transfer tasks with theirs,
        then supervised ones. Of two splits or texts of one task, the label says which is which.
        """
        return score_frame(self)

    def table(self) -> Tables:
        """Return the scores x 100 as papers print them, a column a task, the limits of the intervals below.

        There are up to three tables: STS tasks with their average, transfer tasks by `acc` with `devacc` below,
        supervised tasks by Pearson.
        """
        return Scores([self]).table()

    def to(self, style: Style) -> str:
        """Return it as text: scores for readers (Markdown and LaTeX without intervals), all as `csv` and `json`.

        Raises:
            UserError: if there is no such format.
        """
        return Scores([self]).to(style) if style in {"markdown", "latex"} else super().to(style)

    def to_dict(self) -> Any:
        """Return the record as `run.json` has it."""
        return json.loads(sealed(self).model_dump_json())

    @property
    def pairs(self) -> "pd.DataFrame":
        """The pair table, one row per scored pair.

        Columns: task, split, text, subset, pair_id, gold; the similarities (float64); the lengths of both sides
        in words, sub-words (-1 where unknown) and characters; the numbers that stand for its sentences.

        Raises:
            UserError: if the record was read from disk and its pair table is missing or another one.
        """
        if self._pairs is None:
            self._pairs = self.pair_table()
        if isinstance(self._pairs, PlainTable):
            self._pairs = self._pairs.frame
        pairs: pd.DataFrame = self._pairs
        return pairs

    @property
    def items(self) -> "pd.DataFrame":
        """The item table, one row per prediction of a transfer task, or of a trained regressor.

        Columns: task, text, split, item_id; label, prediction and correct (transfer tasks); fold (the fold that
        held the item out, -1 where none did); gold and estimate (float64, supervised tasks, else NaN); the
        numbers that stand for its sentences.

        Raises:
            UserError: if the record has none, or it is missing or another one.
        """
        if self._items is None:
            self._items = self.item_table()
        items: pd.DataFrame = self._items
        return items

    @property
    def replaced(self) -> bool:
        """Whether saving it replaced a record of the same measurement."""
        return self._replaced

    def with_tables(
        self,
        pairs: "PlainTable | pd.DataFrame | None",
        items: "pd.DataFrame | None" = None,
        folder: Path | None = None,
        *,
        replaced: bool = False,
    ) -> "RunRecord":
        """Return the record holding its pair table and its item table."""
        record = self.model_copy()
        record._pairs, record._items, record._folder, record._replaced = pairs, items, folder, replaced
        return record

    def pair_table(self) -> PlainTable:
        """Return what `pairs` holds as plain columns: from memory, or from disk without keeping it.

        Raises:
            MissingTableError: if the record has none, or it is not there.
            UserError: if it is another one.
        """
        if self._pairs is not None:
            return PlainTable.of(self._pairs)
        pairs = as_plain(self._read_table(PAIRS))
        self._require_sound(PAIRS, fault_in_rows(pairs, self))
        return pairs

    def item_table(self) -> "pd.DataFrame":
        """Return what `items` holds: from memory, or from disk without keeping it.

        Raises:
            MissingTableError: if the record has none, or it is not there.
            UserError: if it is another one.
        """
        if self._items is not None:
            items: pd.DataFrame = self._items
            return items
        items = self._read_table(ITEMS).to_pandas()
        self._require_sound(ITEMS, fault_in_rows(items, self))
        return items

    def _read_table(self, name: str) -> "pa.Table":
        if self.is_imported:
            raise MissingTableError(
                f"{self.model.name} was imported, with scores alone: measure it for the {name}."
            )
        file = {PAIRS: self.pairs_file, ITEMS: self.items_file}[name]
        table = _read_table(self.folder, name, file)
        self._require_sound(name, fault_in_columns(name, table, self))
        return table

    def _require_sound(self, name: str, fault: str) -> None:
        if fault:
            raise UserError(f"{_place(self.folder, name)} {fault}: it is not this record's table; measure again.")


def staged(table: Path) -> Path:
    """Return the place where a table waits until the rename of `run.json` commits it."""
    return table.with_suffix(f".next{table.suffix}")


def _read_table(folder: Path | None, name: str, file: TableFile | None) -> "pa.Table":
    if folder is None or file is None:
        lacking = {PAIRS: "pair table (no STS task in it)", ITEMS: "item table (no transfer task in it)"}
        raise MissingTableError(f"this record has no {lacking[name]}: measure with --tasks that have one.")
    table = folder / name
    # The first name is looked at twice: the table may be moved there from the second while we look.
    for path in (table, staged(table), table):
        with suppress(FileNotFoundError):
            if path.is_file() and sha256_of(path) == file.sha256:
                try:
                    # Opened here, as pyarrow takes no path that is not UTF-8.
                    with path.open("rb") as stream:
                        return read_table(stream)
                except FileNotFoundError:
                    raise
                except (ValueError, OSError, KeyError) as error:
                    # What pyarrow has against a file that is none of Parquet's.
                    raise UserError(f"{path} cannot be read as a table: measure again.") from error
    if not table.exists():
        raise MissingTableError(f"{table} is missing: copy it beside {RECORD}, or measure again.")
    raise UserError(f"{table} is not the table that {RECORD} was computed from: measure again.")


def _place(folder: Path | None, name: str) -> str:
    return name if folder is None else str(folder / name)
