"""From vectors to the items and scores of pairs, and ceilings of raters, against plain computations."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.spatial import distance

import stsbench as sb
from stsbench.data.tables import Pair, StsData, pair_table
from stsbench.records.scores import Scores
from stsbench.scoring.kinds.sts import StsPairs, compared, rater_part, with_spread
from stsbench.scoring.recompute import require_recomputed
from stsbench.scoring.settings import AGGREGATIONS
from stsbench.scoring.task import Vectors
from stsbench.statistics.correlations import CORRELATIONS, ceiling, reliability
from stsbench.statistics.dependence import Sharing, variance
from stsbench.statistics.influence import spearman_terms, task_terms
from stsbench.statistics.intervals import correlation_interval

Encode = Callable[[list[str]], Any]
Data = Callable[..., StsData]

REFERENCE = {
    "spearman": lambda x, y: stats.spearmanr(x, y).statistic,
    "pearson": lambda x, y: stats.pearsonr(x, y).statistic,
    "kendall": lambda x, y: stats.kendalltau(x, y).statistic,
}
NO_INTERVALS = sb.Intervals(None)
TYPES = {
    **dict.fromkeys(("kind", "task", "split", "text", "subset", "item_id"), "text"),
    **dict.fromkeys(("sentence_a", "sentence_b", "folded_a", "folded_b"), "u8"),
    "gold": "f8",
    **dict.fromkeys(("words_a", "characters_a", "words_b", "characters_b"), "i8"),
    **dict.fromkeys(("cosine", "dot", "euclidean", "manhattan"), "f8"),
    **dict.fromkeys(("subwords_a", "subwords_b"), "i8"),
    **dict.fromkeys(("identical", "zero"), "?"),
}


def test_items_have_documented_columns_lengths_and_scipys_similarities(
    toy_data: Data, hash_encode: Encode
) -> None:
    data = toy_data(pairs=40)
    sides = StsPairs(data).sentences()
    distinct = list(dict.fromkeys(sides))
    rows = np.array([distinct.index(text) for text in sides])
    table = compared(
        StsPairs(data), Vectors(hash_encode(distinct), rows, np.array([len(t.split()) for t in sides]))
    )
    assert list(table.columns) == list(TYPES)
    for name, kind in TYPES.items():
        if kind == "text":
            assert all(isinstance(value, str) for value in table[name])
        else:
            assert table[name].dtype == np.dtype(kind), name
    texts = data.pairs["sentence1"], data.pairs["sentence2"]
    u, v = (hash_encode(list(side)) for side in texts)
    for kind, function in {
        "cosine": lambda a, b: 1 - distance.cosine(a, b),
        "dot": np.dot,
        "euclidean": lambda a, b: -distance.euclidean(a, b),
        "manhattan": lambda a, b: -distance.cityblock(a, b),
    }.items():
        expected = [function(a, b) for a, b in zip(u, v, strict=True)]
        np.testing.assert_allclose(table[kind], expected, rtol=1e-12, atol=1e-12)
    assert (table["identical"] == (texts[0] == texts[1]).to_numpy()).all()
    for side, column in zip("ab", texts, strict=True):
        assert table[f"words_{side}"].tolist() == [len(text.split()) for text in column]
        assert table[f"characters_{side}"].tolist() == [len(text) for text in column]
        assert table[f"subwords_{side}"].tolist() == table[f"words_{side}"].tolist()


def test_identical_pairs_have_cosine_1_and_zero_vectors_cosine_0(toy_data: Data) -> None:
    vectors = np.array([[0.1, 0.3, 0.7], [0.0, 0.0, 0.0], [0.6, 0.8, 0.0]], dtype=np.float32)
    rows = np.array([0, 1, 1, 0, 2, 2, 1, 0])
    table = compared(StsPairs(toy_data(pairs=4)), Vectors(vectors, rows, np.full(8, -1)))
    similar = 0.3 / np.sqrt(0.59)
    assert table["cosine"].tolist() == [pytest.approx(similar), 0.0, 0.0, 1.0]
    assert table["zero"].tolist() == [False, True, True, False]
    assert table["identical"].tolist() == [False, False, True, True]


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean", "manhattan"])
@pytest.mark.parametrize("metric", list(CORRELATIONS))
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_a_score_is_what_scipy_and_pandas_compute_from_the_pairs(
    aggregation: str, metric: str, similarity: str, hash_encode: Encode, toy_data: Data
) -> None:
    chosen = sb.protocol(aggregation=aggregation, metric=metric, similarity=similarity)
    record = sb.evaluate(hash_encode, toy_data(pairs=50), protocol=chosen, intervals=NO_INTERVALS)
    (task,), pairs = record.scores, record.items
    for name in {metric, "spearman", "pearson"}:
        correlate = REFERENCE[name]
        by_subset = pairs.groupby("subset")[["gold", similarity]]
        values = by_subset.apply(lambda rows, by=correlate: by(rows["gold"], rows[similarity]))
        weighted = (values * by_subset.size()).sum() / len(pairs)
        whole = correlate(pairs["gold"], pairs[similarity])
        for way, expected in {"all": whole, "mean": values.mean(), "wmean": weighted}.items():
            assert task.number(name, way).value == pytest.approx(expected, abs=1e-12)
        for subset, expected in values.items():
            assert task.number(name, None, subset).value == pytest.approx(expected, abs=1e-12)
    assert task.value == task.number(metric, aggregation).value
    assert [(subset.subset, subset.items) for subset in task.subsets] == [("first", 16), ("second", 34)]
    assert task.signature.startswith(f"toy:test:{aggregation}|{metric}|{similarity}|text:toy|")


def test_the_average_is_the_plain_mean_of_several_tasks(hash_encode: Encode, toy_data: Data) -> None:
    sets = [toy_data("a", seed=1), toy_data("b", seed=2, pairs=90), toy_data("c", seed=3)]
    record = sb.evaluate(hash_encode, sets, intervals=NO_INTERVALS)
    scores = [task.value for task in record.scores]
    (average,) = record.averages
    assert average.tasks == ("a", "b", "c")
    assert average.value == pytest.approx(np.mean(scores))
    assert average.of_rounded == pytest.approx(np.mean([round(100 * score, 2) for score in scores]))
    assert average.interval is None
    for task in record.scores:
        assert {(number.interval, number.no_interval) for number in task.numbers} == {(None, "")}
    sample = sb.evaluate(hash_encode, "sample")
    assert sample.averages == ()
    assert [subset.subset for subset in sample.scores[0].subsets] == list(sample.items["subset"].unique())


def test_constant_similarities_have_no_correlation(toy_data: Data) -> None:
    sets = [toy_data("a"), toy_data("b", seed=1)]
    record = sb.evaluate(lambda sentences: np.ones((len(sentences), 3)), sets)
    for task in record.scores:
        assert (task.value, task.interval) == (None, None)
        assert {number.value for number in task.numbers} == {None}
        reasons = [number.no_interval for number in task.numbers if number.statistic == "spearman"]
        assert reasons == ["undefined"] * 5
    (average,) = record.averages
    assert (average.value, average.of_rounded, average.interval) == (None, None, None)
    assert record.frame["score"].isna().all()
    assert sb.RunRecord.model_validate_json(record.model_dump_json()) == record


def test_a_subset_without_a_correlation_leaves_the_other_numbers(toy_data: Data, hash_encode: Encode) -> None:
    data = toy_data(pairs=60)
    data.pairs.loc[data.pairs["subset"] == "first", "gold"] = 3.0
    (task,) = sb.evaluate(hash_encode, data).scores
    assert None not in (task.value, task.interval)
    by_mean = task.number("spearman", "mean")
    assert (by_mean.value, by_mean.interval) == (None, None)
    assert [(subset.value is None, subset.interval is None) for subset in task.subsets] == [
        (True,) * 2,
        (False,) * 2,
    ]


def test_intervals_depend_on_the_task_and_the_level_alone(toy_data: Data, hash_encode: Encode) -> None:
    a, b = toy_data("a"), toy_data("b", seed=1)
    forward, again, backward, alone = (sb.evaluate(hash_encode, tasks) for tasks in ([a, b], [a, b], [b, a], [a]))
    assert forward.scores == again.scores == backward.scores[::-1]
    assert forward.scores[0] == alone.scores[0]
    assert forward.averages == again.averages
    assert forward.averages[0].interval == pytest.approx(backward.averages[0].interval)
    for part in (*forward.scores, *forward.averages):
        assert part.interval[0] < part.value < part.interval[1]
    narrow = sb.evaluate(hash_encode, a, intervals=sb.Intervals(level=0.5))
    (low, high), (inner_low, inner_high) = alone.scores[0].interval, narrow.scores[0].interval
    assert low < inner_low < inner_high < high
    assert narrow.protocol.level == 0.5


@pytest.mark.parametrize("metric", ["spearman", "kendall"])
def test_an_interval_follows_from_the_terms_and_from_shared_sentences(
    metric: Any, toy_data: Data, hash_encode: Encode
) -> None:
    record = sb.evaluate(hash_encode, toy_data(), protocol=sb.protocol(metric=metric))
    pairs, (task,) = record.items, record.scores
    codes = (pairs["subset"] == "second").astype(int)
    sharing = Sharing.of(pairs["sentence_a"], pairs["sentence_b"])
    spread = variance(task_terms(pairs["gold"], pairs["cosine"], codes, metric), sharing)
    limits = correlation_interval(task.value, spread, len(pairs), metric=metric)
    assert task.interval == pytest.approx(limits[:2])
    assert any("share a sentence" in line for line in Scores([record]).remarks)
    if metric == "spearman":
        inside = (codes == 1).to_numpy()
        of_subset = variance(spearman_terms(pairs["gold"][inside], pairs["cosine"][inside]), sharing.take(inside))
        limits = correlation_interval(task.subsets[1].value, of_subset, int(inside.sum()))
        assert task.subsets[1].interval == pytest.approx(limits[:2])


def test_the_interval_of_the_average_accounts_for_sentences_that_tasks_share(
    toy_data: Data, hash_encode: Encode
) -> None:
    one = toy_data("x", pairs=90)
    twice = sb.evaluate(hash_encode, [one, replace(one, task="again")])
    apart = sb.evaluate(hash_encode, [one, toy_data("y", pairs=90, seed=1)])
    width, shared, unshared = (
        high - low
        for low, high in (twice.scores[0].interval, twice.averages[0].interval, apart.averages[0].interval)
    )
    assert shared == pytest.approx(width, rel=0.05)  # the same pairs twice are no more than once
    assert unshared < 0.85 * shared


def test_a_perfect_order_and_few_pairs_have_no_interval_and_the_reason(tmp_path: Path) -> None:
    def scored(similarities: list[float], second: str) -> sb.RunRecord:
        rows = [f"a{'b' * n}\t{second.format(n)}\t{n}" for n in range(len(similarities))]
        (tmp_path / "own.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *rows, ""]), encoding="utf-8")
        np.save(tmp_path / "s.npy", similarities)
        return sb.import_results(tmp_path / "s.npy", gold=tmp_path / "own.tsv")

    perfect = scored([0.0, 1.0, 2.0, 3.0, 4.0], "c")
    assert (perfect.scores[0].value, perfect.scores[0].interval) == (1.0, None)
    assert perfect.scores[0].no_interval == perfect.scores[0].subsets[0].no_interval == "perfect"
    assert any("has no variance to estimate" in line for line in Scores([perfect]).remarks)
    few = scored([0.0, 2.0, 1.0], "c{}").scores[0]
    assert (few.interval, few.no_interval) == (None, "few pairs")
    low, high = scored([0.0, 2.0, 1.0, 3.0], "c{}").scores[0].interval
    assert -1 < low < 0 < high < 1


RATINGS = [(4, 4, 3, 4, 4), (0, 0, 1, 0, 0), (2, 3, 2, 3, 2), (1, 1, 1, 1, 1), (3, 3, 4, 4, 4), (2, 2, 1, 0, 3)]


def rated(ratings=RATINGS):
    pairs = [
        Pair("BIOSSES", "test", str(n), float(np.mean(given)), "an owl " * n, "a bus", ratings=given)
        for n, given in enumerate(ratings, start=1)
    ]
    return StsData("BIOSSES", "test", "raw", pair_table(pairs), (0.0, 4.0), "unverified", "0" * 64, (), ())


def one_way_icc(ratings):
    # Shrout and Fleiss (1979), case 1, of the mean of k ratings: (BMS - WMS) / BMS from the analysis of variance.
    table = np.array(ratings, dtype=float)
    n, k = table.shape
    between = k * ((table.mean(axis=1) - table.mean()) ** 2).sum() / (n - 1)
    within = ((table - table.mean(axis=1, keepdims=True)) ** 2).sum() / (n * (k - 1))
    return (between - within) / between


def test_the_ceiling_is_the_correlation_of_what_raters_agree_on_with_their_mean():
    # A truth that is known, and the mean of three noisy ratings of it: the ceiling is their correlation.
    draws = np.random.default_rng(1)
    truth = draws.normal(2.5, 1.0, 20_000)
    ratings = truth[:, np.newaxis] + draws.normal(0, 0.8, (20_000, 3))
    gold = ratings.mean(axis=1)
    highest = ceiling(reliability(gold, np.full(len(gold), 3.0), ratings.var(axis=1, ddof=1)))
    assert highest == pytest.approx(np.corrcoef(truth, gold)[0, 1], abs=0.005)


def test_reliability_is_the_one_way_intraclass_correlation_where_there_are_several_ratings():
    # A single rating has no variance.
    part = rater_part(with_spread(rated([*RATINGS, (3,)]).pairs))
    assert (part.pairs, part.reliability) == (6, pytest.approx(one_way_icc(RATINGS), abs=1e-12))
    assert (part.ratings, part.ceiling) == (5.0, pytest.approx(math.sqrt(part.reliability)))
    equal, disagreeing = (
        rater_part(with_spread(rated(r).pairs)) for r in ([(1, 3), (3, 1)], [(0, 4), (4, 0), (1, 2)])
    )
    assert (equal.pairs, equal.reliability, equal.ceiling, disagreeing.ceiling) == (2, None, None, None)
    assert disagreeing.reliability < 0
    assert rater_part(with_spread(rated([(3,), (2,)]).pairs)) is None


def test_the_ceiling_is_in_the_record_and_the_items_keep_the_spread(tmp_path, hash_encode):
    run = sb.evaluate(hash_encode, [rated(), "sample"], out=tmp_path / "run")
    first, other = run.scores
    assert first.raters.ceiling == pytest.approx(math.sqrt(one_way_icc(RATINGS)))
    assert (first.data.status, other.raters) == ("unverified", None)
    again = sb.load_run(tmp_path / "run")
    assert again.scores[0].raters == first.raters
    table = again.items
    assert table.loc[table["task"] == "BIOSSES", "raters"].to_list() == [5.0] * 6
    assert table.loc[table["task"] == "sample", "raters"].isna().all()
    assert "ratings" not in table.columns
    require_recomputed(again)
