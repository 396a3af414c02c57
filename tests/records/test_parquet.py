"""The items table: tasks of different columns side by side, and what Parquet gives back."""

from pathlib import Path

import numpy as np
import pandas as pd

import stsbench as sb
from stsbench.records.items import join_items
from stsbench.records.store import load_run, save_run


def test_what_a_task_lacks_is_missing_where_tables_are_joined() -> None:
    one = pd.DataFrame({"task": ["a"], "gold": [1.0], "design": ["x"], "words_a": [3], "zero": [True]})
    other = pd.DataFrame({"task": ["b", "b"], "gold": [0.0, 0.0], "raters": [2.0, 3.0]})
    joined = join_items([one, other])
    assert list(joined.columns) == ["task", "gold", "design", "words_a", "zero", "raters"]
    assert joined["words_a"].tolist() == [3, -1, -1]
    assert joined["zero"].tolist() == [True, False, False]
    assert joined["design"].isna().tolist() == [False, True, True]
    assert np.isnan(joined["raters"][0])
    assert joined.index.tolist() == [0, 1, 2]


def test_what_is_read_is_what_was_measured_to_the_last_bit(tmp_path: Path) -> None:
    tasks = ["sample", "sample-questions"]
    run = sb.evaluate(lambda texts: [[len(text), text.count("e"), 1] for text in texts], tasks)
    save_run(run, tmp_path / "run")
    again = load_run(tmp_path / "run").items
    pd.testing.assert_frame_equal(again, run.items, check_exact=True, check_dtype=False)
    assert {str(again[name].dtype) for name in ("sentence_a", "folded_b")} == {"uint64"}
    assert again["words_a"].dtype == np.int64
    assert again["zero"].dtype == bool
