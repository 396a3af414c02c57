import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stsbench.statistics.significance import holm

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=10)


def test_it_gives_a_worked_example():
    # Each sorted p-value times the number of those not yet passed, never below the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(p_values, st.floats(0.001, 0.5))
def test_it_rejects_what_the_step_down_procedure_rejects(values, alpha):
    rejected = set()
    for step, place in enumerate(np.argsort(values, kind="stable")):
        if (len(values) - step) * values[place] > alpha:
            break
        rejected.add(int(place))
    assert {place for place, p in enumerate(holm(values)) if p <= alpha} == rejected


def test_it_lies_between_no_correction_and_bonferroni_s():
    values = np.random.default_rng(0).uniform(0, 0.2, 7)
    adjusted = holm(values)
    assert (adjusted >= values).all()
    assert (adjusted <= np.minimum(7 * values, 1)).all()


def test_an_undefined_test_stays_so_and_does_not_count():
    adjusted = holm([0.02, math.nan, 0.03])
    assert adjusted[[0, 2]] == pytest.approx([0.04, 0.04])
    assert math.isnan(adjusted[1])
    assert holm([]).tolist() == []
