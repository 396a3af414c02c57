"""The terms of each statistic against the jackknife, and what they must hold."""

import numpy as np
import pytest

from stsbench.statistics.correlations import average_ranks, correlate_task, kendall, pearson, spearman
from stsbench.statistics.influence import (
    concordance_counts,
    kendall_terms,
    mean_terms,
    pearson_terms,
    ratio_terms,
    spearman_terms,
    task_terms,
)


def tied_samples(size=300, seed=0):
    """Return two related samples: the first with few distinct values, as gold scores have."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=size)
    y = x + rng.normal(size=size)
    return np.round(x), np.round(y, 1)


def jackknife(statistic, size):
    """Return (size,) terms by leaving out each pair: (n - 1) / n of the mean less the value without it."""
    without = np.array([statistic(np.delete(np.arange(size), pair)) for pair in range(size)])
    return (without.mean() - without) * (size - 1) / size


@pytest.mark.parametrize(
    ("terms_of", "correlate"), [(spearman_terms, spearman), (pearson_terms, pearson), (kendall_terms, kendall)]
)
def test_terms_of_tied_samples_are_those_of_the_jackknife(terms_of, correlate):
    x, y = tied_samples()
    terms = terms_of(x, y)
    expected = jackknife(lambda kept: correlate(x[kept], y[kept]), len(x))
    assert np.corrcoef(terms, expected)[0, 1] > 0.9999
    assert terms @ terms == pytest.approx(expected @ expected, rel=0.05)
    assert terms.sum() == pytest.approx(0, abs=1e-12)


def test_terms_of_spearman_take_the_ranks_of_all_others_into_account():
    # Pearson's terms of the ranks are the common mistake: they leave out that a pair moves other pairs' ranks.
    x, y = tied_samples()
    of_ranks = pearson_terms(average_ranks(x), average_ranks(y))
    assert np.corrcoef(of_ranks, spearman_terms(x, y))[0, 1] < 0.999


def test_terms_do_not_change_with_scale_nor_spearmans_with_any_rising_function():
    x, y = tied_samples()
    assert pearson_terms(3 * x - 1, y * 1e6) == pytest.approx(pearson_terms(x, y))
    assert spearman_terms(x, np.exp(y)) == pytest.approx(spearman_terms(x, y))
    assert spearman_terms(x, -y) == pytest.approx(-spearman_terms(x, y))


@pytest.mark.parametrize("metric", ["spearman", "pearson", "kendall"])
@pytest.mark.parametrize("aggregation", ["all", "mean", "wmean"])
def test_terms_of_every_aggregation_are_those_of_the_jackknife(metric, aggregation):
    gold, similarity = tied_samples(240)
    codes = np.repeat([0, 1, 2], [40, 80, 120])
    gold = gold + codes
    terms = task_terms(gold, similarity, codes, metric, aggregation, by_subset=False)

    def score(kept):
        return correlate_task(gold[kept], similarity[kept], codes[kept], metric).aggregates[aggregation]

    expected = jackknife(score, len(gold))
    for subset in range(3):
        # Leaving out a pair shifts the weights of `wmean` too: the same for all pairs of a subset.
        mine, theirs = terms[codes == subset], expected[codes == subset]
        assert np.corrcoef(mine, theirs)[0, 1] > 0.999
        assert mine.std() == pytest.approx(theirs.std(), rel=0.08)


@pytest.mark.parametrize("metric", ["spearman", "kendall"])
@pytest.mark.parametrize("aggregation", ["all", "mean", "wmean"])
def test_terms_by_subset_give_the_variance_over_new_pairs_within_subsets(aggregation, metric):
    gold, similarity = tied_samples(900)
    codes = np.repeat([0, 1, 2], 300)
    gold = gold + 2 * codes
    terms = task_terms(gold, similarity, codes, metric, aggregation)
    rng = np.random.default_rng(1)
    values = []
    for _ in range(500):
        drawn = np.concatenate([rng.choice(np.flatnonzero(codes == subset), 300) for subset in range(3)])
        scores = correlate_task(gold[drawn], similarity[drawn], codes[drawn], metric)
        values.append(scores.aggregates[aggregation])
    assert np.sqrt(terms @ terms) == pytest.approx(np.std(values), rel=0.1)
    for subset in range(3):
        assert terms[codes == subset].sum() == pytest.approx(0, abs=1e-12)


def test_by_subset_changes_all_alone():
    gold, similarity = tied_samples(200)
    codes = np.repeat([0, 1], 100)
    gold = gold + 2 * codes
    for aggregation, changes in (("all", True), ("mean", False), ("wmean", False)):
        fixed = task_terms(gold, similarity, codes, aggregation=aggregation)
        drawn = task_terms(gold, similarity, codes, aggregation=aggregation, by_subset=False)
        assert np.allclose(fixed, drawn) != changes


def test_terms_of_a_mean_and_of_a_ratio_are_those_of_the_jackknife():
    rng = np.random.default_rng(3)
    right = (rng.random(200) < 0.8).astype(float)
    assert mean_terms(right) == pytest.approx(jackknife(lambda kept: right[kept].mean(), 200))

    predicted, true = rng.random(200) < 0.4, rng.random(200) < 0.5
    above, below = 2.0 * (predicted & true), predicted.astype(float) + true
    terms = ratio_terms(above, below)
    expected = jackknife(lambda kept: above[kept].sum() / below[kept].sum(), 200)
    assert np.corrcoef(terms, expected)[0, 1] > 0.9999
    assert terms @ terms == pytest.approx(expected @ expected, rel=0.02)


def test_terms_of_what_is_undefined_are_nan():
    constant = np.ones(5)
    rising = np.arange(5.0)
    for terms in (
        spearman_terms(constant, rising),
        pearson_terms(rising, constant),
        kendall_terms(rising, constant),
        spearman_terms(rising, [0, 1, 2, 3, np.nan]),
        ratio_terms(rising, np.zeros(5)),
        task_terms([1, 1, 1, 2], [1, 2, 3, 4], [0, 0, 1, 1], aggregation="mean"),
    ):
        assert np.isnan(terms).all()


@pytest.mark.parametrize("decimals", [0, 1, 12])
@pytest.mark.parametrize("size", [2, 3, 8, 9, 64, 257])
def test_concordance_is_that_of_every_two_pairs(size, decimals):
    x, y = np.round(np.random.default_rng(size).normal(size=(2, size)), decimals)
    of_x, of_y = (np.sign(side[:, np.newaxis] - side) for side in (x, y))
    counts = concordance_counts(x, y)
    expected = (of_x * of_y).sum(axis=1), (of_x != 0).sum(axis=1), (of_y != 0).sum(axis=1)
    for mine, theirs in zip(counts, expected, strict=True):
        assert mine.tolist() == theirs.tolist()
    assert sum(counts[0]) / np.sqrt(sum(counts[1]) * sum(counts[2])) == pytest.approx(kendall(x, y), nan_ok=True)


def kendall_without_each(x, y):
    """Return Kendall's correlation without each pair, by the sums that are exactly linear in what a pair has."""
    concordance, untied_x, untied_y = concordance_counts(x, y)
    left_x, left_y = untied_x.sum() - 2 * untied_x, untied_y.sum() - 2 * untied_y
    return (concordance.sum() - 2 * concordance) / np.sqrt(left_x * left_y)


