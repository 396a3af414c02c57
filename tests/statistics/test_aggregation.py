import numpy as np
import pytest
import scipy.stats

from stsbench.statistics.correlations import aggregate, correlate_task


def task():
    rng = np.random.default_rng(7)
    subsets = np.repeat([0, 1, 2], [20, 50, 30])
    gold = np.round(rng.uniform(0, 5, 100))
    similarity = gold + rng.normal(scale=2.0, size=100) + subsets
    return gold, similarity, subsets


def test_three_aggregations_by_their_definitions():
    gold, similarity, subsets = task()
    each = [scipy.stats.spearmanr(gold[subsets == k], similarity[subsets == k]).statistic for k in range(3)]
    scores = correlate_task(gold, similarity, subsets)
    assert scores.subsets == pytest.approx(each, abs=1e-12)
    assert scores.aggregates == pytest.approx(
        {
            "all": scipy.stats.spearmanr(gold, similarity).statistic,
            "mean": sum(each) / 3,
            "wmean": (20 * each[0] + 50 * each[1] + 30 * each[2]) / 100,
        },
        abs=1e-12,
    )


def test_subsets_need_not_lie_together():
    gold, similarity, subsets = task()
    order = np.random.default_rng(0).permutation(100)
    shuffled = correlate_task(gold[order], similarity[order], subsets[order], "pearson")
    together = correlate_task(gold, similarity, subsets, "pearson")
    assert shuffled.subsets == pytest.approx(together.subsets, abs=1e-12)
    assert shuffled.aggregates == pytest.approx(together.aggregates, abs=1e-12)


def test_one_subset_has_the_same_value_three_ways():
    gold, similarity, _ = task()
    scores = correlate_task(gold, similarity, np.zeros(100, dtype=int))
    assert len({*scores.aggregates.values(), *scores.subsets}) == 1


def test_an_undefined_subset_leaves_only_all_defined():
    scores = correlate_task([1, 2, 3, 4, 4], [1, 2, 3, 4, 5], [0, 0, 0, 1, 1])
    assert np.isnan(scores.subsets).tolist() == [False, True]
    assert np.isnan([scores.aggregates[name] for name in ("all", "mean", "wmean")]).tolist() == [
        False,
        True,
        True,
    ]


def test_aggregate_keeps_the_dimension_of_resamples():
    values = aggregate(np.array([[0.2, 0.4], [0.6, 0.8]]), np.array([0.3, 0.7]), sizes=[1, 3])
    assert values["all"].tolist() == [0.3, 0.7]
    assert values["mean"] == pytest.approx([0.3, 0.7])
    assert values["wmean"] == pytest.approx([0.35, 0.75])


@pytest.mark.parametrize(
    ("subsets", "message"),
    [([0, 0], "one subset code for each of 3"), ([0, 0, 2], "1 has no pair"), ([0, -1, 1], "negative")],
)
def test_wrong_subset_codes_are_refused(subsets, message):
    with pytest.raises(ValueError, match=message):
        correlate_task([1, 2, 3], [1, 2, 3], subsets)


def test_a_task_without_pairs_is_refused():
    with pytest.raises(ValueError, match="without pairs"):
        correlate_task([], [], [])
