"""Steps on a CPU: NumPy's dropout masks, chunks cut by tokens, and passes that run in parallel."""

import itertools
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_trainings import tiny

from stsbench.training import model as model_module
from stsbench.training.cpu import (
    NumpyDropout,
    drawn_by_numpy,
    let_numpy_draw,
    numpy_draws,
    passes_at_once,
    set_dropout,
)
from stsbench.training.model import chunks_of, ends_by_tokens


@pytest.fixture(autouse=True)
def _small_passes(monkeypatch):
    monkeypatch.setattr("stsbench.training.trainer._TOKENS_ON_CPU", 40)


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def at_once(trainer, count):
    """Let a trainer's objective compute so many passes at once; return it."""
    trainer.terms = [replace(term, forward=replace(term.forward, at_once=count)) for term in trainer.terms]
    return trainer


def gradients(trainer):
    """Return the loss of a batch and the gradient of each weight."""
    loss = trainer.terms[0](trainer.reader(np.arange(8), "now"), lambda value: value)
    return loss, {name: p.grad for name, p in trainer.model.named_parameters() if p.grad is not None}


@given(st.lists(st.integers(1, 40), max_size=60), st.integers(1, 300))
def test_chunks_by_tokens_hold_every_sequence_and_about_as_many_tokens_each(lengths, most):
    lengths = sorted(lengths, reverse=True)
    ends = ends_by_tokens(lengths, most)
    assert sorted(set(ends)) == ends
    assert ends[-1:] == [len(lengths)][: len(lengths)]
    tokens = [sum(lengths[start:end]) for start, end in itertools.pairwise([0, *ends])]
    assert all(size <= most + max(lengths) for size in tokens)
    assert len(ends) <= 2 * -(-sum(lengths) // (2 * most))


@pytest.mark.parametrize("count", [2, 3, 50])
@pytest.mark.parametrize(
    "more",
    [
        (),
        ("negatives.queue={size: 20}",),
        ("optimiser.gradient_cache=true",),
        ("noise.masks=shared", "projector={}"),
        ("precision=bf16",),
    ],
)
def test_passes_at_once_have_the_loss_and_the_gradients_of_one_after_the_other(
    assembled, two_threads, count, more
):
    # With dropout: the masks of a chunk are its own, wherever it is computed.
    loss, expected = gradients(at_once(assembled("dropout=0.3", *more), 1))
    trainer = at_once(assembled("dropout=0.3", *more), count)
    found_loss, found = gradients(trainer)
    half = "precision=bf16" in more
    torch.testing.assert_close(found_loss, loss, **({"atol": 1e-2, "rtol": 1e-2} if half else {}))
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        close = {"atol": 5e-3, "rtol": 0.1} if half else {"atol": 1e-6, "rtol": 1e-4}
        torch.testing.assert_close(found[name], gradient, **close, msg=name)
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("more", [(), ("target.dropout=true",)])
def test_a_training_at_once_has_the_same_bits_each_time(assembled, two_threads, monkeypatch, more):
    ends = []
    for late in (0, 1):  # which of the groups is late makes no difference
        trainer = at_once(assembled("dropout=0.3", "negatives.queue={size: 20}", *more), 2)
        plain, calls = type(trainer.model).forward, []

        def slowed(*arguments, plain=plain, calls=calls, late=late):
            calls.append(threading.get_ident())
            if len(calls) % 2 == late:
                time.sleep(0.01)
            return plain(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(type(trainer.model), "forward", slowed)
            for step in range(3):
                torch.manual_seed(99 + late)  # what else draws in the process makes no difference
                trainer.step(step)
        assert len(set(calls)) > 1
        ends.append(trainer.state_dict()["modules"]["model"] | {"queue": trainer.queue.columns()})
    assert all(torch.equal(ends[1][name], value) for name, value in ends[0].items())


@pytest.mark.parametrize(
    ("more", "shared"),
    [
        ((), True),
        (("noise={query: {parts: [position-shuffle]}, key: {parts: [position-shuffle]}}",), False),
        (("noise.adversarial={step: 0.1}",), False),
    ],
)
def test_passes_in_which_torch_draws_are_computed_one_after_the_other(assembled, monkeypatch, more, shared):
    calls = []
    monkeypatch.setattr(
        model_module, "passes_at_once", lambda *given: calls.append(given) or passes_at_once(*given)
    )
    gradients(at_once(assembled("dropout=0.3", *more), 2))
    assert bool(calls) is shared


@pytest.mark.parametrize(
    ("kind", "sizes", "alone"),
    [
        ("bert", {}, True),
        ("opt", {"ffn_dim": 24, "word_embed_proj_dim": 16}, False),  # by functions, and whole layers
        ("big_bird", {}, False),
    ],
)
def test_a_model_in_which_torch_draws_as_well_is_not_drawn_by_numpy_alone(kind, sizes, alone):
    transformer = tiny(kind, **sizes)
    let_numpy_draw(transformer)
    torch.manual_seed(0)
    before = torch.get_rng_state()
    assert numpy_draws(transformer) is alone
    assert torch.equal(torch.get_rng_state(), before)


def test_an_error_of_a_pass_is_told_and_the_number_of_threads_is_as_before(two_threads):
    def broken(number, part):
        if number == 1:
            raise MemoryError("too large")
        return part

    parts = [torch.ones(1, 2, requires_grad=True) for _ in range(3)]
    with pytest.raises(MemoryError, match="too large"):
        passes_at_once(broken, parts, [], 2)
    assert torch.get_num_threads() == 2


def test_gradients_go_to_what_has_one_alone(two_threads):
    weight, frozen, unused = torch.ones(2, requires_grad=True), torch.ones(2), torch.ones(2, requires_grad=True)
    parts = [torch.ones(1, 2, requires_grad=True), torch.ones(3, 2), torch.ones(2, 2, requires_grad=True)]
    rows = passes_at_once(
        lambda number, part: part * weight * frozen * (number + 1), parts, [weight, frozen, unused], 2
    )
    assert rows.shape == (6, 2)
    assert rows[:, 0].tolist() == [1, 2, 2, 2, 3, 3]
    rows.sum().backward()
    assert weight.grad.tolist() == [13, 13]
    assert (frozen.grad, unused.grad, parts[1].grad) == (None, None, None)
    assert parts[2].grad.tolist() == [[3, 3]] * 2


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

    from stsbench.training import cpu

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

    from stsbench.training import cpu

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


def test_chunks_by_tokens_hold_every_sequence_once_and_pad_to_a_multiple():
    rng = np.random.default_rng(0)
    sequences = [rng.integers(5, 50, size=size) for size in rng.integers(1, 33, size=60)]
    chunks = chunks_of(sequences, None, 0, multiple=8, tokens=256)
    assert sorted(place for chunk in chunks for place in chunk.places) == list(range(60))
    assert all(chunk.ids.shape[1] % 8 == 0 for chunk in chunks)
    for chunk in chunks:
        for row, place in enumerate(chunk.places):
            assert chunk.ids[row, : int(chunk.lengths[row])].tolist() == sequences[place].tolist()
