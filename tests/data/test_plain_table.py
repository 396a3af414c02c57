"""Tables without pandas, and the DataFrames that they are where one is asked for."""

import numpy as np
import pandas as pd
import pytest

from stsbench.data.benchmarks import load_sample
from stsbench.data.sentences import sentences_in
from stsbench.data.tables import PlainTable, as_column, coded
from stsbench.scoring.kinds.sts import demand_spread


def test_a_frame_there_and_back_is_the_same() -> None:
    frame = pd.DataFrame(
        {"subset": ["news", "é"], "gold": [1.0, np.nan], "words_a": [3, 4], "zero": [True, False]}
    )
    again = PlainTable.of(frame).frame
    pd.testing.assert_frame_equal(again, frame, check_dtype=False)
    assert [type(value) for value in again["subset"]] == [str, str]


def test_what_a_table_lacks_is_missing_where_it_is_joined() -> None:
    one = PlainTable({"task": ["a"], "gold": np.array([1.0]), "design": ["x"]})
    other = PlainTable({"task": ["b", "b"], "gold": np.zeros(2), "raters": np.array([2.0, 3.0])})
    joined = PlainTable.join([one, other])
    assert joined.columns == ("task", "gold", "design", "raters")
    assert joined["design"].tolist() == ["x", None, None]
    expected = pd.concat([one.frame, other.frame], ignore_index=True)
    pd.testing.assert_frame_equal(joined.frame.drop(columns="design"), expected.drop(columns="design"))
    assert expected["design"].isna().equals(joined.frame["design"].isna())


def test_columns_of_several_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        PlainTable({"gold": np.zeros(2), "task": ["a"]})


def test_rows_are_taken_by_place_and_by_truth() -> None:
    table = PlainTable({"pair_id": ["a", "b", "c"], "ratings": [(1.0, 2.0), (3.0, 4.0), (5.0, 6.0)]})
    assert table.take(np.array([2, 0]))["pair_id"].tolist() == ["c", "a"]
    assert table.take(np.array([-2, -1]))["pair_id"].tolist() == ["b", "c"]
    assert table.take(np.array([False, True, False]))["ratings"].tolist() == [(3.0, 4.0)]
    assert as_column([]).shape == (0,)


def test_codes_are_in_the_order_of_first_appearance() -> None:
    names, codes = coded(["b", "a", "b", "c"])
    assert (names, codes.tolist()) == (["b", "a", "c"], [0, 1, 0, 2])


def test_what_was_changed_in_the_frame_of_a_task_is_what_is_scored() -> None:
    data = load_sample()
    assert data.pairs is data.pairs
    data.pairs.loc[0, "sentence1"] = "a sentence of one's own"
    data.pairs.loc[1, "gold"] = 0.5
    assert sentences_in(data)[0] == "a sentence of one's own"
    assert data.table["gold"][1] == 0.5
    demand_spread(data)
