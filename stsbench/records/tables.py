"""What the tables of a record must hold: their columns with their types, and the rows that the record counts."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from stsbench.data.sentence_ids import FOLDED, SENTENCES
from stsbench.records.consistency import rows_of_items
from stsbench.records.parts import RunFields
from stsbench.statistics.similarity import SIMILARITIES

if TYPE_CHECKING:
    import pandas as pd

PAIRS = "pairs.parquet"
ITEMS = "items.parquet"

TEXT, NUMBER, COUNT, FLAG, ID = "text", "float64", "whole numbers", "true or false", "uint64"

_PAIR_COLUMNS = {
    **dict.fromkeys(("task", "split", "text", "subset", "pair_id"), TEXT),
    "gold": NUMBER,
    **dict.fromkeys((f"{unit}_{side}" for unit in ("words", "characters", "subwords") for side in "ab"), COUNT),
    **dict.fromkeys(("identical", "zero"), FLAG),
}
_ITEM_COLUMNS = {
    **dict.fromkeys(("task", "text", "split", "item_id"), TEXT),
    # A record of regressors alone has nothing in these two.
    **dict.fromkeys(("label", "prediction"), TEXT),
    "correct": FLAG,
    "fold": COUNT,
    **dict.fromkeys(("gold", "estimate"), NUMBER),
}
_SENTENCE_COLUMNS = dict.fromkeys((*SENTENCES, *FOLDED), ID)
_WITH_SENTENCES = 3
"""The version of the layout from which on tables say which rows share a sentence."""


def fault_in_table(name: str, table: "pd.DataFrame", record: RunFields) -> str:
    """Return what keeps a table from being the one that a record was made with, in words; empty if nothing does.

    Args:
        name: `PAIRS` or `ITEMS`.
        table: as it was read.
        record: whose table it is to be.
    """
    columns = dict(_PAIR_COLUMNS) if name == PAIRS else dict(_ITEM_COLUMNS)
    if record.schema_version >= _WITH_SENTENCES:
        columns |= _SENTENCE_COLUMNS
    if name == PAIRS:
        known = SIMILARITIES if record.protocol.similarity in SIMILARITIES else (record.protocol.similarity,)
        columns |= dict.fromkeys(known, NUMBER)
    faults = _faults_in_columns(table, columns)
    if fault := next(faults, ""):
        return fault
    return next(_faults_in_pairs(table, record) if name == PAIRS else _faults_in_items(table, record), "")


def _faults_in_columns(table: "pd.DataFrame", columns: Mapping[str, str]) -> Iterator[str]:
    for column, kind in columns.items():
        if column not in table.columns:
            yield f"has no column {column}"
        elif not _IS[kind](table[column]):
            yield f"has {table[column].dtype} in its column {column}, which is of {kind}"


def _is_text(column: "pd.Series") -> bool:
    from pandas.api.types import infer_dtype, is_object_dtype, is_string_dtype

    # Before pandas 3, text is read as objects, and what is missing stands among them.
    return bool(is_string_dtype(column)) or (
        bool(is_object_dtype(column)) and infer_dtype(column, skipna=True) in {"string", "empty"}
    )


def _is_count(column: "pd.Series") -> bool:
    return column.dtype.kind in "iu"


def _is_flag(column: "pd.Series") -> bool:
    return str(column.dtype) in {"bool", "boolean"}


_IS: Mapping[str, "Callable[[pd.Series], bool]"] = {
    TEXT: _is_text,
    NUMBER: lambda column: str(column.dtype) == "float64",
    COUNT: _is_count,
    FLAG: _is_flag,
    ID: lambda column: str(column.dtype) == "uint64",
}


def _faults_in_pairs(table: "pd.DataFrame", record: RunFields) -> Iterator[str]:
    expected: Counter[tuple[str, ...]] = Counter()
    for task in record.tasks:
        for subset in task.subsets:
            expected[task.task, task.split, task.text, subset.name] += subset.pairs or 0
    yield from _faults_in_counts(table, ["task", "split", "text", "subset"], expected)
    for column in ("gold", record.protocol.similarity):
        values = table[column].to_numpy()
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values)))
            yield f"has {values[row]} in row {row + 1} of its column {column}"


def _faults_in_items(table: "pd.DataFrame", record: RunFields) -> Iterator[str]:
    if len(table) != (rows := rows_of_items(record)):
        yield f"has {len(table)} rows, and the record's tasks make {rows}"
    # Of a task that was both classified and regressed the rows add up.
    expected: Counter[tuple[str, ...]] = Counter()
    for part in record.transfer:
        expected[part.task, part.text] += part.ntest + (0 if part.design == "nested" else part.ndev)
    for trained in record.supervised:
        expected[trained.task, trained.text] += trained.ntest
    yield from _faults_in_counts(table, ["task", "text"], expected)


def _faults_in_counts(table: "pd.DataFrame", key: list[str], expected: Counter[tuple[str, ...]]) -> Iterator[str]:
    sizes = table.groupby(key, sort=False, dropna=False).size()
    places = (tuple(str(name) for name in where) for where in sizes.index)
    rows = dict(zip(places, sizes.tolist(), strict=True))
    for where in {**expected, **rows}:
        if rows.get(where, 0) != expected[where]:
            yield f"has {rows.get(where, 0)} rows of {' '.join(where)}, and the record says {expected[where]}"
