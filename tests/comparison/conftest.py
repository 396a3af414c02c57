"""Two models measured on small data."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import stsbench as sb
from stsbench.data.tables import StsData

Measure = Callable[..., sb.RunRecord]


@pytest.fixture
def measure(hash_encode: Callable[[list[str]], NDArray[np.float64]], toy_data: Callable[..., StsData]) -> Measure:
    """Return a function that measures vectors with so much noise on toy tasks; the seed draws the noise."""

    def run(
        tasks: list[StsData] | None = None, *, noise: float = 0.0, seed: int = 0, **options: Any
    ) -> sb.RunRecord:
        def encode(sentences: list[str]) -> NDArray[np.float64]:
            vectors = hash_encode(sentences)
            return vectors + noise * np.random.default_rng(seed).normal(size=vectors.shape)

        return sb.evaluate(encode, tasks or [toy_data("x", pairs=60), toy_data("y", seed=1)], **options)

    return run
