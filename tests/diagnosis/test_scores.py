"""A task's part of the grid: the scores that the ordinary protocol gives, all at once."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from stsbench.data.tables import StsData
from stsbench.diagnosis.data import TaskPairs
from stsbench.diagnosis.diagnose import Scorer
from stsbench.statistics.correlations import correlate_task
from stsbench.statistics.neighbours import SIMILARITIES, pair_similarities

SCORER = Scorer(SIMILARITIES, (False, True), ("pearson", "spearman"), ("wmean", "all", "mean"))


def task_of(data: StsData, *, subsets: int, splits: tuple[str, ...]) -> TaskPairs:
    rng, n = np.random.default_rng(3), 40
    columns = {
        "gold": rng.integers(0, 11, n) / 2,
        "subset": [f"subset{number % subsets}" for number in range(n)],
        "split": [splits[number % len(splits)] for number in range(n)],
    }
    pairs = pd.DataFrame(columns)
    rows = {"test": np.flatnonzero(pairs["split"] == "test"), "all": np.arange(n)}
    return TaskPairs(replace(data, pairs=pairs), None, dict([*rows.items()][: len(splits)]))


def test_every_aggregation_metric_and_split_is_that_of_the_protocol(toy_data: Callable[..., StsData]) -> None:
    compared = np.random.default_rng(4).normal(size=(4, 2, 40))
    compared[0, 1] = np.nan
    task = task_of(toy_data("toy"), subsets=3, splits=("test",))
    found = SCORER.score(task, compared)
    assert found.shape == (4, 2, 2, 3, 1)
    assert np.isnan(found[0, 1]).all()
    codes = [int(name[-1]) for name in task.data.pairs["subset"]]
    for number, metric in enumerate(("pearson", "spearman")):
        expected = correlate_task(task.data.pairs["gold"], compared[2, 1], codes, metric)
        assert found[2, 1, number, :, 0] == pytest.approx([100 * expected[a] for a in ("wmean", "all", "mean")])
    task = task_of(toy_data("toy"), subsets=1, splits=("train", "dev", "test"))
    found, table = SCORER.score(task, compared), task.data.pairs
    assert found.shape == (4, 2, 2, 1, 2)
    for place, rows in enumerate([(table["split"] == "test").to_numpy(), np.ones(40, dtype=bool)]):
        expected = correlate_task(table["gold"][rows], compared[1, 0, rows], [0] * int(rows.sum()))
        assert found[1, 0, 1, 0, place] == pytest.approx(100 * expected["all"])


def test_scaling_is_compared_where_it_matters() -> None:
    vectors = np.random.default_rng(1).normal(size=(6, 4)).astype(np.float32)
    compared = SCORER.compare(vectors, np.array([[0, 1, 2], [3, 4, 5]]))
    expected = pair_similarities(vectors, [0, 1, 2], [3, 4, 5], SIMILARITIES)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = pair_similarities(vectors / lengths, [0, 1, 2], [3, 4, 5], SIMILARITIES)
    for number, kind in enumerate(SIMILARITIES):
        assert compared[number, 0] == pytest.approx(expected[kind])
        if kind in {"cosine", "dot"}:
            assert np.isnan(compared[number, 1]).all()
        else:
            assert compared[number, 1] == pytest.approx(unit[kind], rel=1e-5)
