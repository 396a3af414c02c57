import math
import subprocess
import sys

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from stsbench.statistics import bootstrap
from stsbench.statistics.aggregation import aggregate
from stsbench.statistics.bootstrap import (
    bootstrap_correlation,
    bootstrap_task,
    generator,
    percentile_interval,
    percentile_p_value,
    resample_counts,
)
from stsbench.statistics.counted import COUNTED

SCIPY = {
    "spearman": scipy.stats.spearmanr,
    "pearson": scipy.stats.pearsonr,
    "kendall": scipy.stats.kendalltau,
}


def naive(metric, x, y, counts):
    """Write each resample out and ask SciPy; NaN where a side is constant."""
    values = []
    for column in counts.T:
        pairs = np.repeat(np.arange(len(x)), column)
        constant = np.ptp(x[pairs]) == 0 or np.ptp(y[pairs]) == 0
        values.append(math.nan if constant else SCIPY[metric](x[pairs], y[pairs]).statistic)
    return np.array(values)


def sample(pairs, seed=0):
    """Gold with many ties and similarity with few, as in STS."""
    rng = np.random.default_rng(seed)
    gold = np.round(rng.uniform(0, 5, pairs) * 5) / 5
    similarity = np.round(gold + rng.normal(scale=1.5, size=pairs), 2)
    return gold, similarity


@pytest.mark.parametrize("metric", COUNTED)
def test_replicates_equal_resampling_written_out(metric):
    gold, similarity = sample(120)
    replicates = bootstrap_correlation(gold, similarity, metric, rng=generator(1, "a"), resamples=40)
    counts = resample_counts(120, 40, generator(1, "a"))
    np.testing.assert_allclose(replicates, naive(metric, gold, similarity, counts), rtol=0, atol=1e-12)


@pytest.mark.parametrize("metric", COUNTED)
@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 4), st.integers(-8, 8)), min_size=2, max_size=12),
    seed=st.integers(0, 9),
)
def test_replicates_of_small_samples_equal_resampling_and_are_nan_where_constant(metric, rows, seed):
    x, y = np.array(rows, dtype=np.float64).T / 3
    counts = resample_counts(len(x), 20, np.random.default_rng(seed))
    np.testing.assert_allclose(COUNTED[metric](x, y)(counts), naive(metric, x, y, counts), rtol=0, atol=1e-12)


@pytest.mark.parametrize("metric", COUNTED)
def test_a_value_that_is_not_finite_makes_every_replicate_nan(metric):
    for bad in (math.nan, math.inf):
        assert np.isnan(bootstrap_correlation([1, 2, bad], [1, 2, 3], metric, rng=generator(0), resamples=5)).all()


def two_subsets():
    gold, similarity = sample(300)
    subsets = np.random.default_rng(5).permutation(np.repeat([0, 1], [90, 210]))
    return gold, similarity, subsets


@pytest.mark.parametrize("metric", COUNTED)
def test_one_set_of_draws_serves_the_subsets_and_the_aggregates(metric):
    gold, similarity, subsets = two_subsets()
    replicates = bootstrap_task(
        gold, similarity, subsets, metric, task="T", names=["a", "b"], resamples=15, seed=4
    )
    first, second = (
        resample_counts(90, 15, generator(4, "T", "a")),
        resample_counts(210, 15, generator(4, "T", "b")),
    )
    order = np.argsort(subsets, kind="stable")
    gold, similarity = gold[order], similarity[order]
    values = np.stack(
        [naive(metric, gold[:90], similarity[:90], first), naive(metric, gold[90:], similarity[90:], second)],
        axis=1,
    )
    overall = naive(metric, gold, similarity, np.concatenate([first, second]))
    np.testing.assert_allclose(replicates.subsets, values, rtol=0, atol=1e-12)
    expected = aggregate(values, overall, [90, 210])
    assert list(replicates.aggregates) == list(expected)
    for name, replicate in replicates.aggregates.items():
        np.testing.assert_allclose(replicate, expected[name], rtol=0, atol=1e-12)


def test_a_task_of_one_subset_is_that_subset():
    gold, similarity = sample(80)
    replicates = bootstrap_task(gold, similarity, np.zeros(80, dtype=int), task="T", names=["test"], resamples=10)
    for replicate in replicates.aggregates.values():
        assert replicate.tolist() == replicates.subsets[:, 0].tolist()


def test_blocks_do_not_change_the_draws(monkeypatch):
    gold, similarity, subsets = two_subsets()
    whole = bootstrap_task(gold, similarity, subsets, task="T", names=["a", "b"], resamples=50)
    monkeypatch.setattr(bootstrap, "_BLOCK_CELLS", 7 * 300)
    blocked = bootstrap_task(gold, similarity, subsets, task="T", names=["a", "b"], resamples=50)
    assert blocked.subsets.tolist() == whole.subsets.tolist()
    assert blocked.aggregates["all"].tolist() == whole.aggregates["all"].tolist()


def test_a_subset_has_its_own_draws_whatever_else_is_scored():
    gold, similarity, subsets = two_subsets()
    together = bootstrap_task(gold, similarity, subsets, task="T", names=["a", "b"], resamples=20)
    exchanged = bootstrap_task(gold, similarity, 1 - subsets, task="T", names=["b", "a"], resamples=20)
    assert exchanged.subsets[:, ::-1].tolist() == together.subsets.tolist()
    assert exchanged.aggregates["all"].tolist() == together.aggregates["all"].tolist()


