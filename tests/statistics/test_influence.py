"""The terms of each statistic against the jackknife, and what they must hold."""

import numpy as np
import pytest

from stsbench.statistics.aggregation import correlate_task
from stsbench.statistics.bootstrap import bootstrap_task
from stsbench.statistics.correlations import average_ranks, pearson, spearman
from stsbench.statistics.influence import mean_terms, pearson_terms, ratio_terms, spearman_terms, task_terms


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


@pytest.mark.parametrize(("terms_of", "correlate"), [(spearman_terms, spearman), (pearson_terms, pearson)])
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


@pytest.mark.parametrize("metric", ["spearman", "pearson"])
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


@pytest.mark.parametrize("aggregation", ["all", "mean", "wmean"])
def test_terms_by_subset_give_the_variance_of_the_bootstrap_within_subsets(aggregation):
    gold, similarity = tied_samples(900)
    codes = np.repeat([0, 1, 2], 300)
    gold = gold + 2 * codes
    terms = task_terms(gold, similarity, codes, "spearman", aggregation)
    replicates = bootstrap_task(gold, similarity, codes, task="t", names=["a", "b", "c"], resamples=2000)
    assert np.sqrt(terms @ terms) == pytest.approx(replicates.aggregates[aggregation].std(), rel=0.06)
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
        spearman_terms(rising, [0, 1, 2, 3, np.nan]),
        ratio_terms(rising, np.zeros(5)),
        task_terms([1, 1, 1, 2], [1, 2, 3, 4], [0, 0, 1, 1], aggregation="mean"),
    ):
        assert np.isnan(terms).all()


def test_kendall_has_no_terms_and_says_what_to_use():
    with pytest.raises(ValueError, match="kendall has no closed-form terms, use the bootstrap"):
        task_terms([1, 2, 3], [1, 2, 3], [0, 0, 0], metric="kendall")
