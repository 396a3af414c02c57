"""Tokens are what was read of a text; every pooler equals a plain computation, whatever batch a sentence is in."""

import numpy as np
import pytest
from tiny_models import edit, vectors_of

from stsbench.encoders.load import load
from stsbench.encoders.plan import embed
from stsbench.encoders.poolers import POOLING_NAMES, parse_pooling, read_vectors

LONG = "the dog and the cat " * 40
POOLED = {
    "cls_before_pooler": lambda layers: layers[-1][0],
    "avg": lambda layers: layers[-1].mean(0),
    "avg_top2": lambda layers: ((layers[-1] + layers[-2]) / 2).mean(0),
    "avg_first_last": lambda layers: ((layers[1] + layers[-1]) / 2).mean(0),
    "avg_static_last": lambda layers: ((layers[0] + layers[-1]) / 2).mean(0),
    "cls_avg": lambda layers: (layers[-1][0] + layers[-1].mean(0)) / 2,
    "weighted_avg": lambda layers: np.average(layers[-1], axis=0, weights=np.arange(1.0, len(layers[-1]) + 1)),
    "max": lambda layers: layers[-1].max(0),
    "last": lambda layers: layers[-1][-1],
}


def reference(folder, texts, pooling):
    """Compute sentence vectors one sentence at a time, straight from AutoModel."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    rows = []
    for text in texts:
        encoded = tokenizer(text, return_tensors="pt", truncation=True, max_length=48)
        with torch.no_grad():
            output = model(**encoded, output_hidden_states=True)
        layers = [layer[0].numpy() for layer in output.hidden_states]
        rows.append(output.pooler_output[0].numpy() if pooling == "cls" else POOLED[pooling](layers))
    return np.stack(rows)


@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2"])
@pytest.mark.parametrize("prompt", ["", "so she "])  # the latter merges with some first words
def test_lengths_count_sub_words_without_special_tokens_and_prompt(kind, prompt, tiny, sentences):
    from transformers import AutoTokenizer

    folder = tiny(kind)
    found = embed(load(folder, pooling="avg", prompt=prompt), sentences, use_cache=False)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    expected = [len(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in sentences]
    assert found.lengths.tolist() == expected
    assert not found.truncated.any()


def test_only_truncated_texts_are_counted(tiny):
    folder, texts = tiny(), ["a", "a the", "a the dog cat a the dog cat"]
    pieces = [1, 2, 8]
    found = embed(load(folder, pooling="avg", max_length=pieces[1] + 2), texts, use_cache=False)
    assert found.truncated.tolist() == [False, False, True]
    assert found.lengths.tolist() == pieces
    assert found.rows[1] == found.rows[2], "what is left of the long one is the middle one"


@pytest.mark.parametrize("kind", ["bert", "roberta", "mpnet", "gpt2", "distilbert", "albert"])
def test_a_text_longer_than_the_model_reads_is_cut_at_its_positions(kind, tiny):
    folder = tiny(kind)
    if kind == "roberta":  # the offset also applies if it is left to the default
        edit(folder / "config.json", pad_token_id=None)
    encoder = load(folder, pooling="avg")
    assert encoder.identity.use.max_length == 48
    assert embed(encoder, [LONG, "the dog"], use_cache=False).truncated.tolist() == [True, False]
    assert len(encoder.tokenize([LONG]).sequences[0]) == 48


def test_a_tokenizers_stored_truncation_and_padding_do_not_apply(tiny, sentences):
    import tokenizers

    folder = tiny()
    expected = vectors_of(load(folder, pooling="avg"), sentences)
    stored = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    stored.enable_truncation(4)
    stored.enable_padding(length=30)
    stored.save(str(folder / "tokenizer.json"))
    found = embed(load(folder, pooling="avg"), sentences, use_cache=False)
    np.testing.assert_allclose(found.vectors["avg"][found.rows], expected, atol=1e-5)
    assert not found.truncated.any()


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
    edit(folder / "config.json", architectures=[f"{kind.title()}ForCL"])
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
def test_every_pooler_equals_the_reference(kind, pooling, tiny, sentences):
    folder, texts = tiny(kind), [text for text in sentences if text or kind != "gpt2"]
    ours = vectors_of(load(folder, pooling=pooling), texts)
    np.testing.assert_allclose(ours, reference(folder, texts, pooling), atol=1e-5)


@pytest.mark.parametrize("pooling", ["last", "avg", "max", "cls_before_pooler"])
def test_a_sentence_without_any_token_has_the_zero_vector(pooling, tiny, sentences):
    encoder = load(tiny("gpt2"), pooling=pooling)
    assert not vectors_of(encoder, [""]).any()
    assert not vectors_of(encoder, [*sentences, ""])[-1].any()
    assert np.isfinite(vectors_of(encoder, sentences)).all()


@pytest.mark.parametrize("layout", ["safetensors", "bin"])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_cls_goes_through_the_head_that_simcse_training_left(kind, layout, tiny, sentences):
    folder = tiny(kind)
    first = reference(folder, sentences, "cls_before_pooler")
    weight, bias = simcse_checkpoint(folder, kind, layout)
    encoder = load(folder, pooling="cls")
    np.testing.assert_allclose(vectors_of(encoder, sentences), np.tanh(first @ weight.T + bias), atol=1e-5)
    np.testing.assert_allclose(vectors_of(encoder, sentences, "cls_before_pooler"), first, atol=1e-5)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_half_precision_is_close_to_single(kind, precision, tiny, sentences):
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
