"""Items tables as Parquet without pandas, which reads what was written."""

from io import BytesIO

import numpy as np
import pandas as pd
import pytest

from stsbench.data.tables import PlainTable
from stsbench.records.items import as_arrow, as_plain, read_table, write_table


def table() -> PlainTable:
    count = 300
    draws = np.random.default_rng(0)
    ids = draws.integers(0, 2**63, count).astype(np.uint64) * np.uint64(2)
    return PlainTable(
        {
            "task": ["STS12"] * count,
            "split": ["test"] * count,
            "text": ["raw"] * count,
            "subset": [f"fori-{row % 3}é" for row in range(count)],
            "item_id": [f"{row}" for row in range(count)],
            "gold": draws.random(count),
            "design": [None if row % 7 else "a design" for row in range(count)],
            "rater_variance": np.where(np.arange(count) % 5, draws.random(count), np.nan),
            "words_a": draws.integers(1, 40, count),
            "sentence_a": ids,
            "identical": draws.random(count) < 0.5,
        }
    )


def bytes_of(arrow) -> bytes:
    stream = BytesIO()
    write_table(arrow, stream)
    return stream.getvalue()


@pytest.mark.parametrize("rows", [0, 1, 9, 300])
def test_what_is_read_is_what_was_written(rows: int) -> None:
    plain = table().take(np.arange(rows))
    again = as_plain(read_table(bytes_of(as_arrow(plain))))
    assert again.columns == plain.columns
    for name in plain.columns:
        assert again[name].dtype == plain[name].dtype
        np.testing.assert_array_equal(again[name], plain[name])
    from_pandas = pd.read_parquet(BytesIO(bytes_of(as_arrow(plain))))
    pd.testing.assert_frame_equal(from_pandas, plain.frame, check_dtype=False, check_exact=True)


def test_rows_of_several_groups_and_slices_are_read_in_order() -> None:
    whole = as_arrow(table())
    stream = BytesIO()
    import pyarrow.parquet as pq

    pq.write_table(whole, stream, row_group_size=64)
    again = as_plain(read_table(stream.getvalue()))
    sliced = as_plain(whole.slice(13, 100))
    for name in again.columns:
        np.testing.assert_array_equal(again[name], table()[name])
        np.testing.assert_array_equal(sliced[name], table()[name][13:113])
