"""A task's part of the grid: the scores that the ordinary protocol gives, all at once."""

import numpy as np
import pandas as pd
import pytest

from stsbench.diagnosis.encoding import Cut
from stsbench.diagnosis.scores import Scorer, _distinct_pairs
from stsbench.statistics.correlations import correlate_task


def pairs(n: int = 40, *, subsets: int = 1, splits: tuple[str, ...] = ("test",)) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "gold": rng.integers(0, 11, n) / 2,
            "subset": [f"subset{number % subsets}" for number in range(n)],
            "split": [splits[number % len(splits)] for number in range(n)],
        }
    )


def test_every_aggregation_and_metric_is_that_of_the_protocol() -> None:
    table = pairs(subsets=3)
    similarities = np.random.default_rng(4).normal(size=(5, len(table)))
    codes = [int(name[-1]) for name in table["subset"]]
    found = Scorer.of(table, ["test"])(similarities)
    assert found.shape == (5, 2, 3, 1)
    for m, metric in enumerate(("spearman", "pearson")):
        for k, row in enumerate(similarities):
            expected = correlate_task(table["gold"], row, codes, metric).aggregates
            assert found[k, m, :, 0] == pytest.approx([100 * expected[a] for a in ("all", "mean", "wmean")])


def test_splits_are_scored_each_and_all_together() -> None:
    table = pairs(splits=("train", "dev", "test"))
    similarities = np.random.default_rng(4).normal(size=(2, len(table)))
    found = Scorer.of(table, ["test", "dev", "all"])(similarities)
    assert found.shape == (2, 2, 1, 3)
    for s, split in enumerate(("test", "dev", "all")):
        rows = ((table["split"] == split) | (split == "all")).to_numpy()
        expected = correlate_task(table["gold"][rows], similarities[0, rows], [0] * int(rows.sum()))
        assert found[0, 0, 0, s] == pytest.approx(100 * expected.aggregates["all"])


def test_a_pair_that_stands_in_several_tasks_and_cuts_is_compared_once() -> None:
    # Two tasks: of pairs (a, b), (c, d), and of (a, b) again. Cut short, sentence d is another, and b is not.
    whole = Cut(256, np.array([0, 2, 1, 3, 0, 1]), np.zeros(6, dtype=bool))
    short = Cut(2, np.array([0, 2, 9, 4, 0, 9]), np.array([0, 0, 0, 1, 0, 0], dtype=bool))
    rows, columns = _distinct_pairs([whole, short], [slice(0, 4), slice(4, 6)])
    assert rows.T.tolist() == [[0, 1], [2, 3], [2, 4]]
    assert [task.tolist() for task in columns] == [[[0, 1], [0, 2]], [[0], [0]]]
