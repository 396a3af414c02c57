"""Losses and gradients equal the papers' equations, written naively in float64."""

import numpy as np
import pytest
import torch

from stsbench.training.objectives import info_nce, nt_xent

CASES = [
    {},
    {"hard": True},
    {"hard": True, "weight": 2.5},
    {"queue": 7},
    {"hard": True, "weight": 0.5, "queue": 3},
]


def parts(case, rows=6, width=5):
    rng = np.random.default_rng(0)
    query, key, hard = (rng.normal(size=(rows, width)) for _ in range(3))
    queue = rng.normal(size=(case.get("queue", 0), width))
    return query, key, hard if case.get("hard") else None, queue


@pytest.mark.parametrize("temperature", [0.05, 1.0])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_loss_is_that_of_the_equations(case, temperature, naive):
    query, key, hard, queue = parts(case)
    weight = case.get("weight", 1.0)
    expected = naive(query, key, temperature=temperature, hard=hard, weight=weight, queue=queue)
    given = [None if part is None else torch.tensor(part) for part in (query, key, hard, queue)]
    loss = info_nce(given[0], given[1], temperature=temperature, hard=given[2], hard_weight=weight, queue=given[3])
    assert loss.item() == pytest.approx(expected, abs=1e-9)
    single = [None if part is None else part.float() for part in given]
    loss = info_nce(
        single[0], single[1], temperature=temperature, hard=single[2], hard_weight=weight, queue=single[3]
    )
    assert loss.item() == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_gradients_are_those_of_the_equations_and_the_queue_has_none(case, naive, slope):
    query, key, hard, queue = parts(case)
    weight = case.get("weight", 1.0)
    tensors = [torch.tensor(part, requires_grad=True) for part in (query, key, queue)]
    hard_tensor = None if hard is None else torch.tensor(hard, requires_grad=True)
    info_nce(
        tensors[0], tensors[1], temperature=0.5, hard=hard_tensor, hard_weight=weight, queue=tensors[2]
    ).backward()
    loss = {"temperature": 0.5, "weight": weight, "queue": queue}
    checks = [
        (tensors[0], slope(lambda x: naive(x, key, hard=hard, **loss), query)),
        (tensors[1], slope(lambda x: naive(query, x, hard=hard, **loss), key)),
    ]
    if hard is not None:
        checks.append((hard_tensor, slope(lambda x: naive(query, key, hard=x, **loss), hard)))
    for tensor, expected in checks:
        np.testing.assert_allclose(tensor.grad.numpy(), expected, atol=1e-6)
    assert tensors[2].grad is None


def test_a_large_logit_does_not_overflow():
    vectors = torch.eye(4)
    assert torch.isfinite(info_nce(vectors, vectors, temperature=1e-3))


def naive_nt_xent(query, key, temperature):
    """SimCLR's algorithm 1, pair by pair."""
    rows, losses = [*query, *key], []
    for i, own in enumerate(rows):
        sims = [float(own @ row / (np.linalg.norm(own) * np.linalg.norm(row)) / temperature) for row in rows]
        below = sum(np.exp(sim) for k, sim in enumerate(sims) if k != i)
        losses.append(-np.log(np.exp(sims[(i + len(query)) % len(rows)]) / below))
    return float(np.mean(losses))


def test_nt_xent_and_its_gradient_are_those_of_the_pairs(slope):
    query, key, _, _ = parts({}, rows=4, width=3)
    given = [torch.tensor(side, requires_grad=True) for side in (query, key)]
    loss = nt_xent(*given, temperature=0.1)
    assert loss.item() == pytest.approx(naive_nt_xent(query, key, 0.1), abs=1e-9)
    loss.backward()
    expected = slope(lambda side: naive_nt_xent(side, key, 0.1), query)
    np.testing.assert_allclose(given[0].grad.numpy(), expected, atol=1e-6)
