"""What the papers' public code does, each as a named choice: against plain computations written from that code."""

import random

import numpy as np
import pytest
import torch

from stsbench.training.heads import Layers
from stsbench.training.noise import PositionShuffle, TokenCutoff
from stsbench.training.parts import Optimiser
from stsbench.training.trainer import Descent

TRAINED_ON_32 = ("corpus.max_length=32", "dropout=0", "optimiser.chunk=3")


def plain_adam(weights, gradients, rate, decay):
    """Transformers 4's AdamW, a step for each gradient, in float64; None is a step without one."""
    weights, mean, square, step = weights.astype(np.float64).copy(), 0.0, 0.0, 0
    for gradient in gradients:
        if gradient is None:
            continue
        step += 1
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        size = rate * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        weights -= size * mean / (np.sqrt(square) + 1e-8)
        weights -= rate * decay * weights
    return weights


def test_epsilon_before_the_correction_is_transformers_4s_adamw():
    chance = np.random.default_rng(0)
    start = {"matrix": chance.normal(size=(4, 5)).astype("f4"), "bias": chance.normal(size=7).astype("f4")}
    # From far above epsilon to far below it; the matrix misses a step, as a head does that a step does not take.
    sizes = 10.0 ** chance.uniform(-10, -2, size=(6, 20))
    gradients = {
        "matrix": [None if step == 2 else sizes[step].reshape(4, 5) for step in range(6)],
        "bias": [-sizes[step][:7] for step in range(6)],
    }

    def run(adam_epsilon):
        part = Optimiser(learning_rate=1e-2, weight_decay=0.1, clip=None, adam_epsilon=adam_epsilon)
        weights = {name: torch.nn.Parameter(torch.from_numpy(value.copy())) for name, value in start.items()}
        descent = Descent(weights.values(), part, 10**9, "cpu", "fp32")  # so many steps that the rate stays
        for step in range(6):
            for name, weight in weights.items():
                given = gradients[name][step]
                weight.grad = None if given is None else torch.from_numpy(given.astype("f4"))
            descent.step(step)
        return {name: weight.detach().numpy() for name, weight in weights.items()}

    found = run("before_correction")
    for name, decay in (("matrix", 0.1), ("bias", 0.0)):
        expected = plain_adam(start[name], gradients[name], 1e-2, decay)
        np.testing.assert_allclose(found[name], expected, atol=2e-6)
    assert np.abs(found["bias"] - run("after_correction")["bias"]).max() > 1e-3


def test_the_epsilon_of_a_heads_normalisation_is_the_recipes():
    torch.manual_seed(0)
    part = Layers(layers=2, norm_epsilon=1e-12, dropout=0)
    head = part.build(6, 0.02).double()
    vectors = 1e-3 * torch.randn(5, 6, dtype=torch.float64)  # of a variance near torch's own epsilon

    def plain(epsilon):
        states = vectors
        for dense in (head[0], head[3]):
            states = states @ dense.weight.T + dense.bias
            centred = states - states.mean(1, keepdim=True)
            states = centred / (centred.square().mean(1, keepdim=True) + epsilon).sqrt()
        return states

    torch.testing.assert_close(head(vectors), plain(1e-12), rtol=1e-9, atol=1e-9)
    assert (head(vectors) - plain(1e-5)).abs().max() > 0.1
    # MoCoSE's predictor: neither normalisation nor dropout after its last layer, but tanh.
    *inner, last, _, _ = head
    ended = Layers(layers=2, norm_epsilon=1e-12, dropout=0, ends="tanh").build(6, 0.02).double()
    ended.load_state_dict({name: head.state_dict()[name] for name in ended.state_dict()})
    torch.testing.assert_close(ended(vectors), torch.tanh(last(torch.nn.Sequential(*inner)(vectors))))


def encoded(trainer, batch):
    """Return the vectors of both sides, and what reached the model of each chunk: states, mask, and positions."""
    term, seen, forward = trainer.terms[0], [], trainer.model.forward
    trainer.model.forward = lambda *given: seen.append(given) or forward(*given)
    vectors = [
        term._encode(branch, term.forward.chunks(branch.sequences(batch)), batch) for branch in term.branches
    ]
    trainer.model.forward = forward
    return vectors, seen


