"""Every pooler equals a plain, separate computation, whatever batch a sentence is in."""

import json

import numpy as np
import pytest

from stsbench.encoders.load import load
from stsbench.encoders.poolers import POOLING_NAMES, parse_pooling, read_vectors


def simcse_checkpoint(folder, kind, layout):
    """Turn a tiny checkpoint into what SimCSE's training code saves; return the head's weight and bias."""
    import torch
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    saved = {f"{kind}.{name}": tensor for name, tensor in tensors.items() if not name.startswith("pooler.")}
    torch.manual_seed(3)
    saved["mlp.dense.weight"], saved["mlp.dense.bias"] = torch.randn(32, 32) / 6, torch.randn(32)
    if layout == "safetensors":
        save_file(saved, folder / "model.safetensors", metadata={"format": "pt"})
    else:
        torch.save(saved, folder / "pytorch_model.bin")
    config = json.loads((folder / "config.json").read_text())
    config["architectures"] = [f"{kind.title()}ForCL"]
    (folder / "config.json").write_text(json.dumps(config))
    return saved["mlp.dense.weight"].numpy(), saved["mlp.dense.bias"].numpy()


OTHERS = [
    ("albert", "cls"),
    ("albert", "avg_static_last"),
    ("mpnet", "cls"),
    ("mpnet", "avg"),
    ("distilbert", "avg_first_last"),
    ("distilbert", "cls_before_pooler"),
    *(("gpt2", pooling) for pooling in ("last", "avg", "avg_top2", "max", "weighted_avg")),
    *(("bert", pooling) for pooling in ("cls_avg", "weighted_avg")),
]


@pytest.mark.parametrize(
    ("kind", "pooling"), [*((kind, name) for kind in ("bert", "roberta") for name in POOLING_NAMES), *OTHERS]
)
def test_every_pooler_equals_the_reference(kind, pooling, tiny, sentences, vectors_of, reference):
    folder, texts = tiny(kind), [text for text in sentences if text or kind != "gpt2"]
    ours = vectors_of(load(folder, pooling=pooling), texts)
    np.testing.assert_allclose(ours, reference(folder, texts, pooling), atol=1e-5)


@pytest.mark.parametrize("pooling", ["last", "avg", "max", "cls_before_pooler"])
def test_a_sentence_without_any_token_has_the_zero_vector(pooling, tiny, sentences, vectors_of):
    encoder = load(tiny("gpt2"), pooling=pooling)
    assert not vectors_of(encoder, [""]).any()
    assert not vectors_of(encoder, [*sentences, ""])[-1].any()
    assert np.isfinite(vectors_of(encoder, sentences)).all()


@pytest.mark.parametrize("layout", ["safetensors", "bin"])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_cls_goes_through_the_head_that_simcse_training_left(kind, layout, tiny, sentences, vectors_of, reference):
    folder = tiny(kind)
    first = reference(folder, sentences, "cls_before_pooler")
    weight, bias = simcse_checkpoint(folder, kind, layout)
    encoder = load(folder, pooling="cls")
    np.testing.assert_allclose(vectors_of(encoder, sentences), np.tanh(first @ weight.T + bias), atol=1e-5)
    np.testing.assert_allclose(vectors_of(encoder, sentences, "cls_before_pooler"), first, atol=1e-5)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_half_precision_is_close_to_single(kind, precision, tiny, sentences, vectors_of):
    folder = tiny(kind)
    texts = [text for text in sentences if text]
    full = vectors_of(load(folder, pooling="avg"), texts)
    half = vectors_of(load(folder, pooling="avg", precision=precision), texts)
    assert half.dtype == np.float32
    cosines = (full * half).sum(1) / np.linalg.norm(full, axis=1) / np.linalg.norm(half, axis=1)
    assert cosines.min() > 0.999
    assert not np.array_equal(full, half)


@pytest.mark.parametrize("pooling", ["cls_before_pooler", "avg", "max", "last"])
def test_what_training_pools_is_what_measuring_reads(pooling):
    import torch

    from stsbench.training.model import pooled

    torch.manual_seed(0)
    states = [torch.randn(9, 7, 5) for _ in range(3)]
    lengths = [7, 1, 2, 3, 4, 5, 6, 7, 7]
    mask = (torch.arange(7) < torch.tensor(lengths).unsqueeze(1)).long()
    reading = parse_pooling(pooling)
    spans = torch.tensor([reading.span(length) for length in lengths])
    assert torch.equal(pooled(pooling, states[-1], mask), read_vectors(reading, states, spans))
