"""From compared pairs to scores, against a plain computation with pandas and SciPy."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.records.parts import Score
from stsbench.records.scores import Scores
from stsbench.scoring.settings import AGGREGATIONS
from stsbench.statistics.correlations import CORRELATIONS
from stsbench.statistics.dependence import Sharing, variance
from stsbench.statistics.influence import spearman_terms, task_terms
from stsbench.statistics.intervals import correlation_interval

REFERENCE = {
    "spearman": lambda x, y: stats.spearmanr(x, y).statistic,
    "pearson": lambda x, y: stats.pearsonr(x, y).statistic,
    "kendall": lambda x, y: stats.kendalltau(x, y).statistic,
}
NO_INTERVALS = sb.Intervals(None)

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


def number_of(score: Score, statistic: str, aggregation: str | None = None, subset: str = "") -> float | None:
    number = score.number(statistic, aggregation, subset)
    assert number is not None
    return number.value


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean", "manhattan"])
@pytest.mark.parametrize("metric", list(CORRELATIONS))
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_a_score_is_what_scipy_and_pandas_compute_from_the_pairs(
    aggregation: str, metric: str, similarity: str, hash_encode: Encode, toy_data: Data
) -> None:
    chosen = sb.protocol(aggregation=aggregation, metric=metric, similarity=similarity)
    record = sb.evaluate(hash_encode, toy_data(pairs=50), protocol=chosen, intervals=NO_INTERVALS)
    (task,) = record.scores
    for name in {metric, "spearman", "pearson"}:
        expected = plainly(record.items, similarity, name)
        for way in AGGREGATIONS:
            assert number_of(task, name, way) == pytest.approx(expected[way], abs=1e-12)
        for subset in ("first", "second"):
            assert number_of(task, name, subset=subset) == pytest.approx(expected[subset], abs=1e-12)
    assert task.value == number_of(task, metric, aggregation)
    assert [(subset.subset, subset.items) for subset in task.subsets] == [("first", 16), ("second", 34)]
    assert task.signature.startswith(f"toy:test:{aggregation}|{metric}|{similarity}|text:toy|")


def test_subsets_come_in_the_order_of_the_data(hash_encode: Encode) -> None:
    record = sb.evaluate(hash_encode, "sample", intervals=NO_INTERVALS)
    assert [subset.subset for subset in record.scores[0].subsets] == list(record.items["subset"].unique())


def test_the_average_is_the_plain_mean_of_the_tasks(hash_encode: Encode, toy_data: Data) -> None:
    sets = [toy_data("a", seed=1), toy_data("b", seed=2, pairs=90), toy_data("c", seed=3)]
    record = sb.evaluate(hash_encode, sets, intervals=NO_INTERVALS)
    scores = [task.value for task in record.scores if task.value is not None]
    (average,) = record.averages
    assert average.tasks == ("a", "b", "c")
    assert record.average("sts").value == pytest.approx(np.mean(scores))
    assert record.average("sts").of_rounded == pytest.approx(np.mean([round(100 * score, 2) for score in scores]))
    assert record.average("sts").interval is None


def test_a_single_task_has_no_average(hash_encode: Encode, toy_data: Data) -> None:
    assert sb.evaluate(hash_encode, toy_data()).averages == ()


def test_zero_vectors_are_counted_and_score_zero(toy_data: Data) -> None:
    data = toy_data(pairs=60)

    def encode(sentences: list[str]) -> list[list[float]]:
        return [[float("owl" in s.split()), float("bus" in s.split())] for s in sentences]

    record = sb.evaluate(encode, data)
    unknown = [not {"owl", "bus"} & set(text.split()) for text in data.pairs["sentence1"]]
    unknown = np.array(unknown) | [not {"owl", "bus"} & set(text.split()) for text in data.pairs["sentence2"]]
    assert record.scores[0].counts["zero_pairs"] == unknown.sum() > 0
    assert (record.items["cosine"][unknown] == 0).all()
    assert record.scores[0].value is not None


def test_identical_pairs_are_counted(toy_data: Data, hash_encode: Encode) -> None:
    data = toy_data(pairs=20)
    data.pairs.loc[:4, "sentence2"] = data.pairs.loc[:4, "sentence1"]
    record = sb.evaluate(hash_encode, data)
    assert record.scores[0].counts["identical_pairs"] == 5
    assert (record.items["cosine"][:5] == 1.0).all()


def test_constant_similarities_have_no_correlation_and_that_is_no_crash(toy_data: Data) -> None:
    sets = [toy_data("a"), toy_data("b", seed=1)]
    record = sb.evaluate(lambda sentences: np.ones((len(sentences), 3)), sets)
    for task in record.scores:
        assert task.value is None
        assert task.interval is None
        assert {number.value for number in task.numbers} == {None}
        reasons = [number.no_interval for number in task.numbers if number.statistic == "spearman"]
        assert reasons == ["undefined"] * 5
    (average,) = record.averages
    assert (average.value, average.of_rounded, average.interval) == (None, None, None)
    assert record.frame["score"].isna().all()
    assert sb.RunRecord.model_validate_json(record.model_dump_json()) == record


def test_one_subset_without_a_correlation_leaves_the_others_theirs(toy_data: Data, hash_encode: Encode) -> None:
    data = toy_data(pairs=60)
    data.pairs.loc[data.pairs["subset"] == "first", "gold"] = 3.0
    (task,) = sb.evaluate(hash_encode, data).scores
    assert task.value is not None
    assert task.interval is not None
    by_mean = task.number("spearman", "mean")
    assert by_mean is not None
    assert (by_mean.value, by_mean.interval) == (None, None)
    assert [subset.value is None for subset in task.subsets] == [True, False]
    assert [subset.interval is None for subset in task.subsets] == [True, False]


def test_intervals_are_the_same_every_time_and_hold_the_score(toy_data: Data, hash_encode: Encode) -> None:
    one, two = (sb.evaluate(hash_encode, [toy_data("a"), toy_data("b", seed=1)]) for _ in range(2))
    assert one.scores == two.scores
    assert one.averages == two.averages
    for part in (*one.scores, *one.averages):
        assert part.interval is not None
        assert part.value is not None
        assert part.interval[0] < part.value < part.interval[1]


def test_intervals_do_not_depend_on_which_other_tasks_are_scored_nor_in_which_order(
    toy_data: Data, hash_encode: Encode
) -> None:
    a, b = toy_data("a"), toy_data("b", seed=1)
    forward, backward = sb.evaluate(hash_encode, [a, b]), sb.evaluate(hash_encode, [b, a])
    alone = sb.evaluate(hash_encode, a)
    assert forward.scores == backward.scores[::-1]
    assert forward.scores[0] == alone.scores[0]
    assert forward.averages[0].interval == pytest.approx(backward.averages[0].interval)


def test_intervals_depend_on_the_level(toy_data: Data, hash_encode: Encode) -> None:
    wide, narrow = (
        sb.evaluate(hash_encode, toy_data(), intervals=intervals)
        for intervals in (sb.Intervals(), sb.Intervals(level=0.5))
    )
    (low, high), (inner_low, inner_high) = wide.scores[0].interval or (0, 0), narrow.scores[0].interval or (0, 0)
    assert low < inner_low < inner_high < high
    assert narrow.protocol.level == 0.5


def test_kendalls_interval_is_of_its_terms(toy_data: Data, hash_encode: Encode) -> None:
    record = sb.evaluate(hash_encode, toy_data(), protocol=sb.protocol("simcse", metric="kendall"))
    pairs, (task,) = record.items, record.scores
    sharing = Sharing.of(pairs["sentence_a"], pairs["sentence_b"])
    codes = (pairs["subset"] == "second").astype(int)
    spread = variance(task_terms(pairs["gold"], pairs["cosine"], codes, "kendall"), sharing)
    limits = correlation_interval(task.value or 0, spread, len(pairs), metric="kendall")
    assert task.interval == pytest.approx(limits[:2])
    assert any("dyadic" in line for line in Scores([record]).remarks)


def test_the_record_names_the_method_of_its_intervals(toy_data: Data, hash_encode: Encode) -> None:
    methods, data = ("dyadic", "components", "independent"), toy_data(pairs=60, seed=3)
    # Chains of five pairs, each of which has a sentence of the next.
    chained = [*data.pairs["sentence1"][1:], "a kettle"]
    chained = [own if row % 5 == 4 else chained[row] for row, own in enumerate(data.pairs["sentence2"])]
    data = replace(data, pairs=data.pairs.assign(sentence2=chained))
    records = {name: sb.evaluate(hash_encode, data, intervals=sb.Intervals(interval=name)) for name in methods}
    assert [record.protocol.interval for record in records.values()] == list(methods)
    assert len({record.scores[0].interval for record in records.values()}) == 3
    with pytest.raises(sb.UserError, match=r"unknown interval 'dyadik': did you mean dyadic\?"):
        sb.Intervals(interval="dyadik")  # type: ignore[arg-type]


def test_an_interval_is_of_what_each_pair_contributes_and_which_share_sentences(
    toy_data: Data, hash_encode: Encode
) -> None:
    record = sb.evaluate(hash_encode, toy_data())
    pairs, (task,) = record.items, record.scores
    codes = (pairs["subset"] == "second").astype(int)
    sharing = Sharing.of(pairs["sentence_a"], pairs["sentence_b"])
    found = variance(task_terms(pairs["gold"], pairs["cosine"], codes), sharing)
    assert task.interval == pytest.approx(correlation_interval(task.value or 0, found, len(pairs))[:2])
    inside = (codes == 1).to_numpy()
    terms = spearman_terms(pairs["gold"][inside], pairs["cosine"][inside])
    of_subset = variance(terms, sharing.take(inside))
    second = task.subsets[1]
    limits = correlation_interval(second.value or 0, of_subset, int(inside.sum()))
    assert second.interval == pytest.approx(limits[:2])


def test_the_averages_interval_sees_sentences_that_tasks_share(toy_data: Data, hash_encode: Encode) -> None:
    one = toy_data("x", pairs=90)
    twice = sb.evaluate(hash_encode, [one, replace(one, task="again")])
    apart = sb.evaluate(hash_encode, [one, toy_data("y", pairs=90, seed=1)])
    widths = [run.averages[0].interval or (0, 0) for run in (twice, apart)]
    shared, unshared = (high - low for low, high in widths)
    low, high = twice.scores[0].interval or (0, 0)
    # The same pairs twice are no more than once; other pairs are.
    assert shared == pytest.approx(high - low, rel=0.05)
    assert unshared < 0.85 * shared


@pytest.mark.parametrize("interval", ["dyadic", "components", "independent"])
def test_five_pairs_in_perfect_order_have_no_interval_and_the_reason(interval: Any, tmp_path: Path) -> None:
    file = tmp_path / "five.tsv"
    sentences = [f"a{'b' * number}\tc\t{number}" for number in range(5)]
    file.write_text("sentence1\tsentence2\tscore\n" + "\n".join(sentences) + "\n", encoding="utf-8")
    np.save(tmp_path / "similarities.npy", np.arange(5.0))
    record = sb.evaluate_similarities(
        tmp_path / "similarities.npy", data=file, intervals=sb.Intervals(interval=interval)
    )
    (task,) = record.scores
    assert (task.value, task.interval, task.no_interval) == (1.0, None, "perfect")
    assert task.subsets[0].no_interval == "perfect"
    assert any("does not show how far" in line for line in Scores([record]).remarks)


def test_three_pairs_have_no_interval_and_four_have_a_wide_one(tmp_path: Path) -> None:
    found = []
    for count in (3, 4):
        file = tmp_path / f"{count}.tsv"
        rows = [f"a{'b' * number}\tc{number}\t{number}" for number in range(count)]
        file.write_text("sentence1\tsentence2\tscore\n" + "\n".join(rows) + "\n", encoding="utf-8")
        np.save(tmp_path / "similarities.npy", [0.0, 2.0, 1.0, 3.0][:count])
        found.append(sb.evaluate_similarities(tmp_path / "similarities.npy", data=file).scores[0])
    assert (found[0].interval, found[0].no_interval) == (None, "few pairs")
    low, high = found[1].interval or (0, 0)
    assert -1 < low < 0 < high < 1


def test_no_intervals_are_computed_where_none_were_asked_for(toy_data: Data, hash_encode: Encode) -> None:
    record = sb.evaluate(hash_encode, [toy_data("a"), toy_data("b")], intervals=NO_INTERVALS)
    assert [task.interval for task in record.scores] == [None, None]
    for task in record.scores:
        assert {(number.interval, number.no_interval) for number in task.numbers} == {(None, "")}
    assert record.frame["low"].isna().all()


@pytest.mark.parametrize("wrong", [{"interval": "never"}, {"level": 0.0}, {"level": 95.0}])
def test_intervals_that_make_no_sense_are_a_mistake(wrong: dict[str, Any]) -> None:
    with pytest.raises(sb.UserError, match=r"give |expected |unknown interval"):
        sb.Intervals(**wrong)
