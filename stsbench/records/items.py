"""The items table of a record: what it must hold, and its Parquet file without pandas.

pyarrow's own ways between NumPy and Arrow import pandas to ask whether an array is one of its kind. So columns go
by their buffers, which are the same bytes on both sides.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from stsbench.data.shared import FOLDED, SENTENCES
from stsbench.data.tables import Column, PlainTable, as_column, coded
from stsbench.records.kinds import COUNT, FLAG, ID, KINDS, NUMBER, TEXT
from stsbench.records.parts import RunFields
from stsbench.records.signature import Signature
from stsbench.statistics.similarity import SIMILARITIES

if TYPE_CHECKING:
    import pyarrow as pa

ITEMS = "items.parquet"

KEY = ("kind", "task", "split", "text")
"""The columns that say which score a row counts in; rows of other splits of a trained task are those held out."""

_ARROW_TYPES: Mapping[str, frozenset[str]] = {
    # `null` is a column in which nothing is.
    TEXT: frozenset({"string", "large_string", "null"}),
    NUMBER: frozenset({"double"}),
    COUNT: frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    ID: frozenset({"uint64"}),
    FLAG: frozenset({"bool"}),
}
_MAY_BE_MISSING = {TEXT, NUMBER}

_FEW = 50_000
"""Rows of which columns of text are remembered: 64 of them take 50 MB at most."""

_OF_ALL = {
    **dict.fromkeys((*KEY, "subset", "item_id"), TEXT),
    **dict.fromkeys((*SENTENCES, *FOLDED), ID),
}


def fault_in_columns(table: "pa.Table", record: RunFields) -> str:
    """Return which column keeps a table from being the one that a record was made with; empty if none does."""
    columns = dict(_OF_ALL)
    for score in record.scores:
        similarity = Signature.parse(score.signature).similarity
        columns |= score.about.columns
        if score.about.by_similarity:
            columns |= dict.fromkeys(SIMILARITIES if similarity in SIMILARITIES else (similarity,), NUMBER)
    for name, kind in columns.items():
        if name not in table.column_names:
            return f"has no column {name}"
        column = table.column(name)
        if str(column.type) not in _ARROW_TYPES[kind]:
            return f"has {column.type} in its column {name}, which is of {kind}"
        if column.null_count and kind not in _MAY_BE_MISSING:
            return f"has nothing in a row of its column {name}, which is of {kind}"
    return ""


def fault_in_rows(table: PlainTable, record: RunFields) -> str:
    """Return which rows keep a table from being the record's; empty if none do."""
    return next(_faults_in_rows(table, record), "")


def _faults_in_rows(table: PlainTable, record: RunFields) -> Iterator[str]:
    expected: Counter[tuple[str, ...]] = Counter()
    for score in record.scores:
        for number in score.subsets or score.numbers[:1]:
            expected[*score.key, number.subset] += number.items or 0
    # Of some kinds no number is of a subset, although the items name them.
    undivided = {score.key for score in record.scores if not score.subsets}
    rows: Counter[tuple[str, ...]] = Counter()
    for key, part in table.by(KEY).items():
        named = tuple(map(_named, key))
        subsets, codes = coded(part["subset"])
        for subset, count in zip(map(_named, subsets), np.bincount(codes).tolist(), strict=True):
            rows[*named, "" if named in undivided else subset] += count
    held_out = {(score.kind, score.task, score.text): score.held_out for score in record.scores}
    for key in {**expected, **rows}:
        if key not in expected and (place := (key[0], key[1], key[3])) in held_out:
            held_out[place] -= rows[key]
        elif rows[key] != expected[key]:
            yield f"has {rows[key]} rows of {' '.join(filter(None, key))}, and the record says {expected[key]}"
    for place, missing in held_out.items():
        if missing:
            yield f"lacks {missing} of the rows of {' '.join(place)} that were held out"
    yield from _faults_in_numbers(table, record)


def _named(cell: str | None) -> str:
    return "" if cell is None else str(cell)


def _faults_in_numbers(table: PlainTable, record: RunFields) -> Iterator[str]:
    for name, about in ((name, KINDS[name]) for name in dict.fromkeys(score.kind for score in record.scores)):
        of_kind = table["kind"] == name
        columns = [column for column, holds in about.columns.items() if holds == NUMBER]
        if about.by_similarity:
            columns += {Signature.parse(score.signature).similarity for score in record.scores_of(name)}
        for column in columns:
            wrong = of_kind & ~np.isfinite(table[column])
            if wrong.any():
                row = int(np.argmax(wrong))
                yield f"has {table[column][row]} in row {row + 1} of its column {column}"
        if "prediction" in about.columns:
            wrong = of_kind & (table["correct"] != (table["label"] == table["prediction"]))
            if wrong.any():
                row = int(np.argmax(wrong))
                said = f"{table['correct'][row]:g} where label and prediction are {table['label'][row]!r} and"
                yield f"has {said} {table['prediction'][row]!r}, in row {row + 1}"


