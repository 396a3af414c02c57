"""Terms of each statistic against the jackknife, and the arithmetic of `Linear`."""

import numpy as np
import pytest

from stsbench.statistics.correlations import CORRELATIONS, correlate_task, kendall
from stsbench.statistics.influence import (
    TERMS,
    Linear,
    concordance_counts,
    kendall_terms,
    mean_terms,
    pearson_terms,
    ratio_terms,
    spearman_terms,
    task_terms,
)


def tied_samples(size=300, seed=0):
    """Returns two related samples, the first with few distinct values like gold scores."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=size)
    y = x + rng.normal(size=size)
    return np.round(x), np.round(y, 1)


def jackknife(statistic, size):
    """Returns (size,) leave-one-out terms: (n - 1) / n of the mean minus the value without each pair."""
    without = np.array([statistic(np.delete(np.arange(size), pair)) for pair in range(size)])
    return (without.mean() - without) * (size - 1) / size


@pytest.mark.parametrize("metric", TERMS)
def test_terms_of_tied_samples_are_those_of_the_jackknife(metric):
    x, y = tied_samples()
    terms = TERMS[metric](x, y)
    expected = jackknife(lambda kept: CORRELATIONS[metric](x[kept], y[kept]), len(x))
    assert np.corrcoef(terms, expected)[0, 1] > 0.9999
    assert terms @ terms == pytest.approx(expected @ expected, rel=0.05)
    assert terms.sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("metric", TERMS)
@pytest.mark.parametrize("aggregation", ["all", "mean", "wmean"])
def test_terms_of_every_aggregation_are_those_of_the_jackknife(metric, aggregation):
    gold, similarity = tied_samples(240)
    codes = np.repeat([0, 1, 2], [40, 80, 120])
    gold = gold + codes
    terms = task_terms(gold, similarity, codes, metric, aggregation, by_subset=False)

    def score(kept):
        return correlate_task(gold[kept], similarity[kept], codes[kept], metric)[aggregation]

    expected = jackknife(score, len(gold))
    for subset in range(3):
        # Leaving out a pair also shifts the weights of `wmean`, equally for all pairs of a subset.
        ours, theirs = terms[codes == subset], expected[codes == subset]
        assert np.corrcoef(ours, theirs)[0, 1] > 0.999
        assert ours.std() == pytest.approx(theirs.std(), rel=0.08)


@pytest.mark.parametrize("metric", ["spearman", "kendall"])
@pytest.mark.parametrize("aggregation", ["all", "mean", "wmean"])
def test_terms_by_subset_give_the_variance_for_new_pairs_of_the_same_subsets(aggregation, metric):
    gold, similarity = tied_samples(900)
    codes = np.repeat([0, 1, 2], 300)
    gold = gold + 2 * codes
    terms = task_terms(gold, similarity, codes, metric, aggregation)
    rng = np.random.default_rng(1)
    values = []
    for _ in range(500):
        drawn = np.concatenate([rng.choice(np.flatnonzero(codes == subset), 300) for subset in range(3)])
        scores = correlate_task(gold[drawn], similarity[drawn], codes[drawn], metric)
        values.append(scores[aggregation])
    assert np.sqrt(terms @ terms) == pytest.approx(np.std(values), rel=0.1)
    assert [terms[codes == subset].sum() for subset in range(3)] == pytest.approx([0, 0, 0], abs=1e-12)
    of_drawn_subsets = task_terms(gold, similarity, codes, metric, aggregation, by_subset=False)
    assert np.allclose(terms, of_drawn_subsets) == (aggregation != "all")


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


def test_terms_of_an_undefined_statistic_are_nan():
    constant, rising = np.ones(5), np.arange(5.0)
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
@pytest.mark.parametrize("at_once", [7, 2_000_000])
def test_concordance_is_counted_over_all_pairs(at_once, decimals, monkeypatch):
    monkeypatch.setattr("stsbench.statistics.influence._COMPARED_AT_ONCE", at_once)
    for size in (2, 3, 64):
        x, y = np.round(np.random.default_rng(size).normal(size=(2, size)), decimals)
        of_x, of_y = (np.sign(side[:, np.newaxis] - side) for side in (x, y))
        expected = (of_x * of_y).sum(axis=1), (of_x != 0).sum(axis=1), (of_y != 0).sum(axis=1)
        counts = concordance_counts(x, y)
        assert [count.tolist() for count in counts] == [count.tolist() for count in expected]
        tau = counts[0].sum() / np.sqrt(counts[1].sum() * counts[2].sum())
        assert tau == pytest.approx(kendall(x, y), nan_ok=True)


def sums(seed, size=400):
    rng = np.random.default_rng(seed)
    rows = {"x": rng.normal(5, 1, size), "y": rng.normal(3, 1, size), "n": np.ones(size)}
    rows |= {"xx": rows["x"] ** 2, "xy": rows["x"] * rows["y"]}
    return {name: Linear(float(row.sum()), {"task": row}) for name, row in rows.items()}, rows


def test_a_mean_a_ratio_and_a_slope_have_the_terms_of_their_formulas():
    of, rows = sums(0)
    assert (of["x"] / of["n"]).terms["task"] == pytest.approx(mean_terms(rows["x"]))
    assert (of["x"] / of["y"]).terms["task"] == pytest.approx(ratio_terms(rows["x"], rows["y"]))
    slope = (of["xy"] - of["x"] * of["y"] / of["n"]) / (of["xx"] - of["x"] * of["x"] / of["n"])
    expected = jackknife(lambda kept: np.polyfit(rows["x"][kept], rows["y"][kept], 1)[0], 400)
    assert slope.value == pytest.approx(np.polyfit(rows["x"], rows["y"], 1)[0])
    assert np.corrcoef(slope.terms["task"], expected)[0, 1] > 0.999
    assert abs(slope.terms["task"].sum()) < 1e-9
