"""A record to save: small, and real."""

from collections.abc import Callable
from typing import Any

import pytest

import stsbench as sb
from stsbench.data.tables import StsData


@pytest.fixture
def make_record(hash_encode: Callable[..., Any], toy_data: Callable[..., StsData]) -> Callable[..., sb.RunRecord]:
    """Return a maker of records; another seed is another measurement."""

    def make(seed: int = 0) -> sb.RunRecord:
        return sb.evaluate(hash_encode, [toy_data(seed=seed), toy_data("other", seed=seed + 100)])

    return make
