"""The run record: its scores, and its items table, which is read from disk on first use."""

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field, PrivateAttr

from stsbench.base.errors import UserError
from stsbench.data.rows import read_bytes
from stsbench.records.kinds import ITEMS, KEY
from stsbench.records.parts import (
    IMPORTED,
    SCHEMA_VERSION,
    AveragePart,
    HeadScore,
    ModelPart,
    ProtocolPart,
    RecordPart,
    Score,
    TableFile,
)
from stsbench.records.scores import Scores, score_rows
from stsbench.records.signature import Signature
from stsbench.render.table import Result, Style, Tables
from stsbench.statistics.correlations import CORRELATIONS

RECORD = "run.json"


class MissingTableError(UserError):
    """A record's items table is missing."""


class RunRecord(Result, RecordPart):
    """One measurement of one model. It prints itself like `stsbench run`.

    Attributes:
        schema_version: of this layout.
        stsbench: the version that wrote it.
        created: when, in UTC.
        command: the command line, home folder redacted.
        model: the measured model.
        protocol: how.
        scores: the results, in the order of `KINDS`.
        averages: the mean of the headlines of each kind with several tasks.
        heads: of a trained checkpoint: the dev scores of its task heads.
        notes: messages of the run: choices made, mismatches, modified data.
        environment: Python, platform, packages, threads.
        seconds: time by stage.
        encoding: distinct texts and sequences, how many were encoded, real and padded tokens.
        items_file: the items table on disk; None for a record in memory, and for imported scores.
    """

    schema_version: int = SCHEMA_VERSION
    stsbench: str
    created: str
    command: str = ""
    model: ModelPart
    protocol: ProtocolPart
    scores: tuple[Score, ...] = Field(min_length=1)
    averages: tuple[AveragePart, ...] = ()
    heads: tuple[HeadScore, ...] = ()
    notes: tuple[str, ...] = ()
    environment: dict[str, Any]
    seconds: dict[str, float]
    encoding: dict[str, int]
    items_file: TableFile | None = None

    _folder: Path | None = PrivateAttr(default=None)
    _items: Any = PrivateAttr(default=None)
    _replaced: bool = PrivateAttr(default=False)

    def __eq__(self, other: object) -> bool:
        # Without the private fields: items are compared by the hash in `items_file`.
        return isinstance(other, RunRecord) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    @property
    def frame(self) -> pd.DataFrame:
        """A row per task, subset and metric, with the score x 100 and the limits of its interval.

        Columns: task, subset (empty for the whole task), metric, items, score, low, high, signature. Tasks are
        ordered by kind, with the average of each kind last.
        """
        return pd.DataFrame(score_rows(self))

    def table(self) -> Tables:
        """Returns a table per kind of task: a column per task and their average, scores x 100, with limits."""
        return Scores([self]).table()

    def to(self, style: Style) -> str:
        """Returns the scores as text (Markdown and LaTeX without intervals), or everything as `csv` or `json`."""
        return Scores([self]).to(style) if style in {"markdown", "latex"} else super().to(style)

    def to_dict(self) -> Any:
        """Returns the record with the fields of `run.json`."""
        return json.loads(self.model_dump_json())

    def average(self, kind: str) -> AveragePart | None:
        """Returns the mean over the tasks of a kind; None if there is none."""
        return next((average for average in self.averages if average.kind == kind), None)

    def scores_of(self, kind: str) -> tuple[Score, ...]:
        """Returns the scores of the tasks of a kind."""
        return tuple(score for score in self.scores if score.kind == kind)

    @property
    def is_imported(self) -> bool:
        """Whether the scores come from another program's results; then there is no items table."""
        return self.model.kind == IMPORTED

    @property
    def signature(self) -> str:
        """All signatures, one per line."""
        return "\n".join(score.signature for score in self.scores)

    @property
    def signatures(self) -> tuple[Signature, ...]:
        """The signature of each task's score."""
        return tuple(Signature.parse(score.signature) for score in self.scores)

    @property
    def folder(self) -> Path | None:
        """The folder that the record was saved in or read from; None for a record in memory."""
        return self._folder

    @property
    def replaced(self) -> bool:
        """Whether saving it replaced a record of the same measurement."""
        return self._replaced

    @property
    def items(self) -> pd.DataFrame:
        """The items table, one row per scored pair and prediction; the reference on records lists its columns.

        Raises:
            MissingTableError: if the record has no table, or its file is missing.
            UserError: if the file is not the table that the record was computed from.
        """
        return self._table().copy()

    def with_items(
        self, items: pd.DataFrame | None, folder: Path | None = None, *, replaced: bool = False
    ) -> "RunRecord":
        """Returns the record with its items table in memory."""
        record = self.model_copy()
        record._items, record._folder, record._replaced = items, folder, replaced
        return record

    def compared_pairs(self) -> pd.DataFrame:
        """Returns the rows of the pairs whose similarity was correlated with gold scores.

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
        """Returns the rows of the items table that each score's headline is over, by the scores' keys."""
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
    """Returns the error for a record without scored pairs."""
    where = f" in {record.folder}" if record.folder else ""
    return MissingTableError(
        f"the run of {record.model.name}{where} has no STS task, but this needs scored pairs: measure one with "
        "--tasks."
    )


def _read_items(folder: Path | None, file: TableFile | None) -> pd.DataFrame:
    if folder is None or file is None:
        raise MissingTableError("this record has no items table: measure again.")
    table = folder / ITEMS
    if not table.exists():
        raise MissingTableError(f"{table} is missing: copy it into the folder of {RECORD}, or measure again.")
    content = read_bytes(table)
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise UserError(f"{table} is not the table that {RECORD} was computed from: measure again.")
    return _parsed(content)


@lru_cache(maxsize=4)
def _parsed(content: bytes) -> pd.DataFrame:
    """Reads a table, once for several analyses of the same record."""
    try:
        return pd.read_parquet(BytesIO(content))
    except (ValueError, OSError) as error:
        raise UserError(f"{ITEMS} cannot be read as a table: measure again.") from error
