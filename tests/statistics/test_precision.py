"""Average precision and the best threshold, against the libraries that MTEB takes them from."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from stsbench.statistics.precision import average_precision, average_precision_terms, best_threshold


def pairs(n=200, seed=0, *, ties=False):
    draws = np.random.default_rng(seed)
    labels = (draws.random(n) < 0.3).astype(float)
    similarity = draws.normal(size=n) + labels
    return labels, similarity.round(1 if ties else 12)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_average_precision_is_scikit_learns(seed, ties):
    labels, similarity = pairs(seed=seed, ties=ties)
    assert (len(np.unique(similarity)) < len(similarity)) == ties
    assert average_precision(labels, similarity) == pytest.approx(
        average_precision_score(labels, similarity), abs=1e-12
    )


def test_where_all_pairs_are_as_similar_it_is_the_share_that_belongs_together():
    assert average_precision([1, 0, 0, 1, 0], np.ones(5)) == pytest.approx(0.4)


@pytest.mark.parametrize("label", [0, 1])
def test_of_one_label_alone_nothing_is_defined(label):
    labels, similarity = np.full(4, label), np.arange(4.0)
    assert np.isnan(average_precision(labels, similarity))
    assert np.isnan(average_precision_terms(labels, similarity)).all()


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_no_threshold_is_more_accurate_than_the_best_whatever_the_order_of_the_pairs(seed, ties):
    labels, similarity = pairs(80, seed, ties=ties)
    best = best_threshold(labels, similarity)
    accuracy = {limit: ((similarity >= limit) == (labels > 0)).mean() for limit in (*similarity, np.inf)}
    assert best.accuracy == max(accuracy.values())
    assert best.accuracy == ((similarity >= best.threshold) == (labels > 0)).mean()
    turned = np.random.default_rng(seed).permutation(80)
    assert best_threshold(labels[turned], similarity[turned]) == best


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_the_best_threshold_is_that_of_sentence_transformers(seed, ties):
    pytest.importorskip("sentence_transformers", "6", reason="before version 6 its threshold is another")
    evaluation = pytest.importorskip("sentence_transformers.evaluation", reason="needs sentence-transformers")
    find = evaluation.BinaryClassificationEvaluator.find_best_acc_and_threshold
    labels, similarity = pairs(12, seed, ties=ties)
    best = best_threshold(labels, similarity)
    assert (best.accuracy, best.threshold) == pytest.approx(find(similarity, labels, True), abs=1e-12)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_terms_are_what_a_weight_on_each_pair_changes(seed, ties):
    labels, similarity = pairs(60, seed, ties=ties)
    terms = average_precision_terms(labels, similarity)
    assert terms.sum() == pytest.approx(0, abs=1e-12)
    more = 1e-6
    value = average_precision_score(labels, similarity)
    for place in range(len(labels)):
        weights = np.ones(len(labels))
        weights[place] += more
        heavier = average_precision_score(labels, similarity, sample_weight=weights)
        assert terms[place] == pytest.approx((heavier - value) / more, abs=1e-6)


def test_the_jackknife_sees_the_same_variance():
    labels, similarity = pairs(800)
    n = len(labels)
    left_out = [average_precision(np.delete(labels, place), np.delete(similarity, place)) for place in range(n)]
    jackknife = (n - 1) / n * ((np.array(left_out) - np.mean(left_out)) ** 2).sum()
    assert (average_precision_terms(labels, similarity) ** 2).sum() == pytest.approx(jackknife, rel=0.05)
