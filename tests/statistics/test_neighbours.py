"""Nearest neighbours and hubness, against sorted cosines and counts of a few lines."""

import numpy as np
import pytest
from scipy.stats import ortho_group, skew

from stsbench.statistics.geometry import mean_cosine, mean_cosine_by_dimension, unit_rows
from stsbench.statistics.influence import Linear
from stsbench.statistics.neighbours import directions, hubness, nearest


def plain_nearest(units: np.ndarray, k: int) -> np.ndarray:
    """Return the k nearest other rows, a sorted row of all cosines at a time."""
    cosines = np.round(units @ units.T, 9)
    np.fill_diagonal(cosines, -2)
    return np.argsort(-cosines, axis=1, kind="stable")[:, :k]


@pytest.mark.parametrize(("n", "k"), [(2, 1), (12, 11), (17, 10), (300, 10), (700, 1), (700, 40)])
def test_the_nearest_are_those_of_sorted_cosines_in_more_than_one_block(n: int, k: int) -> None:
    units = directions(np.random.default_rng(n + k).normal(size=(n, 9)) + 0.3).units
    found = nearest(units, k)
    assert found.rows.tolist() == plain_nearest(units, k).tolist()
    expected = np.take_along_axis(units @ units.T, found.rows, axis=1)
    assert found.cosines == pytest.approx(expected, abs=1e-12)


def test_vectors_that_float32_does_not_tell_apart_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    rows = unit_rows(rng.normal(size=(1, 8)) + 3e-3 * rng.normal(size=(400, 8)))
    expected = plain_nearest(rows, 3).tolist()
    assert plain_nearest(rows.astype(np.float32), 3).tolist() != expected
    assert nearest(rows, 3).rows.tolist() == expected


def test_of_equal_cosines_the_earlier_row_is_the_nearer() -> None:
    rows = np.repeat(np.eye(3), 4, axis=0)
    assert nearest(rows, 4).rows[0].tolist() == [1, 2, 3, 4]
    assert nearest(rows, 4).rows[5].tolist() == [4, 6, 7, 0]


@pytest.mark.parametrize("k", [0, 5])
def test_as_many_neighbours_as_rows_are_refused(k: int) -> None:
    with pytest.raises(ValueError, match="among 5 rows: there are 1 to 4"):
        nearest(np.eye(5), k)


def test_hubness_is_scipys_skewness_of_counts_and_the_share_of_zeros() -> None:
    units = directions(np.random.default_rng(1).normal(size=(200, 30))).units
    neighbours = plain_nearest(units, 5)
    counts = [sum(row in of for of in neighbours.tolist()) for row in range(200)]
    found = hubness(neighbours)
    assert found.counts.tolist() == counts
    assert found.skewness == pytest.approx(skew(counts))
    assert found.antihubs == counts.count(0) / 200 > 0
    # What each count contributes is the slope of the statistic as it counts a little more.
    for number in (0, 7, int(np.argmax(counts))):
        weights = np.full(200, 1 / 200)
        weights[number] += 1e-7
        weights /= weights.sum()
        deviations = np.array(counts) - 5.0
        moved = (weights @ deviations**3) / (weights @ deviations**2) ** 1.5
        assert found.skewness_terms[number] == pytest.approx((moved - found.skewness) / 1e-7 / 200, abs=1e-5)
    assert found.skewness_terms.sum() == pytest.approx(0)
    assert found.antihub_terms.sum() == pytest.approx(0)


def test_one_neighbour_for_all_is_the_most_skewed_that_there_is() -> None:
    # A centre, and points in all directions around it: each is nearest to the centre.
    points = np.hstack([np.ones((9, 1)), np.vstack([np.zeros(8), np.eye(8)])])
    found = hubness(nearest(unit_rows(points), 1).rows)
    assert found.counts.tolist() == [8, 1, *[0] * 7]
    assert found.antihubs == pytest.approx(7 / 9)
    assert found.skewness == pytest.approx(skew([8, 1, *[0] * 7]))


def test_if_all_are_neighbours_of_as_many_there_is_no_skewness() -> None:
    found = hubness(np.array([[1], [2], [0]]))
    assert np.isnan(found.skewness)
    assert found.antihubs == 0


def test_the_standard_errors_of_hubness_are_about_those_of_new_samples() -> None:
    drawn, errors = [], []
    for seed in range(60):
        units = directions(np.random.default_rng(seed).normal(size=(300, 20)) + 0.5).units
        found = hubness(nearest(units, 10).rows)
        drawn.append((found.skewness, found.antihubs))
        errors.append([(terms**2).sum() for terms in (found.skewness_terms, found.antihub_terms)])
    ratios = np.sqrt(np.mean(errors, axis=0)) / np.std(drawn, axis=0)
    assert ((ratios > 0.8) & (ratios < 1.6)).all(), ratios


def test_neighbours_and_hubness_know_neither_rotation_nor_scale_nor_order() -> None:
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(120, 6)) + 0.4
    shuffled = rng.permutation(120)
    turned = 13 * vectors[shuffled] @ ortho_group.rvs(6, random_state=0)
    one, other = (hubness(nearest(directions(rows).units, 4).rows) for rows in (vectors, turned))
    assert other.counts.tolist() == one.counts[shuffled].tolist()
    assert (other.skewness, other.antihubs) == pytest.approx((one.skewness, one.antihubs))


def test_what_dimensions_make_of_the_mean_cosine_is_what_pairs_have_and_adds_up_to_it() -> None:
    vectors = np.random.default_rng(3).normal(np.array([3, 0, 0, 1, 0]), size=(30, 5))
    units = unit_rows(vectors)
    pairs = [(i, j) for i in range(30) for j in range(i)]
    expected = [np.mean([units[i, k] * units[j, k] for i, j in pairs]) for k in range(5)]
    found = mean_cosine_by_dimension(units)
    assert found == pytest.approx(expected)
    assert found.sum() == pytest.approx(mean_cosine(vectors))
    # Not so after a rotation: dimensions are those of the model.
    turned = mean_cosine_by_dimension(units @ ortho_group.rvs(5, random_state=0))
    assert turned.sum() == pytest.approx(found.sum())
    assert abs(turned.max() - found.max()) > 0.05
    with pytest.raises(ValueError, match="at least two vectors"):
        mean_cosine_by_dimension(units[:1])


def test_a_share_that_is_not_defined_stays_so_in_a_mean() -> None:
    assert np.isnan((Linear.undefined() + Linear(1.0, {})).value)
