"""Two models on the same items: rows against plain computations, verdicts, and how a comparison is shown."""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from changed_records import with_columns

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.judging.aligned import AlignedScores, aligned_scores, with_average
from stsbench.judging.compare import differences
from stsbench.judging.comparison import corrected, verdict_sentence
from stsbench.judging.verdicts import records as as_tuples
from stsbench.scoring.statistic import Accuracy
from stsbench.statistics.correlations import spearman
from stsbench.statistics.dependence import Sharing, variance
from stsbench.statistics.estimate import mcnemar, williams
from stsbench.statistics.influence import task_terms
from stsbench.statistics.intervals import plain_interval, two_sided_p

Measure = Callable[..., sb.RunRecord]
Data = Callable[..., StsData]
DYADIC = sb.Intervals()


def rows_of(a: sb.RunRecord, b: sb.RunRecord, intervals: sb.Intervals = DYADIC) -> dict[Any, Any]:
    tasks, _ = aligned_scores({"one": a, "two": b}, may_be_undefined=True)
    return {(row.task, row.subset): row for row in as_tuples(differences(tasks, intervals))}


def test_scores_are_those_of_the_records_and_williams_test_is_of_one_correlation(measure: Measure) -> None:
    a, b = measure(), measure(noise=1)
    rows = rows_of(a, b)
    parts = ["", "first", "second"]
    assert list(rows) == [*(("x", part) for part in parts), *(("y", part) for part in parts), ("Avg.", "")]
    for (task, subset), score in b.frame.set_index(["task", "subset"])["score"].items():  # type: ignore[misc]
        assert rows[task, subset].b == pytest.approx(score, abs=1e-9)
    assert rows["x", ""].test == "williams"
    mean = {"protocol": sb.protocol(aggregation="mean"), "intervals": sb.Intervals(None)}
    tests = [row.test for row in rows_of(measure(**mean), measure(noise=1, **mean)).values()]
    assert tests[:3] == ["", "williams", "williams"]


def test_intervals_p_values_and_tests_by_a_plain_computation(measure: Measure) -> None:
    a, b = measure(), measure(noise=1)
    rows = rows_of(a, b)
    row, items = rows["y", ""], a.items[a.items["task"] == "y"]
    codes = (items["subset"] == "second").astype(int)
    terms = [task_terms(items["gold"], record.items.loc[items.index, "cosine"], codes) for record in (a, b)]
    sharing = Sharing.of(items["sentence_a"], items["sentence_b"])
    spread, difference = variance(terms[1] - terms[0], sharing), (row.b - row.a) / 100
    low, high, _ = plain_interval(difference, spread)
    assert (row.low, row.high) == pytest.approx((100 * low, 100 * high))
    assert row.p == pytest.approx(two_sided_p(difference, spread))
    by_clusters = variance(terms[1] - terms[0], sharing, "components").standard_error
    assert row.se_components == pytest.approx(100 * by_clusters)
    assert row.se_dyadic == pytest.approx(100 * spread.standard_error)
    # Cohen's q by the delta method.
    slopes = [1 / (1 - (score / 100) ** 2) for score in (row.a, row.b)]
    of_q = variance(slopes[1] * terms[1] - slopes[0] * terms[0], sharing)
    assert row.effect_high - row.effect == pytest.approx(plain_interval(0.0, of_q).high)
    # Williams' test where the score is one correlation.
    gold, one, two = items["gold"], *(record.items.loc[items.index, "cosine"] for record in (a, b))
    expected = williams(spearman(two, gold), spearman(one, gold), spearman(one, two), len(items), ranks=True)
    assert (row.test_p, row.williams_t) == pytest.approx((expected.p_value, expected.statistic))
    assert math.isnan(rows["Avg.", ""].test_p)
    # Holm's correction over the tasks, and over all subsets.
    first, second = sorted([rows["x", ""], rows["y", ""]], key=lambda row: row.p)
    assert first.p_holm == pytest.approx(min(1, 2 * first.p))
    assert second.p_holm == pytest.approx(max(second.p, first.p_holm))
    lowest = min((row for row in rows.values() if row.subset), key=lambda row: row.p)
    assert lowest.p_holm == pytest.approx(min(1, 4 * lowest.p))
    assert math.isnan(rows["Avg.", ""].p_holm)


def test_the_average_accounts_for_sentences_that_tasks_share(measure: Measure, toy_data: Data) -> None:
    one = toy_data("x", pairs=60)
    both = [one, dataclasses.replace(one, task="again")]
    rows, apart = (rows_of(measure(data), measure(data, noise=1)) for data in (both, None))

    def width(row: Any) -> float:
        return row.high - row.low

    # The same pairs twice say no more than once.
    assert width(rows["Avg.", ""]) > 0.95 * width(rows["x", ""])
    assert width(apart["Avg.", ""]) < 0.95 * width(apart["x", ""])


def test_equal_orders_few_pairs_and_undefined_scores(measure: Measure, toy_data: Data) -> None:
    a, b = measure(), measure(noise=1)
    for same in (a, with_columns(a, cosine=a.items["cosine"] / 2)):
        assert {(row.low, row.high, row.p) for row in rows_of(a, same).values()} == {(0.0, 0.0, 1.0)}
    few = [toy_data("few", pairs=9)]
    rows = rows_of(measure(few), measure(few, noise=1))
    assert (rows["few", "first"].size, math.isnan(rows["few", "first"].p)) == (3, True)
    assert not math.isnan(rows["few", "second"].low)
    constant = b.items["cosine"].where(b.items["task"] != "y", 0.5)
    rows = rows_of(a, with_columns(b, cosine=constant))
    assert math.isnan(rows["y", ""].p)
    assert math.isnan(rows["Avg.", ""].difference)
    assert rows["x", ""].p == rows_of(a, b)["x", ""].p


