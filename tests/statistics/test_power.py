"""What a test can find, and how many runs it takes."""

import math

import numpy as np
import pytest

from stsbench.statistics.dependence import Variance
from stsbench.statistics.intervals import detectable, seeds_needed

NO_PAIRS = Variance(0.0, 0.0, math.inf)


def test_the_smallest_difference_is_found_four_times_in_five() -> None:
    rng = np.random.default_rng(0)
    estimates = detectable(0.3) + 0.3 * rng.normal(size=100_000)
    assert (np.abs(estimates) > 1.96 * 0.3).mean() == pytest.approx(0.8, abs=0.005)


@pytest.mark.parametrize("difference", [0.3, 0.5, 1.0, 2.0])
def test_on_these_pairs_it_takes_as_many_runs_as_statsmodels_says(difference: float) -> None:
    power = pytest.importorskip("statsmodels.stats.power")
    expected = power.TTestIndPower().solve_power(difference, power=0.8, alpha=0.05)
    assert seeds_needed(difference, 1.0, NO_PAIRS) == math.ceil(expected)


def test_other_pairs_take_more_runs_and_too_few_pairs_none() -> None:
    here = seeds_needed(0.5, 0.8, NO_PAIRS)
    elsewhere = seeds_needed(0.5, 0.8, Variance(0.01, 0.01, 100.0))
    assert here is not None
    assert elsewhere is not None
    assert elsewhere > here
    assert seeds_needed(0.5, 0.8, Variance(0.2**2, 0.2**2, 100.0)) is None


def test_that_many_runs_do_find_it() -> None:
    runs = seeds_needed(1.0, 0.8, Variance(0.04, 0.04, 100.0)) or 0
    rng = np.random.default_rng(0)
    trials = 4000
    scores = 0.8 * rng.normal(size=(2, trials, runs))
    error = np.sqrt(scores.var(axis=2, ddof=1).sum(axis=0) / runs + 0.04)
    gap = 1.0 + 0.2 * rng.normal(size=trials) + scores[1].mean(axis=1) - scores[0].mean(axis=1)
    assert (np.abs(gap) / error > 2.03).mean() == pytest.approx(0.8, abs=0.03)
