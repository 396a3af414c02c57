"""Passes that a CPU computes at once: the numbers of passes one after the other, and the same bits each time."""

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
from stsbench.training.cpu import balanced, let_numpy_draw, numpy_draws, passes_at_once
from stsbench.training.model import _CHUNK_COST, cuts_by_tokens, evened


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


@given(st.lists(st.integers(1, 900), max_size=30), st.integers(1, 8))
def test_groups_hold_each_pass_once_and_none_has_more_than_another_and_one_pass(costs, count):
    groups = balanced(costs, count)
    assert sorted(number for group in groups for number in group) == list(range(len(costs)))
    assert len(groups) == min(count, len(costs))
    sums = [sum(costs[number] for number in group) for group in groups]
    assert max(sums, default=0) - min(sums, default=0) <= max(costs, default=0)


@given(st.lists(st.integers(1, 40), max_size=60), st.integers(1, 300), st.integers(1, 4))
def test_cutting_chunks_evens_their_shares_and_keeps_every_sequence(lengths, most, shares):
    widths = np.array(sorted(lengths, reverse=True), dtype=np.int64)

    def dearest(cuts):
        costs = [(cut.stop - cut.start) * int(widths[cut.start]) + _CHUNK_COST for cut in cuts]
        return max((sum(costs[place] for place in group) for group in balanced(costs, shares)), default=0)

    cuts = cuts_by_tokens(widths, most)
    found = evened(cuts, widths, shares)
    assert [place for cut in found for place in range(cut.start, cut.stop)] == list(range(len(widths)))
    assert dearest(found) <= dearest(cuts)
    assert found == cuts or shares > 1
    if shares == 2 and found:
        # What is left between them is a sequence's width and what a chunk more would cost.
        whole = sum((cut.stop - cut.start) * int(widths[cut.start]) + _CHUNK_COST for cut in found)
        assert dearest(found) <= whole / 2 + widths.max() + _CHUNK_COST


@pytest.mark.parametrize("count", [2, 3, 50])
@pytest.mark.parametrize(
    "more",
    [
        (),
        ("negatives.queue={size: 20}",),
        ("optimiser.gradient_cache=true",),
        ("noise.key.dropout=0.5", "projector={}"),
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
        passes_at_once(broken, parts, [], [[0, 2], [1]])
    assert torch.get_num_threads() == 2


def test_gradients_go_to_what_has_one_alone(two_threads):
    weight, frozen, unused = torch.ones(2, requires_grad=True), torch.ones(2), torch.ones(2, requires_grad=True)
    parts = [torch.ones(1, 2, requires_grad=True), torch.ones(3, 2), torch.ones(2, 2, requires_grad=True)]
    rows = passes_at_once(
        lambda number, part: part * weight * frozen * (number + 1), parts, [weight, frozen, unused], [[2], [0, 1]]
    )
    assert rows.shape == (6, 2)
    assert rows[:, 0].tolist() == [1, 2, 2, 2, 3, 3]
    rows.sum().backward()
    assert weight.grad.tolist() == [13, 13]
    assert (frozen.grad, unused.grad, parts[1].grad) == (None, None, None)
    assert parts[2].grad.tolist() == [[3, 3]] * 2
