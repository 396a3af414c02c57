"""The run record: its scores, and its items table, which is read from disk on first use."""

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
from stsbench.base.files import require_file
from stsbench.base.manifest import DIGEST
from stsbench.records.items import ITEMS, KEY
from stsbench.records.parts import RunFields, TableFile, sealed
from stsbench.records.scores import Scores, score_rows
from stsbench.render.result import Result
from stsbench.render.table import Style, Tables
from stsbench.statistics.correlations import CORRELATIONS

RECORD = "run.json"


class MissingTableError(UserError):
    """A record's items table is missing."""


class RunRecord(Result, RunFields):
    """One measurement of one model, with the fields of `run.json`.

    Everything else is computed from it and its items. It prints itself like `stsbench run`.
    """

    _items: Any = PrivateAttr(default=None)
    _replaced: bool = PrivateAttr(default=False)

    def __eq__(self, other: object) -> bool:
        # Items are compared by the hash in `items_file`; a record in memory has no digest.
        return isinstance(other, RunRecord) and self.__dict__ | {DIGEST: None} == other.__dict__ | {DIGEST: None}

    __hash__ = None  # type: ignore[assignment]

    @property
    def frame(self) -> pd.DataFrame:
        """A row per task, subset and metric, with the score x 100 and the limits of its interval.

        Columns: task, subset (empty for the whole task), metric, items, score, low, high, signature. Tasks are
        ordered by kind, with the average of each kind last.
        """
        return pd.DataFrame(score_rows(self))

    def table(self) -> Tables:
        """Return a table per kind of task: a column per task and their average, scores x 100, with limits."""
        return Scores([self]).table()

    def to(self, style: Style) -> str:
        """Return the scores as text (Markdown and LaTeX without intervals), or everything as `csv` or `json`.

        Raises:
            UserError: if the format does not exist.
        """
        return Scores([self]).to(style) if style in {"markdown", "latex"} else super().to(style)

    def to_dict(self) -> Any:
        """Return the record with the fields of `run.json`."""
        return json.loads(sealed(self).model_dump_json())

    @property
    def items(self) -> pd.DataFrame:
        """The items table, one row per scored pair and prediction; the reference on records lists its columns.

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
    """Return the error for a record without scored pairs."""
    where = f" in {record.folder}" if record.folder else ""
    return MissingTableError(
        f"the run of {record.model.name}{where} has no STS task, and this is computed of scored pairs: measure "
        "with --tasks that have one."
    )


def staged(table: Path) -> Path:
    """Return the path of a table that the rename of `run.json` has not committed yet."""
    return table.with_suffix(f".next{table.suffix}")


def _read_items(folder: Path | None, file: TableFile | None) -> pd.DataFrame:
    if folder is None or file is None:
        raise MissingTableError("this record has no items table: measure again.")
    table = folder / ITEMS
    # A writer may move the staged table to its place between two looks, so the place is looked at twice.
    for path in (table, staged(table), table):
        if not path.exists():
            continue
        require_file(path, absent="put back the table")
        try:
            content = path.read_bytes()
        except FileNotFoundError:
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
