"""The range of Spearman's correlation over ways of breaking ties, against trying all of them."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import spearmanr

from stsbench.statistics.ranks import rounded, ties_of

RANGE = ("score", "expected", "lowest", "highest")


def all_orders(gold, similarity):
    """Returns Spearman's correlation for each way of giving tied pairs different ranks."""
    blocks = [np.flatnonzero(similarity == value) for value in np.unique(similarity)]
    found = []
    for orders in product(*(permutations(block) for block in blocks)):
        ranks = np.empty(len(similarity))
        ranks[[pair for order in orders for pair in order]] = np.arange(len(similarity))
        found.append(float(spearmanr(ranks, gold).statistic))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_the_range_is_that_of_all_orders_of_tied_pairs(seed):
    rng = np.random.default_rng(seed)
    gold, similarity = rng.integers(0, 4, 8).astype(float), rng.integers(0, 3, 8).astype(float)
    orders, ties = all_orders(gold, similarity), ties_of(gold, similarity)
    expected = (spearmanr(gold, similarity).statistic, np.mean(orders), min(orders), max(orders))
    assert [getattr(ties, name) for name in RANGE] == pytest.approx(expected, abs=1e-12)
    counts = [int((similarity == value).sum()) for value in similarity]
    assert (ties.tied, ties.distinct) == (np.mean([count > 1 for count in counts]), len(set(similarity)))


@pytest.mark.parametrize(("aggregation", "weights"), [("mean", [1, 1]), ("wmean", [30, 60])])
def test_averaged_subsets_are_ranked_separately(aggregation, weights):
    rng = np.random.default_rng(2)
    gold, similarity, subsets = rng.integers(0, 5, 90), rng.integers(0, 9, 90), np.repeat([0, 1, 1], 30)
    parts = [ties_of(gold[subsets == code], similarity[subsets == code]) for code in (0, 1)]
    ties = ties_of(gold, similarity, subsets, aggregation)
    for name in RANGE:
        expected = np.average([getattr(part, name) for part in parts], weights=weights)
        assert getattr(ties, name) == pytest.approx(expected)
    assert ties_of(gold, similarity, subsets, "all") == ties_of(gold, similarity)


@pytest.mark.parametrize(("gold", "similarity"), [([1, 2, 3], [1, 1, 1]), ([2, 2, 2], [1, 2, 2]), ([], [])])
def test_without_a_correlation_there_is_no_range(gold, similarity):
    ties = ties_of(gold, similarity)
    assert np.isnan([getattr(ties, name) for name in RANGE]).all()
    assert ties.distinct == len(set(similarity))


def test_rounding_is_that_of_the_formats():
    values = np.random.default_rng(3).uniform(-1, 1, 5000)
    for dtype, bits in ((np.float16, 11), (np.float32, 24), (np.float64, 53)):
        assert np.array_equal(rounded(values, bits), values.astype(dtype).astype(np.float64))
    torch = pytest.importorskip("torch")
    large = values[np.abs(values) > 0.02].astype(np.float32)
    for kind, bits in ((torch.bfloat16, 8), (torch.float8_e4m3fn, 4)):
        assert np.array_equal(rounded(large, bits), torch.tensor(large).to(kind).to(torch.float64).numpy())
