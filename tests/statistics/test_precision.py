"""Average precision and the best threshold, against the libraries that MTEB uses."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from stsbench.statistics.correlations import average_precision, best_threshold


def pairs(n=200, seed=0, *, ties=False):
    draws = np.random.default_rng(seed)
    labels = (draws.random(n) < 0.3).astype(float)
    return labels, (draws.normal(size=n) + labels).round(1 if ties else 12)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_values_are_those_of_scikit_learn_and_terms_are_slopes(seed, ties):
    labels, similarity = pairs(60, seed, ties=ties)
    value, terms = average_precision(labels, similarity)
    assert value == pytest.approx(average_precision_score(labels, similarity), abs=1e-12)
    assert terms.sum() == pytest.approx(0, abs=1e-12)
    for place in range(60):
        weights = np.ones(60)
        weights[place] += 1e-6
        heavier = average_precision_score(labels, similarity, sample_weight=weights)
        assert terms[place] == pytest.approx((heavier - value) / 1e-6, abs=1e-6)


def test_equal_similarities_give_the_share_of_positive_pairs_and_one_label_gives_nan():
    assert average_precision([1, 0, 0, 1, 0], np.ones(5))[0] == pytest.approx(0.4)
    for label in (0, 1):
        value, terms = average_precision(np.full(4, label), np.arange(4.0))
        assert np.isnan([value, *terms]).all()


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_no_threshold_is_more_accurate_than_the_best_in_any_order(seed, ties):
    labels, similarity = pairs(80, seed, ties=ties)
    best = best_threshold(labels, similarity)
    accuracy = {limit: ((similarity >= limit) == (labels > 0)).mean() for limit in (*similarity, np.inf)}
    assert best.accuracy == max(accuracy.values())
    assert best.accuracy == ((similarity >= best.threshold) == (labels > 0)).mean()
    order = np.random.default_rng(seed).permutation(80)
    assert best_threshold(labels[order], similarity[order]) == best


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_the_best_threshold_is_that_of_sentence_transformers(seed, ties):
    pytest.importorskip("sentence_transformers", "6", reason="earlier versions choose another threshold")
    evaluation = pytest.importorskip("sentence_transformers.evaluation", reason="needs sentence-transformers")
    find = evaluation.BinaryClassificationEvaluator.find_best_acc_and_threshold
    labels, similarity = pairs(12, seed, ties=ties)
    best = best_threshold(labels, similarity)
    assert (best.accuracy, best.threshold) == pytest.approx(find(similarity, labels, True), abs=1e-12)
