"""The table of pairs that stand in two tasks of a record: each number counted again, and the page has it."""

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.reports.scores import shared_sentences


@pytest.fixture
def record(hash_encode: Callable[..., Any], toy_data: Callable[..., StsData]) -> sb.RunRecord:
    """Return a record of three tasks, the second of which has five pairs of the first, written otherwise."""
    one, two, third = (toy_data(name, seed=number) for number, name in enumerate(("one", "two", "third")))
    copied = one.pairs.head(5).assign(
        sentence1=one.pairs["sentence2"].head(5).str.upper(),
        sentence2=one.pairs["sentence1"].head(5) + " !",
        subset=two.pairs["subset"].iloc[0],
    )
    two = replace(two, pairs=pd.concat([two.pairs, copied], ignore_index=True))
    third = replace(
        third, pairs=third.pairs.assign(sentence1=[f"{text} apart" for text in third.pairs["sentence1"]])
    )
    return sb.evaluate(hash_encode, [one, two, third], intervals=sb.Intervals(None), use_cache=False)


def test_each_number_is_what_sets_of_the_table_give(record: sb.RunRecord, tmp_path: Path) -> None:
    sb.report([record], out=tmp_path / "page", analyse=False)
    with (tmp_path / "page" / "tables" / "shared-pairs.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    sets = {
        task: [frozenset(pair) for pair in zip(part["folded_a"], part["folded_b"], strict=True)]
        for task, part in record.items.groupby("task", sort=False)
    }
    common = set(sets["one"]) & set(sets["two"])
    assert len(common) >= 5
    assert {(row["a"], row["b"]): int(row["pairs"]) for row in rows}["one", "two"] == len(common)
    (row,) = [row for row in rows if (row["a"], row["b"]) == ("one", "two")]
    of_both = frozenset().union(*sets["one"]) & frozenset().union(*sets["two"])
    assert int(row["sentences"]) == len(of_both)
    assert float(row["% of a"]) == pytest.approx(100 * len(common) / len(set(sets["one"])))
    assert float(row["% of b"]) == pytest.approx(100 * len(common) / len(set(sets["two"])))
    assert not any("third" in (row["a"], row["b"]) for row in rows)
    assert "Shared sentences" in (tmp_path / "page" / "index.html").read_text(encoding="utf-8")


def test_without_shared_pairs_or_tables_there_is_no_such_section(
    record: sb.RunRecord, hash_encode: Callable[..., Any], toy_data: Callable[..., StsData]
) -> None:
    alone = sb.evaluate(hash_encode, [toy_data("one")], use_cache=False, intervals=sb.Intervals(None))
    assert not shared_sentences({"a": alone})
    assert shared_sentences({"a": record, "b": alone})
