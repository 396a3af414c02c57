"""Records as tables: side by side only where they compare, and told apart where they are of one model."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.encoders.use import names
from stsbench.records.items import KEY
from stsbench.records.labels import INTERVAL_OF, METHODS, distinct_labels, labels, task_labels
from stsbench.records.scores import Scores, require_comparable
from stsbench.records.store import load_run, save_run

Encode = Callable[[list[str]], Any]
Data = Callable[..., StsData]


def scores_table(records: list[sb.RunRecord], *, intervals: bool = False) -> pd.DataFrame:
    return Scores(records, intervals=intervals).table()[0].frame


def subsets_table(records: list[sb.RunRecord]) -> pd.DataFrame:
    return Scores(records, subsets=True).table()[-1].frame


def renamed(record: sb.RunRecord, **changes: Any) -> sb.RunRecord:
    use = replace(record.model.use, **{name: changes.pop(name) for name in names() if name in changes})
    return record.model_copy(update={"model": record.model.model_copy(update=changes | {"use": use})})


@pytest.fixture
def record(hash_encode: Encode, toy_data: Data) -> sb.RunRecord:
    return renamed(sb.evaluate(hash_encode, [toy_data("b"), toy_data("a", seed=1)]), name="one", kind="static")


def test_a_model_has_a_row_with_its_tasks_their_average_and_limits_below(
    record: sb.RunRecord, hash_encode: Encode, toy_data: Data, tmp_path: Path
) -> None:
    two = save_run(renamed(record, name="two"), tmp_path / "two")
    table = scores_table([record, two])
    assert list(table.columns) == ["model", "b", "a", "Avg."]
    assert table["model"].tolist() == ["one", "two"]
    assert table["Avg."].tolist() == [pytest.approx(100 * (record.averages[0].value or 0))] * 2
    (shown,) = sb.show([record, tmp_path / "two"]).table()
    assert shown.frame["model"].tolist() == ["one", "  2.5 %", "  97.5 %", "two", "  2.5 %", "  97.5 %"]
    low, high = record.scores[0].interval or (0, 0)
    assert shown.frame["b"].tolist()[1:3] == [pytest.approx(100 * low), pytest.approx(100 * high)]
    without = sb.evaluate(hash_encode, toy_data(), intervals=sb.Intervals(None))
    alone = scores_table([without], intervals=True)
    assert list(alone.columns) == ["model", "toy", "first", "second"]
    assert len(alone) == 1


def test_averages_over_different_tasks_do_not_stand_under_one_name(
    record: sb.RunRecord, hash_encode: Encode, toy_data: Data
) -> None:
    other = sb.evaluate(hash_encode, [toy_data("b"), toy_data("a", seed=1), toy_data("c", seed=2)])
    table = scores_table([record, other])
    assert list(table.columns) == ["model", "b", "a", "c"]
    assert np.isnan(table["c"][0])


def test_subsets_and_long_table_keep_the_order_of_the_tasks(record: sb.RunRecord) -> None:
    both = [record, renamed(record, name="two")]
    table = subsets_table(both)
    assert list(table.columns) == ["task", "subset", "metric", "items", "one", "two"]
    assert table["task"].tolist() == ["b", "b", "b", "a", "a", "a", "Avg."]
    assert table["one"].equals(table["two"])
    frame = Scores(both).frame
    assert len(frame) == 14
    chosen = {"model", "task", "subset", "items", "score", "low", "high", "signature", "aggregation", "metric"}
    assert chosen < set(frame)


def test_tasks_of_every_kind_have_a_table_and_are_in_one_frame(hash_encode: Encode) -> None:
    run = sb.evaluate(hash_encode, ["sample", "sample-questions"], intervals=sb.Intervals(None))
    shown = sb.show(run, subsets=True)
    sts, transfer, subsets = (table.frame for table in shown.table())
    assert "sample" in sts
    assert transfer["sample-questions"][0] == 100 * run.scores_of("transfer")[0].value
    assert {"sample", "sample-questions"} == set(subsets["task"]) == set(shown.frame["task"])
    assert shown.to_dict() == [run.to_dict()]


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({"name": "/models/mine"}, "mine"),
        ({"name": "~/models/mine/"}, "mine"),
        ({"name": "org/mine"}, "org/mine"),
        ({"name": "mteb:/models/mine", "kind": "mteb"}, "mteb:mine"),
        ({"name": "mteb:org/mine", "kind": "mteb"}, "mteb:org/mine"),
        ({"name": "."}, "."),
        ({"name": "module:encode", "kind": "function"}, "module:encode"),
        ({"name": "__main__:encode", "kind": "function"}, "encode"),
    ],
)
def test_a_label_is_the_model_s_name_without_folders(
    changes: dict[str, str], label: str, record: sb.RunRecord
) -> None:
    assert labels([renamed(record, **changes)]) == [label]


def test_a_task_is_labelled_with_what_tells_it_apart_and_no_more(hash_encode: Encode, toy_data: Data) -> None:
    assert distinct_labels([("a", "test", "raw"), ("b", "test", "raw"), ("b", "test", "senteval")]) == [
        "a",
        "b@raw",
        "b@senteval",
    ]
    run = sb.evaluate(hash_encode, [toy_data(), toy_data(split="dev", seed=1)], intervals=sb.Intervals(None))
    assert task_labels(run.scores) == ["toy:test", "toy:dev"]
    assert set(run.frame["task"]) == {"toy:test", "toy:dev", "Avg."}


def test_records_of_one_model_are_labelled_with_what_they_differ_in(record: sb.RunRecord) -> None:
    found = labels([record, renamed(record, pooling="cls", max_length=32), renamed(record, name="two")])
    assert found == ["one (pooling own)", "one (pooling cls, max_length 32)", "two"]


def test_prompts_in_a_label_are_in_quotes_and_what_is_left_out_of_a_long_one_is_seen(record: sb.RunRecord) -> None:
    sided = renamed(record, prompts=("query: ", "a passage of twenty-nine letters"), prompt="")
    found = labels([record, renamed(record, prompt=" so "), sided])
    assert found == ["one", "one (prompt ' so ')", "one (prompts 'query: ', 'a passage of twenty-…')"]
    assert labels([record, renamed(record, attention_mask="causal")]) == ["one", "one (attention_mask causal)"]


def test_records_that_differ_in_nothing_have_their_folders_or_numbers_as_labels(
    record: sb.RunRecord, tmp_path: Path
) -> None:
    saved = [save_run(record, tmp_path / name) for name in ("monday", "tuesday")]
    assert labels([*saved, renamed(record, name="two")]) == ["one (monday)", "one (tuesday)", "two"]
    first, second = labels([save_run(record, tmp_path / parent / "run") for parent in ("a", "b")])
    assert (first[-7:], second[-7:]) == ("/a/run)", "/b/run)")
    assert labels([record, record, renamed(record, name="two")]) == ["one (1)", "one (2)", "two"]
    assert list(subsets_table([record, record]).columns)[4:] == ["one (1)", "one (2)"]


@pytest.mark.parametrize(
    ("choice", "value"), [("aggregation", "wmean"), ("metric", "pearson"), ("similarity", "dot")]
)
def test_records_of_other_protocols_do_not_compare_and_the_field_is_named(
    choice: str, value: str, hash_encode: Encode, toy_data: Data
) -> None:
    data = toy_data()
    one, two = (sb.evaluate(hash_encode, data, protocol=sb.protocol(**set_)) for set_ in ({}, {choice: value}))
    with pytest.raises(
        sb.UserError, match=rf"do not compare on toy: {choice} is \w+ in one and {value} in the other"
    ):
        require_comparable([one, two])


def test_records_of_other_data_do_not_compare_but_of_other_tasks_and_settings_do(
    hash_encode: Encode, toy_data: Data
) -> None:
    one, two = (sb.evaluate(hash_encode, toy_data(seed=seed)) for seed in (0, 1))
    with pytest.raises(sb.UserError, match="do not compare on toy: data is"):
        sb.show([one, two])
    other, cut = (
        sb.evaluate(hash_encode, toy_data("b")),
        sb.evaluate(sb.load(hash_encode, dimensions=2), toy_data()),
    )
    require_comparable([one, other, cut])


def test_remarks_tell_signatures_rounding_zero_vectors_and_modified_data(
    record: sb.RunRecord, toy_data: Data
) -> None:
    average = record.averages[0].model_copy(update={"value": 0.5, "of_rounded": 50.01})
    lines = Scores([record.model_copy(update={"averages": (average,)})]).remarks
    assert lines[:2] == record.signature.splitlines()
    told, rounded = lines[2:]
    assert told == f"intervals: 95 %, {METHODS['dyadic']}; of {INTERVAL_OF}"
    assert rounded == "one: the average of the rounded scores, as papers print it, is 50.01"
    data = StsData(**(vars(toy_data()) | {"status": "modified", "problems": ("x differs.",)}))
    zeros = sb.evaluate(lambda sentences: [[float("owl" in s), float("bus" in s)] for s in sentences], data)
    zero = zeros.scores[0].counts["zero_pairs"]
    assert zero > 0
    (label,) = labels([zeros])
    assert Scores([zeros]).remarks[2:] == [
        f"{label}: {zero} pairs with a zero vector, scored 0",
        f"{label}: data: modified (see the notes)",
    ]
    assert "x differs." in zeros.notes


def test_a_record_is_a_result_that_prints_itself_as_run_does(record: sb.RunRecord) -> None:
    (table,) = record.table()
    assert table.frame["model"].tolist() == ["one", "  2.5 %", "  97.5 %"]
    assert table.headline == "Avg."
    assert str(record) == str(record.table())
    assert "Avg." in record._repr_html_()
    assert "2.5 %" not in record.to("latex")
    assert record.frame["task"].tolist() == ["b", "b", "b", "a", "a", "a", "Avg."]
    assert sb.RunRecord.model_validate(record.to_dict()) == record


def test_items_are_hashed_each_time_they_are_read_and_are_the_callers_own(
    record: sb.RunRecord, tmp_path: Path
) -> None:
    save_run(record, tmp_path / "run")
    first = load_run(tmp_path / "run").items
    first.loc[0, "gold"] = 9.0
    pd.testing.assert_frame_equal(load_run(tmp_path / "run").items, record.items, check_dtype=False)
    place = tmp_path / "run" / "items.parquet"
    stamp, content = place.stat(), bytearray(place.read_bytes())
    content[len(content) // 2] ^= 1
    place.write_bytes(content)
    os.utime(place, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    with pytest.raises(sb.UserError, match="is not the table"):
        _ = load_run(tmp_path / "run").items


def test_rows_of_a_score_are_those_with_its_key_in_their_order(record: sb.RunRecord) -> None:
    table = record.items
    expected: dict[tuple[str, ...], list[str]] = {}
    for *key, item in zip(*(table[name] for name in (*KEY, "item_id")), strict=True):
        expected.setdefault(tuple(key), []).append(item)
    found = {key: rows["item_id"].tolist() for key, rows in record.rows_by_score().items()}
    assert found == expected
    assert list(found) == list(expected)
