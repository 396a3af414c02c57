"""What the tables of a record must hold: their columns with their types, and the rows that the record counts."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from stsbench.data.plain_table import PlainTable
from stsbench.data.sentence_ids import FOLDED, SENTENCES
from stsbench.records.consistency import rows_of_items
from stsbench.records.parts import RunFields
from stsbench.statistics.similarity import SIMILARITIES

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

PAIRS = "pairs.parquet"
ITEMS = "items.parquet"

TEXT, NUMBER, COUNT, ID = "text", "float64", "whole numbers", "uint64"
FLAG, MARK = "true or false", "true, false or neither"

_ARROW_TYPES: Mapping[str, frozenset[str]] = {
    # `null` is a column in which nothing is.
    TEXT: frozenset({"string", "large_string", "null"}),
    NUMBER: frozenset({"double"}),
    COUNT: frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    ID: frozenset({"uint64"}),
    FLAG: frozenset({"bool"}),
    MARK: frozenset({"bool"}),
}
_MAY_BE_MISSING = {TEXT, NUMBER, MARK}

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
    "correct": MARK,
    "fold": COUNT,
    **dict.fromkeys(("gold", "estimate"), NUMBER),
}
_SENTENCE_COLUMNS = dict.fromkeys((*SENTENCES, *FOLDED), ID)


def fault_in_columns(name: str, table: "pa.Table", record: RunFields) -> str:
    """Return which column keeps a table from being the one that a record was made with; empty if none does.

    Args:
        name: `PAIRS` or `ITEMS`.
        table: as it was read.
        record: whose table it is to be.
    """
    columns = (_PAIR_COLUMNS if name == PAIRS else _ITEM_COLUMNS) | _SENTENCE_COLUMNS
    if name == PAIRS:
        known = SIMILARITIES if record.protocol.similarity in SIMILARITIES else (record.protocol.similarity,)
        columns |= dict.fromkeys(known, NUMBER)
    return next(_faults_in_columns(table, columns), "")


def fault_in_rows(table: "PlainTable | pd.DataFrame", record: RunFields) -> str:
    """Return which rows do so, of a table of pairs (which is plain) or of items."""
    faults = _faults_in_pairs(table, record) if isinstance(table, PlainTable) else _faults_in_items(table, record)
    return next(faults, "")


def _faults_in_columns(table: "pa.Table", columns: Mapping[str, str]) -> Iterator[str]:
    for name, kind in columns.items():
        if name not in table.column_names:
            yield f"has no column {name}"
            continue
        column = table.column(name)
        if str(column.type) not in _ARROW_TYPES[kind]:
            yield f"has {column.type} in its column {name}, which is of {kind}"
        elif column.null_count and kind not in _MAY_BE_MISSING:
            yield f"has nothing in a row of its column {name}, which is of {kind}"


def _faults_in_pairs(table: PlainTable, record: RunFields) -> Iterator[str]:
    expected: Counter[tuple[str, ...]] = Counter()
    for task in record.tasks:
        for subset in task.subsets:
            expected[task.task, task.split, task.text, subset.name] += subset.pairs or 0
    yield from _faults_in_counts(table, ["task", "split", "text", "subset"], expected)
    for column in ("gold", record.protocol.similarity):
        values = table[column]
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


def _faults_in_counts(
    table: "PlainTable | pd.DataFrame", key: list[str], expected: Counter[tuple[str, ...]]
) -> Iterator[str]:
    found = Counter(zip(*(table[name] for name in key), strict=True))
    rows = Counter({tuple(map(str, where)): count for where, count in found.items()})
    for where in {**expected, **rows}:
        if rows[where] != expected[where]:
            yield f"has {rows[where]} rows of {' '.join(where)}, and the record says {expected[where]}"
