"""Two models on labelled items."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import stsbench as sb
from stsbench.data.sentence_ids import FOLDED, SENTENCES
from stsbench.judging.comparison import Comparison, Difference
from stsbench.judging.differences import compare_items
from stsbench.statistics.significance import mcnemar

DYADIC = sb.Intervals()


def items(
    task: str = "TREC", *, share: float, size: int = 200, seed: int = 0, split: str = "test"
) -> pd.DataFrame:
    """Return predictions of which about this share is right."""
    rng = np.random.default_rng(seed)
    labels = np.random.default_rng(9).integers(0, 3, size)
    correct = rng.random(size) < share
    # Items of one sentence each, all different.
    sentences = dict.fromkeys((*SENTENCES, *FOLDED), np.arange(size, dtype=np.uint64))
    return pd.DataFrame(
        {
            "task": task,
            "split": split,
            "item_id": [str(number) for number in range(size)],
            "label": labels,
            "prediction": np.where(correct, labels, (labels + 1) % 3),
            "correct": correct,
            **sentences,
        }
    )


def rows_of(a: pd.DataFrame, b: pd.DataFrame) -> dict[str, Difference]:
    tasks = {task: (a[a["task"] == task], b[b["task"] == task]) for task in a["task"].unique()}
    return {row.task: row for row in compare_items(tasks, intervals=DYADIC)}


def test_a_row_has_the_accuracies_their_difference_and_mcnemar_s_test() -> None:
    a, b = items(share=0.7), items(share=0.8, seed=1)
    row = rows_of(a, b)["TREC"]
    assert (row.a, row.b) == pytest.approx((100 * a["correct"].mean(), 100 * b["correct"].mean()))
    assert row.size == 200
    assert row.low < row.difference < row.high
    assert (row.test, row.test_p) == ("mcnemar", mcnemar(a["correct"], b["correct"]).p_value)
    assert {name: row.details[name] for name in ("only_a", "only_b")} == {
        "only_a": (a["correct"] & ~b["correct"]).sum(),
        "only_b": (b["correct"] & ~a["correct"]).sum(),
    }
    cohens_h = 2 * math.asin(math.sqrt(row.b / 100)) - 2 * math.asin(math.sqrt(row.a / 100))
    assert row.effect == pytest.approx(cohens_h)
    assert row.effect_low < row.effect < row.effect_high


def test_the_interval_and_mcnemar_agree_on_many_items() -> None:
    row = rows_of(items(share=0.80, size=3000), items(share=0.82, size=3000, seed=1))["TREC"]
    assert row.p == pytest.approx(row.test_p, abs=0.05)


def test_the_average_and_holm_s_correction_are_over_the_tasks() -> None:
    a = pd.concat([items("MR", share=0.7), items(share=0.7)])
    b = pd.concat([items("MR", share=0.9, seed=1), items(share=0.72, seed=1)])
    rows = rows_of(a, b)
    assert list(rows) == ["MR", "TREC", "Avg. transfer"]
    assert rows["Avg. transfer"].b == pytest.approx((rows["MR"].b + rows["TREC"].b) / 2)
    assert rows["MR"].p_holm == pytest.approx(2 * rows["MR"].p)
    told = Comparison("one", "two", tuple(rows.values()), 0.95, 400, 0).sentence
    assert told.startswith("two is better on MR; the average difference of ")


def test_only_the_test_set_counts_where_there_is_one() -> None:
    a, b = items(share=0.7), items(share=0.8, seed=1)
    more = [pd.concat([table, items(share=0.1, seed=2, split="train")]) for table in (a, b)]
    assert rows_of(*more)["TREC"] == rows_of(a, b)["TREC"]


def test_the_order_of_the_items_does_not_matter() -> None:
    a, b = items(share=0.7), items(share=0.8, seed=1)
    assert rows_of(a, b.sample(frac=1, random_state=0)) == rows_of(a, b)


def test_other_items_or_labels_do_not_compare() -> None:
    a: Any = items(share=0.7)
    with pytest.raises(sb.UserError, match="compare on TREC: item_id differs"):
        rows_of(a, a.iloc[:-1])
    with pytest.raises(sb.UserError, match="compare on TREC: label differs"):
        rows_of(a, a.assign(label=a["label"] + 1))
