"""The run record that people hold: its scores, and its items table, read from disk when it is asked for."""

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import PrivateAttr

from stsbench.base.errors import UserError
from stsbench.base.files import DIGEST
from stsbench.records.items import ITEMS, KEY
from stsbench.records.parts import RunFields, TableFile, sealed
from stsbench.records.scores import Scores, score_rows
from stsbench.render.result import Result
from stsbench.render.table import Style, Tables
from stsbench.statistics.correlations import CORRELATIONS

RECORD = "run.json"


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
    def frame(self) -> pd.DataFrame:
        """Items, score x 100 and limits of the interval, a row per task, subset and metric.

        Columns: task, subset (empty for the task as a whole), metric, items, score, low, high, signature. Tasks
        stand kind by kind, the average of each kind last. Of two splits or texts of one task, the label says
        which is which.
        """
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
    def items(self) -> pd.DataFrame:
        """The items table, a row for each scored pair and each prediction.

        Columns: kind, task, split, text, subset, item_id; the numbers that identify its sentences; and those that
        the tasks of the record have (NaN or -1 in the rows of others): gold; the similarities (float64); the
        lengths of both sides in words, sub-words (-1 where unknown) and characters; label, prediction and correct
        (1 or 0); fold (the fold that held the item out, -1 if none did); `supervised`, the estimate of a trained
        regressor.

        Raises:
            MissingTableError: if the record has no table, or its file is missing.
            UserError: if the file is not the table that the record was computed from.
        """
        return self._table().copy()

    @property
    def replaced(self) -> bool:
        """Whether saving it replaced a record of the same measurement."""
        return self._replaced

    def with_items(
        self, items: pd.DataFrame | None, folder: Path | None = None, *, replaced: bool = False
    ) -> "RunRecord":
        """Return the record holding its items table."""
        record = self.model_copy()
        record._items, record._folder, record._replaced = items, folder, replaced
        return record

    def compared_pairs(self) -> pd.DataFrame:
        """Return the rows of the pairs whose similarity was correlated with gold scores.

        Raises:
            MissingTableError: if the record has no such task, or no items table.
            UserError: as `items`.
        """
        table = self._table()
        kinds = [score.kind for score in self.scores if score.statistic in CORRELATIONS and not score.training]
        if not kinds:
            raise without_pairs(self)
        return table[table["kind"].isin(kinds)].reset_index(drop=True)

    def rows_by_score(self) -> Mapping[tuple[str, str, str, str], pd.DataFrame]:
        """Return the rows of the items table that each score's headline is over, by the scores' keys.

        Raises:
            UserError: as `items`.
        """
        groups = self._table().groupby(list(KEY), sort=False)
        return {tuple(map(str, key)): rows.reset_index(drop=True) for key, rows in groups}  # type: ignore[misc]

    def _table(self) -> pd.DataFrame:
        if self._items is not None:
            items: pd.DataFrame = self._items
            return items
        if self.is_imported:
            raise MissingTableError(
                f"{self.model.name} was imported with its scores only: measure it to get the {ITEMS}."
            )
        return _read_items(self.folder, self.items_file)


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


def _read_items(folder: Path | None, file: TableFile | None) -> pd.DataFrame:
    if folder is None or file is None:
        raise MissingTableError("this record has no items table: measure again.")
    table = folder / ITEMS
    # A writer may move the staged table to its place between two looks, so the place is looked at twice.
    for path in (table, staged(table), table):
        try:
            content = path.read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            continue
        except OSError as error:
            raise UserError(f"cannot read {path} ({error.strerror or error}): check its permissions.") from error
        if hashlib.sha256(content).hexdigest() == file.sha256:
            return _parsed(content)
    if not table.exists():
        raise MissingTableError(f"{table} is missing: copy it beside {RECORD}, or measure again.")
    raise UserError(f"{table} is not the table that {RECORD} was computed from: measure again.")


@lru_cache(maxsize=4)
def _parsed(content: bytes) -> pd.DataFrame:
    """Read a table, once for several analyses of the same record."""
    try:
        return pd.read_parquet(BytesIO(content))
    except (ValueError, OSError) as error:
        raise UserError(f"{ITEMS} cannot be read as a table: measure again.") from error