def test_kendall_without_a_pair_is_exact_by_that_pairs_counts():
    x, y = tied_samples(60)
    expected = [kendall(np.delete(x, pair), np.delete(y, pair)) for pair in range(60)]
    assert kendall_without_each(x, y) == pytest.approx(np.array(expected), abs=1e-12)


def test_kendalls_terms_without_ties_are_those_of_the_jackknife_but_for_a_factor():
    # Of a U-statistic of two pairs at a time, the leave-one-out values are n / (n - 2) as wide.
    x, noise = np.random.default_rng(5).normal(size=(2, 200))
    y = x + noise
    expected = jackknife(lambda kept: kendall(x[kept], y[kept]), 200)
    assert kendall_terms(x, y) == pytest.approx(expected * 198 / 199, abs=1e-12)


@pytest.mark.parametrize("ties", [False, True])
def test_kendalls_standard_error_is_the_jackknifes_to_a_millionth(ties):
    size = 10_000
    x, y = np.random.default_rng(6).normal(size=(2, size))
    x, y = (np.round(2 * x), np.round(x + y, 1)) if ties else (x, x + y)
    without = kendall_without_each(x, y)
    jackknifed = np.sqrt((size - 1) / size * ((without - without.mean()) ** 2).sum())
    terms = kendall_terms(x, y)
    assert np.sqrt(terms @ terms) == pytest.approx(jackknifed, abs=1e-6)
    assert terms == pytest.approx((without.mean() - without) * (size - 1) / size, abs=1e-7)


def test_kendalls_terms_do_not_change_with_any_rising_function_and_turn_with_the_sign():
    x, y = tied_samples()
    assert kendall_terms(x, np.exp(y)).tolist() == kendall_terms(x, y).tolist()
    assert kendall_terms(x, -y) == pytest.approx(-kendall_terms(x, y))
