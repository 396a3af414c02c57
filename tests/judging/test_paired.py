"""Two models pair by pair: what the rows say, and what does not compare."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.judging.comparison import Difference
from stsbench.judging.differences import compare_pairs, dependence_notes
from stsbench.records.intervals import INTERVAL_OF
from stsbench.statistics.correlations import spearman
from stsbench.statistics.dependence import Sharing, variance
from stsbench.statistics.influence import spearman_terms, task_terms
from stsbench.statistics.intervals import plain_interval, two_sided_p
from stsbench.statistics.significance import williams

Measure = Callable[..., sb.RunRecord]
Data = Callable[..., StsData]
DYADIC = sb.Intervals()
INDEPENDENT = sb.Intervals(interval="independent")


def rows_of(a: sb.RunRecord, b: sb.RunRecord, intervals: sb.Intervals = DYADIC) -> dict[Any, Difference]:
    rows, _ = compare_pairs(a, b, ("one", "two"), intervals=intervals)
    return {(row.task, row.subset): row for row in rows}


def with_pairs(record: sb.RunRecord, **columns: Any) -> sb.RunRecord:
    return record.with_tables(record.pairs.assign(**columns))


def test_a_row_for_each_task_subset_and_the_average_in_order(measure: Measure) -> None:
    assert list(rows_of(measure(), measure(noise=1))) == [
        ("x", ""),
        ("x", "first"),
        ("x", "second"),
        ("y", ""),
        ("y", "first"),
        ("y", "second"),
        ("Avg.", ""),
    ]


def test_scores_and_average_are_those_of_the_records(measure: Measure) -> None:
    a, b = measure(), measure(noise=1)
    rows = rows_of(a, b)
    for record, side in ((a, "a"), (b, "b")):
        for (task, subset), score in record.frame.set_index(["task", "subset"])["score"].items():  # type: ignore[misc]
            assert getattr(rows[task, subset], side) == pytest.approx(score, abs=1e-9)
    assert all(row.difference == row.b - row.a for row in rows.values())


def test_the_interval_is_of_the_differences_of_what_each_pair_contributes(measure: Measure) -> None:
    a, b = measure(), measure(noise=1)
    row = rows_of(a, b)["y", ""]
    own = a.pairs[a.pairs["task"] == "y"]
    codes = (own["subset"] == "second").astype(int)
    terms = [task_terms(own["gold"], record.pairs.loc[own.index, "cosine"], codes) for record in (a, b)]
    sharing = Sharing.of(own["sentence_a"], own["sentence_b"])
    found = variance(terms[1] - terms[0], sharing)
    difference = (row.b - row.a) / 100
    low, high, _ = plain_interval(difference, found)
    assert (row.low, row.high) == pytest.approx((100 * low, 100 * high))
    assert row.p == pytest.approx(two_sided_p(difference, found))
    assert row.interval == "dyadic"
    by_clusters = variance(terms[1] - terms[0], sharing, "components").standard_error
    assert row.details["se_components"] == pytest.approx(100 * by_clusters)
    assert row.details["se_dyadic"] == pytest.approx(100 * found.standard_error)
    # Cohen's q by the delta method.
    slopes = [1 / (1 - (score / 100) ** 2) for score in (row.a, row.b)]
    of_q = variance(slopes[1] * terms[1] - slopes[0] * terms[0], sharing)
    assert row.effect_high - row.effect == pytest.approx(plain_interval(0.0, of_q).high)


def test_the_average_sees_sentences_that_tasks_share(measure: Measure, toy_data: Data) -> None:
    one = toy_data("x", pairs=60)
    both = [one, dataclasses.replace(one, task="again")]
    a, b = measure(both), measure(both, noise=1)
    rows = rows_of(a, b)
    # The same pairs twice are no more than once.
    assert rows["Avg.", ""].high - rows["Avg.", ""].low > 0.95 * (rows["x", ""].high - rows["x", ""].low)
    apart = rows_of(measure(), measure(noise=1))
    assert apart["Avg.", ""].high - apart["Avg.", ""].low < 0.95 * (apart["x", ""].high - apart["x", ""].low)


def test_a_reader_is_told_what_is_taken_for_independent(measure: Measure) -> None:
    a, b = measure(), measure(noise=1)
    notes = sb.compare(a, b).notes
    assert any(INTERVAL_OF in note for note in notes)
    assert any("Williams' test takes pairs or items for independent" in note for note in notes)
    assert any("taken for independent" in note for note in sb.compare(a, b, intervals=INDEPENDENT).notes)


def test_a_reader_is_told_where_topics_may_count(measure: Measure) -> None:
    row = next(iter(rows_of(measure(), measure(noise=1)).values()))
    apart = dataclasses.replace(row, details={"se_dyadic": 1.0, "se_components": 1.5})
    (told,) = [note for note in dependence_notes([apart], sb.Intervals()) if "topic" in note]
    assert "x 1.00 and 1.50" in told
    alike = dataclasses.replace(row, details={"se_dyadic": 1.0, "se_components": 1.1})
    assert not [note for note in dependence_notes([alike], sb.Intervals()) if "topic" in note]


def test_two_that_order_the_pairs_alike_differ_by_nothing(measure: Measure) -> None:
    a = measure()
    rows = rows_of(a, with_pairs(a, cosine=a.pairs["cosine"] / 2))
    assert {(row.low, row.high, row.p) for row in rows.values()} == {(0.0, 0.0, 1.0)}


def test_three_pairs_have_no_interval(measure: Measure, toy_data: Data) -> None:
    few = [toy_data("few", pairs=9)]
    rows = rows_of(measure(few), measure(few, noise=1))
    first = rows["few", "first"]
    assert first.size == 3
    assert math.isnan(first.low)
    assert math.isnan(first.p)
    assert not math.isnan(rows["few", "second"].low)


def test_pairing_makes_the_interval_of_two_similar_models_narrower_than_their_own(measure: Measure) -> None:
    a, b = measure(), measure(noise=0.1)
    row = rows_of(a, b)["x", ""]
    low, high = a.tasks[0].interval or (0, 0)
    assert row.high - row.low < 0.5 * 100 * (high - low)


def test_williams_stands_where_one_correlation_does(measure: Measure) -> None:
    a, b = measure(), measure(noise=1)
    rows = rows_of(a, b)
    own = a.pairs["task"] == "x"
    gold, one, two = a.pairs["gold"][own], a.pairs["cosine"][own], b.pairs["cosine"][own]
    expected = williams(spearman(two, gold), spearman(one, gold), spearman(one, two), 60, ranks=True)
    assert rows["x", ""].test_p == pytest.approx(expected.p_value)
    assert rows["x", ""].details["williams_t"] == pytest.approx(expected.statistic)
    assert math.isnan(rows["Avg.", ""].test_p)

    by_mean = sb.protocol(aggregation="mean")
    rows = rows_of(measure(protocol=by_mean), measure(noise=1, protocol=by_mean))
    assert rows["x", ""].test == ""
    assert rows["x", "first"].test == "williams"


def test_kendall_has_an_interval_by_its_terms_and_no_williams(measure: Measure) -> None:
    options = {"protocol": sb.protocol(metric="kendall"), "intervals": sb.Intervals(None)}
    rows = rows_of(measure(**options), measure(noise=1, **options))
    assert rows["x", ""].test == ""
    assert 0 < rows["x", ""].p <= 1
    assert rows["x", ""].interval == "dyadic"
    assert rows["x", ""].low < rows["x", ""].difference < rows["x", ""].high


def test_holm_s_correction_is_over_the_tasks_and_over_the_subsets(measure: Measure) -> None:
    rows = rows_of(measure(), measure(noise=1))
    tasks = sorted([rows["x", ""], rows["y", ""]], key=lambda row: row.p)
    assert tasks[0].p_holm == pytest.approx(min(1, 2 * tasks[0].p))
    assert tasks[1].p_holm == pytest.approx(max(tasks[1].p, tasks[0].p_holm))
    lowest = min((row for row in rows.values() if row.subset), key=lambda row: row.p)
    assert lowest.p_holm == pytest.approx(min(1, 4 * lowest.p))
    assert math.isnan(rows["Avg.", ""].p_holm)


def test_a_model_does_not_differ_from_itself(measure: Measure) -> None:
    for row in rows_of(measure(), measure()).values():
        assert (row.difference, row.low, row.high, row.p) == (0, 0, 0, 1)


def test_a_better_model_is_found_better(measure: Measure) -> None:
    a = measure(noise=1)
    gold = a.pairs["gold"] + np.random.default_rng(0).normal(scale=0.1, size=len(a.pairs))
    rows = rows_of(a, with_pairs(a, cosine=gold))
    assert rows["Avg.", ""].low > 0
    assert rows["x", ""].p_holm < 0.05


def test_the_order_of_the_pairs_does_not_matter(measure: Measure) -> None:
    a, b = measure(), measure(noise=1)
    shuffled = b.with_tables(b.pairs.sample(frac=1, random_state=1))
    assert list(rows_of(a, shuffled)) == list(rows_of(a, b))
    for key, row in rows_of(a, b).items():
        assert rows_of(a, shuffled)[key].p == row.p


def test_an_undefined_score_makes_its_row_and_the_average_undefined_and_nothing_else(measure: Measure) -> None:
    a, b = measure(), measure(noise=1)
    constant = b.pairs["cosine"].where(b.pairs["task"] != "y", 0.5)
    rows = rows_of(a, with_pairs(b, cosine=constant))
    assert math.isnan(rows["y", ""].p)
    assert math.isnan(rows["Avg.", ""].difference)
    assert rows["x", ""].p == rows_of(a, b)["x", ""].p


def test_tasks_that_only_one_holds_are_left_out_and_told(measure: Measure, toy_data: Data) -> None:
    one = [toy_data("x"), toy_data("z")]
    rows, notes = compare_pairs(measure(one), measure([toy_data("x")]), ("one", "two"), intervals=DYADIC)
    assert {row.task for row in rows} == {"x"}
    assert notes == ("not all records hold z: left out.",)
    assert compare_pairs(measure([toy_data("z")]), measure([toy_data("x")]), ("one", "two"), intervals=DYADIC) == (
        (),
        ("not all records hold z, x: left out.",),
    )


@pytest.mark.parametrize(
    ("choice", "value"), [("aggregation", "wmean"), ("metric", "pearson"), ("similarity", "dot")]
)
def test_scores_by_other_protocols_do_not_compare(measure: Measure, choice: str, value: str) -> None:
    other = measure(protocol=sb.protocol(**{choice: value}))  # type: ignore[arg-type]
    with pytest.raises(
        sb.UserError, match=rf"one and two do not compare on x: {choice} is \w+ in one and {value}"
    ):
        rows_of(measure(), other)


def test_another_split_or_other_data_do_not_compare(measure: Measure, toy_data: Data) -> None:
    with pytest.raises(sb.UserError, match="compare on x: split is test in one and dev in the other"):
        rows_of(measure([toy_data("x")]), measure([toy_data("x", split="dev")]))
    with pytest.raises(sb.UserError, match="compare on x: data is"):
        rows_of(measure([toy_data("x")]), measure([toy_data("x", seed=3)]))


def test_of_two_splits_each_is_compared_with_its_own(measure: Measure, toy_data: Data) -> None:
    both = [toy_data("x"), toy_data("x", split="dev", seed=2)]
    assert [task for task, subset in rows_of(measure(both), measure(both, noise=1)) if not subset] == [
        "x:test",
        "x:dev",
        "Avg.",
    ]
    rows, notes = compare_pairs(measure(both), measure(both[:1]), ("one", "two"), intervals=DYADIC)
    assert rows[0].task == "x"
    assert notes == ("not all records hold x: left out.",)


def test_other_pairs_or_gold_under_the_same_signature_do_not_compare(measure: Measure) -> None:
    a = measure()
    with pytest.raises(sb.UserError, match=r"compare on x: pair_id differs \(60 of"):
        rows_of(a, with_pairs(a, pair_id=a.pairs["pair_id"] + "b"))
    with pytest.raises(sb.UserError, match=r"compare on y: pair_id differs \(1 of"):
        rows_of(a, a.with_tables(a.pairs.iloc[:-1]))
    with pytest.raises(sb.UserError, match="compare on x: gold differs"):
        rows_of(a, with_pairs(a, gold=a.pairs["gold"] + 1))


@pytest.mark.slow
def test_the_interval_of_a_difference_covers_the_truth_as_often_as_it_says() -> None:
    """300 samples of a trivariate normal: gold correlates 0.8 with A, 0.7 with B; the truth is known."""
    truth = 6 / math.pi * (math.asin(0.35) - math.asin(0.4))
    rng = np.random.default_rng(2024)
    covered = 0
    for _ in range(300):
        gold, noise, own = rng.normal(size=(3, 300))
        a = 0.8 * gold + 0.6 * noise
        b = 0.7 * gold + math.sqrt(0.51) * (0.6 * noise + 0.8 * own)
        spread = variance(spearman_terms(gold, b) - spearman_terms(gold, a), Sharing.independent(300))
        low, high, _ = plain_interval(spearman(gold, b) - spearman(gold, a), spread)
        covered += low <= truth <= high
    assert covered / 300 == pytest.approx(0.95, abs=3 * math.sqrt(0.95 * 0.05 / 300))
