"""The best of n runs."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stsbench.published.measured import seeds
from stsbench.statistics.seeds import best_of_below, best_of_quantiles, best_of_weights, expected_best

SCORES = st.lists(st.floats(-100, 100), min_size=1, max_size=7)


@given(SCORES)
def test_it_is_the_mean_over_all_subsets(scores: list[float]) -> None:
    sizes = range(1, len(scores) + 1)
    bests = [[max(chosen) for chosen in combinations(scores, size)] for size in sizes]
    assert expected_best(scores) == pytest.approx([np.mean(of_size) for of_size in bests], abs=1e-9)
    assert best_of_below(scores, 0.5) == pytest.approx([np.mean(np.array(x) < 0.5) for x in bests], abs=1e-9)


@given(SCORES)
def test_more_runs_have_no_lower_best(scores: list[float]) -> None:
    assert (np.diff(expected_best(scores)) >= -1e-9).all()
    assert (np.diff(best_of_quantiles(scores, 0.5)) >= 0).all()


def test_the_estimator_is_unbiased_where_the_one_with_replacement_is_too_low() -> None:
    rng = np.random.default_rng(0)
    samples = np.sort(rng.normal(size=(20_000, 6)), axis=1)
    true = rng.normal(size=(400_000, 4)).max(axis=1).mean()
    without = (samples @ best_of_weights(6)[3]).mean()
    places = np.arange(7) / 6
    with_replacement = (samples @ np.diff(places**4)).mean()
    assert without == pytest.approx(true, abs=0.015)
    assert with_replacement < true - 0.05


def test_of_the_fifty_seeds_the_published_number_is_the_best_of_seven_or_eight() -> None:
    best = expected_best(seeds("unsup-simcse-bert-base")["Avg."])
    assert best[[6, 7]].round(2).tolist() == [76.23, 76.28]


def test_many_runs_do_not_overflow() -> None:
    weights = best_of_weights(2000)
    assert weights.sum(axis=1) == pytest.approx(np.ones(2000))


def test_no_scores_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one score"):
        expected_best([])
