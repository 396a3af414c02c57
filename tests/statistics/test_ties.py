"""The range of Spearman's correlation over ways of breaking ties, held against trying all of them."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import spearmanr

from stsbench.statistics.ties import OrderedGold, rounded, ties_of


def all_orders(gold: list[float], similarity: list[float]) -> list[float]:
    """Return Spearman's correlation by each way of giving tied pairs ranks of their own."""
    values = np.array(similarity)
    blocks = [np.flatnonzero(values == value) for value in np.unique(values)]
    found = []
    for orders in product(*(permutations(block) for block in blocks)):
        ranks = np.empty(len(values))
        ranks[[pair for order in orders for pair in order]] = np.arange(len(values))
        found.append(float(spearmanr(ranks, gold).statistic))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_the_range_is_that_of_all_orders_of_tied_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gold, similarity = rng.integers(0, 4, 8).astype(float), rng.integers(0, 3, 8).astype(float)
    orders = all_orders(list(gold), list(similarity))
    ties = ties_of(gold, similarity)
    assert ties.lowest == pytest.approx(min(orders), abs=1e-12)
    assert ties.highest == pytest.approx(max(orders), abs=1e-12)
    assert ties.expected == pytest.approx(np.mean(orders), abs=1e-12)
    assert ties.score == pytest.approx(spearmanr(gold, similarity).statistic, abs=1e-12)
    counts = [int((similarity == value).sum()) for value in similarity]
    assert ties.tied == np.mean([count > 1 for count in counts])
    assert ties.distinct == len(set(similarity))


def test_without_ties_there_is_one_score() -> None:
    rng = np.random.default_rng(0)
    gold, similarity = rng.integers(0, 6, 50), rng.normal(size=50)
    ties = ties_of(gold, similarity)
    expected = pytest.approx(spearmanr(gold, similarity).statistic)
    assert (ties.score, ties.expected, ties.lowest, ties.highest) == (expected, expected, expected, expected)
    assert (ties.tied, ties.distinct) == (0.0, 50)


def test_the_score_of_average_ranks_can_be_above_what_any_order_gives() -> None:
    ties = ties_of([1, 1, 5, 5], [0.2, 0.2, 0.9, 0.9])
    assert ties.score == 1.0
    assert ties.lowest == pytest.approx(ties.highest)
    assert ties.highest == pytest.approx(2 / np.sqrt(5))


def test_neither_the_order_of_pairs_nor_a_rising_scale_changes_anything() -> None:
    rng = np.random.default_rng(1)
    gold, similarity = rng.integers(0, 5, 200), rng.integers(0, 9, 200)
    order = rng.permutation(200)
    one, other = ties_of(gold, similarity), ties_of(gold[order], np.exp(similarity[order] / 3))
    assert vars(other) == pytest.approx(vars(one), abs=1e-12)
    turned = ties_of(gold, -similarity)
    assert (turned.lowest, turned.highest) == pytest.approx((-one.highest, -one.lowest), abs=1e-12)


@pytest.mark.parametrize("aggregation", ["mean", "wmean"])
def test_subsets_are_ranked_apart_where_their_scores_are_averaged(aggregation: str) -> None:
    rng = np.random.default_rng(2)
    gold, similarity, subsets = rng.integers(0, 5, 90), rng.integers(0, 9, 90), np.repeat([0, 1, 1], 30)
    parts = [ties_of(gold[subsets == code], similarity[subsets == code]) for code in (0, 1)]
    weights = [30, 60] if aggregation == "wmean" else [1, 1]
    ties = ties_of(OrderedGold.of(gold, subsets, aggregation), similarity)  # type: ignore[arg-type]
    for name in ("score", "expected", "lowest", "highest"):
        assert getattr(ties, name) == pytest.approx(
            np.average([getattr(part, name) for part in parts], weights=weights)
        )
    assert ties == ties_of(gold, similarity, subsets, aggregation)  # type: ignore[arg-type]
    assert ties_of(gold, similarity, subsets, "all") == ties_of(gold, similarity)


@pytest.mark.parametrize(("gold", "similarity"), [([1, 2, 3], [1, 1, 1]), ([2, 2, 2], [1, 2, 2]), ([], [])])
def test_what_has_no_correlation_has_no_range(gold: list[float], similarity: list[float]) -> None:
    ties = ties_of(gold, similarity)
    assert np.isnan([ties.score, ties.expected, ties.lowest, ties.highest]).all()
    assert ties.distinct == len(set(similarity))


def test_similarities_of_other_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="expected similarities of 3 pairs"):
        ties_of([1, 2, 3], [1, 2])


def test_rounding_is_that_of_the_formats() -> None:
    values = np.random.default_rng(3).uniform(-1, 1, 5000)
    assert np.array_equal(rounded(values, 11), values.astype(np.float16).astype(np.float64))
    assert np.array_equal(rounded(values, 24), values.astype(np.float32).astype(np.float64))
    assert np.array_equal(rounded(values, 53), values)
    torch = pytest.importorskip("torch")
    for kind, bits in ((torch.bfloat16, 8), (torch.float8_e4m3fn, 4)):
        large = values[np.abs(values) > 0.02]
        # By way of float32, whose 24 bits torch begins with.
        expected = torch.tensor(large.astype(np.float32)).to(kind).to(torch.float64).numpy()
        assert np.array_equal(rounded(large.astype(np.float32), bits), expected)