def test_mocoses_shuffle_is_one_order_of_all_padded_positions_for_the_batch(assembled):
    shuffled = "{parts: [{kind: position-shuffle, padded_to: 32}]}"
    # Cropped, as the tiny vocabulary cuts every sentence into more than 32 pieces.
    trainer = assembled(*TRAINED_ON_32, f"noise.key={shuffled}", "views.key={kind: crop, rate: 0.8}")
    batch = trainer.reader(np.arange(8), "now")
    (_, vectors), seen = encoded(trainer, batch)
    orders = {}
    for _, mask, _, positions in seen[len(seen) // 2 :]:  # the key's
        for row, own in zip(mask.tolist(), positions.tolist(), strict=True):
            for place in range(sum(row)):
                assert orders.setdefault(place, own[place]) == own[place]
    longest, shortest = max(map(len, batch.key)), min(map(len, batch.key))
    assert len(set(orders.values())) == longest > shortest
    assert max(orders[place] for place in range(shortest)) >= shortest  # positions of padding are among them
    # The public code: every sentence padded to 32, one permutation of position ids for all of them.
    ids, mask = torch.zeros(8, 32, dtype=torch.long), torch.zeros(8, 32, dtype=torch.long)
    for row, sequence in enumerate(batch.key):
        ids[row, : len(sequence)], mask[row, : len(sequence)] = torch.tensor(sequence), 1
    rest = [position for position in range(32) if position not in orders.values()]
    order = torch.tensor([orders[place] for place in range(longest)] + rest)
    states = trainer.model.transformer(ids, attention_mask=mask, position_ids=order[None]).last_hidden_state
    plain = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
    torch.testing.assert_close(vectors, trainer.model.head(plain), atol=1e-5, rtol=1e-4)
    # Drawn anew for another batch, and again the same for this one.
    (_, again), _ = encoded(trainer, batch)
    torch.testing.assert_close(again, vectors, atol=0, rtol=0)
    (_, other), _ = encoded(trainer, trainer.reader(np.arange(8), "later"))
    assert (other - vectors).abs().max() > 1e-3


def test_the_order_of_a_batch_puts_each_position_in_each_place_equally_often():
    part, mask = PositionShuffle(kind="position-shuffle", padded_to=6), torch.ones(3, 4, dtype=torch.long)
    positions = 5 + torch.arange(4).expand(3, 4)  # as RoBERTa counts, from behind its padding's own place
    found = np.stack(
        [part.for_batch(np.random.default_rng(seed)).positions(positions, mask) for seed in range(6000)]
    )
    assert (found == found[:, :1]).all()
    for place in range(4):
        share = np.bincount(found[:, 0, place] - 5, minlength=6) / 6000
        np.testing.assert_allclose(share, 1 / 6, atol=0.02)
    longer = 5 + torch.arange(9).expand(1, 9)
    kept = part.for_batch(np.random.default_rng(0)).positions(longer, torch.ones(1, 9))[0]
    assert kept[6:].tolist() == [11, 12, 13]


@pytest.mark.parametrize("length", [4, 12, 32])
def test_mocoses_token_cut_off_counts_and_draws_padding_too(length):
    part = TokenCutoff(kind="token-cutoff", rate=0.1, count="at_least_one", padded_to=32)
    torch.manual_seed(0)
    width = 20 if length < 20 else 32
    mask = (torch.arange(width) < length).long().expand(20_000, width)
    gone = (~part.kept(torch.ones(20_000, width, 1), mask)[:, :, 0]) & mask.bool()
    # As the public code draws: random.sample of range(32), max(1, int(32 * 0.1)) of them.
    chance = random.Random(0)
    plain = [
        sum(place < length for place in chance.sample(range(32), max(1, int(32 * 0.1)))) for _ in range(20_000)
    ]
    found, expected = (np.bincount(counts, minlength=4) / 20_000 for counts in (gone.sum(1).numpy(), plain))
    np.testing.assert_allclose(found, expected, atol=0.015)
    np.testing.assert_allclose(gone.float().mean(0)[:length], 3 / 32, atol=0.01)
