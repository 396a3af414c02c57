"""The variance of pairs that share sentences, against sums written out and against statsmodels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from stsbench.statistics.dependence import Sharing, covariance, difference_variances, variance
from stsbench.statistics.influence import mean_terms

sentences = st.integers(0, 5)
graphs = st.lists(st.tuples(sentences, sentences, st.floats(-10, 10), st.floats(-10, 10)), min_size=1, max_size=14)
"""Pairs of few sentences, so that pairs of one sentence with itself and the same two again are frequent."""


@given(graphs)
def test_dyadic_covariance_is_the_direct_double_sum(graph):
    first, second, *rows = (np.array(column) for column in zip(*graph, strict=True))
    expected = np.zeros((2, 2))
    for p in range(len(graph)):
        for q in range(len(graph)):
            if {first[p], second[p]} & {first[q], second[q]}:
                expected += np.outer([row[p] for row in rows], [row[q] for row in rows])
    found = covariance(rows, Sharing.of(first, second), "dyadic")
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(graphs)
def test_components_are_those_that_merging_finds_and_their_covariance_sums_over_them(graph):
    first, second, *rows = (np.array(column) for column in zip(*graph, strict=True))
    labels = np.arange(len(graph))
    for _ in graph:
        for p in range(len(graph)):
            for q in range(len(graph)):
                if {first[p], second[p]} & {first[q], second[q]}:
                    labels[[p, q]] = min(labels[p], labels[q])
    sharing = Sharing.of(first, second)
    assert ((sharing.components[:, None] == sharing.components) == (labels[:, None] == labels)).all()
    same = labels[:, None] == labels
    found = covariance(rows, sharing, "components")
    assert found == pytest.approx(np.array(rows) @ same @ np.array(rows).T, rel=1e-9, abs=1e-9)


@given(graphs)
def test_variance_is_floored_at_the_independent_one_and_says_so(graph):
    first, second, row, _ = (np.array(column) for column in zip(*graph, strict=True))
    sharing = Sharing.of(first, second)
    found = variance(row, sharing)
    dyadic = covariance(row, sharing)[0, 0]
    assert found.independent == pytest.approx(row @ row)
    assert found.value == pytest.approx(max(dyadic, row @ row))
    assert found.value >= found.independent
    assert not found.floored or dyadic < found.independent


def test_a_variance_below_the_independent_one_is_floored():
    found = variance([1.0, -1.0], Sharing.of(["a", "a"], ["b", "c"]))
    assert (found.value, found.independent, found.floored, found.ratio) == (2.0, 2.0, True, 1.0)


@pytest.mark.parametrize("method", ["dyadic", "components", "independent"])
def test_where_nothing_is_shared_every_method_is_the_independent_one(method):
    terms = np.random.default_rng(0).normal(size=(3, 50))
    for sharing in (Sharing.independent(50), Sharing.of(np.arange(50), np.arange(50, 100)), Sharing.of(range(50))):
        assert covariance(terms, sharing, method) == pytest.approx(terms @ terms.T)
        found = variance(terms[0], sharing, method)
        assert not found.floored
        assert found.df == pytest.approx((terms[0] ** 2).sum() ** 2 / (terms[0] ** 4).sum())


@pytest.mark.parametrize("shape", ["stars", "triangles"])
def test_dyadic_is_statsmodels_cluster_robust_variance_where_all_pairs_of_a_component_share(shape):
    # In a star and in a triangle every two pairs share a sentence, so a component is a cluster.
    import statsmodels.api as sm

    rng = np.random.default_rng(1)
    first, second, components = [], [], []
    for component in range(40):
        if shape == "stars":
            edges = [(0, leaf) for leaf in range(1, rng.integers(2, 7))]
        else:
            edges = [(0, 1), (1, 2), (2, 0)]
        first += [10 * component + a for a, _ in edges]
        second += [10 * component + b for _, b in edges]
        components += [component] * len(edges)
    values = rng.normal(size=40)[components] + rng.normal(size=len(components))
    sharing = Sharing.of(first, second)

    model = sm.OLS(values, np.ones(len(values)))
    robust = model.fit(cov_type="cluster", cov_kwds={"groups": components, "use_correction": False})
    for method in ("dyadic", "components"):
        assert covariance(mean_terms(values), sharing, method) == pytest.approx(robust.cov_params(), rel=1e-9)


def test_the_covariance_of_a_difference_is_that_of_the_models():
    rng = np.random.default_rng(2)
    sharing = Sharing.of(rng.integers(0, 30, 80), rng.integers(0, 30, 80))
    terms = rng.normal(size=(3, 80))
    for method in ("dyadic", "components", "independent"):
        whole = covariance(terms, sharing, method)
        assert whole == pytest.approx(whole.T)
        between = covariance(terms[1] - terms[0], sharing, method)[0, 0]
        assert between == pytest.approx(whole[0, 0] + whole[1, 1] - 2 * whole[0, 1])


def test_degrees_of_freedom_are_the_number_of_clusters_where_they_are_alike():
    hubs = np.repeat(np.arange(12), 5)
    sharing = Sharing.of(hubs, 100 + np.arange(60))
    for method in ("dyadic", "components"):
        assert variance(np.ones(60), sharing, method).df == pytest.approx(12)
    assert variance(np.ones(60), sharing, "independent").df == pytest.approx(60)


def test_joined_tasks_share_the_sentences_of_one_id():
    first = Sharing.of(np.array([7, 8], dtype=np.uint64), np.array([9, 10], dtype=np.uint64))
    second = Sharing.of(np.array([9, 12], dtype=np.uint64), np.array([13, 14], dtype=np.uint64))
    joined = Sharing.join([first, second])
    assert joined.components.tolist() == [0, 1, 0, 2]
    assert Sharing.join([first, Sharing.independent(2), second]).components.tolist() == [0, 1, 2, 3, 0, 4]
    assert Sharing.join([Sharing.independent(1), Sharing.independent(2)]).describe().components == 3


def test_the_average_of_two_tasks_of_the_same_pairs_varies_as_one_of_them():
    rng = np.random.default_rng(4)
    task = Sharing.of(rng.integers(0, 50, 90), rng.integers(0, 50, 90))
    terms = mean_terms(rng.normal(size=90))
    average = np.concatenate([terms, terms]) / 2
    together = covariance(average, Sharing.join([task, task]))[0, 0]
    assert together == pytest.approx(covariance(terms, task)[0, 0])


def test_a_description_counts_pairs_sentences_and_repetitions():
    sharing = Sharing.of(list("aabxyyz"), list("bcaxyyw"))
    summary = sharing.describe()
    assert (summary.pairs, summary.sentences, summary.components) == (7, 7, 4)
    assert (summary.largest_component, summary.largest_degree) == (3, 3)
    assert summary.sharing == pytest.approx(5 / 7)
    assert summary.repeated == pytest.approx(4 / 7)
    assert sharing.take([0, 3, 6]).describe().sharing == 0


def test_terms_of_other_pairs_are_refused():
    with pytest.raises(ValueError, match="expected terms of 3 pairs, got shape"):
        covariance(np.ones((2, 4)), Sharing.independent(3))
    with pytest.raises(ValueError, match="expected two vectors of one length"):
        Sharing.of([1, 2], [1])


def test_components_are_those_of_scipy_for_chains_and_crowds_of_any_length():
    rng = np.random.default_rng(0)
    chain = rng.permutation(5000)
    crowd = rng.integers(0, 3000, (2, 2000))
    for first, second in [(chain[:-1], chain[1:]), crowd, (np.zeros(50, int), np.arange(50)), ([], [])]:
        graph = coo_array((np.ones(len(first)), (first, second)), shape=(5000, 5000))
        labels = connected_components(graph, directed=False)[1][np.asarray(first, int)]
        expected = [list(dict.fromkeys(labels)).index(label) for label in labels]
        assert Sharing(np.asarray(first, int), np.asarray(second, int)).components.tolist() == expected


@pytest.mark.parametrize("method", ["dyadic", "components", "independent"])
def test_variances_of_all_differences_are_those_of_each(method, monkeypatch):
    # In several blocks, the last of which is not full.
    monkeypatch.setattr("stsbench.statistics.dependence._BLOCK", 16)
    rng = np.random.default_rng(0)
    sharing = Sharing.of(rng.integers(0, 30, 70), rng.integers(0, 30, 70))
    terms = rng.normal(size=(4, 70))
    # Two that hardly differ, and two that do not.
    terms[1], terms[3] = terms[0] + 1e-7 * rng.normal(size=70), terms[2]
    found = difference_variances(terms, sharing, method)
    assert [len(row) for row in found] == [3, 2, 1, 0]
    for one in range(4):
        for other in range(one + 1, 4):
            expected = variance(terms[other] - terms[one], sharing, method)
            given = found[one][other - one - 1]
            assert (given.value, given.independent, given.df) == pytest.approx(
                (expected.value, expected.independent, expected.df), rel=1e-6, nan_ok=True
            )
            assert given.floored == expected.floored
