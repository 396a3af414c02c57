import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from stsbench.statistics.significance import mcnemar


def answers(only_first, only_second, both=3, neither=2):
    """Return what two classifiers get right, with so many items of each sort."""
    first = np.repeat([True, False, True, False], [only_first, only_second, both, neither])
    second = np.repeat([False, True, True, False], [only_first, only_second, both, neither])
    return first, second


@given(st.integers(0, 60), st.integers(0, 60))
def test_it_is_the_two_sided_sign_test_of_the_discordant_items(only_first, only_second):
    found = mcnemar(*answers(only_first, only_second))
    assert (found.only_first, found.only_second) == (only_first, only_second)
    tail = scipy.stats.binom.cdf(min(only_first, only_second), only_first + only_second, 0.5)
    assert found.p_value == pytest.approx(min(1.0, 2 * tail))


def test_with_many_discordant_items_it_agrees_with_the_chi_squared_form():
    found = mcnemar(*answers(520, 430))
    continuity_corrected = (abs(520 - 430) - 1) ** 2 / (520 + 430)
    assert found.p_value == pytest.approx(scipy.stats.chi2.sf(continuity_corrected, 1), rel=0.02)


def test_items_that_both_answer_alike_tell_nothing():
    assert mcnemar(*answers(9, 2, both=1000, neither=500)).p_value == mcnemar(*answers(9, 2)).p_value


def test_answers_to_different_items_are_refused():
    with pytest.raises(ValueError, match="one length"):
        mcnemar([True, False], [True])
