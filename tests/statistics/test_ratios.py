import numpy as np
import pytest

from stsbench.statistics.bootstrap import bootstrap_ratio, generator


def test_replicates_of_a_share_have_the_binomial_spread():
    correct = np.repeat([1, 0], [300, 100])
    replicates = bootstrap_ratio(correct, rng=generator(0, "share"), resamples=4000)
    assert replicates.mean() == pytest.approx(0.75, abs=0.002)
    assert replicates.std() == pytest.approx(np.sqrt(0.75 * 0.25 / 400), rel=0.05)


def test_both_sums_are_of_the_same_resample():
    above = np.arange(1.0, 50.0)
    assert bootstrap_ratio(above, 2 * above, rng=generator(0, "twice"), resamples=20).tolist() == [0.5] * 20


def test_a_resample_with_nothing_below_is_undefined():
    replicates = bootstrap_ratio([0.0, 1.0], [0.0, 1.0], rng=generator(0, "none"), resamples=200)
    assert np.isnan(replicates).any()
    assert set(replicates[~np.isnan(replicates)]) == {1.0}


def test_draws_do_not_depend_on_the_block():
    values = np.arange(700_000) % 3 == 0
    whole = bootstrap_ratio(values, rng=generator(0, "block"), resamples=3)
    assert whole.tolist() == pytest.approx([1 / 3] * 3, abs=0.002)


def test_no_items_are_refused():
    with pytest.raises(ValueError, match="at least one item"):
        bootstrap_ratio([], rng=generator(0))
