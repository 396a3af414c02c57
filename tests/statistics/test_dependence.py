"""The variance of pairs that share sentences, against explicit sums, SciPy and statsmodels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stsbench.statistics.dependence import Sharing, covariance, difference_variances, variance
from stsbench.statistics.influence import mean_terms

METHODS = ["dyadic", "components", "independent"]

sentences = st.integers(0, 5)
graphs = st.lists(st.tuples(sentences, sentences, st.floats(-10, 10), st.floats(-10, 10)), min_size=1, max_size=14)
"""Pairs of few sentences, so that loops and repeated pairs are frequent."""


@given(graphs)
def test_covariances_are_the_explicit_sums_over_dependent_pairs(graph):
    first, second, *rows = (np.array(column) for column in zip(*graph, strict=True))
    size, terms = len(graph), np.array(rows)
    sides = list(zip(first, second, strict=True))
    shares = np.array([[not {*p}.isdisjoint(q) for q in sides] for p in sides])
    connected = np.linalg.matrix_power(shares.astype(int), size) > 0
    sharing = Sharing.of(first, second)
    assert ((sharing.components[:, None] == sharing.components) == connected).all()
    for method, dependent in zip(METHODS, (shares, connected, np.eye(size)), strict=True):
        expected = terms @ dependent @ terms.T
        assert covariance(terms, sharing, method) == pytest.approx(expected, rel=1e-9, abs=1e-9)
        found = variance(terms[0], sharing, method)
        assert found.independent == pytest.approx(terms[0] @ terms[0])
        assert found.value == pytest.approx(max(expected[0, 0], found.independent), abs=1e-9)


@pytest.mark.parametrize("shape", ["stars", "triangles"])
def test_where_a_component_is_a_cluster_the_variance_is_statsmodels_cluster_robust_one(shape):
    # In a star and in a triangle every two pairs share a sentence.
    import statsmodels.api as sm

    rng = np.random.default_rng(1)
    first, second, components = [], [], []
    for component in range(40):
        star = [(0, leaf) for leaf in range(1, rng.integers(2, 7))]
        edges = star if shape == "stars" else [(0, 1), (1, 2), (2, 0)]
        first += [10 * component + a for a, _ in edges]
        second += [10 * component + b for _, b in edges]
        components += [component] * len(edges)
    values = rng.normal(size=40)[components] + rng.normal(size=len(components))
    model = sm.OLS(values, np.ones(len(values)))
    robust = model.fit(cov_type="cluster", cov_kwds={"groups": components, "use_correction": False})
    for method in ("dyadic", "components"):
        found = covariance(mean_terms(values), Sharing.of(first, second), method)
        assert found == pytest.approx(robust.cov_params(), rel=1e-9)


def test_degrees_of_freedom_are_the_number_of_equal_clusters():
    sharing = Sharing.of(np.repeat(np.arange(12), 5), 100 + np.arange(60))
    for method, df in zip(METHODS, (12, 12, 60), strict=True):
        assert variance(np.ones(60), sharing, method).df == pytest.approx(df)


def test_joined_tasks_share_the_sentences_of_one_id():
    first = Sharing.of(np.array([7, 8], dtype=np.uint64), np.array([9, 10], dtype=np.uint64))
    second = Sharing.of(np.array([9, 12], dtype=np.uint64), np.array([13, 14], dtype=np.uint64))
    assert Sharing.join([first, second]).components.tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize("method", METHODS)
def test_variances_of_all_differences_are_those_of_each(method):
    rng = np.random.default_rng(0)
    sharing = Sharing.of(rng.integers(0, 30, 70), rng.integers(0, 30, 70))
    terms = rng.normal(size=(4, 70))
    terms[1], terms[3] = terms[0] + 1e-7 * rng.normal(size=70), terms[2]
    found = difference_variances(terms, sharing, method)
    assert [len(row) for row in found] == [3, 2, 1, 0]
    for one, other in zip(*np.triu_indices(4, 1), strict=True):
        expected, given = variance(terms[other] - terms[one], sharing, method), found[one][other - one - 1]
        assert (given.value, given.independent, given.df) == pytest.approx(
            (expected.value, expected.independent, expected.df), rel=1e-6, nan_ok=True
        )
