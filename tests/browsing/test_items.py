"""What is told of each item, against the plainest way to compute it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from changed_records import scored_again, with_columns
from scipy.stats import rankdata, spearmanr

import stsbench as sb
from stsbench.browsing.items import overlap_of, percentiles

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


def test_where_the_score_is_a_mean_over_subsets_each_is_ranked_by_itself(make: Make) -> None:
    frame = sb.explore(make(aggregation="mean"), without_text=True).frame
    for _, part in frame.groupby(["task", "subset"]):
        expected = 100 * (rankdata(part["similarity_a"]) - 0.5) / len(part)
        np.testing.assert_allclose(part["rank_a"], expected)


def test_an_influence_is_what_the_score_loses_without_the_pair(make: Make) -> None:
    frame = sb.explore(make(metric="pearson"), without_text=True).frame.set_index("task").loc["toy"]
    gold, similarity = frame["gold"].to_numpy(), frame["similarity_a"].to_numpy()
    whole = np.corrcoef(gold, similarity)[0, 1]
    without = [np.corrcoef(np.delete(gold, pair), np.delete(similarity, pair))[0, 1] for pair in range(len(gold))]
    # To first order: what is left is of the order of the square.
    assert np.corrcoef(100 * (whole - np.array(without)), frame["influence_a"])[0, 1] > 0.99
    assert frame["influence_a"].sum() == pytest.approx(0, abs=1e-9)


def test_where_a_subset_lies_counts_in_an_influence(make: Make) -> None:
    record = make(metric="pearson")
    table = record.items
    is_first = table["subset"] == "first"
    gold = np.where(is_first, 5.0, table["gold"] / 2)
    moved = with_columns(record, cosine=table["cosine"] + is_first, gold=gold)
    frame = sb.explore(scored_again(moved), without_text=True).frame.set_index("task").loc["toy"]
    gold, similarity = frame["gold"].to_numpy(), frame["similarity_a"].to_numpy()
    whole = np.corrcoef(gold, similarity)[0, 1]
    without = [np.corrcoef(np.delete(gold, pair), np.delete(similarity, pair))[0, 1] for pair in range(len(gold))]
    left_out = 100 * (whole - np.array(without))
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
    for score_a, score_b in zip(a.scores, b.scores, strict=True):
        assert gains[score_a.task] == pytest.approx(100 * (score_b.value - score_a.value))
    (average,) = explored.averages
    assert gains.mean() == pytest.approx(average.scores[1] - average.scores[0])


def test_ties_share_a_place_and_a_sentence_overlaps_with_itself() -> None:
    assert percentiles(np.zeros(4), [np.arange(4)]).tolist() == [50.0] * 4
    assert overlap_of("A b b", "b A") == 1.0
    assert overlap_of("a", "b") == 0.0
