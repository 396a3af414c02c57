"""The run record that people hold: its scores, and its items table, read from disk when it is asked for."""

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from pydantic import PrivateAttr

from stsbench.base.errors import UserError
from stsbench.base.files import DIGEST
from stsbench.data.tables import PlainTable
from stsbench.records.items import ITEMS, KEY, as_plain, fault_in_columns, fault_in_rows, read_table
from stsbench.records.parts import RunFields, TableFile, sealed
from stsbench.records.scores import Scores, score_rows
from stsbench.render.result import Result
from stsbench.render.table import Style, Tables
from stsbench.statistics.correlations import CORRELATIONS

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

RECORD = "run.json"

_Read: TypeAlias = "tuple[pa.Table, Callable[[], PlainTable]]"
"""A table as it was read, and what makes plain columns of it, once."""
_READ: "dict[str, _Read]" = {}
"""The last tables that were read, by the hashes of their files: a record's analyses ask one after the other."""
_KEPT_TABLES = 4
_KEPT_ROWS = 1_000_000
"""The rows up to which a table is kept."""


class MissingTableError(UserError):
    """The items table of a record that has none, or that is not beside it."""


class RunRecord(Result, RunFields):
    """One measurement of one model; everything that is said about the model is computed from it and its items.

    Its fields are those of `run.json`; it prints itself as `stsbench run` does.
    """

    _items: Any = PrivateAttr(default=None)
    _replaced: bool = PrivateAttr(default=False)

    def __eq__(self, other: object) -> bool:
        # Their tables are told apart by the hash in `items_file`; the digest says nothing of its own.
        return isinstance(other, RunRecord) and self.__dict__ | {DIGEST: None} == other.__dict__ | {DIGEST: None}

    __hash__ = None  # type: ignore[assignment]

    @property
    def frame(self) -> "pd.DataFrame":
        """Items, score x 100 and limits of the interval, a row per task, subset and metric.

        Columns: task, subset (empty for the task as a whole), metric, items, score, low, high, signature. Tasks
        stand kind by kind, the average of each kind last. Of two splits or texts of one task, the label says
        which is which.
        """
        import pandas as pd

        return pd.DataFrame(score_rows(self))

    def table(self) -> Tables:
        """Return the scores x 100 as papers print them, a column a task, the limits of the intervals below.

        There is a table for each kind of task, with the average where the kind has one.
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
    def items(self) -> "pd.DataFrame":
        """The items table, one row for each scored pair and each prediction.

        Columns: kind, task, split, text, subset, item_id; the numbers that stand for its sentences; and those that
        the tasks of the record have (NaN, None or -1 in the rows of others): gold; the similarities (float64);
        the lengths of both sides in words, sub-words (-1 where unknown) and characters; label, prediction and
        correct (1 or 0); fold (the fold that held the item out, -1 where none did); `supervised`, the estimate of
        a trained regressor.

        Raises:
            UserError: if the record has none, or it is missing or another one.
        """
        items: pd.DataFrame = self.item_table().frame
        return items

    @property
    def replaced(self) -> bool:
        """Whether saving it replaced a record of the same measurement."""
        return self._replaced

    def with_items(
        self, items: "PlainTable | None", folder: Path | None = None, *, replaced: bool = False
    ) -> "RunRecord":
        """Return the record holding its items table."""
        record = self.model_copy()
        record._items, record._folder, record._replaced = items, folder, replaced
        return record

    def item_table(self) -> PlainTable:
        """Return what `items` holds as plain columns: from memory, or from disk, hashed each time.

        Raises:
            MissingTableError: if the record has none, or it is not there.
            UserError: if it is another one.
        """
        if self._items is not None:
            items: PlainTable = self._items
            return items
        if self.is_imported:
            raise MissingTableError(
                f"{self.model.name} was imported, with scores alone: measure it for the {ITEMS}."
            )
        table, plain = _read_table(self.folder, self.items_file)
        if self.items_file is not None and len(table) != self.items_file.rows:
            self._require_sound(f"has {len(table)} rows, and {RECORD} says {self.items_file.rows}")
        self._require_sound(fault_in_columns(table, self))
        items = plain()
        self._require_sound(fault_in_rows(items, self))
        return items

    def compared_pairs(self) -> PlainTable:
        """Return the rows of the pairs whose similarity was correlated with gold, which analyses look at.

        Raises:
            MissingTableError: if the record has no such task, or its items are not there.
            UserError: as `item_table`.
        """
        table = self.item_table()
        kinds = [score.kind for score in self.scores if score.statistic in CORRELATIONS and not score.training]
        if not kinds:
            raise without_pairs(self)
        return table.take(np.isin(table["kind"], kinds))

    def rows_by_score(self) -> Mapping[tuple[str, str, str, str], PlainTable]:
        """Return the rows of the items table that each score's headline is over, by the scores' keys.

        Raises:
            UserError: as `item_table`.
        """
        return self.item_table().by(KEY)

    def _require_sound(self, fault: str) -> None:
        if fault:
            place = ITEMS if self.folder is None else self.folder / ITEMS
            raise UserError(f"{place} {fault}: it is not this record's table; measure again.")


def without_pairs(record: RunRecord) -> MissingTableError:
    """Return the error of a record of which something is asked that is computed of scored pairs."""
    where = f" in {record.folder}" if record.folder else ""
    return MissingTableError(
        f"the run of {record.model.name}{where} has no STS task, and this is computed of scored pairs: measure "
        "with --tasks that have one."
    )


def staged(table: Path) -> Path:
    """Return the place where a table waits until the rename of `run.json` commits it."""
    return table.with_suffix(f".next{table.suffix}")


def _parsed(content: bytes, sha256: str) -> "_Read":
    """Return the table in the bytes of that hash."""
    if (known := _READ.get(sha256)) is not None:
        return known
    table = read_table(content)
    read = table, cache(lambda: as_plain(table).read_only())
    if len(table) <= _KEPT_ROWS:
        for oldest in list(_READ)[: 1 - _KEPT_TABLES]:
            _READ.pop(oldest, None)
        _READ[sha256] = read
    return read


def _read_table(folder: Path | None, file: TableFile | None) -> "_Read":
    if folder is None or file is None:
        raise MissingTableError("this record has no items table: measure again.")
    table = folder / ITEMS
    # The first name is looked at twice: the table may be moved there from the second while we look.
    for path in (table, staged(table), table):
        try:
            if not path.is_file():
                continue
            # Hashed as they were read: another file may be put there at any time.
            content = path.read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UserError(f"cannot read {path} ({error.strerror or error}): check its permissions.") from error
        if hashlib.sha256(content).hexdigest() == file.sha256:
            try:
                return _parsed(content, file.sha256)
            except (ValueError, OSError, KeyError) as error:
                # What pyarrow has against a file that is none of Parquet's.
                raise UserError(f"{path} cannot be read as a table: measure again.") from error
    if not table.exists():
        raise MissingTableError(f"{table} is missing: copy it beside {RECORD}, or measure again.")
    raise UserError(f"{table} is not the table that {RECORD} was computed from: measure again.")
