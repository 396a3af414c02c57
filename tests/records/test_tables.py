"""Records as tables: side by side only if they compare, with labels that distinguish runs of one model."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.encoders.use import names
from stsbench.records.labels import distinct_labels, labels, task_labels
from stsbench.records.scores import Scores, require_comparable
from stsbench.records.store import save_run

Encode = Callable[[list[str]], Any]
Data = Callable[..., StsData]


def renamed(record: sb.RunRecord, **changes: Any) -> sb.RunRecord:
    use = replace(record.model.use, **{name: changes.pop(name) for name in names() if name in changes})
    return record.model_copy(update={"model": record.model.model_copy(update=changes | {"use": use})})


@pytest.fixture
def record(hash_encode: Encode, toy_data: Data) -> sb.RunRecord:
    return renamed(sb.evaluate(hash_encode, [toy_data("b"), toy_data("a", seed=1)]), name="one", kind="static")


def test_a_model_has_a_row_with_its_tasks_their_average_and_limits_below(
    record: sb.RunRecord, hash_encode: Encode, toy_data: Data, tmp_path: Path
) -> None:
    save_run(renamed(record, name="two"), tmp_path / "two")
    (shown,) = sb.show([record, tmp_path / "two"]).table()
    assert list(shown.frame.columns) == ["model", "b", "a", "Avg."]
    assert shown.headline == "Avg."
    assert shown.frame["model"].tolist() == ["one", "  2.5 %", "  97.5 %", "two", "  2.5 %", "  97.5 %"]
    for place, part in (("b", record.scores[0]), ("a", record.scores[1]), ("Avg.", record.averages[0])):
        expected = [100 * value for value in (part.value or 0, *(part.interval or ()))]
        assert shown.frame[place].tolist() == pytest.approx(2 * expected)
        row = record.frame[(record.frame["task"] == place) & (record.frame["subset"] == "")].iloc[0]
        assert row[["score", "low", "high"]].tolist() == pytest.approx(expected)
    other = sb.evaluate(hash_encode, [toy_data("b"), toy_data("a", seed=1), toy_data("c", seed=2)])
    table = Scores([record, other], intervals=False).table()[0].frame
    assert list(table.columns) == ["model", "b", "a", "c"]  # averages over different tasks do not compare
    assert np.isnan(table["c"][0])


def test_a_task_and_a_model_named_like_a_column_have_one_of_their_own(hash_encode: Encode, toy_data: Data) -> None:
    runs = [
        renamed(sb.evaluate(hash_encode, [toy_data("model"), toy_data("rank", seed=1)]), name=name)
        for name in ("task", "two")
    ]
    table, subsets = Scores(runs, subsets=True, intervals=False).table()
    assert list(table.frame) == ["model", "model [2]", "rank [2]", "Avg."]
    assert table.frame["model"].tolist() == ["task", "two"]
    assert list(subsets.frame) == ["task", "subset", "metric", "items", "task [2]", "two"]
    assert (
        subsets.frame["subset"].tolist() == runs[0].frame["subset"].tolist() == ["", "first", "second"] * 2 + [""]
    )
    (alone,) = Scores([sb.evaluate(hash_encode, toy_data("second"))], intervals=False).table()
    assert list(alone.frame) == ["model", "second", "first", "second: second"]


def test_zero_vectors_are_counted_in_the_remarks(toy_data: Data) -> None:
    run = sb.evaluate(lambda sentences: [[float("owl" in s), float("bus" in s)] for s in sentences], toy_data())
    zero = run.scores[0].counts["zero_pairs"]
    assert zero > 0
    assert any(f": {zero} pairs with a zero vector" in remark for remark in Scores([run]).remarks)


def test_tasks_of_every_kind_have_a_table_and_are_in_one_frame(hash_encode: Encode) -> None:
    run = sb.evaluate(hash_encode, ["sample", "sample-questions"], intervals=sb.Intervals(None))
    shown = sb.show(run, subsets=True)
    sts, transfer, subsets = (table.frame for table in shown.table())
    assert "sample" in sts
    assert transfer["sample-questions"][0] == 100 * run.scores_of("transfer")[0].value
    assert {"sample", "sample-questions"} == set(subsets["task"]) == set(shown.frame["task"])
    assert shown.to_dict() == [run.to_dict()]


@pytest.mark.parametrize(
    ("kind", "name", "label"),
    [
        ("static", "/models/mine", "mine"),
        ("static", "org/mine", "org/mine"),
        ("mteb", "mteb:/models/mine", "mteb:mine"),
        ("static", ".", "."),
        ("function", "module:encode", "module:encode"),
        ("function", "__main__:encode", "encode"),
    ],
)
def test_a_label_is_the_name_without_folders(kind: str, name: str, label: str, record: sb.RunRecord) -> None:
    assert labels([renamed(record, name=name, kind=kind)]) == [label]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([{}, {"pooling": "cls", "max_length": 32}], ["one (pooling own)", "one (pooling cls, max_length 32)"]),
        ([{}, {"prompt": " so "}], ["one", "one (prompt ' so ')"]),
        ([{}, {"attention_mask": "causal"}], ["one", "one (attention_mask causal)"]),
        ([{}, {}], ["one", "one [2]"]),
    ],
)
def test_records_of_one_model_are_labelled_with_what_they_differ_in(
    changes: list[dict[str, Any]], expected: list[str], record: sb.RunRecord, tmp_path: Path
) -> None:
    runs = [*(renamed(record, **change) for change in changes), renamed(record, name="two")]
    assert labels(runs) == [*expected, "two"]


def test_equal_records_are_labelled_with_their_folders(record: sb.RunRecord, tmp_path: Path) -> None:
    saved = [save_run(record, tmp_path / name) for name in ("monday", "tuesday")]
    assert labels([*saved, renamed(record, name="two")]) == ["one (monday)", "one (tuesday)", "two"]
    first, second = labels([save_run(record, tmp_path / parent / "run") for parent in ("a", "b")])
    assert (first[-7:], second[-7:]) == ("/a/run)", "/b/run)")


def test_a_task_is_labelled_with_what_distinguishes_it_and_no_more(hash_encode: Encode, toy_data: Data) -> None:
    keys = [("a", "test", "raw"), ("b", "test", "raw"), ("b", "test", "senteval"), ("Avg.", "test", "raw")]
    assert distinct_labels(keys) == ["a", "b@raw", "b@senteval", "Avg. [2]"]
    run = sb.evaluate(hash_encode, [toy_data(), toy_data(split="dev", seed=1)], intervals=sb.Intervals(None))
    assert task_labels(run.scores) == ["toy:test", "toy:dev"]
    assert set(run.frame["task"]) == {"toy:test", "toy:dev", "Avg."}


def test_records_of_other_protocols_or_data_do_not_compare(hash_encode: Encode, toy_data: Data) -> None:
    one, other_data = (sb.evaluate(hash_encode, toy_data(seed=seed)) for seed in (0, 1))
    by_pearson = sb.evaluate(hash_encode, toy_data(), protocol=sb.protocol(metric="pearson"))
    for field, two in (("data", other_data), ("metric", by_pearson)):
        with pytest.raises(sb.UserError, match=f"toy: {field} is"):
            sb.show([one, two])
    require_comparable([one, sb.evaluate(hash_encode, toy_data("b")), renamed(one, pooling="cls")])
