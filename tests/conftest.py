"""What every room's tests share: clean surroundings, a deterministic encoder, small data."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from numpy.typing import NDArray

from stsbench.datasets import StsData
from stsbench.datasets.tables import Pair, pair_table

if "PYTEST_XDIST_WORKER" in os.environ:
    # Each worker is a core's worth of work: more threads than cores would only stand in each other's way.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# The gate tries the same examples each time; `--hypothesis-profile explore` looks for new ones. How long one
# takes says nothing of what it tests.
hypothesis.settings.register_profile("stsbench", deadline=None, derandomize=True)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=2000)
hypothesis.settings.load_profile("stsbench")

WORDS = ("owl", "bus", "kettle", "rain", "a", "the", "sings", "leaves", "naps", "slowly", "tonight", "again")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of benchmark data and published numbers beside the repository, or skip the test."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip("needs ../shared")
    return folder


@pytest.fixture(autouse=True)
def _own_cache_and_no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the person's own data and embeddings out of the tests."""
    monkeypatch.setenv("STSBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("STSBENCH_DATA", raising=False)


def encode_by_hash(sentences: list[str]) -> NDArray[np.float64]:
    """Return vectors that depend on the words alone: the sum of one random vector per word."""

    def vector(word: str) -> NDArray[np.float64]:
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
        return np.random.default_rng(seed).normal(size=8)

    return np.array([sum(map(vector, sentence.split()), np.zeros(8)) for sentence in sentences])


@pytest.fixture
def hash_encode() -> Callable[[list[str]], NDArray[np.float64]]:
    """Return a deterministic encoder."""
    return encode_by_hash


@pytest.fixture
def toy_data() -> Callable[..., StsData]:
    """Return a maker of scored pairs of invented sentences, in two subsets of unequal size."""

    def make(task: str = "toy", *, pairs: int = 30, seed: int = 0, split: str = "test") -> StsData:
        rng = np.random.default_rng(seed)

        def sentence() -> str:
            return " ".join(rng.choice(WORDS, size=rng.integers(2, 7)))

        rows = [
            Pair(
                subset="first" if number < pairs // 3 else "second",
                split=split,
                pair_id=str(number),
                gold=float(rng.integers(0, 11)) / 2,
                sentence1=sentence(),
                sentence2=sentence(),
            )
            for number in range(pairs)
        ]
        digest = hashlib.sha256(f"{task} {pairs} {seed}".encode()).hexdigest()
        return StsData(task, split, "toy", pair_table(rows), (0.0, 5.0), "user", digest, (), ())

    return make
