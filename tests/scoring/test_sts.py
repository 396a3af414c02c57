"""From a pair table to scores, against a plain computation with pandas and SciPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.scoring.protocols import AGGREGATIONS
from stsbench.statistics.correlations import CORRELATIONS

REFERENCE = {
    "spearman": lambda x, y: stats.spearmanr(x, y).statistic,
    "pearson": lambda x, y: stats.pearsonr(x, y).statistic,
    "kendall": lambda x, y: stats.kendalltau(x, y).statistic,
}
NO_INTERVALS = sb.Bootstrap(resamples=0)

Encode = Callable[[list[str]], Any]
Data = Callable[..., StsData]


def plainly(pairs: pd.DataFrame, column: str, metric: str) -> dict[str, float]:
    correlate = REFERENCE[metric]
    by_subset = pairs.groupby("subset")[["gold", column]]
    values = by_subset.apply(lambda rows: correlate(rows["gold"], rows[column]))
    return {
        "all": correlate(pairs["gold"], pairs[column]),
        "mean": values.mean(),
        "wmean": (values * by_subset.size()).sum() / len(pairs),
        **values.to_dict(),
    }


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean", "manhattan"])
@pytest.mark.parametrize("metric", list(CORRELATIONS))
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_a_score_is_what_scipy_and_pandas_compute_from_the_pairs(
    aggregation: str, metric: str, similarity: str, hash_encode: Encode, toy_data: Data
) -> None:
    chosen = sb.protocol(aggregation=aggregation, metric=metric, similarity=similarity)
    record = sb.evaluate(hash_encode, toy_data(pairs=50), protocol=chosen, bootstrap=NO_INTERVALS)
    (task,) = record.tasks
    for name in {metric, "spearman", "pearson"}:
        expected = plainly(record.pairs, similarity, name)
        for way in AGGREGATIONS:
            assert task.scores[way][name] == pytest.approx(expected[way], abs=1e-12)
        for subset in task.subsets:
            assert subset.scores[name] == pytest.approx(expected[subset.name], abs=1e-12)
    assert task.score == task.scores[aggregation][metric]
    assert [subset.pairs for subset in task.subsets] == [16, 34]
    assert task.signature.startswith(f"toy:test:{aggregation}|{metric}|{similarity}|text:toy|")


def test_subsets_come_in_the_order_of_the_data(hash_encode: Encode) -> None:
    record = sb.evaluate(hash_encode, "sample", bootstrap=NO_INTERVALS)
    assert [subset.name for subset in record.tasks[0].subsets] == list(record.pairs["subset"].unique())


def test_the_average_is_the_plain_mean_of_the_tasks(hash_encode: Encode, toy_data: Data) -> None:
    sets = [toy_data("a", seed=1), toy_data("b", seed=2, pairs=90), toy_data("c", seed=3)]
    record = sb.evaluate(hash_encode, sets, bootstrap=NO_INTERVALS)
    scores = [task.score for task in record.tasks if task.score is not None]
    assert record.average is not None
    assert record.average.tasks == ("a", "b", "c")
    assert record.average.score == pytest.approx(np.mean(scores))
    assert record.average.of_rounded == pytest.approx(np.mean([round(100 * score, 2) for score in scores]))
    assert record.average.interval is None


def test_a_single_task_has_no_average(hash_encode: Encode, toy_data: Data) -> None:
    assert sb.evaluate(hash_encode, toy_data()).average is None


def test_zero_vectors_are_counted_and_score_zero(toy_data: Data) -> None:
    data = toy_data(pairs=60)

    def encode(sentences: list[str]) -> list[list[float]]:
        return [[float("owl" in s.split()), float("bus" in s.split())] for s in sentences]

    record = sb.evaluate(encode, data)
    unknown = [not {"owl", "bus"} & set(text.split()) for text in data.pairs["sentence1"]]
    unknown = np.array(unknown) | [not {"owl", "bus"} & set(text.split()) for text in data.pairs["sentence2"]]
    assert record.tasks[0].zero_pairs == unknown.sum() > 0
    assert (record.pairs["cosine"][unknown] == 0).all()
    assert record.tasks[0].score is not None


def test_identical_pairs_are_counted(toy_data: Data, hash_encode: Encode) -> None:
    data = toy_data(pairs=20)
    data.pairs.loc[:4, "sentence2"] = data.pairs.loc[:4, "sentence1"]
    record = sb.evaluate(hash_encode, data)
    assert record.tasks[0].identical_pairs == 5
    assert (record.pairs["cosine"][:5] == 1.0).all()


def test_constant_similarities_have_no_correlation_and_that_is_no_crash(toy_data: Data) -> None:
    sets = [toy_data("a"), toy_data("b", seed=1)]
    record = sb.evaluate(lambda sentences: np.ones((len(sentences), 3)), sets)
    for task in record.tasks:
        assert task.score is None
        assert task.interval is None
        assert task.scores["all"] == {"spearman": None, "pearson": None}
        assert [subset.scores["spearman"] for subset in task.subsets] == [None, None]
    assert record.average is not None
    assert record.average.score is None
    assert record.average.of_rounded is None
    assert record.average.interval is None
    assert record.frame["score"].isna().all()
    assert sb.RunRecord.model_validate_json(record.model_dump_json()) == record


def test_one_subset_without_a_correlation_leaves_the_others_theirs(toy_data: Data, hash_encode: Encode) -> None:
    data = toy_data(pairs=60)
    data.pairs.loc[data.pairs["subset"] == "first", "gold"] = 3.0
    (task,) = sb.evaluate(hash_encode, data).tasks
    assert task.score is not None
    assert task.interval is not None
    assert task.scores["mean"]["spearman"] is None
    assert task.intervals["mean"] is None
    assert [subset.scores["spearman"] is None for subset in task.subsets] == [True, False]
    assert [subset.interval is None for subset in task.subsets] == [True, False]


def test_intervals_are_the_same_every_time_and_hold_the_score(toy_data: Data, hash_encode: Encode) -> None:
    one, two = (sb.evaluate(hash_encode, [toy_data("a"), toy_data("b", seed=1)]) for _ in range(2))
    assert one.tasks == two.tasks
    assert one.average == two.average
    for part in (*one.tasks, one.average):
        assert part is not None
        assert part.interval is not None
        assert part.score is not None
        assert part.interval[0] < part.score < part.interval[1]


def test_intervals_do_not_depend_on_which_other_tasks_are_scored_nor_in_which_order(
    toy_data: Data, hash_encode: Encode
) -> None:
    a, b = toy_data("a"), toy_data("b", seed=1)
    forward, backward = sb.evaluate(hash_encode, [a, b]), sb.evaluate(hash_encode, [b, a])
    alone = sb.evaluate(hash_encode, a)
    assert forward.tasks == backward.tasks[::-1]
    assert forward.tasks[0] == alone.tasks[0]
    assert forward.average is not None
    assert backward.average is not None
    assert forward.average.interval == pytest.approx(backward.average.interval)


def test_another_seed_and_more_resamples_give_other_intervals_and_the_same_scores(
    toy_data: Data, hash_encode: Encode
) -> None:
    records = [
        sb.evaluate(hash_encode, toy_data(), bootstrap=bootstrap)
        for bootstrap in (sb.Bootstrap(), sb.Bootstrap(seed=1), sb.Bootstrap(2000), sb.Bootstrap(level=0.5))
    ]
    assert len({record.tasks[0].interval for record in records}) == 4
    assert len({record.tasks[0].score for record in records}) == 1
    assert records[3].protocol.level == 0.5


def test_no_resamples_give_no_intervals(toy_data: Data, hash_encode: Encode) -> None:
    record = sb.evaluate(hash_encode, [toy_data("a"), toy_data("b")], bootstrap=NO_INTERVALS)
    assert [task.interval for task in record.tasks] == [None, None]
    assert {subset.interval for task in record.tasks for subset in task.subsets} == {None}
    assert all(task.intervals == {} for task in record.tasks)
    assert record.frame["low"].isna().all()


@pytest.mark.parametrize("wrong", [{"resamples": -1}, {"level": 0.0}, {"level": 95.0}])
def test_a_bootstrap_that_makes_no_sense_is_a_mistake(wrong: dict[str, Any]) -> None:
    with pytest.raises(sb.UserError, match=r"give "):
        sb.Bootstrap(**wrong)
