"""What tests share: clean surroundings, a deterministic encoder, a tiny checkpoint, small data."""

import gc
import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from numpy.typing import NDArray
from tiny_models import sample_word_pieces, save_tiny

from stsbench.data.catalogue import data_set
from stsbench.data.tables import Pair, StsData, pair_table
from stsbench.scoring.tasks import STS_TASKS

if "PYTEST_XDIST_WORKER" in os.environ:
    # Each worker is a core's worth of work: more threads than cores would only stand in each other's way.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# The gate tries the same examples each time; `--hypothesis-profile explore` looks for new ones. How long one
# takes says nothing of what it tests.
hypothesis.settings.register_profile("stsbench", deadline=None, derandomize=True)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=2000)
hypothesis.settings.load_profile("stsbench")

# What a test writes need not survive a power cut, and the disk would be waited for thousands of times. Programs
# that tests start wait for it.
os.fsync = lambda descriptor: None

WORDS = ("owl", "bus", "kettle", "rain", "a", "the", "sings", "leaves", "naps", "slowly", "tonight", "again")


_ROOT = Path(__file__).resolve().parents[1]
# The workers of pytest-xdist begin in the surroundings that the lines below make.
_GIVEN = os.environ.setdefault("STSBENCH_TESTS_DATA", os.environ.get("STSBENCH_DATA", ""))
_DATA_PLACES = [
    *(Path(name) for name in _GIVEN.split(os.pathsep) if name),
    _ROOT / "data" / "senteval",
    _ROOT.parent / "shared" / "data" / "senteval",
]
# What fixtures of a session measure must not meet the person's own data and cache either.
os.environ["STSBENCH_DATA"] = ""
_session_cache = tempfile.TemporaryDirectory(prefix="stsbench-tests-", ignore_cleanup_errors=True)
os.environ["STSBENCH_CACHE"] = _session_cache.name


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the campaign of faults out unless it is selected; begin with the tests that measure seven tasks once.

    Workers steal from the end, and another worker that took some of these would measure the tasks again.
    """
    if "campaign" not in config.option.markexpr:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("campaign")])
        items[:] = [item for item in items if not item.get_closest_marker("campaign")]
    items.sort(key=lambda item: item.path.name != "test_golden.py")


def pytest_collection_finish() -> None:
    """Take what is there by now, modules above all, out of what the garbage collector looks through each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def senteval() -> Path:
    """Return the folder with the benchmarks' `downstream/` in it, wherever it is, or skip the test."""
    for folder in _DATA_PLACES:
        if (folder / "downstream" / "STS").is_dir():
            return folder.absolute()
    pytest.skip("needs the benchmark data in STSBENCH_DATA, data/senteval or ../shared")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of benchmark data and published numbers beside the repository, or skip the test."""
    folder = _ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("needs ../shared")
    return folder


@pytest.fixture(autouse=True)
def _own_cache_and_no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the person's own data and embeddings out of the tests, and what lies in the checkout's `data`."""
    monkeypatch.setenv("STSBENCH_CACHE", str(tmp_path / "cache"))
    # Empty it keeps the checkout's data out of other processes, too; in this one it may be set to a folder.
    monkeypatch.setenv("STSBENCH_DATA", "")
    monkeypatch.setattr("stsbench.data.reading.checkout_data", lambda: None)


def encode_by_hash(sentences: list[str]) -> NDArray[np.float64]:
    """Return vectors that depend on the words alone: the sum of one random vector per word."""
    return np.array([sum(map(_of_word, sentence.split()), np.zeros(8)) for sentence in sentences])


@cache
def _of_word(word: str) -> NDArray[np.float64]:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).normal(size=8)


@pytest.fixture(scope="session")
def hash_encode() -> Callable[[list[str]], NDArray[np.float64]]:
    """Return a deterministic encoder."""
    return encode_by_hash


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a BERT with random weights whose poolers give different scores."""
    folder = tmp_path_factory.mktemp("checkpoints") / "tiny-bert"
    return save_tiny(folder, sample_word_pieces(200), num_hidden_layers=3)


@pytest.fixture
def benchmark_folder(tmp_path: Path, toy_data: Callable[..., StsData], request: pytest.FixtureRequest) -> Path:
    """Return a data folder with the seven STS tasks in SentEval's layout and five raw, of invented sentences.

    Each part has 20 pairs, or as many as the fixture is parametrized with.
    """
    count = getattr(request, "param", 20)
    root = tmp_path / "data"
    for number, task in enumerate(STS_TASKS):
        for text, folder in (("senteval", root / "downstream"), ("raw", root / "sts-raw")):
            if text not in data_set(task).texts:
                continue
            variant = data_set(task).texts[text]
            for part_number, part in enumerate(variant.parts):
                pairs = toy_data(pairs=count, seed=100 * number + part_number).pairs
                # The raw text has a word more, so that it scores otherwise.
                firsts = [f"{one} again" if text == "raw" else one for one in pairs["sentence1"]]
                rows = list(
                    zip(firsts, pairs["sentence2"], pairs["gold"].clip(*data_set(task).gold_range), strict=True)
                )
                _write(folder, variant, part, rows)
    return root


def _write(folder: Path, variant: Any, part: Any, rows: list[tuple[str, str, float]]) -> None:
    for file in part.files:
        (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
    if variant.layout == "pairs-and-gold":
        extra = "\tsource" * (variant.widths[0] - 2)
        pairs, golds = part.files
        (folder / pairs.path).write_text("".join(f"{a}\t{b}{extra}\n" for a, b, _ in rows), encoding="utf-8")
        (folder / golds.path).write_text("".join(f"{gold}\n" for _, _, gold in rows), encoding="utf-8")
        return
    columns, (file,) = variant.columns, part.files
    lines = ["\t".join("c" * variant.widths[0]) + "\n"] if variant.header else []
    for number, (a, b, gold) in enumerate(rows):
        cells = ["x"] * variant.widths[0]
        cells[columns.sentence1], cells[columns.sentence2], cells[columns.value] = a, b, str(gold)
        if columns.id is not None:
            cells[columns.id] = f"{part.split}{number}"
        lines.append("\t".join(cells) + "\n")
    (folder / file.path).write_text("".join(lines), encoding="utf-8")
