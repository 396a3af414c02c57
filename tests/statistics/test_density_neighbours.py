"""Kernel densities, and exact nearest neighbours."""

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import gaussian_kde

from stsbench.analysis import retrieve
from stsbench.analysis.density import kernel_density
from stsbench.analysis.retrieve import find_neighbours
from stsbench.base.errors import UserError


@pytest.mark.parametrize("size", [2, 200, 3000])
def test_a_density_is_scipys_with_what_falls_outside_reflected(size: int) -> None:
    values = np.random.default_rng(0).uniform(-1, 1, size=size)
    grid = np.linspace(-1, 1, 101)
    kernels = gaussian_kde(values)
    expected = kernels(grid) + kernels(-2 - grid) + kernels(2 - grid)
    np.testing.assert_allclose(kernel_density(values, grid), expected, rtol=1e-12)


def test_a_density_at_the_end_keeps_all_its_mass_inside() -> None:
    values = np.concatenate([np.ones(30), np.random.default_rng(0).uniform(0.8, 1, size=30)])
    grid = np.linspace(-1, 1, 4001)
    assert trapezoid(kernel_density(values, grid), grid) == pytest.approx(1, abs=1e-4)


def test_a_density_at_the_end_is_that_of_kernels_reflected_there() -> None:
    values = np.clip(np.random.default_rng(1).normal(0.9, 0.1, size=80), -1, 1)
    grid = np.linspace(-1, 1, 101)
    width = values.std(ddof=1) * len(values) ** (-1 / 5)
    reflected = np.concatenate([values, -2 - values, 2 - values])
    kernels = np.exp(-0.5 * ((grid[:, np.newaxis] - reflected) / width) ** 2)
    expected = kernels.sum(axis=1) / (len(values) * width * np.sqrt(2 * np.pi))
    assert kernel_density(values, grid) == pytest.approx(expected, abs=1e-9)


def test_there_is_no_density_without_spread() -> None:
    for values in ([], [0.5], [0.5, 0.5, 0.5]):
        assert np.isnan(kernel_density(values, [0.0, 0.5])).all()
    with pytest.raises(ValueError, match=r"between -1.0 and 1.0"):
        kernel_density([0.5, 1.5], [0.0])


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_neighbours_are_those_of_a_full_sort(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieve, "_BLOCK_ROWS", block)
    rng = np.random.default_rng(0)
    queries, corpus = rng.normal(size=(4, 6)), rng.normal(size=(50, 6))
    cosines = np.array([[q @ c / np.linalg.norm(q) / np.linalg.norm(c) for c in corpus] for q in queries])
    found = find_neighbours("a model", queries, [corpus[:20], corpus[20:]], 12)
    expected = np.argsort(-cosines, axis=1)[:, :12]
    assert found.rows.tolist() == expected.tolist()
    assert found.cosines == pytest.approx(np.take_along_axis(cosines, expected, axis=1))


def test_of_equal_vectors_the_earlier_comes_first() -> None:
    corpus = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    assert find_neighbours("a model", corpus[1:2], [corpus], 3).rows.tolist() == [[1, 2, 3]]
    # Of other lengths their cosines are the same but for rounding.
    corpus = np.outer(np.arange(1, 51), [1.0, 2.0, 3.0])
    query = np.array([[3.0, 1.0, 0.7]])
    assert find_neighbours("a model", query, [corpus[:20], corpus[20:]], 50).rows.tolist() == [[*range(50)]]


def test_more_neighbours_than_there_are_vectors_are_refused() -> None:
    with pytest.raises(UserError, match="5 neighbours: a model has a vector that is not zero for 4 sentences"):
        find_neighbours("a model", np.ones((1, 2)), [np.ones((4, 2))], 5)
