"""What makes a step on a CPU cheaper: masks of NumPy's, and chunks that are cut by tokens."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_trainings import tiny

from stsbench.training import cpu
from stsbench.training.cpu import (
    NumpyDropout,
    drawn_by_numpy,
    let_numpy_draw,
    set_dropout,
)
from stsbench.training.model import _CHUNK_COST, chunks_of, cuts_by_tokens


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9, 1e-6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_numpys_masks_have_the_rate_and_keep_the_mean(rate, dtype):
    torch.manual_seed(0)
    factors = drawn_by_numpy(torch.empty(1001, 1003, dtype=dtype), rate)
    assert factors.dtype == dtype
    kept = factors != 0
    met = max(round(rate * 65536), 1) / 65536
    assert float(kept.float().mean()) == pytest.approx(1 - met, abs=0.002)
    assert torch.equal(factors[kept].unique(), torch.tensor([1 / (1 - met)], dtype=dtype))
    # Neither neighbours nor rows hang together.
    dropped = (~kept).float() - (~kept).float().mean()
    for other in (dropped.roll(1, 0), dropped.roll(1, 1), dropped.roll(4, 1)):
        assert float((dropped * other).mean()) == pytest.approx(0, abs=0.002 * met + 1e-6)


def test_numpys_masks_follow_torchs_seed():
    values = torch.ones(7, 9)
    first, second, again, other = (
        torch.manual_seed(seed) and drawn_by_numpy(values, 0.3) for seed in (1, 1, 1, 2)
    )
    assert torch.equal(first, second)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(drawn_by_numpy(values, 0.3), drawn_by_numpy(values, 0.3))
    layer = NumpyDropout(0.3)
    assert layer(values).max() > 1
    assert layer.eval()(values) is values


@pytest.mark.parametrize("padded", [False, True])
def test_attention_with_numpys_masks_is_transformers_plain_attention_times_them(padded, monkeypatch):
    from transformers.models.bert.modeling_bert import eager_attention_forward

    torch.manual_seed(1)
    query, key, value = (torch.randn(3, 2, 5, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
    masks = drawn_by_numpy(torch.empty(3, 2, 5, 5, dtype=torch.float64), 0.3)
    monkeypatch.setattr(cpu, "drawn_by_numpy", lambda weights, _rate: masks.view(weights.shape))
    monkeypatch.setattr(torch.nn.functional, "dropout", lambda weights, **_: weights * masks)
    seen = (torch.arange(5) < torch.tensor([[5], [2], [4]]))[:, None, None, :].expand(3, 1, 5, 5)
    added = torch.zeros(seen.shape, dtype=torch.float64).masked_fill(~seen, -torch.inf)
    layer = torch.nn.Module().train()
    layer.is_causal = False
    found, _ = cpu._attention(layer, query, key, value, seen if padded else None, 0.7, 0.3)
    expected, _ = eager_attention_forward(layer, query, key, value, added if padded else None, 0.7, 0.3)
    torch.testing.assert_close(found, expected)
    weights = torch.randn_like(found)
    gradients = [torch.autograd.grad((side * weights).sum(), (query, key, value)) for side in (found, expected)]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("gpt2", {}),
        ("llama", {"num_attention_heads": 4, "num_key_value_heads": 2, "attention_dropout": 0.1}),
        ("layoutlm", {}),
        ("t5", {"is_encoder_decoder": False, "d_kv": 8}),
    ],
)
@pytest.mark.parametrize("padded", [False, True])
def test_attention_that_differs_from_berts_is_transformers_own(padded, kind, sizes, monkeypatch):
    from torch.nn import functional

    transformer, attend = tiny(kind, **sizes), functional.scaled_dot_product_attention
    monkeypatch.setattr(cpu, "drawn_by_numpy", lambda values, _rate: torch.ones_like(values))
    monkeypatch.setattr(
        functional,
        "scaled_dot_product_attention",
        lambda *given, **more: attend(*given, **more | {"dropout_p": 0.0}),
    )
    words = torch.randn(2, 7, 16, generator=torch.Generator().manual_seed(1))
    mask = torch.tensor([[1] * 7, [1] * 4 + [0] * 3]) if padded else None
    seen = torch.ones(2, 7) > 0 if mask is None else mask > 0

    def states():
        with torch.no_grad():
            return transformer(inputs_embeds=words, attention_mask=mask).last_hidden_state[seen]

    expected = (transformer.eval(), states())[1]
    let_numpy_draw(transformer)
    for training in (True, False):
        transformer.train(training)
        torch.testing.assert_close(states(), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", ["esm", "xlm"])
def test_a_rate_is_everywhere_that_dropout_is_a_function_too(kind):
    transformer = tiny(kind)
    set_dropout(transformer, 0.0)
    words = torch.randn(2, 7, 16)
    training = transformer(inputs_embeds=words).last_hidden_state
    assert torch.equal(training, transformer.eval()(inputs_embeds=words).last_hidden_state)


def test_numpy_draws_in_every_layer_and_in_attention_and_evaluation_has_the_same_bits(assembled):
    plain, trainer = assembled(), assembled()
    layers = [module for module in trainer.model.modules() if isinstance(module, torch.nn.Dropout)]
    assert layers
    assert {type(layer) for layer in layers} == {NumpyDropout}
    term, batch = trainer.terms[0], trainer.reader(np.arange(8), "now")
    (branch,) = term.branches
    chunks = term.forward.chunks(batch.sequences)
    for layer in layers:  # attention alone
        layer.p = 0.0
    for block in trainer.model.transformer.encoder.layer:
        block.attention.self.dropout.p = 0.2
    vectors = term._encode(branch, chunks, batch)
    assert (vectors[:8] - vectors[8:]).abs().max() > 1e-3
    torch.testing.assert_close(term._encode(branch, chunks, batch), vectors)
    with torch.no_grad():
        bare, found = (
            side.terms[0].forward(side.model.eval(), side.model.key_head, chunks, None)
            for side in (plain, trainer)
        )
    torch.testing.assert_close(bare, found, atol=0, rtol=0)


@given(st.lists(st.integers(1, 40), max_size=8), st.integers(1, 160))
def test_chunks_by_tokens_cost_least_of_all_that_fit(lengths, most):
    widths = np.array(sorted(lengths, reverse=True), dtype=np.int64)

    def cost(cuts):
        padded = [(cut.stop - cut.start) * int(widths[cut.start]) for cut in cuts]
        fits = all(size <= most or cut.stop - cut.start == 1 for size, cut in zip(padded, cuts, strict=True))
        return sum(padded) + _CHUNK_COST * len(cuts) if fits else np.inf

    found = cuts_by_tokens(widths, most)
    assert [place for cut in found for place in range(cut.start, cut.stop)] == list(range(len(widths)))
    inner = range(1, len(widths))
    ways = [
        [0, *chosen, len(widths)] for size in range(len(widths)) for chosen in itertools.combinations(inner, size)
    ]
    least = min((cost([slice(*ends) for ends in itertools.pairwise(way)]) for way in ways), default=0)
    assert cost(found) == least


def test_chunks_by_tokens_hold_every_sequence_once_and_pad_to_a_multiple():
    rng = np.random.default_rng(0)
    sequences = [rng.integers(5, 50, size=size) for size in rng.integers(1, 33, size=60)]
    chunks = chunks_of(sequences, None, 0, multiple=8, tokens=256)
    assert sorted(place for chunk in chunks for place in chunk.places) == list(range(60))
    assert all(chunk.ids.shape[1] % 8 == 0 and chunk.ids.numel() <= 256 for chunk in chunks)
    for chunk in chunks:
        for row, place in enumerate(chunk.places):
            assert chunk.ids[row, : int(chunk.lengths[row])].tolist() == sequences[place].tolist()
    by_rows = chunks_of(sequences, 8, 0)
    assert sum(chunk.ids.numel() for chunk in chunks_of(sequences, None, 0, tokens=256)) < sum(
        chunk.ids.numel() for chunk in by_rows
    )
