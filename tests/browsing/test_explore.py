"""The explorer: what its page contains and refuses; the columns of items against plain computations."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from changed_records import scored_again, with_columns
from scipy.stats import rankdata, spearmanr

import stsbench as sb

HOSTILE = '</script><img src=x onerror="alert(1)"> {{ 7 * 7 }} \u2028'


def data_of(page: str) -> Any:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
    return json.loads(text)


@pytest.fixture
def own_pairs(tmp_path: Path) -> Path:
    path = tmp_path / "own.jsonl"
    rows = [
        {"sentence1": f"{HOSTILE} one {number}", "sentence2": f"secret words {number % 3}", "score": number}
        for number in range(8)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_the_page_has_the_columns_of_each_kind_of_task(hash_encode: Callable[..., Any], tmp_path: Path) -> None:
    sample = sb.explore(sb.evaluate(hash_encode, "sample", use_cache=False))
    assert sample.frame["sentence_a"].str.len().min() > 0
    assert len(data_of(sample.html)["columns"]["overlap"]) == len(sample.frame)
    questions = sb.explore(sb.evaluate(hash_encode, "sample-questions", use_cache=False))
    frame = questions.frame
    assert ((frame["label"] == frame["prediction_a"]) == (frame["correct_a"] == 1)).all()
    assert not questions.tasks[0].is_ranked
    table = tmp_path / "items.csv"
    table.write_text("task,item,score\nsearch,q1,0.5\nsearch,q2,1.0\nsearch,q3,0.0\n")
    assert sb.explore(sb.import_results(table)).frame["score_a"].tolist() == [0.5, 1.0, 0.0]


def test_sentences_are_text_and_never_markup_or_left_out(hash_encode: Callable[..., Any], own_pairs: Path) -> None:
    record = sb.evaluate(hash_encode, data=own_pairs, use_cache=False)
    page = sb.explore(record, data=[own_pairs]).html
    assert "<img" not in page
    assert any(sentence.startswith(HOSTILE.strip()) for sentence in data_of(page)["sentences"])
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)[0]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    without = sb.explore(record, without_text=True)
    assert "secret words" not in without.html
    assert data_of(without.html)["sentences"] is None
    shown = without._repr_html_()
    assert shown.startswith("<iframe")
    assert 'sandbox="allow-scripts allow-downloads"' in shown
    assert "<script" not in shown
    with pytest.raises(sb.UserError, match=r"11 sentences .*--data.*--without-text"):
        sb.explore(record)


Make = Callable[..., sb.RunRecord]


@pytest.fixture
def make(hash_encode: Callable[..., Any], toy_data: Callable[..., Any]) -> Make:
    """Return a maker of records of two tasks; another shift is another model."""

    def made(shift: float = 0.0, **protocol: Any) -> sb.RunRecord:
        data = [toy_data("toy", pairs=30), toy_data("other", pairs=24, seed=1)]
        return sb.evaluate(
            lambda sentences: hash_encode(sentences) + shift,
            data,
            protocol=sb.protocol(**protocol),
            use_cache=False,
        )

    return made


def test_ranks_are_those_of_the_pairs_that_are_ranked_together(make: Make) -> None:
    frame = sb.explore(make(), without_text=True).frame.set_index("task").loc["toy"]
    for side, values in (("rank_gold", frame["gold"]), ("rank_a", frame["similarity_a"])):
        expected = 100 * (rankdata(values) - 0.5) / len(values)
        np.testing.assert_allclose(frame[side], expected)
    np.testing.assert_allclose(frame["residual_a"], frame["rank_a"] - frame["rank_gold"])
    # A mean over subsets ranks each on its own.
    frame = sb.explore(make(aggregation="mean"), without_text=True).frame
    for _, part in frame.groupby(["task", "subset"]):
        np.testing.assert_allclose(part["rank_a"], 100 * (rankdata(part["similarity_a"]) - 0.5) / len(part))


def loss_without_each(frame: pd.DataFrame) -> Any:
    gold, similarity = frame["gold"].to_numpy(), frame["similarity_a"].to_numpy()
    whole = np.corrcoef(gold, similarity)[0, 1]
    pairs = range(len(gold))
    without = [np.corrcoef(np.delete(gold, pair), np.delete(similarity, pair))[0, 1] for pair in pairs]
    return 100 * (whole - np.array(without))


def test_an_influence_is_what_the_score_loses_without_the_pair(make: Make) -> None:
    frame = sb.explore(make(metric="pearson"), without_text=True).frame.set_index("task").loc["toy"]
    # To first order: what is left is of the order of the square.
    assert np.corrcoef(loss_without_each(frame), frame["influence_a"])[0, 1] > 0.99
    assert frame["influence_a"].sum() == pytest.approx(0, abs=1e-9)
    # The place of a subset counts.
    record = make(metric="pearson")
    table = record.items
    is_first = table["subset"] == "first"
    gold = np.where(is_first, 5.0, table["gold"] / 2)
    moved = with_columns(record, cosine=table["cosine"] + is_first, gold=gold)
    frame = sb.explore(scored_again(moved), without_text=True).frame.set_index("task").loc["toy"]
    left_out = loss_without_each(frame)
    np.testing.assert_allclose(frame["influence_a"], left_out, atol=0.15 * np.abs(left_out).max())
    by_subset = pd.Series(left_out).groupby(frame["subset"].to_numpy()).sum()
    assert by_subset.abs().min() > 1
    np.testing.assert_allclose(frame.groupby("subset")["influence_a"].sum(), by_subset, rtol=0.2)


@pytest.mark.parametrize("aggregation", ["mean", "wmean"])
def test_each_subset_has_its_own_difference_where_the_score_is_a_mean_over_them(
    make: Make, aggregation: str
) -> None:
    a, b = make(aggregation=aggregation), make(0.5, aggregation=aggregation)
    frame = sb.explore([a, b], without_text=True).frame.set_index("task").loc["toy"]
    for _, part in frame.groupby("subset"):
        differences = [spearmanr(part["gold"], part[f"similarity_{end}"])[0] for end in "ab"]
        weight = 1 / 2 if aggregation == "mean" else len(part) / len(frame)
        assert part["gain"].sum() == pytest.approx(100 * weight * (differences[1] - differences[0]))


def test_gains_add_up_to_the_difference(make: Make) -> None:
    a, b = make(), make(0.5)
    explored = sb.explore([a, b], without_text=True)
    gains = explored.frame.groupby("task")["gain"].sum()
    even = explored.frame["gain"] - (explored.frame["influence_b"] - explored.frame["influence_a"])
    assert even.groupby(explored.frame["task"]).std().max() < 1e-9
    for score_a, score_b in zip(a.scores, b.scores, strict=True):
        assert gains[score_a.task] == pytest.approx(100 * (score_b.value - score_a.value))
    (average,) = explored.averages
    assert gains.mean() == pytest.approx(average.scores[1] - average.scores[0])