def on_items(task: str = "TREC", *, shares: tuple[float, float], size: int = 200, seed: int = 0) -> AlignedScores:
    """Returns two classifiers with about these accuracies on items without shared sentences."""
    rng = np.random.default_rng(seed)
    tables = tuple(
        pd.DataFrame({"subset": [""] * size, "correct": (rng.random(size) < share).astype(np.float64)})
        for share in shares
    )
    values, terms = ([getattr(Accuracy(), name)(table) for table in tables] for name in ("value", "terms"))
    sharing = Sharing.of(np.arange(size))
    return AlignedScores("transfer", task, Accuracy(), np.array(values), np.array(terms), sharing, sharing, tables)


def test_accuracies_have_mcnemars_test_and_cohens_h() -> None:
    task = on_items(shares=(0.7, 0.8))
    (row,) = as_tuples(differences([task], DYADIC))
    a, b = (table["correct"] > 0 for table in task.items)
    assert (row.a, row.b, row.size) == pytest.approx((100 * a.mean(), 100 * b.mean(), 200))
    assert (row.test, row.test_p) == ("mcnemar", mcnemar(a, b).p_value)
    assert (row.only_a, row.only_b) == ((a & ~b).sum(), (b & ~a).sum())
    cohens_h = 2 * math.asin(math.sqrt(row.b / 100)) - 2 * math.asin(math.sqrt(row.a / 100))
    assert (row.effect_size, row.effect) == ("h", pytest.approx(cohens_h))
    assert row.effect_low < row.effect < row.effect_high
    (large,) = as_tuples(differences([on_items(shares=(0.80, 0.82), size=3000)], DYADIC))
    assert large.p == pytest.approx(large.test_p, abs=0.05)
    tasks = with_average([on_items("MR", shares=(0.7, 0.9)), on_items(shares=(0.7, 0.72), seed=1)])
    rows = {row.task: row for row in as_tuples(differences(tasks, DYADIC))}
    assert rows["Avg. transfer"].b == pytest.approx((rows["MR"].b + rows["TREC"].b) / 2)
    assert rows["MR"].p_holm == pytest.approx(2 * rows["MR"].p)


def row(task: str, difference: float, p: float) -> dict[str, Any]:
    low, high = difference - 0.3, difference + 0.3
    return {"kind": "sts", "task": task, "difference": difference, "low": low, "high": high, "p": p}


NAN = math.nan


def test_the_verdict() -> None:
    a, b, c = row("x", -1, 0.001), row("y", 1, 0.001), row("z", 1, 0.06)
    for rows, level, sentence in (
        ([a, b, c, row("Avg.", 0.2, 0.2)], 0.95, "B is better on y; A is better on x; average difference 0.20 ["),
        ([c, row("Avg.", 0.1, 0.3)], 0.95, "No significant difference on z: 1.00 [0.70, 1.30], p = 0.060."),
        ([row("x", 1, 0.03), row("y", 1, 0.03), c], 0.95, "No significant difference on any task"),
        ([b, b, row("Avg.", 1.0, 0.0001)], 0.95, "B is better on all tasks; average difference 1.00 [0.70, 1.3"),
        ([row("x", NAN, NAN), b, row("Avg.", NAN, NAN)], 0.95, "B is better on y; x could not be tested; average"),
        ([a], 0.95, "A is better on x: -1.00 [-1.30, -0.70], p = 0.001."),
        ([b], 0.9995, "No significant difference on y: "),
    ):
        assert verdict_sentence(as_tuples(corrected(pd.DataFrame(rows), level)), level).startswith(sentence)


def test_both_kinds_of_task(measure: Measure, tmp_path: Path) -> None:
    tasks = "sample,sample-questions,sample-products"
    a, b = (measure(tasks, noise=noise, seed=1, out=tmp_path / str(noise)) for noise in (0.0, 0.5))
    result = sb.compare(a, b)
    table = result.frame.query("subset == ''")
    assert table["task"].tolist() == ["sample", "sample-questions", "sample-products", "Avg. transfer"]
    assert table["test"].tolist() == ["williams", "mcnemar", "mcnemar", ""]
    for score in a.scores_of("transfer"):
        row, training = table.set_index("task").loc[score.task], score.training
        # The record has the mean over nested folds, the comparison the share of all items.
        is_nested = training is not None and training.design == "nested"
        assert row["a"] == pytest.approx(100 * (score.value or 0), abs=1.0 if is_nested else 0.01)
    assert (len(result.table()), len(result.plot().axes[0].get_yticks())) == (2, 4)
    assert result.sentence.startswith("STS: ")
    assert " Transfer: " in result.sentence
    assert sb.compare(tmp_path / "0.0", tmp_path / "0.5").to_dict() == result.to_dict()
    assert ["subset" in result.table(subsets=shown)[0].frame for shown in (False, True)] == [False, True]
    with pytest.raises(sb.UserError, match="needs intervals"):
        sb.compare(a, b, intervals=sb.Intervals(None))