def as_arrow(table: PlainTable) -> "pa.Table":
    """Return a table of texts, numbers and truth values as Arrow's.

    None and NaN are missing there.

    >>> as_arrow(PlainTable({"subset": ["news", None], "gold": np.array([4.5, np.nan])})).to_pylist()
    [{'subset': 'news', 'gold': 4.5}, {'subset': None, 'gold': None}]
    """
    import pyarrow as pa

    return pa.table({name: _to_arrow(table[name]) for name in table.columns})


def as_plain(table: "pa.Table") -> PlainTable:
    """Return an Arrow table as plain columns: text as `str`, what is missing as None, among floats as NaN.

    >>> table = as_plain(as_arrow(PlainTable({"zero": np.array([True, False]), "gold": np.array([4.5, np.nan])})))
    >>> table["zero"].tolist(), table["gold"].tolist()
    ([True, False], [4.5, nan])
    """
    return PlainTable({name: _from_arrow(table.column(name)) for name in table.column_names})


def _to_arrow(values: Column) -> "pa.Array":
    import pyarrow as pa

    if values.dtype == object:
        return _texts_to_arrow(values)
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(0, dtype=bool)
    types = {"f": pa.float64(), "i": pa.int64(), "u": pa.uint64(), "b": pa.bool_()}
    plain = _bits(values) if values.dtype == bool else np.ascontiguousarray(values, dtype=f"<{values.dtype.kind}8")
    return pa.Array.from_buffers(types[values.dtype.kind], len(values), [_present(missing), pa.py_buffer(plain)])


def _texts_to_arrow(texts: Column) -> "pa.Array":
    import pyarrow as pa

    # Most columns of text say one thing in every row.
    encoded = {text: b"" if text is None else text.encode() for text in set(texts)}
    parts = [encoded[text] for text in texts]
    missing = np.fromiter((text is None for text in texts), dtype=bool, count=len(texts))
    ends = np.zeros(len(texts) + 1, dtype="<i8")
    np.cumsum(np.fromiter(map(len, parts), dtype=np.int64, count=len(parts)), out=ends[1:])
    buffers = [_present(missing), pa.py_buffer(ends), pa.py_buffer(b"".join(parts))]
    return pa.Array.from_buffers(pa.large_string(), len(texts), buffers)


def _present(missing: Column) -> "pa.Buffer | None":
    """Return Arrow's bits of what is there; None where all is."""
    import pyarrow as pa

    return pa.py_buffer(_bits(~missing)) if missing.any() else None


def _bits(values: Column) -> Column:
    return np.packbits(values, bitorder="little")


def _from_arrow(column: "pa.ChunkedArray") -> Column:
    import pyarrow as pa

    if pa.types.is_boolean(column.type) and not column.null_count:
        return _from_arrow(column.cast(pa.uint8())).astype(bool)
    is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if is_number and not column.null_count and column.num_chunks:
        return np.concatenate([np.from_dlpack(chunk) for chunk in column.chunks])
    is_text = pa.types.is_large_string(column.type) or pa.types.is_string(column.type)
    if is_text and not column.null_count and len(column):
        held = column.combine_chunks()
        texts = _texts if len(held) <= _FEW else _texts.__wrapped__
        return texts(held.type, len(held), held.offset, *(part.to_pybytes() for part in held.buffers()[1:]))
    values = column.to_pylist()
    if pa.types.is_floating(column.type):
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return as_column(values)


@lru_cache(maxsize=64)
def _texts(kind: "pa.DataType", size: int, offset: int, ends: bytes, letters: bytes) -> Column:
    """Return texts as `str` from the bytes in which Arrow has them: records of one task mostly have the same."""
    import pyarrow as pa

    buffers = [None, pa.py_buffer(ends), pa.py_buffer(letters)]
    # Most columns of text say few things in many rows: each is made once.
    coded = pa.Array.from_buffers(kind, size, buffers, offset=offset).dictionary_encode()
    texts: Column = as_column(coded.dictionary.to_pylist())[np.from_dlpack(coded.indices)]
    texts.setflags(write=False)
    return texts


def write_table(table: "pa.Table", stream: BinaryIO) -> None:
    """Write a table as Parquet."""
    import pyarrow.parquet as pq

    pq.write_table(table, stream, compression="snappy")


def read_table(content: bytes) -> "pa.Table":
    """Read a Parquet file's bytes as they are, without what would import pandas."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.ParquetFile(pa.BufferReader(content)).read(use_threads=pa.cpu_count() > 1)
