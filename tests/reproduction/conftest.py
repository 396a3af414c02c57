"""Changes that make every training of a plan small."""

from pathlib import Path
from typing import Any

import pytest
from small_experiments import serial

__all__ = ["serial"]


@pytest.fixture
def small(tiny_bert: Path) -> dict[str, Any]:
    """Return changes that make every training two steps of a tiny base."""
    return {
        "base": str(tiny_bert),
        "corpus.rows": 16,
        "corpus.max_length": 12,
        "optimiser.batch": 8,
        "optimiser.learning_rate": 0.001,
    }
