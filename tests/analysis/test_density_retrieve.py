"""Kernel densities, and the search for neighbours in a corpus."""

import numpy as np
import pytest
from scipy.integrate import trapezoid

from stsbench.analysis import retrieve
from stsbench.analysis.density import kernel_density
from stsbench.analysis.retrieve import find_neighbours
from stsbench.base.errors import UserError


def test_a_density_reflects_what_falls_outside_and_needs_spread() -> None:
    values = np.clip(np.random.default_rng(1).normal(0.9, 0.1, size=80), -1, 1)
    grid = np.linspace(-1, 1, 4001)
    width = values.std(ddof=1) * len(values) ** (-1 / 5)
    reflected = np.concatenate([values, -2 - values, 2 - values])
    kernels = np.exp(-0.5 * ((grid[:, np.newaxis] - reflected) / width) ** 2)
    density = kernel_density(values, grid)
    assert density == pytest.approx(kernels.sum(axis=1) / (len(values) * width * np.sqrt(2 * np.pi)), abs=1e-9)
    assert trapezoid(density, grid) == pytest.approx(1, abs=1e-4)
    for constant in ([], [0.5], [0.5, 0.5, 0.5]):
        assert np.isnan(kernel_density(constant, [0.0, 0.5])).all()
    with pytest.raises(ValueError, match=r"between -1.0 and 1.0"):
        kernel_density([0.5, 1.5], [0.0])


@pytest.mark.parametrize("block", [7, 1000])
def test_neighbours_are_those_of_a_full_sort_without_zero_vectors(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrieve, "_BLOCK_ROWS", block)
    rng = np.random.default_rng(0)
    queries, corpus = rng.normal(size=(4, 6)), rng.normal(size=(50, 6))
    cosines = np.array([[q @ c / np.linalg.norm(q) / np.linalg.norm(c) for c in corpus] for q in queries])
    corpus[[3, 30]], cosines[:, [3, 30]] = 0, -2
    found = find_neighbours("a model", queries, [corpus[:20], corpus[20:]], 12)
    expected = np.argsort(-cosines, axis=1)[:, :12]
    assert found.rows.tolist() == expected.tolist()
    assert found.cosines == pytest.approx(np.take_along_axis(cosines, expected, axis=1))
    with pytest.raises(UserError, match="49 neighbours: a model has nonzero vectors of 48 sentences only"):
        find_neighbours("a model", queries, [corpus], 49)
