"""`ties` of records that have no vectors, held against scipy."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

import stsbench as sb
from stsbench.data.benchmarks import load_sample

Encode = Callable[[list[str]], Any]
NO_INTERVALS = sb.Intervals(None)


def test_of_given_similarities_the_range_is_between_gold_rising_and_falling_in_each_tie(tmp_path: Path) -> None:
    gold = load_sample().pairs["gold"].to_numpy()
    values = (gold / 5 + np.random.default_rng(0).normal(0, 0.2, len(gold))).round(1)
    np.save(tmp_path / "s.npy", values)
    frame = sb.ties(sb.import_results(tmp_path / "s.npy", gold="sample")).frame
    assert frame["precision"].tolist() == ["as recorded", "fp16", "bf16", "fp8"]
    row = frame.iloc[0]
    assert row["similarity"] == "given"
    assert row["score"] == pytest.approx(100 * spearmanr(gold, values).statistic)
    for column, side in (("lowest", -1), ("highest", 1)):
        # A nudge that is far smaller than a decimal orders each tie and nothing else.
        nudged = values + side * 1e-6 * gold + 1e-12 * np.arange(len(gold))
        assert row[column] == pytest.approx(100 * spearmanr(gold, nudged).statistic, abs=1e-9)
    assert row["lowest"] < row["score"] < row["highest"]
    tied = np.mean([(values == value).sum() > 1 for value in values])
    assert (row["tied"], row["distinct"]) == (pytest.approx(100 * tied), len(set(values)))


def test_the_average_is_over_tasks(hash_encode: Encode, toy_data: Callable[..., Any]) -> None:
    record = sb.evaluate(hash_encode, [toy_data("one"), toy_data("two", seed=1)], intervals=NO_INTERVALS)
    result = sb.ties(record)
    recorded = result.frame[result.frame["precision"] == "as recorded"]
    assert recorded["task"].tolist() == ["one", "two", "Avg."]
    for column in ("tied", "score", "expected", "lowest", "highest"):
        assert recorded[column].iloc[2] == pytest.approx(recorded[column].iloc[:2].mean())
    assert recorded["pairs"].tolist() == [30, 30, 60]
    assert len(result.table()) == 1