def test_two_models_on_one_task_get_the_same_draws():
    gold, similarity, subsets = two_subsets()
    first = bootstrap_task(gold, similarity, subsets, task="T", names=["a", "b"], resamples=20)
    second = bootstrap_task(gold, np.exp(similarity), subsets, task="T", names=["a", "b"], resamples=20)
    assert (second.aggregates["all"] - first.aggregates["all"]).tolist() == [0.0] * 20


def test_seed_task_and_subset_each_change_the_draws():
    draws = [generator(*key).integers(2**32) for key in [(0, "T", "a"), (1, "T", "a"), (0, "U", "a"), (0, "Ta")]]
    assert len(set(draws)) == 4


def test_draws_are_the_same_in_another_process():
    code = (
        "from stsbench.statistics.bootstrap import generator\n"
        "print(generator(12345, 'STS16', 'postediting').integers(10**9))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(printed) == generator(12345, "STS16", "postediting").integers(10**9)
    # A fixed value: intervals in stored records must not change with a release.
    assert int(printed) == 173099328


def test_names_must_match_the_subsets():
    with pytest.raises(ValueError, match="each of 2 subsets, got 1"):
        bootstrap_task([1, 2, 3], [1, 2, 3], [0, 1, 1], task="T", names=["a"])


def test_interval_is_of_the_asked_level():
    replicates = np.random.default_rng(0).permutation(np.linspace(0, 1, 1001))
    assert percentile_interval(replicates) == pytest.approx((0.025, 0.975))
    assert percentile_interval(replicates, level=0.5) == pytest.approx((0.25, 0.75))


def test_few_undefined_replicates_are_left_out_and_many_leave_no_interval():
    replicates = np.linspace(0, 1, 1000)
    replicates[:10] = math.nan
    assert percentile_interval(replicates) == pytest.approx(tuple(np.quantile(replicates[10:], [0.025, 0.975])))
    replicates[10] = math.nan
    assert np.isnan(percentile_interval(replicates)).all()


@pytest.mark.parametrize("level", [0, 1, 95])
def test_a_level_that_is_no_share_is_refused(level):
    with pytest.raises(ValueError, match="between 0 and 1"):
        percentile_interval([0.1, 0.2], level=level)


def test_no_replicates_give_no_interval_but_an_error():
    with pytest.raises(ValueError, match="at least one"):
        percentile_interval([])


@settings(deadline=None)
@given(
    values=st.lists(st.integers(-20, 20).map(lambda number: number / 7), min_size=60, max_size=90),
    shift=st.floats(-3, 3),
    level=st.floats(0.02, 0.95),
)
def test_the_p_value_is_below_a_level_exactly_where_that_interval_leaves_out_zero(values, shift, level):
    replicates = np.array(values) + shift
    low, high = percentile_interval(replicates, level)
    p = percentile_p_value(replicates)
    if abs(p - (1 - level)) > 1e-9 and min(abs(low), abs(high)) > 1e-9:
        assert (p < 1 - level) == (low > 0 or high < 0)


def test_the_p_value_does_not_depend_on_the_sign_and_is_never_zero():
    replicates = np.random.default_rng(0).normal(0.5, 1, 999)
    assert percentile_p_value(replicates) == pytest.approx(percentile_p_value(-replicates))
    assert percentile_p_value(replicates + 100) == 2 / 1000
    assert percentile_p_value(np.zeros(10)) == 1.0


def test_undefined_replicates_leave_no_p_value_where_they_leave_no_interval():
    replicates = np.linspace(0.5, 1, 1000)
    replicates[:10] = math.nan
    assert percentile_p_value(replicates) == 2 / 991
    replicates[10] = math.nan
    assert math.isnan(percentile_p_value(replicates))
    with pytest.raises(ValueError, match="at least one"):
        percentile_p_value([])


def coverage(metric, truth, pairs, samples, resamples):
    """Share of samples of a bivariate normal (correlation 0.8) whose 95 % interval holds the truth."""
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(samples):
        x, noise = rng.normal(size=(2, pairs))
        replicates = bootstrap_correlation(x, 0.8 * x + 0.6 * noise, metric, rng=rng, resamples=resamples)
        low, high = percentile_interval(replicates)
        covered += low <= truth <= high
    return covered / samples


TRUTH = {
    "spearman": 6 / math.pi * math.asin(0.4),
    "pearson": 0.8,
    "kendall": 2 / math.pi * math.asin(0.8),
}
"""The population values for a bivariate normal with correlation 0.8 (Kendall and Gibbons 1990)."""


@pytest.mark.parametrize("metric", ["spearman", "pearson"])
def test_interval_covers_the_truth_about_as_often_as_it_says(metric):
    assert 0.90 <= coverage(metric, TRUTH[metric], pairs=200, samples=200, resamples=300) <= 0.99


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "pairs", "samples"), [("spearman", 750, 300), ("pearson", 750, 300), ("kendall", 200, 15)]
)
def test_interval_covers_the_truth_in_a_long_simulation(metric, pairs, samples):
    tolerance = 3 * math.sqrt(0.95 * 0.05 / samples)
    assert coverage(metric, TRUTH[metric], pairs, samples, 500) == pytest.approx(0.95, abs=tolerance)
