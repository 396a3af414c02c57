"""The coverage study in small: intervals hold the truth, and tests keep their size, on seeded draws.

`benchmarks/interval_coverage.py` is the whole of it, on the graphs of real tasks.
"""

import math

import numpy as np
import pytest

from stsbench.statistics.correlations import spearman
from stsbench.statistics.dependence import Sharing, variance
from stsbench.statistics.influence import mean_terms, spearman_terms
from stsbench.statistics.intervals import correlation_interval, plain_interval, share_interval, two_sided_p

DRAWS = 300
CORRELATION = 0.8
TRUTH = 6 / math.pi * math.asin(CORRELATION / 2)


def stars():
    """Return the sharing of 90 stars of 4 pairs around a sentence, and who has an effect: the middle."""
    hubs = np.arange(360) // 4
    return Sharing.of(hubs, 1000 + np.arange(360)), [hubs]


def chains():
    """Return the sharing of 30 chains of 12 pairs, each sharing a sentence with the next; all have effects."""
    first = np.arange(360) + np.arange(360) // 12
    return Sharing.of(first, first + 1), [first, first + 1]


def draw(effects, rng):
    """Return (360,) normal numbers that depend on each other, by effects with 0.8 of the variance."""
    values = [rng.normal(size=codes.max() + 1)[codes] for codes in effects]
    return math.sqrt(0.8 / len(effects)) * sum(values) + math.sqrt(0.2) * rng.normal(size=360)


@pytest.fixture(scope="module", params=[stars, chains])
def rates(request):
    """Return how often each method's interval held the truth, and its test found what is not there."""
    sharing, effects = request.param()
    rng = np.random.default_rng(20)
    held, found = ({"dyadic": 0, "components": 0, "independent": 0} for _ in range(2))
    for _ in range(DRAWS):
        gold = draw(effects, rng)
        one, other = (CORRELATION * gold + math.sqrt(1 - CORRELATION**2) * draw(effects, rng) for _ in range(2))
        scores = spearman(gold, one), spearman(gold, other)
        terms = spearman_terms(gold, one), spearman_terms(gold, other)
        for method in held:
            limits = correlation_interval(scores[0], variance(terms[0], sharing, method), pairs=360)
            held[method] += limits.low <= TRUTH <= limits.high
            difference = variance(terms[1] - terms[0], sharing, method)
            found[method] += two_sided_p(scores[1] - scores[0], difference) < 0.05
    return {method: (held[method] / DRAWS, found[method] / DRAWS) for method in held}


def test_intervals_that_know_what_pairs_share_hold_the_truth(rates):
    # The simulation's own standard error is 1.3 points.
    for method in ("dyadic", "components"):
        assert 0.91 <= rates[method][0] <= 0.985


def test_tests_that_know_what_pairs_share_keep_their_size(rates):
    for method in ("dyadic", "components"):
        assert 0.015 <= rates[method][1] <= 0.09


@pytest.mark.parametrize("rates", [stars], indirect=True)
def test_around_hubs_intervals_and_tests_of_independent_pairs_do_not_hold(rates):
    assert rates["independent"][0] < 0.9
    assert rates["independent"][1] > 0.1


@pytest.mark.parametrize(("pairs", "correlation"), [(4, 0.5), (6, 0.0), (10, 0.95), (30, 0.8)])
def test_intervals_from_few_pairs_hold_the_truth(pairs, correlation):
    rng = np.random.default_rng(pairs)
    truth, held, there = 6 / math.pi * math.asin(correlation / 2), 0, 0
    for _ in range(2 * DRAWS):
        gold = rng.normal(size=pairs)
        other = correlation * gold + math.sqrt(1 - correlation**2) * rng.normal(size=pairs)
        found = variance(spearman_terms(gold, other), Sharing.independent(pairs))
        limits = correlation_interval(spearman(gold, other), found, pairs)
        there += limits.exists
        held += limits.low <= truth <= limits.high
    assert there > DRAWS
    assert held / there >= 0.93


def test_the_interval_of_a_share_near_one_holds_where_the_plain_one_does_not():
    rng = np.random.default_rng(5)
    held, plain = 0, 0
    for _ in range(DRAWS):
        right = rng.random(60) < 0.97
        found = variance(mean_terms(right), Sharing.independent(60))
        limits = share_interval(right.mean(), found, 60)
        held += limits.low <= 0.97 <= limits.high
        limits = plain_interval(right.mean(), found)
        plain += limits.low <= 0.97 <= limits.high
    assert held / DRAWS >= 0.93
    assert plain / DRAWS < 0.9
