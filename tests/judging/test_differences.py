"""Two models on the same items: what the rows say of their difference."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from changed_records import with_columns

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.judging.aligned import AlignedScores, aligned_scores, with_average
from stsbench.judging.compare import INTERVAL_OF, dependence_notes, differences
from stsbench.judging.comparison import Comparison, Difference
from stsbench.scoring.statistic import Accuracy
from stsbench.statistics.correlations import spearman
from stsbench.statistics.dependence import Sharing, variance
from stsbench.statistics.influence import spearman_terms, task_terms
from stsbench.statistics.intervals import plain_interval, two_sided_p
from stsbench.statistics.significance import mcnemar, williams

Measure = Callable[..., sb.RunRecord]
Data = Callable[..., StsData]
DYADIC = sb.Intervals()
INDEPENDENT = sb.Intervals(interval="independent")


def rows_of(a: sb.RunRecord, b: sb.RunRecord, intervals: sb.Intervals = DYADIC) -> dict[Any, Difference]:
    tasks, _ = aligned_scores({"one": a, "two": b}, may_be_undefined=True)
    return {(row.task, row.subset): row for row in differences(tasks, intervals)}


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
    own = a.items[a.items["task"] == "y"]
    codes = (own["subset"] == "second").astype(int)
    terms = [task_terms(own["gold"], record.items.loc[own.index, "cosine"], codes) for record in (a, b)]
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
    rows = rows_of(a, with_columns(a, cosine=a.items["cosine"] / 2))
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
    low, high = a.scores[0].interval or (0, 0)
    assert row.high - row.low < 0.5 * 100 * (high - low)


def test_williams_stands_where_one_correlation_does(measure: Measure) -> None:
    a, b = measure(), measure(noise=1)
    rows = rows_of(a, b)
    own = a.items["task"] == "x"
    gold, one, two = a.items["gold"][own], a.items["cosine"][own], b.items["cosine"][own]
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
    gold = a.items["gold"] + np.random.default_rng(0).normal(scale=0.1, size=len(a.items))
    rows = rows_of(a, with_columns(a, cosine=gold))
    assert rows["Avg.", ""].low > 0
    assert rows["x", ""].p_holm < 0.05


def test_an_undefined_score_makes_its_row_and_the_average_undefined_and_nothing_else(measure: Measure) -> None:
    a, b = measure(), measure(noise=1)
    constant = b.items["cosine"].where(b.items["task"] != "y", 0.5)
    rows = rows_of(a, with_columns(b, cosine=constant))
    assert math.isnan(rows["y", ""].p)
    assert math.isnan(rows["Avg.", ""].difference)
    assert rows["x", ""].p == rows_of(a, b)["x", ""].p


def on_items(task: str = "TREC", *, shares: tuple[float, float], size: int = 200, seed: int = 0) -> AlignedScores:
    """Return two classifiers of which about these shares are right, each on items of their own sentences."""
    rng = np.random.default_rng(seed)
    tables = tuple(
        pd.DataFrame({"subset": [""] * size, "correct": (rng.random(size) < share).astype(np.float64)})
        for share in shares
    )
    values, terms = ([getattr(Accuracy(), name)(table) for table in tables] for name in ("value", "terms"))
    sharing = Sharing.independent(size)
    return AlignedScores("transfer", task, Accuracy(), np.array(values), np.array(terms), sharing, sharing, tables)


def test_of_accuracies_there_are_mcnemar_s_test_and_cohen_s_h() -> None:
    task = on_items(shares=(0.7, 0.8))
    (row,) = differences([task], DYADIC)
    a, b = (table["correct"] > 0 for table in task.items)
    assert (row.a, row.b) == pytest.approx((100 * a.mean(), 100 * b.mean()))
    assert row.size == 200
    assert row.low < row.difference < row.high
    assert (row.test, row.test_p) == ("mcnemar", mcnemar(a, b).p_value)
    assert {name: row.details[name] for name in ("only_a", "only_b")} == {
        "only_a": (a & ~b).sum(),
        "only_b": (b & ~a).sum(),
    }
    cohens_h = 2 * math.asin(math.sqrt(row.b / 100)) - 2 * math.asin(math.sqrt(row.a / 100))
    assert (row.effect_size, row.effect) == ("h", pytest.approx(cohens_h))
    assert row.effect_low < row.effect < row.effect_high


def test_the_interval_and_mcnemar_agree_on_many_items() -> None:
    (row,) = differences([on_items(shares=(0.80, 0.82), size=3000)], DYADIC)
    assert row.p == pytest.approx(row.test_p, abs=0.05)


def test_the_average_and_holm_s_correction_are_over_the_tasks_of_a_kind() -> None:
    tasks = with_average([on_items("MR", shares=(0.7, 0.9)), on_items(shares=(0.7, 0.72), seed=1)])
    rows = {row.task: row for row in differences(tasks, DYADIC)}
    assert list(rows) == ["MR", "TREC", "Avg. transfer"]
    assert rows["Avg. transfer"].b == pytest.approx((rows["MR"].b + rows["TREC"].b) / 2)
    assert rows["MR"].p_holm == pytest.approx(2 * rows["MR"].p)
    told = Comparison("one", "two", tuple(rows.values()), 0.95).sentence
    assert told.startswith("two is better on MR; the average difference of ")


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
