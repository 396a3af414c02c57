"""An items table as the Parquet file of a record, and back, without pandas.

pyarrow's own ways between NumPy and Arrow import pandas to ask whether an array is one of its kind. So columns go
by their buffers, which are the same bytes on both sides.
"""

from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from stsbench.data.tables import Column, PlainTable, as_column

if TYPE_CHECKING:
    import pyarrow as pa


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

    is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if is_number and not column.null_count and column.num_chunks:
        return np.concatenate([np.from_dlpack(chunk) for chunk in column.chunks])
    if (pa.types.is_large_string(column.type) or pa.types.is_string(column.type)) and not column.null_count:
        # Most columns of text say few things in many rows: each is made once.
        coded = column.combine_chunks().dictionary_encode()
        texts: Column = as_column(coded.dictionary.to_pylist())[np.from_dlpack(coded.indices)]
        return texts
    values = column.to_pylist()
    if pa.types.is_floating(column.type):
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    if pa.types.is_boolean(column.type) and not column.null_count:
        return np.array(values, dtype=bool)
    return as_column(values)


def write_table(table: "pa.Table", stream: BinaryIO) -> None:
    """Write a table as Parquet."""
    import pyarrow.parquet as pq

    pq.write_table(table, stream, compression="snappy")


def read_table(stream: BinaryIO) -> "pa.Table":
    """Read a Parquet file as it is, without what would import pandas.

    Raises:
        ValueError: if it is none, and so do OSError and KeyError.
    """
    import pyarrow.parquet as pq

    return pq.ParquetFile(stream).read()
